//! What a file must hold for a condition to hold somewhere in it, judged without parsing it.

use memchr::memmem::find;
use regex::Regex;
use regex_syntax::hir::literal::{ExtractKind, Extractor, Literal};

use super::Condition;

/// What a file must hold for a condition to hold in it.
pub(super) struct Needed<'a> {
    condition: &'a Condition,
    /// One of these is in each text that matches; nothing where that cannot be said.
    literals: Option<Vec<Literal>>,
}

impl<'a> Needed<'a> {
    pub(super) fn of(condition: &'a Condition) -> Self {
        Self { condition, literals: condition.regex.as_ref().and_then(literals) }
    }

    /// The metavariable that the condition speaks of.
    pub(super) fn name(&self) -> &str {
        &self.condition.name
    }

    pub(super) fn may_hold(&self, bytes: &[u8]) -> bool {
        let declared = &self.condition.declared;
        let is_in = |literal: &Literal| find(bytes, literal.as_bytes()).is_some();
        self.literals.as_ref().is_none_or(|literals| literals.iter().any(is_in))
            && (declared.is_empty() || declared.iter().any(|pattern| pattern.may_match(bytes)))
    }
}

/// What a text that matches begins with, or ends with: whichever says more.
fn literals(regex: &Regex) -> Option<Vec<Literal>> {
    let hir = regex_syntax::parse(regex.as_str()).ok()?;
    let either = [ExtractKind::Prefix, ExtractKind::Suffix].into_iter().filter_map(|kind| {
        let literals = Extractor::new().kind(kind).extract(&hir);
        Some((literals.min_literal_len()?, literals.literals()?.to_vec()))
    });
    either.filter(|(length, _)| *length > 0).max_by_key(|(length, _)| *length).map(|(_, literals)| literals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(regex: &str) -> Option<Vec<String>> {
        let found = literals(&Regex::new(regex).expect(regex))?;
        let text = |literal: &Literal| String::from_utf8_lossy(literal.as_bytes()).into_owned();
        Some(found.iter().map(text).collect())
    }

    #[test]
    fn what_a_text_begins_or_ends_with_is_read_from_its_condition() {
        assert_eq!(of("^cuda[A-Z]$").expect("one"), ["cuda"]);
        assert_eq!(of("^(c|gnu)$").expect("two"), ["c", "gnu"]);
        assert_eq!(of("^--?std$").expect("two"), ["--std", "-std"]);
        assert_eq!(of(r"^\w*Stream$").expect("one"), ["Stream"]);
        for none in ["", "^a*$", r"^\w+$", "^a?b?$", "."] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
