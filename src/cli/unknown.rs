//! What there is to say of a tree of no known upstream: how it is patched, what it holds, how it is built.

use std::path::Path;

use super::failure::Failure;
use super::next::quoted;
use super::style::{DIM, STRONG, paint};
use crate::checkout::{Checkout, Target, UpstreamInfo};
use crate::engine::patchset::Upstream;
use crate::engine::source::Sources;

/// How it is patched, the known upstreams that it holds, and whether anything in it is CUDA at all.
pub fn notes(
    target: &Target,
    set: &Upstream,
    sources: &Sources,
    known: &[UpstreamInfo],
) -> Result<Vec<String>, Failure> {
    let mut notes = vec![format!("no known upstream: patched as {}", set.id)];
    notes.extend(known.iter().flat_map(|upstream| vendored(target, upstream)));
    let builds = target.read(&is_build_file)?;
    if !target.carries_kernels() && !names_cuda(sources) && !names_cuda(&builds) {
        let label = &target.label;
        notes.push(format!(
            "nothing in {label} is CUDA: no .cu file, and no file that names nvcc or CUDA's API"
        ));
    }
    Ok(notes)
}

/// The folders of a tree that are a known upstream by themselves, which its own patches know better.
fn vendored(target: &Target, upstream: &UpstreamInfo) -> Vec<String> {
    let Some(rule) = upstream.recognise.first() else { return Vec::new() };
    let paths = target.paths();
    let folders = paths.iter().filter_map(|path| path.strip_suffix(&rule.file)?.strip_suffix('/'));
    let is_it = |folder: &&str| {
        upstream.is_recognised(&|path| target.file(&format!("{folder}/{path}")).ok().flatten())
    };
    let id = &upstream.id;
    let note = |folder| format!("{folder} is {id}: given by itself, that folder is patched as {id}");
    folders.filter(is_it).map(note).collect()
}

fn names_cuda(sources: &Sources) -> bool {
    let words = ["CUDAExtension", "nvcc", "cuda_runtime", "cudaStream", "ATen/cuda", "CMAKE_CUDA"];
    let holds =
        |bytes: &[u8]| words.iter().any(|word| memchr::memmem::find(bytes, word.as_bytes()).is_some());
    sources.iter().any(|(_, bytes)| holds(bytes))
}

fn is_build_file(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("setup.py" | "CMakeLists.txt" | "Makefile" | "build.py"))
}

/// Takes out the files that are larger than any source that a person wrote, and names them.
pub fn leave_out_large(sources: &mut Sources, largest: usize) -> Vec<String> {
    let is_large = |bytes: &[u8]| bytes.len() > largest;
    let large = sources.iter().filter(|(_, bytes)| is_large(bytes));
    let notes =
        large.map(|(path, bytes)| format!("{path} has {} MB and was not looked at", bytes.len() / 1_000_000));
    let notes: Vec<String> = notes.collect();
    if !notes.is_empty() {
        let rest = sources.iter().filter(|(_, bytes)| !is_large(bytes));
        *sources = rest.map(|(path, bytes)| (path, bytes.clone())).collect();
    }
    notes
}

const PIP: &str = "pip install --no-build-isolation --no-cache-dir --no-deps";

/// The commands that compile what was patched: one for each folder whose `setup.py` builds an extension.
pub fn steps(target: &Target, checkout: &Checkout) -> Result<String, Failure> {
    let setups = target.read(&|path| path.rsplit('/').next() == Some("setup.py"))?;
    let commands: Vec<String> = setups.iter().filter_map(|(path, bytes)| command(path, bytes)).collect();
    let why = match commands.as_slice() {
        [] => {
            "no setup.py here builds an extension: it is compiled when it is first imported, or by its own script"
        }
        [_] => "compiles this tree: the installed torch, no cached wheel",
        _ => "each compiles one folder: the installed torch, no cached wheel",
    };
    let folder = format!("cd {}", quoted(checkout.folder()));
    let lines = std::iter::once(folder).chain(commands).map(|line| format!("  {line}\n"));
    let why = paint(DIM, &format!("    # {why}"));
    Ok(format!("\n{}\n{}  {why}\n", paint(STRONG, "next"), lines.collect::<String>()))
}

/// The command that runs one `setup.py`; none where it builds no extension.
fn command(path: &str, bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let folder = path.rsplit_once('/').map_or(".".to_string(), |(folder, _)| format!("./{folder}"));
    let folder = quoted(Path::new(&folder));
    let builds =
        ["ext_modules", "CUDAExtension", "CppExtension", "nvcc"].iter().any(|word| text.contains(word));
    match (builds, text.contains("setup(")) {
        (true, true) => Some(format!("{PIP} {folder}")),
        (true, false) => Some(format!("(cd {folder} && python setup.py)")),
        (false, _) => None,
    }
}
