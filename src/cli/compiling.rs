//! The files of a tree of no known upstream by which it is compiled, and who chooses the architectures there.

use std::collections::{BTreeMap, BTreeSet};

use super::failure::Failure;
use super::planned::Planned;
use crate::engine::syntax::script::Script;

/// Who has it compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A `setup.py` that pip runs.
    Pip,
    /// A `setup.py` that compiles when it is run.
    Itself,
    /// What imports it, or CMake.
    Others,
}

/// A file by which something is compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiling {
    /// The file.
    pub path: String,
    /// How.
    pub by: By,
    /// Whether PyTorch chooses the architectures: those of `TORCH_CUDA_ARCH_LIST`, else those of the GPUs it finds.
    pub by_torch: bool,
}

/// Every `setup.py` that builds an extension; where there is none, what is compiled otherwise.
pub fn compiling(planned: &Planned<'_>) -> Result<Vec<Compiling>, Failure> {
    let tree = Tree::read(planned)?;
    let of = |read: &dyn Fn(&str, &str) -> Option<Compiling>| {
        tree.texts.iter().filter_map(|(path, text)| read(path, text)).collect::<Vec<_>>()
    };
    let setups = of(&|path, text| tree.setup(path, text));
    Ok(if setups.is_empty() { of(&|path, text| tree.other(path, text)) } else { setups })
}

/// Whether PyTorch chooses the architectures of what the `setup.py` of the tree itself compiles.
pub fn is_chosen_by_torch(planned: &Planned<'_>) -> bool {
    let found = compiling(planned).unwrap_or_default();
    found.iter().any(|one| one.path == "setup.py" && one.by_torch)
}

/// The texts that may tell, and the files in which a plan knows lists of architectures.
struct Tree {
    texts: BTreeMap<String, String>,
    listed: BTreeSet<String>,
}

impl Tree {
    fn read(planned: &Planned<'_>) -> Result<Self, Failure> {
        let sources =
            planned.target.read(&|path| path.ends_with(".py") || file_name(path) == "CMakeLists.txt")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let texts = sources.iter().map(|(path, bytes)| (path.to_string(), text(bytes))).collect();
        let listed = planned.proved.plan().effect(&planned.bound).into_iter().map(|file| file.path).collect();
        Ok(Self { texts, listed })
    }

    fn setup(&self, path: &str, text: &str) -> Option<Compiling> {
        const BUILDS: [&str; 4] = ["ext_modules", "CUDAExtension", "CppExtension", "nvcc"];
        let builds = file_name(path) == "setup.py" && BUILDS.iter().any(|word| text.contains(word));
        let by = if text.contains("setup(") { By::Pip } else { By::Itself };
        builds.then(|| Compiling {
            path: path.to_string(),
            by,
            by_torch: self.is_by_torch(path, text, false) || self.runs_cmake(path, text),
        })
    }

    /// What is compiled when it is imported, or by CMake.
    fn other(&self, path: &str, text: &str) -> Option<Compiling> {
        let by_torch = match file_name(path) {
            "CMakeLists.txt" => self.is_cmake_by_torch(path, text),
            _ => text.contains("cpp_extension") && self.is_by_torch(path, text, true),
        };
        by_torch.then(|| Compiling { path: path.to_string(), by: By::Others, by_torch })
    }

    /// Whether a script, with what it imports from beside itself or from above, leaves the choice to PyTorch.
    fn is_by_torch(&self, path: &str, text: &str, on_import: bool) -> bool {
        let own = Script::of(text.as_bytes());
        let imported: Vec<&String> =
            own.imports.iter().filter_map(|module| self.module(path, module)).collect();
        let is_listed = imported.iter().any(|path| self.listed.contains(*path)) || self.listed.contains(path);
        let loads = own.loads;
        let texts = imported.iter().filter_map(|path| self.texts.get(*path));
        let all = texts.fold(own, |all, text| all.with(&Script::of(text.as_bytes())));
        let is_cuda = if on_import { loads } else { all.cuda };
        is_cuda && !is_listed && !all.overrides && (all.list || !all.flags)
    }

    /// The file of a module that a script imports: beside it, above it, or the only one of that name.
    fn module(&self, script: &str, module: &str) -> Option<&String> {
        let ends = script.rmatch_indices('/').map(|(at, _)| at + 1).chain([0]);
        let mut places = ends.map(|end| format!("{}{module}.py", &script[..end]));
        let near = places.find_map(|place| self.texts.get_key_value(&place)).map(|(path, _)| path);
        let end = format!("/{module}.py");
        let mut elsewhere = self.texts.keys().filter(|path| path.ends_with(&end));
        near.or_else(|| elsewhere.next().filter(|_| elsewhere.next().is_none()))
    }

    /// Whether a `setup.py` runs CMake on a file beside it that leaves the choice to PyTorch.
    fn runs_cmake(&self, path: &str, text: &str) -> bool {
        let beside = path.replace("setup.py", "CMakeLists.txt");
        let cmake = self.texts.get(&beside).filter(|_| text.contains("cmake"));
        cmake.is_some_and(|text| self.is_cmake_by_torch(&beside, text))
    }

    fn is_cmake_by_torch(&self, path: &str, text: &str) -> bool {
        text.contains("find_package(Torch") && !self.listed.contains(path)
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
