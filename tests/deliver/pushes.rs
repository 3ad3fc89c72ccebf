//! `pr --push`: to bare repositories, refused ones, and the links behind it.

use crate::world::World;

const FLAGS: [&str; 4] = ["pr", "mamba-ssm@v2.2.4", "--add-arch", "120"];
const BRANCH: &str = "mambapatch/v2.2.4+sm120";

fn pushed<'a>(to: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    FLAGS.into_iter().chain(["--push", to]).chain(more.iter().copied()).collect()
}

/// A bare fork of the mirror.
fn fork(world: &World) -> String {
    let from = world.path("mirrors/mamba-ssm").display().to_string();
    world.git("work", &["clone", "-q", "--bare", &from, "fork.git"]);
    world.path("work/fork.git").display().to_string()
}

fn refs(world: &World, folder: &str) -> String {
    world.git(folder, &["for-each-ref"])
}

#[test]
fn a_branch_is_pushed_and_again_there_is_nothing_to_do() {
    let world = World::new().with_identity();
    fork(&world);
    let before = refs(&world, "mirrors/mamba-ssm");
    let run = world.run(&pushed("./fork.git", &[])).exits(0);
    run.says(&[
        "done: 1 patch in ",
        &format!("done: branch {BRANCH} at ./fork.git\n"),
        "the mails work everywhere",
    ]);
    let base = world.git("work/fork.git", &["rev-parse", "v2.2.4^{commit}"]);
    let log = world.git("work/fork.git", &["log", "-1", "--format=%s %P", BRANCH]);
    assert_eq!(log, format!("Compile for more GPU architectures {base}"));
    assert_eq!(refs(&world, "mirrors/mamba-ssm"), before, "the source stays as it is");
    let there = refs(&world, "work/fork.git");
    std::thread::sleep(std::time::Duration::from_millis(1100));
    world.run(&pushed("./fork.git", &[])).exits(0).says(&["nothing to do: ", "done: branch "]);
    assert_eq!(refs(&world, "work/fork.git"), there, "the same series is the same commits");
}

#[test]
fn a_push_that_would_lose_commits_is_refused() {
    let world = World::new().with_identity();
    fork(&world);
    world.git("work/fork.git", &["update-ref", &format!("refs/heads/{BRANCH}"), "v2.2.6"]);
    let (here, there) = (refs(&world, "mirrors/mamba-ssm"), refs(&world, "work/fork.git"));
    let run = world.run(&pushed("./fork.git", &[])).exits(2);
    run.says(&[
        &format!("error: ./fork.git has a branch `{BRANCH}` with other commits, and nothing was pushed"),
        "hint: push under another name: --branch NAME",
    ])
    .omits(&["force", "done: "]);
    assert_eq!((refs(&world, "mirrors/mamba-ssm"), refs(&world, "work/fork.git")), (here, there));
    world
        .run(&pushed("./fork.git", &["--branch", "mine"]))
        .exits(0)
        .says(&["done: branch mine at ./fork.git"]);
    assert_eq!(
        world.git("work/fork.git", &["log", "-1", "--format=%s", "mine"]),
        "Compile for more GPU architectures"
    );
}

#[test]
fn a_server_that_says_no_is_quoted() {
    let world = World::new().with_identity();
    fork(&world);
    let hook = "work/fork.git/hooks/pre-receive";
    world.write(hook, "#!/bin/sh\necho not today >&2\nexit 1\n");
    #[cfg(unix)]
    std::fs::set_permissions(world.path(hook), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("mode");
    let run = world.run(&pushed("./fork.git", &[])).exits(2);
    run.says(&["error: git push ./fork.git failed: ! [remote rejected]", "hint: git ls-remote ./fork.git"]);
    let nowhere = world.run(&pushed("./nowhere.git", &[])).exits(2);
    nowhere.says(&["error: git push ./nowhere.git failed: fatal: "]);
}

#[test]
fn remotes_of_a_clone_have_names() {
    let world = World::new().with_identity();
    let address = fork(&world);
    world.clone_of_mamba("work/mamba", "main");
    world.git("work/mamba", &["remote", "add", "mine", "/nowhere"]);
    world.git("work/mamba", &["remote", "set-url", "--push", "mine", &address]);
    world.git("work/mamba", &["config", "user.name", "Clone Owner"]);
    let before = refs(&world, "work/mamba");
    let run = world.run(&pushed("mine", &["--source", "./mamba"])).exits(0);
    run.says(&[&format!("done: branch {BRANCH} at {address}\n")]);
    assert_eq!(world.git("work/fork.git", &["log", "-1", "--format=%an", BRANCH]), "Clone Owner");
    assert_eq!(refs(&world, "work/mamba"), before);
    let unknown = world.run(&pushed("nobody", &["--source", "./mamba"])).exits(2);
    unknown.says(&["has no remote `nobody`", "hint: name an address, or the path ./nobody"]);
}

#[test]
fn hooks_do_not_run() {
    let world = World::new().with_identity();
    fork(&world);
    world.write("home/hooks/pre-push", "#!/bin/sh\ntouch \"$HOME/ran\"\nexit 1\n");
    #[cfg(unix)]
    std::fs::set_permissions(
        world.path("home/hooks/pre-push"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .expect("mode");
    let mut config = world.text("home/.gitconfig");
    config.push_str(&format!("[core]\n\thooksPath = {}\n", world.path("home/hooks").display()));
    config.push_str("[push]\n\tfollowTags = true\n[remote]\n\tpushDefault = nobody\n");
    world.write("home/.gitconfig", config);
    let mut world = world;
    let own = world.path("home/.gitconfig").display().to_string();
    world.set("GIT_CONFIG_GLOBAL", &own);
    world.run(&pushed("./fork.git", &[])).exits(0);
    assert!(!world.path("home/ran").exists());
}

#[test]
fn a_fork_on_github_gets_its_page_and_its_command() {
    let mut world = World::new().with_identity();
    let address = fork(&world);
    let config = world.text("home/.gitconfig");
    let instead = format!("[url \"file://{address}\"]\n\tinsteadOf = https://github.com/you/mamba\n");
    world.write("home/.gitconfig", format!("{config}{instead}"));
    let own = world.path("home/.gitconfig").display().to_string();
    world.set("GIT_CONFIG_GLOBAL", &own);
    let run = world.run(&pushed("https://token@github.com/you/mamba", &[]));
    run.exits(2).omits(&["token"]);
    let run = world.run(&pushed("https://github.com/you/mamba", &["--base", "v2.2.5"])).exits(0);
    run.says(&[
        "  https://github.com/state-spaces/mamba/compare/v2.2.5...you:mambapatch/v2.2.5%2Bsm120?expand=1\n",
        "  gh pr create --repo state-spaces/mamba --base v2.2.5 --head you:mambapatch/v2.2.5+sm120 \
         --title 'Compile for more GPU architectures' --body-file ",
        "/mamba-ssm-v2.2.5-pr/PULL_REQUEST.md\n",
    ]);
    let json = world
        .run(&pushed("https://github.com/you/mamba", &["--base", "v2.2.5", "--format", "json"]))
        .exits(0);
    let pushed = &json.json()["result"]["pushed"];
    assert_eq!(pushed["to"], "https://github.com/you/mamba");
    assert!(
        pushed["compare"].as_str().is_some_and(|page| page.contains("/compare/v2.2.5...you:")),
        "{pushed}"
    );
}
