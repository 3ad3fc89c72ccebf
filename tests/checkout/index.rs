use std::fs;
use std::path::Path;

use mambapatch::checkout::cache::sha256;
use mambapatch::checkout::index::{Index, IndexError, choose};

use crate::made::{Server, notes, options, sdist};

const JSON: &str = "application/vnd.pypi.simple.v1+json";

/// A server with 1.0, 1.1 (withdrawn) and 2.0rc1; `hash` is what the pages state for 1.0.
fn server(json: bool, hash: &str) -> Server {
    let file = sdist("1.0");
    Server::start(|_| {
        let page = if json {
            let entry = |name: &str, yanked: &str| {
                format!(
                    r#"{{"filename":"{name}","url":"../../files/{name}","hashes":{{"sha256":"{hash}"}},"yanked":{yanked}}}"#
                )
            };
            let entries = [
                entry("mamba_ssm-1.0.tar.gz", "false"),
                entry("mamba_ssm-1.0-py3-none-any.whl", "false"),
                entry("mamba_ssm-1.1.tar.gz", r#""broken""#),
                entry("mamba_ssm-2.0rc1.tar.gz", "false"),
            ];
            (JSON, format!(r#"{{"meta":{{"api-version":"1.0"}},"files":[{}]}}"#, entries.join(",")))
        } else {
            let page = format!(
                "<!DOCTYPE html><a href=\"/files/mamba_ssm-1.0.tar.gz#sha256={hash}\">x</a>\
                 <a href='/files/mamba_ssm-1.1.tar.gz' data-yanked=\"broken\">x</a>\
                 <a href='/files/mamba_ssm-2.0rc1.tar.gz'>x</a>"
            );
            ("text/html; charset=utf-8", page)
        };
        [
            ("/simple/mamba-ssm/".to_string(), (page.0, page.1.into_bytes())),
            ("/files/mamba_ssm-1.0.tar.gz".to_string(), ("application/gzip", file.clone())),
        ]
        .into()
    })
}

fn open(home: &Path, server: &Server, offline: bool) -> Index {
    let mut options = options(home, &[]);
    options.index = Some(format!("{}/simple", server.url.replace("//", "//me:secret@")));
    options.offline = offline;
    Index::open(&options).expect("index")
}

#[test]
fn json_and_html_pages_say_the_same() {
    for json in [true, false] {
        let home = tempfile::tempdir().expect("home");
        let server = server(json, &sha256(&sdist("1.0")));
        let index = open(home.path(), &server, false);
        let files = index.releases("Mamba_SSM", &mut |_| {}).expect("releases");
        let tags: Vec<String> = files.iter().map(|file| file.tag.to_string()).collect();
        assert_eq!(tags, ["1.0", "1.1", "2.0rc1"]);
        let newest = choose(&files, None, "mamba-ssm").expect("newest");
        assert_eq!(newest.file_name, "mamba_ssm-1.0.tar.gz", "neither withdrawn nor a candidate");
        assert_eq!(index.fetch(newest, &mut |_| {}).expect("bytes"), sdist("1.0"));
        assert!(
            server.asked().iter().all(|line| line.ends_with(" with credentials")),
            "{:?}",
            server.asked()
        );
        assert!(!index.location().shown().contains("secret"));
        let kept = walk(home.path());
        assert!(!kept.iter().any(|bytes| String::from_utf8_lossy(bytes).contains("secret")));
    }
}

fn walk(folder: &Path) -> Vec<Vec<u8>> {
    let paths = mambapatch::checkout::folder::paths(folder).expect("paths");
    paths.iter().map(|path| fs::read(folder.join(path)).expect("read")).collect()
}

#[test]
fn a_wrong_hash_is_an_error_and_nothing_is_kept() {
    let home = tempfile::tempdir().expect("home");
    let server = server(true, &"0".repeat(64));
    let index = open(home.path(), &server, false);
    let files = index.releases("mamba-ssm", &mut |_| {}).expect("releases");
    let error = index.fetch(&files[0], &mut |_| {}).expect_err("wrong hash");
    assert!(matches!(error, IndexError::WrongHash { .. }), "{error}");
    assert!(index.cached(&files[0]).is_none());
    assert!(!home.path().join(".cache/mambapatch/sdist").exists());
}

#[test]
fn the_cache_serves_offline_and_is_proved() {
    let home = tempfile::tempdir().expect("home");
    let server = server(true, &sha256(&sdist("1.0")));
    let offline = open(home.path(), &server, true);
    let error = offline.releases("mamba-ssm", &mut |_| {}).expect_err("nothing kept yet");
    assert!(matches!(error, IndexError::Offline { .. }), "{error}");
    let index = open(home.path(), &server, false);
    let files = index.releases("mamba-ssm", &mut |_| {}).expect("releases");
    index.fetch(&files[0], &mut |_| {}).expect("fetched");
    let asked = server.asked().len();
    assert_eq!(offline.releases("mamba-ssm", &mut |_| {}).expect("kept"), files);
    assert_eq!(offline.fetch(&files[0], &mut |_| {}).expect("kept"), sdist("1.0"));
    assert_eq!(index.fetch(&files[0], &mut |_| {}).expect("kept"), sdist("1.0"));
    assert_eq!(server.asked().len(), asked, "nothing is asked again");

    let cache = home.path().join(".cache/mambapatch");
    let kept = mambapatch::checkout::folder::paths(&cache).expect("paths");
    let file = cache.join(kept.iter().find(|path| path.ends_with("1.0.tar.gz")).expect("kept"));
    fs::write(&file, "rubbish").expect("corrupt");
    let error = offline.fetch(&files[0], &mut |_| {}).expect_err("corrupt").to_string();
    assert!(error.contains("an intact mamba_ssm-1.0.tar.gz"), "{error}");
    let mut told = Vec::new();
    assert_eq!(index.fetch(&files[0], &mut notes(&mut told)).expect("again"), sdist("1.0"));
    assert!(told[0].contains("fetching it again"), "{told:?}");
    assert_eq!(fs::read(&file).expect("read"), sdist("1.0"));
}

#[test]
fn an_unreached_index_leaves_the_list_of_last_time() {
    let home = tempfile::tempdir().expect("home");
    let mut options = options(home.path(), &[]);
    let server = server(true, &sha256(&sdist("1.0")));
    options.index = Some(format!("{}/simple", server.url));
    let index = Index::open(&options).expect("index");
    let files = index.releases("mamba-ssm", &mut |_| {}).expect("releases");
    drop(server);
    std::thread::sleep(std::time::Duration::from_millis(100));
    let mut told = Vec::new();
    assert_eq!(index.releases("mamba-ssm", &mut notes(&mut told)).expect("kept"), files);
    assert!(told[0].contains("last time"), "{told:?}");
}

#[test]
fn an_unknown_project_and_a_strange_page() {
    let home = tempfile::tempdir().expect("home");
    let server = Server::start(|_| [("/simple/odd/".to_string(), ("text/plain", b"hello".to_vec()))].into());
    let index = open(home.path(), &server, false);
    let error = index.releases("nothing", &mut |_| {}).expect_err("unknown");
    assert!(
        matches!(error, IndexError::NoProject { .. }) && !error.to_string().contains("secret"),
        "{error}"
    );
    let error = index.releases("odd", &mut |_| {}).expect_err("no page");
    assert!(matches!(error, IndexError::BadPage { .. }), "{error}");
}

#[test]
fn a_folder_is_an_index_too() {
    let home = tempfile::tempdir().expect("home");
    let folder = home.path().join("my index/Mamba_SSM");
    fs::create_dir_all(&folder).expect("folder");
    for version in ["1.0", "1.0.post1"] {
        fs::write(folder.join(format!("mamba_ssm-{version}.tar.gz")), sdist(version)).expect("write");
    }
    let path = home.path().join("my index");
    for given in [path.display().to_string(), format!("file://{}", path.display()).replace(' ', "%20")] {
        let mut options = options(home.path(), &[]);
        options.index = Some(given);
        let index = Index::open(&options).expect("index");
        let files = index.releases("mamba-ssm", &mut |_| {}).expect("releases");
        let newest = choose(&files, None, "mamba-ssm").expect("newest");
        assert_eq!(newest.tag.to_string(), "1.0.post1");
        assert_eq!(index.fetch(newest, &mut |_| {}).expect("bytes"), sdist("1.0.post1"));
    }
    fs::write(folder.join("index.html"), "<a href='mamba_ssm-1.0.tar.gz#sha256=00'>x</a>").expect("write");
    let mut options = options(home.path(), &[]);
    options.index = Some(path.display().to_string());
    let index = Index::open(&options).expect("index");
    let files = index.releases("mamba-ssm", &mut |_| {}).expect("releases");
    assert!(matches!(index.fetch(&files[0], &mut |_| {}), Err(IndexError::WrongHash { .. })));
    let error = choose(&files, Some(&"1.1".parse().expect("tag")), "mamba-ssm").expect_err("none");
    assert_eq!(error.hint().as_deref(), Some("there are 1.0"));
}
