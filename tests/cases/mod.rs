//! Fixtures: small source trees in the shapes of the upstreams, what is asked for, and what must come out.
//!
//! A case is a folder `fixtures/<upstream>/<case>/` with
//!
//! - `case.toml`: what is asked for and what must be found (see [`CaseFile`]; unknown keys are refused);
//! - `before/`: the tree;
//! - `after/`: the tree afterwards, every file of it. Instead of it `case.toml` may say `unchanged = true`, or name
//!   the `error` that must come;
//! - `patchsets/SET/FILE.toml`, if there are any: patch-set files of the case's own, beside or instead of the
//!   shipped ones.

#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mambapatch::engine::source::Sources;
use serde::Deserialize;

/// `case.toml`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CaseFile {
    /// What the case shows, in a sentence.
    pub about: String,
    /// A tag, `after TAG` or `unknown`.
    pub version: String,
    /// `--add-arch`
    #[serde(default)]
    pub add_arch: Vec<String>,
    /// `--drop-arch`
    #[serde(default)]
    pub drop_arch: Vec<String>,
    /// `--only-arch`
    #[serde(default)]
    pub only_arch: Vec<String>,
    /// `--cuda`
    #[serde(default)]
    pub cuda: Vec<String>,
    /// `--torch`
    pub torch: Option<String>,
    /// `--patch`
    #[serde(default)]
    pub patches: Vec<String>,
    /// `--skip-patch`
    #[serde(default)]
    pub skip_patches: Vec<String>,
    /// What each op must find: its id, and the word of its outcome. Ops that are not named may find anything.
    #[serde(default)]
    pub outcomes: BTreeMap<String, String>,
    /// Texts that must occur in the details and remarks of some op, in its places that are left (`PATH line N: WHY`), or
    /// in the notes.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// A text that the error must hold; nothing is patched then.
    pub error: Option<String>,
    /// Nothing must change; there is no `after/` then.
    #[serde(default)]
    pub unchanged: bool,
    /// Units that nvcc 13.0 or g++ compile afterwards, with headers of PyTorch 2.11, and what the compiler says before;
    /// nothing: they compile before too. `tests/nvcc` compiles them.
    #[serde(default)]
    pub compiles: BTreeMap<String, String>,
    /// What toolkits compile afterwards: `"12.8" = "53 70 90 120"`, refused flags in brackets.
    #[serde(default)]
    pub compiled: BTreeMap<String, String>,
}

/// What must become of the tree.
pub enum Expected {
    /// These files, all of them.
    After(Sources),
    /// Nothing changes.
    Unchanged,
    /// An error that holds this text.
    Error(String),
}

/// One fixture.
pub struct Case {
    /// `<upstream>/<case>`
    pub name: String,
    /// The first part of the name.
    pub upstream: String,
    /// Where it lies.
    pub folder: PathBuf,
    /// What `case.toml` says.
    pub file: CaseFile,
    /// The tree.
    pub before: Sources,
    /// Patch-set files of its own.
    pub patch_sets: Sources,
    /// What must become of the tree; absent only while it is to be written.
    pub expected: Option<Expected>,
}

/// All cases below a folder, in the order of their names; every fault that a folder has.
pub fn cases(root: &Path, bless: bool) -> Result<Vec<Case>, Vec<String>> {
    let read = |upstream: PathBuf| {
        folders(&upstream).into_iter().flatten().map(move |folder| case(&upstream, &folder, bless))
    };
    let faults: Vec<String> =
        strays(root).chain(subfolders(root).flat_map(|folder| strays(&folder))).collect();
    let read: Vec<Result<Case, String>> = subfolders(root).flat_map(read).collect();
    let (good, bad): (Vec<_>, Vec<_>) = read.into_iter().partition(Result::is_ok);
    let faults: Vec<String> = faults.into_iter().chain(bad.into_iter().filter_map(Result::err)).collect();
    if faults.is_empty() { Ok(good.into_iter().filter_map(Result::ok).collect()) } else { Err(faults) }
}

fn subfolders(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    folders(folder).unwrap_or_default().into_iter()
}

/// Files where only folders belong.
fn strays(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let files = entries.filter(|entry| !entry.path().is_dir());
    files.map(|file| format!("{} belongs to no case", file.path().display()))
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut folders: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect();
    folders.sort();
    Ok(folders)
}

fn case(upstream: &Path, folder: &Path, bless: bool) -> Result<Case, String> {
    let last = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let upstream = last(upstream);
    let name = format!("{upstream}/{}", last(folder));
    let text =
        fs::read_to_string(folder.join("case.toml")).map_err(|error| format!("{name}/case.toml: {error}"))?;
    let file: CaseFile = toml::from_str(&text).map_err(|error| format!("{name}/case.toml: {error}"))?;
    known_entries(&name, folder)?;
    let before = tree(&folder.join("before"))?;
    if before.is_empty() {
        return Err(format!("{name}/before holds no file"));
    }
    let patch_sets = tree(&folder.join("patchsets"))?;
    let expected = expected(&name, folder, &file, bless)?;
    Ok(Case { name, upstream, folder: folder.to_path_buf(), file, before, patch_sets, expected })
}

fn known_entries(name: &str, folder: &Path) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{name}: {error}"))?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
    let known = ["case.toml", "before", "after", "patchsets"];
    match names.into_iter().find(|entry| !known.contains(&entry.as_str())) {
        Some(stray) => Err(format!("{name}/{stray} is no part of a case ({})", known.join(", "))),
        None => Ok(()),
    }
}

fn expected(name: &str, folder: &Path, file: &CaseFile, bless: bool) -> Result<Option<Expected>, String> {
    let after = tree(&folder.join("after"))?;
    match (&file.error, file.unchanged, after.is_empty()) {
        (Some(error), false, true) => Ok(Some(Expected::Error(error.clone()))),
        (None, true, true) => Ok(Some(Expected::Unchanged)),
        (None, false, false) => Ok(Some(Expected::After(after))),
        (None, false, true) if bless => Ok(None),
        _ => Err(format!("{name} needs exactly one of `after/`, `unchanged = true` and `error`")),
    }
}

/// The files below a folder; none where there is no folder.
pub fn tree(folder: &Path) -> Result<Sources, String> {
    let mut sources = Sources::new();
    if folder.is_dir() {
        read_into(&mut sources, folder, "").map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    Ok(sources)
}

fn read_into(sources: &mut Sources, folder: &Path, prefix: &str) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = format!("{prefix}{}", path.file_name().unwrap_or_default().to_string_lossy());
        if path.is_dir() {
            read_into(sources, &path, &format!("{name}/"))?;
        } else {
            sources.insert(name, fs::read(&path)?);
        }
    }
    Ok(())
}

/// Writes a tree, in place of what is there.
pub fn write_tree(folder: &Path, sources: &Sources) -> std::io::Result<()> {
    if folder.is_dir() {
        fs::remove_dir_all(folder)?;
    }
    for (path, bytes) in sources.iter() {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, bytes)?;
    }
    Ok(())
}
