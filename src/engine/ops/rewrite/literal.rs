//! Names of Python that the file gives nothing but literals.

use tree_sitter::Node;

use crate::engine::ops::list::resolve::has_interpolation;
use crate::engine::pattern::Bound;
use crate::engine::syntax::language::{Parsed, descendants_holding};

/// Whether what a metavariable stands for is no name that is given literals alone.
pub(super) fn is_computed(bound: &Bound, parsed: &Parsed) -> bool {
    let gives = |node: &Node<'_>| {
        let left = node.child_by_field_name("left");
        left.is_some_and(|left| parsed.text(left) == bound.text)
    };
    let offsets = parsed.offsets_of(&bound.text);
    let given: Vec<Node<'_>> = descendants_holding(parsed.root(), &offsets).filter(gives).collect();
    given.is_empty() || !given.iter().all(is_given_a_literal)
}

fn is_given_a_literal(node: &Node<'_>) -> bool {
    let value = node.child_by_field_name("right").filter(|_| node.kind() == "assignment");
    value.is_some_and(|value| match value.kind() {
        "integer" => true,
        "string" => !has_interpolation(value),
        _ => false,
    })
}
