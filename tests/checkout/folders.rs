use std::fs;

use mambapatch::checkout::folder::{FolderError, listed, paths, read, version_of, write_in_place};
use mambapatch::engine::tag::SourceVersion;

fn change(path: &str, text: &str) -> (String, Vec<u8>) {
    (path.into(), text.into())
}

#[test]
fn files_are_replaced_whole_and_the_reverse_patch_is_kept() {
    let (root, state) = (tempfile::tempdir().expect("root"), tempfile::tempdir().expect("state"));
    fs::write(root.path().join("setup.py"), "old\r\n").expect("write");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(root.path().join("setup.py"), fs::Permissions::from_mode(0o751)).expect("mode");
    }
    let changes = [change("setup.py", "new\r\n"), change("csrc/new.cu", "x")];
    let written = write_in_place(root.path(), &changes, b"--- reverse", Some(state.path())).expect("written");
    assert_eq!(written.files, ["csrc/new.cu", "setup.py"]);
    assert_eq!(fs::read(root.path().join("setup.py")).expect("read"), b"new\r\n");
    let kept = written.reverse_patch.expect("kept");
    assert!(kept.starts_with(state.path().join("reverse")));
    assert_eq!(fs::read_to_string(kept).expect("read"), "--- reverse");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path| fs::metadata(root.path().join(path)).expect("file").permissions().mode() & 0o777;
        assert_eq!(mode("setup.py"), 0o751);
        assert_eq!(mode("csrc/new.cu") & 0o600, 0o600);
    }
    let again = write_in_place(root.path(), &changes, b"--- reverse", Some(state.path())).expect("again");
    assert!(again.files.is_empty() && again.reverse_patch.is_none());
}

#[test]
fn a_failure_changes_nothing() {
    let (root, state) = (tempfile::tempdir().expect("root"), tempfile::tempdir().expect("state"));
    fs::write(root.path().join("a"), "old").expect("write");
    fs::write(root.path().join("file"), "").expect("write");
    // `file` is no folder: the temporary file beside `file/b` cannot be made, whoever asks.
    let error =
        write_in_place(root.path(), &[change("a", "new"), change("file/b", "x")], b"", Some(state.path()));
    assert!(error.is_err());
    assert_eq!(fs::read_to_string(root.path().join("a")).expect("read"), "old");
    assert_eq!(fs::read_dir(root.path()).expect("list").count(), 2);
    let reverse = fs::read_dir(state.path().join("reverse")).map_or(0, Iterator::count);
    assert_eq!(reverse, 0);
}

#[test]
fn a_read_only_file_and_a_path_out_are_refused() {
    let (root, state) = (tempfile::tempdir().expect("root"), tempfile::tempdir().expect("state"));
    let file = root.path().join("a");
    fs::write(&file, "old").expect("write");
    let mut permissions = fs::metadata(&file).expect("file").permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&file, permissions).expect("read-only");
    let write = |path| write_in_place(root.path(), &[change(path, "x")], b"", Some(state.path()));
    assert!(matches!(write("a"), Err(FolderError::Write { .. })));
    for path in ["../x", "/x", ".git/config"] {
        assert!(matches!(write(path), Err(FolderError::Path { .. })), "{path}");
    }
    let error = write_in_place(root.path(), &[change("b", "x")], b"", None).expect_err("no state");
    assert!(error.hint().expect("hint").starts_with("MAMBAPATCH_STATE="));
}

#[cfg(unix)]
#[test]
fn links_are_neither_read_nor_written() {
    let (root, other) = (tempfile::tempdir().expect("root"), tempfile::tempdir().expect("other"));
    fs::write(other.path().join("secret"), "s").expect("write");
    std::os::unix::fs::symlink(other.path(), root.path().join("out")).expect("link");
    std::os::unix::fs::symlink(other.path().join("secret"), root.path().join("file")).expect("link");
    fs::write(root.path().join("setup.py"), "").expect("write");
    assert_eq!(paths(root.path()).expect("paths"), ["setup.py"]);
    assert!(read(root.path(), &["out/secret".into()], &|_| true).is_err());
    for path in ["out/secret", "file", "out/new"] {
        let error =
            write_in_place(root.path(), &[change(path, "x")], b"", Some(other.path())).expect_err(path);
        assert!(matches!(error, FolderError::NotAFile { .. }), "{error}");
    }
    assert_eq!(fs::read_to_string(other.path().join("secret")).expect("read"), "s");
}

#[cfg(unix)]
#[test]
fn names_that_are_no_text_and_links_are_listed_apart() {
    use std::os::unix::ffi::OsStrExt;
    let root = tempfile::tempdir().expect("root");
    let name = |bytes: &[u8]| root.path().join(std::ffi::OsStr::from_bytes(bytes));
    fs::write(name(b"a.cu"), "").expect("write");
    fs::write(name(b"b\xff.cu"), "").expect("write");
    fs::create_dir(name(b"\xfe")).expect("folder");
    std::os::unix::fs::symlink("a.cu", name(b"l.cu")).expect("link");
    let listing = listed(root.path()).expect("listing");
    assert_eq!((listing.paths, listing.links), (vec!["a.cu".to_string()], vec!["l.cu".to_string()]));
    assert_eq!(listing.unnamed, [r"\xfe", r"b\xff.cu"]);
}

#[cfg(unix)]
#[test]
fn a_file_of_several_names_is_replaced_under_one_and_said_so() {
    let (root, state) = (tempfile::tempdir().expect("root"), tempfile::tempdir().expect("state"));
    for file in ["a", "b"] {
        fs::write(root.path().join(file), "old").expect("write");
    }
    fs::hard_link(root.path().join("a"), state.path().join("other")).expect("link");
    let changes = [change("a", "new"), change("b", "new")];
    let written = write_in_place(root.path(), &changes, b"", Some(state.path())).expect("written");
    assert_eq!(written.parted, ["a"]);
    assert_eq!(fs::read_to_string(state.path().join("other")).expect("read"), "old");
}

#[test]
fn the_version_stands_in_pkg_info() {
    let root = tempfile::tempdir().expect("root");
    assert_eq!(version_of(root.path()), SourceVersion::Unknown);
    fs::write(root.path().join("PKG-INFO"), "Name: a\nVersion: 2.2.3.post2\n").expect("write");
    assert_eq!(version_of(root.path()), SourceVersion::Release("2.2.3.post2".parse().expect("tag")));
}
