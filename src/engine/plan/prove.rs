//! Proofs: only a plan that holds what it promises can be written.

use rayon::prelude::*;

use super::{Change, PatchPlan, Plan, PlanError, plan};
use crate::engine::ops::Outcome;
use crate::engine::patchset::bind::Bound;
use crate::engine::source::Sources;
use crate::engine::syntax::alike::differ_in_names;
use crate::engine::syntax::language::{Language, Parsed};

/// A plan that was proved.
#[derive(Debug, Clone)]
pub struct ProvedPlan(Plan);

/// A promise that a plan does not hold. It is a fault of the patch set or of the engine; nothing is written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProveError {
    /// The result has more syntax errors than the source.
    #[error("{patch} would break {path}: {after} syntax errors instead of {before}")]
    SyntaxErrors {
        /// Which patch.
        patch: String,
        /// The file.
        path: String,
        /// Before.
        before: usize,
        /// After.
        after: usize,
    },
    /// Planning again would change something.
    #[error("{op} is no fixed point: planned again, it would change {path} once more")]
    NoFixedPoint {
        /// Which op.
        op: String,
        /// The file.
        path: String,
    },
    /// Planning again fails.
    #[error("planned again, the result fails: {0}")]
    Again(PlanError),
    /// The reverse edits do not give back the source.
    #[error("{patch} cannot be taken back in {path}")]
    NotReversible {
        /// Which patch.
        patch: String,
        /// The file.
        path: String,
    },
}

impl ProvedPlan {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.0
    }
}

impl Plan {
    /// Proves the plan: no new syntax errors, a fixed point, and a way back.
    pub fn prove(self, bound: &Bound<'_>) -> Result<ProvedPlan, ProveError> {
        for patch in &self.patches {
            let check = |(path, change): (&String, &Change)| {
                check_syntax(patch, path, change)?;
                check_reverse(&patch.id, path, change)
            };
            // Files are parsed at once; the first fault is told, whichever was found first.
            let checked: Vec<_> = patch.changes.par_iter().map(check).collect();
            checked.into_iter().collect::<Result<(), _>>()?;
        }
        if !self.is_empty() {
            check_fixed_point(&self, bound)?;
        }
        Ok(ProvedPlan(self))
    }
}

fn check_syntax(patch: &PatchPlan, path: &str, change: &Change) -> Result<(), ProveError> {
    if Language::of_path(path) == Some(Language::Cpp) && differ_in_names(&change.before, &change.after) {
        return Ok(());
    }
    let errors = |sources: &Sources| {
        sources.parsed(path).map_or(0, |parsed| parsed.map_or(usize::MAX, Parsed::syntax_errors))
    };
    let after = errors(&patch.after);
    // Most results have none; then the source need not be parsed for this.
    let before = if after == 0 { 0 } else { errors(&patch.before) };
    if after <= before {
        return Ok(());
    }
    Err(ProveError::SyntaxErrors { patch: patch.id.clone(), path: path.to_string(), before, after })
}

fn check_reverse(patch: &str, path: &str, change: &Change) -> Result<(), ProveError> {
    let back = change.edits.reverse(&change.before).apply(&change.after);
    if back == change.before.as_ref() {
        return Ok(());
    }
    Err(ProveError::NotReversible { patch: patch.to_string(), path: path.to_string() })
}

fn check_fixed_point(first: &Plan, bound: &Bound<'_>) -> Result<(), ProveError> {
    let again = plan(bound, &first.after).map_err(ProveError::Again)?;
    for patch in &again.patches {
        let op = patch.ops.iter().find(|op| matches!(op.outcome, Outcome::Changed { .. }));
        let path = patch.changes.keys().next();
        if op.is_some() || path.is_some() {
            let op = op.map_or(patch.id.clone(), |op| op.id.clone());
            return Err(ProveError::NoFixedPoint { op, path: path.cloned().unwrap_or_default() });
        }
    }
    Ok(())
}
