//! Lists that are reached only where a condition holds of which the file does not tell whether it does.

use super::group::Group;
use super::items::Item;
use super::outline::Outline;
use super::settle::{Addition, Fate, Law, Settled, Settling};
use crate::engine::arch::{Code, Gencode};
use crate::engine::ops::gencode::worlds::{Presence, Truth, World};
use crate::engine::toolkit::Toolkit;

impl Law<'_> {
    /// Whether a given toolkit gets there.
    pub(super) fn reaches(&self, presence: &Presence, toolkit: Toolkit) -> bool {
        self.truth(presence, toolkit) != Truth::No
    }

    fn truth(&self, presence: &Presence, toolkit: Toolkit) -> Truth {
        self.worlds.position(World::Cuda(toolkit)).map_or(Truth::No, |at| presence.at(at))
    }
}

impl Settling<'_> {
    /// Where no block of the list is reached for certain, one that may be reached may not be: each of them gets what is
    /// wanted.
    pub(super) fn want_in_each(&mut self, code: Code) {
        let list = self.list;
        // A condition that is written anew for each toolkit is understood.
        if !list.guards.is_empty() {
            return;
        }
        let given = |block: usize, truth: Truth| {
            self.law.cuda.iter().any(|cuda| self.law.truth(&list.blocks[block], *cuda) == truth)
        };
        let mut blocks: Vec<usize> = list.entries.iter().map(|entry| entry.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let is_guarded = |one: &Addition| one.since.is_some() && self.serves(&one.parts, code);
        if blocks.iter().any(|block| given(*block, Truth::Yes))
            || self.settled.additions.iter().any(is_guarded)
        {
            return;
        }
        let open: Vec<usize> = blocks.into_iter().filter(|block| given(*block, Truth::Maybe)).collect();
        for block in open {
            let around = |other: usize| {
                std::iter::successors(Some(block), |at| (*at != 0).then(|| list.parents[*at]))
                    .any(|at| at == other)
            };
            let kept = self.kept.iter().zip(&list.entries);
            let mut there = kept.filter(|(_, entry)| around(entry.block)).map(|(parts, _)| parts.as_slice());
            let added = self.settled.additions.iter().filter(|one| around(list.entries[one.neighbour].block));
            let mut added = added.map(|one| one.parts.as_slice());
            if !there.any(|parts| self.serves(parts, code)) && !added.any(|parts| self.serves(parts, code)) {
                self.add_to(code, block);
            }
        }
    }
}

/// The condition that decides whether a result is given by the lists of one name, settled or not; nothing where it is
/// given for certain, or not at all.
pub fn decided_by(
    group: &Group,
    code: Code,
    (groups, outline, items): (&[Group], &Outline, &[Item]),
    settled: &[Option<Settled>],
    law: &Law<'_>,
) -> Option<String> {
    let serves = |parts: &[Gencode]| parts.iter().any(|part| part.codes.iter().any(|own| own.serves(code)));
    let block_of = |group: &Group, at: usize| outline.sequences[items[group.items[at]].sequence].block;
    let giving = |at: usize| {
        let (group, settled) = (&groups[at], settled.get(at).and_then(Option::as_ref));
        let kept =
            group.items.iter().enumerate().filter(|(at, item)| match settled.map(|one| &one.fates[*at]) {
                Some(Fate::Goes) => false,
                Some(Fate::Becomes(parts)) => serves(parts),
                Some(Fate::Stays) | None => serves(&items[**item].parts),
            });
        let added = settled.into_iter().flat_map(|one| &one.additions).filter(|one| serves(&one.parts));
        let blocks =
            kept.map(|(at, _)| block_of(group, at)).chain(added.map(|one| block_of(group, one.neighbour)));
        blocks.collect::<Vec<usize>>()
    };
    let is_dead = |block: usize| outline.blocks[block].presence.is_dead(law.worlds, law.cuda);
    let alike = (0..groups.len()).filter(|at| groups[*at].is_like(group));
    let blocks: Vec<usize> = alike.flat_map(giving).filter(|block| !is_dead(*block)).collect();
    if outline.is_certain(0, &|block| blocks.contains(&block), &is_dead) {
        return None;
    }
    let own = (0..groups.len()).find(|at| std::ptr::eq(&groups[*at], group)).map(giving)?;
    let choice = own.first().and_then(|block| outline.choices(*block).next())?;
    Some(format!("`{}` (line {})", choice.condition, choice.line))
}
