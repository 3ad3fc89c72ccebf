//! Where `apply` may write, and where it may not.

use crate::world::World;

const ADD: [&str; 2] = ["--add-arch", "120"];

fn apply<'a>(target: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    ["apply", target].into_iter().chain(ADD).chain(more.iter().copied()).collect()
}

/// An unpacked source distribution of mamba-ssm v2.2.4.
fn unpack(world: &World, folder: &str) {
    let archive = world.path("index/mamba-ssm/mamba_ssm-2.2.4.tar.gz").display().to_string();
    std::fs::create_dir_all(world.path(folder)).expect("folder");
    let status = std::process::Command::new("tar")
        .args(["xzf", &archive, "--strip-components", "1", "-C"])
        .arg(world.path(folder))
        .status();
    assert!(status.expect("tar").success());
}

#[test]
fn a_folder_in_use_is_left_alone() {
    let world = World::new();
    world.write("work/used/mine.txt", "mine");
    world
        .run_without_trace(&apply("v2.2.4", &["--into", "used"]))
        .exits(2)
        .says(&["used exists and holds something else", "hint: choose another folder: --into DIR"]);
    world.write("work/mamba-ssm-2.2.4/mine.txt", "mine");
    world.run_without_trace(&apply("v2.2.4", &[])).exits(2).says(&["exists and holds something else"]);
}

#[test]
fn an_empty_folder_is_taken() {
    let world = World::new();
    std::fs::create_dir(world.path("work/empty")).expect("folder");
    world.run(&apply("v2.2.4", &["--into", "empty"])).exits(0);
    assert!(world.text("work/empty/setup.py").contains("compute_120"));
}

#[cfg(unix)]
#[test]
fn the_folder_that_one_stands_in_stays_the_same_folder() {
    use std::os::unix::fs::MetadataExt;
    let world = World::new();
    std::fs::create_dir(world.path("work/empty")).expect("folder");
    let number = || std::fs::metadata(world.path("work/empty")).expect("folder").ino();
    let before = number();
    world.run_in("work/empty", &apply("v2.2.4", &["--into", "."])).exits(0);
    assert!(world.text("work/empty/setup.py").contains("compute_120"));
    assert_eq!(world.git("work/empty", &["status", "--short"]), "");
    assert_eq!(number(), before);
}

#[test]
fn a_file_where_a_folder_is_needed() {
    let world = World::new();
    world.write("work/file", "");
    for into in ["file", "file/below", "file/far/below"] {
        let run = world.run_without_trace(&apply("v2.2.4", &["--into", into])).exits(2);
        run.says(&[
            "error: cannot write ",
            into,
            "Not a directory",
            "hint: choose another folder: --into DIR",
        ]);
    }
}

#[test]
fn a_state_folder_that_cannot_be_written() {
    let mut world = World::new();
    unpack(&world, "work/plain");
    world.write("work/file", "");
    let state = world.path("work/file/state").display().to_string();
    world.set("MAMBAPATCH_STATE", &state);
    world
        .run_without_trace(&apply("./plain", &[]))
        .exits(2)
        .says(&["error: cannot write ", "nothing was changed"]);
}

#[test]
fn a_plain_folder_is_patched_in_place() {
    let world = World::new();
    unpack(&world, "work/plain");
    let before = world.read("work/plain/setup.py");
    let run = world.run(&apply("./plain", &[])).exits(0);
    run.says(&["done: files in ", "to take it back: patch -p1 -d ", "mamba-ssm v2.2.4"]).says(&[
        "  mambapatch apply mamba-ssm@v2.2.4 --add-arch 120 --source git --into mamba-ssm-2.2.4-git\n",
    ]);
    assert_ne!(world.read("work/plain/setup.py"), before);
    assert!(!world.path("work/plain/.git").exists());
    world.run_without_trace(&apply("./plain", &[])).exits(0).says(&["nothing to do"]);
}

#[test]
fn an_unpacked_folder_inside_someones_repository_is_plain() {
    let world = World::new();
    world.checkout("work/theirs", &[("notes.txt", b"theirs\n")]);
    unpack(&world, "work/theirs/sub");
    world.run(&apply("./theirs/sub", &[])).exits(0).says(&["done: files in "]);
    assert_eq!(world.git("work/theirs", &["branch", "--format=%(refname:short)"]), "main");
    assert_eq!(world.git("work/theirs", &["log", "--format=%s"]), "start");
    assert_eq!(world.git("work/theirs", &["status", "--short"]), "?? sub/");
}

#[test]
fn files_tracked_in_someones_repository_get_a_branch_there() {
    let world = World::new();
    unpack(&world, "work/theirs/vendor/mamba");
    world.checkout("work/theirs", &[("notes.txt", b"theirs\n")]);
    world.run(&apply("./theirs/vendor/mamba", &[])).exits(0).says(&["done: branch mambapatch/"]);
    let files = world.git("work/theirs", &["show", "--format=", "--name-only"]);
    assert_eq!(files, "vendor/mamba/setup.py");
}

#[test]
fn into_is_for_releases() {
    let world = World::new();
    unpack(&world, "work/plain");
    for _ in 0..2 {
        let run = world.run_without_trace(&apply("./plain", &["--into", "elsewhere"]));
        run.fails(&["is patched where it lies; --into is for releases", "hint: leave out --into"]);
        world.run(&apply("./plain", &[])).exits(0);
    }
}

#[test]
fn flags_that_exclude_each_other() {
    let world = World::new();
    let run = world.run_without_trace(&apply("v2.2.4", &["--no-commit", "--branch", "b"]));
    run.fails(&["'--no-commit' cannot be used with '--branch <NAME>'"]);
}

#[test]
fn from_inside_the_folder() {
    let world = World::new();
    world.clone_of_mamba("work/mamba", "v2.2.4");
    world.run_in("work/mamba", &apply(".", &[])).exits(0).says(&["branch mambapatch/v2.2.4+sm120"]);
    world.run_in("work/mamba/csrc", &apply("..", &["--dry-run"])).exits(0).says(&["nothing to do"]);
}

#[test]
fn an_archive_as_target() {
    let world = World::new();
    let archive = world.path("index/mamba-ssm/mamba_ssm-2.2.5.tar.gz").display().to_string();
    world.run(&apply(&archive, &[])).exits(0).says(&["done: branch mambapatch/v2.2.5+sm120 in "]);
    assert!(world.text("work/mamba-ssm-2.2.5/setup.py").contains("compute_120"));
}

/// A folder, plain or a checkout, with files of these names that all hold the same.
#[cfg(unix)]
fn named(names: &[&[u8]], is_checkout: bool) -> World {
    use std::os::unix::ffi::OsStrExt;
    let world = World::bare();
    world.write("work/ext/setup.py", "from torch.utils.cpp_extension import CUDAExtension\n");
    for name in names {
        let path = world.path("work/ext").join(std::ffi::OsStr::from_bytes(name));
        std::fs::write(path, "void f(bool x) { AT_CHECK(x, \"no\"); }\n").expect("write");
    }
    if is_checkout {
        world.checkout("work/ext", &[]);
    }
    world
}

#[cfg(unix)]
#[test]
fn a_name_that_cannot_be_written_stops_before_anything_is_shown() {
    const APPLY: [&str; 4] = ["apply", "./ext", "--torch", "2.11"];
    for is_checkout in [false, true] {
        let world = named(&[b"a.cu", b"b\nc.cu"], is_checkout);
        let run = world.run_without_trace(&APPLY);
        run.fails(&[
            r"error: `b\nc.cu` is refused: it is no portable name",
            r"hint: give it another name, also where it is named: mv -- $'b\nc.cu' b_c.cu",
        ]);
        let world = named(&[b"a.cu", b"no\nte.txt", b"\xff.cu"], is_checkout);
        let run = world.run(&APPLY).exits(0).shows(&["+++ b/a.cu"]);
        run.says(&[r"note: left out, as their names are no UTF-8: \xff.cu", "done: "]);
    }
}

#[cfg(unix)]
#[test]
fn vendoring_drops_no_file_in_silence() {
    let vendor = ["vendor", "add", "./ext", "--torch", "2.11", "--into", "theirs"];
    for is_checkout in [false, true] {
        let world = named(&[b"a.cu", b"\xff.cu"], is_checkout);
        world.run_without_trace(&vendor).fails(&[r"`\xff.cu` is refused: its name is no UTF-8"]);
        let world = named(&[b"a.cu", b"no\nte.txt"], is_checkout);
        world.run_without_trace(&vendor).fails(&[r"`no\nte.txt` is refused: it is no portable name"]);
    }
    let world = named(&[b"a.cu"], false);
    std::os::unix::fs::symlink("a.cu", world.path("work/ext/l.cu")).expect("link");
    world.run(&vendor).exits(0).says(&["note: left out: l.cu\n"]);
}

#[cfg(unix)]
#[test]
fn other_hard_links_are_told_of() {
    let world = named(&[b"a.cu"], false);
    std::fs::hard_link(world.path("work/ext/a.cu"), world.path("other.cu")).expect("link");
    let run = world.run(&["apply", "./ext", "--torch", "2.11"]).exits(0);
    run.says(&["note: other hard links keep the old content: those of a.cu\n"]);
    assert!(world.text("other.cu").contains("AT_CHECK"));
}
