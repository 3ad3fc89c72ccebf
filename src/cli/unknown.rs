//! What there is to say of a tree of no known upstream: how it is patched, what it holds, how it is built.

use std::path::Path;
use std::sync::Arc;

use super::compiling::{By, Compiling, compiling};
use super::failure::Failure;
use super::next::quoted;
use super::planned::{Planned, named};
use super::style::{DIM, STRONG, paint};
use crate::checkout::{Checkout, Target, UpstreamInfo};
use crate::engine::arch::{Code, Variant};
use crate::engine::ops::files::is_foreign;
use crate::engine::patchset::Upstream;
use crate::engine::source::Sources;
use crate::engine::tag::Tag;

/// How it is patched, the known upstreams that it holds, and what of it is not patched from here.
pub fn notes(target: &Target, set: &Upstream, known: &[UpstreamInfo]) -> Result<Vec<String>, Failure> {
    let how = format!("no known upstream: patched as {}", set.id);
    let held = known.iter().flat_map(|upstream| vendored(target, upstream));
    Ok(std::iter::once(how).chain(held).chain(submodules(target)?).collect())
}

/// The submodules that may be extensions: well-known libraries are none.
fn submodules(target: &Target) -> Result<Option<String>, Failure> {
    let is_library = |path: &String| is_foreign(path.rsplit('/').next().unwrap_or(path));
    let all: Vec<String> = target.submodules()?.into_iter().filter(|path| !is_library(path)).collect();
    let patched = "patched by itself: give mambapatch its folder";
    Ok(match all.as_slice() {
        [] => None,
        [one] => Some(format!("{one} is a git submodule, which is {patched}")),
        several => {
            let names = named(several).unwrap_or_default();
            Some(format!("git submodules, each of which is {patched}: {names}"))
        }
    })
}

/// Whether anything in a tree is CUDA at all.
pub fn is_cuda(target: &Target, sources: &Sources) -> Result<bool, Failure> {
    Ok(target.carries_kernels() || names_cuda(sources) || names_cuda(&target.read(&is_build_file)?))
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
    names(sources, &["CUDAExtension", "nvcc", "cuda_runtime", "cudaStream", "ATen/cuda", "CMAKE_CUDA"])
}

/// Whether anything in a tree is PyTorch's.
pub fn is_torch(sources: &Sources) -> bool {
    names(sources, &["torch", "Torch", "ATen", "c10/"])
}

fn names(sources: &Sources, words: &[&str]) -> bool {
    let holds =
        |bytes: &[u8]| words.iter().any(|word| memchr::memmem::find(bytes, word.as_bytes()).is_some());
    sources.iter().any(|(_, bytes)| holds(bytes))
}

fn is_build_file(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("setup.py" | "CMakeLists.txt" | "Makefile" | "build.py"))
}

/// Takes out the files that are larger than any source that a person wrote, and those in UTF-16; names them.
pub fn leave_out(sources: &mut Sources, largest: usize) -> Vec<String> {
    let why = |bytes: &[u8]| match bytes {
        _ if bytes.len() > largest => Some(format!("has {} MB", bytes.len() / 1_000_000)),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("is written in UTF-16".to_string()),
        _ => None,
    };
    let told =
        |(path, bytes): (&str, &Arc<[u8]>)| Some(format!("{path} {} and was not looked at", why(bytes)?));
    let notes: Vec<String> = sources.iter().filter_map(told).collect();
    if !notes.is_empty() {
        let rest = sources.iter().filter(|(_, bytes)| why(bytes).is_none());
        *sources = rest.map(|(path, bytes)| (path, bytes.clone())).collect();
    }
    notes
}

/// What is to be said where architectures are wanted and PyTorch chooses what is compiled.
pub fn without_arches(planned: &Planned<'_>) -> Option<String> {
    let list = arch_list(planned)?;
    let compiling = compiling(planned).ok()?;
    let paths: Vec<&str> =
        compiling.iter().filter(|one| one.by_torch).map(|one| one.path.as_str()).take(4).collect();
    let names = match paths.as_slice() {
        [] => return None,
        [one] => format!("{one} names"),
        [one, other] => format!("{one} and {other} name"),
        [one, other, third] => format!("{one}, {other} and {third} name"),
        [one, other, ..] => format!("{one}, {other} and others name"),
    };
    Some(format!(
        "{names} no architecture, and none was inserted: PyTorch compiles for TORCH_CUDA_ARCH_LIST=\"{list}\" if it is \
         set, else for the GPUs that it finds"
    ))
}

/// What is wanted, as TORCH_CUDA_ARCH_LIST takes it; none where PyTorch does not.
pub fn arch_list(planned: &Planned<'_>) -> Option<String> {
    let bound = &planned.bound;
    let torch = bound.request.environment.torch.as_ref().map(Tag::version);
    let takes = |code: &Code| {
        let arch = code.arch();
        arch.variant != Variant::Family && torch.is_none_or(|torch| bound.catalogue.torch_takes(torch, arch))
    };
    let wanted: Vec<Code> = bound.request.wish.wanted().filter(takes).collect();
    let entry = |code: &Code| match code {
        Code::Sass(arch) => {
            let ptx = if wanted.contains(&Code::Ptx(*arch)) { "+PTX" } else { "" };
            Some(arch.capability() + ptx)
        }
        Code::Ptx(_) | Code::Lto(_) => None,
    };
    let list: Vec<String> = wanted.iter().filter_map(entry).collect();
    (!list.is_empty()).then(|| list.join(";"))
}

const PIP: &str = "pip install --no-build-isolation --no-cache-dir --no-deps";

/// The commands that compile what was patched: one for each folder whose `setup.py` builds an extension.
pub fn steps(planned: &Planned<'_>, checkout: &Checkout) -> Result<String, Failure> {
    let list = arch_list(planned).map(|list| format!("TORCH_CUDA_ARCH_LIST=\"{list}\""));
    let compiling = compiling(planned)?;
    let commands: Vec<String> = compiling.iter().filter_map(|one| command(one, list.as_deref())).collect();
    let why = match commands.as_slice() {
        [] => {
            "no setup.py here builds an extension: it is compiled when it is first imported, or by its own script"
        }
        [_] => "compiles this tree: the installed torch, no cached wheel",
        _ => "each compiles one folder: the installed torch, no cached wheel",
    };
    let folder = format!("cd {}", quoted(checkout.folder()));
    let is_open = commands.is_empty() && compiling.iter().any(|one| one.by_torch);
    let variable = list.filter(|_| is_open).map(|list| format!("export {list}"));
    let lines = std::iter::once(folder).chain(variable).chain(commands).map(|line| format!("  {line}\n"));
    let why = paint(DIM, &format!("    # {why}"));
    Ok(format!("\n{}\n{}  {why}\n", paint(STRONG, "next"), lines.collect::<String>()))
}

/// The command that runs one `setup.py`, with the list of architectures where PyTorch reads it.
fn command(one: &Compiling, list: Option<&str>) -> Option<String> {
    let folder = one.path.rsplit_once('/').map_or(".".to_string(), |(folder, _)| format!("./{folder}"));
    let folder = quoted(Path::new(&folder));
    let variable = list.filter(|_| one.by_torch).map_or(String::new(), |list| format!("{list} "));
    match one.by {
        By::Pip => Some(format!("{variable}{PIP} {folder}")),
        By::Itself => Some(format!("(cd {folder} && {variable}python setup.py)")),
        By::Others => None,
    }
}
