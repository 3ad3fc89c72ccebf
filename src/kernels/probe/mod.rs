//! Asks this machine. Nothing is built and no package is imported; each part may be missing.

mod compilers;
pub mod environment;
mod extensions;
pub mod gpus;
pub mod toolkits;

use std::path::{Path, PathBuf};

use super::facts::{Facts, Python, Torch};
use super::process::output;
use environment::Environment;

/// Variables that change what is built or run.
const VARIABLES: [&str; 12] = [
    "CUDA_HOME",
    "CUDA_PATH",
    "TORCH_CUDA_ARCH_LIST",
    "CC",
    "CXX",
    "MAX_JOBS",
    "NVCC_THREADS",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "TRITON_PTXAS_PATH",
    "TRITON_PTXAS_BLACKWELL_PATH",
    "BNB_CUDA_VERSION",
];

/// All that can be found out.
pub fn facts(python: Option<&Path>) -> Facts {
    let environment = Environment::ask(python, true);
    let (gpus, driver) = gpus::gpus();
    let mut facts = Facts {
        system: Some(std::env::consts::OS.to_string()),
        machine: Some(std::env::consts::ARCH.to_string()),
        cores: std::thread::available_parallelism().ok().map(usize::from),
        memory: memory(),
        glibc: glibc(),
        gpus,
        driver,
        toolkits: toolkits::toolkits(environment.as_ref().map_or(&[], |environment| &environment.sites)),
        compilers: compilers::compilers(),
        ninja: output(std::process::Command::new("ninja").arg("--version"))
            .map(|text| text.trim().to_string()),
        variables: VARIABLES
            .into_iter()
            .filter_map(|name| Some((name.to_string(), std::env::var(name).ok()?)))
            .collect(),
        ..Facts::default()
    };
    if let Some(environment) = environment {
        facts.python =
            Some(Python { path: environment.executable.clone(), version: environment.python.clone() });
        facts.packages = environment.known_packages();
        facts.ninja = facts.ninja.or(environment.packages.get("ninja").cloned().flatten());
        let torch = environment.torch.as_ref().map(extensions::torch);
        let exports =
            torch.as_ref().and_then(|torch: &Torch| torch.folder.as_deref()).map(extensions::exports);
        facts.extensions = extensions::extensions(&environment.binaries, exports.as_ref());
        facts.torch = torch;
        facts.shadows = environment.shadows(&facts.extensions);
    }
    facts
}

/// `getconf GNU_LIBC_VERSION` says `glibc 2.36`; musl has no such word.
fn glibc() -> Option<String> {
    let text = output(std::process::Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    text.trim().strip_prefix("glibc ").map(String::from)
}

/// Memory in GB, where the system tells it in a file.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes =
        text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"))?;
    Some(kilobytes.trim().parse::<u64>().ok()? >> 20)
}

/// Where a program lies on the search path.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let name = if cfg!(windows) { format!("{program}.exe") } else { program.to_string() };
    std::env::split_paths(&folders).map(|folder| folder.join(&name)).find(|path| path.is_file())
}
