//! A patch set joined with a release, an environment and the facts of the catalogue.

use std::collections::BTreeMap;

use super::select::{Request, UnknownPatch, choose, is_for, ops};
use super::{Advisory, Patch, PatchOp, Upstream, Wanted};
use crate::engine::arch::{Code, Gencode};
use crate::engine::catalogue::{Catalogue, ToolkitRow};
use crate::engine::edit::Edits;
use crate::engine::environment::toolkit_in;
use crate::engine::ops::Aim;
use crate::engine::ops::gencode::Toolchain;
use crate::engine::syntax::Passes;
use crate::engine::tag::{SourceVersion, Tag};
use crate::engine::toolkit::Toolkit;

/// What is to be planned.
#[derive(Debug, Clone)]
pub struct Bound<'a> {
    /// Whose source it is.
    pub upstream: &'a Upstream,
    /// Which release of it.
    pub version: SourceVersion,
    /// What was asked for.
    pub request: &'a Request,
    /// The facts of NVIDIA and PyTorch.
    pub catalogue: &'a Catalogue,
    /// The patches that are wanted, in order.
    pub patches: Vec<BoundPatch<'a>>,
    /// What the preprocessor knows in the environment.
    pub passes: Passes,
    /// What the person should know.
    pub notes: Vec<String>,
}

/// A patch and its ops that are for this release and environment.
#[derive(Debug, Clone)]
pub struct BoundPatch<'a> {
    /// The patch.
    pub patch: &'a Patch,
    /// Its ops that are for this source.
    pub ops: Vec<&'a PatchOp>,
}

/// A request that cannot be met.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// Nothing was asked for.
    #[error("nothing was asked for")]
    NothingAsked,
    /// A patch was named that is not there.
    #[error(transparent)]
    UnknownPatch(#[from] UnknownPatch),
    /// An architecture is wanted and unwanted.
    #[error("{} is wanted and dropped at the same time", .code.label())]
    Contradiction {
        /// Which.
        code: Code,
    },
    /// An architecture is added to those that alone are compiled.
    #[error("{} is added, and is not among those of --only-arch", .code.label())]
    NotAmongOnly {
        /// Which.
        code: Code,
        /// Those that alone are compiled.
        only: Vec<Code>,
    },
    /// No toolkit that was ever released compiles it.
    #[error("no CUDA toolkit compiles for {arch}")]
    UnknownArch {
        /// Which.
        arch: crate::engine::arch::Arch,
    },
    /// No given toolkit compiles it.
    #[error("CUDA {} does not compile for {}", given(.cuda), .code.label())]
    Refused {
        /// What is wanted.
        code: Code,
        /// The given toolkits.
        cuda: Vec<Toolkit>,
        /// The first toolkit that does, if it is known.
        since: Option<Toolkit>,
        /// The last that does, unless the newest does.
        last: Option<Toolkit>,
        /// Its name in the given toolkits, where it was renamed.
        renamed: Option<crate::engine::arch::Arch>,
    },
    /// A known trap stops the work.
    #[error("{}", .0.title)]
    Advisory(Box<Advisory>),
}

/// Before its first op a patch has changed nothing.
static NO_EDITS: BTreeMap<String, Edits> = BTreeMap::new();

fn given(cuda: &[Toolkit]) -> String {
    cuda.iter().map(Toolkit::to_string).collect::<Vec<_>>().join(" and ")
}

impl<'a> Bound<'a> {
    /// Joins everything; refuses what cannot be met before any source is read.
    pub fn new(
        upstream: &'a Upstream,
        version: SourceVersion,
        request: &'a Request,
        catalogue: &'a Catalogue,
    ) -> Result<Self, BindError> {
        if request.is_empty() {
            return Err(BindError::NothingAsked);
        }
        check_wish(request, catalogue)?;
        let (chosen, unknown) = choose(upstream, request)?;
        let mut notes = unknown_releases(request, catalogue);
        if upstream.project.is_none() {
            notes.extend(refused_by_some(request, catalogue));
        }
        for advisory in advisories(upstream, request, catalogue) {
            if !request.accept_advisory {
                return Err(BindError::Advisory(Box::new(advisory.clone())));
            }
            notes.push(format!("accepted: {}", advisory.title));
        }
        let patches: Vec<BoundPatch<'a>> = chosen
            .into_iter()
            .map(|patch| BoundPatch { patch, ops: ops(patch, &version, &request.environment) })
            .collect();
        let possible =
            unknown.iter().filter(|(patch, _)| patch.ops.iter().any(|op| is_for(&op.tags, &version)));
        let left: Vec<(&str, &str)> =
            possible.map(|(patch, key)| (patch.id.as_str(), flag_of(key))).collect();
        if !left.is_empty() {
            let named = named_or_counted(&left).join(", ");
            notes.push(format!("left out, as nothing tells whether they are needed: {named}"));
        }
        let replaced = patches.iter().filter_map(|bound| {
            let origin = bound.patch.replaced_by.as_ref()?;
            Some(format!("{} comes from {origin}", bound.patch.id))
        });
        notes.extend(replaced);
        let passes = Passes::of(&request.environment, catalogue);
        Ok(Self { upstream, version, request, catalogue, patches, passes, notes })
    }

    /// The chosen patches that need their name to be chosen again: those that were asked for by it, and those that the
    /// host's machine or packages asked for.
    pub fn by_name(&self) -> Vec<String> {
        let of_host = |patch: &Patch| match &patch.wanted {
            Wanted::ByEnvironment(needed) => {
                needed.machine.is_some() || needed.python.is_some() || !needed.packages.is_empty()
            }
            Wanted::ByArch | Wanted::ByName => false,
        };
        let chosen = self.patches.iter().map(|bound| bound.patch);
        let asked = |id: &String| {
            !self.request.patches.iter().any(|asked| id == asked || id.ends_with(&format!("/{asked}")))
        };
        let by_host = chosen.filter(|patch| of_host(patch)).map(|patch| patch.id.clone()).filter(asked);
        self.request.patches.iter().cloned().chain(by_host).collect()
    }

    /// What its ops are planned for.
    pub fn aim(&self) -> Aim<'_> {
        let cuda = &self.request.environment.cuda;
        let toolchain = Toolchain { catalogue: self.catalogue, floor: self.upstream.floor, cuda };
        let torch = self.request.environment.torch.as_ref().map(Tag::version);
        let (wish, passes) = (&self.request.wish, &self.passes);
        Aim { wish, toolchain, torch, passes, earlier: &NO_EDITS }
    }
}

/// Patches and the flags that would tell: by name, or where they are many, by set and flag.
fn named_or_counted(patches: &[(&str, &str)]) -> Vec<String> {
    const MOST: usize = 8;
    if patches.len() <= MOST {
        return patches.iter().map(|(patch, flag)| format!("{patch} ({flag})")).collect();
    }
    let mut counted: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (patch, flag) in patches {
        let set = patch.split('/').next().unwrap_or(patch);
        *counted.entry((set, flag)).or_default() += 1;
    }
    counted.into_iter().map(|((set, flag), count)| format!("{count} of {set} ({flag})")).collect()
}

/// The flag that tells a key of `needed`.
fn flag_of(key: &str) -> &'static str {
    match key {
        "cuda" => "--cuda",
        "torch" => "--torch",
        _ => "--host",
    }
}

fn check_wish(request: &Request, catalogue: &Catalogue) -> Result<(), BindError> {
    let wish = &request.wish;
    let is_left_out = |code: &&Code| !wish.only.is_empty() && !wish.only.contains(*code);
    if let Some(code) = wish.add.iter().find(is_left_out) {
        return Err(BindError::NotAmongOnly { code: *code, only: wish.only.clone() });
    }
    for code in wish.wanted() {
        let Some(row) = catalogue.arch(code.arch()) else {
            return Err(BindError::UnknownArch { arch: code.arch() });
        };
        if wish.drop.iter().any(|drop| code.arch().serves(drop.arch())) {
            return Err(BindError::Contradiction { code });
        }
        let cuda = &request.environment.cuda;
        let taken = cuda.iter().any(|toolkit| catalogue.takes(*toolkit, &Gencode::of(code)));
        if !cuda.is_empty() && !taken {
            let renamed = row.renamed_to.or(row.renamed_from);
            return Err(BindError::Refused {
                code,
                cuda: cuda.clone(),
                since: row.since,
                last: row.last,
                renamed,
            });
        }
    }
    Ok(())
}

/// The traps that the wanted architectures run into with the given toolkits, or with any where none is given.
fn advisories<'a>(upstream: &'a Upstream, request: &Request, catalogue: &Catalogue) -> Vec<&'a Advisory> {
    let all: Vec<Toolkit> = catalogue.toolkits().iter().map(|row| row.version).collect();
    let cuda = if request.environment.cuda.is_empty() { &all } else { &request.environment.cuda };
    let concerns = |advisory: &&Advisory| {
        cuda.iter().any(|toolkit| toolkit_in(&advisory.cuda, *toolkit))
            && request.wish.wanted().any(|code| code.arch().serves(advisory.arch))
    };
    upstream.advisories.iter().filter(concerns).collect()
}

/// The given toolkits and the given torch that the catalogue does not know, and what they are taken for.
fn unknown_releases(request: &Request, catalogue: &Catalogue) -> Vec<String> {
    let newer = |name: String, newest: String| {
        format!("{name} is newer than the catalogue and is treated as {newest}")
    };
    let toolkit = |toolkit: &Toolkit| {
        let known = |row: &&ToolkitRow| row.version < *toolkit;
        let before = catalogue.toolkits().iter().rfind(known)?.version;
        match *toolkit > catalogue.newest() {
            true => Some(newer(format!("CUDA {toolkit}"), before.to_string())),
            false if catalogue.toolkits().iter().any(|row| row.version == *toolkit) => None,
            false => Some(format!("no CUDA {toolkit} is known; the release before it is {before}")),
        }
    };
    let torch = request.environment.torch.as_ref().zip(catalogue.newest_torch());
    let torch = torch.filter(|(torch, newest)| torch.version().only_release() > **newest);
    let torch = torch.map(|(torch, newest)| newer(format!("torch {torch}"), newest.to_string()));
    request.environment.cuda.iter().filter_map(toolkit).chain(torch).collect()
}

/// The given toolkits that refuse what is wanted; lists without guards get only what all of them take.
fn refused_by_some(request: &Request, catalogue: &Catalogue) -> Option<String> {
    let cuda = &request.environment.cuda;
    let refused = |code: &Code| {
        let refuses = |toolkit: &&Toolkit| !catalogue.takes(**toolkit, &Gencode::of(*code));
        let by: Vec<Toolkit> = cuda.iter().filter(refuses).copied().collect();
        (!by.is_empty()).then(|| format!("CUDA {} does not compile for {}", given(&by), code.label()))
    };
    let refused: Vec<String> = request.wish.wanted().filter_map(|code| refused(&code)).collect();
    (!refused.is_empty()).then(|| format!("{}; only lists with guards get it", refused.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_patches_are_counted_by_set_and_flag() {
        let few = [("a/one", "--cuda"), ("a/two", "--host")];
        assert_eq!(named_or_counted(&few), ["a/one (--cuda)", "a/two (--host)"]);
        let many = [&few[..], &[("b/one", "--cuda"); 8]].concat();
        assert_eq!(named_or_counted(&many), ["1 of a (--cuda)", "1 of a (--host)", "8 of b (--cuda)"]);
    }
}
