//! Which patches are wanted, and which of their ops are written for a release.

use super::{Needed, Patch, PatchOp, Upstream, Wanted};
use crate::engine::environment::{Environment, toolkit_in};
use crate::engine::ops::gencode::ArchWish;
use crate::engine::tag::{SourceVersion, TagRange};

/// What a person asks for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Architectures.
    pub wish: ArchWish,
    /// What it must build with.
    pub environment: Environment,
    /// Patches by name.
    pub patches: Vec<String>,
    /// Patches that must not be used.
    pub skip: Vec<String>,
    /// Known traps are accepted.
    pub accept_advisory: bool,
}

impl Request {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.wish.is_empty() && self.patches.is_empty() && self.environment == Environment::default()
    }
}

/// A name that no patch has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{upstream} has no patch `{id}`")]
pub struct UnknownPatch {
    /// Whose.
    pub upstream: String,
    /// What was asked for.
    pub id: String,
    /// Which there are.
    pub known: Vec<String>,
}

/// The patches that are wanted, and those whose need is unknown, with what would tell.
pub type Chosen<'a> = (Vec<&'a Patch>, Vec<(&'a Patch, String)>);

/// Chooses the patches of an upstream.
pub fn choose<'a>(upstream: &'a Upstream, request: &Request) -> Result<Chosen<'a>, UnknownPatch> {
    let find = |id: &String| {
        upstream.patch(id).map(|patch| patch.id.as_str()).ok_or_else(|| UnknownPatch {
            upstream: upstream.id.clone(),
            id: id.clone(),
            known: upstream.patches.iter().map(|patch| patch.id.clone()).collect(),
        })
    };
    let named = request.patches.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let skipped = request.skip.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let (mut chosen, mut unknown) = (Vec::new(), Vec::new());
    for patch in upstream.patches.iter().filter(|patch| !skipped.contains(&patch.id.as_str())) {
        let by_arch = !request.wish.is_empty() || !request.environment.cuda.is_empty();
        match &patch.wanted {
            _ if named.contains(&patch.id.as_str()) => chosen.push(patch),
            Wanted::ByArch if by_arch => chosen.push(patch),
            Wanted::ByEnvironment(needed) => match is_needed(needed, &request.environment) {
                Need::Yes => chosen.push(patch),
                Need::Unknown(what) => unknown.push((patch, what)),
                Need::No => {}
            },
            Wanted::ByArch | Wanted::ByName => {}
        }
    }
    Ok((chosen, unknown))
}

/// Whether an environment asks for something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// Every key is known and true.
    Yes,
    /// A key is known and false.
    No,
    /// The named key is not known.
    Unknown(String),
}

/// Whether an environment asks for something. With several toolkits it does if any of them does.
pub fn is_needed(needed: &Needed, environment: &Environment) -> Need {
    let mut unknown = None;
    let mut all = true;
    let mut key = |name: &str, holds: Option<bool>| match holds {
        Some(holds) => all &= holds,
        None => unknown = unknown.take().or(Some(name.to_string())),
    };
    if let Some(range) = &needed.cuda {
        let given = &environment.cuda;
        key("cuda", (!given.is_empty()).then(|| given.iter().any(|toolkit| toolkit_in(range, *toolkit))));
    }
    if let Some(range) = &needed.torch {
        key("torch", environment.torch.as_ref().map(|tag| range.contains(tag)));
    }
    if let Some(range) = &needed.python {
        key("python", environment.python.as_ref().map(|tag| range.contains(tag)));
    }
    if let Some(machine) = &needed.machine {
        key("machine", environment.machine.as_ref().map(|known| known == machine));
    }
    for (name, range) in &needed.packages {
        let known = environment.packages.get(name);
        key(
            &format!("packages.{name}"),
            known.map(|tag| tag.as_ref().is_some_and(|tag| range.contains(tag))),
        );
    }
    match (all, unknown) {
        (false, _) => Need::No,
        (true, Some(name)) => Need::Unknown(name),
        (true, None) => Need::Yes,
    }
}

/// Whether something written for some releases is for this source. What is unknown may be any.
pub fn is_for(tags: &TagRange, version: &SourceVersion) -> bool {
    match version {
        SourceVersion::Release(tag) => tags.contains(tag),
        SourceVersion::After(tag) => tags.contains_after(tag),
        SourceVersion::Unknown => true,
    }
}

/// The ops of a patch that are for this source and environment.
pub fn ops<'a>(patch: &'a Patch, version: &SourceVersion, environment: &Environment) -> Vec<&'a PatchOp> {
    let fits = |op: &&PatchOp| {
        let needed = op.needed.as_ref();
        is_for(&op.tags, version) && needed.is_none_or(|needed| is_needed(needed, environment) == Need::Yes)
    };
    patch.ops.iter().filter(fits).collect()
}
