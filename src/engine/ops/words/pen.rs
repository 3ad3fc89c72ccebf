//! From settled lists to edits: what goes takes its blanks, lines and empty commands along, what comes is written as
//! its neighbour is.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::genex;
use super::group::Group;
use super::items::{Item, Notation, Spelling, gencode_value};
use super::outline::{Outline, Sequence};
use super::settle::{Addition, Fate, Settled};
use crate::engine::arch::{Code, Gencode};
use crate::engine::catalogue::Catalogue;
use crate::engine::edit::{Edit, Edits, Overlap};
use crate::engine::syntax::style;
use crate::engine::syntax::words::Word;

/// The commands of CMake that drop an argument that comes twice.
const DEDUPLICATING: [&str; 2] = ["target_compile_options", "add_compile_options"];

/// Writes the edits of one file.
pub struct Pen<'a> {
    bytes: &'a [u8],
    outline: &'a Outline,
    items: &'a [Item],
    catalogue: &'a Catalogue,
    /// The words that go, by sequence.
    gone: BTreeMap<usize, BTreeSet<usize>>,
    /// What is written, by the sequence that it belongs to.
    written: Vec<(usize, Edit)>,
    /// Sequences without quotes that get a second word.
    to_quote: BTreeSet<usize>,
}

impl<'a> Pen<'a> {
    /// For one file.
    pub fn new(bytes: &'a [u8], outline: &'a Outline, items: &'a [Item], catalogue: &'a Catalogue) -> Self {
        let (gone, written, to_quote) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        Self { bytes, outline, items, catalogue, gone, written, to_quote }
    }

    /// Writes what a list becomes.
    pub fn write(&mut self, group: &Group, settled: &Settled) {
        let mut additions = settled.additions.clone();
        for (at, fate) in settled.fates.iter().enumerate() {
            let item = &self.items[group.items[at]];
            match fate {
                Fate::Stays => {}
                Fate::Becomes(parts) => self.replace(item, parts),
                Fate::Goes => match successor(&additions, at, item) {
                    Some(index) => {
                        let addition = additions.remove(index);
                        self.replace(item, &addition.parts);
                    }
                    None => self.gone.entry(item.sequence).or_default().extend(item.words.clone()),
                },
            }
        }
        let (mut guarded, plain): (Vec<Addition>, Vec<Addition>) =
            additions.into_iter().partition(|addition| addition.since.is_some());
        plain.iter().for_each(|addition| self.insert(group, addition));
        guarded.sort_by_key(|addition| (addition.neighbour, addition.since));
        let alike =
            |one: &Addition, other: &Addition| (one.neighbour, one.since) == (other.neighbour, other.since);
        guarded.chunk_by(alike).for_each(|alike| self.insert_guarded(group, alike));
    }

    fn replace(&mut self, item: &Item, parts: &[Gencode]) {
        let edit = match &item.spelling {
            Spelling::Gencode(value) => gencode_value(parts).map(|text| (value.clone(), text)),
            Spelling::Arch(value) => Some(match parts {
                [Gencode { codes, .. }] if codes.len() == 1 => (value.clone(), codes[0].to_string()),
                parts => (self.range_of(item), gencode_flags(parts)),
            }),
            Spelling::Value(value, notation) => Some((value.clone(), notation.write(parts, " "))),
            Spelling::Element(notation) => {
                let separator = self.separator(item);
                Some((self.inner_range(item), notation.write(parts, &separator)))
            }
            Spelling::Other => None,
        };
        let Some((range, text)) = edit else { return };
        self.written.push((item.sequence, Edit { range, text: text.into() }));
    }

    /// From the first byte of an item to its last.
    fn range_of(&self, item: &Item) -> Range<usize> {
        let words = &self.outline.sequences[item.sequence].words[item.words.clone()];
        let start = words.first().map_or(0, |word| word.range.start);
        start..words.last().map_or(start, |word| word.range.end)
    }

    /// An element without its quotes.
    fn inner_range(&self, item: &Item) -> Range<usize> {
        let word = &self.outline.sequences[item.sequence].words[item.words.start];
        word.quoted.first().cloned().unwrap_or(word.range.clone())
    }

    fn insert(&mut self, group: &Group, addition: &Addition) {
        let neighbour = &self.items[group.items[addition.neighbour]];
        let model = self.model(group, addition.neighbour);
        let text = self.text_of(model, &addition.parts);
        if let Some(edit) = self.line_of_its_own(group, addition, &text) {
            self.written.push((neighbour.sequence, edit));
            return;
        }
        let (place, text, gap) = match self.string_of_one(neighbour) {
            Some((place, gap)) => (place, format!("\"{text}\""), gap),
            None => (self.range_of(neighbour), text, self.separator(neighbour)),
        };
        let edit = if addition.before {
            Edit { range: place.start..place.start, text: [text, gap].concat().into() }
        } else {
            let at = self.end_of_line_comment(place.end, &gap);
            Edit { range: at..at, text: [gap, text].concat().into() }
        };
        if self.outline.sequences[neighbour.sequence].bare {
            self.to_quote.insert(neighbour.sequence);
        }
        self.written.push((neighbour.sequence, edit));
    }

    /// The string of an element that has one for itself beside others: `"7.0" "7.5"`; and what stands between them.
    fn string_of_one(&self, item: &Item) -> Option<(Range<usize>, String)> {
        let sequence = &self.outline.sequences[item.sequence];
        let is_apart = self.outline.is_cmake || sequence.is_of_array();
        let (holder, word) = sequence.holder.filter(|_| is_apart && sequence.words.len() == 1)?;
        let words = &self.outline.sequences[holder].words;
        if words.len() == 1 && sequence.is_of_array() {
            return Some((words[word].range.clone(), " ".to_string()));
        }
        let pair = if word == 0 { words.get(0..2)? } else { words.get(word - 1..=word)? };
        let gap = &self.bytes[pair[0].range.end..pair[1].range.start];
        Some((words[word].range.clone(), without_comment(String::from_utf8_lossy(gap).into_owned())))
    }

    /// An item that shows how entries of the list are written: the neighbour, where it shows it.
    fn model(&self, group: &Group, neighbour: usize) -> &'a Item {
        let items = || group.items.iter().map(|at| &self.items[*at]);
        let shows = |item: &&Item| matches!(item.spelling, Spelling::Gencode(_) | Spelling::Element(_));
        let own = items().nth(neighbour).filter(shows);
        own.or_else(|| items().find(shows)).unwrap_or(&self.items[group.items[neighbour]])
    }

    /// An entry as another one is written.
    fn text_of(&self, model: &Item, parts: &[Gencode]) -> String {
        match &model.spelling {
            Spelling::Gencode(value) => {
                let whole = self.range_of(model);
                let before = String::from_utf8_lossy(&self.bytes[whole.start..value.start]);
                // Of arguments that come twice CMake drops one: `-gencode A -gencode B` would become `-gencode A B`.
                let drops = DEDUPLICATING.contains(&self.outline.sequences[model.sequence].owner.as_str());
                let before = match before.split_once(|c: char| c.is_whitespace() || c == ';') {
                    Some((flag, _)) if drops => format!("{flag}=").into(),
                    _ => before,
                };
                let after = String::from_utf8_lossy(&self.bytes[value.end..whole.end]);
                format!("{before}{}{after}", gencode_value(parts).unwrap_or_default())
            }
            Spelling::Element(notation) => {
                let (whole, inner) = (self.range_of(model), self.inner_range(model));
                let quote = String::from_utf8_lossy(&self.bytes[whole.start..inner.start]);
                format!("{quote}{}{quote}", self.notation(*notation, parts).write(parts, ";"))
            }
            Spelling::Arch(_) | Spelling::Value(..) | Spelling::Other => gencode_flags(parts),
        }
    }

    /// What CMake's plain numbers cannot say, their suffixes do.
    fn notation(&self, notation: Notation, parts: &[Gencode]) -> Notation {
        let ptx_alone = parts.iter().all(|part| matches!(part.codes.first(), Some(Code::Ptx(_))));
        if notation == Notation::Number && ptx_alone { Notation::Suffixed } else { notation }
    }

    /// What stands between an item and the next of its list, comments left out.
    fn separator(&self, item: &Item) -> String {
        let sequence = &self.outline.sequences[item.sequence];
        let is_item = |word: usize| {
            let mut items = self.items.iter().filter(|other| other.sequence == item.sequence);
            items.any(|other| other.words.contains(&word) && other.spelling != Spelling::Other)
        };
        let before = item.words.start.checked_sub(1).filter(|word| is_item(*word));
        let after = Some(item.words.end - 1).filter(|_| is_item(item.words.end));
        let gap = before.or(after).map(|word| {
            let gap = sequence.words[word].range.end..sequence.words[word + 1].range.start;
            String::from_utf8_lossy(&self.bytes[gap]).into_owned()
        });
        let is_list = matches!(item.spelling, Spelling::Element(_)) && sequence.holder.is_some();
        let gap = gap.or_else(|| self.list_gap(sequence, item));
        let gap = gap.unwrap_or_else(|| if is_list { ";" } else { " " }.to_string());
        without_comment(gap)
    }

    /// The `;` of a list within a string, where it stands in an item or beside it, or where an expression of CMake does.
    fn list_gap(&self, sequence: &Sequence, item: &Item) -> Option<String> {
        let words = &sequence.words;
        let (first, last) = (item.words.start.saturating_sub(1), item.words.end.min(words.len() - 1));
        let gap = |pair: &[Word]| {
            let gap =
                String::from_utf8_lossy(&self.bytes[pair[0].range.end..pair[1].range.start]).into_owned();
            Some(gap.trim().to_string()).filter(|gap| gap.contains(';'))
        };
        let is_wrapped = self.outline.is_cmake
            && [first, last].iter().any(|at| !item.words.contains(at) && genex::is_mark(&words[*at]));
        words[first..=last].windows(2).find_map(gap).or(is_wrapped.then(|| ";".to_string()))
    }

    /// Where a new line begins behind an item that a comment follows.
    fn end_of_line_comment(&self, at: usize, gap: &str) -> usize {
        let end = style::line_end(self.bytes, at);
        let rest = self.bytes[at..end].trim_ascii();
        if gap.contains('\n') && !gap.contains('\\') && rest.starts_with(b"#") {
            end - (self.bytes[at..end].len() - self.bytes[at..end].trim_ascii_end().len())
        } else {
            at
        }
    }

    /// In lists that have a command for each entry, another command.
    fn line_of_its_own(&self, group: &Group, addition: &Addition, text: &str) -> Option<Edit> {
        let sequence = |item: &Item| &self.outline.sequences[item.sequence];
        let neighbour = &self.items[group.items[addition.neighbour]];
        let added = || group.items.iter().map(|at| &self.items[*at]).filter(|item| !sequence(item).resets);
        let commands: Vec<usize> = added().map(|item| sequence(item).command.start).collect();
        let each_has_its_own = commands.len() > 1 && commands.windows(2).all(|pair| pair[0] != pair[1]);
        let command = &sequence(neighbour).command;
        if !each_has_its_own || sequence(neighbour).resets || !self.is_alone(command) {
            return None;
        }
        let own = Some(neighbour).filter(|item| self.outline.is_sole(item));
        let model = own.or_else(|| added().rfind(|item| self.outline.is_sole(item)))?;
        let line = self.command_line(model, text, style::indent_at(self.bytes, command.start));
        let lines = style::whole_lines(self.bytes, command.clone());
        let at = if addition.before { lines.start } else { lines.end };
        let ends = at == 0 || self.bytes[at - 1] == b'\n';
        ends.then_some(Edit { range: at..at, text: line })
    }

    /// The command of an item with another entry, as a line.
    fn command_line(&self, model: &Item, text: &str, indent: &[u8]) -> Vec<u8> {
        let (whole, entry) = (&self.outline.sequences[model.sequence].command, self.range_of(model));
        let newline = style::newline(self.bytes).as_bytes();
        let (before, after) = (&self.bytes[whole.start..entry.start], &self.bytes[entry.end..whole.end]);
        [indent, before, text.as_bytes(), after, newline].concat()
    }

    /// Entries under the condition of their neighbours, written for another toolkit, behind it.
    fn insert_guarded(&mut self, group: &Group, additions: &[Addition]) {
        let Some(first) = additions.first() else { return };
        let neighbour = &self.items[group.items[first.neighbour]];
        let sequence = &self.outline.sequences[neighbour.sequence];
        let Some((guard, since)) = self.outline.blocks[sequence.block].guard.as_ref().zip(first.since) else {
            return;
        };
        let older = self.catalogue.toolkits().iter().map(|row| row.version).rfind(|version| *version < since);
        let version = if guard.exclusive { older.unwrap_or(since) } else { since }.to_string();
        let newline = style::newline(self.bytes).as_bytes();
        let indent = style::indent_at(self.bytes, guard.whole.start);
        let opening = [
            indent,
            &self.bytes[guard.opening.start..guard.version.start],
            version.as_bytes(),
            &self.bytes[guard.version.end..guard.opening.end],
            newline,
        ];
        let inner = style::indent_at(self.bytes, sequence.command.start);
        let line = |addition: &Addition| {
            self.command_line(neighbour, &self.text_of(neighbour, &addition.parts), inner)
        };
        let lines: Vec<u8> = additions.iter().flat_map(line).collect();
        let closing = [indent, &self.bytes[guard.closing.clone()], newline].concat();
        let at = style::line_end(self.bytes, guard.whole.end.saturating_sub(1));
        let before = if self.bytes[..at].ends_with(b"\n") { &[] } else { newline };
        let text = [before, &opening.concat(), &lines, &closing].concat();
        self.written.push((usize::MAX, Edit { range: at..at, text }));
    }

    /// Whether a command has its lines for itself.
    fn is_alone(&self, command: &Range<usize>) -> bool {
        let lines = style::whole_lines(self.bytes, command.clone());
        let after = self.bytes[command.end..lines.end].trim_ascii();
        let continues = self.bytes[..lines.start].trim_ascii_end().ends_with(b"\\");
        !continues
            && style::is_blank(&self.bytes[lines.start..command.start])
            && (after.is_empty() || after.starts_with(b"#"))
    }

    /// All edits of the file.
    pub fn edits(mut self) -> Result<Edits, Overlap> {
        if self.outline.is_cmake {
            for (at, words) in &mut self.gone {
                words.extend(genex::emptied(&self.outline.sequences[*at].words, words));
            }
        }
        let commands = self.empty_commands();
        let blocks = self.empty_blocks(&commands);
        let lines = |range: &Range<usize>| style::whole_lines(self.bytes, range.clone());
        let whole: Vec<Range<usize>> = commands.iter().chain(&blocks).map(lines).collect();
        let is_taken = |at: usize| self.written.iter().any(|(_, edit)| edit.range.start == at);
        let whole = with_blank_lines(self.bytes, whole, &is_taken);
        let mut edits = Edits::new();
        for range in &whole {
            edits.insert(Edit { range: range.clone(), text: Vec::new() })?;
        }
        let within = |range: &Range<usize>| {
            whole.iter().any(|outer| outer.start <= range.start && range.start < outer.end)
        };
        for (at, words) in &self.gone {
            let ranges = removals(self.bytes, &self.outline.sequences[*at], words);
            let ranges = ranges.into_iter().filter(|range| !within(range));
            ranges.map(|range| Edit { range, text: Vec::new() }).try_for_each(|edit| edits.insert(edit))?;
        }
        let quotes: Vec<Edit> =
            self.to_quote.iter().flat_map(|at| quotes(&self.outline.sequences[*at])).collect();
        let written = self.written.into_iter().map(|(_, edit)| edit);
        joined(written.collect(), quotes).into_iter().try_for_each(|edit| edits.insert(edit))?;
        Ok(edits)
    }

    /// Commands that say nothing any more, where they have their lines for themselves. Words that hold nothing any
    /// more go from the others.
    fn empty_commands(&mut self) -> Vec<Range<usize>> {
        let mut empty = Vec::new();
        // A string comes after what holds it, which it may leave empty.
        for at in (0..self.outline.sequences.len()).rev() {
            if !self.gone.contains_key(&at) || !self.says_nothing(at) {
                continue;
            }
            let sequence = &self.outline.sequences[at];
            let others = sequence.holder.map_or(0, |(holder, word)| self.others_of(holder, word));
            let may_go = !(self.outline.is_shell && sequence.block != 0);
            if others == 0 && may_go && !sequence.resets && self.is_alone(&sequence.command) {
                empty.push(sequence.command.clone());
                self.gone.remove(&at);
            } else if let Some((holder, word)) =
                sequence.holder.filter(|_| self.outline.is_cmake || sequence.is_of_array())
            {
                self.gone.remove(&at);
                self.gone.entry(holder).or_default().insert(word);
            }
        }
        empty
    }

    /// Whether nothing is left of a sequence but the old value of its variable.
    fn says_nothing(&self, at: usize) -> bool {
        let (sequence, gone) = (&self.outline.sequences[at], &self.gone[&at]);
        let left = sequence.words.iter().enumerate().filter(|(word, _)| !gone.contains(word));
        let is_written = self.written.iter().any(|(other, _)| *other == at);
        !is_written && left.map(|(_, word)| word).all(|word| sequence.is_itself(word) || is_keyword(word))
    }

    /// How many words of a sequence say something besides one of them.
    fn others_of(&self, at: usize, word: usize) -> usize {
        let sequence = &self.outline.sequences[at];
        let others = sequence.words.iter().enumerate().filter(|(other, _)| *other != word);
        others.filter(|(_, other)| !sequence.is_itself(other) && !is_keyword(other)).count()
    }

    /// Conditionals of which nothing is left.
    fn empty_blocks(&self, commands: &[Range<usize>]) -> Vec<Range<usize>> {
        let left = |block: usize| {
            let starts: BTreeSet<usize> = self
                .outline
                .sequences
                .iter()
                .filter(|one| one.block == block && commands.contains(&one.command))
                .map(|one| one.command.start)
                .collect();
            self.outline.blocks[block].commands - starts.len()
        };
        let blocks = self.outline.blocks.iter().enumerate().filter(|(_, block)| block.commands > 0);
        let empty = blocks.filter(|(at, _)| left(*at) == 0).filter_map(|(_, block)| block.alone.clone());
        empty.filter(|range| self.is_alone(range)).collect()
    }
}

/// A word that gives a variable to others, or begins an instruction.
fn is_keyword(word: &Word) -> bool {
    matches!(word.text.as_str(), "export" | "ENV" | "ARG")
}

/// The bytes that go with words of a sequence: one of the gaps around them goes along.
fn removals(bytes: &[u8], sequence: &Sequence, gone: &BTreeSet<usize>) -> Vec<Range<usize>> {
    let words = &sequence.words;
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < words.len() {
        if !gone.contains(&at) {
            at += 1;
            continue;
        }
        let end = (at..words.len()).find(|word| !gone.contains(word)).unwrap_or(words.len());
        let own = words[at].range.start..words[end - 1].range.end;
        let all = bytes[..own.start].trim_ascii_end().len()..own.end;
        let all = if sequence.holder.is_none() { all } else { own };
        ranges.push(with_gap(bytes, words, at..end).unwrap_or(all));
        at = end;
    }
    ranges
}

/// Words with the gap before them; the first of all with the gap behind. A comment in the gap belongs to its
/// neighbour and stays.
fn with_gap(bytes: &[u8], words: &[Word], gone: Range<usize>) -> Option<Range<usize>> {
    let own = words[gone.start].range.start..words[gone.end - 1].range.end;
    let before = gone.start.checked_sub(1).map(|word| words[word].range.end..own.end);
    let behind = words.get(gone.end).map(|next| own.start..next.range.start);
    let has_comment = |range: &Range<usize>| bytes[range.start..own.start.max(range.start)].contains(&b'#');
    if before.as_ref().is_some_and(has_comment) {
        let lines = style::whole_lines(bytes, own.clone());
        let rest = bytes[own.end..lines.end].trim_ascii();
        let alone =
            style::is_blank(&bytes[lines.start..own.start]) && (rest.is_empty() || rest.starts_with(b"#"));
        return if alone { Some(lines) } else { behind };
    }
    // Behind the mark of an expression stands no gap.
    before.filter(|range| *range != own || behind.is_none()).or(behind)
}

/// The quotes around the words of a sequence that had none.
fn quotes(sequence: &Sequence) -> Vec<Edit> {
    let (Some(first), Some(last)) = (sequence.words.first(), sequence.words.last()) else {
        return Vec::new();
    };
    let quote = |at: usize| Edit { range: at..at, text: b"\"".to_vec() };
    vec![quote(first.range.start), quote(last.range.end)]
}

/// Insertions at the same place become one, in their order; opening quotes before them, closing ones behind.
fn joined(written: Vec<Edit>, quotes: Vec<Edit>) -> Vec<Edit> {
    let mut joined: Vec<Edit> = Vec::new();
    let mut opening = quotes.iter().step_by(2).cloned();
    let closing = quotes.iter().skip(1).step_by(2).cloned();
    for edit in opening.by_ref().chain(written).chain(closing) {
        match joined.iter_mut().find(|other| other.range == edit.range && other.range.is_empty()) {
            Some(other) => other.text.extend_from_slice(&edit.text),
            None => joined.push(edit),
        }
    }
    joined
}

/// A gap between words; of one that holds a comment, what stands behind it.
fn without_comment(gap: String) -> String {
    if !gap.contains('#') {
        return gap;
    }
    gap.rfind('\n').map_or(" ".to_string(), |newline| {
        let start = if gap[..newline].ends_with('\r') { newline - 1 } else { newline };
        gap[start..].to_string()
    })
}

/// The addition that is written over an entry that goes: the next one behind it, else the last before it.
fn successor(additions: &[Addition], at: usize, item: &Item) -> Option<usize> {
    let fits =
        |one: &Addition| one.neighbour == at && one.since.is_none() && item.spelling != Spelling::Other;
    let behind = additions.iter().position(|one| fits(one) && !one.before);
    behind.or_else(|| additions.iter().rposition(fits))
}

/// Lines that go, with the empty line behind them where another one stands before.
fn with_blank_lines(
    bytes: &[u8],
    mut lines: Vec<Range<usize>>,
    is_taken: &dyn Fn(usize) -> bool,
) -> Vec<Range<usize>> {
    lines.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
    let mut whole: Vec<Range<usize>> = Vec::new();
    for range in lines {
        match whole.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => whole.push(range),
        }
    }
    let is_blank_line = |range: Range<usize>| !range.is_empty() && style::is_blank(&bytes[range]);
    for range in &mut whole {
        let before = range.start.checked_sub(1).map(|end| style::line_start(bytes, end)..range.start);
        let behind = range.end..style::line_end(bytes, range.end.min(bytes.len()));
        if before.is_some_and(is_blank_line) && is_blank_line(behind.clone()) && !is_taken(range.end) {
            range.end = behind.end;
        }
    }
    whole
}

/// Several results as flags.
fn gencode_flags(parts: &[Gencode]) -> String {
    parts.iter().map(|part| format!("-gencode {part}")).collect::<Vec<_>>().join(" ")
}
