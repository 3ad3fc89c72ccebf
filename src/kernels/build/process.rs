//! Runs a build, hears what it prints, and stops all of it.
//!
//! The build gets a session of its own: ninja gives each compiler a process group of its own, so that a group does not
//! hold them all, and Ctrl-C reaches mambapatch alone, which then stops them in order.

use std::fs::File;
use std::io::{self, BufRead, BufReader, PipeReader, Write};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use process_wrap::std::{ChildWrapper, CommandWrap};

use crate::signals::Stop;

/// How long the compilers have to end by themselves.
const GRACE: Duration = Duration::from_secs(5);
/// How often it is looked whether to stop.
const BEAT: Duration = Duration::from_millis(100);
/// How long is waited for the rest of the output of a build that ended.
const REST: Duration = Duration::from_secs(2);
/// A longer line is cut: no compiler command is that long.
const LINE: u64 = 1 << 20;

/// How a build ended.
#[derive(Debug)]
pub enum Ended {
    /// By itself.
    Status(ExitStatus),
    /// It was stopped, with all that it had started.
    Stopped,
}

/// Runs a command to its end; every line that it prints goes to the log and is heard.
pub fn run(
    mut command: Command,
    log: &mut File,
    stop: &Stop,
    hear: &mut dyn FnMut(&str),
) -> io::Result<Ended> {
    let (reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut command = in_session(command);
    let mut child = command.spawn()?;
    // The writing ends that the command still holds would keep the pipe open.
    drop(command);
    let (send, lines) = sync_channel(1024);
    std::thread::spawn(move || read_lines(reader, &send));
    let mut listener = Listener { log, hear };
    let ended = wait(child.as_mut(), &lines, stop, &mut listener);
    if !matches!(ended, Ok(Ended::Status(_))) {
        stop_all(child.as_mut(), &lines, &mut listener);
    }
    ended
}

#[cfg(unix)]
fn in_session(command: Command) -> CommandWrap {
    let mut command = CommandWrap::from(command);
    command.wrap(process_wrap::std::ProcessSession);
    command
}

#[cfg(windows)]
fn in_session(command: Command) -> CommandWrap {
    let mut command = CommandWrap::from(command);
    command.wrap(process_wrap::std::JobObject);
    command
}

/// Where lines go.
struct Listener<'a> {
    log: &'a mut File,
    hear: &'a mut dyn FnMut(&str),
}

impl Listener<'_> {
    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        self.log.write_all(line)?;
        (self.hear)(&String::from_utf8_lossy(line));
        Ok(())
    }
}

/// Until the build ended and its output is read, or it is to stop.
fn wait(
    child: &mut dyn ChildWrapper,
    lines: &Receiver<Vec<u8>>,
    stop: &Stop,
    listener: &mut Listener<'_>,
) -> io::Result<Ended> {
    loop {
        if stop.is_wanted() {
            return Ok(Ended::Stopped);
        }
        match lines.recv_timeout(BEAT) {
            Ok(line) => listener.line(&line)?,
            Err(RecvTimeoutError::Disconnected) => {
                return child.wait().map(Ended::Status);
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Some(status) = child.try_wait()? {
                    // A server that the build left behind may hold the pipe for ever.
                    while let Ok(line) = lines.recv_timeout(REST) {
                        listener.line(&line)?;
                    }
                    return Ok(Ended::Status(status));
                }
            }
        }
    }
}

fn read_lines(reader: PipeReader, send: &SyncSender<Vec<u8>>) {
    let mut reader = BufReader::new(reader);
    loop {
        let mut line = Vec::new();
        match io::Read::take(&mut reader, LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if send.send(line).is_err() => return,
            Ok(_) => {}
        }
    }
}

/// Asks all of it to end, and ends by force what does not.
fn stop_all(child: &mut dyn ChildWrapper, lines: &Receiver<Vec<u8>>, listener: &mut Listener<'_>) {
    let session = child.id();
    let began = Instant::now();
    signal_all(child, session, false);
    while is_running(child, session) && began.elapsed() < GRACE {
        // What it says while it ends belongs to the log; that it cannot be written must not keep anyone from stopping.
        if let Ok(line) = lines.recv_timeout(BEAT) {
            let _ = listener.line(&line);
        } else {
            std::thread::sleep(BEAT / 10);
        }
    }
    // Compilers that were just started are found the second time.
    for _ in 0..20 {
        if !is_running(child, session) {
            break;
        }
        signal_all(child, session, true);
        std::thread::sleep(BEAT);
    }
    let _ = child.try_wait();
}

fn is_running(child: &mut dyn ChildWrapper, session: u32) -> bool {
    matches!(child.try_wait(), Ok(None)) || !members(session).is_empty()
}

#[cfg(unix)]
fn signal_all(child: &mut dyn ChildWrapper, session: u32, by_force: bool) {
    use rustix::process::{Pid, Signal, kill_process};
    let signal = if by_force { Signal::KILL } else { Signal::TERM };
    // Whoever ended by itself in the meantime cannot be reached, and need not be.
    let _ = child.signal(signal.as_raw());
    for member in members(session) {
        let _ = Pid::from_raw(member).map(|pid| kill_process(pid, signal));
    }
}

#[cfg(windows)]
fn signal_all(child: &mut dyn ChildWrapper, _: u32, _: bool) {
    let _ = child.start_kill();
}

/// The processes of a session that still run, where /proc tells: `pid (name) state parent group session`.
fn members(session: u32) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let member = |entry: std::fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let is_dead = matches!(fields.next()?, "Z" | "X");
        (!is_dead && fields.nth(2)?.parse() == Ok(session)).then_some(pid)
    };
    entries.filter_map(member).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn shell(text: &str) -> Command {
        // Only bash gives groups to jobs without a terminal.
        let mut command = Command::new("bash");
        command.args(["-c", text]);
        command
    }

    fn heard(text: &str, stop: &Stop) -> (Ended, Vec<String>) {
        let mut log = tempfile::tempfile().expect("a file");
        let mut lines = Vec::new();
        let mut hear = |line: &str| {
            lines.push(line.trim_end().to_string());
            // As if someone pressed Ctrl-C there.
            if line.starts_with("stop") {
                stop.ask();
            }
        };
        let ended = run(shell(text), &mut log, stop, &mut hear).expect("run");
        (ended, lines)
    }

    fn quiet() -> Stop {
        Stop::listen().expect("signals")
    }

    #[test]
    fn both_outputs_are_heard_in_order() {
        let (ended, lines) = heard("echo a; echo b >&2; printf c; exit 3", &quiet());
        assert!(matches!(ended, Ended::Status(status) if status.code() == Some(3)), "{ended:?}");
        assert_eq!(lines, ["a", "b", "c"]);
    }

    #[test]
    fn what_holds_the_pipe_does_not_hold_the_build() {
        let (ended, lines) = heard("setsid sleep 60 & echo $!; exit 0", &quiet());
        assert!(matches!(ended, Ended::Status(status) if status.success()), "{ended:?}");
        let pid = lines[0].parse().ok().and_then(rustix::process::Pid::from_raw).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
    }

    #[test]
    fn grandchildren_in_groups_of_their_own_are_stopped() {
        // As ninja does it; one of them does not end when it is asked to.
        let text = "set -m; (trap '' TERM; while :; do sleep 1; done) & sleep 600 & set +m; echo $$; echo stop; wait";
        let (ended, lines) = heard(text, &quiet());
        assert!(matches!(ended, Ended::Stopped), "{ended:?}");
        let session = lines.iter().find_map(|line| line.parse().ok()).expect("a process");
        assert_eq!(members(session), Vec::<i32>::new());
    }
}
