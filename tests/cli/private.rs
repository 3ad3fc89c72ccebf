//! Patch sets of one's own.

use crate::world::World;

const SETUP: &str = "from setuptools import setup\nNAME = 'tiny'\nold(1)\nsetup(name=NAME)\n";
const UPSTREAM: &str = r#"
url = "https://host.invalid/tiny"
distribution = "tiny-ext"
module = "tiny"
tag-prefix = "v"
floor = "11.8"
tested-through = "1.0"
patches = ["call"]
[[recognise]]
file = "setup.py"
pattern = "NAME = 'tiny'"
"#;

fn patch(ops: &str) -> String {
    format!(
        "title = \"Call the new one\"\nwhy = \"The old one is gone.\"\nreferences = [\"tiny#1\"]\nupstream-status = \"pending\"\n{ops}"
    )
}

/// A world with a folder `work/tiny` and a set for it.
fn tiny(ops: &str) -> World {
    let world = World::bare();
    world.write("work/tiny/setup.py", SETUP);
    world.write("sets/tiny/upstream.toml", UPSTREAM);
    world.write("sets/tiny/call.toml", patch(ops));
    world
}

fn with_sets<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    arguments.iter().copied().chain(["--patchsets", "../sets"]).collect()
}

const REWRITE: &str = "[[rewrite]]\nfile = \"setup.py\"\nfind = [\"old($X)\"]\nreplace = \"new($X)\"\n";

#[test]
fn a_new_upstream_from_end_to_end() {
    let world = tiny(REWRITE);
    world.run(&with_sets(&["list"])).exits(0).shows(&["tiny", "mamba-ssm"]);
    world.run(&with_sets(&["explain", "tiny/call"])).exits(0).shows(&["old($X)", "by --patch alone"]);
    world.run(&with_sets(&["check", "./tiny", "--patch", "call"])).exits(1).shows(&["rewrites 1 place"]);
    let diff = world.run_without_trace(&with_sets(&["diff", "./tiny", "--patch", "call"])).exits(0);
    diff.shows(&["-old(1)\n+new(1)\n"]);
    world.run(&with_sets(&["apply", "./tiny", "--patch", "call"])).exits(0).says(&["done: files in "]);
    assert_eq!(world.text("work/tiny/setup.py"), SETUP.replace("old", "new"));
    world.run(&with_sets(&["apply", "./tiny", "--patch", "tiny/call"])).exits(0).says(&["nothing to do"]);
    world
        .run_without_trace(&["check", "./tiny", "--patch", "call"])
        .fails(&["any-extension has no patch `call`"]);
}

#[test]
fn hints_name_the_folder_of_the_sets() {
    let world = tiny(&format!("{REWRITE}expect = \"2\"\n"));
    let run = world.run_without_trace(&with_sets(&["check", "./tiny", "--patch", "call"]));
    let hint = run.err.lines().find_map(|line| line.strip_prefix("hint: mambapatch ")).expect("a hint");
    assert_eq!(hint, "explain tiny/call/rewrite --patchsets ../sets");
    let typed: Vec<&str> = hint.split(' ').collect();
    world.run(&typed).exits(0).shows(&["tiny/call/rewrite"]);
    world
        .run(&with_sets(&["explain", "cal"]))
        .fails(&["hint: mambapatch explain call --patchsets ../sets\n"]);
}

#[test]
fn what_to_type_next_names_the_folder_of_the_sets() {
    let world = World::new();
    world.write("sets/tiny/upstream.toml", UPSTREAM);
    world.write("sets/tiny/call.toml", patch(REWRITE));
    let run = world.run(&with_sets(&["apply", "v2.2.4", "--add-arch", "120"])).exits(0);
    let line = run
        .err
        .lines()
        .find(|line| line.starts_with("  mambapatch apply causal-conv1d"))
        .expect("the partner");
    assert!(line.ends_with(" --add-arch 120 --patchsets ../sets"), "{line}");
}

#[test]
fn a_release_of_a_new_upstream() {
    let world = tiny(REWRITE);
    world.checkout("mirrors/tiny-ext", &[("setup.py", SETUP.as_bytes())]);
    world.git("mirrors/tiny-ext", &["tag", "v1.0"]);
    let run = world.run(&with_sets(&["apply", "tiny@v1.0", "--patch", "call"])).exits(0);
    run.says(&["done: branch mambapatch/v1.0+call in "]);
    assert_eq!(world.git("work/tiny-1.0", &["log", "-1", "--format=%s"]), "Call the new one");
    world.run(&with_sets(&["matrix", "tiny", "--patch", "call"])).exits(0).shows(&["v1.0     needed"]);
}

#[test]
fn sets_of_the_configuration_folder() {
    let world = tiny(REWRITE);
    world.write("config/patchsets/tiny/upstream.toml", UPSTREAM);
    world.write("config/patchsets/tiny/call.toml", patch(REWRITE));
    let run = world.run(&["check", "./tiny", "--patch", "call"]).exits(1);
    run.shows(&["tiny/call/rewrite"]).omits(&["comes from"]);
}

#[test]
fn one_that_replaces_a_shipped_patch_is_said() {
    let world = World::new();
    let why = "title = \"Mine\"\nwhy = \"Because.\"\nreferences = []\nupstream-status = \"inappropriate\"\nwhen = \"arch\"\n";
    let op = "[[gencode]]\nfile = \"setup.py\"\nentry = '''\ncc_flag.append(\"-gencode\")\ncc_flag.append(\"$GENCODE\")\n'''\nfrom = 'bare_metal_version >= Version(\"$FIRST\")'\nuntil = 'bare_metal_version <= Version(\"$LAST\")'\n";
    world.write("sets/mamba-ssm/gpu-arch.toml", format!("{why}{op}"));
    let run = world.run(&with_sets(&["diff", "v2.2.4", "--add-arch", "120"])).exits(0);
    run.shows(&["compute_120"]).says(&["note: mamba-ssm/gpu-arch comes from ../sets"]);
    world.run(&with_sets(&["explain", "mamba-ssm/gpu-arch"])).exits(0).shows(&[
        "Mine",
        "comes from",
        "../sets",
    ]);
}

#[test]
fn mistakes_are_shown_with_line_and_caret() {
    let cases = [
        (
            REWRITE.replace("find", "fnid"),
            &["unknown field `fnid`", "expected one of ", "`find`", "^", "call.toml"][..],
        ),
        (REWRITE.replace("= \"setup.py\"", "= setup.py"), &["call.toml", "^", "line "]),
        (REWRITE.replace("rewrite", "rewirte"), &["unknown field `rewirte`", "`rewrite`", "^"]),
        (REWRITE.replace("old($X)", "old($X"), &["../sets/tiny/call.toml:7: `find`", "^^^^^^^^"]),
        (format!("{REWRITE}expect = \"many\"\n"), &["call.toml:9: `expect`", "^^^^^^"]),
        (format!("{REWRITE}tags = \"> twelve\"\n"), &["call.toml:9: `tags`", "^^^^^^^^^^"]),
    ];
    for (ops, parts) in cases {
        let world = tiny(&ops);
        world.run_without_trace(&with_sets(&["apply", "./tiny", "--patch", "call"])).fails(parts);
        world.run_without_trace(&with_sets(&["list"])).fails(parts);
    }
    let world = tiny(REWRITE);
    world.write("sets/tiny/call.toml", patch(REWRITE).replace("The old one is gone.", " "));
    world.run_without_trace(&with_sets(&["list"])).fails(&["`why` is wrong", "must not be empty"]);
    world.write("sets/tiny/upstream.toml", UPSTREAM.replace("\"call\"", "\"call\", \"other\""));
    world.write("sets/tiny/call.toml", patch(REWRITE));
    world.run_without_trace(&with_sets(&["list"])).fails(&[
        "tiny/upstream.toml:8 names `tiny/other.toml`",
        "there is no such file",
        "^^^^^^^",
    ]);
}

#[test]
fn folders_of_sets_that_cannot_be_read() {
    let world = World::new();
    world.write("work/file", "");
    for folder in ["./nothing", "./file"] {
        let run = world.run_without_trace(&["list", "--patchsets", folder]);
        run.fails(&["cannot read ", folder, "hint: --patchsets DIR names a folder"]);
    }
    world.write("binary/tiny/upstream.toml", [0xff, 0xfe, 0x00]);
    world.run_without_trace(&["list", "--patchsets", "../binary"]).fails(&["cannot read ", "upstream.toml"]);
}

#[test]
fn sets_that_nothing_uses() {
    let world = tiny(REWRITE);
    world.write("sets/more/call.toml", patch(REWRITE));
    let note = "note: ../sets/more has no upstream.toml, and no set uses it: its patches are never applied\n";
    let check = ["check", "./tiny", "--patch", "tiny/call"];
    world.run(&with_sets(&check)).exits(1).says(&[note]);
    world.run(&with_sets(&["list"])).exits(0).says(&[note]);
    world.run_without_trace(&with_sets(&["explain", "more/call"])).fails(&[note]);
    world.write("sets/tiny/upstream.toml", UPSTREAM.replace("[[recognise", "uses = ['more']\n[[recognise"));
    world.run(&with_sets(&check)).exits(1).omits(&["is never applied", "no set uses it"]);
    world.write("sets/tiny/upstream.toml", UPSTREAM);
    world.write("sets/more/call.toml", patch(&REWRITE.replace("find", "fnid")));
    let fault = ["../sets/more/call.toml cannot be read", "unknown field `fnid`", "^"];
    world.run_without_trace(&with_sets(&check)).fails(&fault);
    world.run_without_trace(&with_sets(&["list"])).fails(&fault);
}

#[test]
fn the_folder_of_one_set_is_no_folder_of_sets() {
    let world = tiny(REWRITE);
    let run = world.run_without_trace(&["check", "./tiny", "--patch", "call", "--patchsets", "../sets/tiny"]);
    run.fails(&[
        "error: cannot read ../sets/tiny/",
        ".toml: it lies in no folder of a set\n",
        "hint: --patchsets DIR names a folder that holds SET/upstream.toml\n",
    ]);
}

#[test]
fn what_cannot_be_proved_is_not_written() {
    let growing = REWRITE.replace("\"new($X)\"", "\"old(old($X))\"");
    let world = tiny(&growing);
    let run = world.run_without_trace(&with_sets(&["apply", "./tiny", "--patch", "call"]));
    let hint = "hint: leave that patch out: --skip-patch tiny/call\n";
    run.fails(&["error: tiny/call/rewrite", "setup.py", "nothing was written", hint]);
    let breaking = REWRITE.replace("\"new($X)\"", "\"new($X))\"");
    let world = tiny(&breaking);
    let run = world.run_without_trace(&with_sets(&["apply", "./tiny", "--patch", "call"]));
    run.fails(&["error: ", "hint: "]);
}

#[test]
fn a_report_changes_nothing() {
    let ops = "[[rewrite]]\nfile = \"setup.py\"\nfind = [\"old($X)\"]\nadvice = \"ask somebody\"\n";
    let world = tiny(ops);
    let run = world.run_without_trace(&with_sets(&["apply", "./tiny", "--patch", "call"])).exits(0);
    run.says(&[
        "reported",
        "ask somebody",
        "setup.py:3: old(1)",
        "nothing to do: no edit is left to make in ",
    ]);
}
