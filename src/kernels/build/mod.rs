//! Compiles a patched tree into a wheel, in the user's Python, and proves what the wheel holds.

pub mod environment;
mod error;
pub mod process;
pub mod progress;
pub mod requirements;
pub mod room;
pub mod toolkit;
pub mod wheel;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

pub use error::BuildError;

use crate::engine::arch::Code;
use crate::signals::Stop;
use environment::PythonEnvironment;
use process::{Ended, run};
use progress::{Count, Units};
use room::Room;
use toolkit::CudaHome;
use wheel::Libraries;

/// A person saw the diff and agreed to compile. `tests/architecture.rs` holds that only the terminal makes one.
#[derive(Debug)]
pub struct Approval(());

impl Approval {
    /// Given by a person, who saw the diff.
    pub fn given() -> Self {
        Self(())
    }
}

/// What is compiled, by what, and where it goes.
#[derive(Debug)]
pub struct Order<'a> {
    /// The folder of setup.py or pyproject.toml.
    pub tree: &'a Path,
    /// The Python.
    pub environment: &'a PythonEnvironment,
    /// CUDA_HOME.
    pub home: &'a CudaHome,
    /// How much at once.
    pub room: &'a Room,
    /// Variables of the upstream: what makes its build compile.
    pub variables: &'a BTreeMap<String, String>,
    /// What must be in the wheel.
    pub wanted: &'a [Code],
    /// Where all that is said goes.
    pub log: &'a Path,
    /// Where the wheel goes.
    pub out: &'a Path,
}

/// A wheel that holds what was asked for.
#[derive(Debug)]
pub struct Built {
    /// The wheel.
    pub wheel: PathBuf,
    /// How long it took.
    pub seconds: u64,
    /// Its libraries.
    pub libraries: Libraries,
}

/// Compiles, proves, and moves the wheel to its place. Nothing is left in the tree but what the build itself writes
/// beside its sources; objects lie in a temporary folder, so that none of an earlier build gets into the wheel.
pub fn compile(
    order: &Order<'_>,
    _: &Approval,
    stop: &Stop,
    tell: &mut dyn FnMut(Units),
) -> Result<Built, BuildError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |cause: io::Error| BuildError::System { what: "write", path, cause }
    };
    let mut log = open_log(order.log).map_err(failed(order.log))?;
    let temporary = tempfile::Builder::new().prefix("mambapatch-build-").tempdir();
    let temporary = temporary.map_err(failed(&std::env::temp_dir()))?;
    let wheels = temporary.path().join("wheel");
    let command = order.command(temporary.path(), &wheels).map_err(failed(temporary.path()))?;
    write_head(&mut log, order, &command).map_err(failed(order.log))?;
    let (began, mut count) = (Instant::now(), Count::default());
    let ended = run(command, &mut log, stop, &mut |line| {
        if let Some(units) = count.line(line) {
            tell(units);
        }
    });
    let program = order.environment.python.clone();
    let ended = ended.map_err(|cause| BuildError::System { what: "run", path: program, cause })?;
    let (seconds, log) = (began.elapsed().as_secs(), order.log.to_path_buf());
    match ended {
        Ended::Stopped => return Err(BuildError::Stopped { log, seconds }),
        Ended::Status(status) if !status.success() => return Err(BuildError::Failed { log, seconds }),
        Ended::Status(_) => {}
    }
    let wheel = wheel::only(&wheels, order.log)?;
    let libraries = wheel::proved(&wheel, order.wanted, order.log)?;
    if stop.is_wanted() {
        return Err(BuildError::Stopped { log, seconds });
    }
    Ok(Built { wheel: wheel::place(&wheel, order.out)?, seconds, libraries })
}

/// Puts the wheel into the environment that it was compiled for; what is said goes behind the rest in the log.
pub fn install(
    environment: &PythonEnvironment,
    wheel: &Path,
    log_path: &Path,
    stop: &Stop,
) -> Result<(), BuildError> {
    let failed = |cause| BuildError::System { what: "write", path: log_path.to_path_buf(), cause };
    let mut log = File::options().append(true).open(log_path).map_err(failed)?;
    let mut command = environment.install_wheel_command(wheel);
    command.current_dir(wheel.parent().unwrap_or(Path::new(".")));
    let program = environment.python.clone();
    let ended = run(command, &mut log, stop, &mut |_| {});
    let log = log_path.to_path_buf();
    match ended.map_err(|cause| BuildError::System { what: "run", path: program, cause })? {
        Ended::Stopped => Err(BuildError::Stopped { log, seconds: 0 }),
        Ended::Status(status) if status.success() => Ok(()),
        Ended::Status(_) => Err(BuildError::NotInstalled { wheel: wheel.to_path_buf(), log }),
    }
}

fn open_log(path: &Path) -> io::Result<File> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    File::create(path)
}

/// What a person needs to do the same by hand.
fn write_head(log: &mut File, order: &Order<'_>, command: &Command) -> io::Result<()> {
    writeln!(log, "mambapatch {}: {command:?}", env!("CARGO_PKG_VERSION"))?;
    writeln!(log, "toolkit: {}", order.home.toolkit.display())
}

impl Order<'_> {
    fn command(&self, temporary: &Path, wheels: &Path) -> io::Result<Command> {
        fs::create_dir(wheels)?;
        let tree = fs::canonicalize(self.tree)?;
        let mut command = self.environment.wheel_command(&tree, wheels);
        // Not in the tree: `python -m pip` would import what lies there.
        command.current_dir(wheels).envs(self.variables);
        command.env("CUDA_HOME", self.home.path()).env("CUDA_PATH", self.home.path());
        command.env("MAX_JOBS", self.room.jobs.to_string());
        command.env("NVCC_THREADS", self.room.threads.to_string());
        command.env("PATH", self.search_path()?);
        command.env("DIST_EXTRA_CONFIG", objects_elsewhere(temporary)?);
        command.env("PYTHONUNBUFFERED", "1");
        Ok(command)
    }

    /// The programs of the environment (ninja) and of the toolkit come first.
    fn search_path(&self) -> io::Result<OsString> {
        let first = [self.environment.scripts.clone(), self.home.path().join("bin")];
        let rest = std::env::var_os("PATH").unwrap_or_default();
        std::env::join_paths(first.into_iter().chain(std::env::split_paths(&rest))).map_err(io::Error::other)
    }
}

/// A configuration of setuptools that keeps objects out of the tree: it would take an old library that lies in `build`
/// for a new one, whatever the flags.
fn objects_elsewhere(temporary: &Path) -> io::Result<PathBuf> {
    let config = temporary.join("extra.cfg");
    let objects = temporary.join("objects");
    fs::write(&config, format!("[build]\nbuild_base = {}\n", objects.display()))?;
    Ok(config)
}
