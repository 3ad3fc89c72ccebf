//! Runs that are stopped: nothing half made stays, and the next run goes well.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::sources::MAMBA;
use crate::world::{World, tar_gz};

const APPLY: [&str; 6] = ["apply", "v2.2.4", "--add-arch", "120", "--into", "deep/new"];

/// A release with so many files that its checkout takes a while.
fn large() -> World {
    let world = World::bare();
    let mut files = MAMBA[2].files("mamba_ssm");
    files.extend((0..400).map(|number| (format!("data/{number}.txt"), number.to_string().into_bytes())));
    world.write("index/mamba-ssm/mamba_ssm-2.2.4.tar.gz", tar_gz("mamba_ssm-2.2.4", &files));
    world
}

/// The temporary folders beside the new one.
fn temporary(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(world.path("work/deep")).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".mambapatch-")).collect()
}

/// The same command, which hears signals even where the tests run in the background and do not.
fn listening(command: &Command) -> Command {
    let mut listening = Command::new("env");
    listening.arg("--default-signal=INT,TERM,HUP").arg(command.get_program()).args(command.get_args());
    listening.current_dir(command.get_current_dir().expect("folder")).env_clear();
    listening.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    listening
}

/// Sends a signal as soon as the checkout is being made.
fn stop(world: &World, signal: &str) {
    let mut child = listening(&world.command("work", &APPLY))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("spawn");
    let began = Instant::now();
    while temporary(world).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(120) && child.try_wait().expect("wait").is_none());
        std::thread::sleep(Duration::from_millis(1));
    }
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
    assert!(sent.expect("sh").success());
    assert_eq!(child.wait().expect("wait").code(), None, "{signal} ends it");
}

#[test]
fn a_stopped_run_leaves_nothing() {
    let world = large();
    for signal in ["INT", "TERM", "HUP"] {
        stop(&world, signal);
        assert!(!world.path("work/deep").exists(), "{signal}");
    }
    world.run(&APPLY).exits(0).says(&["done: branch "]);
}

#[test]
fn what_a_killed_run_left_goes_with_the_next() {
    let world = large();
    stop(&world, "KILL");
    assert_eq!(temporary(&world).len(), 1);
    world.run(&APPLY).exits(0).says(&["done: branch "]);
    assert_eq!(temporary(&world), Vec::<String>::new());
}
