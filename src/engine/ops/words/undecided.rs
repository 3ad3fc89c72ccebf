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

/// The lists of a file with what becomes of each.
pub struct Whole<'a> {
    pub groups: &'a [Group],
    pub outline: &'a Outline,
    pub items: &'a [Item],
    pub settled: &'a [Option<Settled>],
    pub law: &'a Law<'a>,
}

impl Whole<'_> {
    /// The conditions that decide whether what a list adds is given.
    pub fn told(&self, at: usize) -> Vec<String> {
        let told = |code: Code| {
            let (condition, label) = (self.decided_by(at, code)?, code.label());
            Some(format!("{condition} decides whether {label} is given: see to it where it does not hold"))
        };
        let new = |code: &Code| self.settled[at].as_ref().is_some_and(|one| one.added.contains(code));
        self.law.wish.wanted().filter(new).filter_map(told).collect()
    }

    /// The condition that decides whether a result is given by the lists of the name that one has, settled or not; nothing
    /// where it is given for certain, or not at all.
    fn decided_by(&self, at: usize, code: Code) -> Option<String> {
        let serves =
            |parts: &[Gencode]| parts.iter().any(|part| part.codes.iter().any(|own| own.serves(code)));
        let alike = (0..self.groups.len()).filter(|other| self.groups[*other].is_like(&self.groups[at]));
        let blocks = alike.flat_map(|other| self.blocks(other, &serves));
        let blocks: Vec<usize> = blocks.filter(|block| !self.is_dead(*block)).collect();
        if self.outline.is_certain(0, &|block| blocks.contains(&block), &|block| self.is_dead(block)) {
            return None;
        }
        let own = self.blocks(at, &serves);
        let choice = own.first().and_then(|block| self.outline.choices(*block).next())?;
        Some(format!("`{}` (line {})", choice.condition, choice.line))
    }

    /// Whether a list loses what it gave under a condition, and nothing that stays is there whenever that was.
    pub fn empties(&self, at: usize) -> bool {
        let group = &self.groups[at];
        let Some(own) = self.settled[at].as_ref().filter(|_| !self.law.cuda.is_empty()) else { return false };
        let is_alike =
            |other: &usize| *other == at || (group.name.is_some() && self.groups[*other].is_like(group));
        let alike = (0..self.groups.len()).filter(is_alike);
        let stays: Vec<usize> =
            alike.flat_map(|other| self.blocks(other, &|parts| !parts.is_empty())).collect();
        let is_left = |block: usize| {
            let around =
                std::iter::successors(Some(block), |at| (*at != 0).then(|| self.outline.blocks[*at].parent));
            around.into_iter().any(|block| {
                self.outline.is_certain(block, &|at| stays.contains(&at), &|block| self.is_dead(block))
            })
        };
        let gone = (0..own.fates.len()).filter(|item| own.fates[*item] == Fate::Goes);
        let mut gone = gone.map(|item| self.block_of(group, item)).filter(|block| !self.is_dead(*block));
        gone.any(|block| !is_left(block))
    }

    /// The blocks in which a list afterwards has an entry of which this holds.
    fn blocks(&self, at: usize, holds: &dyn Fn(&[Gencode]) -> bool) -> Vec<usize> {
        let (group, settled) = (&self.groups[at], self.settled[at].as_ref());
        let kept =
            group.items.iter().enumerate().filter(|(at, item)| match settled.map(|one| &one.fates[*at]) {
                Some(Fate::Goes) => false,
                Some(Fate::Becomes(parts)) => holds(parts),
                Some(Fate::Stays) | None => holds(&self.items[**item].parts),
            });
        let added = settled.into_iter().flat_map(|one| &one.additions).filter(|one| holds(&one.parts));
        let entries = kept.map(|(at, _)| at).chain(added.map(|one| one.neighbour));
        entries.map(|at| self.block_of(group, at)).collect()
    }

    fn block_of(&self, group: &Group, at: usize) -> usize {
        self.outline.sequences[self.items[group.items[at]].sequence].block
    }

    fn is_dead(&self, block: usize) -> bool {
        self.outline.blocks[block].presence.is_dead(self.law.worlds, self.law.cuda)
    }
}
