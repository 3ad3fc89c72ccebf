//! Matches in the condition of an `#if`, whose grammar knows less than that of expressions.

use std::ops::Range;

use crate::engine::syntax::Language;
use crate::engine::syntax::language::{Parsed, ancestors};

/// Whether a text that replaces a match stands in a condition that then cannot be read, as with a `?`: it may be right,
/// and nobody can check it.
pub(super) fn is_unreadable(new: &str, range: &Range<usize>, parsed: &Parsed) -> bool {
    is_in_condition(range, parsed) && {
        let text = format!("#if {new}\n#endif\n");
        Parsed::new(Language::Cpp, text.as_bytes().into()).is_ok_and(|parsed| parsed.syntax_errors() > 0)
    }
}

fn is_in_condition(range: &Range<usize>, parsed: &Parsed) -> bool {
    let Some(node) = parsed.node_at(range).filter(|_| parsed.language == Language::Cpp) else { return false };
    ancestors(node).filter(|outer| outer.kind().starts_with("preproc_")).any(|outer| {
        let condition = outer.child_by_field_name("condition");
        condition.is_some_and(|condition| {
            condition.start_byte() <= range.start && range.end <= condition.end_byte()
        })
    })
}
