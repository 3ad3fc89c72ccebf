//! check, matrix, list, explain; and every answer as one JSON document.

use crate::world::World;

#[test]
fn check_says_no_when_something_would_change() {
    let world = World::new();
    let run = world.run_without_trace(&["check", "v2.2.4", "--add-arch", "120"]).exits(1);
    run.shows(&["outcome\n  +  mamba-ssm/gpu-arch/gencode  changed", "effect\n", "… +120"])
        .omits(&["outcome"]);
    let run = world.run_without_trace(&["check", "v2.2.6", "--add-arch", "120"]).exits(0);
    run.shows(&["  =  mamba-ssm/gpu-arch/gencode  already-satisfied"]);
    let verbose = world.run(&["check", "v2.2.4", "--add-arch", "120", "-v"]).exits(1);
    verbose.shows(&["      setup.py:"]);
}

#[test]
fn several_toolkits() {
    let world = World::new();
    let run = world.run(&["check", "v2.2.4", "--cuda", "12.8", "13.0"]).exits(1);
    run.shows(&["limits 53 62 70 72 to toolkits up to CUDA 12.9", "mamba-ssm/cuda-13/rewrite"]);
    let run = world.run(&["check", "v2.2.4", "--cuda=12.8", "--cuda=14.0"]).exits(1);
    run.says(&["note: CUDA 14.0 is newer than the catalogue and is treated as "]).shows(&["\n  14.0  "]);
    let run = world.run(&["check", "v2.2.4", "--cuda", "12.7", "--torch", "99.0"]);
    run.says(&[
        "note: no CUDA 12.7 is known; the release before it is 12.6\n",
        "note: torch 99.0 is newer than the catalogue and is treated as 2.",
    ]);
    let run = world.run(&["check", "v2.2.4", "--cuda", "12.6", "--torch", "2.11.0+cu126"]);
    run.omits(&["is known;", "is newer than"]);
}

#[test]
fn the_matrix_of_an_upstream() {
    let world = World::new();
    let run =
        world.run_without_trace(&["matrix", "mamba-ssm", "--add-arch", "120", "--cuda", "13.0"]).exits(0);
    let run = run.shows(&[
        "release       mamba-ssm/gpu-arch  mamba-ssm/cuda-13\n",
        "v1.0.0        needed              needed\n",
        "v2.2.6        there               -\n",
        "mamba-ssm/gpu-arch: needed v1.0.0 to v2.2.5, there since v2.2.6\n",
        "mamba-ssm/cuda-13: needed v1.0.0 to v2.2.5, not concerned since v2.2.6\n",
    ]);
    run.omits(&["error"]);
    let from_index = World::without_git();
    let run = from_index.run_without_trace(&["matrix", "mamba-ssm", "--add-arch", "120"]).exits(0);
    run.shows(&["v2.2.4        needed", "v2.2.6        there"]).says(&["so source distributions are used"]);
    world.run_without_trace(&["matrix", "mamba-ssm"]).fails(&["nothing was asked for", "--host"]);
    for (name, hint) in [
        ("mamba", "did you mean mamba-ssm?"),
        ("nosuch", "there are causal-conv1d, mamba-ssm"),
        ("causal-conv1d@v1.4.0", "all its releases are meant by its name alone: causal-conv1d"),
        ("./mamba", "for a folder: mambapatch check ./mamba --host"),
    ] {
        for more in [&["--add-arch", "120"][..], &[]] {
            let run = world.run_without_trace(&[&["matrix", name], more].concat());
            run.fails(&[&format!("there is no upstream `{name}`"), &format!("hint: {hint}\n")]);
        }
    }
    world.run_without_trace(&["matrix", "any-extension"]).fails(&["knows no releases"]);
}

#[test]
fn what_is_known() {
    let world = World::new();
    let run = world.run_without_trace(&["list"]).exits(0);
    assert_eq!(run.err, "");
    run.shows(&["upstream ", "causal-conv1d  v", "mamba-ssm      v"]);
    let run = world.run_without_trace(&["list", "mamba-ssm"]).exits(0);
    run.shows(&[
        "patches\n",
        "mamba-ssm/cuda-13 ",
        "with CUDA >=13.0",
        "releases\n  v1.0.0 v2.0.4 v2.2.4 v2.2.5 v2.2.6",
    ]);
    world
        .run(&["list", "nope"])
        .fails(&["there is no upstream `nope`", "hint: there are any-extension, causal-conv1d, mamba-ssm"]);
    let set = world.run_without_trace(&["list", "cuda-api"]).exits(0);
    assert_eq!(set.out.matches("cuda-api/nvtx ").count(), 1, "{set}");
    set.shows(&["cuda-api  used by any-extension\n", "with CUDA "]);
    let document = world.run(&["list", "torch-api", "--format", "json"]).exits(0).json();
    assert_eq!((&document["id"], &document["used-by"][0]), (&"torch-api".into(), &"any-extension".into()));
    let bare = World::bare();
    let run = bare.run_without_trace(&["list", "mamba-ssm"]).exits(0).shows(&["mamba-ssm/gpu-arch"]);
    run.says(&["note: its releases are not known: "]);
}

#[test]
fn explanations() {
    let world = World::new();
    let both = world.run_without_trace(&["explain", "gpu-arch"]).exits(0);
    both.shows(&[
        "causal-conv1d/gpu-arch  ",
        "mamba-ssm/gpu-arch  ",
        "cc_flag.append(\"$GENCODE\")",
        "tested through",
    ]);
    for id in ["mamba-ssm/cuda-13/rewrite-2", "cuda-13/rewrite-2"] {
        let run =
            world.run(&["explain", id]).exits(0).shows(&["mamba-ssm/cuda-13/rewrite-2", "cub::LaneId()"]);
        assert!(!run.out.contains("CTA_SYNC()\n"), "{run}");
    }
    let set = world.run_without_trace(&["explain", "cuda-api"]).exits(0);
    set.shows(&["cuda-api/nvtx  ", "cuda-api/texture  "]);
    world
        .run(&["explain", "gpu-arhc"])
        .fails(&["no patch and no op `gpu-arhc`", "hint: mambapatch explain gpu-arch"]);
    world.run(&["explain", "arch"]).fails(&["no patch and no op `arch`"]);
    world.run(&["explain", ""]).fails(&["no patch and no op ``"]);
}

#[test]
fn every_answer_is_one_json_document() {
    let world = World::new();
    let commands: [(&[&str], i32); 9] = [
        (&["apply", "v2.2.4", "--add-arch", "120", "--dry-run"], 0),
        (&["diff", "v2.2.4", "--add-arch", "120", "--exit-code"], 1),
        (&["check", "v2.2.4", "--add-arch", "120", "--cuda", "13.0"], 1),
        (&["matrix", "mamba-ssm", "--add-arch", "120"], 0),
        (&["list"], 0),
        (&["list", "mamba-ssm"], 0),
        (&["explain", "gpu-arch"], 0),
        (&["--color", "always", "list"], 0),
        (&["--color", "always", "diff", "v2.2.4", "--add-arch", "120"], 0),
    ];
    for (command, code) in commands {
        let arguments: Vec<&str> = command.iter().copied().chain(["--format", "json"]).collect();
        let run = world.run_without_trace(&arguments).exits(code);
        run.json();
        assert!(!run.out.contains('\x1b'), "{run}");
    }
}

#[test]
fn the_effect_carries_codes() {
    let world = World::new();
    let document =
        world.run(&["check", "v2.2.4", "--add-arch", "12.0+PTX", "--format", "json"]).exits(1).json();
    let rows = document["effect"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["cuda"] == "12.8").expect("12.8");
    let codes: Vec<&serde_json::Value> = row["after"]
        .as_array()
        .expect("after")
        .iter()
        .flat_map(|flag| flag["codes"].as_array().expect("codes"))
        .collect();
    assert!(
        codes.iter().any(|code| *code == "sm_120") && codes.iter().any(|code| *code == "compute_120"),
        "{row}"
    );
    assert_eq!(rows[0]["before"][0]["gencode"], "arch=compute_53,code=sm_53");
    assert_eq!(rows[0]["before"][0]["codes"][0], "sm_53");
    assert_eq!(document["patches"][0]["ops"][0]["outcome"], "changed");
    assert_eq!(document["target"]["version"], "v2.2.4");
}

#[test]
fn errors_are_json_too() {
    let world = World::new();
    let commands: [(&[&str], &str); 8] = [
        (&["diff", "v2.2.4"], "nothing was asked for"),
        (&["diff", "v9.9.9", "--add-arch", "120"], "no tag, branch or commit `v9.9.9`"),
        (&["check", "v2.2.4", "--add-arch", "banana"], "`banana`"),
        (&["check", "v2.2.4", "--cuda", "banana"], "`banana` is not a CUDA version"),
        (&["matrix", "nope", "--add-arch", "120"], "`nope`"),
        (&["explain", "nope"], "`nope`"),
        (&["diff", "--add-arch", "120", "v2.2.4"], "<TARGET>"),
        (&["frobnicate"], "frobnicate"),
    ];
    for (command, message) in commands {
        let arguments: Vec<&str> = command.iter().copied().chain(["--format", "json"]).collect();
        let run = world.run_without_trace(&arguments).exits(2);
        let error = &run.json()["error"];
        assert!(error["message"].as_str().is_some_and(|text| text.contains(message)), "{message}: {run}");
        assert!(error["hint"].is_string(), "{run}");
        assert!(!run.err.contains("error"), "{run}");
    }
    let run = world.run(&["--format=json", "diff"]).exits(2);
    assert!(run.json()["error"]["message"].is_string());
}

#[test]
fn help_is_an_answer() {
    let world = World::new();
    for arguments in [&["--help"][..], &["apply", "--help"], &["help", "diff"], &["--version"]] {
        let run = world.run_without_trace(arguments).exits(0);
        assert!(!run.out.is_empty() && run.err.is_empty(), "{run}");
        assert!(run.out.lines().all(|line| line.chars().count() <= 100), "{run}");
    }
    let run = world.run(&[]).exits(2);
    assert!(run.out.is_empty() && run.err.contains("Usage: mambapatch"), "{run}");
}
