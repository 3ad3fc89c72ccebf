//! Whether a compiled extension can be imported, and whether its kernels compute what its reference computes.
//!
//! Everything happens in the user's Python, in processes of their own: a kernel that crashes takes only its process along.

mod session;
pub mod wheel;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

pub use session::program;
use session::{Ended, Session};

use super::facts::Facts;
use crate::kernels::diagnose::{self, Cause};

/// How long a script may say nothing: kernels of Triton are compiled at their first use.
const PATIENCE: Duration = Duration::from_secs(600);

/// What is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The program of a Python; [`program`] finds it.
    pub python: PathBuf,
    /// A module or a distribution: `mamba_ssm`, `mamba-ssm`.
    pub name: String,
    /// Folders that Python looks into first: an unpacked wheel, a tree that was built in place.
    pub first: Vec<PathBuf>,
    /// A folder whose compiled files are loaded besides those of the module.
    pub folder: Option<PathBuf>,
    /// Only those files are meant: nothing is imported by the name.
    pub alone: bool,
    /// The text of the smoke test, a Python script that prints a JSON object for each check.
    pub smoke: Option<String>,
}

impl Subject {
    /// A module or a distribution as it is installed; no smoke test.
    pub fn installed(python: &Path, name: &str) -> Self {
        let python = python.to_path_buf();
        Self { python, name: name.to_string(), first: Vec::new(), folder: None, alone: false, smoke: None }
    }
}

/// What was found of a subject that could be imported.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// Its name.
    pub name: String,
    /// The release of its distribution, else what its module says.
    pub release: Option<String>,
    /// The release of Python.
    pub python: String,
    /// The release of PyTorch, where it is installed.
    pub torch: Option<String>,
    /// The GPU that PyTorch uses.
    pub gpu: Option<String>,
    /// Modules that were imported, each with its file.
    pub modules: Vec<(String, Option<PathBuf>)>,
    /// Compiled files that were loaded.
    pub files: Vec<PathBuf>,
    /// Libraries for other releases of CUDA, each with the runtime that it lacks here.
    pub others: Vec<(PathBuf, String)>,
    /// What became of the smoke test.
    pub smoke: Smoke,
}

/// What became of a smoke test.
#[derive(Debug, Clone, PartialEq)]
pub enum Smoke {
    /// There is none.
    None,
    /// There is one, and no GPU to run it; why.
    NoGpu(String),
    /// It ran.
    Ran {
        /// What it checked; never empty.
        checks: Vec<Check>,
        /// What it wrote to standard error.
        log: String,
    },
}

/// A comparison of a kernel with its reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// What was compared.
    pub name: String,
    /// The largest error, relative to the largest value of the reference; none where something was not a number.
    pub error: Option<f64>,
    /// The largest error that passes.
    pub tolerance: f64,
    /// What was raised instead of an answer.
    pub raised: Option<String>,
}

impl Check {
    /// Whether the error is a number and small enough.
    pub fn passed(&self) -> bool {
        self.raised.is_none() && self.error.is_some_and(|error| error >= 0.0 && error <= self.tolerance)
    }
}

impl Verified {
    /// Whether no check failed; a smoke test that did not run fails nothing.
    pub fn passed(&self) -> bool {
        match &self.smoke {
            Smoke::Ran { checks, .. } => checks.iter().all(Check::passed),
            Smoke::None | Smoke::NoGpu(_) => true,
        }
    }
}

/// Why a subject could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// There is no Python.
    #[error("no Python was found")]
    NoPython,
    /// It does not start.
    #[error("cannot run {}: {cause}", python.display())]
    Start {
        /// The program.
        python: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// No folder for it to run in.
    #[error("cannot write a temporary folder: {cause}")]
    Folder {
        /// What the system said.
        cause: io::Error,
    },
    /// The wheel cannot be unpacked.
    #[error("cannot unpack {}: {cause}", wheel.display())]
    Wheel {
        /// Which.
        wheel: PathBuf,
        /// Why.
        cause: String,
    },
    /// Nothing of that name is there.
    #[error("no module and no package `{name}` is installed for {}", python.display())]
    NotInstalled {
        /// The name.
        name: String,
        /// The program that was asked.
        python: PathBuf,
    },
    /// The loader, or the module itself, refuses.
    #[error("cannot {} {what}: {error}", if *.is_file { "load" } else { "import" })]
    Import {
        /// The module or the file.
        what: String,
        /// Whether it is a compiled file.
        is_file: bool,
        /// What Python raised, or how it ended.
        error: String,
        /// Everything that was written to standard error: tracebacks.
        log: String,
    },
}

/// One line of `import.py`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    kind: String,
    name: String,
    doing: Option<String>,
    error: Option<String>,
    file: Option<PathBuf>,
    version: Option<String>,
    gpu: Option<String>,
    release: Option<String>,
    modules: Vec<String>,
    lacks: Option<String>,
}

/// Imports a subject, loads its compiled files, and runs its smoke test where there is a GPU. `step` is told what begins.
pub fn verify(subject: &Subject, step: &mut dyn FnMut(&str)) -> Result<Verified, VerifyError> {
    let session = Session::new(&subject.python, &subject.first, PATIENCE)?;
    step(&format!("importing {}", subject.name));
    let mut verified = import(subject, &session)?;
    let Some(smoke) = &subject.smoke else { return Ok(verified) };
    verified.smoke = match (&verified.gpu, &verified.torch) {
        (Some(gpu), _) => {
            step(&format!("running the smoke test of {} on {gpu}", subject.name));
            run(smoke, &session)?
        }
        (None, Some(torch)) => Smoke::NoGpu(format!("torch {torch} finds none")),
        (None, None) => Smoke::NoGpu("PyTorch is not installed".to_string()),
    };
    Ok(verified)
}

fn import(subject: &Subject, session: &Session) -> Result<Verified, VerifyError> {
    let asked = json!({ "name": subject.name, "folder": subject.folder, "alone": subject.alone }).to_string();
    let mut lines: Vec<Line> = Vec::new();
    let ended = session.run(include_str!("import.py"), &[&asked], &mut |line| {
        lines.extend(serde_json::from_str::<Line>(line).ok());
    })?;
    // What the loader says of a file is nearer to the cause than what a module made of it.
    let mut faults = lines.iter().filter(|line| line.error.is_some());
    let fault = faults.clone().find(|line| line.kind == "file").or(faults.next());
    if let Some(line) = fault {
        let error = line.error.clone().unwrap_or_default();
        return Err(refused(line.name.clone(), line.kind == "file", error, ended));
    }
    if ended.failed.is_some() || !lines.iter().any(|line| line.kind == "end") {
        let what = lines.iter().rev().find_map(|line| line.doing.clone());
        let error = ended.failed.clone().unwrap_or_else(|| "Python ended early".to_string());
        return Err(refused(what.unwrap_or_else(|| subject.name.clone()), false, error, ended));
    }
    let verified = summed(subject, lines);
    if let (true, true, Some((file, lacks))) =
        (verified.modules.is_empty(), verified.files.is_empty(), verified.others.first())
    {
        return Err(refused(file.display().to_string(), true, format!("{lacks} is not there"), ended));
    }
    if verified.modules.is_empty() && verified.files.is_empty() {
        let (name, python) = (subject.name.clone(), subject.python.clone());
        return Err(VerifyError::NotInstalled { name, python });
    }
    Ok(verified)
}

fn refused(what: String, is_file: bool, error: String, ended: Ended) -> VerifyError {
    VerifyError::Import { what, is_file, error, log: ended.log }
}

fn summed(subject: &Subject, lines: Vec<Line>) -> Verified {
    let mut verified = Verified {
        name: subject.name.clone(),
        release: None,
        python: String::new(),
        torch: None,
        gpu: None,
        modules: Vec::new(),
        files: Vec::new(),
        others: Vec::new(),
        smoke: Smoke::None,
    };
    for line in lines {
        match line.kind.as_str() {
            "python" => {
                verified.python = line.version.unwrap_or_default();
                verified.release = line.release;
            }
            "torch" => (verified.torch, verified.gpu) = (line.version, line.gpu),
            "module" => {
                verified.release = verified.release.take().or(line.version);
                verified.modules.push((line.name, line.file));
            }
            "file" => verified.files.push(PathBuf::from(line.name)),
            "other" => verified.others.push((PathBuf::from(line.name), line.lacks.unwrap_or_default())),
            _ => {}
        }
    }
    verified
}

/// What a smoke test prints of a check.
#[derive(Debug, Deserialize)]
struct Said {
    check: String,
    tolerance: f64,
    #[serde(default)]
    error: Option<f64>,
    #[serde(default)]
    raised: Option<String>,
}

/// Runs a smoke test. One that ends badly, or checks nothing, has failed.
fn run(smoke: &str, session: &Session) -> Result<Smoke, VerifyError> {
    let mut checks: Vec<Check> = Vec::new();
    let ended = session.run(smoke, &[], &mut |line| {
        checks.extend(line.starts_with('{').then(|| read(line)));
    })?;
    let nothing = checks.is_empty().then(|| "it checked nothing".to_string());
    if let Some(failed) = ended.failed.or(nothing) {
        let last = ended.log.lines().rev().find(|line| !line.trim().is_empty());
        let raised = last.map(|last| format!("{failed}: {}", last.trim())).unwrap_or(failed);
        checks.push(failed_check(raised));
    }
    Ok(Smoke::Ran { checks, log: ended.log })
}

/// A line of a smoke test. One that cannot be read has failed: Python writes `NaN`, which is no JSON.
fn read(line: &str) -> Check {
    match serde_json::from_str::<Said>(line) {
        Ok(said) => {
            let Said { check: name, tolerance, error, raised } = said;
            Check { name, error, tolerance, raised }
        }
        Err(error) => failed_check(format!("it printed {line}, which cannot be read: {error}")),
    }
}

fn failed_check(raised: String) -> Check {
    Check { name: "smoke test".to_string(), error: None, tolerance: 0.0, raised: Some(raised) }
}

/// Which of some modules a Python finds; none of them is imported.
pub fn installed(python: &Path, modules: &[&str]) -> Result<Vec<String>, VerifyError> {
    const SCRIPT: &str = "import importlib.util as u, json, sys\n\
        print(json.dumps([name for name in sys.argv[1:] if u.find_spec(name)]))";
    let session = Session::new(python, &[], PATIENCE)?;
    let mut found = Vec::new();
    session.run(SCRIPT, modules, &mut |line| {
        found.extend(serde_json::from_str::<Vec<String>>(line).unwrap_or_default());
    })?;
    Ok(found)
}

/// What `diagnose` knows of a log: causes and remedies, the one to act on first.
pub fn causes(log: &str, facts: &Facts) -> Vec<Cause> {
    let diagnosis = diagnose::diagnose(log.as_bytes(), facts);
    diagnosis.map(|diagnosis| diagnosis.known().cloned().collect()).unwrap_or_default()
}
