//! The real nvcc of CUDA 13.0 with the headers of PyTorch 2.11 on translation units of real extensions, before and after
//! the program patched them for that.
//!
//! Ignored unless asked for (`-- --ignored`), on Linux with g++: a few units from the user's package index. With
//! `MAMBAPATCH_FULL=1` all units of the source distributions named here, and those of each folder in the folder that
//! `MAMBAPATCH_CORPUS` names (`MAMBAPATCH_COMPILE_ARCHES` are added, else 120); `MAMBAPATCH_COMPILE_ONLY` keeps the projects with that text in their name. The result
//! is written to the path `MAMBAPATCH_COMPILE_REPORT`, a Markdown table, and beside it as `.tsv`.
//! `MAMBAPATCH_COMPILED` names a folder that keeps the result of each compile for the next run. `MAMBAPATCH_COMPILE_PLAN`
//! names one for trees and commands, to be compiled on another machine; its results go into the other folder.

#[path = "../harness/mod.rs"]
mod harness;

mod chosen;
mod closure;
mod compiler;
mod controls;
mod flags;
mod measured;
mod migrations;
mod plan;
mod report;
mod said;
mod trees;
mod units;

use std::fs;
use std::path::PathBuf;

use compiler::Compiler;
use harness::toolchain::Toolchain;
use harness::{is_set, say};
use measured::{Fate, Measured, measure};
use trees::Trees;

/// All units of these are compiled with `MAMBAPATCH_FULL=1`.
const SDISTS: [(&str, &str); 17] = [
    ("DCNv2", "0.4"),
    ("auto-gptq", "0.7.1"),
    ("chamferdist", "1.0.3"),
    ("deepspeed", "0.16.9"),
    ("flash-attn", "1.0.9"),
    ("inplace-abn", "1.1.0"),
    ("mmcv", "2.2.0"),
    ("mmcv-full", "1.2.7"),
    ("neural-renderer-pytorch", "1.1.3"),
    ("pytorch-fast-transformers", "0.4.0"),
    ("spatial-correlation-sampler", "0.0.8"),
    ("torch-cluster", "1.4.5"),
    ("torch-encoding", "1.2.1"),
    ("torch-points-kernels", "0.7.0"),
    ("torch-scatter", "1.3.2"),
    ("torch-sparse", "0.4.3"),
    ("vllm", "0.4.2"),
];

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Where a project's sources are.
enum Place {
    Folder(PathBuf),
    Sdist(&'static str, &'static str),
}

/// The projects that were asked for, by name.
fn projects() -> Vec<(String, Place)> {
    let mut projects = Vec::new();
    if let Some(corpus) = variable("MAMBAPATCH_CORPUS") {
        let folders = fs::read_dir(&corpus).expect("the corpus can be read").flatten();
        let folders = folders.filter(|entry| entry.path().is_dir());
        projects
            .extend(folders.map(|entry| {
                (entry.file_name().to_string_lossy().into_owned(), Place::Folder(entry.path()))
            }));
        projects.sort_by(|one, other| one.0.cmp(&other.0));
    }
    if is_set("MAMBAPATCH_FULL") {
        let sdists = SDISTS.iter();
        projects
            .extend(sdists.map(|(name, version)| (format!("{name} {version}"), Place::Sdist(name, version))));
    }
    let only = std::env::var("MAMBAPATCH_COMPILE_ONLY").unwrap_or_default();
    projects.retain(|(name, _)| only.split(',').any(|only| name.contains(only)));
    projects
}

fn trees(place: &Place) -> Trees {
    match place {
        Place::Folder(folder) => Trees::of_folder(folder),
        Place::Sdist(name, version) => Trees::of_sdist(name, version),
    }
}

/// No unit that compiled before fails after; of those that only entries of the catalogue stop, nine in ten compile.
fn assert_promises(projects: &[Measured]) {
    let rows = || projects.iter().flat_map(|project| &project.rows);
    let broken: Vec<&str> =
        rows().filter(|row| matches!(row.fate, Fate::Broken(_))).map(|row| row.unit.path.as_str()).collect();
    assert!(broken.is_empty(), "compiled before, fail after: {broken:?}");
    let of_catalogue = rows().filter(|row| row.is_of_catalogue()).count();
    let repaired = rows().filter(|row| row.fate == Fate::Repaired).count();
    assert!(repaired * 10 >= of_catalogue * 9, "{repaired} of {of_catalogue} compile");
}

/// With `MAMBAPATCH_COMPILE_PLAN`, a folder.
#[test]
#[ignore = "needs a folder to write to (MAMBAPATCH_COMPILE_PLAN)"]
fn every_unit_for_another_machine() {
    let folder = variable("MAMBAPATCH_COMPILE_PLAN").expect("MAMBAPATCH_COMPILE_PLAN names a folder");
    for (name, place) in &projects() {
        plan::write(name, &trees(place), &folder);
    }
}

#[test]
#[ignore = "needs nvcc 13.0, and MAMBAPATCH_FULL=1 or checkouts (MAMBAPATCH_CORPUS)"]
fn every_unit_before_and_after() {
    let projects = projects();
    assert!(!projects.is_empty(), "MAMBAPATCH_FULL=1, or MAMBAPATCH_CORPUS names a folder");
    let compiler = Compiler::new(Toolchain::get());
    let mut done: Vec<Measured> = Vec::new();
    for (name, place) in &projects {
        done.push(measure(name, &trees(place), &compiler, &|_| true));
        if let Some(path) = variable("MAMBAPATCH_COMPILE_REPORT") {
            report::write(&done, &path);
        }
    }
    say(&report::table(&done));
    assert_promises(&done);
}
