//! What is wrong with a file of a patch set, and where it stands there.

use std::fmt;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A patch-set file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The file is no TOML of this form.
    #[error("{file} cannot be read\n{message}")]
    Toml {
        /// Where.
        file: String,
        /// Line, caret and the valid names.
        message: String,
    },
    /// A value is not what its key wants.
    #[error("{place}: `{key}` is wrong: {message}{}", place.excerpt)]
    Value {
        /// Where.
        place: Mark,
        /// Which key.
        key: String,
        /// What is wrong.
        message: String,
    },
    /// A file that another one names is not there.
    #[error("{place} names `{missing}`, and there is no such file{}", place.excerpt)]
    Missing {
        /// Where it is named.
        place: Mark,
        /// What is missing.
        missing: String,
    },
    /// A file that no `upstream.toml` names.
    #[error("{place}: {file} is not named in the `patches` of its set{}", place.excerpt)]
    Unnamed {
        /// Where it should be named.
        place: Mark,
        /// Which.
        file: String,
    },
}

/// A place in a file, with what stands there and a caret below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    file: String,
    line: usize,
    excerpt: String,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The file that values are read from, and the op in it.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    file: &'a str,
    text: &'a str,
    op: Option<(&'static str, usize)>,
}

type Value<'a> = Spanned<DeValue<'a>>;

impl<'a> At<'a> {
    /// A file by the name that is shown, and what it says.
    pub fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, op: None }
    }

    /// The op of this kind and number in it.
    pub fn of(self, kind: &'static str, index: usize) -> Self {
        Self { op: Some((kind, index)), ..self }
    }

    /// A key that is wrong: missing, or together with others.
    pub fn wrong(self, key: &str, message: impl ToString) -> LoadError {
        let (place, key) = (self.mark(key, None), key.to_string());
        LoadError::Value { place, key, message: message.to_string() }
    }

    /// A text below a key that is wrong.
    pub fn wrong_text(self, key: &str, text: &str, message: impl ToString) -> LoadError {
        let (place, key) = (self.mark(key, Some(text)), key.to_string());
        LoadError::Value { place, key, message: message.to_string() }
    }

    /// Where a key stands, or this text below it; else the op, else the beginning of the file.
    pub fn mark(self, key: &str, text: Option<&str>) -> Mark {
        let root = DeTable::parse(self.text).ok();
        let span = root.as_ref().and_then(|root| self.span(root.get_ref(), key, text)).unwrap_or(0..0);
        let line = self.text[..span.start].matches('\n').count() + 1;
        Mark { file: self.file.to_string(), line, excerpt: excerpt(self.text, line, span) }
    }

    fn span(self, root: &DeTable<'_>, key: &str, text: Option<&str>) -> Option<Range<usize>> {
        let keys: Vec<&str> = key.split('.').collect();
        let op = self.op.and_then(|(kind, index)| root.get(kind)?.get_ref().get(index));
        let of_root = || root.get(keys[0]).and_then(|value| below(value, &keys[1..], text));
        let of_op = op.and_then(|op| below(op, &keys, text)).or_else(of_root);
        // A text may stand below another key than the one that is spoken of: `file` for `paths`.
        let anywhere = || op.and_then(|op| text.and_then(|text| holding(op, text)));
        let without_text = || text.and_then(|_| self.span(root, key, None));
        of_op.or_else(anywhere).or_else(without_text).or_else(|| op.map(Spanned::span))
    }
}

/// Where a path of keys ends: in any element of a list, and there at this text if one is given.
fn below(value: &Value<'_>, keys: &[&str], text: Option<&str>) -> Option<Range<usize>> {
    match (keys.split_first(), value.get_ref()) {
        (None, _) => text.map_or(Some(value.span()), |text| holding(value, text)),
        (Some((key, rest)), DeValue::Table(table)) => below(table.get(*key)?, rest, text),
        (Some(_), DeValue::Array(list)) => list.iter().find_map(|one| below(one, keys, text)),
        _ => None,
    }
}

/// Where a text stands in a value.
fn holding(value: &Value<'_>, text: &str) -> Option<Range<usize>> {
    match value.get_ref() {
        DeValue::String(known) => (known == text).then(|| value.span()),
        DeValue::Array(list) => list.iter().find_map(|one| holding(one, text)),
        DeValue::Table(table) => table.values().find_map(|one| holding(one, text)),
        _ => None,
    }
}

/// The first line of a span, with carets below it.
fn excerpt(text: &str, number: usize, span: Range<usize>) -> String {
    let start = text[..span.start].rfind('\n').map_or(0, |at| at + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let end = span.end.min(start + line.len());
    let carets = text.get(span.start..end).map_or(1, |part| part.chars().count().max(1));
    let (blank, carets) = (" ".repeat(text[start..span.start].chars().count()), "^".repeat(carets));
    let margin = " ".repeat(number.to_string().len());
    format!("\n{margin} |\n{number} | {line}\n{margin} | {blank}{carets}")
}
