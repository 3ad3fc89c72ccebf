//! Why nothing was built.

use std::path::PathBuf;

use crate::kernels::inspect::InspectError;
use crate::kernels::inspect::places::PlaceError;

/// Why there is no wheel.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No Python, or not the one that was named.
    #[error("{} cannot be run", given.as_ref().map_or("no Python was found: neither python3 nor python".to_string(), |path| format!("the Python {}", path.display())))]
    NoPython {
        /// What was named.
        given: Option<PathBuf>,
    },
    /// Neither pip nor uv.
    #[error("{} has no pip, and uv is not on the search path", python.display())]
    NoInstaller {
        /// The Python.
        python: PathBuf,
    },
    /// PyTorch is not installed.
    #[error("PyTorch is not installed in {}, and it is compiled against", python.display())]
    NoTorch {
        /// The Python.
        python: PathBuf,
    },
    /// PyTorch that cannot run kernels.
    #[error("PyTorch {version} in {} was built without CUDA", python.display())]
    TorchWithoutCuda {
        /// The release.
        version: String,
        /// The Python.
        python: PathBuf,
    },
    /// No nvcc that PyTorch takes.
    #[error("no nvcc of CUDA {major} was found, and PyTorch {torch} was built with CUDA {cuda}; {}", if found.is_empty() { "there is no nvcc at all".to_string() } else { format!("found: {}", found.join(", ")) })]
    NoToolkit {
        /// PyTorch's release.
        torch: String,
        /// Its CUDA.
        cuda: String,
        /// The major release of that.
        major: u16,
        /// Each nvcc.
        found: Vec<String>,
        /// How the missing one is installed.
        install: String,
    },
    /// A toolkit without a part that every build needs.
    #[error("the toolkit in {} is not whole: {} missing", home.display(), lacks.join(", "))]
    Incomplete {
        /// CUDA_HOME.
        home: PathBuf,
        /// The files.
        lacks: Vec<&'static str>,
        /// How they are installed.
        install: String,
    },
    /// What the build imports is not installed.
    #[error("{} lacks what the build needs: {}", python.display(), missing.join(", "))]
    Missing {
        /// The Python.
        python: PathBuf,
        /// Each requirement, and what is there instead.
        missing: Vec<String>,
        /// What installs them.
        command: String,
    },
    /// Nothing to run a build of.
    #[error("neither setup.py nor pyproject.toml lies at the root of {place}")]
    NoProject {
        /// The target.
        place: String,
        /// Folders below it that have one.
        below: Vec<String>,
    },
    /// The tree holds something else than what was shown.
    #[error("{} is not as it was shown: the checkout of an earlier run is on another branch, or was changed", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A file or program of this machine failed.
    #[error("cannot {what} {}: {cause}", path.display())]
    System {
        /// What was tried.
        what: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The build failed.
    #[error("the build failed after {seconds} s; its log is {}", log.display())]
    Failed {
        /// All that was said.
        log: PathBuf,
        /// How long it took.
        seconds: u64,
    },
    /// The wheel is there, and could not be installed.
    #[error("{} was built, and could not be installed; the log is {}", wheel.display(), log.display())]
    NotInstalled {
        /// The wheel.
        wheel: PathBuf,
        /// All that was said.
        log: PathBuf,
    },
    /// A signal stopped it.
    #[error("stopped after {seconds} s")]
    Stopped {
        /// All that was said.
        log: PathBuf,
        /// How long it took.
        seconds: u64,
    },
    /// Not one wheel.
    #[error("the build ended well and left {count} wheels instead of one; its log is {}", log.display())]
    NotOneWheel {
        /// How many.
        count: usize,
        /// All that was said.
        log: PathBuf,
    },
    /// A wheel without kernels.
    #[error("{wheel} holds no GPU code: the build left CUDA out; its log is {}", log.display())]
    NoCode {
        /// Its name.
        wheel: String,
        /// All that was said.
        log: PathBuf,
    },
    /// A wheel that lacks what was asked for.
    #[error("{wheel} lacks {}: it holds {}; its log is {}", lacks.join(", "), found.join(", "), log.display())]
    Lacks {
        /// Its name.
        wheel: String,
        /// What is missing.
        lacks: Vec<String>,
        /// What is there.
        found: Vec<String>,
        /// All that was said.
        log: PathBuf,
    },
    /// A wheel that cannot be looked into.
    #[error("cannot inspect {place}: {cause}")]
    Inspect {
        /// Which file.
        place: String,
        /// Why.
        cause: InspectError,
    },
    /// The same, as a whole.
    #[error(transparent)]
    Place(#[from] PlaceError),
}

impl BuildError {
    /// What to type next.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoPython { .. } => "name one that runs: --python ./env/bin/python",
            Self::NoInstaller { python } => {
                return Some(format!("{} -m ensurepip", python.display()));
            }
            Self::NoTorch { python } | Self::TorchWithoutCuda { python, .. } => {
                return Some(format!(
                    "{} -m pip install torch, or name another Python: --python PYTHON",
                    python.display()
                ));
            }
            Self::NoToolkit { install, .. }
            | Self::Incomplete { install, .. }
            | Self::Missing { command: install, .. } => return Some(install.clone()),
            Self::NoProject { below, .. } => return below_hint(below),
            Self::Changed { .. } => "name another folder: --into DIR",
            Self::Failed { log, .. } | Self::NotInstalled { log, .. } => {
                return Some(format!("mambapatch diagnose {}", log.display()));
            }
            Self::NoCode { .. } => "see in the log why: CUDA_HOME, or a variable that leaves CUDA out",
            Self::Lacks { .. } => "see what is compiled: mambapatch check TARGET with the same flags",
            Self::NotOneWheel { .. } => "build the folders one by one: mambapatch build ./DIR",
            Self::Stopped { .. } | Self::System { .. } | Self::Inspect { .. } | Self::Place(_) => {
                return None;
            }
        };
        Some(hint.to_string())
    }
}

fn below_hint(below: &[String]) -> Option<String> {
    match below {
        [] => Some("name the folder that its setup.py lies in".to_string()),
        [only] => Some(format!("build that folder of it: {only}")),
        several => Some(format!("build one of its folders: {}", several.join(", "))),
    }
}
