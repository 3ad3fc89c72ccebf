//! What this machine has: GPUs, toolkit, PyTorch and packages. Nothing is imported and nothing is built.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::process::output;
use super::python;
use crate::engine::arch::Arch;
use crate::engine::tag::Tag;
use crate::engine::toolkit::Toolkit;

/// What this machine has; what is absent was not found.
#[derive(Debug, Clone, Default)]
pub struct Host {
    /// The architectures of its GPUs, each once.
    pub gpus: Vec<Arch>,
    /// The toolkit that fits PyTorch's CUDA major; without PyTorch, the newest.
    pub toolkit: Option<Toolkit>,
    /// PyTorch, without its local version.
    pub torch: Option<Tag>,
    /// Python.
    pub python: Option<Tag>,
    /// As `uname -m` names it.
    pub machine: String,
    /// Packages that patches ask for, with their releases.
    pub packages: BTreeMap<String, Option<Tag>>,
}

/// The packages whose releases patches ask for.
const PACKAGES: [&str; 2] = ["torch", "transformers"];

/// Prints what the installed packages say of themselves; torch is not imported.
const QUERY: &str = r#"
import importlib.metadata as m, importlib.util as u, json, pathlib, platform, re, sys
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return None
spec = u.find_spec("torch")
text = ""
if spec and spec.origin:
    path = pathlib.Path(spec.origin).with_name("version.py")
    text = path.read_text() if path.exists() else ""
cuda = re.search(r"^cuda.*= *'([0-9.]+)'", text, re.M)
print(json.dumps({"python": platform.python_version(), "packages": {n: version(n) for n in sys.argv[1:]},
    "torch_cuda": cuda.group(1) if cuda else None}))
"#;

#[derive(Debug, Deserialize)]
struct PythonAnswer {
    python: String,
    packages: BTreeMap<String, Option<String>>,
    torch_cuda: Option<String>,
}

impl Host {
    /// Asks nvidia-smi, the toolkits and a Python: the given one, else that of the active environment.
    pub fn ask(python: Option<&Path>) -> Self {
        let answer: Option<PythonAnswer> = python::ask(python, QUERY, &PACKAGES);
        let torch_cuda = answer.as_ref().and_then(|answer| answer.torch_cuda.as_deref()?.parse().ok());
        let packages: BTreeMap<String, Option<Tag>> =
            answer.iter().flat_map(|answer| &answer.packages).map(release).collect();
        Self {
            gpus: ask_gpus(),
            toolkit: fitting(toolkits(), torch_cuda),
            torch: packages.get("torch").cloned().flatten(),
            python: answer.and_then(|answer| answer.python.parse().ok()),
            machine: std::env::consts::ARCH.to_string(),
            packages,
        }
    }

    /// Whether nothing was found that a patch could ask for.
    pub fn is_empty(&self) -> bool {
        self.gpus.is_empty() && self.toolkit.is_none() && self.torch.is_none()
    }

    /// What was found, in words.
    pub fn summary(&self) -> String {
        let gpus = self.gpus.iter().map(|gpu| format!("GPU {gpu}"));
        let toolkit = self.toolkit.iter().map(|toolkit| format!("CUDA {toolkit}"));
        let packages =
            self.packages.iter().filter_map(|(name, tag)| Some(format!("{name} {}", tag.as_ref()?)));
        let machine = [self.machine.clone()];
        gpus.chain(toolkit).chain(packages).chain(machine).collect::<Vec<_>>().join(", ")
    }

    /// What was not found.
    pub fn missing(&self) -> Vec<&'static str> {
        let parts = [
            (self.gpus.is_empty(), "an NVIDIA GPU (nvidia-smi)"),
            (self.toolkit.is_none(), "a CUDA toolkit (nvcc)"),
            (self.torch.is_none(), "PyTorch"),
        ];
        parts.into_iter().filter(|(missing, _)| *missing).map(|(_, name)| name).collect()
    }
}

/// A release without its local part: `2.11.0+cu130` is 2.11.0 to a patch.
fn release((name, version): (&String, &Option<String>)) -> (String, Option<Tag>) {
    let public = version.as_ref().map(|version| version.split('+').next().unwrap_or(version).to_string());
    (name.clone(), public.and_then(|version| version.parse().ok()))
}

fn ask_gpus() -> Vec<Arch> {
    let text = output(Command::new("nvidia-smi").args(["--query-gpu=compute_cap", "--format=csv,noheader"]));
    let mut gpus: Vec<Arch> =
        text.iter().flat_map(|text| text.lines()).filter_map(|line| line.trim().parse().ok()).collect();
    gpus.sort();
    gpus.dedup();
    gpus
}

/// All toolkits whose nvcc is found: CUDA_HOME, CUDA_PATH, the search path, /usr/local/cuda*.
fn toolkits() -> Vec<Toolkit> {
    let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let local = std::fs::read_dir("/usr/local").into_iter().flatten().flatten().map(|entry| entry.path());
    let local =
        local.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("cuda")));
    let nvccs = homes.chain(local).map(|home| home.join("bin/nvcc")).chain([PathBuf::from("nvcc")]);
    let mut toolkits: Vec<Toolkit> = nvccs
        .filter_map(|nvcc| output(Command::new(nvcc).arg("--version")))
        .filter_map(|text| toolkit_of(&text))
        .collect();
    toolkits.sort();
    toolkits.dedup();
    toolkits
}

/// The release in what `nvcc --version` prints.
fn toolkit_of(text: &str) -> Option<Toolkit> {
    text.split("release ").nth(1)?.split(',').next()?.trim().parse().ok()
}

fn fitting(toolkits: Vec<Toolkit>, torch: Option<Toolkit>) -> Option<Toolkit> {
    let fits = |toolkit: &&Toolkit| torch.is_none_or(|torch| torch.major == toolkit.major);
    toolkits.iter().rfind(fits).or(toolkits.last()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_toolkit_fits_the_major_of_torch() {
        let (old, new) = (Toolkit::new(12, 8), Toolkit::new(13, 0));
        assert_eq!(fitting(vec![old, new], Some(Toolkit::new(12, 6))), Some(old));
        assert_eq!(fitting(vec![old, new], None), Some(new));
        assert_eq!(toolkit_of("Cuda compilation tools, release 12.8, V12.8.93"), Some(old));
        assert_eq!(toolkit_of("nothing"), None);
    }

    #[test]
    fn local_versions_do_not_count() {
        let (_, tag) = release((&"torch".to_string(), &Some("2.11.0+cu130".to_string())));
        assert_eq!(tag, "2.11.0".parse().ok());
    }
}
