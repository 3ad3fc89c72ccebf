//! A series of every shape of every release at hand, in the hands of `git am`, `git apply` and GNU `patch`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use mambapatch::checkout::git::{CommitBranch, CommitToMake, GitRepository};
use mambapatch::deliver::pull_request::{JOINED, Offer, Order};
use mambapatch::engine::plan::Plan;
use mambapatch::engine::source::Sources;

use crate::harness::{self, wish::Wish};

#[path = "../releases/shapes.rs"]
#[allow(dead_code, reason = "nothing is run here")]
mod of_releases;

use of_releases::SHAPES;

/// What was asked of every shape; the patches are chosen for their number, not for their sense together.
static WISH: LazyLock<Wish> =
    LazyLock::new(|| "--cuda 13.0 --add-arch 120 --torch 2.14".parse().expect("flags"));

fn git(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    run("git", folder, arguments)
}

fn run(program: &str, folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Test").env(format!("GIT_{who}_EMAIL"), "test@host.test");
    }
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{program} {}: {said}", arguments.join(" ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

fn fill(folder: &Path, sources: &Sources) {
    for (path, bytes) in sources.iter() {
        let full = folder.join(path);
        fs::create_dir_all(full.parent().expect("parent")).expect("folder");
        fs::write(full, bytes).expect("write");
    }
}

/// A repository with these files in one commit.
fn repository(folder: &Path, sources: &Sources) -> Result<GitRepository, String> {
    fs::create_dir(folder).expect("folder");
    git(folder, &["init", "-q"])?;
    git(folder, &["config", "user.name", "Test"])?;
    git(folder, &["config", "user.email", "test@host.test"])?;
    fill(folder, sources);
    git(folder, &["add", "-A"])?;
    git(folder, &["commit", "-q", "-m", "start"])?;
    GitRepository::open(folder, "v").map_err(|error| error.to_string())
}

fn offers(plan: &Plan) -> Vec<Offer> {
    let changing = plan.patches.iter().filter(|patch| !patch.changes.is_empty());
    let offer = |patch: &mambapatch::engine::plan::PatchPlan| Offer {
        title: patch.title.clone(),
        why: patch.why.clone(),
        references: patch.references.clone(),
        files: patch.changes.iter().map(|(path, change)| (path.clone(), change.after.to_vec())).collect(),
        ..Offer::default()
    };
    changing.map(offer).collect()
}

/// The tree that `apply` commits.
fn applied(repository: &GitRepository, offers: &[Offer]) -> Result<String, String> {
    let commit = |offer: &Offer| CommitToMake { message: offer.title.clone(), files: offer.files.clone() };
    let commits: Vec<CommitToMake> = offers.iter().map(commit).collect();
    let base = repository.head().map_err(|error| error.to_string())?;
    let order =
        CommitBranch { base: &base, branch: "applied", commits: &commits, checkout: false, when: None };
    let made = repository.commit_branch(order).map_err(|error| error.to_string())?;
    git(&repository.path(), &["rev-parse", &format!("{}^{{tree}}", made.tip)])
}

/// Everything that must hold of one shape; nothing where it needs no patch.
fn check(plan: &Plan, root: &Path) -> Result<(), String> {
    let repository = repository(&root.join("up"), &plan.before)?;
    let (base, offers) = (repository.head().map_err(|error| error.to_string())?, offers(plan));
    let wanted = applied(&repository, &offers)?;
    let order = Order {
        source: &repository,
        base: &base,
        base_name: "main",
        label: "a shape",
        branch: "series",
        parameters: "",
        offers: &offers,
        effect: "",
        built: &|_| None,
        signoff: true,
    };
    let series = order.make(Path::new("none")).map_err(|error| error.to_string())?;
    let out = series.write(&root.join("out")).map_err(|error| error.to_string())?.path;
    let mails: Vec<String> = series.mails().iter().map(|name| out.join(name).display().to_string()).collect();
    let joined = out.join(JOINED).display().to_string();
    let am: Vec<&str> = ["am", "-q"].into_iter().chain(mails.iter().map(String::as_str)).collect();
    let ways: [(&str, &str, Vec<&str>); 3] = [
        ("am", "git", am),
        ("apply", "git", vec!["apply", &joined]),
        ("patch", "patch", vec!["-s", "-p1", "-i", &joined]),
    ];
    for (name, program, arguments) in ways {
        let folder = root.join(name);
        git(root, &["clone", "-q", "up", name])?;
        run(program, &folder, &arguments)?;
        git(&folder, &["add", "-A"])?;
        let tree = git(&folder, &["write-tree"])?;
        if tree != wanted {
            return Err(format!("{name} gives the tree {tree}, apply gives {wanted}"));
        }
    }
    Ok(())
}

#[test]
fn git_am_gives_the_tree_that_apply_gives_for_every_shape() {
    let mut patched = 0;
    let cases: Vec<_> = SHAPES
        .iter()
        .map(|shape| {
            let root = tempfile::tempdir().expect("folder");
            let fault = match shape.plan(&WISH.request) {
                Err(error) => Some(error),
                Ok(proved) if proved.plan().is_empty() => None,
                Ok(proved) => {
                    patched += 1;
                    check(proved.plan(), root.path()).err()
                }
            };
            let name = shape.name();
            (name.clone(), fault.into_iter().map(|fault| format!("{name}: {fault}")).collect::<Vec<_>>())
        })
        .collect();
    harness::say(&format!("{patched} of {} shapes need a patch", cases.len()));
    assert!(patched > 0 || harness::releases::offline_is_wanted(), "no shape was patched");
    harness::tally("shapes whose series gives the tree of apply", cases);
}
