//! The same on the real upstreams; only where `MAMBAPATCH_MIRRORS` names their mirrors.

use crate::harness::releases::mirrors;
use crate::harness::say;
use crate::world::World;

/// A machine with the real mirrors; none where there are none.
pub fn world() -> Option<World> {
    let Some(mirrors) = mirrors() else {
        say("NO MIRROR is tested: MAMBAPATCH_MIRRORS is not set");
        return None;
    };
    let mut world = World::bare().with_identity();
    let mirrors = mirrors.canonicalize().expect("MAMBAPATCH_MIRRORS");
    world.set("MAMBAPATCH_MIRRORS", &mirrors.display().to_string());
    world.write(
        "home/.gitconfig",
        "[user]\n\tname = Some One\n\temail = someone@host.test\n[safe]\n\tdirectory = *\n",
    );
    let config = world.path("home/.gitconfig").display().to_string();
    world.set("GIT_CONFIG_GLOBAL", &config);
    Some(world)
}

#[test]
fn architectures_are_there_upstream() {
    let Some(world) = world() else { return };
    let run = world.run(&["pr", "mamba-ssm", "--add-arch", "120"]).exits(0);
    run.says(&["nothing to upstream since v2.2.6: mamba-ssm main (after v2.3.2.post1) has it"]);
}

#[test]
fn what_is_open_upstream_is_an_honest_series() {
    let Some(world) = world() else { return };
    let run = world.run(&["pr", "mamba-ssm", "--torch", "2.14", "--patch", "no-nvcc", "--signoff"]).exits(0);
    run.says(&["mamba-ssm/cxx20 was offered before: state-spaces/mamba#1000", "done: 2 patches in "]);
    let text = world.text("work/mamba-ssm-main-pr/PULL_REQUEST.md");
    for said in [
        "**Compile as C++20 where PyTorch asks for it** (`setup.py`)",
        "NameError: bare_metal_version",
        "not run",
    ] {
        assert!(text.contains(said), "`{said}` is not in\n{text}");
    }
    let mirror = mirrors().expect("mirrors").join("state-spaces+mamba/repo").display().to_string();
    world.git("work", &["clone", "-q", "--shared", "--branch", "main", &mirror, "mamba"]);
    let folder = world.path("work/mamba-ssm-main-pr");
    let mails =
        std::fs::read_dir(folder).expect("folder").flatten().map(|entry| entry.path().display().to_string());
    let mut mails: Vec<String> = mails.filter(|name| name.ends_with(".patch")).collect();
    mails.sort();
    let am: Vec<&str> = ["am", "-q"].into_iter().chain(mails.iter().map(String::as_str)).collect();
    world.git("work/mamba", &am);
    world
        .run(&["apply", "mamba-ssm@main", "--torch", "2.14", "--patch", "no-nvcc", "--into", "applied"])
        .exits(0);
    let tree = |folder: &str| world.git(folder, &["rev-parse", "HEAD^{tree}"]);
    assert_eq!(tree("work/mamba"), tree("work/applied"));
}
