//! Reading shell scripts, makefiles and Dockerfiles: assignments, commands, and the blocks that conditions make.

use std::ops::Range;

use super::condition;
use super::made::{Made, made};
use super::outline::{Outline, Sequence};
use crate::engine::ops::choice::{Choice, may_choose};
use crate::engine::ops::gencode::worlds::{Presence, Truth, World, Worlds};
use crate::engine::syntax::style;
use crate::engine::syntax::words::{Array, Command, Dialect, Word, commands, inside};

/// Reads a file.
pub fn read(path: &str, bytes: &[u8], worlds: &Worlds) -> Outline {
    let dialect = Dialect::of_path(path);
    let outline = Outline { is_shell: dialect == Dialect::Shell, ..Outline::new(worlds, false) };
    let mut reader = Reader { dialect, bytes, worlds, outline, block: 0, open: Vec::new(), tested: None };
    let commands = commands(dialect, bytes);
    for (at, command) in commands.iter().enumerate() {
        reader.command(command, commands.get(at + 1));
    }
    reader.outline
}

/// A conditional whose end is not read yet.
struct Conditional {
    /// Where none of its branches is taken so far.
    rest: Presence,
    /// The last of its conditions that may choose an architecture.
    choice: Option<Choice>,
    /// Whether the shell decides it, and not make.
    is_of_shell: bool,
    /// Where its loop begins, if it is one.
    start: Option<usize>,
}

/// A condition of a branch.
struct Condition {
    holds: Presence,
    choice: Option<Choice>,
}

struct Reader<'a> {
    dialect: Dialect,
    bytes: &'a [u8],
    worlds: &'a Worlds,
    outline: Outline,
    /// The block of the next command.
    block: usize,
    /// The open conditionals, the innermost last.
    open: Vec<Conditional>,
    /// The test that the line began with, as in `[ … ] && X=1`.
    tested: Option<Condition>,
}

/// What a word does to the blocks around.
enum Turn {
    Opens,
    /// Another branch of the same conditional.
    Alternates,
    Closes,
}

impl Reader<'_> {
    fn command(&mut self, command: &Command, next: Option<&Command>) {
        let mut words = command.words.as_slice();
        self.tested = self.tested.take().filter(|_| !command.begins_line);
        if command.begins_line && self.dialect != Dialect::Shell {
            self.end_line(command.range().start);
        }
        while let Some((first, rest)) = words.split_first() {
            match self.turn(self.keyword(first)) {
                Some(Turn::Opens) => {
                    let is_loop = self.keyword(first) == "for";
                    self.open(first, is_loop);
                    self.branch(self.block, self.condition(first, rest, next));
                    if is_loop {
                        return self.loop_values(rest);
                    }
                }
                Some(Turn::Alternates) => {
                    let parent = self.outline.blocks[self.block].parent;
                    self.branch(parent, self.condition(first, rest, next));
                    if !self.is_in_shell() {
                        // `else ifeq (…)` has one `endif` with the `ifeq` before.
                        return;
                    }
                }
                Some(Turn::Closes) => self.close(first.range.start),
                None if matches!(first.text.as_str(), "then" | "do" | "{") => {}
                None if first.text == "RUN"
                    && rest.first().is_some_and(|word| self.turn(&word.text).is_some()) => {}
                None => break,
            }
            words = rest;
        }
        if let Some(first) = words.first().filter(|word| matches!(word.text.as_str(), "[" | "[[" | "test")) {
            let choice = self.choice(first.range.start..command.range().end);
            let holds = self.cuda(|_| Truth::Maybe);
            self.tested = Some(Condition { holds, choice });
        }
        if !words.is_empty() {
            self.statement(words, &command.arrays);
        }
    }

    /// A word as it is compared with keywords: recipes of make write `@for`.
    fn keyword<'w>(&self, word: &'w Word) -> &'w str {
        match self.dialect {
            Dialect::Make => word.text.trim_start_matches(['@', '-', '+']),
            _ => &word.text,
        }
    }

    /// Whether the innermost conditional is one of the shell.
    fn is_in_shell(&self) -> bool {
        self.dialect == Dialect::Shell || self.open.last().is_some_and(|open| open.is_of_shell)
    }

    fn turn(&self, word: &str) -> Option<Turn> {
        let turn = match (word, self.dialect == Dialect::Make, self.is_in_shell()) {
            ("ifeq" | "ifneq" | "ifdef" | "ifndef", true, _) => Turn::Opens,
            ("else", true, false) => Turn::Alternates,
            ("endif", true, _) => Turn::Closes,
            ("if" | "case" | "for" | "while" | "until", ..) => Turn::Opens,
            ("else" | "elif", _, true) => Turn::Alternates,
            ("fi" | "esac" | "done", _, true) => Turn::Closes,
            _ => return None,
        };
        Some(turn)
    }

    fn open(&mut self, keyword: &Word, is_loop: bool) {
        let is_of_make =
            self.dialect == Dialect::Make && keyword.text.starts_with("if") && keyword.text != "if";
        let (rest, start) = (self.cuda(|_| Truth::Yes), is_loop.then_some(keyword.range.start));
        self.open.push(Conditional { rest, choice: None, is_of_shell: !is_of_make, start });
    }

    /// Closes the innermost conditional; the variable of a loop has its values up to there.
    fn close(&mut self, end: usize) {
        let start = self.open.pop().and_then(|closed| closed.start);
        self.block = self.outline.blocks[self.block].parent;
        let scopes = self.outline.sequences.iter_mut().filter_map(|one| one.scope.as_mut());
        for scope in scopes.filter(|scope| Some(scope.start) == start) {
            scope.end = end;
        }
    }

    /// What the shell has open ends with the line of a makefile or a Dockerfile.
    fn end_line(&mut self, at: usize) {
        while self.open.last().is_some_and(|open| open.is_of_shell) {
            self.close(at);
        }
    }

    fn cuda(&self, holds: impl Fn(World) -> Truth) -> Presence {
        self.worlds.presence(|world| if world == World::Hip { Truth::No } else { holds(world) })
    }

    /// A branch is taken where it says so if those before it are not. What most scripts decide by cannot be told; it may
    /// hold for any toolkit.
    fn condition(&self, keyword: &Word, words: &[Word], next: Option<&Command>) -> Condition {
        // After `if A && B`, the next command is no `then`.
        let is_whole = next.and_then(|next| next.words.first()).is_some_and(|word| word.text == "then");
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        let (holds, choice) = match (self.keyword(keyword), condition::of_script(&texts).filter(|_| is_whole))
        {
            ("else", _) if words.is_empty() || self.is_in_shell() => (self.cuda(|_| Truth::Yes), None),
            ("if" | "elif", Some(tokens)) => (self.cuda(|world| condition::truth(&tokens, world)), None),
            ("for" | "while" | "until", _) => (self.cuda(|_| Truth::Maybe), None),
            _ => (self.cuda(|_| Truth::Maybe), self.choice(self.rest_of_line(keyword))),
        };
        Condition { holds, choice }
    }

    /// A condition that may choose an architecture.
    fn choice(&self, range: Range<usize>) -> Option<Choice> {
        Some(Choice::at(range, self.bytes)).filter(|choice| may_choose(&choice.condition))
    }

    /// From a keyword to the end of its line, or to a `;`: parentheses and `&&` make commands of their own.
    fn rest_of_line(&self, keyword: &Word) -> Range<usize> {
        let start = keyword.range.start;
        let end = style::line_end(self.bytes, start);
        start..memchr::memchr(b';', &self.bytes[start..end]).map_or(end, |at| start + at)
    }

    /// Opens a block for a branch of the innermost conditional.
    fn branch(&mut self, parent: usize, condition: Condition) {
        let Some(open) = self.open.last_mut() else { return };
        let taken = open.rest.and(&condition.holds);
        open.rest = open.rest.and(&condition.holds.negated());
        open.choice = condition.choice.or(open.choice.take());
        self.block = self.outline.block(parent, &taken, None);
        self.outline.blocks[self.block].choice = open.choice.clone();
    }

    fn statement(&mut self, words: &[Word], arrays: &[Array]) {
        let block = self.block;
        if let Some(tested) = &self.tested {
            self.block = self.outline.block(block, &tested.holds, None);
            self.outline.blocks[self.block].choice = tested.choice.clone();
        }
        let value = match self.dialect {
            Dialect::Make => make_assignment(words),
            Dialect::Docker => docker_instruction(words),
            Dialect::Shell => None,
        };
        let first = self.outline.sequences.len();
        match value {
            Some(value) => self.add(Some(value.name), value.resets, value.words, words),
            None => {
                self.add(None, false, words.to_vec(), words);
                self.assignments(words);
            }
        }
        for array in arrays {
            self.array(words, array);
        }
        self.add_made(first);
        self.outline.add_defaults(first, self.bytes);
        self.block = block;
    }

    /// `for SM in 70 80`; all of it is evaluated before the loop begins.
    fn loop_values(&mut self, words: &[Word]) {
        let [name, keyword, values @ ..] = words else { return };
        let Some(last) = values.last().filter(|_| keyword.text == "in") else { return };
        let (command, block) = (name.range.start..last.range.end, self.outline.blocks[self.block].parent);
        let first = self.outline.sequences.len();
        let scope = self.open.last().and_then(|open| open.start).map(|start| start..self.bytes.len());
        let values = Sequence::of_loop(name.text.clone(), values.to_vec(), (command, block));
        self.outline.add(Sequence { scope, ..values }, self.bytes);
        self.outline.add_defaults(first, self.bytes);
    }

    fn add(&mut self, name: Option<String>, resets: bool, value: Vec<Word>, whole: &[Word]) {
        self.outline.blocks[self.block].commands += 1;
        let (Some(first), Some(last)) = (whole.first(), whole.last()) else { return };
        let command = first.range.start..last.range.end;
        let mut sequence = Sequence {
            name,
            owner: String::new(),
            resets,
            words: value,
            holder: None,
            bare: false,
            default: None,
            command,
            block: self.block,
            scope: None,
        };
        sequence.resets &= !mentions_itself(&sequence);
        self.outline.add(sequence, self.bytes);
    }

    /// What functions of make make of lists, in the sequences from one on, and those lists.
    fn add_made(&mut self, from: usize) {
        let mut at = from;
        while let Some(outer) =
            self.outline.sequences.get(at).filter(|_| self.dialect == Dialect::Make).cloned()
        {
            for (word, read) in outer.words.iter().enumerate() {
                for Made { variable, list, body, range } in made(self.bytes, read) {
                    let (holder, place) = (Some((at, word)), (outer.command.clone(), outer.block));
                    let values = Sequence::of_loop(variable, list, place);
                    let made = Sequence { name: None, resets: false, words: body, ..values.clone() };
                    let made = Sequence { owner: String::new(), holder, ..made };
                    let values = Sequence { scope: Some(range), holder, ..values };
                    self.outline.sequences.extend([values, made]);
                }
            }
            at += 1;
        }
    }

    /// `ARCHS=(60 70)`
    fn array(&mut self, words: &[Word], array: &Array) {
        let Some((name, appends)) = assigned(&array.holder.text) else { return };
        let start = words.first().map_or(array.holder.range.start, |word| word.range.start);
        let place = (start..array.end, self.block);
        let mut sequence = Sequence::of_array(name.to_string(), array.elements.clone(), place);
        sequence.resets = !appends;
        sequence.resets &= !mentions_itself(&sequence);
        self.outline.add(sequence, self.bytes);
        self.assignments(&array.elements);
    }

    /// The words `NAME=value` of a command: `export A=1`, `ENV A=1 B=2`, `A=1 make`, `cmake -DA=1`.
    fn assignments(&mut self, words: &[Word]) {
        let holder = self.outline.sequences.iter().rposition(|sequence| sequence.holder.is_none());
        let Some(holder) = holder else { return };
        for (at, word) in words.iter().enumerate() {
            let Some((name, appends)) = assigned(&word.text) else { continue };
            let inner = |sequence: &Sequence| sequence.holder == Some((holder, at));
            if !self.outline.sequences.iter().any(inner) {
                let Some(value) = value_of(word, self.bytes) else { continue };
                let whole = self.outline.sequences[holder].clone();
                let holder = Some((holder, at));
                self.outline.sequences.push(Sequence { words: value, holder, bare: true, ..whole });
            }
            for sequence in self.outline.sequences.iter_mut().filter(|sequence| inner(sequence)) {
                sequence.name = Some(name.to_string());
                sequence.owner.clear();
                sequence.resets = !appends && !mentions_itself(sequence);
            }
        }
    }
}

fn mentions_itself(sequence: &Sequence) -> bool {
    let own = |word: &Word| sequence.is_itself(word);
    let Some(name) = &sequence.name else { return false };
    let within =
        |word: &Word| word.text.contains(&format!("${name}")) || word.text.contains(&format!("${{{name}}}"));
    sequence.words.iter().any(|word| own(word) || within(word))
}

/// The name that a word gives a value, and whether it appends: `A=`, `A+=`, `-DA:STRING=`.
fn assigned(text: &str) -> Option<(&str, bool)> {
    let (name, _) = text.split_once('=')?;
    let (name, appends) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
    let name = name.strip_prefix("-D").map_or(name, |name| name.split(':').next().unwrap_or(name));
    is_name(name).then_some((name, appends))
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// The value of `NAME=value`, where it has no quotes.
fn value_of(word: &Word, bytes: &[u8]) -> Option<Vec<Word>> {
    let written = bytes.get(word.range.clone()).filter(|_| word.quoted.is_empty())?;
    let start = word.range.start + written.iter().position(|byte| *byte == b'=')? + 1;
    Some(inside(bytes, start..word.range.end)).filter(|words| !words.is_empty())
}

/// A variable with its value.
struct Assignment {
    name: String,
    resets: bool,
    words: Vec<Word>,
}

/// `NAME := value`, `NAME+=value`, `target: NAME = value`.
fn make_assignment(words: &[Word]) -> Option<Assignment> {
    let modifier = |word: &&Word| {
        matches!(word.text.as_str(), "export" | "override" | "private") || word.text.ends_with(':')
    };
    let skipped = words.iter().take_while(modifier).count();
    let (first, rest) = words[skipped..].split_first()?;
    let end = first.text.find(|c: char| !(c.is_ascii_alphanumeric() || "_.-".contains(c)));
    let (name, tail) = first.text.split_at(end.unwrap_or(first.text.len()));
    let (operator, mut value) = if tail.is_empty() {
        let (operator, rest) = rest.split_first()?;
        (operator.clone(), rest.to_vec())
    } else {
        (after(first, name.len()), rest.to_vec())
    };
    let sign =
        ["::=", ":=", "?=", "+=", "!=", "="].into_iter().find(|sign| operator.text.starts_with(sign))?;
    if operator.text.len() > sign.len() {
        value.insert(0, after(&operator, sign.len()));
    }
    is_name(name).then(|| Assignment { name: name.to_string(), resets: sign != "+=", words: value })
}

/// A word without its first bytes, which have no quotes.
fn after(word: &Word, length: usize) -> Word {
    let text = word.text.get(length..).unwrap_or_default().to_string();
    Word { range: word.range.start + length..word.range.end, text, quoted: word.quoted.clone() }
}

/// `ENV NAME value value`, the old form of `ENV`.
fn docker_instruction(words: &[Word]) -> Option<Assignment> {
    let [keyword, name, value @ ..] = words else { return None };
    let is_old = keyword.text.eq_ignore_ascii_case("ENV") && is_name(&name.text) && !value.is_empty();
    is_old.then(|| Assignment { name: name.text.clone(), resets: true, words: value.to_vec() })
}
