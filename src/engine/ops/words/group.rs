//! Which entries of a file make one list: those of a command, or those that a variable gathers.

use super::items::{Item, Notation, Spelling};
use super::outline::Outline;
use super::settle::{Entry, Fate, Law, List, Ptx, Settled};
use super::taken::selected;
use super::undecided::Whole;
use crate::engine::arch::{Code, Gencode};
use crate::engine::ops::gencode::worlds::Presence;
use crate::engine::syntax::words::Word;

/// A list of architectures of a file.
#[derive(Debug, Clone)]
pub struct Group {
    /// Its entries, by their place among the items of the file.
    pub items: Vec<usize>,
    /// The variable, where it has one.
    pub name: Option<String>,
    /// What tells it from other lists of the file that may hold together with it.
    key: (Option<String>, String, usize),
    /// The command that the last entry stands in.
    command: usize,
    /// The block that all of it lies in.
    home: usize,
    /// Whether its first command gives the variable a new value.
    begins: bool,
    /// Whether PyTorch checks it.
    by_torch: bool,
    /// Whether CMake's own function makes flags of it, which stops at what it does not know.
    pub is_selected: bool,
}

/// Puts the items of a file into lists. A command that gives a variable a new value begins another list.
pub fn groups(outline: &Outline, items: &[Item], by_torch: &dyn Fn(&str) -> bool) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let selected = selected(outline);
    for (at, sequence) in outline.sequences.iter().enumerate() {
        let own = items.iter().enumerate().filter(|(_, item)| item.sequence == at).map(|(item, _)| item);
        let own: Vec<usize> = own.collect();
        if own.is_empty() && !sequence.resets {
            continue;
        }
        let command = sequence.command.start;
        let place = sequence.default.as_ref().and_then(|default| default.place);
        // Loops of one variable have nothing to do with each other.
        let own_place = place.or(sequence.scope.as_ref().map(|scope| scope.start));
        let apart = own_place.unwrap_or(if sequence.name.is_some() { 0 } else { command });
        let key = (sequence.name.clone(), sequence.owner.clone(), apart);
        let open = groups.iter_mut().rfind(|group| group.key == key).filter(|group| {
            let goes_on = !sequence.resets && outline.is_within(sequence.block, group.home);
            group.command == command || goes_on
        });
        match open {
            Some(group) => {
                group.items.extend(own);
                group.command = command;
            }
            None => {
                let (name, home, begins) = (sequence.name.clone(), sequence.block, sequence.resets);
                let by_torch = sequence.names().any(by_torch);
                let is_selected = name.as_ref().is_some_and(|name| selected.contains(name));
                groups.push(Group { items: own, name, key, command, home, begins, by_torch, is_selected });
            }
        }
    }
    groups.retain(|group| group.items.iter().any(|at| !items[*at].parts.is_empty()));
    groups
}

/// Settles all lists of a file; `None` for one of which nothing would be left.
pub fn settle(groups: &[Group], outline: &Outline, items: &[Item], law: &Law<'_>) -> Vec<Option<Settled>> {
    let blocks: Vec<Presence> = outline.blocks.iter().map(|block| block.presence.clone()).collect();
    let lists: Vec<List<'_>> = groups.iter().map(|group| group.list(outline, items, &blocks)).collect();
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|at| !blocks[groups[*at].home].every_toolkit());
    let mut settled: Vec<Option<Option<Settled>>> = vec![None; groups.len()];
    for at in order {
        // What the variable held before it gets a new value does not count.
        let is_beside = |other: &usize| {
            let is_lost = groups[at].begins && *other < at;
            let other = &groups[*other];
            other.key == groups[at].key && other.home != groups[at].home && !is_lost
        };
        let others: Vec<usize> = (0..groups.len()).filter(is_beside).collect();
        let elsewhere = |code: Code| {
            let given = others.iter().map(|other| {
                given(&lists[*other], settled[*other].as_ref().and_then(Option::as_ref), code, law)
            });
            given.fold(law.worlds.nowhere(), |all, presence| all.or(&presence))
        };
        let one = lists[at].settle(law, &elsewhere).map(|one| lists[at].unexchanged(one, outline));
        settled[at] = Some(one);
    }
    let mut settled: Vec<Option<Settled>> = settled.into_iter().map(Option::flatten).collect();
    let whole = Whole { groups, outline, items, settled: &settled, law };
    let emptied: Vec<usize> = (0..groups.len()).filter(|at| whole.empties(*at)).collect();
    emptied.into_iter().for_each(|at| settled[at] = None);
    let whole = Whole { groups, outline, items, settled: &settled, law };
    let told: Vec<Vec<String>> = (0..groups.len()).map(|at| whole.told(at)).collect();
    for (one, told) in settled.iter_mut().zip(told) {
        one.iter_mut().for_each(|one| one.reported.extend_from_slice(&told));
    }
    settled
}

impl List<'_> {
    /// The settled list; as it was where it would be exchanged under a condition that may choose an architecture.
    fn unexchanged(&self, settled: Settled, outline: &Outline) -> Settled {
        let chosen =
            outline.blocks.iter().enumerate().filter_map(|(at, block)| Some((at, block.choice.as_ref()?)));
        let mut exchanged = chosen.filter_map(|(block, choice)| {
            let is_within = |entry: usize| outline.is_within(self.entries[entry].block, block);
            let entries = (0..self.entries.len()).filter(|entry| is_within(*entry));
            let before = entries.clone().flat_map(|entry| self.entries[entry].parts.iter());
            let kept = entries.flat_map(|entry| match &settled.fates[entry] {
                Fate::Stays => self.entries[entry].parts.as_slice(),
                Fate::Becomes(parts) => parts,
                Fate::Goes => &[],
            });
            let added = settled.additions.iter().filter(|one| is_within(one.neighbour));
            let after = kept.chain(added.flat_map(|one| &one.parts));
            choice.exchanged(&codes(before), &codes(after))
        });
        match exchanged.next() {
            Some(advice) => Settled {
                fates: vec![Fate::Stays; self.entries.len()],
                reported: vec![advice],
                ..Settled::default()
            },
            None => settled,
        }
    }
}

impl Group {
    /// Whether both are lists of one name, or flags of commands.
    pub fn is_like(&self, other: &Group) -> bool {
        self.name == other.name && self.key.1 == other.key.1
    }

    /// What the list gives when it is settled.
    pub fn afterwards(&self, settled: Option<&Settled>, items: &[Item]) -> Vec<Code> {
        let kept = self.items.iter().enumerate().flat_map(|(at, item)| {
            match settled.and_then(|one| one.fates.get(at)) {
                Some(Fate::Goes) => Vec::new(),
                Some(Fate::Becomes(parts)) => codes(parts.iter()),
                Some(Fate::Stays) | None => codes(items[*item].parts.iter()),
            }
        });
        let added = settled.into_iter().flat_map(|one| &one.additions);
        kept.chain(added.flat_map(|one| codes(one.parts.iter()))).collect()
    }
}

fn codes<'a>(parts: impl Iterator<Item = &'a Gencode>) -> Vec<Code> {
    parts.flat_map(|part| part.codes.iter().copied()).collect()
}

/// Where a list certainly gives a result, settled or not.
fn given(list: &List<'_>, settled: Option<&Settled>, code: Code, law: &Law<'_>) -> Presence {
    let serves = |parts: &[Gencode]| parts.iter().any(|part| part.codes.iter().any(|own| own.serves(code)));
    let kept =
        list.entries.iter().enumerate().filter(|(at, entry)| match settled.map(|one| &one.fates[*at]) {
            Some(Fate::Goes) => false,
            Some(Fate::Becomes(parts)) => serves(parts),
            Some(Fate::Stays) | None => serves(&entry.parts),
        });
    let added = settled.into_iter().flat_map(|one| &one.additions).filter(|one| serves(&one.parts));
    let kept = kept.map(|(_, entry)| list.blocks[entry.block].clone());
    let reached = kept.chain(added.map(|one| list.reach(one, law)));
    reached.fold(law.worlds.nowhere(), |all, presence| all.or(&presence.certain()))
}

impl Group {
    /// The list that the law is settled for.
    pub fn list<'a>(&'a self, outline: &Outline, items: &[Item], blocks: &'a [Presence]) -> List<'a> {
        let own = || self.items.iter().map(|at| &items[*at]);
        let entry =
            |item: &Item| Entry { parts: item.parts.clone(), block: outline.sequences[item.sequence].block };
        let first = own().next().map(|item| &item.spelling).filter(|_| self.items.len() == 1);
        let (is_flag, is_one) =
            (matches!(first, Some(Spelling::Arch(_))), matches!(first, Some(Spelling::Value(..))));
        let single = is_flag || is_one;
        let ptx = if single { Ptx::Implied } else { ptx(own(), outline.is_cmake) };
        let guards = self.guards(outline, items);
        let (entries, home, by_torch) = (own().map(entry).collect(), self.home, self.by_torch);
        let is_value = own().any(|item| outline.sequences[item.sequence].resets);
        let named_for = self.name.as_deref().filter(|name| is_named_for(name, own()));
        let is_code = |word: &Word| word.text.starts_with("-code") || word.text.starts_with("--gpu-code");
        let is_paired = own().any(|item| outline.sequences[item.sequence].words.iter().any(is_code));
        let is_selected = self.is_selected;
        List {
            entries,
            blocks,
            parents: outline.blocks.iter().map(|block| block.parent).collect(),
            home,
            guards,
            ptx,
            single,
            is_one,
            is_paired,
            by_torch,
            is_selected,
            is_value,
            named_for,
        }
    }

    /// The blocks whose condition can be written anew, with an entry of the list in a command of its own.
    fn guards(&self, outline: &Outline, items: &[Item]) -> Vec<(usize, usize)> {
        let sole = self.items.iter().map(|at| &items[*at]).filter(|item| outline.is_sole(item));
        let mut blocks: Vec<usize> = sole.map(|item| outline.sequences[item.sequence].block).collect();
        blocks.dedup();
        let guarded = blocks.into_iter().filter(|block| outline.blocks[*block].guard.is_some());
        guarded.map(|block| (block, outline.blocks[block].parent)).collect()
    }
}

/// Whether a name ends in the number of the one architecture that all items are for: `SM_60`, `GENCODE_FLAGS_SM60`.
fn is_named_for<'a>(name: &str, items: impl Iterator<Item = &'a Item>) -> bool {
    let digits = name.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let start = digits.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let numbers =
        items.flat_map(|item| &item.parts).flat_map(|part| &part.codes).map(|code| code.arch().number);
    let mut numbers: Vec<u32> = numbers.map(u32::from).collect();
    numbers.dedup();
    matches!(numbers.as_slice(), [one] if digits[start..].parse() == Ok(*one))
}

/// How a list says PTX, judged by how it is written.
fn ptx<'a>(mut items: impl Iterator<Item = &'a Item>, is_cmake: bool) -> Ptx {
    let notations: Vec<Notation> = items
        .by_ref()
        .filter_map(|item| match item.spelling {
            Spelling::Element(notation) => Some(notation),
            _ => None,
        })
        .collect();
    let has = |notation| notations.contains(&notation);
    match () {
        () if has(Notation::Dotted) || has(Notation::Name) => Ptx::Joined,
        () if has(Notation::Suffixed) || has(Notation::Prefixed) || notations.is_empty() => Ptx::Apart,
        () if is_cmake => Ptx::Implied,
        () => Ptx::Unsaid,
    }
}
