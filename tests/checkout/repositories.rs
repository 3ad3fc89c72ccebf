use std::fs;
use std::path::Path;

use mambapatch::checkout::git::{
    ClonePlace, CommitBranch, CommitToMake, GitError, GitRepository, RefKind, RemoteError, TRAILER,
    clone_bare, fetch,
};
use mambapatch::checkout::{Committed, Variables};
use mambapatch::engine::tag::SourceVersion;

use crate::made::{commit, git, repository};

fn one(message: &str, files: &[(&str, &str)]) -> CommitToMake {
    let files = files.iter().map(|(path, text)| (path.to_string(), text.as_bytes().to_vec())).collect();
    CommitToMake { message: message.into(), files }
}

fn branch(root: &Path, name: &str, commits: &[CommitToMake]) -> Result<Committed, GitError> {
    let repository = GitRepository::open(root, "v").expect("open");
    let base = repository.head().expect("head");
    repository.commit_branch(CommitBranch { base: &base, branch: name, commits, checkout: true, when: None })
}

fn open(root: &Path) -> GitRepository {
    repository(root);
    GitRepository::open(root, "v").expect("open")
}

fn release(text: &str) -> SourceVersion {
    SourceVersion::Release(text.parse().expect("tag"))
}

#[test]
fn tags_are_ordered_and_refs_found_in_every_spelling() {
    let root = tempfile::tempdir().expect("root");
    let repository = open(root.path());
    let names: Vec<String> = repository.tags().expect("tags").into_iter().map(|tag| tag.name).collect();
    assert_eq!(names, ["v1.0", "v1.1", "v1.1.post1", "v2.0rc1"]);
    let found = |text: &str| {
        repository.resolve(text).expect("resolve").map(|found| (found.kind, found.name, found.commit))
    };
    let first = git(root.path(), &["rev-parse", "v1.0"]);
    let at_first = |kind, name: &str| Some((kind, name.to_string(), first.clone()));
    assert_eq!(found("1.0"), at_first(RefKind::Tag, "v1.0"));
    assert_eq!(found("v1.0.0"), at_first(RefKind::Tag, "v1.0"));
    assert_eq!(found("not-a-version"), at_first(RefKind::Tag, "not-a-version"));
    assert_eq!(found(&first[..9]), at_first(RefKind::Commit, &first[..12]));
    assert_eq!(found("main").expect("main").0, RefKind::Branch);
    assert_eq!(found("v3"), None);
    assert_eq!(found("HEAD~1"), None, "no language of revisions");
}

#[test]
fn the_version_of_a_commit() {
    let root = tempfile::tempdir().expect("root");
    let repository = open(root.path());
    let of = |text: &str| {
        let found = repository.resolve(text).expect("resolve").expect("found");
        repository.version_of(&found.commit).expect("version")
    };
    assert_eq!(of("v1.0"), release("1.0"));
    assert_eq!(of("v1.1"), release("2.0rc1"), "of several tags at one commit the newest");
    assert_eq!(of("main"), SourceVersion::After("2.0rc1".parse().expect("tag")));
    git(root.path(), &["checkout", "-q", "--orphan", "other"]);
    git(root.path(), &["commit", "-q", "-m", "no release below"]);
    assert_eq!(of("other"), SourceVersion::Unknown);
}

#[test]
fn our_own_commits_leave_the_version_as_it_is() {
    let root = tempfile::tempdir().expect("root");
    open(root.path());
    git(root.path(), &["checkout", "-q", "v1.0"]);
    let message = format!("Patch\n\n{TRAILER}: 0.1.0\n");
    let commits = [one(&message, &[("setup.py", "new\n")]), one(&message, &[("csrc/a.cu", "b\n")])];
    let committed = branch(root.path(), "mambapatch/v1.0+sm120", &commits).expect("committed");
    let repository = GitRepository::open(root.path(), "v").expect("open");
    assert_eq!(repository.head().expect("head"), committed.tip);
    assert_eq!(repository.version_of(&committed.tip).expect("version"), release("1.0"));
    commit(root.path(), &[("x", "y")], "someone's own");
    let head = repository.head().expect("head");
    let after = SourceVersion::After("1.0".parse().expect("tag"));
    assert_eq!(repository.version_of(&head).expect("version"), after);
}

#[test]
fn files_are_read_without_a_checkout() {
    let root = tempfile::tempdir().expect("root");
    let repository = open(root.path());
    let at = |text: &str| repository.resolve(text).expect("resolve").expect("found").commit;
    let sources = repository.read(&at("v1.0"), &|path| path.ends_with(".py")).expect("read");
    assert_eq!(sources.paths().collect::<Vec<_>>(), ["setup.py"]);
    assert_eq!(&sources.get("setup.py").expect("setup.py")[..], b"name='mamba_ssm'\n# 1.0\n");
    let files = |text: &str| repository.files(&at(text), "").expect("files");
    assert_eq!(files("v1.0")["csrc/a.cu"], files("v1.1")["csrc/a.cu"], "equal blobs have one id");
    assert!(files("v1.1")["run.sh"].executable);
    assert_eq!(repository.files(&at("v1.0"), "csrc").expect("files").keys().collect::<Vec<_>>(), ["a.cu"]);
}

#[test]
fn a_branch_is_made_and_checked_out() {
    let root = tempfile::tempdir().expect("root");
    open(root.path());
    fs::write(root.path().join("mine.txt"), "untracked").expect("write");
    fs::write(root.path().join("new.py"), "my own change\n").expect("write");
    let commits = [
        one("first", &[("run.sh", "#!/bin/sh\r\n# more\r\n"), ("csrc/b.cu", "b")]),
        one("second", &[("setup.py", "no newline at the end")]),
    ];
    let committed = branch(root.path(), "mambapatch/x", &commits).expect("committed");
    assert!(committed.checked_out && !committed.already && committed.commits.len() == 2);
    assert_eq!(git(root.path(), &["symbolic-ref", "--short", "HEAD"]), "mambapatch/x");
    assert_eq!(
        git(root.path(), &["log", "--format=%s %an", "-3"]),
        "second Someone\nfirst Someone\nthree Test"
    );
    assert_eq!(fs::read(root.path().join("run.sh")).expect("read"), b"#!/bin/sh\r\n# more\r\n");
    assert!(git(root.path(), &["ls-tree", "HEAD", "run.sh"]).starts_with("100755 "));
    let status = git(root.path(), &["status", "--porcelain"]);
    assert_eq!(status, "M new.py\n?? mine.txt", "other people's changes stay, nothing else differs");
    assert_eq!(fs::read_to_string(root.path().join("new.py")).expect("read"), "my own change\n");
    git(root.path(), &["fsck", "--strict"]);
}

#[test]
fn the_same_again_is_nothing_and_other_content_is_refused() {
    let root = tempfile::tempdir().expect("root");
    open(root.path());
    let commits = [one("first", &[("setup.py", "new\n")])];
    let first = branch(root.path(), "b", &commits).expect("committed");
    git(root.path(), &["checkout", "-q", "main"]);
    let again = branch(root.path(), "b", &commits).expect("again");
    assert!(again.already && again.commits.is_empty() && again.tip == first.tip);
    assert_eq!(git(root.path(), &["symbolic-ref", "--short", "HEAD"]), "b");
    assert_eq!(fs::read_to_string(root.path().join("setup.py")).expect("read"), "new\n");
    git(root.path(), &["checkout", "-q", "main"]);
    let error = branch(root.path(), "b", &[one("x", &[("setup.py", "other\n")])]).expect_err("exists");
    assert!(matches!(error, GitError::BranchExists { .. }), "{error}");
    assert_eq!(error.hint().as_deref(), Some("--branch NAME"));
    assert_eq!(git(root.path(), &["status", "--porcelain"]), "");
}

#[test]
fn nobodys_work_is_overwritten() {
    let root = tempfile::tempdir().expect("root");
    open(root.path());
    fs::write(root.path().join("setup.py"), "mine\n").expect("write");
    fs::write(root.path().join("fresh.cu"), "mine\n").expect("write");
    fs::write(root.path().join(".gitignore"), "*.o\n").expect("write");
    fs::write(root.path().join("ignored.o"), "mine\n").expect("write");
    let commits = [one("x", &[("setup.py", "1"), ("fresh.cu", "2"), ("csrc/a.cu", "3"), ("ignored.o", "4")])];
    let error = branch(root.path(), "b", &commits).expect_err("dirty");
    let GitError::Dirty { files } = &error else { panic!("{error}") };
    assert_eq!(files, &["fresh.cu", "ignored.o", "setup.py"]);
    assert!(error.hint().expect("hint").contains("--allow-dirty --no-commit"));
    assert_eq!(git(root.path(), &["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(fs::read_to_string(root.path().join("setup.py")).expect("read"), "mine\n");
}

#[cfg(unix)]
#[test]
fn links_are_refused_and_a_failing_checkout_is_taken_back() {
    let root = tempfile::tempdir().expect("root");
    open(root.path());
    std::os::unix::fs::symlink("/etc", root.path().join("link")).expect("link");
    commit(root.path(), &[], "a link");
    for path in ["link", "link/x", "csrc", "../x", ".git/config", "setup.py/x"] {
        let error = branch(root.path(), "b", &[one("x", &[(path, "1")])]).expect_err(path);
        assert!(matches!(error, GitError::NotAFile { .. }), "{path}: {error}");
    }
    // A lock on HEAD makes the very last step fail.
    fs::write(root.path().join(".git/HEAD.lock"), "").expect("lock");
    let error =
        branch(root.path(), "b", &[one("x", &[("setup.py", "1"), ("n/w.cu", "2")])]).expect_err("locked");
    assert!(matches!(error, GitError::Write { .. }), "{error}");
    fs::remove_file(root.path().join(".git/HEAD.lock")).expect("unlock");
    assert_eq!(git(root.path(), &["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(git(root.path(), &["status", "--porcelain"]), "");
    assert!(!root.path().join("n/w.cu").exists());
}

#[test]
fn states_in_which_no_branch_can_be_made() {
    let root = tempfile::tempdir().expect("root");
    open(root.path());
    let commits = [one("x", &[("setup.py", "1")])];
    for name in ["a..b", "-b", "", "x.lock"] {
        assert!(matches!(branch(root.path(), name, &commits), Err(GitError::BadBranch { .. })), "{name}");
    }
    fs::write(root.path().join(".git/MERGE_HEAD"), git(root.path(), &["rev-parse", "v1.0"])).expect("write");
    assert!(matches!(branch(root.path(), "b", &commits), Err(GitError::Busy { .. })));
    fs::remove_file(root.path().join(".git/MERGE_HEAD")).expect("remove");
    let other = tempfile::tempdir().expect("other");
    branch(root.path(), "b", &commits).expect("committed");
    git(root.path(), &["checkout", "-q", "main"]);
    git(root.path(), &["worktree", "add", "-q", other.path().join("w").to_str().expect("path"), "b"]);
    let error = branch(root.path(), "b", &commits).expect_err("elsewhere");
    assert!(matches!(error, GitError::CheckedOutElsewhere { .. }), "{error}");
    let empty = tempfile::tempdir().expect("empty");
    git(empty.path(), &["init", "-q"]);
    let repository = GitRepository::open(empty.path(), "v").expect("open");
    assert!(matches!(repository.head(), Err(GitError::NoCommit { .. })));
}

#[test]
fn line_ends_that_a_checkout_changes_are_changed_back() {
    let stored = |now: &[u8]| GitRepository::stored_form("x", b"a\nb\n", b"a\r\nb\r\n", now);
    assert_eq!(stored(b"a\r\nc\r\n").expect("stored"), b"a\nc\n");
    let same = GitRepository::stored_form("x", b"a\r\n", b"a\r\n", b"b\r\n").expect("stored");
    assert_eq!(same, b"b\r\n", "CRLF that is stored stays");
    assert!(GitRepository::stored_form("x", b"pointer", b"large", b"x").is_err());
}

#[test]
fn clones_are_made_and_renewed_without_hooks() {
    let root = tempfile::tempdir().expect("root");
    let origin = root.path().join("origin");
    repository(&origin);
    let folder = root.path().join("cache/git/origin.git");
    let url = format!("file://{}", origin.display());
    let variables = Variables::default();
    let connect = std::time::Duration::from_secs(5);
    let place = ClonePlace { url: &url, folder: &folder, variables: &variables, connect };
    clone_bare(place).expect("clone");
    let clone = || GitRepository::open(&folder, "v").expect("open");
    assert!(clone().is_bare() && clone().tags().expect("tags").len() == 4);
    assert_eq!(fs::read_dir(folder.parent().expect("parent")).expect("list").count(), 1);
    git(&origin, &["tag", "v2.0"]);
    fetch(place).expect("fetch");
    assert!(clone().resolve("2.0").expect("resolve").is_some());
    let nowhere = format!("file://{}/nowhere", root.path().display());
    let error = clone_bare(ClonePlace { url: &nowhere, ..place }).expect_err("nothing there");
    assert!(error.to_string().starts_with("git ls-remote file://"), "{error}");
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let url = format!("http://{}/owner/name", silent.local_addr().expect("address"));
    let root = tempfile::tempdir().expect("root");
    let folder = root.path().join("clone.git");
    let variables = Variables::default();
    let connect = std::time::Duration::from_secs(1);
    let start = std::time::Instant::now();
    let error = clone_bare(ClonePlace { url: &url, folder: &folder, variables: &variables, connect });
    let error = error.expect_err("silent");
    assert!(matches!(error, RemoteError::TooSlow { seconds: 1, .. }), "{error}");
    assert!(start.elapsed().as_secs() < 5 && !folder.exists());
}

#[test]
fn submodules_are_named_and_not_read() {
    let root = tempfile::tempdir().expect("root");
    let repository = open(root.path());
    let commit = repository.head().expect("head");
    git(root.path(), &["update-index", "--add", "--cacheinfo", &format!("160000,{commit},csrc/cutlass")]);
    git(root.path(), &["commit", "-q", "-m", "a submodule"]);
    let head = repository.head().expect("head");
    assert_eq!(repository.submodules(&head).expect("submodules"), ["csrc/cutlass"]);
    assert!(!repository.files(&head, "").expect("files").contains_key("csrc/cutlass"));
    let error = branch(root.path(), "b", &[one("x", &[("csrc/cutlass", "1")])]).expect_err("submodule");
    assert!(error.to_string().contains("submodule"), "{error}");
}

#[test]
fn without_an_identity_the_tools_own_is_written() {
    let root = tempfile::tempdir().expect("root");
    open(root.path());
    git(root.path(), &["config", "user.name", ""]);
    let committed = branch(root.path(), "b", &[one("x", &[("setup.py", "1")])]).expect("committed");
    assert!(committed.own_identity);
    let who = git(root.path(), &["log", "-1", "--format=%an <%ae> %cn"]);
    assert_eq!(who, "mambapatch <mambapatch@localhost> mambapatch");
}

#[test]
fn a_walk_survives_absent_objects() {
    let root = tempfile::tempdir().expect("root");
    open(root.path());
    let lose = |what: &str| {
        let id = git(root.path(), &["rev-parse", what]);
        fs::remove_file(root.path().join(".git/objects").join(&id[..2]).join(&id[2..])).expect("lose");
    };
    lose("v1.0:setup.py");
    lose("v1.0^{commit}");
    let repository = GitRepository::open(root.path(), "v").expect("open");
    let names: Vec<String> = repository.tags().expect("tags").into_iter().map(|tag| tag.name).collect();
    assert_eq!(names, ["v1.1", "v1.1.post1", "v2.0rc1"]);
    let head = repository.head().expect("head");
    assert_eq!(
        repository.version_of(&head).expect("version"),
        SourceVersion::After("2.0rc1".parse().expect("tag"))
    );
}
