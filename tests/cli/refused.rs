//! Requests that cannot be met: code 2, what is wrong, what to type, nothing written.

use crate::world::World;

fn diff<'a>(target: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    ["diff", target].into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn targets_that_nobody_knows() {
    let world = World::new();
    let run = world.run_without_trace(&diff("v2.2.7", &["--add-arch", "120"]));
    let run = run.fails(&[
        "mamba-ssm has no tag, branch or commit `v2.2.7`",
        "hint: there are v2.2.6, v2.2.5, v2.2.4",
    ]);
    assert_eq!(run.err.matches("v2.2.6").count(), 1, "{run}");
    let cases = [
        ("v1.4.0", "no tag, branch or commit `v1.4.0`", "hint: causal-conv1d@v1.4.0"),
        ("mamba-smm@v2.2.4", "`mamba-smm` is not a known upstream", "hint: mamba-ssm@v2.2.4"),
        ("nosuch@v1", "`nosuch` is not a known upstream", "./nosuch@v1"),
        ("mamba-ssm@", "no tag, branch or commit stands behind", "its newest release"),
        ("", "the target is empty", "./mamba"),
        ("./nothing", "./nothing does not exist", "hint: name a folder that is there"),
        (
            "causal-conv1",
            "no tag, branch or commit `causal-conv1`",
            "did you mean the upstream causal-conv1d?",
        ),
    ];
    for (target, message, hint) in cases {
        world.run_without_trace(&diff(target, &["--add-arch", "120"])).fails(&[message, hint]);
    }
    world.write("work/mamba/setup.py", "");
    let run = world.run_without_trace(&diff("mamba", &["--add-arch", "120"]));
    run.fails(&["hint: for the folder of that name type ./mamba"]);
    let mut cut_off = World::bare();
    cut_off.set("PIP_INDEX_URL", "http://127.0.0.1:9/simple/");
    for (folder, source) in [("mamba", "auto"), ("mamba", "git"), ("2.0", "sdist")] {
        cut_off.write(&format!("work/{folder}/setup.py"), "");
        let run = cut_off.run(&diff(folder, &["--add-arch", "120", "--source", source]));
        run.fails(&[&format!("hint: for the folder of that name type ./{folder}\n")]);
    }
    world.write("work/notes.txt", "");
    world
        .run_without_trace(&diff("./notes.txt", &["--add-arch", "120"]))
        .fails(&["neither a folder nor a .tar.gz"]);
}

#[test]
fn a_release_of_both_upstreams() {
    let world = World::new();
    let run = world.run(&diff("v1.0.0", &["--add-arch", "120"])).exits(0);
    run.says(&["note: causal-conv1d has that release too: causal-conv1d@v1.0.0"]);
}

#[test]
fn patches_that_nobody_knows() {
    let world = World::new();
    for flag in ["--patch", "--skip-patch"] {
        let run = world.run_without_trace(&diff("v2.2.4", &["--add-arch", "120", flag, "nope"]));
        run.fails(&["mamba-ssm has no patch `nope`", "hint: there are mamba-ssm/gpu-arch, "]);
    }
}

#[test]
fn toolkits() {
    let world = World::new();
    let cases: [(&[&str], &str, &str); 12] = [
        (&["--cuda", "banana"], "`banana` is not a CUDA version", "--help"),
        (&["--cuda", "13"], "`13` is not a CUDA version", "hint: --cuda 13.0, or the second number"),
        (&["--cuda=12.8,13"], "`13` is not a CUDA version", "hint: --cuda 13.0, or the second number"),
        (&["--torch", "2"], "`2` is not a PyTorch version", "hint: --torch 2.0, or the second number"),
        (&["--cuda", ""], "is not a CUDA version", "--help"),
        (&["--cuda", "9.0"], "mamba-ssm refuses CUDA 9.0: it needs 11.6 or newer", "hint: --cuda 11.6"),
        (&["--cuda", "12.8,9.0"], "mamba-ssm refuses CUDA 9.0", "hint: --cuda 11.6"),
        (
            &["--cuda", "12.3", "--add-arch", "120"],
            "CUDA 12.3 does not compile for 120",
            "12.8 and later compile it: --cuda 12.8",
        ),
        (
            &["--cuda", "13.0", "--add-arch", "53"],
            "CUDA 13.0 does not compile for 53",
            "12.9 and earlier compile it: --cuda 12.9",
        ),
        (&["--cuda", "13.0", "--add-arch", "101"], "CUDA 13.0 does not compile for 101", "--add-arch 110"),
        (&["--cuda", "12.9", "--add-arch", "110"], "CUDA 12.9 does not compile for 110", "--add-arch 101"),
        (&["--torch", "banana", "--add-arch", "120"], "banana", "--help"),
    ];
    for (flags, message, hint) in cases {
        world.run_without_trace(&diff("v2.2.4", flags)).fails(&[message, hint]);
    }
    world.run_without_trace(&["matrix", "mamba-ssm", "--cuda", "9.0"]).fails(&["mamba-ssm refuses CUDA 9.0"]);
}

#[test]
fn contradictions_and_nothing() {
    let world = World::new();
    let run = world.run_without_trace(&diff("v2.2.4", &["--add-arch", "120", "--drop-arch", "12.0"]));
    run.fails(&["120 is wanted and dropped at the same time", "hint: leave out one of the two"]);
    let run = world
        .run_without_trace(&diff("v2.2.4", &["--add-arch", "120+PTX", "90", "--only-arch", "90", "120"]));
    run.fails(&[
        "error: 120 (PTX) is added, and is not among those of --only-arch",
        "hint: name all that is compiled: --only-arch 90 120 compute_120\n",
    ]);
    world
        .run(&diff("v2.2.4", &["--add-arch", "90", "--only-arch", "90", "120"]))
        .exits(0)
        .shows(&["compute_120"]);
    world.run_without_trace(&diff("v2.2.4", &[])).fails(&["nothing was asked for", "--host"]);
    let mut nothing = World::new();
    nothing.set("PATH", "/nonexistent");
    let installed = std::fs::read_dir("/usr/local").into_iter().flatten().flatten();
    if installed.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("cuda")) {
        return;
    }
    let run = nothing.run_without_trace(&diff("v2.2.4", &["--host"]));
    run.fails(&["this host has no GPU, no toolkit and no PyTorch", "hint: say what it must build with"]);
}

#[test]
fn nothing_would_be_left() {
    let world = World::new();
    let run = world.run_without_trace(&diff("v2.2.4", &["--drop-arch", "53,62,70,72,80,87,90"]));
    run.fails(&[
        "no architecture would be left in setup.py",
        "hint: drop fewer, or name those that stay: --only-arch",
    ]);
    let drops = ["--drop-arch", "53,62,70,72,80,87,90", "--cuda", "11.8", "13.0"];
    world.run_without_trace(&diff("v2.2.4", &drops)).fails(&["those that stay: --only-arch 90\n"]);
}

#[test]
fn flags_that_choose_no_patch() {
    let world = World::new();
    for flags in [&["--torch", "2.11"][..], &["--add-arch", "120", "--skip-patch", "gpu-arch"]] {
        let run = world.run_without_trace(&diff("v2.2.4", flags)).exits(0);
        run.says(&["nothing to do: these flags choose no patch"]).omits(&["as it should be"]);
    }
}

#[test]
fn an_advisory_stops() {
    let world = World::new();
    let target = "causal-conv1d@v1.4.0";
    for more in [&[][..], &["--cuda", "13.0"]] {
        let flags: Vec<&str> = ["--add-arch", "103"].iter().chain(more).copied().collect();
        let run = world.run_without_trace(&diff(target, &flags));
        run.fails(&[
            "sm_103",
            "Dao-AILab/causal-conv1d#105",
            "hint: --add-arch 100, or go on all the same: --accept-advisory",
        ]);
    }
    world.run_without_trace(&diff(target, &["--add-arch", "B300"])).fails(&["--accept-advisory"]);
    let fine = world.run(&diff(target, &["--add-arch", "103", "--cuda", "12.9"])).exits(0);
    fine.shows(&["compute_103"]).omits(&["accepted"]);
    let accepted = world.run(&diff(target, &["--add-arch", "103", "--accept-advisory"])).exits(0);
    accepted.shows(&["compute_103"]).says(&["note: accepted: "]);
    world.run(&diff("v2.2.4", &["--add-arch", "103"])).exits(0);
}

#[test]
fn a_target_that_a_flag_took() {
    let world = World::new();
    let hint = "hint: --add-arch took `v2.2.4` too; put the TARGET first: mambapatch diff v2.2.4 --cuda 13.0 --add-arch 120\n";
    world.run_without_trace(&["diff", "--cuda", "13.0", "--add-arch", "120", "v2.2.4"]).fails(&[hint]);
    let run = world.run_without_trace(&["matrix", "--add-arch", "120", "mamba-ssm"]);
    run.fails(&["hint: --add-arch took `mamba-ssm` too; put the UPSTREAM first: mambapatch matrix mamba-ssm --add-arch 120\n"]);
    let run = world.run_without_trace(&["diff", "--add-arch", "120"]);
    run.fails(&["hint: put the TARGET first: mambapatch diff TARGET --add-arch 120\n"]);
    world.run(&["diff", "--add-arch", "120", "--", "v2.2.4"]).exits(0).shows(&["compute_120"]);
    let run = world.run_without_trace(&["check", "v2.2.4", "--cuda", "13.0", "--exit-code"]);
    run.fails(&["'--exit-code'", "hint: leave it out: check exits with 1"]).omits(&["-- --exit-code"]);
    world.run_without_trace(&["diff", "v2.2.4", "--ad-arch", "120"]).fails(&["'--ad-arch'", "--add-arch"]);
}
