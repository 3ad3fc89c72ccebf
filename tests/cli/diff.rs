//! `diff`: standard output is a patch and nothing else.

use std::io::Read;
use std::process::Stdio;

use crate::sources::mamba_setup;
use crate::world::World;

const ADD: [&str; 4] = ["diff", "./mamba", "--add-arch", "120"];

/// The bytes of a run's standard output.
fn patch(world: &World, arguments: &[&str]) -> Vec<u8> {
    let output = world.command("work", arguments).output().expect("run");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// git takes the patch of a setup.py, and the result is the file with three lines more.
fn git_takes_it(name: &str, bytes: &[u8]) {
    let world = World::bare();
    world.checkout("work/mamba", &[("setup.py", bytes), (".gitattributes", b"* -text\n")]);
    world.git_with("work/mamba", &["apply"], &patch(&world, &ADD));
    let after = world.read("work/mamba/setup.py");
    let newline = if name == "CRLF" { 2 } else { 1 };
    let lines = [
        "        if bare_metal_version >= Version(\"12.8\"):",
        "            cc_flag.append(\"-gencode\")",
        "            cc_flag.append(\"arch=compute_120,code=sm_120\")",
    ];
    let added: usize = lines.iter().map(|line| line.len() + newline).sum();
    assert_eq!(after.len(), bytes.len() + added, "{name}");
    world.run_without_trace(&ADD).exits(0).says(&["nothing to do"]);
}

#[test]
fn git_takes_the_patch_whatever_the_line_ends() {
    let text = mamba_setup();
    git_takes_it("plain", text.as_bytes());
    git_takes_it("CRLF", text.replace('\n', "\r\n").as_bytes());
    git_takes_it("no final newline", text.trim_end().as_bytes());
    git_takes_it("byte-order mark", format!("\u{feff}{text}").as_bytes());
}

/// The setup.py with a letter of Latin-1 at the lines that change.
fn latin_1() -> Vec<u8> {
    let text = mamba_setup().replace("# the flags", "# caf\u{e9}, the flags");
    text.chars().map(|letter| u8::try_from(u32::from(letter)).expect("Latin-1")).collect()
}

#[test]
fn git_takes_the_patch_of_latin_1() {
    git_takes_it("Latin-1", &latin_1());
}

#[test]
fn a_release_is_only_shown() {
    let world = World::new();
    let run = world.run_without_trace(&["diff", "v2.2.4", "--add-arch", "120"]).exits(0);
    assert!(
        run.out.starts_with("diff --git a/setup.py b/setup.py\n--- a/setup.py\n+++ b/setup.py\n@@ -"),
        "{run}"
    );
    run.says(&["outcome\n", "effect\n", "  12.8  53 62 70 72 80 87 90      … +120\n"])
        .says(&["mamba-ssm/cuda-13 (--cuda)"])
        .omits(&["@@"]);
}

#[test]
fn what_goes_is_marked_too() {
    let world = World::new();
    let run = world.run(&["diff", "v2.2.4", "--add-arch", "120", "--cuda", "13.0"]).exits(0);
    run.says(&["  13.0  -53! -62! -70! -72! 80 87 90  80 87 90 +120\n", "the same"]);
}

#[test]
fn the_exit_code_tells_whether_something_would_change() {
    let world = World::new();
    world.run(&["diff", "v2.2.4", "--add-arch", "120", "--exit-code"]).exits(1).shows(&["+++ b/setup.py"]);
    let nothing = world.run(&["diff", "v2.2.6", "--add-arch", "120", "--exit-code"]).exits(0);
    assert_eq!(nothing.out, "");
}

#[test]
fn colours_only_when_asked_for() {
    let mut world = World::new();
    let show = ["diff", "v2.2.4", "--add-arch", "120"];
    let plain = world.run(&show).exits(0);
    assert!(!plain.out.contains('\x1b') && !plain.err.contains('\x1b'), "{plain}");
    let always: Vec<&str> = show.into_iter().chain(["--color", "always"]).collect();
    let coloured = world.run(&always).exits(0);
    assert!(coloured.out.contains("\x1b[") && coloured.err.contains("\x1b["), "{coloured}");
    let never: Vec<&str> = show.into_iter().chain(["--color", "never"]).collect();
    assert_eq!(world.run(&never).exits(0).out, plain.out);
    let bad: Vec<&str> = show.into_iter().chain(["--color", "pink"]).collect();
    world.run(&bad).fails(&["pink", "always"]);
    world.set("CLICOLOR_FORCE", "1");
    assert!(world.run(&show).exits(0).out.contains('\x1b'));
}

#[test]
fn no_pager_on_a_pipe() {
    let mut world = World::new();
    let marker = world.path("paged").display().to_string();
    world.set("PAGER", &format!("touch {marker}; cat"));
    for command in
        [&["diff", "v2.2.4", "--add-arch", "120", "--color", "always"][..], &["explain", "gpu-arch"]]
    {
        world.run_without_trace(command).exits(0);
    }
}

#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    let mut world = World::new();
    let folder = world.path("many").display().to_string();
    // Far more than a pipe holds.
    let why = "because of this and that\\n".repeat(20_000);
    world.write("many/mamba-ssm/gpu-arch.toml", format!(
        "title = \"t\"\nwhy = \"{why}\"\nreferences = []\nupstream-status = \"pending\"\nwhen = \"arch\"\n[[gencode]]\nfile = \"setup.py\"\nentry = '''\ncc_flag.append(\"-gencode\")\ncc_flag.append(\"$GENCODE\")\n'''\n"
    ));
    world.set("RUST_BACKTRACE", "1");
    for command in [
        &["explain", "mamba-ssm/gpu-arch", "--patchsets", &folder][..],
        &["explain", "gpu-arch", "--patchsets", &folder, "--format", "json"],
    ] {
        let mut child = world
            .command("work", command)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("spawn");
        let mut first = [0; 10];
        child.stdout.take().expect("output").read_exact(&mut first).expect("read");
        let run = crate::world::Run::of(child.wait_with_output().expect("wait")).exits(0);
        assert_eq!(run.err, "");
    }
}

#[test]
fn quiet_leaves_the_answer() {
    let world = World::new();
    let run = world.run(&["diff", "v2.2.4", "--add-arch", "120", "-q"]).exits(0).shows(&["+++ b/setup.py"]);
    assert_eq!(run.err, "");
}
