//! The effect of a plan: what each toolkit would compile, before and after.

use super::Plan;
use crate::engine::ops::Op;
use crate::engine::ops::gencode::Compiled;
use crate::engine::patchset::bind::Bound;
use crate::engine::patchset::select::is_for;
use crate::engine::source::Sources;
use crate::engine::toolkit::Toolkit;

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
    /// A row a toolkit; none where the source names no architecture in a way that the patch set knows.
    pub fn effect(&self, bound: &Bound<'_>) -> Vec<EffectRow> {
        let rows = shown(bound).into_iter().map(|toolkit| EffectRow {
            toolkit,
            before: compiled(bound, &self.before, toolkit),
            after: compiled(bound, &self.after, toolkit),
        });
        let rows: Vec<EffectRow> = rows.collect();
        if rows.iter().all(|row| row.before.is_empty() && row.after.is_empty()) { Vec::new() } else { rows }
    }
}

fn compiled(bound: &Bound<'_>, sources: &Sources, toolkit: Toolkit) -> Vec<Compiled> {
    let ops = bound.upstream.patches.iter().flat_map(|patch| &patch.ops);
    let gencodes = ops.filter(|op| is_for(&op.tags, &bound.version)).filter_map(|op| match &op.op {
        Op::Gencode(op) => Some(op),
        _ => None,
    });
    gencodes
        .flat_map(|op| op.files.of(sources).map(move |file| (op, file)))
        .filter_map(|(op, (path, _))| {
            let parsed = sources.parsed(path)?.ok()?;
            Some(op.compiled(parsed, toolkit, bound.aim().toolchain))
        })
        .flatten()
        .collect()
}
