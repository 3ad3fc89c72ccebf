//! `vendor … --as branch`: upstream's history, one commit per patch, a record, and local work on top.

use crate::world::{Run, World};

const BRANCH: &str = "vendor/mamba-ssm";

fn added(world: &World) {
    world.checkout("work/fork", &[("README.md", b"mine\n")]);
    let add = [
        "vendor",
        "add",
        "v2.2.4",
        "--add-arch",
        "120",
        "--cuda",
        "13.0",
        "--as",
        "branch",
        "--into",
        "./fork",
    ];
    let run = world.run(&add).exits(0);
    run.says(&[
        "done: mamba-ssm v2.2.4 in branch vendor/mamba-ssm of ",
        "  git -C ./fork switch vendor/mamba-ssm\n",
    ]);
    world.run_without_trace(&add).exits(0).says(&["nothing to do: branch vendor/mamba-ssm of "]);
}

fn update(world: &World, tag: &str, code: i32) -> Run {
    world.run(&["vendor", "update", "./fork", tag]).exits(code)
}

fn tree(world: &World, commit: &str) -> String {
    let tree = world.git("work/fork", &["ls-tree", "-r", commit]);
    let own =
        |line: &&str| ["mambapatch.lock", "patches/"].iter().any(|own| line.contains(&format!("\t{own}")));
    tree.lines().filter(|line| !own(line)).collect::<Vec<_>>().join("\n")
}

/// The tree that `apply` gives for a tag.
fn applied(world: &World, tag: &str) -> String {
    let branch = format!("applied/{tag}");
    let into = format!("applied-{tag}");
    let apply =
        ["apply", tag, "--add-arch", "120", "--cuda", "13.0", "-q", "--into", &into, "--branch", &branch];
    world.run(&apply).exits(0);
    if !world.path(&format!("work/{into}")).exists() {
        return world.git("mirrors/mamba-ssm", &["ls-tree", "-r", tag]);
    }
    world.git(&format!("work/{into}"), &["ls-tree", "-r", "HEAD"])
}

#[test]
fn a_branch_has_the_history_the_patches_and_the_record() {
    let world = World::new().with_identity();
    let head = |world: &World| world.git("work/fork", &["rev-parse", "HEAD"]);
    added(&world);
    let before = head(&world);
    assert_eq!(tree(&world, BRANCH), applied(&world, "v2.2.4"));
    let log = world.git("work/fork", &["log", "-5", "--format=%s", BRANCH]);
    let wanted = "Record mamba-ssm v2.2.4\nUse no CUB names that CCCL 3 removed\nCompile for more GPU architectures\n\
                  v2.2.4\nv2.0.4";
    assert_eq!(log, wanted);
    let base = world.git("mirrors/mamba-ssm", &["rev-parse", "v2.2.4"]);
    assert_eq!(
        world.git("work/fork", &["rev-parse", &format!("{BRANCH}~3")]),
        base,
        "upstream's own commits"
    );
    assert_eq!((head(&world), world.git("work/fork", &["status", "--short"])), (before, String::new()));
    world.run(&["vendor", "check", "./fork"]).exits(0).says(&["as recorded: mamba-ssm v2.2.4, "]);
    world.git("work/fork", &["fsck", "--strict"]);
}

#[test]
fn without_local_work_the_branch_goes_forward() {
    let world = World::new().with_identity();
    added(&world);
    for tag in ["v2.2.5", "v2.2.6", "v2.3.2.post1"] {
        let old = world.git("work/fork", &["rev-parse", BRANCH]);
        update(&world, tag, 0).says(&[
            "done: ",
            &format!("is mamba-ssm {tag}, patched\n"),
            "git -C ./fork log vendor/mamba-ssm",
        ]);
        assert_eq!(tree(&world, BRANCH), applied(&world, tag), "{tag}");
        world.git("work/fork", &["merge-base", "--is-ancestor", &old, BRANCH]);
        world.run(&["vendor", "check", "./fork"]).exits(0);
        update(&world, tag, 0).says(&["nothing to do: "]);
    }
    update(&world, "v2.3.2.post1", 0).says(&["nothing to do: "]);
}

/// A commit of a person on the branch.
fn committed(world: &World, path: &str, (from, to): (&str, &str)) {
    world.git("work/fork", &["switch", "-q", BRANCH]);
    let file = format!("work/fork/{path}");
    let text = if from.is_empty() { String::new() } else { world.text(&file) };
    assert!(text.contains(from), "`{from}` is not in {path}");
    world.write(&file, if from.is_empty() { to.to_string() } else { text.replacen(from, to, 1) });
    world.git("work/fork", &["add", "-A"]);
    world.git("work/fork", &["commit", "-q", "-m", "my own"]);
    world.git("work/fork", &["switch", "-q", "main"]);
}

#[test]
fn local_commits_come_along() {
    let world = World::new().with_identity();
    added(&world);
    committed(&world, "setup.py", ("import os\n", "import os\nimport mine\n"));
    committed(&world, "mine.py", ("", "mine\n"));
    let check = world.run(&["vendor", "check", "./fork"]).exits(1);
    assert_eq!(check.out, "setup.py  changed\nmine.py   not recorded\n");
    let diff = world.run(&["vendor", "diff", "./fork", "-q"]).exits(0).out;
    assert!(diff.contains("+import mine\n") && diff.contains("new file mode 100644"), "{diff}");
    let old = world.git("work/fork", &["rev-parse", BRANCH]);
    let run = update(&world, "v2.2.6", 0);
    run.shows(&["yours  mine.py   new\n", "yours  setup.py  changed\n"]);
    let show = |path: &str| world.git("work/fork", &["show", &format!("{BRANCH}:{path}")]);
    assert!(
        show("setup.py").contains("import os\nimport mine\n") && show("setup.py").contains("compute_103")
    );
    assert_eq!(show("mine.py"), "mine");
    assert_eq!(
        world.git("work/fork", &["rev-parse", &format!("{BRANCH}^1")]),
        old,
        "nobody's commits are rewritten"
    );
    assert_eq!(
        world.git("work/fork", &["log", "-1", "--format=%s", BRANCH]),
        "Merge the new record into vendor/mamba-ssm"
    );
    update(&world, "v2.3.2.post1", 0).shows(&["yours  mine.py"]);
    assert_eq!(show("mine.py"), "mine");
}

#[test]
fn a_conflict_leaves_the_branch_and_lies_beside_it() {
    let world = World::new().with_identity();
    added(&world);
    committed(&world, "setup.py", ("arch=compute_120,code=sm_120", "arch=compute_120a,code=sm_120a"));
    let old = world.git("work/fork", &["rev-parse", BRANCH]);
    let run = update(&world, "v2.2.6", 1);
    run.shows(&["conflict  setup.py"]).says(&[
        "conflict: 1 file waits for your decision",
        "git -C ./fork switch vendor/mamba-ssm && git -C ./fork merge vendor/mamba-ssm-v2.2.6",
    ]);
    assert_eq!(world.git("work/fork", &["rev-parse", BRANCH]), old);
    let beside = "vendor/mamba-ssm-v2.2.6";
    assert_eq!(tree(&world, beside), applied(&world, "v2.2.6"));
    // The person merges as it was said: git sees the same conflict, and no other.
    world.git("work/fork", &["switch", "-q", BRANCH]);
    let status = {
        let mut merge = std::process::Command::new("git");
        merge.args(["-c", "user.name=A", "-c", "user.email=a@host.test", "merge", "-q", beside]);
        merge.current_dir(world.path("work/fork")).env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(!merge.output().expect("git").status.success());
        world.git("work/fork", &["status", "--short", "--untracked-files=no"])
    };
    assert!(status.contains("UU setup.py") && status.matches("UU").count() == 1, "{status}");
    let text = world.git("work/fork", &["show", &format!("{beside}:setup.py")]);
    world.write("work/fork/setup.py", text + "\n# mine\n");
    world.git("work/fork", &["commit", "-q", "-a", "-m", "merged"]);
    world.git("work/fork", &["branch", "-q", "-D", beside]);
    let checked_out = world.run(&["vendor", "update", "./fork", "v2.3.2.post1"]).exits(2);
    checked_out
        .says(&["error: the branch `vendor/mamba-ssm` is checked out", "hint: go to another branch first"]);
    world.git("work/fork", &["switch", "-q", "main"]);
    update(&world, "v2.3.2.post1", 0).shows(&["yours  setup.py  changed\n"]);
}

#[test]
fn branches_are_told_apart() {
    let world = World::new().with_identity();
    added(&world);
    let add =
        ["vendor", "add", "causal-conv1d@v1.4.0", "--add-arch", "120", "--as", "branch", "--into", "./fork"];
    world.run(&add).exits(0);
    let several = world.run(&["vendor", "check", "./fork"]).exits(2);
    several.says(&[
        "has several vendored branches: vendor/causal-conv1d, vendor/mamba-ssm",
        "--branch vendor/causal-conv1d",
    ]);
    world
        .run(&["vendor", "check", "./fork", "--branch", BRANCH])
        .exits(0)
        .says(&["as recorded: mamba-ssm v2.2.4"]);
    let none = world.run(&["vendor", "check", "./fork", "--branch", "main"]).exits(2);
    none.says(&["has no branch `main` with a mambapatch.lock"]);
    let other = ["vendor", "add", "v2.2.5", "--add-arch", "120", "--as", "branch", "--into", "./fork"];
    world.run(&other).exits(2).says(&["the branch `vendor/mamba-ssm` exists and holds something else"]);
}

#[test]
fn a_branch_needs_history() {
    let world = World::without_git();
    world.checkout("work/fork", &[("README.md", b"mine\n")]);
    let add = ["vendor", "add", "v2.2.4", "--add-arch", "120", "--as", "branch", "--into", "./fork"];
    world.run(&add).exits(2).says(&["mamba-ssm v2.2.4 has no history", "hint: --source git"]);
}
