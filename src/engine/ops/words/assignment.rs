//! Assignments of makefiles and Dockerfiles.

use crate::engine::syntax::words::{Word, inside};

/// A variable with its value.
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Whether its old value goes.
    pub resets: bool,
    /// The value.
    pub words: Vec<Word>,
}

/// `NAME := value`, `NAME+=value`, `target: NAME = value`.
pub fn make_assignment(words: &[Word]) -> Option<Assignment> {
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
pub fn docker_instruction(words: &[Word]) -> Option<Assignment> {
    let [keyword, name, value @ ..] = words else { return None };
    let is_old = keyword.text.eq_ignore_ascii_case("ENV") && is_name(&name.text) && !value.is_empty();
    is_old.then(|| Assignment { name: name.text.clone(), resets: true, words: value.to_vec() })
}

/// The name that a word gives a value, and whether it appends: `A=`, `A+=`, `-DA:STRING=`.
pub fn assigned(text: &str) -> Option<(&str, bool)> {
    let (name, _) = text.split_once('=')?;
    let (name, appends) = name.strip_suffix('+').map_or((name, false), |name| (name, true));
    let name = name.strip_prefix("-D").map_or(name, |name| name.split(':').next().unwrap_or(name));
    is_name(name).then_some((name, appends))
}

/// Whether a text can name a variable.
pub fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// The value of `NAME=value`, where it has no quotes.
pub fn value_of(word: &Word, bytes: &[u8]) -> Option<Vec<Word>> {
    let written = bytes.get(word.range.clone()).filter(|_| word.quoted.is_empty())?;
    let start = word.range.start + written.iter().position(|byte| *byte == b'=')? + 1;
    Some(inside(bytes, start..word.range.end)).filter(|words| !words.is_empty())
}
