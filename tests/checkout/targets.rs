use std::fs;
use std::path::Path;

use mambapatch::checkout::{
    CheckoutError, CheckoutOptions, CheckoutState, CommitToMake, InPlace, Origin, Releases, SourceChoice,
    Target, TargetSpec, open_release, releases_on_index, resolve,
};
use mambapatch::engine::tag::SourceVersion;

use crate::made::{commit, git, notes, options, repository, sdist, tar_gz, upstreams};

/// A user's home with mirrors, clones' origins and an index of their own.
struct Home {
    folder: tempfile::TempDir,
    options: CheckoutOptions,
    told: Vec<String>,
}

impl Home {
    fn new(more: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("home");
        let mirrors = folder.path().join("mirrors");
        let mut variables = vec![("MAMBAPATCH_MIRRORS", mirrors.to_str().expect("path"))];
        variables.extend(more);
        let options = options(folder.path(), &variables);
        Self { options, folder, told: Vec::new() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn index(&mut self, versions: &[&str]) {
        let folder = self.path("index/mamba-ssm");
        fs::create_dir_all(&folder).expect("folder");
        for version in versions {
            fs::write(folder.join(format!("mamba_ssm-{version}.tar.gz")), sdist(version)).expect("write");
        }
        self.options.index = Some(self.path("index").display().to_string());
    }

    fn resolve(&mut self, text: &str) -> Result<Target, CheckoutError> {
        let upstreams = upstreams(Some(&self.folder.path().join("hosts")));
        let spec = TargetSpec::parse(text, &upstreams, "mamba-ssm")?;
        self.told.clear();
        resolve(&spec, &upstreams, &self.options, &mut notes(&mut self.told))
    }

    fn told(&self, part: &str) -> bool {
        self.told.iter().any(|note| note.contains(part))
    }
}

fn patched(target: &Target, path: &str) -> Vec<CommitToMake> {
    let mut bytes = target.file(path).expect("read").expect("file");
    bytes.extend_from_slice(b"# patched\n");
    vec![CommitToMake {
        message: "Patch\n\nMambapatch-Version: 0\n".into(),
        files: vec![(path.into(), bytes)],
    }]
}

#[test]
fn the_mirror_comes_first() {
    let mut home = Home::new(&[]);
    repository(&home.path("mirrors/owner+mamba-ssm/repo"));
    let target = home.resolve("v1.0").expect("target");
    assert_eq!(target.label, "mamba-ssm v1.0");
    assert!(target.carries_kernels() && home.told("mamba-ssm v1.0 from the local mirror"), "{:?}", home.told);
    assert_eq!(target.default_folder_name(), "mamba-ssm-1.0");
    assert_eq!(home.resolve("mamba-ssm").expect("newest").label, "mamba-ssm v1.1.post1");
    assert_eq!(home.resolve("v1.1").expect("target").version.clone(), {
        SourceVersion::Release("1.1".parse().expect("tag"))
    });
    assert_eq!(home.resolve("main").expect("main").label, "mamba-ssm main (after v2.0rc1)");
}

#[test]
fn then_the_clone_which_is_fetched_when_it_lacks_the_ref() {
    let mut home = Home::new(&[]);
    let origin = home.path("hosts/owner/mamba-ssm");
    repository(&origin);
    home.resolve("v1.0").expect("target");
    assert!(home.told("from a new clone of file://"), "{:?}", home.told);
    home.resolve("v1.0").expect("target");
    assert!(home.told("from the cached clone") && !home.told("fetching"), "{:?}", home.told);
    git(&origin, &["tag", "v3.0"]);
    home.resolve("v3.0").expect("target");
    assert!(home.told("fetching"), "{:?}", home.told);
    fs::remove_dir_all(&origin).expect("gone");
    home.resolve("mamba-ssm").expect("newest of what is there");
    assert!(home.told("the cached clone may be old"), "{:?}", home.told);
    home.options.offline = true;
    assert_eq!(home.resolve("mamba-ssm").expect("newest").label, "mamba-ssm v3.0");
}

#[test]
fn then_the_index() {
    let mut home = Home::new(&[]);
    home.index(&["2.2.4", "2.2.3.post2"]);
    let target = home.resolve("v2.2.4").expect("target");
    assert_eq!(target.origin, Origin::Sdist { file_name: "mamba_ssm-2.2.4.tar.gz".into() });
    assert!(home.told("no git repository could be reached") && !target.carries_kernels(), "{:?}", home.told);
    assert_eq!(target.tags.len(), 2);
    assert_eq!(
        &target.read(&|_| true).expect("read").get("setup.py").expect("setup")[..],
        b"PACKAGE_NAME = 'mamba_ssm'\r\n"
    );
    let error = home.resolve("v2.2.3").expect_err("unknown");
    assert!(error.hint().expect("hint").starts_with("there are v2.2.3.post2"), "{:?}", error.hint());
    home.options.source = SourceChoice::Git;
    assert!(matches!(home.resolve("v2.2.4"), Err(CheckoutError::Remote(_))));
    home.options.source = SourceChoice::Sdist;
    assert_eq!(home.resolve("mamba-ssm").expect("newest").label, "mamba-ssm v2.2.4");
}

#[test]
fn unknown_refs_hint_at_what_was_meant() {
    let mut home = Home::new(&[]);
    repository(&home.path("mirrors/owner+mamba-ssm/repo"));
    let conv = home.path("mirrors/causal-conv1d");
    repository(&conv);
    git(&conv, &["tag", "v9.0"]);
    home.options.offline = true;
    let mut hint = |text: &str| home.resolve(text).expect_err(text).hint().expect("hint");
    assert_eq!(hint("v9.0"), "causal-conv1d@v9.0");
    assert_eq!(hint("causal-conv1"), "did you mean the upstream causal-conv1d?");
    assert!(hint("v1.2").contains("v1.1"));
    fs::create_dir(home.path("build")).expect("folder");
    let error = home.resolve("build").expect_err("a folder");
    assert_eq!(error.hint().as_deref(), Some("for the folder of that name type ./build"));
    home.resolve("v1.0").expect("target");
    assert!(home.told("causal-conv1d has that release too: causal-conv1d@v1.0"), "{:?}", home.told);
}

#[test]
fn a_release_from_git_gets_a_clone_of_its_own() {
    let mut home = Home::new(&[]);
    repository(&home.path("mirrors/owner+mamba-ssm/repo"));
    let target = home.resolve("v1.0").expect("target");
    let checkout = target.prepare_checkout(None).expect("checkout");
    assert_eq!(checkout.folder(), home.path("mamba-ssm-1.0"));
    assert_eq!(git(checkout.folder(), &["describe", "--tags", "--match", "v*"]), "v1.0");
    assert!(git(checkout.folder(), &["remote", "get-url", "origin"]).ends_with("hosts/owner/mamba-ssm"));
    let done = checkout.commit("mambapatch/v1.0", &patched(&target, "setup.py")).expect("commit");
    assert!(done.checked_out && !done.already);
    assert_eq!(git(checkout.folder(), &["status", "--porcelain"]), "");

    let again = target.prepare_checkout(None).expect("the same again");
    assert_eq!(again.state(), CheckoutState::Again);
    assert!(again.commit("mambapatch/v1.0", &patched(&target, "setup.py")).expect("again").already);
    let other = again.commit("mambapatch/other", &patched(&target, "csrc/a.cu")).expect("another branch");
    assert_eq!(git(checkout.folder(), &["diff", "--name-only", "v1.0"]), "csrc/a.cu");
    assert!(!other.already);
    let local = home.resolve("./mamba-ssm-1.0").expect("local");
    assert_eq!((local.label.as_str(), local.is_local()), ("mamba-ssm v1.0", true));
    git(home.folder.path(), &["clone", "-q", "mirrors/owner+mamba-ssm/repo", "own"]);
    let error = target.prepare_checkout(Some(Path::new("own"))).expect_err("someone's own clone");
    assert!(matches!(error, CheckoutError::IntoNotEmpty { .. }), "{error}");
    fs::create_dir(home.path("full")).expect("folder");
    fs::write(home.path("full/x"), "").expect("write");
    let error = target.prepare_checkout(Some(Path::new("full"))).expect_err("in use");
    assert!(error.hint().expect("hint").contains("--into"), "{error}");
}

#[test]
fn an_sdist_becomes_a_repository() {
    let mut home = Home::new(&[]);
    home.index(&["2.2.4"]);
    home.options.source = SourceChoice::Sdist;
    let target = home.resolve("v2.2.4").expect("target");
    let checkout = target.prepare_checkout(Some(Path::new("deep/new"))).expect("checkout");
    let log = git(checkout.folder(), &["log", "--format=%s|%D"]);
    assert_eq!(log, "Import mamba_ssm-2.2.4.tar.gz|HEAD -> main, tag: v2.2.4");
    assert_eq!(
        fs::read(checkout.folder().join("setup.py")).expect("read"),
        b"PACKAGE_NAME = 'mamba_ssm'\r\n"
    );
    checkout.commit("b", &patched(&target, "setup.py")).expect("commit");
    assert_eq!(git(checkout.folder(), &["status", "--porcelain"]), "");
    let again = target.prepare_checkout(Some(Path::new("deep/new"))).expect("again");
    assert!(again.commit("b", &patched(&target, "setup.py")).expect("again").already);
    assert_eq!(fs::read_dir(home.path("deep")).expect("list").count(), 1, "no temporary folder stays");
    assert_eq!(home.resolve("./deep/new").expect("local").label, "mamba-ssm v2.2.4");
}

#[test]
fn a_plain_folder_is_written_in_place() {
    let mut home = Home::new(&[]);
    fs::create_dir_all(home.path("x/build")).expect("folder");
    fs::write(home.path("x/setup.py"), "mamba_ssm\n").expect("write");
    fs::write(home.path("x/PKG-INFO"), "Version: 2.2.2\n").expect("write");
    let target = home.resolve("./x").expect("target");
    assert_eq!(target.label, "mamba-ssm v2.2.2");
    assert!(matches!(target.prepare_checkout(Some(Path::new("y"))), Err(CheckoutError::IntoOfLocal { .. })));
    let checkout = target.prepare_checkout(None).expect("in place");
    assert!(matches!(checkout.commit("b", &[]), Err(CheckoutError::NotGit { .. })));
    let how = InPlace { reverse_patch: b"reverse", allow_dirty: false };
    let written = checkout.write_in_place(&patched(&target, "setup.py")[0].files, how).expect("written");
    assert!(written.reverse_patch.expect("kept").starts_with(home.path(".local/state/mambapatch/reverse")));
    assert_eq!(fs::read_to_string(home.path("x/setup.py")).expect("read"), "mamba_ssm\n# patched\n");
}

#[test]
fn an_unpacked_folder_in_someones_repository_is_plain() {
    let mut home = Home::new(&[]);
    repository(&home.path("outer"));
    fs::create_dir(home.path("outer/unpacked")).expect("folder");
    fs::write(home.path("outer/unpacked/setup.py"), "mamba_ssm").expect("write");
    let target = home.resolve("./outer/unpacked").expect("target");
    assert!(matches!(target.origin, Origin::Folder { .. }) && target.tags.is_empty());
    // Once its files are tracked it is a checkout; the outer tags are still not its own.
    commit(&home.path("outer"), &[("unpacked/PKG-INFO", "Version: 0.5\n")], "vendored");
    let target = home.resolve("./outer/unpacked").expect("target");
    assert!(matches!(target.origin, Origin::WorkTree { .. }));
    assert_eq!(target.version, SourceVersion::Release("0.5".parse().expect("tag")));
    assert_eq!(target.paths(), ["PKG-INFO", "setup.py"]);
    let checkout = target.prepare_checkout(None).expect("in place");
    checkout.commit("b", &patched(&target, "setup.py")).expect("commit");
    assert_eq!(git(&home.path("outer"), &["diff", "--name-only", "main"]), "unpacked/setup.py");
}

#[test]
fn a_dirty_checkout_is_read_as_it_lies_and_only_written_when_allowed() {
    let mut home = Home::new(&[]);
    repository(&home.path("x"));
    fs::write(home.path("x/setup.py"), "mamba_ssm, my own\n").expect("write");
    fs::write(home.path("x/untracked.cu"), "").expect("write");
    let target = home.resolve("./x").expect("target");
    assert_eq!(target.file("setup.py").expect("read").expect("file"), b"mamba_ssm, my own\n");
    assert!(!target.paths().contains(&"untracked.cu"));
    let checkout = target.prepare_checkout(None).expect("in place");
    let changes = patched(&target, "setup.py");
    assert_eq!(checkout.dirty(&["setup.py".into(), "csrc/a.cu".into()]), ["setup.py"]);
    let error = checkout.commit("b", &changes).expect_err("dirty");
    assert!(error.to_string().contains("setup.py"), "{error}");
    let write = |allow_dirty| {
        checkout.write_in_place(&changes[0].files, InPlace { reverse_patch: b"r", allow_dirty })
    };
    assert!(write(false).is_err());
    assert_eq!(write(true).expect("written").files, ["setup.py"]);
}

#[test]
fn line_ends_of_the_work_tree_do_not_get_into_the_commit() {
    let mut home = Home::new(&[]);
    repository(&home.path("x"));
    git(&home.path("x"), &["config", "core.autocrlf", "true"]);
    fs::remove_file(home.path("x/setup.py")).expect("remove");
    git(&home.path("x"), &["checkout", "-q", "--", "setup.py"]);
    let target = home.resolve("./x").expect("target");
    let mut bytes = target.file("setup.py").expect("read").expect("file");
    assert!(bytes.ends_with(b"# 1.1\r\n"));
    bytes.extend_from_slice(b"# more\r\n");
    let commits = [CommitToMake { message: "m".into(), files: vec![("setup.py".into(), bytes.clone())] }];
    target.prepare_checkout(None).expect("in place").commit("b", &commits).expect("commit");
    assert_eq!(git(&home.path("x"), &["diff", "--numstat", "main"]), "1\t0\tsetup.py");
    assert_eq!(fs::read(home.path("x/setup.py")).expect("read"), bytes);
}

#[test]
fn a_source_can_be_named() {
    let mut home = Home::new(&[]);
    repository(&home.path("fork"));
    fs::write(home.path("a-1.tar.gz"), tar_gz(&[("a-1/setup.py", b"mamba_ssm"), ("a-1/x.cu", b"")]))
        .expect("write");
    home.options.source = SourceChoice::Path("./fork".into());
    assert_eq!(home.resolve("v1.0").expect("target").label, "mamba-ssm v1.0");
    assert!(matches!(home.resolve("v7"), Err(CheckoutError::UnknownRef(_))));
    home.options.source = SourceChoice::Url(format!("file://{}", home.path("fork").display()));
    assert_eq!(home.resolve("v1.0").expect("target").label, "mamba-ssm v1.0");
    home.options.source = SourceChoice::Auto;
    let archive = home.resolve("./a-1.tar.gz").expect("archive");
    assert_eq!((archive.upstream.as_deref(), &archive.version), (Some("mamba-ssm"), &SourceVersion::Unknown));
    assert!(archive.carries_kernels() && !archive.is_local());
    assert!(matches!(home.resolve("./nothing"), Err(CheckoutError::NoSuchPath { .. })));
}

#[test]
fn all_releases_of_an_upstream() {
    let mut home = Home::new(&[]);
    home.index(&["2.2.4", "2.2.5"]);
    let upstream = &upstreams(Some(&home.path("hosts")))[0];
    let mut progress = |_| {};
    assert_eq!(releases_on_index(upstream, &home.options, &mut progress).expect("releases").len(), 2);
    let releases = Releases::open(upstream, &home.options, &mut progress).expect("index");
    let ids = |releases: &Releases| -> Vec<Option<String>> {
        let open = |tag| releases.release(tag, &mut |_| {}).expect("release");
        releases.tags().iter().map(|tag| open(tag).blob_id("setup.py").expect("id")).collect()
    };
    let from_index = ids(&releases);
    assert!(from_index[0].is_some() && from_index[0] == from_index[1] && releases.repository().is_none());
    repository(&home.path("mirrors/mamba-ssm.git"));
    let releases = Releases::open(upstream, &home.options, &mut progress).expect("git");
    assert_eq!(ids(&releases).len(), 4);
    assert!(releases.repository().is_some());
    let tag = "1.1".parse().expect("tag");
    let release = open_release(upstream, &tag, &home.options, &mut progress).expect("release");
    assert_eq!(release.reference, "v1.1");
}
