//! A build that is stopped: no compiler is left, no wheel, and the tree can be built again.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::machine::{Machine, Run, names};

/// Compilers as ninja starts them, each in a group of its own; one does not end when it is asked to.
const STUCK: &str = r#"
import signal, subprocess, time
stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(3600)"
plain = "import time; print('up', flush=True); time.sleep(3600)"
started = []
for text in [stubborn, plain]:
    child = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, preexec_fn=os.setpgrp)
    child.stdout.readline()
    started.append(str(child.pid))
print("[1/3] nvcc -c one.cu -o one.o", flush=True)
with open(os.path.join(into, "half.whl"), "w") as file:
    file.write("half")
with open(os.path.join(here, "pids.new"), "w") as file:
    file.write(" ".join(started + [str(os.getpid())]))
os.rename(os.path.join(here, "pids.new"), os.path.join(here, "pids.txt"))
time.sleep(3600)
"#;

/// Long enough for any machine.
const LIMIT: Duration = Duration::from_secs(300);

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < LIMIT, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Whether a process is there and no zombie.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill {name} {}", child.id())]).status();
    assert!(sent.expect("sh").success());
}

fn stopped(by: &str) {
    let machine = Machine::new(STUCK);
    let child = machine.begin("--", &["--yes"]);
    until("a compiler", || machine.path("work/ext/pids.txt").exists());
    signal(&child, by);
    let run = Run::of(child.wait_with_output().expect("it ends"));
    run.ends(
        130,
        &["stopped: after", "every compiler has ended", "to go on", "build ./ext --only-arch 120 --yes"],
    );
    let pids = machine.text("work/ext/pids.txt");
    let left: Vec<&str> = pids.split_whitespace().filter(|pid| runs(pid)).collect();
    assert!(left.is_empty() && pids.split_whitespace().count() == 3, "{by}: {left:?} of {pids} run");
    assert_eq!(names(&machine.path("work/dist")), Vec::<String>::new());
    assert!(machine.log().contains("[1/3] nvcc"), "{}", machine.log());
    goes_on(&machine);
}

/// The same command again, with a build that goes well.
fn goes_on(machine: &Machine) {
    let setup = machine.text("work/ext/setup.py");
    let (begin, _) = setup.split_once("\nimport signal, subprocess").expect("the build");
    machine.write("work/ext/setup.py", format!("{begin}\nwheel(*compiled())\n"));
    machine.build(&["--yes"]).ends(0, &["nothing is patched", "done: "]);
}

/// Under `nohup` a build goes on when its terminal is closed.
#[test]
fn a_signal_that_is_ignored_stays_so() {
    let waits = "import time\nopen(os.path.join(here, 'begun'), 'w').close()\n\
                 while not os.path.exists(os.path.join(here, 'go')): time.sleep(0.05)\nwheel(*compiled())\n";
    let machine = Machine::new(waits);
    let child = machine.begin("--ignore-signal=HUP", &["--yes"]);
    until("the build", || machine.path("work/ext/begun").exists());
    signal(&child, "-HUP");
    machine.write("work/ext/go", "");
    Run::of(child.wait_with_output().expect("it ends")).ends(0, &["done: "]);
}

#[test]
fn ctrl_c_stops_every_compiler() {
    stopped("-INT");
}

#[test]
fn so_does_a_signal_that_ends_programs() {
    stopped("-TERM");
}

#[test]
fn so_does_a_terminal_that_is_closed() {
    stopped("-HUP");
}
