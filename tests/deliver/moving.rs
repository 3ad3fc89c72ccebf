//! Living with an upstream that moves: what can be dropped, and what a new release brings.

use crate::world::{Run, World};

const FLAGS: [&str; 4] = ["--add-arch", "120", "--cuda", "13.0"];
const DROP: &str = "upstream does without, so drop: mamba-ssm/gpu-arch (merged since v2.2.6), mamba-ssm/cuda-13 (merged \
                    since v2.2.6)";

fn check(world: &World, target: &str, code: i32) -> Run {
    let arguments: Vec<&str> = ["check", target].into_iter().chain(FLAGS).collect();
    world.run(&arguments).exits(code)
}

fn apply(world: &World, target: &str, more: &[&str]) {
    let arguments: Vec<&str> =
        ["apply", target, "-q"].into_iter().chain(FLAGS).chain(more.iter().copied()).collect();
    world.run(&arguments).exits(0);
}

#[test]
fn a_newer_release_says_what_can_be_dropped() {
    let world = World::new();
    world.clone_of_mamba("work/mamba", "v2.2.6");
    check(&world, "./mamba", 0).says(&[DROP]);
    check(&world, "v2.2.6", 0).says(&[DROP]);
    check(&world, "v2.2.4", 1).omits(&["drop:"]);
    let arguments: Vec<&str> = ["check", "mamba-ssm", "--format", "json"].into_iter().chain(FLAGS).collect();
    let json = world.run(&arguments).exits(0).json();
    assert_eq!(json["droppable"], serde_json::json!(["mamba-ssm/gpu-arch", "mamba-ssm/cuda-13"]));
}

#[test]
fn what_was_patched_by_us_is_not_upstreams() {
    let world = World::new().with_identity();
    world.clone_of_mamba("work/mamba", "v2.2.4");
    apply(&world, "./mamba", &[]);
    check(&world, "./mamba", 0).omits(&["drop:"]);
    world.write("work/mamba/mine", "mine\n");
    world.git("work/mamba", &["add", "-A"]);
    world.git("work/mamba", &["commit", "-q", "-m", "mine, on top"]);
    check(&world, "./mamba", 0).omits(&["drop:"]);
    world.git("work/mamba", &["merge", "-q", "-X", "theirs", "-m", "newer", "v2.2.6"]);
    check(&world, "./mamba", 0).says(&[DROP]);
    world.clone_of_mamba("work/in-place", "v2.2.4");
    apply(&world, "./in-place", &["--no-commit"]);
    check(&world, "./in-place", 0).omits(&["drop:"]);
}

#[test]
fn a_plain_folder_tells_nothing_and_an_archive_does() {
    let world = World::without_git();
    check(&world, "v2.2.6", 0).says(&["upstream does without, so drop: mamba-ssm/gpu-arch"]);
    world.write("work/plain/setup.py", crate::sources::mamba_setup());
    apply(&world, "./plain", &[]);
    check(&world, "./plain", 0).omits(&["drop:"]);
}

#[test]
fn the_matrix_says_what_a_new_release_brings() {
    let world = World::new();
    let shipped = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("patchsets/mamba-ssm");
    for file in std::fs::read_dir(shipped).expect("the set").flatten() {
        let text = std::fs::read_to_string(file.path()).expect("text");
        let text = text.replace("tested-through = \"2.3.2.post1\"", "tested-through = \"2.2.4\"");
        world.write(&format!("sets/mamba-ssm/{}", file.file_name().display()), text);
    }
    let sets = world.path("sets").display().to_string();
    let matrix = ["matrix", "mamba-ssm", "--patchsets", &sets];
    let arguments: Vec<&str> = matrix.into_iter().chain(FLAGS).collect();
    let run = world.run(&arguments).exits(0);
    run.says(&[
        "v2.2.5 is newer than what mamba-ssm was tested on: the files that its patches look at are new: see its row",
        "v2.2.6 is newer than ",
    ])
    .shows(&["mamba-ssm/gpu-arch: needed v1.0.0 to v2.2.5, there since v2.2.6\n"]);
    // cuda-13 looks at one file, and v2.2.5 has that of v2.2.4.
    let known = ["matrix", "mamba-ssm", "--patchsets", &sets, "--patch", "cuda-13"];
    world.run(&known).exits(0).says(&[
        "v2.2.5 is newer than what mamba-ssm was tested on: the files that its patches look at are those of a tested release",
    ]);
    let json: Vec<&str> = known.into_iter().chain(["--format", "json"]).collect();
    let json = world.run(&json).exits(0).json();
    let of = |release: &str| {
        let releases = json["releases"].as_array().expect("releases");
        let row = releases.iter().find(|row| row["release"] == release).expect("a row");
        (row["tested"].as_bool(), row["known"].as_bool())
    };
    assert_eq!(of("2.2.4"), (Some(true), Some(true)));
    assert_eq!(of("2.2.5"), (Some(false), Some(true)));
    assert_eq!(of("2.2.6"), (Some(false), Some(false)));
}
