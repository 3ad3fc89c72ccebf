//! Compiled files of installed packages: what they hold, and whether the installed torch has what they need.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::environment::TorchVersion;
use crate::engine::arch::Code;
use crate::kernels::facts::{Extension, Torch};
use crate::kernels::inspect::links::{built_for, is_torch_library};
use crate::kernels::inspect::torch_symbols::{cxx11_abi, is_of_torch};
use crate::kernels::inspect::{self, Binary};

/// The libraries of torch whose symbols extensions use.
const LIBRARIES: [&str; 5] =
    ["libc10.so", "libc10_cuda.so", "libtorch_cpu.so", "libtorch_cuda.so", "libtorch_python.so"];
/// How many missing symbols are kept of a file.
const KEPT: usize = 3;

/// PyTorch as its files tell.
pub fn torch(version: &TorchVersion) -> Torch {
    let library = |name: &str| File::open(version.folder.join("lib").join(name)).ok();
    let code = library("libtorch_cuda.so").and_then(|mut file| inspect::read(&mut file).ok());
    let names =
        library("libc10.so").and_then(|mut file| inspect::exports(&mut file).ok()).unwrap_or_default();
    Torch {
        version: version.version.clone(),
        cuda: version.cuda.clone(),
        hip: version.hip.clone(),
        folder: Some(version.folder.clone()),
        cxx11_abi: names.iter().filter(|name| is_of_torch(name)).find_map(|name| cxx11_abi(name)),
        codes: code.map(|binary| codes(&binary)).unwrap_or_default(),
    }
}

/// All symbols that the libraries of torch offer.
pub fn exports(folder: &Path) -> HashSet<String> {
    let libraries = LIBRARIES.iter().filter_map(|name| File::open(folder.join("lib").join(name)).ok());
    libraries.filter_map(|mut file| inspect::exports(&mut file).ok()).flatten().collect()
}

/// The files that hold GPU code or take something of torch.
pub fn extensions(
    binaries: &[(String, String, PathBuf)],
    offered: Option<&HashSet<String>>,
) -> Vec<Extension> {
    let mut found: Vec<Extension> = binaries
        .iter()
        .filter_map(|(package, version, path)| extension(package, version, path, offered))
        .collect();
    for one in found.iter_mut().filter(|one| !one.missing.is_empty()) {
        // Libraries of one package use each other's symbols.
        let siblings = binaries.iter().filter(|(package, ..)| *package == one.package);
        let offered: HashSet<String> = siblings
            .filter_map(|(.., path)| inspect::exports(&mut File::open(path).ok()?).ok())
            .flatten()
            .collect();
        one.missing.retain(|symbol| !offered.contains(symbol));
    }
    found.iter_mut().for_each(|one| one.missing.truncate(KEPT));
    found
}

fn extension(
    package: &str,
    version: &str,
    path: &Path,
    offered: Option<&HashSet<String>>,
) -> Option<Extension> {
    let blank = Extension {
        package: package.to_string(),
        version: version.to_string(),
        file: path.to_path_buf(),
        ..Extension::default()
    };
    match inspect::read(&mut File::open(path).ok()?) {
        Ok(binary) if concerns(&binary) => Some(filled(blank, &binary, offered)),
        Ok(_) => None,
        // Text with the name of a library is common; a broken library is not.
        Err(error) => is_object(path).then(|| Extension { broken: Some(error.to_string()), ..blank }),
    }
}

fn is_object(path: &Path) -> bool {
    let beginning = fs::File::open(path).and_then(|mut file| {
        let mut bytes = [0; 4];
        std::io::Read::read_exact(&mut file, &mut bytes).map(|()| bytes)
    });
    beginning.is_ok_and(|bytes| &bytes == b"\x7fELF" || bytes.starts_with(b"MZ"))
}

fn concerns(binary: &Binary) -> bool {
    !binary.code.is_empty() || binary.object.needed.iter().any(|library| is_torch_library(library))
}

fn filled(blank: Extension, binary: &Binary, offered: Option<&HashSet<String>>) -> Extension {
    let built = built_for(&binary.object, &blank.file.to_string_lossy());
    let ours = binary.object.imports.iter().filter(|symbol| is_of_torch(symbol));
    let lacking =
        |symbol: &&String| offered.is_some_and(|offered| !offered.is_empty() && !offered.contains(*symbol));
    Extension {
        codes: codes(binary),
        torch: built.torch.map(|range| if built.stable { "stable".to_string() } else { range.to_string() }),
        cxx11_abi: built.cxx11_abi,
        cuda: built.cuda,
        glibc: built.glibc.map(|glibc| glibc.to_string()),
        missing: ours.filter(lacking).cloned().collect(),
        ..blank
    }
}

/// What runs on a GPU: machine code, and PTX also of the parts that nvlink linked.
fn codes(binary: &Binary) -> Vec<String> {
    let linked = binary.relocatable.pieces().into_keys().filter(|code| matches!(code, Code::Ptx(_)));
    let mut codes: Vec<Code> = binary.code.pieces().into_keys().chain(linked).collect();
    codes.sort();
    codes.dedup();
    codes.iter().map(Code::to_string).collect()
}
