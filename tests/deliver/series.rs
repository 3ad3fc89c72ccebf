//! `pr`: the series, its folder and its texts, on handwritten sources.

use crate::world::World;

const FLAGS: [&str; 6] = ["pr", "mamba-ssm@v2.2.4", "--add-arch", "120", "--cuda", "13.0"];
const FOLDER: &str = "work/mamba-ssm-v2.2.4-pr";

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    FLAGS.into_iter().chain(more.iter().copied()).collect()
}

/// The mails of a folder, in order.
fn mails(world: &World, folder: &str) -> Vec<String> {
    let names = std::fs::read_dir(world.path(folder)).expect("the folder").flatten();
    let mut names: Vec<String> = names.map(|entry| entry.path().display().to_string()).collect();
    names.retain(|name| name.ends_with(".patch"));
    names.sort();
    names
}

/// `git am` of a folder's series in a new clone of `mirror` at a commit; the tree that it gives.
fn taken(world: &World, (mirror, at): (&str, &str), folder: &str) -> String {
    let from = world.path(mirror).display().to_string();
    world.git("work", &["clone", "-q", &from, "taken"]);
    world.git("work/taken", &["checkout", "-q", at]);
    let mails = mails(world, folder);
    let am: Vec<&str> = ["am", "-q"].into_iter().chain(mails.iter().map(String::as_str)).collect();
    world.git("work/taken", &am);
    world.git("work/taken", &["rev-parse", "HEAD^{tree}"])
}

#[test]
fn git_takes_the_series_and_has_the_tree_of_apply() {
    let world = World::new().with_identity();
    world.run(&["apply", "v2.2.4", "--add-arch", "120", "--cuda", "13.0", "-q"]).exits(0);
    let applied = world.git("work/mamba-ssm-2.2.4", &["rev-parse", "HEAD^{tree}"]);
    let run = world.run(&with(&["--signoff"])).exits(0);
    run.shows(&["+++ b/setup.py"]).says(&[
        "done: 2 patches in ",
        "/mamba-ssm-v2.2.4-pr\n",
        "  git am ",
        "  mambapatch pr mamba-ssm@v2.2.4 --add-arch 120 --cuda 13.0 --signoff --push git@github.com:YOU/mamba.git\n",
    ]);
    assert_eq!(taken(&world, ("mirrors/mamba-ssm", "v2.2.4"), FOLDER), applied);
    let log =
        world.git("work/taken", &["log", "-2", "--format=%an <%ae>%n%s%n%b%n%(trailers:key=Signed-off-by)"]);
    for said in [
        "Some One <someone@host.test>\n",
        "Compile for more GPU architectures\nsetup.py lists its GPU architectures by hand",
        "References: state-spaces/mamba#710,",
        "\n    CUDA  before                        after\n",
        "\n    12.8  53 62 70 72 80 87 90          … +120\n",
        "\n    ! refused by the nvcc of that CUDA\n",
        "\nSigned-off-by: Some One <someone@host.test>\n",
    ] {
        assert!(log.contains(said), "`{said}` is not in\n{log}");
    }
    assert_eq!(
        log.matches("CUDA  before").count(),
        1,
        "the second patch changes no effect, and shows none\n{log}"
    );
    assert!(!log.contains("Patch-Set"), "upstream gets no trailers of this program\n{log}");
    assert!(log.lines().all(|line| line.chars().count() <= 72 || line.contains("-53!")), "{log}");
}

#[test]
fn the_joined_diff_is_taken_by_git_and_by_patch() {
    let world = World::new().with_identity();
    world.run(&with(&["-q"])).exits(0);
    let wanted = taken(&world, ("mirrors/mamba-ssm", "v2.2.4"), FOLDER);
    let diff = world.path(FOLDER).join("series.diff").display().to_string();
    for (folder, program, arguments) in
        [("work/a", "git", &["apply", "--index"][..]), ("work/b", "patch", &["-s", "-p1", "-i"])]
    {
        world.clone_of_mamba(folder, "v2.2.4");
        let mut command = std::process::Command::new(program);
        let done =
            command.args(arguments).arg(&diff).current_dir(world.path(folder)).output().expect(program);
        assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
        world.git(folder, &["add", "-A"]);
        assert_eq!(world.git(folder, &["write-tree"]), wanted, "{program}");
    }
}

#[test]
fn the_texts_say_what_was_measured() {
    let world = World::new().with_identity();
    world.run(&with(&["-q"])).exits(0);
    let text = world.text(&format!("{FOLDER}/PULL_REQUEST.md"));
    let commit = world.git("mirrors/mamba-ssm", &["rev-parse", "v2.2.4"]);
    for said in [
        "- **Compile for more GPU architectures** (`setup.py`)\n",
        "### Use no CUB names that CCCL 3 removed\n\nCUDA 13 brings CCCL 3,",
        "See state-spaces/mamba#772, state-spaces/mamba#776.\n",
        &format!("On `v2.2.4` at {commit}:\n"),
        "- Use no CUB names that CCCL 3 removed: rewrites 2 places; rewrites 1 place\n",
        "12.8  53 62 70 72 80 87 90          … +120\n",
        "it was not compiled, and not run.",
        "`mambapatch pr mamba-ssm@v2.2.4 --add-arch 120 --cuda 13.0`",
    ] {
        assert!(text.contains(said), "`{said}` is not in\n{text}");
    }
    let cover = world.text(&format!("{FOLDER}/cover.md"));
    for said in [
        "# Compile for more GPU architectures, and 1 more\n",
        "- `0002-Use-no-CUB-names-that-CCCL-3-removed.patch`\n",
        "2 files changed",
    ] {
        assert!(cover.contains(said), "`{said}` is not in\n{cover}");
    }
}

#[test]
fn what_a_build_of_the_same_tree_showed_is_evidence() {
    let world = World::new().with_identity();
    world.run(&["apply", "mamba-ssm@v2.2.4", "--add-arch", "120", "--cuda", "13.0", "-q"]).exits(0);
    let tree = world.git("work/mamba-ssm-2.2.4", &["rev-parse", "HEAD^{tree}"]);
    let kept = r#"{"build": {"codes": ["sm_90", "sm_120"], "environment":
        {"python-version": "3.12.3", "torch": "2.11.0+cu130", "cuda": "13.0"}}, "verified":
        {"name": "mamba_ssm", "verdict": "wrong", "gpu": "NVIDIA H200",
         "checks": [{"passed": true}, {"passed": false}]}}"#;
    world.write(&format!("state/builds/{tree}.json"), kept);
    world.run(&with(&["-q"])).exits(0);
    let text = world.text(&format!("{FOLDER}/PULL_REQUEST.md"));
    let compiled = "Compiled as it is here, by nvcc of CUDA 13.0 for PyTorch 2.11.0+cu130 and Python 3.12.3: the wheel holds \
                    sm_90, sm_120. ";
    let run = "`mamba_ssm` was imported and its kernels run on NVIDIA H200: 1 of 2 comparisons with the reference passed.";
    assert!(text.contains(&format!("\n{compiled}{run}\n")), "{text}");
    assert!(!text.contains("not compiled"), "{text}");
    world.run(&["pr", "mamba-ssm@v2.2.4", "--add-arch", "100", "--out", "other", "-q"]).exits(0);
    assert!(world.text("work/other/PULL_REQUEST.md").contains("it was not compiled"), "another tree");
}

#[test]
fn a_series_that_changes_no_architecture_says_so() {
    let world = World::new().with_identity();
    world.run(&["pr", "mamba-ssm@v2.2.4", "--patch", "cuda-13", "-q"]).exits(0);
    let text = world.text(&format!("{FOLDER}/PULL_REQUEST.md"));
    assert!(
        text.contains("read from the source, which stay the same:\n\n```text\nCUDA  compiles\n"),
        "{text}"
    );
    assert!(!text.contains("###"), "one patch needs no heading of its own\n{text}");
    let mail = world.text(&format!("{FOLDER}/0001-Use-no-CUB-names-that-CCCL-3-removed.patch"));
    assert!(mail.contains("Subject: [PATCH] Use no CUB names") && !mail.contains("CUDA  compiles"), "{mail}");
}

#[test]
fn upstream_has_it_already() {
    let world = World::new();
    let run = world.run_without_trace(&["pr", "mamba-ssm", "--add-arch", "120"]).exits(0);
    run.says(&["nothing to upstream since v2.2.6: mamba-ssm main (after v2.3.2.post1) has it\n"]);
    let run = world.run_without_trace(&["pr", "mamba-ssm", "--add-arch", "120", "--format", "json"]).exits(0);
    assert_eq!(run.json()["result"], serde_json::json!({ "done": "nothing", "since": "2.2.6" }));
    let older =
        world.run_without_trace(&["pr", "mamba-ssm", "--base", "v2.2.6", "--add-arch", "120"]).exits(0);
    older.says(&["nothing to upstream since v2.2.6: mamba-ssm v2.2.6 has it\n"]);
}

#[test]
fn the_base_decides() {
    let world = World::new().with_identity();
    let run =
        world.run(&["pr", "mamba-ssm", "--base", "v2.2.5", "--add-arch", "120", "--out", "deep/er"]).exits(0);
    run.says(&["done: 1 patch in ", "deep/er\n"]);
    let by_name = world.run_without_trace(&["pr", "mamba-ssm", "--base", "v9", "--add-arch", "120"]);
    by_name.fails(&["mamba-ssm has no tag, branch or commit `v9`"]);
}

#[test]
fn a_name_of_yours_is_needed() {
    let world = World::new();
    let run = world.run_without_trace(&with(&[])).exits(2);
    run.says(&["error: git knows no name and address of yours", "hint: git config --global user.name"]);
}

#[test]
fn what_is_not_for_upstream_stays_out() {
    let world = World::new().with_identity();
    let run = world.run(&with(&["--patch", "force-build", "offline-wheel"])).exits(0);
    run.says(&[
        "note: left out: mamba-ssm/force-build is inappropriate for upstream\n",
        "note: mamba-ssm/offline-wheel was offered before: state-spaces/mamba#954",
        "done: 3 patches in ",
    ]);
    let alone = world.run_without_trace(&["pr", "mamba-ssm", "--patch", "force-build"]).exits(2);
    alone.says(&["error: nothing was asked for"]);
}

#[test]
fn a_series_needs_a_repository() {
    let world = World::without_git().with_identity();
    world
        .run(&with(&[]))
        .exits(2)
        .says(&["mamba-ssm v2.2.4 lies in no git repository", "hint: --source git"]);
    world.run(&["pr", "mamba-ssm", "--add-arch", "120"]).fails(&["git"]);
    world
        .run(&["pr", "./mamba", "--add-arch", "120"])
        .fails(&["./mamba is a path", "mamba-ssm --source ./mamba"]);
}

#[test]
fn the_same_again_keeps_what_a_person_wrote() {
    let world = World::new().with_identity();
    world.run(&with(&["-q"])).exits(0);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let again = world.run_without_trace(&with(&[])).exits(0);
    again.says(&["nothing to do: ", "holds these 2 patches already"]).omits(&["by hand"]);
    let text = format!("{FOLDER}/PULL_REQUEST.md");
    world.write(&text, "my own words\n");
    let kept = world.run_without_trace(&with(&[])).exits(0);
    kept.says(&["note: PULL_REQUEST.md was changed by hand and stays as it is"]);
    let json = world.run_without_trace(&with(&["--format", "json"])).exits(0).json();
    assert_eq!(json["result"]["done"], "nothing");
    assert_eq!(json["result"]["kept"], serde_json::json!(["PULL_REQUEST.md"]));
    assert_eq!(json["result"]["patches"].as_array().map(Vec::len), Some(2));
    assert_eq!(world.text(&text), "my own words\n");
}

#[test]
fn another_series_is_not_overwritten() {
    let world = World::new().with_identity();
    world.run(&with(&["-q"])).exits(0);
    let other = world.run_without_trace(&["pr", "mamba-ssm@v2.2.4", "--add-arch", "121"]).exits(2);
    other.says(&["exists and holds another 0001-", "hint: write the series beside it: --out DIR"]);
    let fewer = world.run_without_trace(&["pr", "mamba-ssm@v2.2.4", "--patch", "cuda-13"]).exits(2);
    fewer.says(&["exists and holds something else; 0001-Use-no-CUB"]);
    world.write("work/mine/file", "mine");
    let into = world.run_without_trace(&with(&["--out", "mine"])).exits(2);
    into.says(&["mine exists and holds something else"]);
}

/// A repository of mamba-ssm at v2.2.4 whose log has a habit, with bytes that mail does not like.
fn upstream(world: &World, subjects: &[&str]) {
    let setup = crate::sources::mamba_setup().replace('\n', "\r\n");
    let setup = setup.replacen("\r\n", "\r\n# caf\u{e9} \u{fc}ber\r\n", 1).into_bytes();
    let latin: Vec<u8> =
        setup.iter().copied().filter(|byte| *byte != 0xc3).chain(*b"# no newline at the end").collect();
    world.checkout("work/up", &[("setup.py", &latin), ("README", b"x\n")]);
    world.git("work/up", &["update-index", "--chmod=+x", "setup.py"]);
    world.git("work/up", &["commit", "-q", "--amend", "-m", "start"]);
    world.git("work/up", &["checkout", "-q", "--", "setup.py"]);
    for (number, subject) in subjects.iter().enumerate() {
        let more = [&latin[..], format!("\n# {number}").as_bytes()].concat();
        world.write("work/up/setup.py", more);
        world.git("work/up", &["commit", "-q", "-a", "-m", subject]);
    }
    world.git("work/up", &["tag", "v2.2.4"]);
}

#[test]
fn the_subject_follows_the_log() {
    for (subjects, subject, flag) in [
        (
            ["[Build] Use a", "[Build] Use b", "[Build] c", "[CI] d", "[Build] E"],
            "[Build] Compile for more",
            true,
        ),
        (["build: a", "fix: b", "ci(deps): c", "fix: d", "Bump to 2"], "build: compile for more", false),
        (["Use a", "[CI] b", "Add c", "fix d", "Bump to 2"], "Compile for more", false),
    ] {
        let world = World::new().with_identity();
        upstream(&world, &subjects);
        world.git("work/up", &["config", "user.name", "J\u{f6}rg, \u{1f40d}"]);
        let run =
            world.run(&["pr", "mamba-ssm", "--source", "./up", "--add-arch", "120", "--out", "out"]).exits(0);
        assert_eq!(run.err.contains("git am --keep-non-patch"), flag, "{run}");
        let wanted = world.git("work/up", &["rev-parse", "HEAD"]);
        world.git("work", &["clone", "-q", "up", "taken"]);
        let mails = mails(&world, "work/out");
        world.git("work/taken", &["am", "-q", "--keep-non-patch", &mails[0]]);
        let log = world.git("work/taken", &["log", "-1", "--format=%s|%an|%ae|%P"]);
        let start = format!("{subject} GPU architectures|J\u{f6}rg, \u{1f40d}|someone@host.test|{wanted}");
        assert_eq!(log, start);
        let diff = world.path("work/out/series.diff").display().to_string();
        world.git("work/up", &["apply", "--index", &diff]);
        let tree = world.git("work/up", &["write-tree"]);
        assert_eq!(
            world.git("work/taken", &["rev-parse", "HEAD^{tree}"]),
            tree,
            "CRLF, Latin-1, no last newline"
        );
        assert!(world.git("work/taken", &["ls-tree", "HEAD", "setup.py"]).starts_with("100755 "));
    }
}
