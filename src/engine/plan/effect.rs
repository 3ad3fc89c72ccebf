//! The effect of a plan: what each toolkit would compile, before and after.

use super::Plan;
use crate::engine::ops::Op;
use crate::engine::ops::gencode::Compiled;
use crate::engine::patchset::bind::Bound;
use crate::engine::patchset::select::is_for;
use crate::engine::source::Sources;
use crate::engine::toolkit::Toolkit;

/// What one build file makes each toolkit compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The build file.
    pub path: String,
    /// A row a toolkit.
    pub rows: Vec<EffectRow>,
    /// Whether a guard can stand before a flag, so that `--cuda` cures what a toolkit refuses.
    pub guarded: bool,
}

/// What one toolkit compiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectRow {
    /// The toolkit.
    pub toolkit: Toolkit,
    /// Its flags before.
    pub before: Vec<Compiled>,
    /// Its flags after.
    pub after: Vec<Compiled>,
}

/// The toolkits that an effect shows: milestones of the catalogue, and those given.
fn shown(bound: &Bound<'_>) -> Vec<Toolkit> {
    let milestones =
        [(11, 8), (12, 3), (12, 8), (12, 9), (13, 0)].map(|(major, minor)| Toolkit::new(major, minor));
    let given = bound.request.environment.cuda.iter().copied();
    let mut toolkits: Vec<Toolkit> =
        milestones.into_iter().chain(given).filter(|toolkit| *toolkit >= bound.upstream.floor).collect();
    toolkits.sort();
    toolkits.dedup();
    toolkits
}

impl Plan {
    /// The build files that name architectures in a way that the patch set knows.
    pub fn effect(&self, bound: &Bound<'_>) -> Vec<Effect> {
        let toolkits = shown(bound);
        let ops = bound.upstream.patches.iter().flat_map(|patch| &patch.ops);
        let ops = ops.filter(|op| is_for(&op.tags, &bound.version)).map(|op| &op.op);
        let ops: Vec<&Op> = ops.filter(|op| op.reads_arches()).collect();
        let compiled = |sources: &Sources, path: &str| compiled(bound, &ops, (sources, path), &toolkits);
        let effect = |path: &str| {
            let before = compiled(&self.before, path);
            let is_same = self.before.get(path) == self.after.get(path);
            let after = if is_same { before.clone() } else { compiled(&self.after, path) };
            let pairs = toolkits.iter().zip(before.into_iter().zip(after));
            let row =
                |(toolkit, (before, after)): (&Toolkit, _)| EffectRow { toolkit: *toolkit, before, after };
            let guarded = bound.upstream.project.is_some();
            Effect { path: path.to_string(), rows: pairs.map(row).collect(), guarded }
        };
        let names =
            |one: &Effect| one.rows.iter().any(|row| !(row.before.is_empty() && row.after.is_empty()));
        let wanted = |path: &&str| ops.iter().any(|op| op.files().contains(path));
        self.before.paths().filter(wanted).map(effect).filter(names).collect()
    }
}

/// What each toolkit is given by one file.
fn compiled(
    bound: &Bound<'_>,
    ops: &[&Op],
    (sources, path): (&Sources, &str),
    toolkits: &[Toolkit],
) -> Vec<Vec<Compiled>> {
    let mut all = vec![Vec::new(); toolkits.len()];
    for op in ops.iter().filter(|op| op.files().contains(path)) {
        let one = op.compiled(sources, path, (toolkits, bound.aim()));
        for (flags, more) in all.iter_mut().zip(one) {
            // What a second list repeats is not said again.
            let new: Vec<Compiled> = more.into_iter().filter(|flag| !flags.contains(flag)).collect();
            flags.extend(new);
        }
    }
    all
}
