//! Signals that end programs: Ctrl-C, SIGTERM, SIGHUP. While someone listens, they end nothing.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

#[cfg(unix)]
const ENDING: [i32; 3] = [SIGINT, SIGTERM, signal_hook::consts::SIGHUP];
#[cfg(not(unix))]
const ENDING: [i32; 2] = [SIGINT, SIGTERM];

/// Whether these signals end this process at once.
static AT_ONCE: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));
static LISTENERS: Mutex<usize> = Mutex::new(0);

/// Whether someone wants this process to stop.
#[derive(Debug)]
pub struct Stop {
    heard: Arc<AtomicUsize>,
}

impl Stop {
    /// Until this value goes away these signals do not end this process, but are asked for here. One that is ignored
    /// (`nohup`) stays so.
    pub fn listen() -> io::Result<Self> {
        let stop = Self { heard: Arc::default() };
        listeners(|count| count + 1);
        for signal in ENDING.into_iter().filter(|signal| !is_ignored(*signal)) {
            static ONCE: Mutex<Vec<i32>> = Mutex::new(Vec::new());
            let mut known = ONCE.lock().unwrap_or_else(PoisonError::into_inner);
            if !known.contains(&signal) {
                flag::register_conditional_default(signal, AT_ONCE.clone())?;
                known.push(signal);
            }
            flag::register_usize(signal, stop.heard.clone(), usize::try_from(signal).unwrap_or(1))?;
        }
        Ok(stop)
    }

    /// Asks for it, as a signal does.
    pub fn ask(&self) {
        self.heard.store(usize::try_from(SIGTERM).unwrap_or(1), Ordering::Relaxed);
    }

    /// Whether it is to stop.
    pub fn is_wanted(&self) -> bool {
        self.heard.load(Ordering::Relaxed) != 0
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        listeners(|count| count.saturating_sub(1));
    }
}

fn listeners(becomes: impl Fn(usize) -> usize) {
    let mut count = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    *count = becomes(*count);
    AT_ONCE.store(*count == 0, Ordering::Relaxed);
}

/// Work that is done whole or taken back: a signal waits until this value goes away, and then ends this process.
#[derive(Debug)]
pub struct Held(Option<Stop>);

impl Held {
    /// From now on.
    pub fn signals() -> Self {
        // Where nobody can listen, a signal ends this process at once, as ever.
        Self(Stop::listen().ok())
    }

    /// Whether a signal waits.
    pub fn is_stopped(&self) -> bool {
        self.0.as_ref().is_some_and(Stop::is_wanted)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(stop) = self.0.take() else { return };
        let heard = stop.heard.load(Ordering::Relaxed);
        drop(stop);
        if let Some(signal) = i32::try_from(heard).ok().filter(|signal| *signal != 0) {
            // What cannot be ended this way goes on to its own end, with nothing half done.
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}

/// `SigIgn` of /proc/self/status: a bit for each signal.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}
