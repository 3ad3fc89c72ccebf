//! How much is compiled at once: what memory and cores allow.

use std::fs;
use std::path::Path;

/// Memory of one compiler for one architecture, in MB. The largest unit of the shipped upstreams,
/// `causal_conv1d_bwd.cu` of 1.7.0, was measured at 3.1 GB with nvcc 13.0 for sm_120; mamba-ssm's at 1.0 GB.
const JOB: u64 = 3500;
/// More threads than this are of no use to nvcc: it has one for each architecture.
const MOST_THREADS: usize = 4;

/// What there is, and what was set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// Cores that may be used.
    pub cores: usize,
    /// Memory that is free, in MB; none where the system does not tell.
    pub free: Option<u64>,
    /// `--jobs`, else `MAX_JOBS`, and which of them.
    pub jobs: Option<(usize, &'static str)>,
    /// `NVCC_THREADS`.
    pub threads: Option<usize>,
}

/// How much is compiled at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Files: `MAX_JOBS`.
    pub jobs: usize,
    /// Architectures of one file: `NVCC_THREADS`.
    pub threads: usize,
    /// Why so many.
    pub why: String,
}

impl Machine {
    /// This machine; `--jobs` counts more than `MAX_JOBS`.
    pub fn here(jobs: Option<usize>) -> Self {
        let number = |name: &str| std::env::var(name).ok()?.trim().parse().ok().filter(|number| *number > 0);
        let by_flag = jobs.map(|jobs| (jobs, "--jobs"));
        Self {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            free: free(),
            jobs: by_flag.or_else(|| number("MAX_JOBS").map(|jobs| (jobs, "MAX_JOBS"))),
            threads: number("NVCC_THREADS"),
        }
    }

    /// What fits. A compiler's memory grows with the architectures that it compiles at once, and the older `setup.py`s
    /// say `--threads 4` whatever is set.
    pub fn room(&self, arches: usize) -> Room {
        let most = arches.clamp(1, MOST_THREADS);
        let cost = JOB * most as u64;
        let gb = |mb: u64| format!("{:.1} GB", mb as f64 / 1000.0);
        let fitting = self.free.map_or(self.cores.div_ceil(2), |free| (free / cost) as usize);
        let jobs = self.jobs.map_or(fitting.clamp(1, self.cores), |(jobs, _)| jobs);
        let threads = self.threads.unwrap_or((self.cores / jobs).clamp(1, most));
        let why = match (self.jobs, self.free) {
            (Some((_, by)), _) => by.to_string(),
            (None, Some(free)) => {
                let cores =
                    if self.cores == 1 { "1 core".to_string() } else { format!("{} cores", self.cores) };
                format!("{cores}, {} free, up to {} for each", gb(free), gb(cost))
            }
            (None, None) => format!("half of {} cores; free memory is not known", self.cores),
        };
        Room { jobs, threads, why }
    }
}

/// Free memory in MB: of the machine, or what the control group leaves.
fn free() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    let group = left(Path::new("/sys/fs/cgroup"));
    let machine = kilobytes * 1024 / 1_000_000;
    Some(group.map_or(machine, |group| machine.min(group)))
}

/// What a control group (version 2) leaves, in MB.
fn left(group: &Path) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    Some(number("memory.max")?.saturating_sub(number("memory.current")?) / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cores: usize, free: Option<u64>) -> Machine {
        Machine { cores, free, ..Machine::default() }
    }

    #[test]
    fn memory_and_cores_bound_the_jobs() {
        let fit = |cores, free, arches| {
            let room = machine(cores, free).room(arches);
            (room.jobs, room.threads)
        };
        assert_eq!(fit(2, Some(22_000), 1), (2, 1));
        assert_eq!(fit(16, Some(128_000), 1), (16, 1));
        assert_eq!(fit(16, Some(32_000), 1), (9, 1));
        assert_eq!(fit(16, Some(32_000), 8), (2, 4), "four architectures of a file at once");
        assert_eq!(fit(8, Some(1_000), 1), (1, 1), "one at least");
        assert_eq!(fit(8, None, 2), (4, 2));
        assert_eq!(machine(2, Some(22_000)).room(1).why, "2 cores, 22.0 GB free, up to 3.5 GB for each");
    }

    #[test]
    fn what_was_set_is_taken() {
        let set = Machine { jobs: Some((12, "MAX_JOBS")), threads: Some(3), ..machine(2, Some(1_000)) };
        let room = set.room(1);
        assert_eq!((room.jobs, room.threads, room.why.as_str()), (12, 3, "MAX_JOBS"));
    }
}
