//! The entries of lists as they are spelt: nvcc's flags, and the elements of named lists.

use std::ops::Range;

use super::genex;
use super::made::STEM;
use super::outline::{Outline, Sequence};
use crate::engine::arch::{Arch, Code, Gencode, parse_codes};
use crate::engine::syntax::words::Word;

/// An entry of a list of architectures, and how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The sequence that holds it.
    pub sequence: usize,
    /// Its words there.
    pub words: Range<usize>,
    /// What it compiles, one result each; nothing for what is not understood.
    pub parts: Vec<Gencode>,
    /// How it is written.
    pub spelling: Spelling,
}

/// How an entry is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spelling {
    /// `-gencode arch=compute_90,code=sm_90`, `--generate-code=…`; the bytes of the value.
    Gencode(Range<usize>),
    /// `-arch=sm_90`; the bytes of the value.
    Arch(Range<usize>),
    /// The one value of a variable that flags are made of: `ARCH ?= sm_70` behind `-arch=$(ARCH)`; its bytes.
    Value(Range<usize>, Notation),
    /// An element of a list.
    Element(Notation),
    /// A word of a list that is no architecture, such as `${OTHERS}`.
    Other,
}

/// How a list writes an architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// `9.0+PTX`
    Dotted,
    /// `90`
    Number,
    /// `90-real`, `90-virtual`, which CMake knows.
    Suffixed,
    /// `sm_90`, `compute_90`
    Prefixed,
    /// `Hopper`, which PyTorch knows.
    Name,
}

/// The flags of a file that tell nvcc an architecture.
pub fn flags(outline: &Outline, bytes: &[u8]) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for (at, sequence) in outline.sequences.iter().enumerate().filter(|(_, one)| !is_printed(one, outline)) {
        let read = |item: &&Item| {
            sequence.holder.is_some_and(|(held, word)| item.sequence == held && item.words.contains(&word))
        };
        if items.iter().any(|item| read(&item)) {
            continue;
        }
        let sealed = if outline.is_cmake { genex::sealed(&sequence.words) } else { Vec::new() };
        let mut word = 0;
        while word < sequence.words.len() {
            let is_sealed = sealed.iter().any(|range| range.contains(&word));
            let found = flag(&sequence.words[word..], bytes).filter(|_| !is_sealed);
            let length = found.as_ref().map_or(1, |(length, _, _)| *length);
            if let Some((_, parts, spelling)) = found {
                items.push(Item { sequence: at, words: word..word + length, parts, spelling });
            }
            word += length;
        }
    }
    let read = |item: &Item| items.iter().any(|other| other.sequence == item.sequence);
    let values: Vec<Item> = values(outline, bytes).into_iter().filter(|item| !read(item)).collect();
    items.extend(values);
    items.sort_by_key(|item| (item.sequence, item.words.start));
    items
}

/// The variables of which a flag takes its architecture, and that have one value in the file.
fn values(outline: &Outline, bytes: &[u8]) -> Vec<Item> {
    let is_of_loop =
        |one: &Asked| outline.sequences.iter().any(|values| values.gives(&one.variable, &one.place));
    let asked: Vec<Asked> = asked(outline).into_iter().filter(|one| !is_of_loop(one)).collect();
    let value = |(at, sequence): (usize, &Sequence)| {
        let [word] = sequence.words.as_slice() else { return None };
        let name = sequence.name.as_ref().filter(|_| word.quoted.is_empty() && !sequence.is_of_loop())?;
        let is_number = match sequence.default.as_ref().and_then(|default| default.place) {
            Some(place) => stands_in_flag(place, sequence, (outline, bytes))?,
            None => asked.iter().find(|one| one.variable == *name).map(|one| one.is_number)?,
        };
        let (notation, code) = match is_number {
            true => (Notation::Number, Code::Sass(word.text.parse().ok()?)),
            false => (Notation::Prefixed, word.text.parse::<Code>().ok()?),
        };
        let spelling = Spelling::Value(word.range.clone(), notation);
        Some(Item { sequence: at, words: 0..1, parts: vec![Gencode::of(code)], spelling })
    };
    outline.sequences.iter().enumerate().filter_map(value).collect()
}

/// A variable that a flag names its architecture by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its name.
    pub variable: String,
    /// Whether it holds the number alone.
    pub is_number: bool,
    /// The word that asks for it.
    pub place: Range<usize>,
}

/// The variables that flags of a file name an architecture by.
pub fn asked(outline: &Outline) -> Vec<Asked> {
    let told = outline.sequences.iter().filter(|one| !is_printed(one, outline));
    let of_word = |(words, at): (&[Word], usize)| {
        let place = words[at].range.clone();
        let asked = move |(variable, is_number)| Asked { variable, is_number, place: place.clone() };
        referred_by(words, at).into_iter().map(asked)
    };
    told.flat_map(|one| (0..one.words.len()).map(|at| (one.words.as_slice(), at))).flat_map(of_word).collect()
}

/// What stands before the name of an architecture in a flag, and before its number alone.
const MARKS: [(&str, bool); 4] =
    [("arch=", false), ("architecture=", false), ("sm_", true), ("compute_", true)];

/// Whether an expansion stands where a flag names an architecture, and if so, whether it is its number alone:
/// `-arch=${ARCH:-sm_70}`, `-arch ${ARCH:-sm_70}`, `code=sm_${SM:-70}`.
fn stands_in_flag(place: usize, sequence: &Sequence, (outline, bytes): (&Outline, &[u8])) -> Option<bool> {
    let before = &bytes[..place];
    let before = before.strip_suffix(b"\"").unwrap_or(before);
    let mark = MARKS.iter().find(|(mark, _)| before.ends_with(mark.as_bytes()));
    let (holder, word) = sequence.holder?;
    let option = || outline.sequences.get(holder)?.words.get(word.checked_sub(1)?);
    let is_apart = || option().is_some_and(|option| is_option(&option.text)).then_some(false);
    mark.map(|(_, is_number)| *is_number).or_else(is_apart)
}

fn is_option(text: &str) -> bool {
    matches!(text, "-arch" | "--gpu-architecture")
}

/// The variables that stand where words name an architecture, and whether they hold its number alone: `-arch=$(ARCH)`,
/// `-arch ${ARCH}`, `code=sm_$(SM)`.
pub fn referred(words: &[Word]) -> Vec<(String, bool)> {
    (0..words.len()).flat_map(|at| referred_by(words, at)).collect()
}

/// Those of one of the words.
fn referred_by(words: &[Word], at: usize) -> Vec<(String, bool)> {
    let behind = |(mark, is_number): (&str, bool)| {
        let rests = words[at].text.split(mark).skip(1);
        rests.filter_map(|rest| Some((variable(rest)?, is_number))).collect::<Vec<_>>()
    };
    let is_apart = at.checked_sub(1).is_some_and(|before| is_option(&words[before].text));
    let apart = Some(&words[at]).filter(|_| is_apart).and_then(|word| Some((variable(&word.text)?, false)));
    MARKS.into_iter().flat_map(behind).chain(apart).collect()
}

/// The variable that a text begins with: `$(ARCH)`, `${ARCH}`, `${ARCH:-sm_70}`, `${ARCH/./}`, `$ARCH`, and `$$ARCH` of
/// the shell in a makefile, where `%` may stand for one.
pub fn variable(text: &str) -> Option<String> {
    if text.starts_with(STEM) {
        return Some(STEM.to_string());
    }
    let rest = text.strip_prefix("$$").or_else(|| text.strip_prefix('$'))?;
    let inner = rest.strip_prefix(['(', '{']).unwrap_or(rest);
    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inner.len());
    let ends: &[char] = if rest.starts_with('(') { &[')'] } else { &['}', ':', '-', '=', '/'] };
    let is_whole = inner.len() == rest.len() || inner[end..].starts_with(ends);
    (end > 0 && is_whole).then(|| inner[..end].to_string())
}

/// Whether a command only prints or compares what it holds.
pub fn is_printed(sequence: &Sequence, outline: &Outline) -> bool {
    let compares = |word: &Word| matches!(word.text.as_str(), "[" | "[[" | "test");
    let mut words =
        outline.outermost(sequence).words.iter().filter(|word| !matches!(word.text.as_str(), "RUN" | "if"));
    words.next().is_some_and(|first| prints(first) || compares(first))
}

/// Whether a word is a command that only prints.
pub fn prints(word: &Word) -> bool {
    matches!(word.text.trim_start_matches('@'), "echo" | "printf")
}

/// The flag that words begin with: how many words it has, what it compiles, how it is written.
fn flag(words: &[Word], bytes: &[u8]) -> Option<(usize, Vec<Gencode>, Spelling)> {
    let first = words.first()?;
    let (option, value, holder, length) = match first.text.split_once('=') {
        Some((option, value)) => (option, value, first, 1),
        None => (first.text.as_str(), words.get(1)?.text.as_str(), words.get(1)?, 2),
    };
    match option {
        "-gencode" | "--gencode" | "--generate-code" => {
            let gencode: Gencode = value.parse().ok()?;
            let place = place(value, holder, bytes)?;
            Some((length, parts(&gencode), Spelling::Gencode(place)))
        }
        "-arch" | "--gpu-architecture" | "--arch" => {
            let code: Code = value.parse().ok()?;
            let place = place(value, holder, bytes)?;
            Some((length, vec![Gencode::of(code)], Spelling::Arch(place)))
        }
        _ => None,
    }
}

/// Where a value stands in the bytes of its word; nowhere where it is not written as it reads.
fn place(value: &str, word: &Word, bytes: &[u8]) -> Option<Range<usize>> {
    let start = memchr::memmem::rfind(&bytes[word.range.clone()], value.as_bytes())? + word.range.start;
    Some(start..start + value.len())
}

/// One part for each result of a flag.
fn parts(gencode: &Gencode) -> Vec<Gencode> {
    let one = |code: &Code| Gencode { virtual_arch: gencode.virtual_arch, codes: vec![*code] };
    gencode.codes.iter().map(one).collect()
}

/// The words of a named list that are lists of their own, split: `75,80`, `7.5;8.0`.
pub fn split(words: &[Word]) -> Vec<Word> {
    let split = |word: &Word| -> Vec<Word> {
        // What `;` stands between in quotes is a sequence of its own.
        let between: &[char] = if word.quoted.is_empty() { &[',', ';'] } else { &[','] };
        let texts: Vec<&str> = word.text.split(between).collect();
        let is_list = texts.len() > 1 && texts.iter().all(|text| parse_codes(text).is_ok());
        let starts_inside = word.quoted.first().map_or(word.range.start, |inner| inner.start);
        if !is_list {
            return vec![word.clone()];
        }
        let mut start = starts_inside;
        let piece = |text: &&str| {
            let range = start..start + text.len();
            start = range.end + 1;
            Word { range, text: text.to_string(), quoted: Vec::new() }
        };
        texts.iter().map(piece).collect()
    };
    words.iter().flat_map(split).collect()
}

/// The elements of a named list; `names` are those that PyTorch knows.
pub fn elements(at: usize, sequence: &Sequence, names: &dyn Fn(&str) -> Option<Vec<Code>>) -> Vec<Item> {
    let element = |(word, read): (usize, &Word)| {
        let known = element(&read.text, names);
        let (codes, spelling) = known
            .map_or((Vec::new(), Spelling::Other), |(codes, notation)| (codes, Spelling::Element(notation)));
        let parts = codes.into_iter().map(Gencode::of).collect();
        Item { sequence: at, words: word..word + 1, parts, spelling }
    };
    let own = |(_, word): &(usize, &Word)| !sequence.is_itself(word);
    sequence.words.iter().enumerate().filter(own).map(element).collect()
}

fn element(text: &str, names: &dyn Fn(&str) -> Option<Vec<Code>>) -> Option<(Vec<Code>, Notation)> {
    if let Some(codes) = names(text) {
        return Some((codes, Notation::Name));
    }
    let suffixed = text.strip_suffix("-real").map(|arch| (arch, false));
    let suffixed = suffixed.or(text.strip_suffix("-virtual").map(|arch| (arch, true)));
    if let Some((arch, is_virtual)) = suffixed {
        let arch: Arch = arch.parse().ok()?;
        let code = if is_virtual { Code::Ptx(arch) } else { Code::Sass(arch) };
        return Some((vec![code], Notation::Suffixed));
    }
    let notation = match text {
        _ if text.contains('.') => Notation::Dotted,
        _ if text.contains('_') => Notation::Prefixed,
        _ => Notation::Number,
    };
    Some((parse_codes(text).ok()?, notation))
}

impl Notation {
    /// Results as it writes them; `separator` stands between two architectures.
    pub fn write(self, parts: &[Gencode], separator: &str) -> String {
        let codes: Vec<Code> = parts.iter().flat_map(|part| part.codes.iter().copied()).collect();
        let mut arches: Vec<Arch> = codes.iter().map(Code::arch).collect();
        arches.dedup();
        let ptx = |arch: &Arch| codes.contains(&Code::Ptx(*arch));
        let sass = |arch: &Arch| codes.contains(&Code::Sass(*arch));
        let one = |arch: &Arch| match self {
            Notation::Dotted | Notation::Name => arch.capability() + if ptx(arch) { "+PTX" } else { "" },
            Notation::Number => arch.to_string(),
            Notation::Suffixed if sass(arch) && ptx(arch) => arch.to_string(),
            Notation::Suffixed => format!("{arch}-{}", if sass(arch) { "real" } else { "virtual" }),
            Notation::Prefixed if sass(arch) => Code::Sass(*arch).to_string(),
            Notation::Prefixed => Code::Ptx(*arch).to_string(),
        };
        arches.iter().map(one).collect::<Vec<_>>().join(separator)
    }
}

/// The value of a `-gencode` for several results.
pub fn gencode_value(parts: &[Gencode]) -> Option<String> {
    let virtual_arch = parts.iter().map(|part| part.virtual_arch).min()?;
    let codes = parts.iter().flat_map(|part| part.codes.iter().copied()).collect();
    Some(Gencode { virtual_arch, codes }.to_string())
}
