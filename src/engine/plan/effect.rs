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
        let toolkits = shown(bound);
        let before = compiled(bound, &self.before, &toolkits);
        let after = if self.is_empty() { before.clone() } else { compiled(bound, &self.after, &toolkits) };
        let pairs = toolkits.into_iter().zip(before.into_iter().zip(after));
        let rows: Vec<EffectRow> =
            pairs.map(|(toolkit, (before, after))| EffectRow { toolkit, before, after }).collect();
        if rows.iter().all(|row| row.before.is_empty() && row.after.is_empty()) { Vec::new() } else { rows }
    }
}

/// The flags of each toolkit, of all build files together.
fn compiled(bound: &Bound<'_>, sources: &Sources, toolkits: &[Toolkit]) -> Vec<Vec<Compiled>> {
    let ops = bound.upstream.patches.iter().flat_map(|patch| &patch.ops);
    let gencodes = ops.filter(|op| is_for(&op.tags, &bound.version)).filter_map(|op| match &op.op {
        Op::Gencode(op) => Some(op),
        _ => None,
    });
    let files = gencodes.flat_map(|op| op.files.of(sources).map(move |(path, _)| (op, path)));
    let mut all = vec![Vec::new(); toolkits.len()];
    for (op, path) in files {
        let Some(Ok(parsed)) = sources.parsed(path) else { continue };
        let one = op.compiled(parsed, toolkits, bound.aim().toolchain);
        all.iter_mut().zip(one).for_each(|(flags, more)| flags.extend(more));
    }
    all
}
