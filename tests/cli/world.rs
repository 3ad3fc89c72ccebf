//! A machine in a temporary folder: a home, an index, mirrors, and the program running in it without any network.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::sources::{CAUSAL, MAMBA, Release};

/// The machine.
pub struct World {
    root: tempfile::TempDir,
    variables: BTreeMap<String, String>,
}

/// What a run said.
#[derive(Debug)]
pub struct Run {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl World {
    /// Both upstreams as local mirrors and on the index.
    pub fn new() -> Self {
        let world = Self::bare();
        let mirror = |name: &str| world.path("mirrors").join(name);
        repository(&mirror("mamba-ssm"), &MAMBA, "mamba_ssm");
        repository(&mirror("causal-conv1d"), &CAUSAL, "causal_conv1d");
        for release in &MAMBA[2..] {
            world.put_sdist("mamba-ssm", "mamba_ssm", release);
        }
        world.put_sdist("causal-conv1d", "causal_conv1d", &CAUSAL[1]);
        world
    }

    /// No mirrors and an empty index.
    pub fn bare() -> Self {
        let root = tempfile::tempdir().expect("folder");
        let mut world = Self { root, variables: BTreeMap::new() };
        for folder in ["home", "index", "mirrors", "cache", "state", "config", "work"] {
            fs::create_dir(world.path(folder)).expect("folder");
        }
        let index = format!("file://{}", world.path("index").display());
        world.set("PIP_INDEX_URL", &index);
        world.set("PATH", &std::env::var("PATH").expect("PATH"));
        for (name, folder) in [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "home/.config"),
            ("MAMBAPATCH_MIRRORS", "mirrors"),
            ("MAMBAPATCH_CACHE", "cache"),
            ("MAMBAPATCH_STATE", "state"),
            ("MAMBAPATCH_CONFIG", "config"),
        ] {
            let path = world.path(folder).display().to_string();
            world.set(name, &path);
        }
        for (name, value) in [
            ("PIP_CONFIG_FILE", "/dev/null"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            // Whoever runs the tests: git must not reach any server.
            ("GIT_ALLOW_PROTOCOL", "file"),
            ("LC_ALL", "C.UTF-8"),
            ("TERM", "xterm-256color"),
        ] {
            world.set(name, value);
        }
        world
    }

    /// A world whose sources come from the index alone.
    pub fn without_git() -> Self {
        let world = Self::new();
        fs::remove_dir_all(world.path("mirrors")).expect("mirrors");
        world
    }

    /// Sets a variable of the runs.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.into(), value.into());
    }

    /// A git identity for what is committed.
    pub fn with_identity(self) -> Self {
        self.write("home/.gitconfig", "[user]\n\tname = Some One\n\temail = someone@host.test\n");
        self
    }

    /// A path below the root.
    pub fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    /// Writes a file below the root.
    pub fn write(&self, below: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(below);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(path, bytes).expect("write");
    }

    /// A file below the root.
    pub fn read(&self, below: &str) -> Vec<u8> {
        fs::read(self.path(below)).unwrap_or_else(|error| panic!("{below}: {error}"))
    }

    /// A file below the root, as text.
    pub fn text(&self, below: &str) -> String {
        String::from_utf8(self.read(below)).expect("text")
    }

    /// Runs the program in the folder `work`.
    pub fn run(&self, arguments: &[&str]) -> Run {
        self.run_in("work", arguments)
    }

    /// Runs the program in a folder.
    pub fn run_in(&self, folder: &str, arguments: &[&str]) -> Run {
        let run = self.command(folder, arguments).stdin(Stdio::null()).output().expect("run");
        Run::of(run)
    }

    /// Runs the program; nothing but the cache may have changed afterwards.
    pub fn run_without_trace(&self, arguments: &[&str]) -> Run {
        let before = self.snapshot();
        let run = self.run(arguments);
        let after = self.snapshot();
        let changed: Vec<&String> =
            after.keys().chain(before.keys()).filter(|path| after.get(*path) != before.get(*path)).collect();
        assert!(changed.is_empty(), "{arguments:?} wrote {changed:?}\n{run}");
        run
    }

    /// The program, ready to be run.
    pub fn command(&self, folder: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mambapatch"));
        command.args(arguments).current_dir(self.path(folder)).env_clear().envs(&self.variables);
        command
    }

    /// Every file and folder with its content, except the cache and git objects, to which something must point before
    /// anyone sees them.
    fn snapshot(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.root.path().to_path_buf()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(&folder).expect("list").flatten() {
                let path = entry.path();
                if path == self.path("cache") || path.ends_with(".git/objects") {
                    continue;
                }
                let kind = entry.file_type().expect("kind");
                let bytes = if kind.is_file() { fs::read(&path).expect("read") } else { Vec::new() };
                found.insert(path.display().to_string(), bytes);
                if kind.is_dir() {
                    open.push(path);
                }
            }
        }
        found
    }

    /// Runs git in a folder; its output.
    pub fn git(&self, folder: &str, arguments: &[&str]) -> String {
        self.git_with(folder, arguments, b"")
    }

    /// Runs git with something on its standard input.
    pub fn git_with(&self, folder: &str, arguments: &[&str], input: &[u8]) -> String {
        let mut command = Command::new("git");
        command.args([
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@host.test",
            "-c",
            "core.autocrlf=false",
        ]);
        command.args(arguments).current_dir(self.path(folder)).env_clear().envs(&self.variables);
        let output = with_input(command, input);
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_string()
    }

    /// A git checkout with these files committed.
    pub fn checkout(&self, folder: &str, files: &[(&str, &[u8])]) {
        for (path, bytes) in files {
            self.write(&format!("{folder}/{path}"), bytes);
        }
        self.git(folder, &["init", "-q", "-b", "main"]);
        self.git(folder, &["add", "-A"]);
        self.git(folder, &["commit", "-q", "-m", "start"]);
    }

    /// A clone of the mirror of mamba-ssm at a tag.
    pub fn clone_of_mamba(&self, folder: &str, tag: &str) {
        let from = self.path("mirrors/mamba-ssm").display().to_string();
        self.git("work", &["clone", "-q", "--branch", tag, &from, &self.path(folder).display().to_string()]);
    }

    /// A release's source distribution on the index; those of mamba-ssm carry no kernels, as upstream's.
    fn put_sdist(&self, project: &str, package: &str, release: &Release) {
        let version = release.tag.trim_start_matches('v');
        let info = format!("Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n");
        let mut files = release.files(package);
        files.retain(|(path, _)| package != "mamba_ssm" || !path.starts_with("csrc"));
        files.push(("PKG-INFO".into(), info.into()));
        self.write(
            &format!("index/{project}/{package}-{version}.tar.gz"),
            tar_gz(&format!("{package}-{version}"), &files),
        );
    }
}

/// Runs a program with something on its standard input.
pub fn with_input(mut command: Command, input: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("spawn");
    // A program that does not read its input closes it early.
    let _ = child.stdin.take().expect("input").write_all(input);
    child.wait_with_output().expect("wait")
}

/// A `.tar.gz` with one top folder.
pub fn tar_gz(top: &str, files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (path, bytes) in files {
        let mut header = tar::Header::new_ustar();
        let name = format!("{top}/{path}");
        // The crate's own way refuses `..`.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o644);
        header.set_size(bytes.len() as u64);
        header.set_cksum();
        tar.append(&header, &bytes[..]).expect("entry");
    }
    tar.into_inner().expect("tar").finish().expect("gzip")
}

/// A repository with a commit and a tag a release, and one commit more on `main`.
fn repository(folder: &Path, releases: &[Release], package: &str) {
    let mut options = git2::RepositoryInitOptions::new();
    options.initial_head("main").external_template(false);
    let repository = git2::Repository::init_opts(folder, &options).expect("init");
    let who =
        git2::Signature::new("Up Stream", "up@host.test", &git2::Time::new(1_700_000_000, 0)).expect("who");
    let mut parent = None;
    for (number, release) in releases.iter().chain(releases.last()).enumerate() {
        let mut update = git2::build::TreeUpdateBuilder::new();
        for (path, bytes) in release.files(package) {
            let blob = repository.blob(&bytes).expect("blob");
            update.upsert(path.as_str(), blob, git2::FileMode::Blob);
        }
        let news = repository.blob(format!("{number}\n").as_bytes()).expect("blob");
        update.upsert("NEWS", news, git2::FileMode::Blob);
        let empty = repository
            .find_tree(repository.treebuilder(None).expect("tree").write().expect("tree"))
            .expect("tree");
        let tree = update.create_updated(&repository, &empty).expect("tree");
        let tree = repository.find_tree(tree).expect("tree");
        let parents: Vec<&git2::Commit<'_>> = parent.iter().collect();
        let commit =
            repository.commit(Some("HEAD"), &who, &who, release.tag, &tree, &parents).expect("commit");
        let commit = repository.find_commit(commit).expect("commit");
        if number < releases.len() {
            repository.tag_lightweight(release.tag, commit.as_object(), false).expect("tag");
        }
        parent = Some(commit);
    }
}

impl Run {
    /// What a finished process left.
    pub fn of(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().unwrap_or(-1);
        let run = Self { code, out: text(&output.stdout), err: text(&output.stderr) };
        assert!(!run.err.contains("panicked"), "{run}");
        run
    }

    /// The run, if it ended with this code.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self}");
        self
    }

    /// The run, if its standard error says all of this.
    #[track_caller]
    pub fn says(self, parts: &[&str]) -> Self {
        parts.iter().for_each(|part| assert!(self.err.contains(part), "`{part}` is not said\n{self}"));
        self
    }

    /// The run, if its standard error says none of this.
    #[track_caller]
    pub fn omits(self, parts: &[&str]) -> Self {
        parts.iter().for_each(|part| assert!(!self.err.contains(part), "`{part}` is said\n{self}"));
        self
    }

    /// The run, if its standard output holds all of this.
    #[track_caller]
    pub fn shows(self, parts: &[&str]) -> Self {
        parts.iter().for_each(|part| assert!(self.out.contains(part), "`{part}` is not shown\n{self}"));
        self
    }

    /// The run, if it failed as errors do: code 2, one error with this text and this hint, no answer.
    #[track_caller]
    pub fn fails(self, parts: &[&str]) -> Self {
        assert!(self.out.is_empty(), "{self}");
        assert_eq!(self.err.matches("error: ").count(), 1, "{self}");
        assert!(self.err.contains("hint: ") || self.err.contains("For more information"), "{self}");
        self.exits(2).says(parts)
    }

    /// The one JSON document on standard output.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}\n{self}"))
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit {}\n--- standard output\n{}--- standard error\n{}", self.code, self.out, self.err)
    }
}
