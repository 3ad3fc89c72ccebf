//! Source trees: from a folder or the package index, patched by the program itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use mambapatch::checkout::{CheckoutOptions, Progress, Releases, SourceChoice, UpstreamInfo};
use mambapatch::engine::tag::Tag;
use serde::Deserialize;

use super::units::files;

/// What is asked for, beside architectures.
const WISH: [&str; 4] = ["--cuda", "13.0", "--torch", "2.11"];

/// A larger file is no source.
const LARGEST: u64 = 1 << 20;

/// A project before and after, in folders that go away with it.
pub struct Trees {
    folder: tempfile::TempDir,
    /// What the plan says a person must do.
    pub reported: Vec<Reported>,
    /// Why there is no plan.
    pub refused: Option<String>,
}

/// One place that the plan reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// The op.
    pub op: String,
    /// The file.
    pub path: String,
    /// The line.
    pub line: u32,
}

impl Trees {
    /// From a folder, which is only read.
    pub fn of_folder(source: &Path) -> Self {
        let trees = Self::empty();
        copy(source, &trees.before());
        trees.patched()
    }

    /// From a source distribution of the package index.
    pub fn of_sdist(distribution: &str, version: &str) -> Self {
        let trees = Self::empty();
        fetch(distribution, version, &trees.before());
        trees.patched()
    }

    fn empty() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self { folder, reported: Vec::new(), refused: None }
    }

    /// The tree as it was.
    pub fn before(&self) -> PathBuf {
        self.folder.path().join("before")
    }

    /// The tree as the program leaves it.
    pub fn after(&self) -> PathBuf {
        self.folder.path().join("after")
    }

    fn patched(mut self) -> Self {
        copy(&self.before(), &self.after());
        let applied = self.apply();
        match serde_json::from_slice::<Applied>(&applied.stdout) {
            Ok(answer) if answer.error.is_none() => self.reported = answer.reported(),
            Ok(answer) => self.refused = answer.error.map(|error| error.message),
            Err(_) => panic!("{}", String::from_utf8_lossy(&applied.stderr)),
        }
        self
    }

    /// The program on the second tree, with a home of its own and no network.
    fn apply(&self) -> Output {
        let home = self.folder.path().join("home");
        let mut command = Command::new(env!("CARGO_BIN_EXE_mambapatch"));
        command
            .arg("apply")
            .arg(self.after())
            .args(["--no-commit", "--offline", "--format", "json"])
            .args(WISH);
        let arches = std::env::var("MAMBAPATCH_COMPILE_ARCHES").unwrap_or("120".to_string());
        command.args(arches.split(',').flat_map(|arch| ["--add-arch", arch]));
        for variable in ["HOME", "MAMBAPATCH_CACHE", "MAMBAPATCH_STATE", "MAMBAPATCH_CONFIG"] {
            command.env(variable, &home);
        }
        command.env_remove("MAMBAPATCH_MIRRORS").stdin(Stdio::null()).output().expect("the program runs")
    }
}

/// The answer of `apply --format json`, as far as it is needed.
#[derive(Deserialize)]
struct Applied {
    error: Option<Refusal>,
    #[serde(default)]
    patches: Vec<Patch>,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

#[derive(Deserialize)]
struct Patch {
    ops: Vec<Op>,
}

#[derive(Deserialize)]
struct Op {
    id: String,
    outcome: String,
    sites: Vec<Site>,
}

#[derive(Deserialize)]
struct Site {
    path: String,
    line: u32,
}

impl Applied {
    fn reported(self) -> Vec<Reported> {
        let ops = self.patches.into_iter().flat_map(|patch| patch.ops);
        let reported = ops.filter(|op| op.outcome == "reported").flat_map(|op| {
            let Op { id, sites, .. } = op;
            sites.into_iter().map(move |site| Reported { op: id.clone(), path: site.path, line: site.line })
        });
        reported.collect()
    }
}

/// Copies what can be source: no repository, nothing large, no images.
pub fn copy(from: &Path, to: &Path) {
    for path in files(from).iter().filter(|path| !path.starts_with(".git/")) {
        let (source, target) = (from.join(path), to.join(path));
        if !fs::metadata(&source).is_ok_and(|file| file.len() <= LARGEST) {
            continue;
        }
        let bytes = fs::read(source).expect("a file can be read");
        if !bytes.iter().take(8000).any(|byte| *byte == 0) {
            fs::create_dir_all(target.parent().unwrap_or(to)).expect("a folder can be made");
            fs::write(target, bytes).expect("a file can be written");
        }
    }
}

fn fetch(distribution: &str, version: &str, folder: &Path) {
    let info = UpstreamInfo {
        id: distribution.to_string(),
        distribution: distribution.to_string(),
        git_url: None,
        recognise: Vec::new(),
        tag_prefix: "v".to_string(),
    };
    let mut options = CheckoutOptions::of_process();
    options.source = SourceChoice::Sdist;
    let progress = &mut |_: Progress| {};
    let tag: Tag = version.parse().expect("a version");
    let found = Releases::open(&info, &options, progress);
    let target = found.and_then(|found| found.release(&tag, progress));
    let target = target.unwrap_or_else(|error| panic!("{distribution} {version}: {error}"));
    let sources = target.read(&|_| true).unwrap_or_else(|error| panic!("{distribution} {version}: {error}"));
    for (path, bytes) in sources.iter() {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder)).expect("a folder can be made");
        fs::write(path, bytes).expect("a file can be written");
    }
}
