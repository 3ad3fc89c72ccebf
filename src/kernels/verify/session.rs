//! Scripts that a Python runs from a folder of its own, so that nothing there stands in the way of what is installed.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, io};

use super::VerifyError;
use crate::kernels::python;

/// How much of a script's error output is kept, in bytes; it is read to its end all the same.
const KEPT: usize = 4 << 20;

/// Caches that would otherwise be written beside the user's own.
const CACHES: [&str; 5] = [
    "TRITON_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_EXTENSIONS_DIR",
    "CUDA_CACHE_PATH",
    "MPLCONFIGDIR",
];

/// A Python, and an empty folder in which it runs.
pub struct Session {
    python: PathBuf,
    folder: tempfile::TempDir,
    first: Vec<PathBuf>,
    limit: Duration,
}

/// How a script ended.
pub struct Ended {
    /// Its error output: tracebacks, warnings.
    pub log: String,
    /// Why it did not end well: its exit code, a signal, the time.
    pub failed: Option<String>,
}

/// The program that counts: the given one, else that of the active environment.
pub fn program(given: Option<&Path>) -> Option<PathBuf> {
    python::ask(given, "import json, sys; print(json.dumps(sys.executable))", &[])
}

impl Session {
    /// A session whose Python looks into some folders first.
    pub fn new(python: &Path, first: &[PathBuf], limit: Duration) -> Result<Self, VerifyError> {
        let folder = tempfile::tempdir().map_err(|cause| VerifyError::Folder { cause })?;
        fs::create_dir(folder.path().join("here")).map_err(|cause| VerifyError::Folder { cause })?;
        Ok(Self { python: python.to_path_buf(), folder, first: first.to_vec(), limit })
    }

    /// Runs a script; `line` gets each line that it prints, as it comes.
    pub fn run(
        &self,
        script: &str,
        arguments: &[&str],
        line: &mut dyn FnMut(&str),
    ) -> Result<Ended, VerifyError> {
        let file = self.folder.path().join("script.py");
        fs::write(&file, script).map_err(|cause| VerifyError::Folder { cause })?;
        let start = |cause: io::Error| VerifyError::Start { python: self.python.clone(), cause };
        let mut child = self.command(&file, arguments).spawn().map_err(start)?;
        let log = child.stderr.take().map(Log::of).unwrap_or_default();
        let lines = child.stdout.take().map(lines_of);
        let late = lines.is_some_and(|lines| !follow(&lines, self.limit, line));
        let failed = end(&mut child, late).map_err(start)?;
        let failed = if late { Some(format!("nothing for {} s", self.limit.as_secs())) } else { failed };
        Ok(Ended { log: log.text(), failed })
    }

    fn command(&self, file: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.python);
        command.arg("-B").arg(file).args(arguments).current_dir(self.folder.path().join("here"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("PYTHONIOENCODING", "utf-8").env("PYTHONUNBUFFERED", "1").env_remove("PYTHONSTARTUP");
        for cache in CACHES {
            command.env(cache, self.folder.path().join("caches").join(cache));
        }
        let given = std::env::var_os("PYTHONPATH");
        let more = given.iter().flat_map(std::env::split_paths).filter(|path| !path.as_os_str().is_empty());
        // The folders of the search path are those that they are where the user types.
        let more = more.map(|path| std::path::absolute(&path).unwrap_or(path));
        let folders: Vec<PathBuf> = self.first.iter().cloned().chain(more).collect();
        match std::env::join_paths(folders) {
            Ok(path) if !path.is_empty() => command.env("PYTHONPATH", path),
            _ => command.env_remove("PYTHONPATH"),
        };
        command
    }
}

/// The beginning of a stream, as it comes.
#[derive(Default)]
struct Log {
    bytes: Arc<Mutex<Vec<u8>>>,
    end: Option<Receiver<()>>,
}

impl Log {
    fn of(mut stream: impl Read + Send + 'static) -> Self {
        let (sender, end) = channel::<()>();
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = bytes.clone();
        thread::spawn(move || {
            let mut part = [0; 8192];
            while let Ok(read @ 1..) = stream.read(&mut part) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = KEPT.saturating_sub(kept.len()).min(read);
                kept.extend(part.iter().take(room));
            }
            drop(sender);
        });
        Self { bytes, end: Some(end) }
    }

    /// What came. A process that was left behind can hold the stream open: that is not waited for.
    fn text(&self) -> String {
        let _ = self.end.as_ref().map(|end| end.recv_timeout(Duration::from_secs(2)));
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

fn lines_of(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader.by_ref().take(KEPT as u64).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            if sender.send(String::from_utf8_lossy(&line).trim_end().to_string()).is_err() {
                return;
            }
            line.clear();
        }
    });
    receiver
}

/// Hands lines on until there are no more; false where nothing came for too long.
fn follow(lines: &Receiver<String>, limit: Duration, line: &mut dyn FnMut(&str)) -> bool {
    loop {
        match lines.recv_timeout(limit) {
            Ok(text) => line(&text),
            Err(RecvTimeoutError::Disconnected) => return true,
            Err(RecvTimeoutError::Timeout) => return false,
        }
    }
}

/// Waits a little for the end of a script that prints no more; one that hangs is stopped.
fn end(child: &mut Child, late: bool) -> io::Result<Option<String>> {
    let until = Instant::now() + Duration::from_secs(30);
    while !late && Instant::now() < until {
        if let Some(status) = child.try_wait()? {
            return Ok(failed(status));
        }
        thread::sleep(Duration::from_millis(5));
    }
    child.kill()?;
    Ok(failed(child.wait()?))
}

fn failed(status: ExitStatus) -> Option<String> {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        let name = match signal {
            4 => " (SIGILL: an instruction that this processor does not have)",
            6 => " (SIGABRT)",
            9 => " (SIGKILL: often too little memory)",
            11 => " (SIGSEGV: it reached into memory that is not its own)",
            _ => "",
        };
        return Some(format!("Python was ended by signal {signal}{name}"));
    }
    (!status.success()).then(|| match status.code() {
        Some(code) => format!("Python ended with exit code {code}"),
        None => "Python did not end well".to_string(),
    })
}
