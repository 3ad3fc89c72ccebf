//! Where entries go: under an existing guard for the same toolkits, else in ascending order.

use super::GencodeError;
use super::guard::Bounds;
use super::settle::{Law, Settled, labels, span};
use super::tree::{Block, Entry, Fate, Group, Header, Item, Origin, Part};
use super::worlds::{Presence, World};
use crate::engine::arch::{Arch, Code, Gencode};

/// An entry that needs a place.
#[derive(Debug, Clone)]
pub struct Placement {
    /// What it compiles.
    pub gencode: Gencode,
    /// The lines that it had, where they are worth keeping.
    pub origin: Option<Origin>,
    /// What becomes of those lines.
    pub fate: Fate,
    /// The line that it stood in; 0 for a new one.
    pub line: usize,
}

impl Placement {
    /// What is done to it, in words.
    pub fn moved(&self) -> String {
        format!("moves {} from line {} under its guard", labels(self.gencode.codes.clone()), self.line)
    }

    fn entry(self) -> Entry {
        Entry { gencode: self.gencode, origin: self.origin, defect: None, fate: self.fate }
    }
}

/// Puts one entry where a careful upstream developer would.
pub fn place(root: &mut Block, placement: Placement, law: &Law<'_>) -> Result<(), GencodeError> {
    let needed = law.worlds.takes(law.catalogue, &placement.gencode);
    let home = home(root, &needed, law).map(|block| block.id).ok_or(GencodeError::NoPlace)?;
    let block = root.find_mut(home).ok_or(GencodeError::NoPlace)?;
    let order = placement.gencode.order();
    let outer = law.worlds.everywhere();
    let outer = if block.presence.reaches_hip() { outer } else { outer.without_hip() };
    if block.presence.only_toolkits_of(&needed) {
        insert(block, (0, order), Item::Entry(placement.entry()));
    } else if let Some(guarded) = guarded_body(block, &needed, &outer) {
        insert(guarded, (0, order), Item::Entry(placement.entry()));
    } else {
        let condition = condition(law.bounds(&placement.gencode), law)?;
        let first = needed.first();
        let group = guard(
            condition,
            needed.or(&law.worlds.hip_unknown()),
            vec![Item::Entry(placement.entry())],
            block,
            law,
        );
        insert(block, (first, order), Item::Group(group));
    }
    Ok(())
}

/// A block that can be home.
struct Candidate<'a> {
    block: &'a Block,
    /// Whether hipcc does not reach it.
    apart: bool,
    /// Whether every toolkit reaches it alike.
    alike: bool,
    /// How many entries that stay stand in or below it.
    entries: usize,
    /// How many blocks are around it.
    depth: usize,
}

/// The innermost block that all entries stand in or below and that every toolkit reaches alike; never a dead one, and
/// one that hipcc does not reach where the file tells HIP apart.
pub fn home<'a>(root: &'a Block, needed: &Presence, law: &Law<'_>) -> Option<&'a Block> {
    let fits = |one: &Candidate<'_>| needed.beyond(&one.block.presence).is_empty();
    let rank = |one: &Candidate<'_>| (law.hip && one.apart, one.alike, one.entries, one.depth);
    let best = candidates(root).into_iter().filter(fits).max_by_key(|one| rank(one));
    best.map(|one| one.block)
}

/// The blocks that entries stand in or below, without those that nothing reaches or that share a line; entries that go
/// count too, for they show where flags belong.
fn candidates(root: &Block) -> Vec<Candidate<'_>> {
    let mut found = Vec::new();
    collect(root, true, 0, &mut found);
    found
}

fn collect<'a>(block: &'a Block, alike: bool, depth: usize, found: &mut Vec<Candidate<'a>>) {
    let entries = live_entries(block).len();
    if block.presence.no_toolkit() || block.inline || entries == 0 {
        return;
    }
    let apart = !block.presence.reaches_hip();
    found.push(Candidate { block, apart, alike, entries, depth });
    for item in &block.items {
        let Item::Group(group) = item else { continue };
        for part in &group.parts {
            collect(&part.body, alike && part.condition.is_alike(), depth + 1, found);
        }
    }
}

fn live_entries(block: &Block) -> Vec<(&Entry, &Presence)> {
    block.entries().into_iter().filter(|(_, reached)| !reached.no_toolkit()).collect()
}

/// Where the block is reached that holds most of the entries and that hipcc does not reach, if there is one: the file
/// tells HIP apart. What stands elsewhere must stand beside that block, not in another branch nor where more builds get.
pub fn apart_from_hip(root: &Block) -> Option<Presence> {
    let stays = |entry: &Entry| entry.fate != Fate::Goes;
    let some_stay = live_entries(root).iter().any(|(entry, _)| stays(entry));
    let counts = |entry: &Entry| !some_stay || stays(entry);
    let count = |block: &Block| live_entries(block).iter().filter(|(entry, _)| counts(entry)).count();
    let apart = candidates(root).into_iter().filter(|one| one.apart && one.alike);
    let best = apart.max_by_key(|one| (count(one.block), std::cmp::Reverse(one.depth)))?;
    if 2 * count(best.block) <= count(root) {
        return None;
    }
    let around: Vec<usize> = root.around(best.block.id).iter().map(|block| block.context).collect();
    let mut beside = true;
    root.visit_blocks(&mut |entry, block| {
        let counts = counts(entry) && !block.presence.no_toolkit();
        let as_uncertain =
            around.contains(&block.context) && block.presence.is_covered_by(&best.block.presence);
        beside &= !counts || !block.presence.reaches_hip() || as_uncertain;
    });
    beside.then(|| best.block.presence.clone())
}

/// Makes each branch a list of its own where hipcc is told apart only by branches that something unknown chooses
/// among: exactly one of them is taken, and each must compile what is wanted.
pub fn part_alternatives(root: &mut Block) {
    let all = live_entries(root).len();
    part_most(root, all);
}

/// Makes each branch a list of its own that something unknown chooses, where no entry is reached for certain with a toolkit
/// in question: what is wanted must not come where no architecture was named.
pub fn part_unknown(block: &mut Block, needed: &Presence) {
    let nowhere = needed.and(&needed.negated());
    let is_sure = !block.surely(&|entry| entry.defect.is_none(), &nowhere).and(needed).no_toolkit();
    if is_sure || live_entries(block).is_empty() {
        return;
    }
    let context = block.context;
    let groups = block.items.iter_mut().filter_map(|item| match item {
        Item::Group(group) => Some(group),
        Item::Text(_) | Item::Entry(_) => None,
    });
    for body in groups.flat_map(|group| &mut group.parts).map(|part| &mut part.body) {
        body.own_list |= body.context != context && !body.inline && !live_entries(body).is_empty();
        part_unknown(body, needed);
    }
}

fn part_most(block: &mut Block, all: usize) {
    if !block.presence.reaches_hip() {
        return;
    }
    for item in &mut block.items {
        let Item::Group(group) = item else { continue };
        let is_choice = |part: &Part| {
            let apart = !part.body.inline && !part.body.presence.reaches_hip();
            apart && !part.condition.is_certain() && !live_entries(&part.body).is_empty()
        };
        let choices: Vec<&mut Part> = group.parts.iter_mut().filter(|part| is_choice(part)).collect();
        let within: usize = choices.iter().map(|part| live_entries(&part.body).len()).sum();
        if group.conditional && choices.len() > 1 && 2 * within > all {
            return choices.into_iter().for_each(|part| part.body.own_list = true);
        }
        group.parts.iter_mut().for_each(|part| part_most(&mut part.body, all));
    }
}

/// The body of a guard that lets exactly these toolkits through, a guard within a guard too. `outer` is where the
/// block itself is reached; where that is a HIP build too, what stands apart from HIP alone is another place.
fn guarded_body<'a>(block: &'a mut Block, needed: &Presence, outer: &Presence) -> Option<&'a mut Block> {
    block.items.iter_mut().find_map(|item| match item {
        Item::Group(group) if group.conditional => group.parts.iter_mut().find_map(|part| {
            let reached = outer.and(&part.condition);
            if outer.reaches_hip() && !reached.reaches_hip() && part.condition.is_alike() {
                return None;
            }
            if reached.same_toolkits(needed) && !part.body.inline {
                Some(&mut part.body)
            } else {
                guarded_body(&mut part.body, needed, &reached)
            }
        }),
        _ => None,
    })
}

/// The first toolkit and the architecture that a place in ascending order goes by.
type Key = (usize, (Arch, bool));

fn key(item: &Item) -> Option<Key> {
    match item {
        Item::Text(_) => None,
        Item::Entry(entry) => Some((0, entry.gencode.order())),
        Item::Group(group) => {
            let first = group.guards().map(|part| part.condition.first());
            let entries = group.parts.iter().flat_map(|part| part.body.entries());
            Some((first.min()?, entries.map(|(entry, _)| entry.gencode.order()).max()?))
        }
    }
}

/// After the last item that is not greater; before the first one where all are; where none can be compared, behind
/// the last one that holds entries.
fn insert(block: &mut Block, at: Key, item: Item) {
    let keys: Vec<Option<Key>> = block.items.iter().map(key).collect();
    let after = keys.iter().rposition(|key| key.is_some_and(|key| key <= at)).map(|index| index + 1);
    let before = keys.iter().position(Option::is_some);
    let behind = block.items.iter().rposition(|item| !matches!(item, Item::Text(_))).map(|index| index + 1);
    let index = after.or(before).or(behind).unwrap_or(block.items.len());
    block.items.insert(index, item);
}

fn guard(condition: String, presence: Presence, items: Vec<Item>, block: &Block, law: &Law<'_>) -> Group {
    let indent = [block.indent.as_slice(), step(block).unwrap_or(law.step)].concat();
    let reached = block.presence.and(&presence);
    let (id, context) = (usize::MAX, block.context);
    let (inline, own_list, choice) = (false, false, None);
    let body = Block { id, indent, presence: reached, context, inline, own_list, choice, items };
    Group {
        conditional: true,
        rest: presence.negated(),
        parts: vec![Part { header: Header::Written(condition), condition: presence, body }],
    }
}

/// One step of indentation, as the guards of this block have it.
fn step(block: &Block) -> Option<&[u8]> {
    block.items.iter().find_map(|item| match item {
        Item::Group(group) => {
            let bodies = group.parts.iter().map(|part| &part.body).filter(|body| !body.inline);
            let mut steps = bodies.filter_map(|body| body.indent.strip_prefix(block.indent.as_slice()));
            steps.find(|step| !step.is_empty())
        }
        Item::Text(_) | Item::Entry(_) => None,
    })
}

/// The condition that holds between two toolkits, as this source writes it.
fn condition(bounds: Bounds, law: &Law<'_>) -> Result<String, GencodeError> {
    let floor = law.worlds.iter().next();
    let from = bounds.first.filter(|first| matches!(floor, Some(World::Cuda(floor)) if *first > floor));
    let from = from.map(|_| law.op.from.as_ref().ok_or(GencodeError::NoGuardForm { key: "from" }));
    let until = bounds.last.map(|_| law.op.until.as_ref().ok_or(GencodeError::NoGuardForm { key: "until" }));
    let parts = [from.transpose()?, until.transpose()?];
    let written: Result<Vec<String>, _> =
        parts.into_iter().flatten().map(|form| form.write(bounds)).collect();
    Ok(written?.join(" and "))
}

/// Gives each contiguous run of entries that outlive their toolkits a guard of its own; nothing is reordered.
pub fn wrap(root: &mut Block, law: &Law<'_>, settled: &mut Settled) -> Result<(), GencodeError> {
    let mut limited: Vec<(Bounds, Code)> = Vec::new();
    wrap_block(root, law, &mut limited)?;
    limited.sort_by_key(|(bounds, code)| (bounds.last, *code));
    while let Some((bounds, _)) = limited.first().copied() {
        let (these, others) = limited.into_iter().partition(|(other, _)| *other == bounds);
        let these: Vec<(Bounds, Code)> = these;
        let codes = these.into_iter().map(|(_, code)| code).collect();
        let bounds = Bounds { first: None, ..bounds };
        settled.how.push(format!("limits {} to toolkits{}", labels(codes), span(bounds, law.worlds)));
        limited = others;
    }
    Ok(())
}

fn wrap_block(
    block: &mut Block,
    law: &Law<'_>,
    limited: &mut Vec<(Bounds, Code)>,
) -> Result<(), GencodeError> {
    let items = std::mem::take(&mut block.items);
    let mut run = Run::default();
    for mut item in items {
        match outlived(&item, &block.presence, law) {
            Some(_) if matches!(&item, Item::Entry(entry) if entry.is_frozen()) => {
                let line = if let Item::Entry(entry) = &item { entry.line() } else { 0 };
                return Err(GencodeError::SharedLine { line });
            }
            Some(bounds) => {
                if run.bounds.is_some_and(|run| run.last != bounds.last) {
                    run.close(block, law)?;
                }
                if let Item::Entry(entry) = &item {
                    limited.extend(entry.settled().codes.iter().map(|code| (bounds, *code)));
                }
                run.take(bounds, item);
            }
            None if run.bounds.is_some() && matches!(&item, Item::Text(lines) if !lines.statement) => {
                run.trailing.push(item);
            }
            None => {
                run.close(block, law)?;
                if let Item::Group(group) = &mut item {
                    group.parts.iter_mut().try_for_each(|part| wrap_block(&mut part.body, law, limited))?;
                }
                block.items.push(item);
                join_neighbours(block);
            }
        }
    }
    run.close(block, law)
}

/// Entries that follow each other and end at the same toolkit.
#[derive(Default)]
struct Run {
    bounds: Option<Bounds>,
    items: Vec<Item>,
    /// Comments and blank lines that belong to the run only if it goes on.
    trailing: Vec<Item>,
}

impl Run {
    fn take(&mut self, bounds: Bounds, item: Item) {
        self.bounds = Some(bounds);
        self.items.append(&mut self.trailing);
        self.items.push(item);
    }

    fn close(&mut self, block: &mut Block, law: &Law<'_>) -> Result<(), GencodeError> {
        let Run { bounds, items, trailing } = std::mem::take(self);
        if let Some(bounds) = bounds {
            let until = Bounds { first: None, ..bounds };
            let condition = condition(until, law)?;
            let presence = law.worlds.presence(|world| match world {
                World::Cuda(toolkit) => {
                    super::worlds::Truth::of(bounds.last.is_none_or(|last| toolkit <= last))
                }
                World::Hip => super::worlds::Truth::Maybe,
            });
            let group = guard(condition, presence, items, block, law);
            block.items.push(Item::Group(group));
            join_neighbours(block);
        }
        block.items.extend(trailing);
        Ok(())
    }
}

/// Makes one guard of the last two items, where both are guards for the same toolkits and one of them is new.
fn join_neighbours(block: &mut Block) {
    let [.., Item::Group(one), Item::Group(two)] = block.items.as_slice() else { return };
    let ([first], [second]) = (one.parts.as_slice(), two.parts.as_slice()) else { return };
    let same = one.conditional && two.conditional && first.condition.same_toolkits(&second.condition);
    let news = [first, second].map(|part| matches!(part.header, Header::Written(_)));
    if !same || first.body.inline || second.body.inline || news == [false, false] {
        return;
    }
    let (Some(Item::Group(mut two)), Some(Item::Group(one))) = (block.items.pop(), block.items.last_mut())
    else {
        return;
    };
    let (first, second) = (&mut one.parts[0], &mut two.parts[0]);
    first.body.items.append(&mut second.body.items);
    if news == [true, false] {
        second.body.items = std::mem::take(&mut first.body.items);
        std::mem::swap(first, second);
    }
}

/// The bounds of an entry that a toolkit refuses which is too new for it, where that concerns us.
fn outlived(item: &Item, presence: &Presence, law: &Law<'_>) -> Option<Bounds> {
    let Item::Entry(entry) = item else { return None };
    if !entry.counts() || presence.nowhere() {
        return None;
    }
    let gencode = entry.settled();
    let bounds = law.bounds(gencode);
    let last = bounds.last?;
    let beyond = presence.beyond(&law.worlds.takes(law.catalogue, gencode));
    let newer =
        |at: &usize| matches!(law.worlds.iter().nth(*at), Some(World::Cuda(toolkit)) if toolkit > last);
    let concerns = law.concerns(gencode, &beyond);
    (concerns && beyond.iter().any(newer)).then_some(bounds)
}
