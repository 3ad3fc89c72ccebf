//! Which toolkit compiles, and the CUDA_HOME that a build finds it by.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::environment::PythonEnvironment;
use super::error::BuildError;
use crate::engine::arch::Arch;
use crate::engine::catalogue::Catalogue;
use crate::engine::toolkit::Toolkit;
use crate::kernels::facts::FoundToolkit;

/// What a toolkit is chosen by.
#[derive(Debug, Clone)]
pub struct Wanted<'a> {
    /// The CUDA that PyTorch was built with: its major must be the same.
    pub torch: Toolkit,
    /// The toolkits that were named.
    pub named: &'a [Toolkit],
    /// The architectures that must be compiled.
    pub arches: Vec<Arch>,
}

/// The best toolkit of PyTorch's major: one that was named; one that knows all architectures; that of CUDA_HOME; the
/// minor of PyTorch, else the nearest newer one, else the nearest older one.
pub fn choose<'a>(found: &'a [FoundToolkit], wanted: &Wanted<'_>) -> Option<(&'a FoundToolkit, Toolkit)> {
    let release = |one: &'a FoundToolkit| Some((one, one.version.parse::<Toolkit>().ok()?));
    let fits = |(_, release): &(_, Toolkit)| release.major == wanted.torch.major;
    found.iter().filter_map(release).filter(fits).max_by_key(|(one, release)| {
        let catalogue = Catalogue::shipped();
        let knows = wanted.arches.iter().filter(|arch| catalogue.knows(*release, **arch)).count();
        let by_home = matches!(one.by.as_deref(), Some("CUDA_HOME" | "CUDA_PATH"));
        let (minor, torch) = (i32::from(release.minor), i32::from(wanted.torch.minor));
        (wanted.named.contains(release), knows, by_home, minor >= torch, -(minor - torch).abs())
    })
}

/// What installs a toolkit that a build takes, from the package index.
pub fn install(environment: &PythonEnvironment, toolkit: Toolkit) -> String {
    match toolkit.major {
        13.. => {
            environment.install_command(&format!("'cuda-toolkit[nvcc,nvvm,crt,cccl,cudart]=={toolkit}.*'"))
        }
        _ => format!("install CUDA {toolkit} from https://developer.nvidia.com/cuda-toolkit-archive"),
    }
}

/// A folder that a build takes as CUDA_HOME.
#[derive(Debug)]
pub struct CudaHome {
    path: PathBuf,
    /// Where the toolkit itself lies.
    pub toolkit: PathBuf,
    _links: Option<TempDir>,
}

impl CudaHome {
    /// The home of an nvcc. Packages of Python keep their libraries where no linker looks for them: then a folder of
    /// links, which goes away with this value, is put in its place, and the environment stays as it is.
    pub fn of(nvcc: &Path) -> Result<Self, BuildError> {
        let toolkit = home_of(nvcc);
        if is_whole(&toolkit) {
            return Ok(Self { path: toolkit.clone(), toolkit, _links: None });
        }
        let failed = |cause| BuildError::System { what: "link", path: toolkit.clone(), cause };
        let links = tempfile::Builder::new().prefix("mambapatch-cuda-").tempdir().map_err(failed)?;
        link_all(&toolkit, links.path()).map_err(failed)?;
        Ok(Self { path: links.path().to_path_buf(), toolkit, _links: Some(links) })
    }

    /// What CUDA_HOME is set to.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The folder above `bin`; a link to nvcc is followed, but not one to a program that stands before it (ccache).
fn home_of(nvcc: &Path) -> PathBuf {
    let real = fs::canonicalize(nvcc).ok().filter(|real| real.file_name() == nvcc.file_name());
    let nvcc = real.unwrap_or_else(|| nvcc.to_path_buf());
    nvcc.parent().and_then(Path::parent).unwrap_or(Path::new("/")).to_path_buf()
}

/// Whether the linker finds the runtime, or would not find it in a folder of links either.
fn is_whole(home: &Path) -> bool {
    let places = ["lib64/libcudart.so", "lib/libcudart.so", "lib64/libcudart_static.a"];
    places.iter().any(|place| home.join(place).exists()) || versioned(&home.join("lib")).is_empty()
}

/// The libraries of a folder that have a number behind their ending, with the name that a linker looks for.
fn versioned(folder: &Path) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let named = |path: PathBuf| {
        let name = path.file_name()?.to_str()?;
        let plain = format!("{}.so", name.split_once(".so.")?.0);
        Some((path, plain))
    };
    entries.filter_map(named).collect()
}

/// Missing files that every build of an extension includes or runs, of a toolkit made of packages of Python.
pub fn lacks(home: &Path) -> Vec<&'static str> {
    if home.parent().and_then(Path::file_name).is_none_or(|name| name != "nvidia") {
        return Vec::new();
    }
    let program = if cfg!(windows) { "nvvm/bin/cicc.exe" } else { "nvvm/bin/cicc" };
    let parts = [program, "include/cuda_runtime.h", "include/crt/host_config.h", "include/nv/target"];
    let is_there = |part: &str| {
        let below_cccl = part.strip_prefix("include/").map(|rest| home.join("include/cccl").join(rest));
        home.join(part).exists() || below_cccl.is_some_and(|path| path.exists())
    };
    parts.into_iter().filter(|part| !is_there(part)).collect()
}

#[cfg(unix)]
fn link_all(home: &Path, into: &Path) -> io::Result<()> {
    use std::os::unix::fs::symlink;
    for entry in fs::read_dir(home)?.flatten().filter(|entry| entry.file_name() != "lib64") {
        symlink(entry.path(), into.join(entry.file_name()))?;
    }
    let lib = into.join("lib64");
    fs::create_dir(&lib)?;
    for entry in fs::read_dir(home.join("lib"))?.flatten() {
        symlink(entry.path(), lib.join(entry.file_name()))?;
    }
    let mut plain = versioned(&home.join("lib"));
    plain.sort();
    plain.dedup_by(|one, other| one.1 == other.1);
    let missing = plain.into_iter().filter(|(_, name)| !home.join("lib").join(name).exists());
    missing.into_iter().try_for_each(|(library, name)| symlink(library, lib.join(name)))
}

#[cfg(not(unix))]
fn link_all(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(versions: &[(&str, Option<&str>)]) -> Vec<FoundToolkit> {
        let one = |(version, by): &(&str, Option<&str>)| FoundToolkit {
            version: version.to_string(),
            by: by.map(String::from),
            ..FoundToolkit::default()
        };
        versions.iter().map(one).collect()
    }

    fn chosen(
        versions: &[(&str, Option<&str>)],
        torch: &str,
        named: &[&str],
        arches: &[u16],
    ) -> Option<String> {
        let toolkit = |text: &&str| text.parse().expect("a toolkit");
        let named: Vec<Toolkit> = named.iter().map(toolkit).collect();
        let arches = arches.iter().map(|number| Arch::plain(*number)).collect();
        let wanted = Wanted { torch: toolkit(&torch), named: &named, arches };
        choose(&found(versions), &wanted).map(|(_, release)| release.to_string())
    }

    #[test]
    fn the_major_is_that_of_torch_and_the_minor_comes_near() {
        let all = [
            ("11.8", Some("CUDA_HOME")),
            ("12.4", None),
            ("12.8", None),
            ("12.9", None),
            ("13.0", Some("PATH")),
        ];
        for (torch, named, arches, wanted) in [
            ("12.8", &[][..], &[][..], Some("12.8")),
            ("12.6", &[], &[], Some("12.8")),
            ("12.1", &[], &[], Some("12.4")),
            ("12.1", &[], &[120], Some("12.8")),
            ("12.8", &["12.9"], &[], Some("12.9")),
            ("13.1", &[], &[], Some("13.0")),
            ("10.2", &[], &[], None),
        ] {
            assert_eq!(chosen(&all, torch, named, arches).as_deref(), wanted, "{torch} {named:?} {arches:?}");
        }
        let own = [("12.4", Some("CUDA_HOME")), ("12.8", None)];
        assert_eq!(chosen(&own, "12.8", &[], &[90]).as_deref(), Some("12.4"), "what the user chose");
        assert_eq!(chosen(&own, "12.8", &[], &[120]).as_deref(), Some("12.8"), "it must know 120");
    }

    #[cfg(unix)]
    #[test]
    fn packages_of_python_are_completed_beside_them() {
        let site = tempfile::tempdir().expect("a folder");
        let home = site.path().join("nvidia/cu13");
        for file in ["bin/nvcc", "lib/libcudart.so.13", "lib/libcudart_static.a", "include/cuda_runtime.h"] {
            let path = home.join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, file).expect("a file");
        }
        let completed = CudaHome::of(&home.join("bin/nvcc")).expect("a home");
        let read = |file: &str| fs::read_to_string(completed.path().join(file)).expect("a file");
        assert_eq!(read("lib64/libcudart.so"), "lib/libcudart.so.13");
        assert_eq!(read("lib64/libcudart_static.a"), "lib/libcudart_static.a");
        assert_eq!(read("bin/nvcc"), "bin/nvcc");
        assert!(!home.join("lib64").exists(), "the environment stays as it is");
        let path = completed.path().to_path_buf();
        drop(completed);
        assert!(!path.exists() && home.join("lib/libcudart.so.13").exists());
        assert_eq!(lacks(&home), ["nvvm/bin/cicc", "include/crt/host_config.h", "include/nv/target"]);
    }
}
