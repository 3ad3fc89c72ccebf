//! What is known of a machine that builds or runs kernels: what `doctor` finds and `diagnose` decides by.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Facts of a machine; what is absent was not found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Facts {
    /// `linux`, `windows`, `macos`.
    pub system: Option<String>,
    /// As `uname -m` names it.
    pub machine: Option<String>,
    /// Processor cores that may be used.
    pub cores: Option<usize>,
    /// Memory in GB.
    pub memory: Option<u64>,
    /// glibc.
    pub glibc: Option<String>,
    /// The GPUs of NVIDIA.
    pub gpus: Vec<Gpu>,
    /// The driver.
    pub driver: Option<Driver>,
    /// Every nvcc.
    pub toolkits: Vec<FoundToolkit>,
    /// The Python whose packages count.
    pub python: Option<Python>,
    /// PyTorch.
    pub torch: Option<Torch>,
    /// Compilers of the host.
    pub compilers: Vec<Compiler>,
    /// ninja.
    pub ninja: Option<String>,
    /// Variables that change builds, where they are set.
    pub variables: BTreeMap<String, String>,
    /// Packages that patches and rules ask for, with their releases.
    pub packages: BTreeMap<String, String>,
    /// Compiled files of installed packages that hold GPU code or take something of torch.
    pub extensions: Vec<Extension>,
    /// Modules that several packages bring, or that lie in the current folder too.
    pub shadows: Vec<Shadow>,
}

/// A GPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Gpu {
    /// As the driver names it.
    pub name: Option<String>,
    /// `120`.
    pub arch: Option<String>,
}

/// The driver of NVIDIA.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Driver {
    /// `580.65.06`.
    pub version: Option<String>,
    /// The newest CUDA that it runs: `13.0`.
    pub cuda: Option<String>,
}

/// An nvcc.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct FoundToolkit {
    /// The program.
    pub nvcc: PathBuf,
    /// `12.8`.
    pub version: String,
    /// The release of the ptxas beside it.
    pub ptxas: Option<String>,
    /// `CUDA_HOME`, `PATH`, or nothing where it was found in a usual place.
    pub by: Option<String>,
}

/// Python.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Python {
    /// The program.
    pub path: PathBuf,
    /// `3.11.7`.
    pub version: String,
}

/// PyTorch, read from its files.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Torch {
    /// `2.11.0+cu130`.
    pub version: String,
    /// The CUDA that it was built with; none where it was built without.
    pub cuda: Option<String>,
    /// ROCm.
    pub hip: Option<String>,
    /// Its folder.
    pub folder: Option<PathBuf>,
    /// Whether C++ strings have the new ABI.
    pub cxx11_abi: Option<bool>,
    /// What its own GPU code was compiled for: `sm_90`, `compute_120`.
    pub codes: Vec<String>,
}

/// A compiler of the host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Compiler {
    /// `gcc`, `clang`, `msvc`.
    pub kind: String,
    /// `12.2.0`; of MSVC that of the compiler: `19.44`.
    pub version: String,
    /// The program.
    pub path: PathBuf,
    /// `CXX`, `CC`, `PATH`.
    pub by: String,
}

/// A compiled file of an installed package.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Extension {
    /// The package that brought it.
    pub package: String,
    /// Its release.
    pub version: String,
    /// The file.
    pub file: PathBuf,
    /// What it was compiled for: `sm_90`, `compute_120`.
    pub codes: Vec<String>,
    /// The releases of torch that it fits, in words; none where it takes nothing of torch.
    pub torch: Option<String>,
    /// The ABI of C++ strings that it takes from torch.
    pub cxx11_abi: Option<bool>,
    /// The major release of CUDA whose libraries it loads.
    pub cuda: Option<u16>,
    /// The glibc that it needs.
    pub glibc: Option<String>,
    /// Symbols of torch that the installed torch does not have: importing it fails.
    pub missing: Vec<String>,
    /// Why it could not be read.
    pub broken: Option<String>,
}

/// A module that comes from more than one place.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Shadow {
    /// The module.
    pub module: String,
    /// The packages that bring it.
    pub packages: Vec<String>,
    /// A folder below the current one that holds another copy.
    pub folder: Option<PathBuf>,
}

impl Facts {
    /// The toolkit that a build uses: CUDA_HOME's, that on the search path, else the newest that fits torch's major.
    pub fn toolkit(&self) -> Option<&FoundToolkit> {
        let by = |name: &str| self.toolkits.iter().find(|toolkit| toolkit.by.as_deref() == Some(name));
        by("CUDA_HOME").or_else(|| by("CUDA_PATH")).or_else(|| by("PATH")).or_else(|| self.fitting_toolkit())
    }

    /// The newest toolkit of torch's major; without torch, the newest.
    pub fn fitting_toolkit(&self) -> Option<&FoundToolkit> {
        let major = self.torch.as_ref().and_then(|torch| major(torch.cuda.as_deref()?));
        let fits = |toolkit: &&FoundToolkit| major.is_none_or(|wanted| major_of(toolkit) == Some(wanted));
        self.toolkits.iter().filter(fits).max_by_key(|toolkit| release(&toolkit.version))
    }

    /// The compiler that a build uses.
    pub fn compiler(&self) -> Option<&Compiler> {
        self.compilers.first()
    }
}

fn major_of(toolkit: &FoundToolkit) -> Option<u16> {
    major(&toolkit.version)
}

/// `13` of `13.0`.
pub fn major(version: &str) -> Option<u16> {
    version.split('.').next()?.parse().ok()
}

/// A release as numbers, for comparing.
pub fn release(version: &str) -> Vec<u32> {
    version.split('.').map_while(|part| part.parse().ok()).collect()
}
