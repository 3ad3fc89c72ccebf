//! Flags that are made of what a function or a script is called with: `macro(add_arch sm)`, `$1`.

use super::items::{Asked, is_printed, referred, variable};
use super::outline::{Outline, Sequence};
use super::settle::Law;
use crate::engine::arch::{Code, Gencode};
use crate::engine::ops::gencode::settle::labels;
use crate::engine::source::line_of;
use crate::engine::syntax::words::Word;

/// A function or macro of a file of CMake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// In lower case, as CMake compares it.
    pub name: String,
    /// The names of what it is called with, in their order.
    pub parameters: Vec<String>,
    /// The block that is its body.
    pub block: usize,
}

impl Function {
    /// Which of its parameters a name stands for.
    fn position(&self, name: &str) -> Option<usize> {
        let by_number = || name.strip_prefix("ARGV")?.parse().ok();
        self.parameters.iter().position(|parameter| parameter == name).or_else(by_number)
    }

    /// Whether a name stands for something that it is called with.
    pub fn has(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// The first flag that it makes of a parameter, which one, and whether that is a number alone.
    fn flag<'a>(&self, outline: &'a Outline) -> Option<(&'a Sequence, usize, bool)> {
        let own = outline.sequences.iter().filter(|one| outline.is_within(one.block, self.block));
        let mut made = own.filter_map(|one| {
            let mut names = referred(&one.words).into_iter();
            let (position, is_number) =
                names.find_map(|(name, is_number)| Some((self.position(&name)?, is_number)))?;
            Some((one, position, is_number))
        });
        made.next()
    }

    /// The commands that call it.
    fn calls<'a>(&self, outline: &'a Outline) -> impl Iterator<Item = &'a Sequence> {
        let is_call = |one: &&Sequence| one.name.is_none() && one.holder.is_none() && one.owner == self.name;
        outline.sequences.iter().filter(is_call)
    }
}

/// The variables that functions are called with that make flags of them.
pub fn asked(outline: &Outline) -> Vec<Asked> {
    let of_function = |function: &Function| -> Vec<Asked> {
        let Some((_, position, is_number)) = function.flag(outline) else { return Vec::new() };
        let words = function.calls(outline).filter_map(|call| call.words.get(position));
        let asked = |word: &Word| {
            Some(Asked { variable: variable(&word.text)?, is_number, place: word.range.clone() })
        };
        words.filter_map(asked).collect()
    };
    outline.functions.iter().flat_map(of_function).collect()
}

/// What a person should do about flags of a file that are made of what is handed there by a call; `codes` are those
/// that words of a call stand for.
pub fn told(
    outline: &Outline,
    (path, bytes): (&str, &[u8]),
    codes: &dyn Fn(&[&Word]) -> Vec<Code>,
    law: &Law<'_>,
) -> Vec<String> {
    let of_function = |function: &Function| {
        let (flag, position, _) = function.flag(outline)?;
        let calls: Vec<&Sequence> = function.calls(outline).collect();
        let words: Vec<&Word> = calls.iter().filter_map(|call| call.words.get(position)).collect();
        let have = codes(&words);
        let advice = advice(&have, law)?;
        let lines: Vec<String> =
            calls.iter().map(|call| line_of(bytes, call.command.start).to_string()).collect();
        let calls = if lines.is_empty() { String::new() } else { format!(" (line {})", lines.join(", ")) };
        let line = line_of(bytes, flag.command.start);
        let what = format!("makes a flag of what `{}` is called with{calls}", function.name);
        Some(format!("{path} line {line} {what}: {advice}"))
    };
    outline.functions.iter().filter_map(of_function).chain(of_scripts(outline, (path, bytes))).collect()
}

/// What calls are to be changed.
fn advice(have: &[Code], law: &Law<'_>) -> Option<String> {
    let missing: Vec<Code> =
        law.wish.wanted().filter(|code| !have.iter().any(|own| own.serves(*code))).collect();
    let takes = |code: &Code| law.cuda.iter().all(|cuda| law.catalogue.takes(*cuda, &Gencode::of(*code)));
    let goes = |code: &&Code| !takes(code) || !law.wish.keeps(**code);
    let gone: Vec<Code> = have.iter().filter(goes).copied().collect();
    let phrases = [
        (!missing.is_empty()).then(|| format!("call it for {} too", labels(missing))),
        (!gone.is_empty()).then(|| format!("take out the calls for {}", labels(gone))),
    ];
    let said: Vec<String> = phrases.into_iter().flatten().collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// Flags that a script makes of `$1`.
fn of_scripts(outline: &Outline, (path, bytes): (&str, &[u8])) -> Vec<String> {
    let sequences = outline.sequences.iter().filter(|one| !outline.is_cmake && !is_printed(one, outline));
    let told = |one: &Sequence| {
        let mut names = referred(&one.words).into_iter().map(|(name, _)| name);
        let number = names.find(|name| name.bytes().all(|byte| byte.is_ascii_digit()))?;
        let is_whole = |word: &str| {
            [format!("${number}"), format!("${{{number}}}"), format!("$({number})")]
                .iter()
                .any(|whole| word.contains(whole))
        };
        one.words.iter().any(|word| is_whole(&word.text)).then(|| {
            let line = line_of(bytes, one.command.start);
            let advice = "see to it that it is called with what is wanted";
            format!("{path} line {line} makes a flag of `${number}`: {advice}")
        })
    };
    let mut told: Vec<String> = sequences.filter_map(told).collect();
    told.dedup();
    told
}
