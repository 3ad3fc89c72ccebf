//! Metavariables: `$X` one node, `$$$X` any number of nodes, `$_` anything.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// A metavariable of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metavariable {
    /// `$X`; `None` for `$_`, which binds nothing.
    One(Option<String>),
    /// `$$$X`; `None` for `$$$`.
    Many(Option<String>),
}

#[allow(clippy::unwrap_used, reason = "constant expressions, compiled by the tests")]
static WRITTEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\$\$\$([A-Z][A-Z0-9_]*)?|\$([A-Z][A-Z0-9_]*|_)").unwrap());
#[allow(clippy::unwrap_used, reason = "constant expressions, compiled by the tests")]
static ENCODED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"mv(one|many)0([A-Z0-9_]*)0vm").unwrap());

/// The text with its metavariables as identifiers that every grammar reads.
pub fn encode(text: &str) -> String {
    let name = |found: &Captures<'_>| match (found.get(1), found.get(2)) {
        (_, Some(one)) => format!("mvone0{}0vm", one.as_str()),
        (many, None) => format!("mvmany0{}0vm", many.map_or("", |name| name.as_str())),
    };
    WRITTEN.replace_all(text, name).into_owned()
}

/// The metavariable that a text is, where it is one and nothing else.
pub fn decode(text: &str) -> Option<Metavariable> {
    let found = ENCODED.captures(text).filter(|found| found[0].len() == text.len())?;
    Some(metavariable(&found))
}

/// A piece of a string literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Exactly this text.
    Text(String),
    /// Any text, bound to the name if there is one.
    Any(Option<String>),
}

/// Splits the content of a string literal at its metavariables.
pub fn pieces(content: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for found in ENCODED.captures_iter(content) {
        let Some(whole) = found.get(0) else { continue };
        if whole.start() > at {
            pieces.push(Piece::Text(content[at..whole.start()].to_string()));
        }
        let (Metavariable::One(name) | Metavariable::Many(name)) = metavariable(&found);
        pieces.push(Piece::Any(name));
        at = whole.end();
    }
    if at < content.len() {
        pieces.push(Piece::Text(content[at..].to_string()));
    }
    pieces
}

fn metavariable(found: &Captures<'_>) -> Metavariable {
    let name = Some(found[2].to_string()).filter(|name| !name.is_empty() && name != "_");
    if &found[1] == "one" { Metavariable::One(name) } else { Metavariable::Many(name) }
}

/// Replaces each metavariable of a text by what `value` gives for its name; the first name without a value is the error.
pub fn substitute(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut missing = None;
    let filled = WRITTEN.replace_all(text, |found: &Captures<'_>| {
        let name = found.get(1).or(found.get(2)).map_or("_", |name| name.as_str());
        value(name).unwrap_or_else(|| {
            missing.get_or_insert_with(|| name.to_string());
            String::new()
        })
    });
    let filled = filled.into_owned();
    missing.map_or(Ok(filled), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metavariables_survive_the_encoding() {
        let one = |name: &str| Some(Metavariable::One(Some(name.into())));
        assert_eq!(decode(&encode("$GENCODE")), one("GENCODE"));
        assert_eq!(decode(&encode("$_")), Some(Metavariable::One(None)));
        assert_eq!(decode(&encode("$$$A")), Some(Metavariable::Many(Some("A".into()))));
        assert_eq!(decode(&encode("$$$")), Some(Metavariable::Many(None)));
        assert_eq!(decode(&encode("f($X)")), None);
        assert_eq!(encode("costs $5 and ${x}"), "costs $5 and ${x}");
    }

    #[test]
    fn strings_split_at_metavariables() {
        let expected =
            vec![Piece::Text("arch=".into()), Piece::Any(Some("X".into())), Piece::Text(",".into())];
        assert_eq!(pieces(&encode("arch=$X,")), expected);
    }
}
