//! Words for architectures.

use crate::world::World;

/// The outcome of `check v2.2.4 --add-arch WORD…`.
fn outcome(world: &World, words: &[&str]) -> String {
    let arguments: Vec<&str> = ["check", "v2.2.4"].into_iter().chain(words.iter().copied()).collect();
    let run = world.run_without_trace(&arguments);
    assert!(matches!(run.code, 0 | 1), "{words:?}: {run}");
    let line = run.out.lines().find(|line| line.contains("mamba-ssm/gpu-arch/gencode")).expect("outcome");
    line.split_whitespace().skip(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn many_words_for_one_architecture() {
    let world = World::new();
    for word in ["120", "12.0", "sm_120", "5090", "RTX 5090", "rtx5090", " 120 "] {
        assert_eq!(outcome(&world, &["--add-arch", word]), "changed adds 120 from CUDA 12.8 on", "{word}");
    }
    let others = [
        ("120a", "adds 120a from CUDA 12.8 on"),
        ("100f", "adds 100f from CUDA 12.9 on"),
        ("compute_120", "adds 120 (PTX) from CUDA 12.8 on"),
        ("12.0+PTX", "adds 120 from CUDA 12.8 on; adds 120 (PTX) from CUDA 12.8 on"),
        ("B200", "adds 100 from CUDA 12.8 on"),
    ];
    for (word, how) in others {
        assert_eq!(outcome(&world, &["--add-arch", word]), format!("changed {how}"), "{word}");
    }
    assert_eq!(outcome(&world, &["--add-arch", "H100"]), "already-satisfied 90 compiled already");
}

#[test]
fn several_words() {
    let world = World::new();
    let both = "changed adds 89 from CUDA 11.8 on; adds 120 from CUDA 12.8 on";
    let ways: [&[&str]; 5] = [
        &["--add-arch", "89,120"],
        &["--add-arch", "89", "120"],
        &["--add-arch", "89", "--add-arch", "120"],
        &["--add-arch", "12.0;8.9"],
        &["--add-arch=120", "--add-arch", "89,120", "4090"],
    ];
    for way in ways {
        assert_eq!(outcome(&world, way), both, "{way:?}");
    }
}

#[test]
fn words_that_name_nothing() {
    let world = World::new();
    let words = [
        ("999", "`999` is no GPU architecture"),
        ("banana", "`banana` is no GPU architecture"),
        ("1200", "did you mean 120"),
        ("", "an empty word is no GPU architecture"),
        ("120,,90", "an empty word is no GPU architecture"),
        ("12.0+PTX+PTX", "`12.0+PTX+PTX` is no GPU architecture"),
        ("sm_", "`sm_` is no GPU architecture"),
        ("120;rm -rf /", "`rm -rf /` is no GPU architecture"),
        ("\u{ff11}20", "is no GPU architecture"),
        ("99999999999999999999", "is no GPU architecture"),
        ("5080Ti", "did you mean 120 (RTX"),
    ];
    for flag in ["--add-arch", "--drop-arch", "--only-arch"] {
        for (word, message) in words {
            world.run_without_trace(&["diff", "v2.2.4", flag, word]).fails(&[message, "hint: "]);
        }
    }
    world.run_without_trace(&["diff", "v2.2.4", "--add-arch", "-1"]).fails(&["unexpected argument '-1'"]);
    world.run_without_trace(&["diff", "v2.2.4", "--add-arch=-1"]).fails(&["`-1` is no GPU architecture"]);
}

#[test]
fn native_without_a_gpu() {
    let mut world = World::new();
    world.set("PATH", "/nonexistent");
    for word in ["native", "120,native"] {
        let run = world.run_without_trace(&["diff", "v2.2.4", "--add-arch", word]);
        run.fails(&["no NVIDIA GPU was found on this host", "hint: name the architecture: --add-arch 120"]);
    }
}

#[test]
fn native_is_what_the_driver_says() {
    let mut world = World::new();
    world.write("bin/nvidia-smi", "#!/bin/sh\necho 9.0\necho 12.0\necho 9.0\n");
    std::process::Command::new("chmod").arg("+x").arg(world.path("bin/nvidia-smi")).status().expect("chmod");
    let path = format!("{}:/usr/bin:/bin", world.path("bin").display());
    world.set("PATH", &path);
    assert_eq!(outcome(&world, &["--add-arch", "native"]), "changed adds 120 from CUDA 12.8 on");
}
