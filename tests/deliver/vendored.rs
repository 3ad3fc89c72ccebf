//! `vendor add`, `check` and `diff`, on handwritten sources.

use std::fs;

use crate::world::World;

pub const ADD: [&str; 8] = ["vendor", "add", "v2.2.4", "--add-arch", "120", "--cuda", "13.0", "--into"];

/// Vendors mamba-ssm v2.2.4 into `work/host/mamba`, which git keeps.
pub fn vendored(world: &World) {
    world.checkout("work/host", &[("README.md", b"host\n")]);
    let add: Vec<&str> = ADD.into_iter().chain(["host/mamba"]).collect();
    world.run(&add).exits(0);
    kept(world);
}

/// Commits what lies in the host.
pub fn kept(world: &World) {
    world.git("work/host", &["add", "-A", "-f"]);
    world.git("work/host", &["commit", "-q", "-m", "vendored"]);
}

fn check(world: &World, code: i32) -> crate::world::Run {
    world.run(&["vendor", "check", "host/mamba"]).exits(code)
}

#[test]
fn the_tree_is_that_of_apply_and_a_record() {
    let world = World::new();
    vendored(&world);
    world.run(&["apply", "v2.2.4", "--add-arch", "120", "--cuda", "13.0", "-q"]).exits(0);
    let files = world.git("work/mamba-ssm-2.2.4", &["ls-files"]);
    for path in files.lines() {
        let (here, there) = (format!("work/host/mamba/{path}"), format!("work/mamba-ssm-2.2.4/{path}"));
        assert_eq!(world.read(&here), world.read(&there), "{path}");
    }
    let tracked = world.git("work/host", &["ls-files", "mamba"]);
    let own = [
        ".gitattributes",
        "mambapatch.lock",
        "patches/0001-mamba-ssm-gpu-arch.patch",
        "patches/0002-mamba-ssm-cuda-13.patch",
        "patches/files",
    ];
    assert_eq!(tracked.lines().count(), files.lines().count() + own.len(), "{tracked}");
    own.iter().for_each(|path| assert!(tracked.contains(&format!("mamba/{path}")), "{path}"));
    let lock = world.text("work/host/mamba/mambapatch.lock");
    let blob = |path: &str| world.git("work/host", &["rev-parse", &format!("HEAD:mamba/{path}")]);
    let before = world.git("mirrors/mamba-ssm", &["rev-parse", "v2.2.4:setup.py"]);
    let commit = world.git("mirrors/mamba-ssm", &["rev-parse", "v2.2.4"]);
    for said in [
        format!("commit = \"{commit}\"\n"),
        "url = \"https://github.com/state-spaces/mamba\"\n".into(),
        "[asked]\nadd-arch = [\"120\"]\ncuda = [\"13.0\"]\n".into(),
        "applied = [\"mamba-ssm/gpu-arch\", \"mamba-ssm/cuda-13\"]\ncontent = \"sha256:".into(),
        format!("path = \"setup.py\"\nbefore = \"{before}\"\nafter = \"{}\"\n", blob("setup.py")),
    ] {
        assert!(lock.contains(&said), "`{said}` is not in\n{lock}");
    }
    let patch = world.text("work/host/mamba/patches/0002-mamba-ssm-cuda-13.patch");
    for said in [
        "Description: Use no CUB names",
        "Upstream-Status: merged since v2.2.6\n",
        "+++ b/csrc/selective_scan/",
    ] {
        assert!(patch.contains(said), "`{said}` is not in\n{patch}");
    }
}

#[test]
fn a_clone_is_as_recorded_whatever_git_is_told_to_do_with_line_ends() {
    let mut world = World::new();
    world.write("home/.gitconfig", "[core]\n\tautocrlf = true\n[user]\n\tname = A\n\temail = a@host.test\n");
    let config = world.path("home/.gitconfig").display().to_string();
    world.set("GIT_CONFIG_GLOBAL", &config);
    let files: [(&str, &[u8]); 4] = [
        ("setup.py", crate::sources::mamba_setup().as_bytes()),
        (".gitattributes", b"* text=auto\n*.bin filter=lfs\n"),
        ("sub/.gitattributes", b"*.txt ident\n"),
        ("sub/a.txt", b"$Id$\r\nb\n"),
    ]
    .map(|(path, bytes)| (path, &*bytes.to_vec().leak()));
    world.checkout("work/up", &files);
    world.git("work/up", &["tag", "v2.2.4"]);
    world.checkout("work/host", &[("README.md", b"host\n")]);
    let add = ["vendor", "add", "v2.2.4", "--source", "./up", "--add-arch", "120", "--into", "host/mamba"];
    world.run(&add).exits(0).says(&["note: left out: .gitattributes, sub/.gitattributes\n"]);
    kept_as_is(&world);
    world.git("work", &["-c", "core.autocrlf=true", "clone", "-q", "host", "clone"]);
    let run = world.run(&["vendor", "check", "clone/mamba"]).exits(0);
    run.says(&["as recorded: mamba-ssm v2.2.4, "]);
}

/// Commits with the user's own line ends.
fn kept_as_is(world: &World) {
    for arguments in [&["add", "-A"][..], &["commit", "-q", "-m", "vendored"]] {
        let config = ["-c", "core.autocrlf=true"];
        world.git("work/host", &config.iter().chain(arguments).copied().collect::<Vec<_>>());
    }
}

#[test]
fn each_deviation_is_named() {
    let world = World::new();
    vendored(&world);
    check(&world, 0).says(&["as recorded: mamba-ssm v2.2.4, "]);
    let mut setup = world.read("work/host/mamba/setup.py");
    setup[100] ^= 1;
    world.write("work/host/mamba/setup.py", &setup);
    let run = check(&world, 1);
    assert_eq!(run.out, "setup.py  changed\n");
    run.says(&["mambapatch vendor diff host/mamba shows what differs"]);
    fs::remove_file(world.path("work/host/mamba/README.md")).expect("remove");
    world.write("work/host/mamba/more.py", "x\n");
    let cu = world.path("work/host/mamba/csrc/mamba_ssm.cu");
    #[cfg(unix)]
    fs::set_permissions(&cu, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("mode");
    let json = world.run(&["vendor", "check", "host/mamba", "--format", "json"]).exits(1).json();
    let found: Vec<(&str, &str)> = json["deviations"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (one["path"].as_str().expect("path"), one["what"].as_str().expect("what")))
        .collect();
    let wanted = [
        ("README.md", "missing"),
        ("csrc/mamba_ssm.cu", "mode changed"),
        ("setup.py", "changed"),
        ("more.py", "not recorded"),
    ];
    assert_eq!(found, wanted);
    assert_eq!(json["version"], "v2.2.4");
}

#[test]
fn the_record_guards_itself() {
    let world = World::new();
    vendored(&world);
    let restore = || world.git("work/host", &["checkout", "-q", "--", "."]);
    let patch = "work/host/mamba/patches/0001-mamba-ssm-gpu-arch.patch";
    world.write(patch, world.text(patch).replace("120", "121"));
    check(&world, 1).shows(&["patches/0001-mamba-ssm-gpu-arch.patch  changed\n"]);
    for command in [&["vendor", "diff", "host/mamba"][..], &["vendor", "update", "host/mamba"]] {
        world.run(command).exits(2).says(&["`patches/0001-mamba-ssm-gpu-arch.patch` was changed by hand"]);
    }
    restore();
    let files = "work/host/mamba/patches/files";
    world.write(files, world.text(files).replace("README.md", "README.txt"));
    check(&world, 1).shows(&["patches/files", "is not the list that the record speaks of"]);
    restore();
    let lock = "work/host/mamba/mambapatch.lock";
    let after = world.git("work/host", &["rev-parse", "HEAD:mamba/setup.py"]);
    world.write(lock, world.text(lock).replace(&after, &after.replace(['0', '1', '2'], "3")));
    check(&world, 1).shows(&["setup.py", "is not what the record says the patches made of it"]);
    world.write(lock, "format = 1\nwhat = 3\n");
    world.run(&["vendor", "check", "host/mamba"]).fails(&["mambapatch.lock cannot be read", "^"]);
    restore();
    world.run(&["vendor", "check", "host"]).fails(&["host has no branch with a mambapatch.lock"]);
    world.run(&["vendor", "check", "nowhere"]).fails(&["is no vendored tree"]);
}

#[test]
fn what_git_ignores_does_not_count() {
    let world = World::new();
    vendored(&world);
    world.write("work/host/.gitignore", "build/\n*.so\n");
    world.write("work/host/mamba/build/a.o", "x");
    world.write("work/host/mamba/a.so", "x");
    check(&world, 0);
    world.write("work/host/mamba/a.cu", "x");
    assert_eq!(check(&world, 1).out, "a.cu  not recorded\n");
    let add = ["vendor", "add", "v2.2.4", "--add-arch", "120", "--into", "host/so"];
    world.write("work/host/.gitignore", "*.cu\n");
    let run = world.run(&add).exits(0);
    run.says(&["  git add --force host/so\n", "1 of the files are ignored by a .gitignore"]);
}

#[test]
fn the_same_again_is_nothing_to_do_and_nothing_is_overwritten() {
    let world = World::new();
    vendored(&world);
    let add: Vec<&str> = ADD.into_iter().chain(["host/mamba"]).collect();
    world
        .run_without_trace(&add)
        .exits(0)
        .says(&["nothing to do: ", "/host/mamba holds mamba-ssm v2.2.4 already"]);
    let other = ["vendor", "add", "v2.2.5", "--add-arch", "120", "--into", "host/mamba"];
    let run = world.run_without_trace(&other).exits(2);
    run.says(&["host/mamba exists and holds something else", "mambapatch vendor update "]);
    world.write("work/host/mamba/setup.py", "mine\n");
    world.run_without_trace(&add).exits(2).says(&["holds something else"]);
}

#[test]
fn a_release_that_needs_no_patch_is_vendored_all_the_same() {
    let world = World::new();
    let run =
        world.run(&["vendor", "add", "v2.2.6", "--add-arch", "120", "--into", "deep/er/mamba"]).exits(0);
    run.says(&["done: mamba-ssm v2.2.6 in "]);
    assert!(world.text("work/deep/er/mamba/mambapatch.lock").contains("applied = []\n"));
    world.run(&["vendor", "check", "deep/er/mamba"]).exits(0);
    let json = world
        .run(&["vendor", "add", "v2.2.6", "--add-arch", "120", "--into", "x", "--format", "json"])
        .exits(0);
    assert_eq!(json.json()["result"]["done"], "folder");
}

#[cfg(unix)]
#[test]
fn kinds_of_files_are_handled_or_refused_by_name() {
    let world = World::new();
    let setup = crate::sources::mamba_setup();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
    let modules = "[submodule \"c\"]\n\tpath = csrc/cutlass\n\turl = https://host.test/cutlass\n";
    world.checkout(
        "work/up",
        &[
            ("setup.py", setup.as_bytes()),
            ("run.sh", b"#!/bin/sh\n"),
            ("weights.bin", pointer.as_bytes()),
            (".gitmodules", modules.as_bytes()),
            ("COPYING", b"terms\n"),
        ],
    );
    let head = world.git("work/up", &["rev-parse", "HEAD"]);
    world.git("work/up", &["update-index", "--chmod=+x", "run.sh"]);
    world.git("work/up", &["update-index", "--add", "--cacheinfo", &format!("160000,{head},csrc/cutlass")]);
    std::os::unix::fs::symlink("run.sh", world.path("work/up/inside")).expect("link");
    world.git("work/up", &["add", "inside"]);
    world.git("work/up", &["commit", "-q", "-m", "kinds"]);
    world.git("work/up", &["tag", "v2.2.4"]);
    world.checkout("work/host", &[("README.md", b"host\n")]);
    let add = ["vendor", "add", "v2.2.4", "--source", "./up", "--add-arch", "120", "--into", "host/mamba"];
    world.run(&add).exits(0).says(&[
        &format!("note: csrc/cutlass is a submodule and is not here: https://host.test/cutlass at {head} belongs there"),
        "note: pointers of git LFS, not what they point at: weights.bin",
    ]);
    let lock = world.text("work/host/mamba/mambapatch.lock");
    for said in [
        "licences = [\"COPYING\"]",
        "lfs-pointers = [\"weights.bin\"]",
        "[[submodule]]\npath = \"csrc/cutlass\"\n",
    ] {
        assert!(lock.contains(said), "`{said}` is not in\n{lock}");
    }
    let link = fs::read_link(world.path("work/host/mamba/inside")).expect("a link");
    assert_eq!(link.to_str(), Some("run.sh"));
    world.git("work/host", &["add", "-A", "-f"]);
    assert!(world.git("work/host", &["ls-files", "-s", "mamba/run.sh"]).starts_with("100755 "));
    // What a person puts into the place of the submodule is no deviation.
    world.write("work/host/mamba/csrc/cutlass/include/a.h", "x\n");
    world.run(&["vendor", "check", "host/mamba"]).exits(0);
    fs::remove_file(world.path("work/host/mamba/inside")).expect("remove");
    world.write("work/host/mamba/inside", "run.sh");
    assert_eq!(world.run(&["vendor", "check", "host/mamba"]).exits(1).out, "inside  changed\n");
    std::os::unix::fs::symlink("../../../etc/passwd", world.path("work/up/outside")).expect("link");
    world.git("work/up", &["add", "outside"]);
    world.git("work/up", &["commit", "-q", "-m", "out"]);
    let bad =
        ["vendor", "add", "mamba-ssm@main", "--source", "./up", "--add-arch", "120", "--into", "host/bad"];
    world.run(&bad).exits(2).says(&["`outside` is refused: it is a symbolic link to `../../../etc/passwd`"]);
    assert!(!world.path("work/host/bad").exists());
}

#[test]
fn a_place_of_the_record_is_refused() {
    let world = World::new();
    let setup = crate::sources::mamba_setup();
    world.checkout("work/up", &[("setup.py", setup.as_bytes()), ("Patches/a.diff", b"x\n")]);
    world.git("work/up", &["tag", "v2.2.4"]);
    let add = ["vendor", "add", "v2.2.4", "--source", "./up", "--add-arch", "120", "--into", "mamba"];
    let run = world.run(&add).exits(2);
    run.says(&["the upstream has a file `Patches/a.diff`", "hint: keep it as a branch: --as branch"]);
}

#[test]
fn a_source_distribution_can_be_vendored() {
    let world = World::without_git();
    world.run(&["vendor", "add", "v2.2.4", "--add-arch", "120", "--into", "mamba"]).exits(0);
    let lock = world.text("work/mamba/mambapatch.lock");
    assert!(lock.contains("archive = \"mamba_ssm-2.2.4.tar.gz\"\n") && !lock.contains("commit"), "{lock}");
    world.write("work/mamba/README.md", "mine\n");
    let diff = world.run(&["vendor", "diff", "mamba"]).exits(0);
    assert!(diff.out.contains("-small\n+mine\n"), "{diff}");
    let run = world.run(&["vendor", "update", "mamba", "v2.2.5"]).exits(0);
    run.shows(&["mamba-ssm v2.2.4 -> v2.2.5\n", "fits  mamba-ssm/gpu-arch", "yours  README.md  changed\n"]);
    assert_eq!(world.text("work/mamba/README.md"), "mine\n");
}

#[test]
fn local_work_is_shown_as_a_diff_that_git_takes() {
    let world = World::new();
    vendored(&world);
    let nothing = world.run_without_trace(&["vendor", "diff", "host/mamba"]).exits(0);
    assert_eq!(nothing.out, "");
    nothing.says(&["note: nothing differs from the record"]).omits(&["mirror"]);
    let setup = world.text("work/host/mamba/setup.py");
    world.write("work/host/mamba/setup.py", setup.replace("compute_120", "compute_120a"));
    world.write("work/host/mamba/new.py", "new\n");
    fs::remove_file(world.path("work/host/mamba/README.md")).expect("remove");
    let run = world.run(&["vendor", "diff", "host/mamba"]).exits(0);
    run.says(&["mamba-ssm v2.2.4 from the local mirror"]);
    let diff = world.run(&["vendor", "diff", "host/mamba", "-q"]).exits(0).out;
    world.git("work", &["clone", "-q", "host", "clone"]);
    world.git_with("work/clone", &["apply", "--directory=mamba", "-"], diff.as_bytes());
    for path in ["setup.py", "new.py"] {
        assert_eq!(
            world.read(&format!("work/clone/mamba/{path}")),
            world.read(&format!("work/host/mamba/{path}"))
        );
    }
    assert!(!world.path("work/clone/mamba/README.md").exists());
    assert!(diff.contains("+            cc_flag.append(\"arch=compute_120a,code=sm_120\")\n"), "{diff}");
    let json = world.run(&["vendor", "diff", "host/mamba", "--format", "json"]).exits(0).json();
    assert_eq!(json["diff"].as_str(), Some(diff.as_str()));
}
