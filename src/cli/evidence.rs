//! What a build of a patched tree showed, kept so that a pull request of the same tree can say it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::json;
use crate::checkout::Variables;
use crate::checkout::cache::write_whole;
use crate::checkout::git::GitRepository;

/// What was kept, as far as a pull request tells it.
#[derive(Debug, Deserialize)]
struct Kept {
    build: Build,
    verified: Option<Verified>,
}

/// `build` in the JSON of the command of that name.
#[derive(Debug, Deserialize)]
struct Build {
    codes: Vec<String>,
    environment: Environment,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Environment {
    python_version: String,
    torch: String,
    cuda: String,
}

/// What `verify` says of the installed wheel.
#[derive(Debug, Deserialize)]
struct Verified {
    name: String,
    verdict: String,
    gpu: Option<String>,
    #[serde(default)]
    checks: Vec<Check>,
}

#[derive(Debug, Deserialize)]
struct Check {
    passed: bool,
}

/// Keeps what a build of a checkout showed. It is no part of the build: where it cannot be written, or where files of
/// the checkout are not as committed, nothing is kept.
pub fn keep(folder: &Path, build: &Value, verified: Option<&Value>) {
    let repository = GitRepository::of_checkout(folder, "").ok().flatten();
    let whole = repository.filter(|(_, below)| below.is_empty());
    let Some(path) = whole.and_then(|(repository, _)| place(&repository.clean_tree_id()?)) else { return };
    let text = json::text(&serde_json::json!({ "build": build, "verified": verified }));
    drop(write_whole(&path, text.as_bytes()));
}

/// What was compiled and run of exactly this tree of git, in sentences; none where it was not built here.
pub fn told(tree: &str) -> Option<String> {
    let kept: Kept = serde_json::from_slice(&fs::read(place(tree)?).ok()?).ok()?;
    let Build { codes, environment: Environment { python_version, torch, cuda } } = &kept.build;
    let codes = codes.join(", ");
    let compiled = format!(
        "Compiled as it is here, by nvcc of CUDA {cuda} for PyTorch {torch} and Python {python_version}: the wheel holds {codes}."
    );
    let run = kept.verified.as_ref().map_or_else(|| "It was not run.".to_string(), Verified::told);
    Some(format!("{compiled} {run}"))
}

impl Verified {
    fn told(&self) -> String {
        let name = &self.name;
        if self.verdict == "not-imported" {
            return format!("`{name}` could not be imported.");
        }
        let (count, passed) = (self.checks.len(), self.checks.iter().filter(|check| check.passed).count());
        match &self.gpu {
            Some(gpu) if count > 0 => format!(
                "`{name}` was imported and its kernels run on {gpu}: {passed} of {count} comparisons with the reference passed."
            ),
            _ => format!("`{name}` was imported; its kernels were not run."),
        }
    }
}

/// In the state folder, by the tree.
fn place(tree: &str) -> Option<PathBuf> {
    let state = Variables::of_process().state_folder()?;
    Some(state.join("builds").join(format!("{tree}.json")))
}
