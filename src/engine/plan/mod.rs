//! Plans: all edits and outcomes for one target.

pub mod effect;
pub mod preview;
pub mod prove;
pub mod understood;
mod unit;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::edit::{Edits, Overlap};
use super::ops::include::{self, Wanted};
use super::ops::{Aim, Left, NoAnchor, Op, OpError, OpPlan, Outcome, Site, continuation, import};
use super::patchset::PatchOp;
use super::patchset::bind::{Bound, BoundPatch};
use super::source::Sources;
use super::syntax::Language;
use super::tag::SourceVersion;
use unit::Held;

/// All edits and outcomes for one target; not yet proved.
#[derive(Debug, Clone)]
pub struct Plan {
    /// One after the other, each on the text that the one before left.
    pub patches: Vec<PatchPlan>,
    /// The files as they were.
    pub before: Sources,
    /// The files as they will be.
    pub after: Sources,
}

/// What one patch does.
#[derive(Debug, Clone)]
pub struct PatchPlan {
    /// Its id.
    pub id: String,
    /// Its title, reason and references: the commit message.
    pub title: String,
    /// Why it exists.
    pub why: String,
    /// Issues, pull requests and documents.
    pub references: Vec<String>,
    /// What each op found.
    pub ops: Vec<OpReport>,
    /// The files that it changes.
    pub changes: BTreeMap<String, Change>,
    /// All files as the patch before it left them.
    pub before: Sources,
    /// All files as it leaves them.
    pub after: Sources,
}

/// What one op found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpReport {
    /// Its id.
    pub id: String,
    /// The files that it looks at.
    pub files: String,
    /// What it found.
    pub outcome: Outcome,
    /// The places that it speaks of.
    pub sites: Vec<Site>,
    /// The places that it saw and left.
    pub left: Vec<Left>,
    /// What was seen besides and left.
    pub remarks: Vec<String>,
}

/// One file that a patch changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its bytes before the patch.
    pub before: Arc<[u8]>,
    /// Its bytes after it.
    pub after: Arc<[u8]>,
    /// What leads from one to the other.
    pub edits: Edits,
}

/// A target that cannot be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// An op cannot do its work.
    #[error("{cause}")]
    Op {
        /// Which op.
        id: String,
        /// Why not.
        cause: OpError,
    },
    /// Two ops of a patch touch the same bytes.
    #[error("{path}: {id} and another op of its patch touch the same bytes: {overlap}")]
    Overlap {
        /// The second op.
        id: String,
        /// The file.
        path: String,
        /// Where.
        overlap: Overlap,
    },
    /// Only a part of a unit would land.
    #[error("{landing} would land without {id}, and both belong to the unit `{unit}`: {why}")]
    Unit {
        /// Which unit.
        unit: String,
        /// The op that would not land.
        id: String,
        /// One that would.
        landing: String,
        /// Why it would not.
        why: String,
    },
}

impl PlanError {
    /// The missing anchor, where that is the cause.
    pub fn no_anchor(&self) -> Option<&NoAnchor> {
        match self {
            PlanError::Op { cause: OpError::NoAnchor(missing), .. } => Some(missing),
            _ => None,
        }
    }
}

/// Plans everything that is bound.
pub fn plan(bound: &Bound<'_>, sources: &Sources) -> Result<Plan, PlanError> {
    let passes = bound.passes.clone().in_tree(sources);
    let aim = Aim { passes: &passes, ..bound.aim() };
    let mut after = sources.clone();
    let mut patches = Vec::new();
    for one in &bound.patches {
        let patch = plan_settled(one, &after, aim, &bound.version)?;
        after = patch.after.clone();
        patches.push(patch);
    }
    Ok(Plan { patches, before: sources.clone(), after })
}

/// How often a patch is planned on its own result.
const ROUNDS: usize = 3;

/// Plans a patch until it is settled: a list that one op leaves a single flag may then be one that another op is about.
fn plan_settled(
    bound: &BoundPatch<'_>,
    sources: &Sources,
    aim: Aim<'_>,
    version: &SourceVersion,
) -> Result<PatchPlan, PlanError> {
    let mut patch = plan_patch(bound, sources, aim, version)?;
    if !bound.ops.iter().any(|op| matches!(op.op, Op::AnyGencode(_))) {
        return Ok(patch);
    }
    for _ in 0..ROUNDS {
        let changed = !patch.changes.is_empty();
        let Some(again) = changed.then(|| plan_patch(bound, &patch.after, aim, version)).transpose()? else {
            break;
        };
        let settled = again.changes.is_empty();
        patch = patch.then(again);
        if settled {
            break;
        }
    }
    Ok(patch)
}

fn plan_patch(
    bound: &BoundPatch<'_>,
    sources: &Sources,
    aim: Aim<'_>,
    version: &SourceVersion,
) -> Result<PatchPlan, PlanError> {
    let mut reports = Vec::new();
    let mut edits: BTreeMap<String, (Edits, Vec<Wanted>)> = BTreeMap::new();
    for (op, mut plan) in plan_ops(bound, sources, aim, version)? {
        for (path, more) in plan.edits {
            let (file, includes) = edits.entry(path.clone()).or_default();
            include::want(includes, plan.includes.remove(&path).unwrap_or_default());
            file.merge(more).map_err(|overlap| PlanError::Overlap { id: op.id.clone(), path, overlap })?;
        }
        reports.push(OpReport {
            id: op.id.clone(),
            files: op.op.files().to_string(),
            outcome: plan.outcome,
            sites: plan.sites,
            left: plan.left,
            remarks: plan.remarks,
        });
    }
    let changes: BTreeMap<String, Change> = edits
        .into_iter()
        .filter_map(|(path, (mut edits, includes))| {
            let before = sources.get(&path)?.clone();
            keep_columns(&path, &before, &mut edits);
            match Language::of_path(&path) {
                Some(Language::Python) => import::add(&before, &mut edits, &includes),
                _ => include::add(&before, &mut edits, &includes, aim.passes),
            }
            let after: Arc<[u8]> = edits.apply(&before).into();
            Some((path, Change { before, after, edits }))
        })
        .collect();
    let mut after = sources.clone();
    for (path, change) in &changes {
        after.insert(path.clone(), change.after.clone());
    }
    let patch = bound.patch;
    Ok(PatchPlan {
        id: patch.id.clone(),
        title: patch.title.clone(),
        why: patch.why.clone(),
        references: patch.references.clone(),
        ops: reports,
        changes,
        before: sources.clone(),
        after,
    })
}

impl PatchPlan {
    /// What the patch does where it is planned once more on its own result.
    fn then(self, again: PatchPlan) -> Self {
        let ops = self.ops.into_iter().zip(again.ops).map(|(first, again)| first.then(again)).collect();
        let mut changes = self.changes;
        for (path, change) in again.changes {
            let before = changes.get(&path).map_or(change.before, |first| first.before.clone());
            let edits = Edits::between_lines(&before, &change.after);
            changes.insert(path, Change { before, after: change.after, edits });
        }
        Self { ops, changes, after: again.after, ..self }
    }
}

impl OpReport {
    /// What was found first, and what had to be done besides; what has become right meanwhile is reported no longer.
    fn then(self, again: OpReport) -> Self {
        match (self.outcome, again.outcome) {
            (Outcome::Changed { mut how }, Outcome::Changed { how: more }) => {
                how.extend(more);
                let new = again.remarks.into_iter().filter(|remark| !self.remarks.contains(remark));
                let remarks = self.remarks.iter().cloned().chain(new).collect();
                Self { outcome: Outcome::Changed { how }, remarks, ..self }
            }
            (outcome @ Outcome::Changed { .. }, _) => Self { outcome, ..self },
            (Outcome::Reported { advice }, Outcome::Reported { .. }) => {
                Self { outcome: Outcome::Reported { advice }, ..self }
            }
            (_, outcome @ Outcome::Changed { .. }) => Self { outcome, remarks: again.remarks, ..self },
            (Outcome::Reported { .. }, outcome) => Self { outcome, ..again },
            (outcome, _) => Self { outcome, ..self },
        }
    }
}

/// In C++ the `\\` that continues a line stays in its column.
fn keep_columns(path: &str, before: &[u8], edits: &mut Edits) {
    if Language::of_path(path) == Some(Language::Cpp) {
        for kept in continuation::kept_columns(edits, before).iter() {
            // An edit that reaches to the `\\` has said what stands there.
            let _ = edits.insert(kept.clone());
        }
    }
}

/// The ops of a patch with their plans, and those that do not fit.
type Attempt<'a> = (Vec<(&'a PatchOp, OpPlan)>, Vec<(&'a PatchOp, OpError)>);

/// Plans the ops of a patch on the same text. Of an unknown release, shapes that do not fit are left out as long as
/// another one of their kind does.
fn plan_ops<'a>(
    bound: &BoundPatch<'a>,
    sources: &Sources,
    aim: Aim<'_>,
    version: &SourceVersion,
) -> Result<Vec<(&'a PatchOp, OpPlan)>, PlanError> {
    let mut held = Held::default();
    let (planned, unfit) = loop {
        let attempt = attempt(bound, sources, aim, &held)?;
        if !held.grow(&attempt.0) {
            break attempt;
        }
    };
    unit::check(&planned, &unfit)?;
    let known = *version != SourceVersion::Unknown;
    let alone = |op: &PatchOp| {
        let same = |other: &PatchOp| {
            other.op.kind() == op.op.kind() && other.op.files().globs() == op.op.files().globs()
        };
        !planned.iter().any(|(other, _)| same(other))
    };
    match unfit.into_iter().find(|(op, _)| known || alone(op)) {
        Some((op, cause)) => Err(PlanError::Op { id: op.id.clone(), cause }),
        None => Ok(planned),
    }
}

/// Plans each op, given the files in which a unit is held back.
fn attempt<'a>(
    bound: &BoundPatch<'a>,
    sources: &Sources,
    aim: Aim<'_>,
    held: &Held,
) -> Result<Attempt<'a>, PlanError> {
    let (mut planned, mut unfit) = Attempt::default();
    let mut earlier: BTreeMap<String, Edits> = BTreeMap::new();
    for op in &bound.ops {
        let passes = bound.patch.passes(op, aim.passes);
        match op.op.plan(sources, Aim { earlier: &earlier, passes: &passes, ..aim }) {
            Ok(mut plan) => {
                held.keep_back(op, &mut plan);
                for (path, edits) in &plan.edits {
                    // Edits that touch the same bytes are found when all are put together.
                    let _ = earlier.entry(path.clone()).or_default().merge(edits.clone());
                }
                planned.push((*op, plan));
            }
            Err(cause @ OpError::NoAnchor(_)) => unfit.push((*op, cause)),
            Err(cause) => return Err(PlanError::Op { id: op.id.clone(), cause }),
        }
    }
    Ok((planned, unfit))
}

impl Plan {
    /// Whether no file changes.
    pub fn is_empty(&self) -> bool {
        self.patches.iter().all(|patch| patch.changes.is_empty())
    }
}
