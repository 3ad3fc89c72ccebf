//! The same on the real upstreams; only where `MAMBAPATCH_MIRRORS` names their mirrors.

use crate::harness::releases::mirrors;
use crate::harness::say;
use crate::updates::{files, fresh, update};
use crate::vendored::vendored;
use crate::world::World;

/// A machine with the real mirrors.
pub fn world() -> World {
    let mirrors = mirrors().expect("MAMBAPATCH_MIRRORS names mirrors");
    let mut world = World::bare().with_identity();
    let mirrors = mirrors.canonicalize().expect("MAMBAPATCH_MIRRORS");
    world.set("MAMBAPATCH_MIRRORS", &mirrors.display().to_string());
    world.write(
        "home/.gitconfig",
        "[user]\n\tname = Some One\n\temail = someone@host.test\n[safe]\n\tdirectory = *\n",
    );
    let config = world.path("home/.gitconfig").display().to_string();
    world.set("GIT_CONFIG_GLOBAL", &config);
    world
}

#[test]
#[ignore = "needs mirrors (MAMBAPATCH_MIRRORS)"]
fn architectures_are_there_upstream() {
    let world = world();
    let run = world.run(&["pr", "mamba-ssm", "--add-arch", "120"]).exits(0);
    run.says(&["nothing to upstream since v2.2.6: mamba-ssm main (after v2.3.2.post1) has it"]);
}

#[test]
#[ignore = "needs mirrors (MAMBAPATCH_MIRRORS)"]
fn what_is_open_upstream_is_an_honest_series() {
    let world = world();
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

/// Every release that the update goes through, and what a fresh tree of it is like.
#[test]
#[ignore = "needs mirrors (MAMBAPATCH_MIRRORS)"]
fn real_releases_are_vendored_and_updated() {
    let world = world();
    vendored(&world);
    world.run(&["vendor", "check", "host/mamba"]).exits(0);
    let setup = world.text("work/host/mamba/setup.py");
    world.write("work/host/mamba/setup.py", setup.replacen("import", "imporT", 1));
    assert_eq!(world.run(&["vendor", "check", "host/mamba"]).exits(1).out, "setup.py  changed\n");
    world.git("work/host", &["checkout", "-q", "--", "."]);
    for tag in ["v2.2.5", "v2.2.6", "v2.3.2"] {
        update(&world, &[tag], 0);
        assert_eq!(files(&world, "work/host/mamba"), fresh(&world, tag), "{tag}");
    }
}

#[test]
#[ignore = "needs mirrors (MAMBAPATCH_MIRRORS)"]
fn real_releases_take_local_work_along() {
    for tag in ["v2.2.5", "v2.2.6", "v2.3.2"] {
        let world = world();
        vendored(&world);
        let old_readme = world.read("work/host/mamba/README.md");
        let at = |path: &str| format!("work/host/mamba/{path}");
        let edited = |path: &str, from: &str, to: &str| {
            let text = world.text(&at(path));
            assert!(text.contains(from), "{path}");
            world.write(&at(path), text.replacen(from, to, 1));
        };
        // Beside a patched hunk, in another file, a deleted one, a renamed one.
        edited("setup.py", "import sys\n", "import sys  # mine\n");
        edited("csrc/selective_scan/reverse_scan.cuh", "#pragma once\n", "#pragma once\n// mine\n");
        edited("LICENSE", "Apache License", "Apache License (mine)");
        std::fs::remove_file(world.path(&at("README.md"))).expect("remove");
        let renamed = at("csrc/selective_scan/uninitialized_copy.cuh");
        std::fs::rename(world.path(&renamed), world.path(&at("csrc/mine.cuh"))).expect("rename");
        let run = world.run(&["vendor", "update", "host/mamba", tag]);
        let (code, now, fresh) = (run.code, files(&world, "work/host/mamba"), fresh(&world, tag));
        let conflicts: Vec<&str> =
            run.out.lines().filter(|line| line.trim().starts_with("conflict")).collect();
        let text = |path: &str| String::from_utf8_lossy(&now[path]).into_owned();
        assert!(
            text("setup.py").contains("import sys  # mine\n") && text("LICENSE").contains("(mine)"),
            "{tag}"
        );
        assert!(text("csrc/selective_scan/reverse_scan.cuh").contains("#pragma once\n// mine\n"), "{tag}");
        assert_eq!(now["csrc/mine.cuh"], fresh["csrc/selective_scan/uninitialized_copy.cuh"], "{tag}");
        // The only question is that of a file which one side removed and the other changed.
        let readme = fresh["README.md"] != old_readme;
        assert_eq!((code, conflicts.len()), if readme { (1, 1) } else { (0, 0) }, "{tag}\n{run}");
        assert_eq!(now.contains_key("README.md"), readme, "{tag}");
    }
}

#[test]
#[ignore = "needs mirrors (MAMBAPATCH_MIRRORS)"]
fn an_edit_in_a_real_patched_hunk_waits_for_a_decision() {
    let world = world();
    vendored(&world);
    let setup = world.text("work/host/mamba/setup.py");
    world.write(
        "work/host/mamba/setup.py",
        setup.replace("arch=compute_120,code=sm_120", "arch=compute_120a,code=sm_120a"),
    );
    let run = world.run(&["vendor", "update", "host/mamba", "v2.2.6"]).exits(1);
    run.shows(&["conflict  setup.py"]);
    let text = world.text("work/host/mamba/setup.py");
    assert!(
        text.contains("code=sm_120a") && text.contains("<<<<<<< yours\n") && text.contains("compute_103"),
        "{text}"
    );
}

#[test]
#[ignore = "needs mirrors (MAMBAPATCH_MIRRORS)"]
fn a_real_branch_has_the_tree_of_apply() {
    let world = world();
    world.checkout("work/fork", &[("README.md", b"mine\n")]);
    let flags = ["v2.2.4", "--add-arch", "120", "--cuda", "13.0"];
    let add: Vec<&str> =
        ["vendor", "add"].into_iter().chain(flags).chain(["--as", "branch", "--into", "./fork"]).collect();
    world.run(&add).exits(0);
    let apply: Vec<&str> = ["apply"].into_iter().chain(flags).chain(["--into", "applied", "-q"]).collect();
    world.run(&apply).exits(0);
    let listed = world.git("work/applied", &["ls-tree", "-r", "HEAD"]);
    let branch = world.git("work/fork", &["ls-tree", "-r", "vendor/mamba-ssm"]);
    listed.lines().for_each(|line| assert!(branch.contains(line), "{line}"));
    world.run(&["vendor", "update", "./fork", "v2.2.6"]).exits(0);
    world.run(&["vendor", "check", "./fork"]).exits(0);
}

/// Submodules, links, modes and attributes of other real upstreams: a clone of the host is as recorded.
#[cfg(unix)]
#[test]
#[ignore = "needs mirrors (MAMBAPATCH_MIRRORS)"]
fn other_real_trees_are_vendored() {
    let world = world();
    world.checkout("work/host", &[("README.md", b"host\n")]);
    let names = ["NVIDIA+apex", "SeanNaren+warp-ctc", "hustvl+Vim", "bitsandbytes-foundation+bitsandbytes"];
    let there = |name: &&str| mirrors().expect("mirrors").join(format!("{name}/repo")).exists();
    let names: Vec<&str> = names.into_iter().filter(there).collect();
    for name in &names {
        let mirror = mirrors().expect("mirrors").join(format!("{name}/repo")).display().to_string();
        let into = format!("host/{name}");
        let run = world.run(&["vendor", "add", &mirror, "--patch", "at-check", "--into", &into]).exits(0);
        let listed = world.git("work", &["-C", &mirror, "ls-tree", "-r", "HEAD"]);
        let of = |mode: &str| {
            let lines = listed.lines().filter(|line| line.starts_with(mode));
            lines.filter_map(|line| line.split('\t').nth(1)).map(str::to_string).collect::<Vec<_>>()
        };
        let (links, modules) = (of("120000 "), of("160000 "));
        links
            .iter()
            .for_each(|link| assert!(world.path(&format!("work/{into}/{link}")).is_symlink(), "{link}"));
        modules
            .iter()
            .for_each(|module| assert!(run.err.contains(&format!("note: {module} is a submodule")), "{run}"));
        let left_out = listed.contains(".gitattributes");
        assert_eq!(run.err.contains("note: left out: "), left_out, "{run}");
        say(&format!(
            "{name}: {} files, {} links, {} submodules",
            listed.lines().count(),
            links.len(),
            modules.len()
        ));
    }
    world.git("work/host", &["-c", "core.autocrlf=true", "add", "-A", "-f"]);
    world.git("work/host", &["commit", "-q", "-m", "vendored"]);
    world.git("work", &["-c", "core.autocrlf=true", "clone", "-q", "host", "clone"]);
    for name in names {
        world.run(&["vendor", "check", &format!("clone/{name}")]).exits(0);
    }
}
