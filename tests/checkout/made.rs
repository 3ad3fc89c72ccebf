//! Small archives, repositories, an index server: made in temporary folders for one test each.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use mambapatch::checkout::{CheckoutOptions, Progress, Recognise, UpstreamInfo, Variables};

/// A `.tar.gz` of regular files, as an sdist is made.
pub fn tar_gz(files: &[(&str, &[u8])]) -> Vec<u8> {
    tar_gz_with(|tar| {
        for (path, bytes) in files {
            tar_entry(tar, path, (tar::EntryType::Regular, 0o644, bytes));
        }
    })
}

pub type TarGz = tar::Builder<flate2::write::GzEncoder<Vec<u8>>>;

/// A `.tar.gz` of whatever `fill` writes.
pub fn tar_gz_with(fill: impl FnOnce(&mut TarGz)) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut tar = tar::Builder::new(gzip);
    fill(&mut tar);
    tar.into_inner().expect("tar").finish().expect("gzip")
}

/// One entry whose name is written as it is: the `tar` crate would refuse `..`.
pub fn tar_entry(tar: &mut TarGz, path: &str, (kind, mode, bytes): (tar::EntryType, u32, &[u8])) {
    let mut header = header(path, kind);
    header.set_mode(mode);
    header.set_size(bytes.len() as u64);
    header.set_cksum();
    tar.append(&header, bytes).expect("entry");
}

/// A link of some kind.
pub fn tar_link(tar: &mut TarGz, path: &str, (kind, target): (tar::EntryType, &str)) {
    let mut header = header(path, kind);
    header.set_mode(0o777);
    header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_cksum();
    tar.append(&header, &[][..]).expect("link");
}

fn header(path: &str, kind: tar::EntryType) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_size(0);
    header
}

/// A source distribution of `mamba-ssm` in small.
pub fn sdist(version: &str) -> Vec<u8> {
    let top = format!("mamba_ssm-{version}");
    let info = format!("Metadata-Version: 2.1\nName: mamba_ssm\nVersion: {version}\n\n");
    let (setup, pkg_info) = (format!("{top}/setup.py"), format!("{top}/PKG-INFO"));
    tar_gz(&[(&setup, b"PACKAGE_NAME = 'mamba_ssm'\r\n"), (&pkg_info, info.as_bytes())])
}

/// Two upstreams; the folder of clones gives their git address.
pub fn upstreams(clones: Option<&Path>) -> Vec<UpstreamInfo> {
    let upstream = |id: &str, package: &str| UpstreamInfo {
        id: id.into(),
        distribution: id.into(),
        git_url: clones.map(|folder| format!("file://{}", folder.join("owner").join(id).display())),
        recognise: vec![Recognise {
            file: "setup.py".into(),
            pattern: regex::Regex::new(package).expect("pattern"),
        }],
        tag_prefix: "v".into(),
    };
    vec![upstream("mamba-ssm", "mamba_ssm"), upstream("causal-conv1d", "causal_conv1d")]
}

/// Options of a user with nothing but a folder.
pub fn options(home: &Path, more: &[(&str, &str)]) -> CheckoutOptions {
    let home_text = home.to_str().expect("path");
    let nothing = home.join("none");
    let fixed = [
        ("HOME", home_text),
        ("PIP_CONFIG_FILE", "/dev/null"),
        ("PIP_INDEX_URL", nothing.to_str().expect("path")),
    ];
    let variables = Variables::from_pairs(fixed.into_iter().chain(more.iter().copied()));
    CheckoutOptions::new(variables, home.into())
}

/// Collects what a run tells.
pub fn notes(into: &mut Vec<String>) -> impl FnMut(Progress) + '_ {
    |progress| {
        if let Progress::Note(text) | Progress::Step(text) = progress {
            into.push(text);
        }
    }
}

/// Runs git without the user's configuration.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@host.test", "-c", "init.defaultBranch=main"])
        .args(["-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

/// Writes files and makes them a commit.
pub fn commit(folder: &Path, files: &[(&str, &str)], message: &str) {
    for (path, text) in files {
        let full = folder.join(path);
        std::fs::create_dir_all(full.parent().expect("parent")).expect("folder");
        std::fs::write(full, text).expect("write");
    }
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", message]);
}

/// A repository with the releases 1.0 and 1.1 (also tagged 1.1.post1), and one commit more on `main`.
pub fn repository(folder: &Path) {
    std::fs::create_dir_all(folder).expect("folder");
    git(folder, &["init", "-q"]);
    git(folder, &["config", "user.name", "Someone"]);
    git(folder, &["config", "user.email", "someone@host.test"]);
    commit(folder, &[("setup.py", "name='mamba_ssm'\n# 1.0\n"), ("csrc/a.cu", "a\n")], "one");
    git(folder, &["tag", "v1.0"]);
    git(folder, &["tag", "not-a-version"]);
    commit(folder, &[("setup.py", "name='mamba_ssm'\n# 1.1\n"), ("run.sh", "#!/bin/sh\r\n")], "two");
    git(folder, &["update-index", "--chmod=+x", "run.sh"]);
    git(folder, &["commit", "-q", "--amend", "--no-edit"]);
    git(folder, &["checkout", "-q", "--", "run.sh"]);
    git(folder, &["tag", "-a", "v1.1", "-m", "annotated"]);
    git(folder, &["tag", "v1.1.post1"]);
    git(folder, &["tag", "v2.0rc1"]);
    commit(folder, &[("new.py", "x\n")], "three");
}

type Routes = BTreeMap<String, (&'static str, Vec<u8>)>;

/// A web server on 127.0.0.1 for one test.
pub struct Server {
    pub url: String,
    address: std::net::SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    over: Arc<AtomicBool>,
}

impl Server {
    /// Serves these paths; all else is 404.
    pub fn start(routes: impl Fn(&str) -> Routes) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("address");
        let url = format!("http://{address}");
        let (routes, asked) = (routes(&url), Arc::new(Mutex::new(Vec::new())));
        let over = Arc::new(AtomicBool::new(false));
        let (log, stop) = (asked.clone(), over.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().take(200).flatten() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                answer(stream, &routes, &log);
            }
        });
        Self { url, address, asked, over }
    }

    /// The paths that were asked for, with the credentials that came along.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("log").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn answer(mut stream: TcpStream, routes: &Routes, log: &Mutex<Vec<String>>) {
    let _ = stream.set_read_timeout(Some(std::time::Duration::from_secs(5)));
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut piece) {
            Ok(count) if count > 0 => request.extend_from_slice(&piece[..count]),
            _ => return,
        }
    }
    let text = String::from_utf8_lossy(&request).into_owned();
    let path = text.split(' ').nth(1).unwrap_or_default().to_string();
    let sent = text.lines().find(|line| line.to_ascii_lowercase().starts_with("authorization:"));
    log.lock().expect("log").push(format!("{path}{}", if sent.is_some() { " with credentials" } else { "" }));
    let (status, kind, body) = match routes.get(&path) {
        Some((kind, body)) => ("200 OK", *kind, &body[..]),
        None => ("404 Not Found", "text/plain", &b"no"[..]),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}
