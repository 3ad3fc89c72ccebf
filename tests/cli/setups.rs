//! setup.py as people leave it: half-done hand edits, other spellings, no setup.py at all.

use crate::sources::mamba_setup;
use crate::world::{Run, World};

/// Runs `COMMAND ./mamba --add-arch 120` on a setup.py.
fn on(world: &World, command: &str, setup: impl AsRef<[u8]>) -> Run {
    world.write("work/mamba/setup.py", setup);
    world.run_without_trace(&[command, "./mamba", "--add-arch", "120"])
}

/// The setup.py of v2.2.4 with lines before the guard of 11.8.
fn with(lines: &[&str]) -> String {
    let guard = "        if bare_metal_version >= Version(\"11.8\"):\n";
    let lines: String = lines.iter().map(|line| format!("        {line}\n")).collect();
    mamba_setup().replace(guard, &format!("{lines}{guard}"))
}

const FLAG: &str = "cc_flag.append(\"-gencode\")";
const VALUE: &str = "cc_flag.append(\"arch=compute_120,code=sm_120\")";

/// What a right `--add-arch 120` makes of v2.2.4.
fn right() -> String {
    let end = "sm_90\")\n";
    let lines = format!(
        "        if bare_metal_version >= Version(\"12.8\"):\n            {FLAG}\n            {VALUE}\n"
    );
    mamba_setup().replace(end, &format!("{end}{lines}"))
}

#[test]
fn half_done_hand_edits_are_repaired() {
    let world = World::bare();
    let sed = mamba_setup().replace("sm_90\")\n", &format!("sm_90\")\n    {FLAG}\n    {VALUE}\n"));
    let cases = [
        (with(&[VALUE]), "without `-gencode`"),
        (with(&["cc_flag.append(\"-gencode arch=compute_120,code=sm_120\")"]), "as one word"),
        (with(&[FLAG, VALUE, FLAG, VALUE]), "moves 120"),
        (with(&[FLAG, VALUE]), "moves 120"),
        (sed, "moves 120"),
    ];
    for (setup, how) in cases {
        on(&world, "check", &setup).exits(1).shows(&["changed", how]);
        world.run(&["apply", "./mamba", "--add-arch", "120"]).exits(0).says(&["done: files in "]);
        assert_eq!(world.text("work/mamba/setup.py"), right(), "{how}");
        world.run_without_trace(&["check", "./mamba", "--add-arch", "120"]).exits(0);
    }
}

#[test]
fn another_spelling_is_no_anchor() {
    let world = World::bare();
    let other = mamba_setup().replace("cc_flag.append(", "flags.extend_with(");
    let run = on(&world, "apply", &other);
    run.fails(&[
        "error: no gencode flag is added as expected in setup.py, at mamba-ssm mamba",
        "--> setup.py:",
        "note: looked for\n    cc_flag.append(\"-gencode\")\n    cc_flag.append(\"$GENCODE\")\n",
        "note: patch set mamba-ssm is tested through v2.3.2.post1",
        "hint: mambapatch explain mamba-ssm/gpu-arch/gencode",
    ]);
    world.run(&["explain", "mamba-ssm/gpu-arch/gencode"]).exits(0);
}

#[test]
fn a_flag_that_shares_its_line() {
    let world = World::bare();
    let shared = with(&[&format!("{FLAG}; {VALUE}; print(1)")]);
    let run = on(&world, "apply", &shared);
    assert!(matches!(run.code, 0 | 2), "{run}");
    if run.code == 2 {
        run.fails(&["setup.py", "hint: "]);
    }
}

#[test]
fn without_its_setup_py_a_tree_is_no_known_upstream() {
    let world = World::bare();
    let unknown = ["note: no known upstream: patched as any-extension"];
    on(&world, "apply", "").exits(0).says(&unknown);
    on(&world, "apply", "\n\n\n").exits(0).says(&unknown);
    std::fs::remove_file(world.path("work/mamba/setup.py")).expect("remove");
    world.run_without_trace(&["apply", "./mamba", "--add-arch", "120"]).exits(0).says(&unknown);
    std::fs::create_dir(world.path("work/mamba/setup.py")).expect("folder");
    world.run_without_trace(&["apply", "./mamba", "--add-arch", "120"]).exits(0).says(&unknown);
    world.run_without_trace(&["apply", ".", "--add-arch", "120"]).exits(0).says(&unknown);
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_tree_is_not_followed() {
    let world = World::bare();
    world.write("outside.py", mamba_setup());
    world.write("work/mamba/README.md", "");
    std::os::unix::fs::symlink(world.path("outside.py"), world.path("work/mamba/setup.py")).expect("link");
    let unknown = ["no known upstream", "nothing in mamba is CUDA"];
    world.run_without_trace(&["apply", "./mamba", "--add-arch", "120"]).exits(0).says(&unknown);
    world.git("work/mamba", &["init", "-q"]);
    world.git("work/mamba", &["add", "-A"]);
    world.git("work/mamba", &["commit", "-q", "-m", "link"]);
    world.run_without_trace(&["apply", "./mamba", "--add-arch", "120"]).exits(0).says(&unknown);
}

#[test]
fn odd_bytes_stay_as_they_are() {
    let world = World::bare();
    let mut latin_1 = mamba_setup().into_bytes();
    latin_1.extend(b"# caf\xe9\n");
    let nul = format!("{}# nul \0 here\n", mamba_setup());
    for bytes in [latin_1, nul.into_bytes()] {
        on(&world, "diff", &bytes).exits(0);
        world.run(&["apply", "./mamba", "--add-arch", "120"]).exits(0);
        let tail = &bytes[bytes.len() - 8..];
        assert!(world.read("work/mamba/setup.py").ends_with(tail));
        assert!(world.read("work/mamba/setup.py").starts_with(&bytes[..1000]));
    }
}

#[test]
fn a_setup_py_that_is_no_python() {
    let world = World::bare();
    for setup in ["PACKAGE_NAME = \"mamba_ssm\"\n", "PACKAGE_NAME = \"mamba_ssm\"\n<<<<<<< HEAD\n((((((\n"] {
        on(&world, "apply", setup).fails(&["setup.py", "note: looked for"]);
    }
    let merge = mamba_setup().replace("        cc_flag.append(\"-gencode\")\n        cc_flag.append(\"arch=compute_80", "<<<<<<< ours\n=======\n>>>>>>> theirs\n        cc_flag.append(\"-gencode\")\n        cc_flag.append(\"arch=compute_80");
    let run = on(&world, "diff", merge);
    assert!(matches!(run.code, 0 | 2), "{run}");
}

#[test]
fn a_file_that_is_far_too_large() {
    let world = World::bare();
    let large = mamba_setup() + &"x = [1, 2, 3]\n".repeat(1_500_000);
    let run = on(&world, "apply", large);
    run.fails(&["setup.py has 21 MB and is not parsed", "hint: "]);
}

#[test]
fn deep_nesting_does_not_overflow() {
    let world = World::bare();
    let deep = format!("{}x = {}{}\n", mamba_setup(), "(".repeat(20_000), ")".repeat(20_000));
    let run = on(&world, "diff", deep);
    assert!(matches!(run.code, 0 | 2), "{run}");
}
