//! Reading shell scripts, makefiles and Dockerfiles: assignments, commands, and the blocks that conditions make.

use std::ops::Range;

use super::assignment::{assigned, docker_instruction, is_name, make_assignment, value_of};
use super::condition;
use super::made::{Made, made};
use super::outline::{Outline, Sequence};
use crate::engine::ops::choice::{Choice, may_choose};
use crate::engine::ops::gencode::worlds::{Presence, Truth, World, Worlds};
use crate::engine::source::line_of;
use crate::engine::syntax::style;
use crate::engine::syntax::words::{Array, Command, Dialect, Word, commands};

/// Reads a file.
pub fn read(path: &str, bytes: &[u8], worlds: &Worlds) -> Outline {
    let dialect = Dialect::of_path(path);
    let commands = commands(dialect, bytes);
    // Which functions are called is known when all of it is read.
    let mut called: Vec<String> = Vec::new();
    loop {
        let outline = Outline { is_shell: dialect == Dialect::Shell, ..Outline::new(worlds, false) };
        let (open, functions) = (Vec::new(), Vec::new());
        let mut reader = Reader {
            dialect,
            bytes,
            worlds,
            outline,
            block: 0,
            open,
            tested: None,
            last: 0,
            awaits_pattern: false,
            functions,
            called,
        };
        for (at, command) in commands.iter().enumerate() {
            reader.command(command, commands.get(at + 1));
        }
        let new = reader.calls();
        if new.is_empty() {
            return reader.outline;
        }
        called = [reader.called, new].concat();
    }
}

/// A conditional whose end is not read yet.
struct Conditional {
    /// Where none of its branches is taken so far.
    rest: Presence,
    /// The last of its conditions that may choose an architecture.
    choice: Option<Choice>,
    /// Whether the shell decides it, and not make.
    is_of_shell: bool,
    /// Whether it is what stands in braces.
    is_body: bool,
    /// Whether it is a `case`, and one of its patterns was read.
    is_case: bool,
    has_pattern: bool,
    /// Where its loop begins, if it is one.
    start: Option<usize>,
    /// Its branches, and the block around it.
    branches: Vec<usize>,
    outer: usize,
}

/// A condition of a branch.
struct Condition {
    holds: Presence,
    choice: Option<Choice>,
    /// Whether it is taken where no other one is.
    is_else: bool,
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
    /// Where the command before ends.
    last: usize,
    /// Whether a pattern of a `case` comes next.
    awaits_pattern: bool,
    /// The functions that the script defines; the last one may have no body yet.
    functions: Vec<Function>,
    /// Those that it calls, whatever a condition that may choose an architecture says.
    called: Vec<String>,
}

/// A function of a shell script.
struct Function {
    name: String,
    line: usize,
    has_body: bool,
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
        let words = command.words.as_slice();
        self.tested = self.tested.take().filter(|_| !command.begins_line);
        if command.begins_line && self.dialect != Dialect::Shell {
            self.end_line(command.range().start);
        }
        let last = std::mem::replace(&mut self.last, command.range().end);
        if self.pattern(words, last) {
            return;
        }
        let Some(words) = self.keywords(words, next) else { return };
        if let Some(first) = words.first().filter(|first| self.is_test(first, command.range().end)) {
            self.tested = Some(self.test(first, command.range().end));
        }
        if let [name] = words
            && self.dialect == Dialect::Shell
            && is_name(&name.text)
            && self.bytes[name.range.end..].trim_ascii_start().starts_with(b"()")
        {
            return self.define(name);
        }
        let closing = words.last().filter(|last| last.text == "}" && self.is_in_body()).cloned();
        let words = if closing.is_some() { &words[..words.len() - 1] } else { words };
        if !words.is_empty() {
            self.statement(words, &command.arrays);
        }
        if let Some(closing) = closing {
            self.close(closing.range.start);
        }
    }

    /// What stands behind the words that open, close and part blocks; `None` where nothing does that is a command.
    fn keywords<'w>(&mut self, mut words: &'w [Word], next: Option<&Command>) -> Option<&'w [Word]> {
        while let Some((first, rest)) = words.split_first() {
            match self.turn(self.keyword(first)) {
                Some(Turn::Opens) => {
                    let is_loop = self.keyword(first) == "for";
                    self.open(first, is_loop);
                    self.branch(self.block, self.condition(first, rest, next));
                    match (self.keyword(first), rest) {
                        ("for", _) => {
                            self.loop_values(rest);
                            return None;
                        }
                        ("case", [_, _, pattern @ ..]) => {
                            self.awaits_pattern = true;
                            self.pattern(pattern, first.range.start);
                            return None;
                        }
                        _ => {}
                    }
                }
                Some(Turn::Alternates) => {
                    let parent = self.outline.blocks[self.block].parent;
                    self.branch(parent, self.condition(first, rest, next));
                    if !self.is_in_shell() {
                        // `else ifeq (…)` has one `endif` with the `ifeq` before.
                        return None;
                    }
                }
                Some(Turn::Closes) => self.close(first.range.start),
                None if self.dialect == Dialect::Shell && first.text == "{" => self.open_body(first),
                None if first.text == "function" && self.dialect == Dialect::Shell => {
                    let (name, rest) = rest.split_first()?;
                    self.define(name);
                    words = rest;
                    continue;
                }
                None if matches!(first.text.as_str(), "then" | "do" | "{" | "!") => {}
                None if first.text == "RUN"
                    && rest.first().is_some_and(|word| self.turn(&word.text).is_some()) => {}
                None => break,
            }
            words = rest;
        }
        Some(words)
    }

    /// The condition that a command is for what comes behind it on its line.
    fn test(&self, first: &Word, end: usize) -> Condition {
        let start = match first.text.ends_with("grep") {
            true => style::line_start(self.bytes, first.range.start),
            false => first.range.start,
        };
        Condition { holds: self.cuda(|_| Truth::Maybe), choice: self.choice(start..end), is_else: false }
    }

    /// Whether a command decides what comes behind it on its line: `[ … ] &&`, `… | grep -q … &&`.
    fn is_test(&self, first: &Word, end: usize) -> bool {
        let rest = self.bytes[end..].trim_ascii_start();
        let joins = rest.starts_with(b"&&") || rest.starts_with(b"||");
        matches!(first.text.as_str(), "[" | "[[" | "test") || (joins && first.text.ends_with("grep"))
    }

    /// Whether words are a pattern of the innermost `case`; behind it another branch begins.
    fn pattern(&mut self, words: &[Word], last: usize) -> bool {
        let Some((first, end)) = words.first().zip(words.last()) else { return false };
        let gap = self.bytes.get(last..first.range.start).unwrap_or_default();
        let is_next =
            self.open.last().is_some_and(|open| open.is_case) && gap.windows(2).any(|two| two == b";;");
        let awaited = std::mem::take(&mut self.awaits_pattern) || is_next;
        if !awaited || first.text == "esac" {
            return false;
        }
        match self.bytes[end.range.end..].trim_ascii_start().first() {
            Some(b'|') => self.awaits_pattern = true,
            Some(b')') => {
                let Some(open) = self.open.last_mut() else { return false };
                if !open.has_pattern {
                    open.branches.clear();
                }
                open.has_pattern = true;
                let outer = open.outer;
                let (holds, is_else) = (self.cuda(|_| Truth::Maybe), end.text == "*");
                self.branch(outer, Condition { holds, choice: None, is_else });
            }
            _ => return false,
        }
        true
    }

    fn define(&mut self, name: &Word) {
        let line = line_of(self.bytes, name.range.start);
        self.functions.push(Function { name: name.text.clone(), line, has_body: false });
    }

    /// The body of a function that nothing certainly calls is reached perhaps; other braces decide nothing.
    fn open_body(&mut self, brace: &Word) {
        self.open(brace, false);
        let begun = self.functions.last_mut().filter(|function| !function.has_body);
        let choice = begun.and_then(|function| {
            function.has_body = true;
            let condition = format!("{}()", function.name);
            (!self.called.contains(&function.name)).then_some(Choice { condition, line: function.line })
        });
        let holds = self.cuda(|_| if choice.is_some() { Truth::Maybe } else { Truth::Yes });
        self.branch(self.block, Condition { holds, choice, is_else: false });
    }

    fn is_in_body(&self) -> bool {
        self.dialect == Dialect::Shell && self.open.last().is_some_and(|open| open.is_body)
    }

    /// The functions that are called now, and were not known to be.
    fn calls(&self) -> Vec<String> {
        let is_called = |name: &str| {
            let starts = |word: &Word| {
                let calls = word.text.split(['(', '`']).skip(1);
                calls.filter_map(|text| text.split([' ', ')', '`']).next()).any(|first| first == name)
            };
            self.outline.sequences.iter().any(|one| {
                let is_first =
                    one.holder.is_none() && one.words.first().is_some_and(|word| word.text == name);
                (is_first || one.words.iter().any(starts)) && self.outline.choices(one.block).next().is_none()
            })
        };
        let names = self.functions.iter().map(|function| &function.name);
        names.filter(|name| !self.called.contains(name) && is_called(name)).cloned().collect()
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
            ("}", ..) if self.is_in_body() => Turn::Closes,
            _ => return None,
        };
        Some(turn)
    }

    fn open(&mut self, keyword: &Word, is_loop: bool) {
        let is_of_make =
            self.dialect == Dialect::Make && keyword.text.starts_with("if") && keyword.text != "if";
        let (rest, start) = (self.cuda(|_| Truth::Yes), is_loop.then_some(keyword.range.start));
        let (is_of_shell, is_body) = (!is_of_make, keyword.text == "{");
        let (is_case, has_pattern) = (self.keyword(keyword) == "case", false);
        let (choice, branches, outer) = (None, Vec::new(), self.block);
        let open =
            Conditional { rest, choice, is_of_shell, is_body, is_case, has_pattern, start, branches, outer };
        self.open.push(open);
    }

    /// Closes the innermost conditional; the variable of a loop has its values up to there.
    fn close(&mut self, end: usize) {
        let Some(closed) = self.open.pop() else { return };
        let start = closed.start;
        self.block = closed.outer;
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
        let is_else = self.keyword(keyword) == "else" && (words.is_empty() || self.is_in_shell());
        Condition { holds, choice, is_else }
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
        let is_last = condition.is_else;
        let taken = open.rest.and(&condition.holds);
        open.rest = open.rest.and(&condition.holds.negated());
        open.choice = condition.choice.or(open.choice.take());
        self.block = self.outline.block(parent, &taken, None);
        self.outline.blocks[self.block].choice = open.choice.clone();
        open.branches.push(self.block);
        if is_last {
            let first = open.branches.first().copied();
            open.branches.iter().for_each(|branch| self.outline.blocks[*branch].one_of = first);
        }
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
