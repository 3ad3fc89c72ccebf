//! What a build file says, as sequences of words: those of a command, and those within its strings.

use std::ops::Range;

use super::items::Item;
use crate::engine::ops::choice::Choice;
use crate::engine::ops::gencode::worlds::{Presence, Worlds};
use crate::engine::syntax::words::{Word, inside};
use crate::engine::toolkit::Toolkit;

/// A build file, read.
#[derive(Debug, Clone)]
pub struct Outline {
    /// The blocks that conditions make; the first is the file itself.
    pub blocks: Vec<Block>,
    /// Whether it is CMake.
    pub is_cmake: bool,
    /// In the order of the file; a string comes after what holds it.
    pub sequences: Vec<Sequence>,
}

/// A part of the file that a condition decides about.
#[derive(Debug, Clone)]
pub struct Block {
    /// The block around it; the file itself is its own.
    pub parent: usize,
    /// Where it is reached.
    pub presence: Presence,
    /// The whole conditional with nothing but this block, which goes when nothing is left in it.
    pub alone: Option<Range<usize>>,
    /// How many commands and conditionals stand in it.
    pub commands: usize,
    /// Its condition, where it can be written anew for another toolkit.
    pub guard: Option<Guard>,
    /// The condition before it that may choose an architecture.
    pub choice: Option<Choice>,
}

/// A condition that holds from a toolkit on, and nothing else: `if(CUDA_VERSION VERSION_GREATER_EQUAL 11.8)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The whole conditional, which has no other branch.
    pub whole: Range<usize>,
    /// The command that opens it.
    pub opening: Range<usize>,
    /// The command that closes it.
    pub closing: Range<usize>,
    /// The version that it compares with, without quotes.
    pub version: Range<usize>,
    /// Whether that version itself is left out.
    pub exclusive: bool,
}

/// Words that stand beside each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// The variable or property that they are the value of.
    pub name: Option<String>,
    /// What tells this variable from others of its name: the target of a property.
    pub owner: String,
    /// Whether they are the whole value, and what stood there before goes.
    pub resets: bool,
    /// The value, without the name.
    pub words: Vec<Word>,
    /// The sequence that holds this string, and which word of it the string is.
    pub holder: Option<(usize, usize)>,
    /// Whether it stands within a word without quotes, where a second word needs them: `A=70`.
    pub bare: bool,
    /// The whole command.
    pub command: Range<usize>,
    /// The block that holds it.
    pub block: usize,
}

impl Outline {
    /// A file without anything.
    pub fn new(worlds: &Worlds, is_cmake: bool) -> Self {
        let (parent, presence) = (0, worlds.everywhere());
        let whole = Block { parent, presence, alone: None, commands: 0, guard: None, choice: None };
        Self { blocks: vec![whole], is_cmake, sequences: Vec::new() }
    }

    /// Adds a block within another one, where a condition holds.
    pub fn block(&mut self, parent: usize, condition: &Presence, alone: Option<Range<usize>>) -> usize {
        let presence = self.blocks[parent].presence.and(condition);
        self.blocks[parent].commands += 1;
        self.blocks.push(Block { parent, presence, alone, commands: 0, guard: None, choice: None });
        self.blocks.len() - 1
    }

    /// Whether an item is all that its command adds to a value.
    pub fn is_sole(&self, item: &Item) -> bool {
        let sequence = &self.sequences[item.sequence];
        let mut others = sequence.words.iter().enumerate().filter(|(at, _)| !item.words.contains(at));
        let outer = sequence.holder.map_or(1, |(holder, _)| self.sequences[holder].words.len());
        !sequence.resets && outer == 1 && others.all(|(_, word)| sequence.is_itself(word))
    }

    /// The commands that some toolkit gets to, but none of the given ones.
    pub fn dead(&self, worlds: &Worlds, given: &[Toolkit]) -> Vec<Range<usize>> {
        let is_dead = |presence: &Presence| presence.is_dead(worlds, given) && !presence.no_toolkit();
        let dead = self.sequences.iter().filter(|one| is_dead(&self.blocks[one.block].presence));
        dead.map(|one| one.command.clone()).collect()
    }

    /// Whether a block is another one or lies in it.
    pub fn is_within(&self, block: usize, outer: usize) -> bool {
        block == outer || (block != 0 && self.is_within(self.blocks[block].parent, outer))
    }

    /// Adds a sequence, and those within its strings.
    pub fn add(&mut self, sequence: Sequence, bytes: &[u8]) {
        let at = self.sequences.len();
        let strings: Vec<Sequence> = sequence
            .words
            .iter()
            .enumerate()
            .flat_map(|(word, outer)| outer.quoted.iter().map(move |range| (word, range.clone())))
            .filter_map(|(word, range)| {
                let words = inside(bytes, range);
                let holds = !words.is_empty();
                holds.then(|| Sequence { words, holder: Some((at, word)), ..sequence.clone() })
            })
            .collect();
        self.sequences.push(sequence);
        self.sequences.extend(strings);
    }
}

impl Sequence {
    /// Whether a word is the old value of the variable itself: `${FLAGS}`.
    pub fn is_itself(&self, word: &Word) -> bool {
        let Some(name) = &self.name else { return false };
        let text = word.text.trim_matches(['"', ';']);
        [format!("${{{name}}}"), format!("$({name})"), format!("${name}")].iter().any(|own| own == text)
    }
}
