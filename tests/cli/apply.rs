//! `apply` on releases and checkouts.

use crate::world::World;

const RELEASE: [&str; 4] = ["apply", "v2.2.4", "--add-arch", "120"];

/// `apply v2.2.4 --add-arch 120` and more.
fn release(more: &[&'static str]) -> Vec<&'static str> {
    RELEASE.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn a_new_checkout_with_a_branch_and_a_commit_per_patch() {
    let world = World::new().with_identity();
    let run = world.run(&release(&["--cuda", "13.0"])).exits(0);
    run.shows(&["+++ b/setup.py", "+++ b/csrc/selective_scan/reverse_scan.cuh"])
        .says(&["changed", "effect", "done: branch mambapatch/v2.2.4+sm120+cuda13.0 in ", ", 2 commits\n"])
        .says(&[
            "\nnext\n  mambapatch apply causal-conv1d@v1.5.0.post8 --add-arch 120 --cuda 13.0\n",
            "  cd ",
            "causal-conv1d>=1.2.0",
            "MAMBA_FORCE_BUILD=TRUE pip install --no-build-isolation",
        ])
        .omits(&["git knows no name of yours", "error"]);
    let folder = "work/mamba-ssm-2.2.4";
    assert_eq!(world.git(folder, &["branch", "--show-current"]), "mambapatch/v2.2.4+sm120+cuda13.0");
    assert_eq!(world.git(folder, &["status", "--short"]), "");
    assert_eq!(
        world.git(folder, &["log", "--format=%an <%ae>", "v2.2.4.."]),
        "Some One <someone@host.test>\n".repeat(2).trim()
    );
    let titles = world.git(folder, &["log", "--reverse", "--format=%s", "v2.2.4.."]);
    assert_eq!(titles, "Compile for more GPU architectures\nUse no CUB names that CCCL 3 removed");
    let files = world.git(folder, &["log", "--reverse", "--format=", "--name-only", "v2.2.4.."]);
    assert_eq!(files, "setup.py\ncsrc/selective_scan/reverse_scan.cuh");
    let trailers = world.git(folder, &["log", "-1", "--format=%(trailers:only,unfold)"]);
    assert_eq!(
        trailers,
        format!(
            "Patch-Set: mamba-ssm/cuda-13\nPatch-Parameters: --add-arch 120 --cuda 13.0\nMambapatch-Version: {}",
            env!("CARGO_PKG_VERSION")
        )
    );
}

#[test]
fn the_same_again_is_nothing_to_do() {
    let world = World::new();
    world.run(&RELEASE).exits(0).says(&["git knows no name of yours"]);
    let again = world.run_without_trace(&RELEASE).exits(0);
    again
        .says(&["nothing to do: branch mambapatch/v2.2.4+sm120", "holds it already"])
        .omits(&["no name of yours"]);
    let in_place = world.run_without_trace(&["apply", "./mamba-ssm-2.2.4", "--add-arch", "120"]).exits(0);
    assert_eq!(in_place.out, "");
    in_place.says(&["nothing to do: ", "already-satisfied  120 compiled already"]);
}

#[test]
fn a_release_that_needs_nothing_gets_no_checkout() {
    let world = World::new();
    let run = world.run_without_trace(&["apply", "v2.2.6", "--add-arch", "120"]).exits(0);
    assert_eq!(run.out, "");
    run.says(&["nothing to do: mamba-ssm v2.2.6 is as it should be\n"]);
}

#[test]
fn a_dry_run_writes_nothing() {
    let world = World::new();
    let run = world.run_without_trace(&release(&["--dry-run"])).exits(0);
    run.shows(&["+++ b/setup.py"]).says(&["note: nothing was written (--dry-run)"]);
}

#[test]
fn files_in_place_and_the_reverse_patch_restores_them() {
    for (program, arguments) in [("patch", ["-s", "-p1", "-i"]), ("git", ["apply", "-p1", "--verbose"])] {
        let world = World::new();
        world.clone_of_mamba("work/a b", "v2.2.4");
        let before = world.read("work/a b/setup.py");
        let run =
            world.run(&["apply", "./a b", "--add-arch", "120", "--cuda", "13.0", "--no-commit"]).exits(0);
        let head = world.git("work/a b", &["log", "-1", "--format=%s"]);
        assert_eq!(
            (head.as_str(), world.git("work/a b", &["branch", "--show-current"])),
            ("v2.2.4", String::new())
        );
        let run = run.says(&["done: files in ", ": csrc/selective_scan/reverse_scan.cuh, setup.py\n"]);
        let undo =
            run.err.lines().find_map(|line| line.strip_prefix("note: to take it back: ")).expect("undo");
        assert!(undo.contains("/a b' < "), "{undo}");
        let reverse = undo.split(" < ").nth(1).expect("file").trim_matches('\'');
        assert!(reverse.contains("/state/reverse/"), "{reverse}");
        assert_ne!(world.read("work/a b/setup.py"), before);
        let mut command = std::process::Command::new(program);
        let status =
            command.args(arguments).arg(reverse).current_dir(world.path("work/a b")).output().expect(program);
        assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
        assert_eq!(world.read("work/a b/setup.py"), before, "{program}");
        assert_eq!(world.git("work/a b", &["status", "--short"]), "");
    }
}

#[test]
fn the_undo_line_works_as_it_is_printed() {
    let world = World::new();
    world.clone_of_mamba("work/a b", "v2.2.4");
    let run = world.run(&["apply", "./a b", "--add-arch", "120", "--no-commit"]).exits(0);
    let undo = run.err.lines().find_map(|line| line.strip_prefix("note: to take it back: ")).expect("undo");
    let done = std::process::Command::new("sh").args(["-c", undo]).output().expect("sh");
    assert!(done.status.success(), "{undo}");
    assert_eq!(world.git("work/a b", &["status", "--short"]), "");
}

#[test]
fn a_new_checkout_without_a_commit() {
    let world = World::new();
    world.run(&release(&["--no-commit"])).exits(0).says(&["done: files in "]);
    assert_eq!(world.git("work/mamba-ssm-2.2.4", &["status", "--short"]), " M setup.py");
}

#[test]
fn a_branch_of_a_name() {
    let world = World::new();
    world.run(&release(&["--into", "deep/er", "--branch", "mine"])).exits(0).says(&["done: branch mine in "]);
    assert_eq!(world.git("work/deep/er", &["branch", "--show-current"]), "mine");
    let other = ["apply", "v2.2.4", "--add-arch", "121", "--into", "deep/er", "--branch", "mine"];
    world
        .run_without_trace(&other)
        .exits(2)
        .says(&["error: the branch `mine` exists and holds something else", "hint: --branch NAME"]);
    for bad in ["bad..name", "", "a b", "-x", "@{x}"] {
        let branch = format!("--branch={bad}");
        for into in ["deep/er", "new/er"] {
            let run =
                world.run_without_trace(&["apply", "v2.2.4", "--add-arch", "121", "--into", into, &branch]);
            run.fails(&[&format!("`{bad}` is no valid name for a branch")]);
        }
    }
}

#[test]
fn what_cannot_be_committed_leaves_no_checkout() {
    let world = World::without_git();
    std::fs::create_dir(world.path("work/empty")).expect("folder");
    for into in ["new", "far/below/new", "empty"] {
        // The branch of the import itself.
        let run = world.run_without_trace(&release(&["--into", into, "--branch", "main"])).exits(2);
        run.says(&["error: the branch `main` exists and holds something else"]);
    }
}

#[test]
fn a_branch_is_named_after_the_tag_or_the_commit() {
    let world = World::new();
    world.clone_of_mamba("work/mamba", "v2.2.4");
    world
        .run(&["apply", "./mamba", "--add-arch", "120"])
        .exits(0)
        .says(&["branch mambapatch/v2.2.4+sm120 in "]);
    world.clone_of_mamba("work/newest", "main");
    let commit = world.git("work/newest", &["rev-parse", "--short=12", "HEAD"]);
    let run = world.run(&["apply", "./newest", "--drop-arch", "87"]).exits(0);
    run.says(&[&format!("branch mambapatch/{commit}+drop-sm87 in ")]);
}

#[test]
fn two_wishes_are_two_branches_of_one_checkout() {
    let world = World::new();
    world.run(&RELEASE).exits(0);
    world
        .run(&["apply", "v2.2.4", "--drop-arch", "53"])
        .exits(0)
        .says(&["branch mambapatch/v2.2.4+drop-sm53 in "]);
    let branches = world.git("work/mamba-ssm-2.2.4", &["branch", "--format=%(refname:short)"]);
    assert_eq!(branches, "mambapatch/v2.2.4+drop-sm53\nmambapatch/v2.2.4+sm120");
}

#[test]
fn work_of_the_user_is_not_touched() {
    let world = World::new();
    world.clone_of_mamba("work/mamba", "v2.2.4");
    let dirty = format!("{}# mine\n", world.text("work/mamba/setup.py"));
    world.write("work/mamba/setup.py", &dirty);
    let here = ["apply", "./mamba", "--add-arch", "120"];
    for more in [&[][..], &["--no-commit"]] {
        let arguments: Vec<&str> = here.iter().chain(more).copied().collect();
        world.run_without_trace(&arguments).exits(2).says(&[
            "error: these files have changes that are not committed: setup.py",
            "hint: commit them, or write into the files: --allow-dirty --no-commit",
        ]);
    }
    let alone: Vec<&str> = here.into_iter().chain(["--allow-dirty"]).collect();
    world.run_without_trace(&alone).fails(&["--no-commit"]);
    let forced: Vec<&str> = here.into_iter().chain(["--allow-dirty", "--no-commit"]).collect();
    world.run(&forced).exits(0);
    let after = world.text("work/mamba/setup.py");
    assert!(after.ends_with("# mine\n") && after.contains("compute_120"), "{after}");
}

#[test]
fn a_dirty_file_that_does_not_change_is_no_obstacle() {
    let world = World::new();
    world.clone_of_mamba("work/mamba", "v2.2.4");
    world.write("work/mamba/README.md", "mine\n");
    world.run(&["apply", "./mamba", "--add-arch", "120"]).exits(0).says(&["done: branch mambapatch/"]);
    assert_eq!(world.git("work/mamba", &["status", "--short"]), " M README.md");
}

#[test]
fn a_source_distribution_becomes_a_repository() {
    let world = World::without_git();
    let run = world.run(&RELEASE).exits(0);
    let run = run.says(&[
        "note: no git repository could be reached (transport 'https' not allowed), so the source distribution is used",
        "note: mamba-ssm v2.2.4 from mamba_ssm-2.2.4.tar.gz of ",
        "carries no kernels (.cu), so it cannot be compiled",
        "  mambapatch apply mamba-ssm@v2.2.4 --add-arch 120 --source git --into mamba-ssm-2.2.4-git\n",
    ]);
    run.omits(&["ls-remote", "fatal"]);
    let log = world.git("work/mamba-ssm-2.2.4", &["log", "--format=%s"]);
    assert_eq!(log, "Compile for more GPU architectures\nImport mamba_ssm-2.2.4.tar.gz");
    let again = world.run(&release(&["-v"])).exits(0);
    again.says(&["holds it already", "git ls-remote https://"]);
}

#[test]
fn json_says_what_was_written() {
    let world = World::new();
    let arguments = release(&["--format", "json"]);
    let document = world.run(&arguments).exits(0).json();
    assert_eq!(document["result"]["done"], "branch");
    assert_eq!(document["result"]["branch"], "mambapatch/v2.2.4+sm120");
    assert_eq!(document["result"]["commits"].as_array().map(Vec::len), Some(1));
    assert_eq!(world.run_without_trace(&arguments).exits(0).json()["result"]["done"], "nothing");
    let dry = world.run_without_trace(&release(&["--format", "json", "--dry-run"])).exits(0);
    assert_eq!(dry.json()["result"]["done"], "dry-run");
}
