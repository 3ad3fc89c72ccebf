//! What a build file says, as sequences of words: those of a command, and those within its strings.

use std::ops::Range;

use super::called::Function;
use super::genex;
use super::items::Item;
use crate::engine::ops::choice::Choice;
use crate::engine::ops::gencode::worlds::{Presence, Worlds};
use crate::engine::syntax::words::{Expansion, Word, expansions, inside};
use crate::engine::toolkit::Toolkit;

/// A build file, read.
#[derive(Debug, Clone)]
pub struct Outline {
    /// The blocks that conditions make; the first is the file itself.
    pub blocks: Vec<Block>,
    /// Whether it is CMake.
    pub is_cmake: bool,
    /// Whether it is a shell script, in which no branch may be empty.
    pub is_shell: bool,
    /// In the order of the file; a string comes after what holds it.
    pub sequences: Vec<Sequence>,
    /// The functions and macros that it defines.
    pub functions: Vec<Function>,
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
    /// Which conditional it is a branch of, if that has an `else`, so that one of its branches is always taken.
    pub one_of: Option<usize>,
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
    /// What it is the default of, if it is one.
    pub default: Option<DefaultOf>,
    /// The whole command.
    pub command: Range<usize>,
    /// The block that holds it.
    pub block: usize,
    /// Of the values of a loop, where its variable has them.
    pub scope: Option<Range<usize>>,
}

/// An expansion that words are the default of: `${ARCH:-sm_70}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultOf {
    /// The variable.
    pub variable: String,
    /// Where the expansion begins, if the default is the value of no variable and says something only there.
    pub place: Option<usize>,
}

impl Outline {
    /// A file without anything.
    pub fn new(worlds: &Worlds, is_cmake: bool) -> Self {
        let (parent, presence) = (0, worlds.everywhere());
        let whole =
            Block { parent, presence, alone: None, commands: 0, guard: None, choice: None, one_of: None };
        Self { blocks: vec![whole], is_cmake, is_shell: false, sequences: Vec::new(), functions: Vec::new() }
    }

    /// Adds a block within another one, where a condition holds.
    pub fn block(&mut self, parent: usize, condition: &Presence, alone: Option<Range<usize>>) -> usize {
        let presence = self.blocks[parent].presence.and(condition);
        self.blocks[parent].commands += 1;
        self.blocks.push(Block {
            parent,
            presence,
            alone,
            commands: 0,
            guard: None,
            choice: None,
            one_of: None,
        });
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

    /// The conditions around a block that may choose an architecture, the innermost first.
    pub fn choices(&self, block: usize) -> impl Iterator<Item = &Choice> {
        let blocks = std::iter::successors(Some(block), |at| (*at != 0).then(|| self.blocks[*at].parent));
        blocks.filter_map(|at| self.blocks[at].choice.as_ref())
    }

    /// Whether something that is said in some blocks is said whatever the conditions that may choose an architecture say.
    pub fn is_certain(
        &self,
        block: usize,
        says: &dyn Fn(usize) -> bool,
        is_dead: &dyn Fn(usize) -> bool,
    ) -> bool {
        let inner: Vec<usize> =
            (1..self.blocks.len()).filter(|at| self.blocks[*at].parent == block && !is_dead(*at)).collect();
        let certain = |at: &usize| self.is_certain(*at, says, is_dead);
        let all_of =
            |one: usize| inner.iter().filter(|at| self.blocks[**at].one_of == Some(one)).all(certain);
        says(block)
            || inner.iter().any(|at| self.blocks[*at].choice.is_none() && certain(at))
            || inner.iter().filter_map(|at| self.blocks[*at].one_of).any(all_of)
    }

    /// Whether a block is another one or lies in it.
    pub fn is_within(&self, block: usize, outer: usize) -> bool {
        block == outer || (block != 0 && self.is_within(self.blocks[block].parent, outer))
    }

    /// Adds a sequence, and those within its strings.
    pub fn add(&mut self, mut sequence: Sequence, bytes: &[u8]) {
        if self.is_cmake {
            sequence.words = genex::unwrapped(sequence.words, false, bytes);
        }
        let at = self.sequences.len();
        let strings: Vec<Sequence> = sequence
            .words
            .iter()
            .enumerate()
            .flat_map(|(word, outer)| outer.quoted.iter().map(move |range| (word, range.clone())))
            .filter_map(|(word, range)| {
                let words = inside(bytes, range);
                let words = if self.is_cmake { genex::unwrapped(words, true, bytes) } else { words };
                let holds = !words.is_empty();
                holds.then(|| Sequence { words, holder: Some((at, word)), ..sequence.clone() })
            })
            .collect();
        self.sequences.push(sequence);
        self.sequences.extend(strings);
    }

    /// Adds the defaults of expansions in the sequences from one on. One that is a whole value is that of its variable.
    pub fn add_defaults(&mut self, from: usize, bytes: &[u8]) {
        let mut defaults: Vec<(Range<usize>, Sequence)> = Vec::new();
        for (at, sequence) in self.sequences.iter().enumerate().skip(from) {
            for (word, outer) in sequence.words.iter().enumerate() {
                for expansion in expansions(bytes, outer) {
                    let range = expansion.range.clone();
                    let one = sequence.default((at, word), expansion, bytes);
                    defaults.retain(|(other, _)| *other != range);
                    defaults.push((range, one));
                }
            }
        }
        self.sequences.extend(defaults.into_iter().map(|(_, one)| one).filter(|one| !one.words.is_empty()));
    }

    /// The sequence that a command begins with, around another one.
    pub fn outermost<'a>(&'a self, sequence: &'a Sequence) -> &'a Sequence {
        sequence
            .holder
            .and_then(|(holder, _)| self.sequences.get(holder))
            .map_or(sequence, |outer| self.outermost(outer))
    }
}

/// What owns a variable that a loop gives its values.
const LOOP: &str = "loop";

/// What owns a variable that is an array.
const ARRAY: &str = "array";

impl Sequence {
    /// The values that a loop goes through.
    pub fn of_loop(name: String, words: Vec<Word>, (command, block): (Range<usize>, usize)) -> Self {
        let (name, owner) = (Some(name), LOOP.to_string());
        let (holder, default, scope) = (None, None, None);
        Self { name, owner, resets: true, words, holder, bare: false, default, command, block, scope }
    }

    /// Whether it is the values that a variable has at some place because a loop gives it them.
    pub fn gives(&self, variable: &str, place: &Range<usize>) -> bool {
        let within = |scope: &Range<usize>| scope.start < place.end && place.start < scope.end;
        self.is_of_loop() && self.name.as_deref() == Some(variable) && self.scope.as_ref().is_some_and(within)
    }

    /// The elements of an array of a shell.
    pub fn of_array(name: String, words: Vec<Word>, (command, block): (Range<usize>, usize)) -> Self {
        Self { owner: ARRAY.to_string(), ..Self::of_loop(name, words, (command, block)) }
    }

    /// Whether it is the elements of an array.
    pub fn is_of_array(&self) -> bool {
        self.owner == ARRAY
    }

    /// Whether it is the values that a loop goes through.
    pub fn is_of_loop(&self) -> bool {
        self.owner == LOOP
    }

    /// The variable that it is the value of, and the one that it is only the default of.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.name.as_deref().into_iter().chain(self.default.as_ref().map(|default| default.variable.as_str()))
    }

    /// The default of an expansion in one of its words.
    fn default(&self, holder: (usize, usize), expansion: Expansion, bytes: &[u8]) -> Self {
        let Expansion { variable, assigns, range, default } = expansion;
        let is_value = matches!(self.words.as_slice(), [only] if only.range == range);
        let value_of = self.name.clone().filter(|_| is_value);
        let place = (value_of.is_none() && !assigns).then_some(range.start);
        let name = value_of.or_else(|| Some(variable.clone()));
        let (holder, default_of) = (Some(holder), Some(DefaultOf { variable, place }));
        let (words, bare, resets) = (inside(bytes, default), false, true);
        Self { name, resets, words, holder, bare, default: default_of, ..self.clone() }
    }

    /// Whether a word is the old value of the variable itself: `${FLAGS}`.
    pub fn is_itself(&self, word: &Word) -> bool {
        let Some(name) = &self.name else { return false };
        let text = word.text.trim_matches(['"', ';']);
        let text = without_index(text);
        [format!("${{{name}}}"), format!("$({name})"), format!("${name}")].contains(&text)
    }
}

/// All of an array as the variable itself: `${ARCHS[@]}`.
pub fn without_index(text: &str) -> String {
    ["[@]}", "[*]}"].iter().fold(text.to_string(), |text, index| text.replace(index, "}"))
}
