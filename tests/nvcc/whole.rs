//! Whole builds, through `mambapatch build`, in an environment of packages: unpatched the release stops at its
//! architectures, with those alone at names that CUB lost, and patched it ends in a wheel for sm_120 and nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use zip::ZipArchive;

use super::harness::environment::Environment;
use super::harness::say;

/// A run of `build`.
struct Run {
    code: i32,
    document: Value,
}

impl Run {
    /// Builds the release.
    fn of(environment: &Environment, folder: &Path, flags: &[&str]) -> Self {
        let release = ["build", "mamba-ssm@v2.2.5", "--source", "sdist", "--host", "--yes"];
        Self::typed(environment, folder, &[&release[..], flags].concat())
    }

    /// Everything that is fetched and written stays in a folder of its own, but for the source, which is cached.
    fn typed(environment: &Environment, folder: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mambapatch"));
        command.args(words).args(["--format", "json"]).current_dir(folder);
        command.env("VIRTUAL_ENV", environment.folder()).env("MAMBAPATCH_STATE", folder.join("state"));
        ["CUDA_HOME", "CUDA_PATH", "MAX_JOBS", "MAMBAPATCH_MIRRORS"].iter().for_each(|name| {
            command.env_remove(name);
        });
        let began = std::time::Instant::now();
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().expect("mambapatch");
        let code = output.status.code().unwrap_or(-1);
        say(&format!("{}: exit {code} after {} s", words.join(" "), began.elapsed().as_secs()));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let document = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        Self { code, document }
    }

    /// Fails unless nothing was built, and `diagnose` names this cause.
    #[track_caller]
    fn stops_at(&self, cause: &str, folder: &Path) {
        assert_eq!(self.code, 2, "{}", self.document);
        let notes = self.document["error"]["notes"].as_array().expect("notes");
        assert!(notes[0].as_str().expect("text").contains(cause), "{cause}\n{:#}", self.document);
        assert!(!folder.join("dist").exists(), "a wheel");
    }
}

fn log(folder: &Path) -> String {
    let logs = fs::read_dir(folder.join("state/logs")).expect("logs").flatten().map(|entry| entry.path());
    let newest = logs.max().expect("a log");
    fs::read_to_string(newest).expect("UTF-8")
}

#[test]
#[ignore = "needs nvcc 13.0, 3.7 GB of the package index"]
fn a_release_stops_unpatched_and_ends_in_a_wheel_patched() {
    let environment = Environment::get();
    let folder = tempfile::tempdir().expect("a folder");
    let run = Run::of(&environment, folder.path(), &["--skip-patch", "gpu-arch,cuda-13", "--into", "plain"]);
    run.stops_at("compute_53", folder.path());
    let arches_alone = ["--only-arch", "120", "--skip-patch", "cuda-13", "--into", "arches"];
    let run = Run::of(&environment, folder.path(), &arches_alone);
    run.stops_at("LaneId", folder.path());
    for name in ["LaneId", "CTA_SYNC"] {
        let error = format!("namespace \"cub\" has no member \"{name}\"");
        assert!(log(folder.path()).contains(&error), "{error}");
    }
    let run = Run::of(&environment, folder.path(), &["--only-arch", "120"]);
    assert_eq!(run.code, 0, "{:#}\n{}", run.document, log(folder.path()));
    let build = &run.document["build"];
    assert_eq!(build["codes"], serde_json::json!(["sm_120"]), "{build:#}");
    assert_eq!(build["environment"]["cuda"], "13.0", "{build:#}");
    let wheel = PathBuf::from(build["wheel"].as_str().expect("a wheel"));
    holds_120_alone(&wheel);
    imports(&environment, &wheel, folder.path());
}

/// What `inspect` says of the wheel.
fn holds_120_alone(wheel: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mambapatch"));
    let output = command.arg("inspect").arg(wheel).args(["--format", "json"]).output().expect("mambapatch");
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let files = document["files"].as_array().expect("files");
    assert_eq!(files.len(), 1, "{document:#}");
    let codes = files[0]["codes"].as_object().expect("codes");
    assert_eq!(codes.keys().collect::<Vec<_>>(), ["sm_120"], "{document:#}");
    say(&format!("{}: {}", wheel.file_name().unwrap_or_default().display(), files[0]["codes"]));
}

/// The linker found everything: PyTorch of the environment loads it, without a GPU.
fn imports(environment: &Environment, wheel: &Path, folder: &Path) {
    let mut archive = ZipArchive::new(fs::File::open(wheel).expect("a wheel")).expect("a wheel");
    archive.extract(folder.join("unpacked")).expect("unpacked");
    let script = "import sys; sys.path.insert(0, sys.argv[1]); import torch, selective_scan_cuda as s; print(s.fwd, s.bwd)";
    let output = Command::new(environment.python())
        .args(["-c", script])
        .arg(folder.join("unpacked"))
        .current_dir(folder)
        .output()
        .expect("python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What a wheel has: its files, each with its bytes; of libraries, what code they hold, since nvcc puts names that are
/// new each time into them.
fn contents(wheel: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut archive = ZipArchive::new(fs::File::open(wheel).expect("a wheel")).expect("a wheel");
    let mut files = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).expect("a file");
        let (name, mut bytes) = (file.name().expect("a name").to_string(), Vec::new());
        file.read_to_end(&mut bytes).expect("its bytes");
        if !name.ends_with("/RECORD") {
            files.insert(name.clone(), if name.ends_with(".so") { Vec::new() } else { bytes });
        }
    }
    files
}

#[test]
#[ignore = "needs nvcc 13.0, 3.7 GB of the package index"]
fn a_vendored_tree_gives_the_wheel_of_the_checkout() {
    let environment = Environment::get();
    let folder = tempfile::tempdir().expect("a folder");
    let wish = [
        "causal-conv1d@v1.5.2",
        "--source",
        "sdist",
        "--only-arch",
        "120",
        "--cuda",
        "13.0",
        "--torch",
        "2.11",
    ];
    let typed = |words: &[&str]| {
        let run = Run::typed(&environment, folder.path(), words);
        assert_eq!(run.code, 0, "{:#}\n{words:?}", run.document);
        run.document
    };
    typed(&[&["vendor", "add"], &wish[..], &["--into", "vendored"]].concat());
    typed(&["vendor", "check", "vendored"]);
    let checkout = typed(&[&["build"], &wish[..], &["--yes", "--out", "one"]].concat());
    let vendored = typed(&["build", "./vendored", "--only-arch", "120", "--yes", "--out", "two"]);
    let wheel = |document: &Value| PathBuf::from(document["build"]["wheel"].as_str().expect("a wheel"));
    let files = contents(&wheel(&checkout));
    assert!(
        files.keys().any(|name| name.starts_with("causal_conv1d_cuda") && name.ends_with(".so")),
        "{files:?}"
    );
    assert_eq!(contents(&wheel(&vendored)), files);
    assert_eq!(checkout["build"]["codes"], serde_json::json!(["sm_120"]));
    assert_eq!(vendored["build"]["codes"], checkout["build"]["codes"]);
    say(&format!("vendored and checked out: {} files alike in both wheels", files.len()));
}
