//! `vendor update`, on handwritten sources: with and without work of a person, and killed.

use std::collections::BTreeMap;
use std::fs;

use crate::vendored::{kept, vendored};
use crate::world::{Run, World};

const TAGS: [&str; 3] = ["v2.2.5", "v2.2.6", "v2.3.2.post1"];

pub fn update(world: &World, more: &[&str], code: i32) -> Run {
    let arguments: Vec<&str> =
        ["vendor", "update", "host/mamba"].into_iter().chain(more.iter().copied()).collect();
    world.run(&arguments).exits(code)
}

/// Every file of a folder.
pub fn files(world: &World, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let root = world.path(folder);
    let mut found = BTreeMap::new();
    let mut open = vec![root.clone()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(&root).expect("below").display().to_string();
            match path.is_dir() && !path.is_symlink() {
                true => open.push(path),
                false => drop(found.insert(name, fs::read(&path).unwrap_or_default())),
            }
        }
    }
    found
}

/// A fresh tree of a release.
pub fn fresh(world: &World, tag: &str) -> BTreeMap<String, Vec<u8>> {
    let into = format!("fresh-{tag}");
    let add = ["vendor", "add", tag, "--add-arch", "120", "--cuda", "13.0", "--into", &into, "-q"];
    world.run(&add).exits(0);
    files(world, &format!("work/{into}"))
}

#[test]
fn without_local_work_an_update_is_a_fresh_tree() {
    let world = World::new();
    vendored(&world);
    for tag in TAGS {
        update(&world, &[tag], 0).says(&["done: ", &format!("/host/mamba is mamba-ssm {tag}, patched\n")]);
        assert_eq!(files(&world, "work/host/mamba"), fresh(&world, tag), "{tag}");
        world.run(&["vendor", "check", "host/mamba"]).exits(0);
    }
    let again = world.run_without_trace(&["vendor", "update", "host/mamba", TAGS[2]]).exits(0);
    again.says(&["nothing to do: ", "is mamba-ssm v2.3.2.post1 as recorded"]);
    update(&world, &["v2.2.4"], 0).shows(&["fits  mamba-ssm/gpu-arch"]);
    assert_eq!(files(&world, "work/host/mamba"), fresh(&world, "v2.2.4"), "and back");
}

#[test]
fn each_patch_fits_or_is_obsolete() {
    let world = World::new();
    vendored(&world);
    let run = update(&world, &[], 0);
    run.shows(&[
        "mamba-ssm v2.2.4 -> v2.3.2.post1\n",
        "obsolete  mamba-ssm/gpu-arch  merged since v2.2.6\n",
        "obsolete  mamba-ssm/cuda-13   merged since v2.2.6\n",
    ])
    .says(&["note: no patch is needed any longer"]);
    assert!(!world.path("work/host/mamba/patches/0001-mamba-ssm-gpu-arch.patch").exists());
    let json = update(&world, &["v2.2.5", "--format", "json"], 0).json();
    assert_eq!((&json["from"], &json["to"]), (&"v2.3.2.post1".into(), &"v2.2.5".into()));
    assert_eq!(json["patches"][0], serde_json::json!({ "id": "mamba-ssm/gpu-arch", "standing": "fits" }));
    assert_eq!(json["done"], "updated");
}

#[test]
fn flags_stand_in_the_place_of_the_recorded_ones() {
    let world = World::new();
    vendored(&world);
    update(&world, &["v2.2.4", "--add-arch", "121"], 0);
    let lock = world.text("work/host/mamba/mambapatch.lock");
    assert!(
        lock.contains("[asked]\nadd-arch = [\"121\"]\n\n[patches]\napplied = [\"mamba-ssm/gpu-arch\"]\n"),
        "{lock}"
    );
    update(&world, &["v2.2.5", "--skip-patch", "gpu-arch", "--accept-advisory"], 0);
    let lock = world.text("work/host/mamba/mambapatch.lock");
    assert!(
        lock.contains("skip-patch = [\"gpu-arch\"]\naccept-advisory = true\n\n[patches]\napplied = []\n"),
        "{lock}"
    );
    assert!(!world.text("work/host/mamba/setup.py").contains("compute_121"));
}

/// A text edited, or a panic: an edit that finds nothing tests nothing.
fn edit(world: &World, path: &str, (from, to): (&str, &str)) {
    let full = format!("work/host/mamba/{path}");
    let text = world.text(&full);
    assert!(text.contains(from), "`{from}` is not in {path}");
    world.write(&full, text.replacen(from, to, 1));
}

#[test]
fn local_work_comes_along() {
    for tag in TAGS {
        let world = World::new();
        vendored(&world);
        // Beside a patched hunk, in another file, a deleted and a renamed file, a new one, and a mode.
        edit(&world, "setup.py", ("import os\n", "import os\nimport mine\n"));
        edit(&world, "csrc/mamba_ssm.cu", ("kernel", "my_kernel"));
        fs::remove_file(world.path("work/host/mamba/README.md")).expect("remove");
        let scan = "work/host/mamba/csrc/selective_scan/reverse_scan.cuh";
        fs::rename(world.path(scan), world.path("work/host/mamba/csrc/scan.cuh")).expect("rename");
        world.write("work/host/mamba/more/mine.py", "mine\n");
        #[cfg(unix)]
        fs::set_permissions(
            world.path("work/host/mamba/NEWS"),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .expect("mode");
        let run = update(&world, &[tag], 0);
        let run =
            run.shows(&["yours  README.md", "missing\n", "yours  more/mine.py", "new\n", "yours  setup.py"]);
        assert!(!run.out.contains("conflict"), "{tag}\n{run}");
        let mut wanted = fresh(&world, tag);
        let setup = String::from_utf8(wanted["setup.py"].clone()).expect("text");
        wanted.insert("setup.py".into(), setup.replacen("import os\n", "import os\nimport mine\n", 1).into());
        wanted.insert("csrc/mamba_ssm.cu".into(), b"__global__ void my_kernel() {}\n".to_vec());
        wanted.remove("README.md");
        let scan = wanted.remove("csrc/selective_scan/reverse_scan.cuh").expect("scan");
        wanted.insert("csrc/scan.cuh".into(), scan);
        wanted.insert("more/mine.py".into(), b"mine\n".to_vec());
        assert_eq!(files(&world, "work/host/mamba"), wanted, "{tag}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(world.path("work/host/mamba/NEWS")).expect("NEWS").permissions().mode();
            assert_eq!(mode & 0o111, 0o111, "{tag}");
        }
    }
}

#[test]
fn an_edit_in_a_patched_hunk_stays_where_the_hunk_stays() {
    let world = World::new();
    vendored(&world);
    edit(&world, "setup.py", ("arch=compute_120,code=sm_120", "arch=compute_120a,code=sm_120a"));
    update(&world, &["v2.2.4", "--add-arch", "120", "--cuda", "13.0", "--patch", "offline-wheel"], 0)
        .shows(&["yours  setup.py  changed\n"]);
    let setup = world.text("work/host/mamba/setup.py");
    assert!(setup.contains("code=sm_120a") && setup.contains("URLError"), "{setup}");
}

#[test]
fn a_real_conflict_is_left_as_a_file_and_nothing_is_lost() {
    let world = World::new();
    vendored(&world);
    // Upstream has its own 120 there since v2.2.6, and an own block before: the patched hunk is another one.
    edit(&world, "setup.py", ("arch=compute_120,code=sm_120", "arch=compute_120a,code=sm_120a"));
    edit(&world, "csrc/mamba_ssm.cu", ("kernel", "my_kernel"));
    let run = update(&world, &["v2.2.6"], 1);
    run.shows(&[
        "conflict  setup.py           both sides changed the same lines",
        "yours     csrc/mamba_ssm.cu  changed\n",
    ])
    .says(&["conflict: 1 file waits for your decision; nothing of yours was lost"]);
    let setup = world.text("work/host/mamba/setup.py");
    for said in ["<<<<<<< yours\n", "code=sm_120a", "=======\n", ">>>>>>> mamba-ssm v2.2.6, patched\n"] {
        assert!(setup.contains(said), "`{said}` is not in\n{setup}");
    }
    assert!(world.text("work/host/mamba/mambapatch.lock").contains("reference = \"v2.2.6\""));
    let check = world.run(&["vendor", "check", "host/mamba"]).exits(1);
    check.shows(&["setup.py           has conflict marks\n"]);
    let again = world.run(&["vendor", "update", "host/mamba", "v2.3.2.post1"]).exits(2);
    again.says(&["error: the marks of a conflict stand in setup.py", "hint: settle them"]);
    let fresh = fresh(&world, "v2.2.6");
    world.write("work/host/mamba/setup.py", &fresh["setup.py"]);
    update(&world, &["v2.3.2.post1"], 0).shows(&["yours  csrc/mamba_ssm.cu  changed\n"]);
}

#[test]
fn a_file_that_one_side_removed_is_not_lost() {
    let world = World::new();
    let setup = crate::sources::mamba_setup();
    world.checkout(
        "work/up",
        &[("setup.py", setup.as_bytes()), ("a.py", b"1\n2\n"), ("b.py", b"1\n2\n"), ("c.bin", b"1\0")],
    );
    world.git("work/up", &["tag", "v2.2.4"]);
    world.git("work/up", &["rm", "-q", "a.py"]);
    world.write("work/up/b.py", "1\nnew\n");
    world.write("work/up/c.bin", b"2\0");
    world.git("work/up", &["commit", "-q", "-a", "-m", "next"]);
    world.git("work/up", &["tag", "v2.2.5"]);
    world.checkout("work/host", &[("README.md", b"host\n")]);
    let add = ["vendor", "add", "v2.2.4", "--source", "./up", "--add-arch", "120", "--into", "host/mamba"];
    world.run(&add).exits(0);
    world.write("work/host/mamba/a.py", "1\nmine\n");
    fs::remove_file(world.path("work/host/mamba/b.py")).expect("remove");
    world.write("work/host/mamba/c.bin", b"3\0");
    let run = update(&world, &["v2.2.5", "--source", "./up"], 1);
    run.shows(&[
        "conflict  a.py   you changed it and upstream has it no longer; yours stays\n",
        "conflict  b.py   you removed it and it changed; it is here again\n",
        "conflict  c.bin  it is no text, and both sides changed it; yours stays; see c.bin.new\n",
    ]);
    assert_eq!(world.text("work/host/mamba/a.py"), "1\nmine\n");
    assert_eq!(world.text("work/host/mamba/b.py"), "1\nnew\n");
    assert_eq!(
        (world.read("work/host/mamba/c.bin"), world.read("work/host/mamba/c.bin.new")),
        (b"3\0".to_vec(), b"2\0".to_vec())
    );
    let json = world.run(&["vendor", "check", "host/mamba", "--format", "json"]).exits(1).json();
    assert_eq!(json["deviations"].as_array().map(Vec::len), Some(3), "a.py, c.bin, c.bin.new: {json}");
}

#[test]
fn a_lost_anchor_stops_before_anything_is_written() {
    let world = World::new();
    let setup = crate::sources::mamba_setup();
    world.checkout("work/up", &[("setup.py", setup.as_bytes())]);
    world.git("work/up", &["tag", "v2.2.4"]);
    world.write("work/up/setup.py", "PACKAGE_NAME = \"mamba_ssm\"\n\nprint(\"by other means\")\n");
    world.git("work/up", &["commit", "-q", "-a", "-m", "next"]);
    world.git("work/up", &["tag", "v2.2.5"]);
    world.checkout("work/host", &[("README.md", b"host\n")]);
    let add = ["vendor", "add", "v2.2.4", "--source", "./up", "--add-arch", "120", "--into", "host/mamba"];
    world.run(&add).exits(0);
    kept(&world);
    let run = update(&world, &["v2.2.5", "--source", "./up"], 2);
    run.shows(&["lost  mamba-ssm/gpu-arch  mambapatch explain mamba-ssm/gpu-arch\n"]).says(&["error: "]);
    assert_eq!(world.git("work/host", &["status", "--short"]), "");
    update(&world, &["v2.2.5", "--source", "./up", "--skip-patch", "gpu-arch"], 0).says(&["done: "]);
}

#[test]
fn who_stands_in_the_folder_is_told() {
    let world = World::new();
    vendored(&world);
    let run = world.run_in("work/host/mamba", &["vendor", "update", ".", "v2.2.5"]).exits(0);
    run.says(&["done: ", "note: your shell stands in the old folder: cd \"$PWD\"\n"]);
    world.run_in("work/host/mamba/csrc", &["vendor", "check", ".."]).exits(0);
}

#[test]
fn a_tree_of_no_known_upstream_follows_its_own_repository() {
    let world = World::new();
    let setup = "from setuptools import setup\nfrom torch.utils.cpp_extension import CUDAExtension\nsetup(name='own', \
                 ext_modules=[CUDAExtension('own', ['own.cpp'])])\n";
    world.checkout(
        "work/own",
        &[("setup.py", setup.as_bytes()), ("own.cpp", b"void f(int x) { AT_CHECK(x); }\n")],
    );
    world.checkout("work/host", &[("README.md", b"host\n")]);
    let add = ["vendor", "add", "./own", "--torch", "2.5", "--patch", "at-check", "--into", "host/own"];
    world.run(&add).exits(0).says(&["patched as any-extension"]);
    kept(&world);
    let lock = world.text("work/host/own/mambapatch.lock");
    assert!(lock.contains("id = \"any-extension\"\n") && lock.contains("url = \""), "{lock}");
    assert!(world.text("work/host/own/own.cpp").contains("TORCH_CHECK(x)"));
    world.write("work/own/own.cpp", "void f(int x) { AT_CHECK(x); }\nvoid g();\n");
    world.git("work/own", &["commit", "-q", "-a", "-m", "more"]);
    world.write("work/host/own/setup.py", format!("{setup}# mine\n"));
    let run = world.run(&["vendor", "update", "host/own", "--source", "./own"]).exits(0);
    run.shows(&["fits", "torch-api/at-check", "yours  setup.py  changed\n"]);
    assert_eq!(world.text("work/host/own/own.cpp"), "void f(int x) { TORCH_CHECK(x); }\nvoid g();\n");
    world.write("work/own/own.cpp", "dirty\n");
    let dirty = world.run(&["vendor", "add", "./own", "--patch", "at-check", "--into", "host/two"]).exits(2);
    dirty.says(&["these files have changes that are not committed: own.cpp"]);
}

#[cfg(unix)]
#[test]
fn killed_at_any_moment_the_tree_is_the_old_one_or_the_new_one() {
    use std::time::Instant;
    let world = World::new();
    vendored(&world);
    world.write("work/host/mamba/mine.py", "mine\n");
    kept(&world);
    let old = files(&world, "work/host/mamba");
    let began = Instant::now();
    update(&world, &["v2.2.5"], 0);
    let whole = began.elapsed();
    let new = files(&world, "work/host/mamba");
    assert_ne!(old, new);
    let (mut stayed, mut became) = (0, 0);
    for round in 0..24_u32 {
        world.git("work/host", &["checkout", "-q", "--", "mamba"]);
        world.git("work/host", &["clean", "-q", "-f", "-d", "-x"]);
        assert_eq!(files(&world, "work/host/mamba"), old);
        let mut child = world.command("work", &["vendor", "update", "host/mamba", "v2.2.5", "-q"]);
        let mut child = child
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("spawn");
        std::thread::sleep(whole * round / 18);
        let _ = child.kill();
        child.wait().expect("wait");
        let now = files(&world, "work/host/mamba");
        assert!(now == old || now == new, "round {round}: a mixture of {} files", now.len());
        if now == old {
            stayed += 1
        } else {
            became += 1
        }
        update(&world, &["v2.2.5"], 0);
        assert_eq!(files(&world, "work/host/mamba"), new, "round {round}: the next run completes");
        let beside = fs::read_dir(world.path("work/host")).expect("list").flatten().count();
        assert_eq!(beside, 3, "round {round}: .git, README.md, mamba");
    }
    crate::harness::say(&format!("killed 24 times: {stayed} times the old tree, {became} times the new one"));
    assert!(stayed > 0, "no kill came early");
}

#[test]
fn a_look_does_not_disturb_a_run_at_work() {
    let world = World::new();
    vendored(&world);
    // As a run leaves it that is still writing.
    world.write("work/host/.mamba.mambapatch-new/setup.py", "half");
    world.run(&["vendor", "check", "host/mamba"]).exits(0);
    assert!(world.path("work/host/.mamba.mambapatch-new/setup.py").exists());
    let again = world.run(&["vendor", "update", "host/mamba", "v2.2.4"]).exits(0);
    again.says(&["nothing to do: "]);
    assert!(!world.path("work/host/.mamba.mambapatch-new").exists(), "what a killed run left goes");
}
