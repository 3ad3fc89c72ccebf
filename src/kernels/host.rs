//! What this machine has: GPUs, toolkit, PyTorch and packages. Nothing is imported and nothing is built.

use std::collections::BTreeMap;
use std::path::Path;

use super::probe::environment::Environment;
use super::probe::{gpus, toolkits};
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

impl Host {
    /// Asks nvidia-smi, the toolkits and a Python: the given one, else that of the active environment.
    pub fn ask(python: Option<&Path>) -> Self {
        let environment = Environment::ask(python, false);
        let torch = environment.as_ref().and_then(|environment| environment.torch.as_ref());
        let torch_cuda = torch.and_then(|torch| torch.cuda.as_deref()?.parse().ok());
        let asked = environment.iter().flat_map(|environment| &environment.packages);
        let packages: BTreeMap<String, Option<Tag>> =
            asked.filter(|(name, _)| PACKAGES.contains(&name.as_str())).map(release).collect();
        let sites = environment.as_ref().map_or(&[][..], |environment| &environment.sites);
        Self {
            gpus: gpus::arches(&gpus::gpus().0),
            toolkit: fitting(toolkits::releases(&toolkits::toolkits(sites)), torch_cuda),
            torch: packages.get("torch").cloned().flatten(),
            python: environment.as_ref().and_then(|environment| environment.python.parse().ok()),
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
    }

    #[test]
    fn local_versions_do_not_count() {
        let (_, tag) = release((&"torch".to_string(), &Some("2.11.0+cu130".to_string())));
        assert_eq!(tag, "2.11.0".parse().ok());
    }
}
