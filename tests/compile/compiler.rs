//! Compiles a unit: for one architecture and without optimisation, with all else that its build gives.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::closure::closure;
use super::flags;
use super::harness::say;
use super::harness::toolchain::Toolchain;
use super::said::{Said, said};
use super::units::Unit;

/// Longer than this no unit takes without optimisation.
const SECONDS: u32 = 900;

/// More lines with errors than these are not kept of a step.
const LINES: usize = 60;

/// What stands in a step for a place of the machine.
pub const PLACES: [&str; 4] = ["{torch}", "{cuda}", "{python}", "{object}"];

/// One start of a compiler, in the unit's folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// `nvcc` or `g++`.
    pub compiler: &'static str,
    /// With [`PLACES`] in them.
    pub arguments: Vec<String>,
}

/// What compiling a unit gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Compiled {
    /// What the compilers called errors, each text once; none: it compiles.
    pub errors: Vec<Said>,
    /// How long it took.
    pub seconds: f32,
}

/// The same as it is kept, here or by whoever else runs the steps.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    /// Of each step that failed: the lines with an error, the tree's folder written `{tree}`, or the last line.
    pub failed: Vec<String>,
    /// How long all took.
    pub seconds: f32,
}

impl Kept {
    fn compiled(&self, unit: &Unit) -> Compiled {
        let mut errors: Vec<Said> = Vec::new();
        for error in self.failed.iter().flat_map(|text| said(text, &unit.folder)) {
            if !errors.contains(&error) {
                errors.push(error);
            }
        }
        Compiled { errors, seconds: self.seconds }
    }
}

impl Compiled {
    /// Whether there is an object.
    pub fn is_good(&self) -> bool {
        self.errors.is_empty()
    }
}

/// The steps of a unit: its architectures by a dry run, then the compile.
pub fn steps(unit: &Unit) -> Vec<Step> {
    let name = from_folder(unit);
    let (arches, others) = flags::split(&unit.flags);
    let torch = ["-I{torch}", "-I{torch}/torch/csrc/api/include", "-I{python}"];
    let common = ["-DTORCH_API_INCLUDE_EXTENSION_H", "-DTORCH_EXTENSION_NAME=extension"];
    let start: Vec<String> = torch.iter().chain(&common).map(|flag| flag.to_string()).collect();
    if !unit.is_cuda() {
        let cuda = unit.with_cuda.then(|| "-I{cuda}/include".to_string());
        let end = ["-fPIC", "-fsyntax-only", &name].map(String::from);
        let arguments = start.into_iter().chain(cuda).chain(others).chain(end).collect();
        return vec![Step { compiler: "g++", arguments }];
    }
    let code = flags::one_arch(&arches);
    let gencode = format!("-gencode=arch=compute_{code},code=sm_{code}");
    let fast = ["-Xcicc", "-O0", "-Xptxas", "-O0"].map(String::from);
    let end = [&gencode, "-c", &name, "-o", "{object}"].map(String::from);
    let dry = ["--dryrun", "-c", &name, "-o", "{object}"].map(String::from);
    let nvcc = |arguments| Step { compiler: "nvcc", arguments };
    let compile = nvcc(start.into_iter().chain(others).chain(fast).chain(end).collect());
    if arches.is_empty() {
        return vec![compile];
    }
    vec![nvcc(arches.into_iter().chain(dry).collect()), compile]
}

/// The source as the compiler is given it.
fn from_folder(unit: &Unit) -> String {
    let inside = unit.path.strip_prefix(&format!("{}/", unit.folder));
    let up = || "../".repeat(unit.folder.split('/').filter(|part| !part.is_empty()).count());
    inside.map_or_else(|| format!("{}{}", up(), unit.path), String::from)
}

/// Compiles units; what was compiled before is not compiled again where `MAMBAPATCH_COMPILED` names a folder.
pub struct Compiler {
    toolchain: Toolchain,
    kept: Option<PathBuf>,
}

impl Compiler {
    /// With a toolchain.
    pub fn new(toolchain: Toolchain) -> Self {
        let kept = std::env::var_os("MAMBAPATCH_COMPILED").filter(|folder| !folder.is_empty());
        Self { toolchain, kept: kept.map(PathBuf::from) }
    }

    /// Compiles a unit of a tree.
    pub fn compile(&self, tree: &Path, unit: &Unit) -> Compiled {
        let steps = steps(unit);
        let path = self.kept.as_ref().map(|folder| folder.join(format!("{}.json", key(tree, unit, &steps))));
        let known = path.as_ref().and_then(|path| serde_json::from_slice(&fs::read(path).ok()?).ok());
        let kept: Kept = known.unwrap_or_else(|| {
            let kept = self.run(tree, unit, &steps);
            if let Some(path) = path {
                keep(&path, &kept);
            }
            kept
        });
        kept.compiled(unit)
    }

    fn run(&self, tree: &Path, unit: &Unit, steps: &[Step]) -> Kept {
        let objects = tempfile::tempdir().expect("a temporary folder");
        let object = objects.path().join("unit.o");
        let began = Instant::now();
        let failed = steps.iter().filter_map(|step| self.start(step, tree, unit, &object)).collect();
        let seconds = began.elapsed().as_secs_f32();
        say(&format!("{} took {seconds:.0} s", unit.path));
        Kept { failed, seconds }
    }

    /// What a step that fails says.
    fn start(&self, step: &Step, tree: &Path, unit: &Unit, object: &Path) -> Option<String> {
        let compiler = if step.compiler == "nvcc" { self.toolchain.nvcc() } else { step.compiler.into() };
        let [torch, _] = self.toolchain.torch();
        let places = [torch, self.toolchain.cuda(), PYTHON.clone(), object.to_path_buf()];
        let arguments = step.arguments.iter().map(|argument| in_place(argument, &places));
        let mut command = Command::new("timeout");
        command.args(["-k", "5", &SECONDS.to_string()]).arg(compiler).args(arguments);
        command.current_dir(tree.join(&unit.folder)).stdin(Stdio::null());
        let output = command.env("LC_ALL", "C").output().expect("a compiler can be run");
        let text = [output.stderr, output.stdout].concat();
        (!output.status.success()).then(|| errors_of(&String::from_utf8_lossy(&text), tree))
    }
}

/// The lines with an error, or the last one.
fn errors_of(text: &str, tree: &Path) -> String {
    let text = text.replace(&tree.display().to_string(), "{tree}");
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let errors: Vec<&str> =
        lines.iter().copied().filter(|line| line.contains("error") || line.contains("fatal")).collect();
    let chosen = if errors.is_empty() { lines.last().copied().into_iter().collect() } else { errors };
    chosen.into_iter().take(LINES).map(|line| line.chars().take(500).collect::<String>() + "\n").collect()
}

/// An argument with the places of this machine.
fn in_place(argument: &str, places: &[PathBuf; 4]) -> OsString {
    let with = |argument: String, (name, place): (&&str, &PathBuf)| {
        argument.replace(*name, &place.display().to_string())
    };
    PLACES.iter().zip(places).fold(argument.to_string(), with).into()
}

/// The folder of Python.h.
static PYTHON: LazyLock<PathBuf> = LazyLock::new(|| {
    let python = std::env::var_os("MAMBAPATCH_TEST_PYTHON").unwrap_or("python3".into());
    let asked = "import sysconfig; print(sysconfig.get_paths()['include'])";
    let output = Command::new(python).args(["-c", asked]).output().expect("Python can be run");
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    assert!(
        folder.join("Python.h").is_file(),
        "{} has no Python.h: PyTorch's headers need it",
        folder.display()
    );
    folder
});

/// What the result depends on: the toolchain, the steps, and every file that the unit reads from its tree.
pub fn key(tree: &Path, unit: &Unit, steps: &[Step]) -> String {
    let mut digest = Sha256::new();
    digest.update(format!("{}\n{unit:?}\n{steps:?}\n", Toolchain::pins()));
    for (path, bytes) in closure(tree, unit) {
        digest.update(format!("{path} {}\n", bytes.len()));
        digest.update(bytes);
    }
    digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn keep(path: &Path, kept: &Kept) {
    fs::create_dir_all(path.parent().unwrap_or(path)).expect("a folder can be made");
    fs::write(path, serde_json::to_vec(kept).expect("JSON")).expect("a file can be written");
}
