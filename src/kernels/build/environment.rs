//! The Python that builds: what installs into it, what it has, where its programs lie.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::error::BuildError;
use super::requirements::Requirement;
use crate::engine::toolkit::Toolkit;
use crate::kernels::facts::FoundToolkit;
use crate::kernels::probe::{environment, on_path, toolkits};
use crate::kernels::python;

/// What makes and installs wheels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installer {
    /// pip of that Python.
    Pip,
    /// uv, for that Python.
    Uv(PathBuf),
}

/// A Python with PyTorch, and the toolkits of the machine.
#[derive(Debug, Clone)]
pub struct PythonEnvironment {
    /// The program.
    pub python: PathBuf,
    /// `3.11.7`.
    pub version: String,
    /// What makes and installs wheels.
    pub installer: Installer,
    /// PyTorch's release: `2.11.0+cu130`.
    pub torch: String,
    /// The CUDA that PyTorch was built with.
    pub cuda: Toolkit,
    /// Every nvcc.
    pub toolkits: Vec<FoundToolkit>,
    /// The folder of its programs, where ninja may lie.
    pub scripts: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Tools {
    scripts: PathBuf,
    pip: bool,
}

const TOOLS: &str = r#"
import importlib.util as u, json, sysconfig
print(json.dumps({"scripts": sysconfig.get_path("scripts"), "pip": u.find_spec("pip") is not None}))
"#;

const VERSIONS: &str = r#"
import importlib.metadata as m, json, sys
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return None
print(json.dumps({name: version(name) for name in sys.argv[1:]}))
"#;

impl PythonEnvironment {
    /// Asks the given Python, else that of the active environment, else python3.
    pub fn ask(given: Option<&Path>) -> Result<Self, BuildError> {
        let no_python = || BuildError::NoPython { given: given.map(Path::to_path_buf) };
        let asked = environment::Environment::ask(given, false).ok_or_else(no_python)?;
        let python = asked.executable;
        let tools: Tools = python::ask(Some(&python), TOOLS, &[]).ok_or_else(no_python)?;
        let installer = match (tools.pip, on_path("uv")) {
            (true, _) => Installer::Pip,
            (false, Some(uv)) => Installer::Uv(uv),
            (false, None) => return Err(BuildError::NoInstaller { python }),
        };
        let torch = asked.torch.ok_or_else(|| BuildError::NoTorch { python: python.clone() })?;
        let Some(cuda) = torch.cuda.as_deref().and_then(|cuda| cuda.parse().ok()) else {
            return Err(BuildError::TorchWithoutCuda { version: torch.version, python });
        };
        Ok(Self {
            python,
            version: asked.python,
            installer,
            torch: torch.version,
            cuda,
            toolkits: toolkits::toolkits(&asked.sites),
            scripts: tools.scripts,
        })
    }

    /// Whether the build finds ninja.
    pub fn has_ninja(&self) -> bool {
        let name = if cfg!(windows) { "ninja.exe" } else { "ninja" };
        self.scripts.join(name).is_file() || on_path("ninja").is_some()
    }

    /// Refuses where something that the build imports is missing, or of a release that it does not take.
    pub fn check(&self, wanted: &[Requirement]) -> Result<(), BuildError> {
        let names: Vec<&str> = wanted.iter().map(|one| one.name.as_str()).collect();
        let found: BTreeMap<String, Option<String>> =
            python::ask(Some(&self.python), VERSIONS, &names).unwrap_or_default();
        let version = |name: &String| found.get(name).and_then(Option::as_deref);
        let missing: Vec<(&Requirement, Option<&str>)> = wanted
            .iter()
            .map(|one| (one, version(&one.name)))
            .filter(|(one, version)| !one.is_met(*version))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let packages: Vec<String> = missing.iter().map(|(one, _)| format!("'{}'", one.text())).collect();
        let said = |(one, version): &(&Requirement, Option<&str>)| match version {
            Some(version) => format!("{} ({version} is there)", one.text()),
            None => one.text(),
        };
        Err(BuildError::Missing {
            python: self.python.clone(),
            missing: missing.iter().map(said).collect(),
            command: self.install_command(&packages.join(" ")),
        })
    }

    /// What installs packages into this Python, as it is typed.
    pub fn install_command(&self, packages: &str) -> String {
        let python = self.python.display();
        match &self.installer {
            Installer::Pip => format!("{python} -m pip install {packages}"),
            Installer::Uv(_) => format!("uv pip install --python {python} {packages}"),
        }
    }

    /// What puts a wheel into this Python in the place of what is there.
    pub(super) fn install_wheel_command(&self, wheel: &Path) -> Command {
        let mut command = match &self.installer {
            Installer::Pip => {
                let mut command = Command::new(&self.python);
                command.args(["-m", "pip", "install", "--no-input", "--disable-pip-version-check"]);
                command
            }
            Installer::Uv(uv) => {
                let mut command = Command::new(uv);
                command.args(["pip", "install", "--python"]).arg(&self.python);
                command
            }
        };
        command.args(["--no-deps", "--force-reinstall"]).arg(wheel);
        command
    }

    /// What makes a wheel of a folder: without isolation, without dependencies, without caches.
    pub(super) fn wheel_command(&self, tree: &Path, into: &Path) -> Command {
        let mut command = match &self.installer {
            Installer::Pip => {
                let mut command = Command::new(&self.python);
                command.args(["-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", "--no-input"]);
                command.args(["--no-cache-dir", "--disable-pip-version-check", "--wheel-dir"]);
                command
            }
            Installer::Uv(uv) => {
                let mut command = Command::new(uv);
                command.args(["build", "--wheel", "--no-build-isolation", "--no-cache", "--python"]);
                command.arg(&self.python).arg("--out-dir");
                command
            }
        };
        command.arg(into).arg(tree);
        command
    }
}
