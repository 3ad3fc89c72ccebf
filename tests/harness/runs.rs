//! What a setup.py would give to nvcc, by tests/standins/run_setup.py.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use mambapatch::engine::source::Sources;
use serde::Deserialize;

/// The toolkits of the default matrix.
pub const TOOLKITS: [&str; 5] = ["11.8", "12.3", "12.8", "12.9", "13.0"];

/// The environments that a setup.py is run in.
#[derive(Debug, Clone)]
pub struct Matrix {
    toolkits: Vec<String>,
    options: Vec<String>,
}

impl Default for Matrix {
    /// [`TOOLKITS`] and a ROCm machine. The newest mamba compiles nothing unless it is asked to: it is.
    fn default() -> Self {
        Self::of(&TOOLKITS).with(&["--hip", "--env", "MAMBA_KEEP_CUDA_BUILD=TRUE"])
    }
}

impl Matrix {
    /// These toolkits alone.
    pub fn of(toolkits: &[&str]) -> Self {
        let toolkits = toolkits.iter().map(|toolkit| toolkit.to_string()).collect();
        Self { toolkits, options: Vec::new() }
    }

    /// More options of run_setup.py: `--no-nvcc`, `--torch 2.15.0`, `--bdist-wheel`, …
    pub fn with(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(|option| option.to_string()));
        self
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--toolkits".to_string(), self.toolkits.join(",")];
        arguments.extend(self.options.iter().cloned());
        arguments
    }
}

/// The runs of one setup.py.
#[derive(Debug, Clone)]
pub struct SetupRuns {
    /// How reports name it.
    pub name: String,
    /// In the order of the matrix.
    pub runs: Vec<Run>,
}

impl SetupRuns {
    /// The run with a toolkit.
    pub fn cuda(&self, toolkit: &str) -> &Run {
        let found = self.runs.iter().find(|run| run.toolkit.as_deref() == Some(toolkit));
        found.unwrap_or_else(|| panic!("{} was not run with CUDA {toolkit}", self.name))
    }

    /// The run on a ROCm machine.
    pub fn hip(&self) -> &Run {
        let found = self.runs.iter().find(|run| run.hip);
        found.unwrap_or_else(|| panic!("{} was not run on a ROCm machine", self.name))
    }
}

/// One setup.py in one environment. After an `error`, what is behind it is missing.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// What nvcc says; none on a ROCm machine.
    pub toolkit: Option<String>,
    /// Whether it is a ROCm machine.
    pub hip: bool,
    /// Whether it ran to its end and called setup().
    pub ok: bool,
    /// The flags for nvcc (or hipcc) of the first CUDA extension.
    pub nvcc: Vec<String>,
    /// The flags for the host compiler of the first CUDA extension.
    pub cxx: Vec<String>,
    /// Why it failed: `NameError: name 'bare_metal_version' is not defined`.
    pub error: Option<String>,
    /// In which line of setup.py.
    pub error_line: Option<u32>,
    /// setup(name=…).
    #[serde(default)]
    pub name: Option<String>,
    /// setup(version=…).
    #[serde(default)]
    pub version: Option<String>,
    /// setup(ext_modules=…).
    #[serde(default)]
    pub ext_modules: Vec<Extension>,
    /// The names in setup(cmdclass=…), ordered.
    #[serde(default)]
    pub cmdclass: Vec<String>,
    /// setup(install_requires=…).
    #[serde(default)]
    pub install_requires: Vec<String>,
    /// TORCH_CUDA_ARCH_LIST, as setup.py leaves it.
    #[serde(default)]
    pub torch_cuda_arch_list: Option<String>,
    /// Texts given to warnings.warn().
    #[serde(default)]
    pub warnings: Vec<String>,
    /// With `--bdist-wheel`: what get_wheel_url() answers; none if there is no such function.
    #[serde(default)]
    pub wheel_guess: Option<WheelGuess>,
    /// With `--bdist-wheel`: what the command does for each kind of download.
    #[serde(default)]
    pub bdist_wheel: Vec<WheelBuild>,
}

impl Run {
    /// How reports name the environment: `CUDA 12.8`, `ROCm`.
    pub fn environment(&self) -> String {
        self.toolkit.as_ref().map_or("ROCm".to_string(), |toolkit| format!("CUDA {toolkit}"))
    }

    /// The wheel command with one kind of download: `ok`, `http-error`, `url-error`.
    pub fn wheel(&self, download: &str) -> &WheelBuild {
        let found = self.bdist_wheel.iter().find(|build| build.download == download);
        found.unwrap_or_else(|| panic!("no wheel was built with download {download}: {:?}", self.error))
    }
}

/// One extension module.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extension {
    /// The module.
    pub name: String,
    /// `cuda`, `cpp` or `plain`.
    pub kind: String,
    /// Its source files.
    pub sources: Vec<String>,
    /// Relative to setup.py.
    pub include_dirs: Vec<String>,
    /// `NAME` or `NAME=VALUE`.
    pub define_macros: Vec<String>,
    /// Flags for nvcc.
    pub nvcc: Vec<String>,
    /// Flags for the host compiler.
    pub cxx: Vec<String>,
}

/// The prebuilt wheel that setup.py would look for.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WheelGuess {
    /// Where.
    pub url: Option<String>,
    /// Its file name.
    pub file: Option<String>,
    /// Why it cannot tell.
    pub error: Option<String>,
}

/// What the bdist_wheel command did.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WheelBuild {
    /// What a download does: `ok`, `http-error`, `url-error`.
    pub download: String,
    /// What was asked for.
    pub requests: Vec<Request>,
    /// Whether the real build was reached.
    pub built: bool,
    /// Where a downloaded wheel was moved.
    pub moved: Option<String>,
    /// How the command failed.
    pub error: Option<String>,
}

/// One download.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// From where.
    pub url: String,
    /// To which file.
    pub file: Option<String>,
}

/// Runs the setup.py of each source tree (with a name for reports) in every environment of the matrix; trees that
/// differ in nothing but their kernels are run once.
pub fn run(setups: &[(String, Sources)], matrix: &Matrix) -> Vec<SetupRuns> {
    let mut numbers = HashMap::new();
    let mut distinct = Vec::new();
    let number = |(name, sources): &(String, Sources)| {
        *numbers.entry(read_by_setup(sources)).or_insert_with(|| {
            distinct.push((name.clone(), sources.clone()));
            distinct.len() - 1
        })
    };
    let numbers: Vec<usize> = setups.iter().map(number).collect();
    let runs = run_distinct(&distinct, matrix);
    let named = setups.iter().zip(numbers).map(|((name, _), number)| named(name, runs[number].runs.clone()));
    named.collect()
}

fn run_distinct(setups: &[(String, Sources)], matrix: &Matrix) -> Vec<SetupRuns> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let share = setups.len().div_ceil(workers).clamp(1, 100);
    thread::scope(|scope| {
        let started: Vec<_> =
            setups.chunks(share).map(|chunk| scope.spawn(move || run_share(chunk, matrix))).collect();
        started.into_iter().flat_map(|worker| worker.join().expect("the stand-ins run")).collect()
    })
}

/// Runs one setup.py that is given as text.
pub fn run_text(name: &str, text: &str, matrix: &Matrix) -> SetupRuns {
    let sources = [("setup.py", text.as_bytes())].into_iter().collect();
    run(&[(name.to_string(), sources)], matrix).remove(0)
}

/// Runs one setup.py of a tree on the disk; with `--in-place` it may write there.
pub fn run_file(setup: &Path, matrix: &Matrix) -> SetupRuns {
    let answer = ask(matrix, &[setup.to_path_buf()]);
    let answer: Answer = serde_json::from_str(&answer).expect("JSON of the stand-ins");
    named(&setup.display().to_string(), answer.runs)
}

#[derive(Deserialize)]
struct Answer {
    runs: Vec<Run>,
}

fn run_share(setups: &[(String, Sources)], matrix: &Matrix) -> Vec<SetupRuns> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let paths: Vec<_> = setups
        .iter()
        .enumerate()
        .map(|(number, (_, sources))| write(sources, &folder.path().join(number.to_string())))
        .collect();
    let answers = ask(matrix, &paths);
    let answers =
        answers.lines().map(|line| serde_json::from_str::<Answer>(line).expect("JSON of the stand-ins"));
    let runs: Vec<_> =
        setups.iter().zip(answers).map(|((name, _), answer)| named(name, answer.runs)).collect();
    assert_eq!(runs.len(), setups.len(), "the stand-ins answer for every setup.py");
    runs
}

fn named(name: &str, runs: Vec<Run>) -> SetupRuns {
    SetupRuns { name: name.to_string(), runs }
}

/// What a setup.py may read: all but the kernels.
fn read_by_setup(sources: &Sources) -> Vec<(String, Arc<[u8]>)> {
    let read = sources.iter().filter(|(path, _)| !path.starts_with("csrc/"));
    read.map(|(path, bytes)| (path.to_string(), bytes.clone())).collect()
}

fn write(sources: &Sources, folder: &Path) -> PathBuf {
    for (path, bytes) in read_by_setup(sources) {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
        std::fs::write(path, bytes).expect("a file can be written");
    }
    folder.join("setup.py")
}

fn ask(matrix: &Matrix, paths: &[PathBuf]) -> String {
    let python = std::env::var_os("MAMBAPATCH_TEST_PYTHON").unwrap_or("python3".into());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/standins/run_setup.py");
    let mut command = Command::new(&python);
    command.arg("-B").arg(script).args(matrix.arguments()).args(paths).stderr(Stdio::inherit());
    let output = command.output().unwrap_or_else(|error| {
        panic!("{} (Python 3.9 or newer runs the stand-ins): {error}", python.display())
    });
    assert!(output.status.success(), "run_setup.py failed: {}", output.status);
    String::from_utf8(output.stdout).expect("JSON is UTF-8")
}
