//! Reading shell scripts, makefiles and Dockerfiles: assignments, commands, and the blocks that conditions make.

use super::condition;
use super::outline::{Outline, Sequence};
use crate::engine::ops::gencode::worlds::{Presence, Truth, World, Worlds};
use crate::engine::syntax::words::{Command, Dialect, Word, commands, inside};

/// Reads a file.
pub fn read(path: &str, bytes: &[u8], worlds: &Worlds) -> Outline {
    let dialect = Dialect::of_path(path);
    let outline = Outline::new(worlds, false);
    let mut reader = Reader { dialect, bytes, worlds, outline, block: 0, rest: Vec::new(), tested: false };
    let commands = commands(dialect, bytes);
    for (at, command) in commands.iter().enumerate() {
        reader.command(command, commands.get(at + 1));
    }
    reader.outline
}

struct Reader<'a> {
    dialect: Dialect,
    bytes: &'a [u8],
    worlds: &'a Worlds,
    outline: Outline,
    /// The block of the next command.
    block: usize,
    /// Of each open conditional, where none of its branches is taken so far.
    rest: Vec<Presence>,
    /// Whether the line began with a test, as in `[ … ] && X=1`.
    tested: bool,
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
        self.tested &= !command.begins_line;
        while let Some((first, rest)) = words.split_first() {
            match self.turn(&first.text) {
                Some(Turn::Opens) => {
                    self.rest.push(self.cuda(|_| Truth::Yes));
                    self.branch(self.block, &self.condition(&first.text, rest, next));
                }
                Some(Turn::Alternates) => {
                    let parent = self.outline.blocks[self.block].parent;
                    self.branch(parent, &self.condition(&first.text, rest, next));
                    if self.dialect == Dialect::Make {
                        // `else ifeq (…)` has one `endif` with the `ifeq` before.
                        return;
                    }
                }
                Some(Turn::Closes) => {
                    self.rest.pop();
                    self.block = self.outline.blocks[self.block].parent;
                }
                None if matches!(first.text.as_str(), "then" | "do" | "{") => {}
                None => break,
            }
            words = rest;
        }
        self.tested |= words.first().is_some_and(|word| matches!(word.text.as_str(), "[" | "[[" | "test"));
        if !words.is_empty() {
            self.statement(words);
        }
    }

    fn turn(&self, word: &str) -> Option<Turn> {
        let turn = match (self.dialect, word) {
            (Dialect::Make, "ifeq" | "ifneq" | "ifdef" | "ifndef") => Turn::Opens,
            (Dialect::Make, "else") => Turn::Alternates,
            (Dialect::Make, "endif") => Turn::Closes,
            (Dialect::Shell, "if" | "case" | "for" | "while" | "until") => Turn::Opens,
            (Dialect::Shell, "else" | "elif") => Turn::Alternates,
            (Dialect::Shell, "fi" | "esac" | "done") => Turn::Closes,
            _ => return None,
        };
        Some(turn)
    }

    fn cuda(&self, holds: impl Fn(World) -> Truth) -> Presence {
        self.worlds.presence(|world| if world == World::Hip { Truth::No } else { holds(world) })
    }

    /// Where a branch is taken if those before it are not. What most scripts decide by cannot be told; it may hold for
    /// any toolkit.
    fn condition(&self, keyword: &str, words: &[Word], next: Option<&Command>) -> Presence {
        // After `if A && B`, the next command is no `then`.
        let is_whole = next.and_then(|next| next.words.first()).is_some_and(|word| word.text == "then");
        let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        match (keyword, condition::of_script(&words).filter(|_| is_whole)) {
            ("else", _) if words.is_empty() || self.dialect == Dialect::Shell => self.cuda(|_| Truth::Yes),
            ("if" | "elif", Some(tokens)) => self.cuda(|world| condition::truth(&tokens, world)),
            _ => self.cuda(|_| Truth::Maybe),
        }
    }

    /// Opens a block for a branch of the innermost conditional.
    fn branch(&mut self, parent: usize, condition: &Presence) {
        let Some(rest) = self.rest.last_mut() else { return };
        let taken = rest.and(condition);
        *rest = rest.and(&condition.negated());
        self.block = self.outline.block(parent, &taken, None);
    }

    fn statement(&mut self, words: &[Word]) {
        let block = self.block;
        if self.tested {
            let perhaps = self.cuda(|_| Truth::Maybe);
            self.block = self.outline.block(block, &perhaps, None);
        }
        let value = match self.dialect {
            Dialect::Make => make_assignment(words),
            Dialect::Docker => docker_instruction(words),
            Dialect::Shell => None,
        };
        match value {
            Some(value) => self.add(Some(value.name), value.resets, value.words, words),
            None => {
                self.add(None, false, words.to_vec(), words);
                self.assignments(words);
            }
        }
        self.block = block;
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
            command,
            block: self.block,
        };
        sequence.resets &= !mentions_itself(&sequence);
        self.outline.add(sequence, self.bytes);
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
