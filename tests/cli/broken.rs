//! Servers that do not answer, archives that are not what they should be, and no cache.

use crate::sources::MAMBA;
use crate::world::{World, tar_gz};

const ADD: [&str; 4] = ["apply", "v2.2.4", "--add-arch", "120"];

#[test]
fn nothing_answers() {
    let mut world = World::bare();
    world.set("PIP_INDEX_URL", "http://127.0.0.1:9/simple");
    let run = world.run_without_trace(&ADD).fails(&["127.0.0.1:9", "no git repository could be reached"]);
    assert_eq!(run.err.matches("127.0.0.1:9").count(), 1, "said once\n{run}");
}

#[test]
fn no_git_either() {
    let mut world = World::without_git();
    world.set("PATH", "/nonexistent");
    world
        .run(&ADD)
        .exits(0)
        .says(&["no git repository could be reached (git is not installed or cannot be run)"]);
    let run = world.run_without_trace(&["diff", "v2.2.5", "--add-arch", "120", "--source", "git"]);
    run.fails(&["`git` is not installed", "hint: install git, or use --source sdist"]);
}

#[test]
fn an_empty_index() {
    let world = World::bare();
    world
        .run_without_trace(&ADD)
        .fails(&["has no project `mamba-ssm`", "hint: name another index: --index URL"]);
    std::fs::create_dir(world.path("index/mamba-ssm")).expect("folder");
    world
        .run_without_trace(&["diff", "mamba-ssm", "--add-arch", "120"])
        .exits(2)
        .says(&["error: ", "hint: "]);
    let run = world.run_without_trace(&["diff", "v2.2.4", "--add-arch", "120", "--index", "/no/such/folder"]);
    run.fails(&["cannot read /no/such/folder", "hint: name another index: --index URL"]);
}

#[test]
fn offline_without_a_cache() {
    let mut world = World::bare();
    world.set("PIP_INDEX_URL", "http://127.0.0.1:9/simple");
    for source in ["auto", "git", "sdist"] {
        let run = world.run_without_trace(&[
            "diff",
            "v2.2.4",
            "--add-arch",
            "120",
            "--offline",
            "--source",
            source,
        ]);
        run.fails(&["--offline forbids to fetch it", "hint: run it once without --offline"]);
    }
    let run = World::new().run_without_trace(&["diff", "v2.2.4", "--add-arch", "120", "--offline"]).exits(0);
    run.shows(&["compute_120"]);
}

#[test]
fn archives_that_are_not_what_they_should_be() {
    let world = World::bare();
    let whole = tar_gz("mamba_ssm-2.2.4", &MAMBA[2].files("mamba_ssm"));
    let outside = tar_gz("mamba_ssm-2.2.4", &[("../../evil.py".into(), b"x".to_vec())]);
    let place = "index/mamba-ssm/mamba_ssm-2.2.4.tar.gz";
    for (bytes, message) in [
        (&whole[..whole.len() / 2], "is broken or cut off"),
        (&whole[..0], "is broken or cut off"),
        (&b"<html>not found</html>"[..], "is broken or cut off"),
        (&outside, "evil.py"),
    ] {
        world.write(place, bytes);
        world.run_without_trace(&ADD).fails(&[message, "hint: "]);
    }
    assert!(!world.path("work/evil.py").exists() && !world.path("evil.py").exists());
    world.write(place, &whole);
    let page = "<a href=\"mamba_ssm-2.2.4.tar.gz#sha256=00\">mamba_ssm-2.2.4.tar.gz</a>";
    world.write("index/mamba-ssm/index.html", page);
    world.run_without_trace(&ADD).fails(&[
        "is not what the index promises",
        "nothing was kept",
        "hint: try again",
    ]);
}

#[test]
fn a_mirror_in_ruins() {
    let world = World::new();
    std::fs::remove_dir_all(world.path("mirrors/mamba-ssm/.git/refs")).expect("refs");
    std::fs::remove_dir_all(world.path("mirrors/mamba-ssm/.git/objects")).expect("objects");
    let run = world.run(&["diff", "v2.2.4", "--add-arch", "120"]).exits(0);
    run.says(&["from mamba_ssm-2.2.4.tar.gz"]);
}
