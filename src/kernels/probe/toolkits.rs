//! Every nvcc of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::on_path;
use crate::engine::toolkit::Toolkit;
use crate::kernels::facts::{FoundToolkit, release};
use crate::kernels::process::output;

/// All toolkits: CUDA_HOME, CUDA_PATH, the search path, conda, the usual places, and packages of Python. The oldest is
/// first; one that is found twice is named by the first way.
pub fn toolkits(sites: &[PathBuf]) -> Vec<FoundToolkit> {
    let mut seen = BTreeSet::new();
    let mut found: Vec<FoundToolkit> = places(sites)
        .into_iter()
        .filter(|(nvcc, _)| seen.insert(fs::canonicalize(nvcc).unwrap_or_else(|_| nvcc.clone())))
        .filter_map(|(nvcc, by)| toolkit(nvcc, by))
        .collect();
    found.sort_by_key(|toolkit| release(&toolkit.version));
    found
}

/// The releases alone, ascending, each once.
pub fn releases(found: &[FoundToolkit]) -> Vec<Toolkit> {
    let mut releases: Vec<Toolkit> =
        found.iter().filter_map(|toolkit| toolkit.version.parse().ok()).collect();
    releases.sort();
    releases.dedup();
    releases
}

fn places(sites: &[PathBuf]) -> Vec<(PathBuf, Option<String>)> {
    let program = if cfg!(windows) { "bin/nvcc.exe" } else { "bin/nvcc" };
    let named = |variable: &str| {
        let home = std::env::var_os(variable).filter(|value| !value.is_empty())?;
        Some((Path::new(&home).join(program), Some(variable.to_string())))
    };
    let mut places: Vec<_> = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(named).collect();
    places.extend(on_path("nvcc").map(|nvcc| (nvcc, Some("PATH".to_string()))));
    places.extend(named("CONDA_PREFIX"));
    let usual = ["/opt/cuda", "/usr/lib/nvidia-cuda-toolkit"].map(PathBuf::from).into_iter();
    let local = below("/usr/local".as_ref(), "cuda");
    let windows = below(r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA".as_ref(), "v");
    let packages = sites.iter().flat_map(|site| below(&site.join("nvidia"), "cu"));
    places.extend(usual.chain(local).chain(windows).chain(packages).map(|home| (home.join(program), None)));
    places
}

/// The folders of a folder whose names begin so, in order.
fn below(folder: &Path, beginning: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let begins = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().to_lowercase().starts_with(beginning))
    };
    let mut folders: Vec<PathBuf> = entries.filter(begins).collect();
    folders.sort();
    folders
}

fn toolkit(nvcc: PathBuf, by: Option<String>) -> Option<FoundToolkit> {
    let version = release_of(&output(Command::new(&nvcc).arg("--version"))?)?.to_string();
    let ptxas = nvcc.with_file_name(if cfg!(windows) { "ptxas.exe" } else { "ptxas" });
    let ptxas = output(Command::new(ptxas).arg("--version")).and_then(|text| release_of(&text));
    Some(FoundToolkit { nvcc, version, ptxas: ptxas.map(|release| release.to_string()), by })
}

/// The release in what `nvcc --version` and `ptxas --version` print.
fn release_of(text: &str) -> Option<Toolkit> {
    text.split("release ").nth(1)?.split(',').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_read() {
        assert_eq!(release_of("Cuda compilation tools, release 12.8, V12.8.93"), Some(Toolkit::new(12, 8)));
        assert_eq!(release_of("nothing"), None);
    }
}
