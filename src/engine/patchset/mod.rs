//! Patch sets: what must hold in the sources of an upstream, as data.

mod arch_ops;
pub mod bind;
pub mod fault;
pub mod load;
mod load_code;
mod load_units;
mod load_words;
pub mod schema;
pub mod select;
pub mod shipped;

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;

use super::arch::Arch;
use super::environment::toolkit_in;
use super::ops::Op;
use super::syntax::Passes;
use super::tag::{Tag, TagRange};
use super::toolkit::Toolkit;

/// An upstream and what is known of it; or the fallback, which patches trees of no known upstream.
#[derive(Debug, Clone)]
pub struct Upstream {
    /// The name of its folder: `mamba-ssm`.
    pub id: String,
    /// The project behind it; the fallback has none.
    pub project: Option<Project>,
    /// The oldest toolkit that its sources accept.
    pub floor: Toolkit,
    /// Its patches in the order in which they are planned, then those of the sets that it uses.
    pub patches: Vec<Patch>,
    /// What to set and type when it is built.
    pub build: Vec<BuildFacts>,
    /// Which releases of other upstreams work together with it.
    pub works_with: Vec<WorksWith>,
    /// Known traps.
    pub advisories: Vec<Advisory>,
}

/// The project that an upstream is: where its releases are and how its tree is known.
#[derive(Debug, Clone)]
pub struct Project {
    /// Where its git repository is.
    pub url: String,
    /// Its name on a package index.
    pub distribution: String,
    /// The module that it installs.
    pub module: String,
    /// What its tags begin with.
    pub tag_prefix: String,
    /// Files that tell it from other trees; each expression must match somewhere in its file.
    pub recognise: Vec<Recognise>,
    /// The newest release that the patch set was tested on.
    pub tested_through: Tag,
    /// The text of its `smoke.py`: compares its kernels with their references, in any of its releases.
    pub smoke: Option<String>,
}

/// A file that tells an upstream from other trees.
#[derive(Debug, Clone)]
pub struct Recognise {
    /// Relative to the root of the tree.
    pub file: String,
    /// Matches somewhere in it.
    pub pattern: Regex,
}

/// What to set and type when some releases are built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildFacts {
    /// Of which releases.
    pub tags: TagRange,
    /// Environment variables, so that the patched tree is compiled and nothing is downloaded instead.
    pub variables: BTreeMap<String, String>,
}

/// Releases of another upstream that work together with some releases of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorksWith {
    /// Of this upstream.
    pub tags: TagRange,
    /// The other's distribution.
    pub distribution: String,
    /// Its releases, as pip takes them.
    pub versions: String,
    /// The newest of them, by its tag; `None` where the newest of all works.
    pub newest: Option<String>,
    /// Why.
    pub why: String,
}

/// A known trap for an architecture with some toolkits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advisory {
    /// The architecture.
    pub arch: Arch,
    /// With these toolkits.
    pub cuda: TagRange,
    /// What happens.
    pub title: String,
    /// What is known of it.
    pub why: String,
    /// What to do instead.
    pub instead: String,
    /// Where it was reported.
    pub references: Vec<String>,
}

/// One file of a patch set.
#[derive(Debug, Clone)]
pub struct Patch {
    /// `SET/FILE`: `mamba-ssm/gpu-arch`.
    pub id: String,
    /// One line: the title of its commit.
    pub title: String,
    /// Why it exists.
    pub why: String,
    /// Issues, pull requests and documents.
    pub references: Vec<String>,
    /// What upstream has said.
    pub upstream_status: UpstreamStatus,
    /// By what it is chosen.
    pub wanted: Wanted,
    /// In the order in which they are planned.
    pub ops: Vec<PatchOp>,
    /// The folder or file that replaced a shipped patch of the same id.
    pub replaced_by: Option<String>,
    /// The text of its file, by which two versions of a patch can be told apart.
    pub text: String,
}

/// By what a patch is chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// By a flag that speaks of architectures, or by a toolkit.
    ByArch,
    /// When the environment asks for it.
    ByEnvironment(Needed),
    /// By `--patch` alone.
    ByName,
}

/// What upstream has said of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpstreamStatus {
    /// Nobody has offered it yet.
    Pending,
    /// It was offered.
    Submitted,
    /// It is there since a release.
    MergedSince(Tag),
    /// They do not want it.
    Rejected,
    /// It is not for them.
    Inappropriate,
}

impl fmt::Display for UpstreamStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pending => f.write_str("pending"),
            Self::Submitted => f.write_str("submitted"),
            Self::MergedSince(tag) => write!(f, "merged since v{tag}"),
            Self::Rejected => f.write_str("rejected"),
            Self::Inappropriate => f.write_str("inappropriate"),
        }
    }
}

/// For which environment something is wanted; every key that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needed {
    /// Releases of the toolkit.
    pub cuda: Option<TagRange>,
    /// Releases of PyTorch.
    pub torch: Option<TagRange>,
    /// Releases of Python.
    pub python: Option<TagRange>,
    /// The machine, as `uname -m` names it.
    pub machine: Option<String>,
    /// Releases of other packages, by name.
    pub packages: BTreeMap<String, TagRange>,
}

/// An op of a patch.
#[derive(Debug, Clone)]
pub struct PatchOp {
    /// `SET/FILE/KIND`, with a number from the second of a kind on: `mamba-ssm/cuda-13/rewrite-2`.
    pub id: String,
    /// For which releases it is written.
    pub tags: TagRange,
    /// For which environment it is wanted, besides what the patch says.
    pub needed: Option<Needed>,
    /// Ops of a patch with the same unit land together or not at all.
    pub unit: Option<String>,
    /// What must hold.
    pub op: Op,
}

/// All patch sets that are at hand.
#[derive(Debug, Clone, Default)]
pub struct PatchSets {
    /// By name.
    pub upstreams: Vec<Upstream>,
    /// The folders of private sets of which no patch is anybody's: they have no `upstream.toml`, and no set uses them.
    pub unused: Vec<String>,
}

impl Patch {
    /// Whether it is one of the set of this name.
    pub fn is_of(&self, set: &str) -> bool {
        self.id.split_once('/').is_some_and(|(own, _)| own == set)
    }

    /// What the preprocessor knows of the toolkits for which an op is wanted: of all, where it is asked for by name and
    /// none of them wants it.
    pub fn passes(&self, op: &PatchOp, passes: &Passes) -> Passes {
        let needed = match &self.wanted {
            Wanted::ByEnvironment(needed) => Some(needed),
            Wanted::ByArch | Wanted::ByName => None,
        };
        let ranges: Vec<&TagRange> =
            needed.into_iter().chain(&op.needed).filter_map(|needed| needed.cuda.as_ref()).collect();
        let wanting = passes.of_toolkits(|toolkit| ranges.iter().all(|range| toolkit_in(range, toolkit)));
        if ranges.is_empty() || wanting.is_empty() { passes.clone() } else { wanting }
    }
}

impl PatchSets {
    /// What tells of the sets that nothing uses.
    pub fn unused_notes(&self) -> impl Iterator<Item = String> {
        let why = "has no upstream.toml, and no set uses it";
        self.unused.iter().map(move |folder| format!("{folder} {why}: its patches are never applied"))
    }

    /// The upstream of a name.
    pub fn upstream(&self, id: &str) -> Option<&Upstream> {
        self.upstreams.iter().find(|upstream| upstream.id == id)
    }

    /// The set for trees of no known upstream.
    pub fn fallback(&self) -> Option<&Upstream> {
        self.upstreams.iter().find(|upstream| upstream.project.is_none())
    }
}

impl Upstream {
    /// The patch of an id, written in full or without the name of the set.
    pub fn patch(&self, id: &str) -> Option<&Patch> {
        self.patches
            .iter()
            .find(|patch| patch.id == id || patch.id.rsplit('/').next().is_some_and(|name| name == id))
    }

    /// The newest release that it was tested on, as tables show it; `-` for the fallback, which knows no releases.
    pub fn tested_through(&self) -> String {
        self.project.as_ref().map_or("-".to_string(), |project| format!("v{}", project.tested_through))
    }

    /// The files that its patches look at, as globs.
    pub fn globs(&self) -> Vec<String> {
        let ops = self.patches.iter().flat_map(|patch| &patch.ops);
        let mut globs: Vec<String> = ops.flat_map(|op| op.op.files().globs().to_vec()).collect();
        globs.sort();
        globs.dedup();
        globs
    }
}

#[cfg(test)]
mod tests;
