//! What to type after a patch: complete commands that compile the patched tree and nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::apply::parameters;
use super::planned::Planned;
use super::style::{DIM, STRONG, paint};
use super::unknown;
use crate::checkout::Checkout;
use crate::engine::patchset::select::{Request, is_for};
use crate::engine::patchset::{Upstream, WorksWith};
use crate::engine::tag::SourceVersion;

/// The commands, one a line, with their reasons.
pub fn steps(planned: &Planned<'_>, checkout: &Checkout) -> String {
    if planned.bound.upstream.project.is_none() {
        // What was read once can be read again; if not, the patched tree is there all the same.
        return unknown::steps(planned, checkout).unwrap_or_default();
    }
    let (upstream, version) = (planned.bound.upstream, &planned.bound.version);
    let mut text = format!("\n{}\n", paint(STRONG, "next"));
    if !planned.target.carries_kernels() {
        text.push_str(&format!("  {}\n", from_git(planned)));
        text.push_str(&format!(
            "  {}\n",
            paint(DIM, "    # this tree has no kernels to compile; git has them")
        ));
        return text;
    }
    let mut add = |command: &str, why: &str| {
        text.push_str(&format!("  {command}\n"));
        if !why.is_empty() {
            text.push_str(&format!("  {}\n", paint(DIM, &format!("    # {why}"))));
        }
    };
    // The partner comes before `cd`: its checkout belongs beside this one, not into it.
    for (command, why) in partners(planned, "apply") {
        add(&command, &why);
    }
    add(&format!("cd {}", quoted(checkout.folder())), "");
    add(
        &build(upstream, version),
        "compiles this tree: no downloaded wheel, the installed torch, no cached wheel",
    );
    text
}

/// The command that compiles a release that needs no patch; none for a tree of the user's own.
pub fn unpatched(planned: &Planned<'_>) -> Option<String> {
    let SourceVersion::Release(tag) = &planned.bound.version else { return None };
    if planned.target.is_local() || !planned.target.carries_kernels() {
        return None;
    }
    let upstream = planned.bound.upstream;
    let name = &upstream.project.as_ref()?.distribution;
    let pip = build(upstream, &planned.bound.version)
        .replace("--no-deps .", &format!("--no-deps --no-binary {name} '{name}=={tag}'"));
    let why = paint(DIM, "    # compiles this release as it is: nothing of it needs a patch");
    Some(format!("\n{}\n  {pip}\n  {why}\n", paint(STRONG, "next")))
}

/// The commands that do the same (`apply`, `build`) with the partners of a release, and why.
pub fn partners(planned: &Planned<'_>, verb: &str) -> Vec<(String, String)> {
    let (upstream, version) = (planned.bound.upstream, &planned.bound.version);
    let known = *version != SourceVersion::Unknown;
    let fitting = upstream.works_with.iter().filter(|partner| known && is_for(&partner.tags, version));
    let command = |partner: &WorksWith| {
        let (command, how) = partner_command(partner, planned.bound.request, verb);
        let command = with_patch_sets(command, &planned.patch_sets);
        let works = format!("it works with '{}{}'{how}", partner.distribution, partner.versions);
        (command, format!("this release {}: {works}", partner.why))
    };
    fitting.map(command).collect()
}

/// The command that patches the newest release that works together with the target, for the same GPUs and toolkits, and
/// how it goes on; where none are named, the command that installs it.
fn partner_command(partner: &WorksWith, request: &Request, verb: &str) -> (String, &'static str) {
    let newest = partner.newest.as_ref().map(|tag| format!("@{tag}")).unwrap_or_default();
    let same = Request {
        wish: request.wish.clone(),
        environment: request.environment.clone(),
        ..Request::default()
    };
    let (name, flags) = (&partner.distribution, parameters(&same, &[]));
    if flags.is_empty() {
        return (format!("pip install --no-build-isolation --no-deps '{name}{}'", partner.versions), "");
    }
    (format!("mambapatch {verb} {name}{newest} {flags}"), ", patched and built the same way")
}

/// The variables that make a release's build compile.
pub fn variables(upstream: &Upstream, version: &SourceVersion) -> BTreeMap<String, String> {
    let facts = upstream.build.iter().find(|facts| is_for(&facts.tags, version));
    facts.map(|facts| facts.variables.clone()).unwrap_or_default()
}

/// The command that compiles a tree of an upstream.
pub fn build(upstream: &Upstream, version: &SourceVersion) -> String {
    let variables = variables(upstream, version);
    let set: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let pip = "pip install --no-build-isolation --no-cache-dir --no-deps .";
    if set.is_empty() { pip.to_string() } else { format!("{} {pip}", set.join(" ")) }
}

/// A line that ends in a command which needs the private patch sets too, with them.
pub fn with_patch_sets(line: String, folders: &[PathBuf]) -> String {
    const READING: [&str; 6] = ["explain", "list", "check", "apply", "build", "vendor"];
    let reads = line
        .rsplit_once("mambapatch ")
        .is_some_and(|(_, command)| READING.contains(&command.split(' ').next().unwrap_or_default()));
    let flags = folders.iter().map(|folder| format!(" --patchsets {}", quoted(folder)));
    if reads { line + &flags.collect::<String>() } else { line }
}

/// The command that patches the same release from git, in a folder of its own.
fn from_git(planned: &Planned<'_>) -> String {
    let id = &planned.bound.upstream.id;
    let (target, folder) = match &planned.bound.version {
        SourceVersion::Release(tag) => (format!("{id}@v{tag}"), format!("{id}-{tag}-git")),
        _ => (id.clone(), format!("{id}-git")),
    };
    let parameters = parameters(planned.bound.request, &planned.bound.by_name());
    let command = format!("mambapatch apply {target} {parameters} --source git --into {folder}");
    with_patch_sets(command, &planned.patch_sets)
}

/// A path as a shell takes it.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
