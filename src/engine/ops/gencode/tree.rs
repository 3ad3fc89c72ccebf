//! A build file as blocks of entries and guards, the form in which the arch law is settled.
//!
//! Every item is whole lines of the file, so that what nothing touches comes out byte for byte.

use std::collections::BTreeMap;
use std::ops::Range;

use super::worlds::Presence;
use crate::engine::arch::{Code, Gencode};
use crate::engine::ops::choice::Choice;

/// Lines that belong together.
#[derive(Debug, Clone)]
pub struct Block {
    /// Numbers the blocks of a file.
    pub id: usize,
    /// What its lines begin with.
    pub indent: Vec<u8>,
    /// In which worlds it is reached.
    pub presence: Presence,
    /// The innermost block around it, or itself, that something else than the toolkit and HIP decides about.
    pub context: usize,
    /// Whether it shares a line with its header, so that nothing can be put into it.
    pub inline: bool,
    /// Whether it is the body of a function that begins a list of its own.
    pub own_list: bool,
    /// The condition before it that may choose an architecture.
    pub choice: Option<Choice>,
    /// In the order of the file.
    pub items: Vec<Item>,
}

/// A piece of a block.
#[derive(Debug, Clone)]
pub enum Item {
    /// Lines that are none of our business.
    Text(Lines),
    /// One gencode flag.
    Entry(Entry),
    /// A statement with blocks that hold entries.
    Group(Group),
}

/// Whole lines of the file, and the indentation of the block that they were read in.
#[derive(Debug, Clone)]
pub struct Lines {
    /// Their bytes.
    pub range: Range<usize>,
    /// The indentation that they were written for.
    pub indent: Vec<u8>,
    /// Whether a statement is among them, not only comments and blank lines.
    pub statement: bool,
}

/// One gencode flag.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What it compiles.
    pub gencode: Gencode,
    /// Where it stood in the file; `None`: it is new.
    pub origin: Option<Origin>,
    /// What is wrong with how it is written.
    pub defect: Option<Defect>,
    /// What becomes of it.
    pub fate: Fate,
}

/// Where an entry stood in the file.
#[derive(Debug, Clone)]
pub struct Origin {
    /// Its lines; empty where it shares its lines with other code and cannot be moved.
    pub lines: Lines,
    /// Its code alone.
    pub span: Range<usize>,
    /// The text of its gencode value.
    pub value: Range<usize>,
    /// Its line, from 1.
    pub line: usize,
}

/// A half-done hand edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// The value stands there without `-gencode` before it.
    ValueAlone,
    /// Flag and value are one string, which nvcc takes for one unknown option.
    OneString,
}

/// What becomes of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It stays where it is.
    Stays,
    /// It goes.
    Goes,
    /// It stays with another value.
    Becomes(Gencode),
}

/// A statement with blocks: an `if` with its clauses, a loop, a function.
#[derive(Debug, Clone)]
pub struct Group {
    /// Whether it is an `if`, which may go when nothing is left in it.
    pub conditional: bool,
    /// Where no clause of an `if` is entered.
    pub rest: Presence,
    /// In the order of the file.
    pub parts: Vec<Part>,
}

/// One header and its block.
#[derive(Debug, Clone)]
pub struct Part {
    /// The line or lines before the block.
    pub header: Header,
    /// In which worlds the header lets through what reaches the statement.
    pub condition: Presence,
    /// What it guards.
    pub body: Block,
}

/// The lines before a block.
#[derive(Debug, Clone)]
pub enum Header {
    /// As they stand in the file.
    Read(Lines),
    /// A new `if` with this condition.
    Written(String),
}

impl Entry {
    /// Whether nvcc sees it in the settled file, and is right written.
    pub fn counts(&self) -> bool {
        self.defect.is_none() && self.fate != Fate::Goes
    }

    /// What it compiles in the settled file.
    pub fn settled(&self) -> &Gencode {
        match &self.fate {
            Fate::Becomes(gencode) => gencode,
            Fate::Stays | Fate::Goes => &self.gencode,
        }
    }

    /// Whether its lines hold other code too.
    pub fn is_frozen(&self) -> bool {
        self.origin.as_ref().is_some_and(|origin| origin.lines.range.is_empty())
    }

    /// Its line in the file; 0 for a new one.
    pub fn line(&self) -> usize {
        self.origin.as_ref().map_or(0, |origin| origin.line)
    }
}

impl Block {
    /// Calls `visit` for each entry with what reaches it.
    pub fn visit<'a>(&'a self, visit: &mut impl FnMut(&'a Entry, &'a Presence)) {
        for item in &self.items {
            match item {
                Item::Text(_) => {}
                Item::Entry(entry) => visit(entry, &self.presence),
                Item::Group(group) => group.parts.iter().for_each(|part| part.body.visit(visit)),
            }
        }
    }

    /// Calls `visit` for each entry, which it may change.
    pub fn visit_mut(&mut self, visit: &mut impl FnMut(&mut Entry, &Presence)) {
        for item in &mut self.items {
            match item {
                Item::Text(_) => {}
                Item::Entry(entry) => visit(entry, &self.presence),
                Item::Group(group) => group.parts.iter_mut().for_each(|part| part.body.visit_mut(visit)),
            }
        }
    }

    /// Calls `visit` for each entry with the block that it stands in.
    pub fn visit_blocks<'a>(&'a self, visit: &mut impl FnMut(&'a Entry, &'a Block)) {
        for item in &self.items {
            match item {
                Item::Text(_) => {}
                Item::Entry(entry) => visit(entry, self),
                Item::Group(group) => group.parts.iter().for_each(|part| part.body.visit_blocks(visit)),
            }
        }
    }

    /// Where some entry of a kind is reached for certain from here, whatever is not known.
    pub fn surely(&self, kind: &impl Fn(&Entry) -> bool, nowhere: &Presence) -> Presence {
        self.items.iter().fold(nowhere.clone(), |all, item| match item {
            Item::Entry(entry) if kind(entry) => all.or(&nowhere.negated()),
            Item::Text(_) | Item::Entry(_) => all,
            Item::Group(group) => all.or(&group.surely(kind, nowhere)),
        })
    }

    /// The blocks before which a condition may choose, and what their entries compile.
    pub fn chosen(&self) -> BTreeMap<usize, (Choice, Vec<Code>)> {
        let mut chosen = BTreeMap::new();
        if let Some(choice) = self.choice.clone() {
            let entries = self.entries().into_iter().filter(|(entry, _)| entry.counts());
            let codes = entries.flat_map(|(entry, _)| entry.settled().codes.clone()).collect();
            chosen.insert(self.id, (choice, codes));
        }
        for item in &self.items {
            let Item::Group(group) = item else { continue };
            chosen.extend(group.parts.iter().flat_map(|part| part.body.chosen()));
        }
        chosen
    }

    /// All entries with what reaches them.
    pub fn entries(&self) -> Vec<(&Entry, &Presence)> {
        let mut entries = Vec::new();
        self.visit(&mut |entry, presence| entries.push((entry, presence)));
        entries
    }

    /// The block with this number.
    pub fn find_mut(&mut self, id: usize) -> Option<&mut Block> {
        if self.id == id {
            return Some(self);
        }
        self.items.iter_mut().find_map(|item| match item {
            Item::Group(group) => group.parts.iter_mut().find_map(|part| part.body.find_mut(id)),
            Item::Text(_) | Item::Entry(_) => None,
        })
    }

    /// The block with this number and those around it; none where it is not there.
    pub fn around(&self, id: usize) -> Vec<&Block> {
        if self.id == id {
            return vec![self];
        }
        let groups = self
            .items
            .iter()
            .filter_map(|item| if let Item::Group(group) = item { Some(group) } else { None });
        let mut paths = groups.flat_map(|group| &group.parts).map(|part| part.body.around(id));
        match paths.find(|path| !path.is_empty()) {
            Some(path) => [path, vec![self]].concat(),
            None => Vec::new(),
        }
    }

    /// Whether something of it is left in the settled file besides comments and blank lines.
    pub fn has_statement(&self) -> bool {
        self.items.iter().any(|item| match item {
            Item::Text(lines) => lines.statement,
            Item::Entry(entry) => entry.fate != Fate::Goes,
            Item::Group(group) => !group.is_emptied(),
        })
    }

    /// Takes out the outermost blocks within this one that begin lists of their own; their places are kept.
    pub fn take_own_lists(&mut self) -> Vec<Block> {
        let mut taken = Vec::new();
        for item in &mut self.items {
            let Item::Group(group) = item else { continue };
            for part in &mut group.parts {
                if part.body.own_list {
                    let place = Block { items: Vec::new(), ..part.body.clone() };
                    taken.push(std::mem::replace(&mut part.body, place));
                } else {
                    taken.extend(part.body.take_own_lists());
                }
            }
        }
        taken
    }

    /// Puts back a block that was taken out.
    pub fn put_back(&mut self, block: Block) {
        if let Some(place) = self.find_mut(block.id) {
            *place = block;
        }
    }
}

impl Group {
    /// Whether nothing is left of it in the settled file. A function or a loop stays.
    pub fn is_emptied(&self) -> bool {
        self.conditional && !self.parts.iter().any(|part| part.body.has_statement())
    }

    /// Where every way through it reaches an entry of a kind.
    fn surely(&self, kind: &impl Fn(&Entry) -> bool, nowhere: &Presence) -> Presence {
        let bodies = self.parts.iter().map(|part| (part, part.body.surely(kind, nowhere)));
        if !self.conditional {
            let is_run = |part: &Part| part.condition.is_certain();
            let (run, chosen): (Vec<_>, Vec<_>) = bodies.partition(|(part, _)| is_run(part));
            let always = run.into_iter().fold(nowhere.clone(), |all, (_, body)| all.or(&body));
            let each = chosen.into_iter().map(|(_, body)| body).reduce(|all, body| all.and(&body));
            return each.map_or(always.clone(), |each| always.or(&each));
        }
        bodies
            .fold(self.rest.negated(), |all, (part, body)| all.and(&body.or(&part.condition.negated())))
            .certain()
    }

    /// The clauses that the toolkit decides about.
    pub fn guards(&self) -> impl Iterator<Item = &Part> {
        let decided = |part: &&Part| part.condition.by_toolkit() && !part.condition.no_toolkit();
        self.parts.iter().filter(|_| self.conditional).filter(decided)
    }
}
