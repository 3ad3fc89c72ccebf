//! The translation units of a source tree, and the flags that its own setup.py gives them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::flags;
use super::harness::runs::{self, Extension, Matrix, Run};

/// Variables with which a setup.py builds its kernels although it sees no GPU or was not asked; those of DeepSpeed that
/// need CUTLASS or libaio stay out.
const ASKED: [&str; 14] = [
    "FORCE_CUDA=1",
    "WITH_CUDA=1",
    "MMCV_WITH_OPS=1",
    "APEX_CUDA_EXT=1",
    "MAMBA_FORCE_BUILD=TRUE",
    "MAMBA_KEEP_CUDA_BUILD=TRUE",
    "DS_BUILD_OPS=1",
    "DS_BUILD_AIO=0",
    "DS_BUILD_CUTLASS_OPS=0",
    "DS_BUILD_EVOFORMER_ATTN=0",
    "DS_BUILD_FP_QUANTIZER=0",
    "DS_BUILD_GDS=0",
    "DS_BUILD_RAGGED_DEVICE_OPS=0",
    "DS_BUILD_SPARSE_ATTN=0",
];

/// Folders whose build files are not those of the project.
const FOREIGN: [&str; 8] = [
    ".git",
    "third_party",
    "thirdparty",
    "3rdparty",
    "third-party",
    "extern",
    "cutlass",
    "composable_kernel",
];

/// One file that is compiled on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// The folder in which the compiler is started, below the tree: that of the setup.py.
    pub folder: String,
    /// The source, below the tree.
    pub path: String,
    /// What the build gives to the compiler of this file.
    pub flags: Vec<String>,
    /// Whether the CUDA headers are on the path of the host compiler.
    pub with_cuda: bool,
}

impl Unit {
    /// Whether nvcc compiles it.
    pub fn is_cuda(&self) -> bool {
        self.path.ends_with(".cu")
    }

    /// What reports and matches go by.
    pub fn key(&self) -> (&str, &str) {
        (&self.folder, &self.path)
    }
}

/// The units of a tree, and what was not understood of its build files.
#[derive(Debug, Default)]
pub struct Units {
    /// In the order of their paths.
    pub units: Vec<Unit>,
    /// Why a setup.py gave none.
    pub notes: Vec<String>,
}

/// Asks each setup.py of the tree, which may write to it; where none names a unit, every `.cu` that no other file
/// includes is one.
pub fn units(tree: &Path) -> Units {
    let files = files(tree);
    let mut found = Units::default();
    let mut by_key = BTreeMap::new();
    for setup in files.iter().filter(|path| is_setup(tree, path)) {
        let run = run(tree, setup, &files);
        if let Some(error) = &run.error {
            found.notes.push(format!("{setup}: {}", error.lines().next().unwrap_or_default()));
        }
        for unit in of_setup(tree, setup, &run) {
            by_key.entry((unit.folder.clone(), unit.path.clone())).or_insert(unit);
        }
    }
    found.units = by_key.into_values().collect();
    if found.units.is_empty() {
        found.units = alone(tree, &files);
    }
    found
}

/// The files of a tree, by their paths below it.
pub fn files(tree: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(tree.join(&folder)).expect("a folder can be read").flatten() {
            let path = folder.join(entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(path),
                Ok(kind) if kind.is_file() => drop(found.insert(path.display().to_string())),
                _ => {}
            }
        }
    }
    found
}

fn is_setup(tree: &Path, path: &str) -> bool {
    let mut parts: Vec<_> = path.split('/').collect();
    let builds = || {
        let text = fs::read(tree.join(path)).unwrap_or_default();
        ["Extension", "ext_modules"].iter().any(|word| contains(&text, word))
    };
    parts.pop() == Some("setup.py") && !parts.iter().any(|part| FOREIGN.contains(part)) && builds()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    String::from_utf8_lossy(bytes).contains(text)
}

fn run(tree: &Path, setup: &str, files: &BTreeSet<String>) -> Run {
    let mut options = vec!["--in-place", "--torch", "2.11.0"];
    options.extend(ASKED.iter().flat_map(|variable| ["--env", variable]));
    let folders: Vec<String> =
        folders_of_modules(tree, setup, files).iter().map(|folder| folder.display().to_string()).collect();
    options.extend(folders.iter().flat_map(|folder| ["--path", folder]));
    let matrix = Matrix::of(&["13.0"]).with(&options);
    runs::run_file(&tree.join(setup), &matrix).cuda("13.0").clone()
}

/// What the project's own build scripts put on PYTHONPATH: folders of the tree with the modules that setup.py imports.
fn folders_of_modules(tree: &Path, setup: &str, files: &BTreeSet<String>) -> BTreeSet<PathBuf> {
    let text = fs::read(tree.join(setup)).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let imports = text.lines().filter_map(|line| line.strip_prefix("from ")?.split_whitespace().next());
    let modules: Vec<String> = imports.map(|module| format!("/{module}.py")).collect();
    let holding = files.iter().filter(|file| modules.iter().any(|module| file.ends_with(module.as_str())));
    holding.filter_map(|file| Some(tree.join(file).parent()?.to_path_buf())).collect()
}

fn of_setup(tree: &Path, setup: &str, run: &Run) -> Vec<Unit> {
    let folder = Path::new(setup).parent().unwrap_or(Path::new("")).display().to_string();
    let of_extension = |extension: &Extension| -> Vec<Unit> {
        let units = extension.sources.iter().filter_map(|source| {
            let path = below(&folder, source)?;
            is_source(&path).then_some(())?;
            tree.join(&path).is_file().then(|| unit(tree, (&folder, run), path, extension))
        });
        units.collect()
    };
    run.ext_modules.iter().flat_map(of_extension).collect()
}

fn is_source(path: &str) -> bool {
    [".cu", ".cpp", ".cc", ".cxx"].iter().any(|end| path.ends_with(end))
}

fn unit(tree: &Path, setup: (&str, &Run), path: String, extension: &Extension) -> Unit {
    let (folder, run) = setup;
    let mut flags: Vec<String> = extension.include_dirs.iter().map(|folder| format!("-I{folder}")).collect();
    flags.extend(extension.define_macros.iter().map(|macro_| format!("-D{macro_}")));
    let of_torch = extension.kind != "plain";
    if path.ends_with(".cu") {
        flags.extend(flags::for_nvcc(&extension.nvcc, run.torch_cuda_arch_list.as_deref()));
    } else {
        flags.extend(if of_torch { flags::with_std(&extension.cxx) } else { extension.cxx.clone() });
    }
    flags.retain(|flag| !flag.contains("stand-in"));
    // A path that setup.py made absolute: the tree will lie elsewhere.
    let up = Path::new(folder).components().map(|_| "..").collect::<Vec<_>>().join("/");
    let up = if up.is_empty() { "." } else { &up };
    let tree = tree.display().to_string();
    flags.iter_mut().for_each(|flag| *flag = flag.replace(&tree, up));
    Unit { folder: folder.to_string(), path, flags, with_cuda: extension.kind == "cuda" }
}

/// A path below the tree, from one below a folder of it; none if it lies outside.
pub fn below(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!path.starts_with('/')).then(|| parts.join("/"))
}

/// The kernels of a tree without a setup.py for them, compiled at run time or by CMake, and the bindings beside them.
fn alone(tree: &Path, files: &BTreeSet<String>) -> Vec<Unit> {
    let own = |path: &&String| !path.split('/').any(|part| FOREIGN.contains(&part) || part == "hip");
    let texts: BTreeMap<&String, Vec<u8>> = files
        .iter()
        .filter(own)
        .filter(|path| is_source(path))
        .map(|path| (path, fs::read(tree.join(path)).unwrap_or_default()))
        .collect();
    let included = |path: &str| {
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
        texts.values().any(|text| contains(text, &format!("{name}\"")))
    };
    let folder = |path: &str| Path::new(path).parent().map(Path::to_path_buf);
    let kernels = texts.keys().filter(|path| path.ends_with(".cu"));
    let folders: BTreeSet<_> = kernels.filter_map(|path| folder(path)).collect();
    let binding = |path: &str, text: &[u8]| {
        contains(text, "torch/") && folder(path).is_some_and(|folder| folders.contains(&folder))
    };
    let wanted = texts.iter().filter(|(path, text)| path.ends_with(".cu") || binding(path, text));
    wanted.filter(|(path, _)| !included(path)).map(|(path, _)| as_torch_does(path)).collect()
}

/// A unit with the headers around it.
fn as_torch_does(path: &str) -> Unit {
    let mut flags: Vec<String> = folders_around(path).map(|folder| format!("-I{folder}")).collect();
    if path.ends_with(".cu") {
        flags.push("--expt-relaxed-constexpr".to_string());
    }
    flags.push("-std=c++17".to_string());
    Unit { folder: String::new(), path: path.to_string(), flags, with_cuda: true }
}

/// The folders from that of a file up to the tree's, and those of headers beside each.
fn folders_around(path: &str) -> impl Iterator<Item = String> {
    let above = Path::new(path).ancestors().skip(1);
    let named = above.map(|folder| if folder.as_os_str().is_empty() { Path::new(".") } else { folder });
    named.flat_map(|folder| {
        ["", "include", "includes"].map(|headers| folder.join(headers).display().to_string())
    })
}
