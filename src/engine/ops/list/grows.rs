//! Lists of flags that statements add single flags to: what is wanted is added by such a statement, which can stand under
//! a guard.

use tree_sitter::Node;

use super::resolve::arguments;
use crate::engine::arch::Gencode;
use crate::engine::syntax::language::{Parsed, ancestors, descendants_holding, significant_children};

/// Whether statements of the same function add single flags to the list that a literal begins, or adds to.
pub(super) fn grows(literal: Node<'_>, parsed: &Parsed) -> bool {
    let Some(name) = list_of(literal, parsed) else { return false };
    let function = |node| ancestors(node).find(|outer| outer.kind() == "function_definition");
    let offsets = parsed.offsets_of(&name);
    let mut names = descendants_holding(parsed.root(), &offsets)
        .filter(|node| node.kind() == "identifier" && parsed.text(*node) == name);
    names.any(|node| function(node) == function(literal) && adds_one(node, parsed))
}

/// The statement that adds a literal and does nothing else, where another one stands beside it.
pub(super) fn statement(literal: Node<'_>) -> Option<Node<'_>> {
    let adds = |node: &Node<'_>| node.kind() == "augmented_assignment" || node.kind() == "call";
    let statement = ancestors(literal).find(|outer| adds(outer))?.parent()?;
    let block = statement.parent().filter(|_| statement.kind() == "expression_statement")?;
    (significant_children(block).len() > 1).then_some(statement)
}

/// `f` of `f = […]`, `f += […]`, `f.extend([…])`.
fn list_of(literal: Node<'_>, parsed: &Parsed) -> Option<String> {
    let parent = literal.parent()?;
    let name = match parent.kind() {
        "assignment" | "augmented_assignment" => parent.child_by_field_name("left")?,
        "argument_list" => parent.parent()?.child_by_field_name("function")?.child_by_field_name("object")?,
        _ => return None,
    };
    (name.kind() == "identifier").then(|| parsed.text(name))
}

fn adds_one(name: Node<'_>, parsed: &Parsed) -> bool {
    let Some(parent) = name.parent() else { return false };
    let added = match parent.kind() {
        "augmented_assignment" => parent.child_by_field_name("right").filter(|right| *right != name),
        "attribute" => {
            let call = parent.parent().filter(|call| call.kind() == "call");
            call.and_then(|call| arguments(call).first().copied())
        }
        _ => None,
    };
    added.is_some_and(|added| is_one(added, parsed))
}

/// Whether a string, or a list of them, is one flag or its value.
fn is_one(added: Node<'_>, parsed: &Parsed) -> bool {
    let texts: Vec<String> = match added.kind() {
        "list" | "tuple" => significant_children(added)
            .into_iter()
            .filter(Node::is_named)
            .map(|item| parsed.text(item))
            .collect(),
        "string" => vec![parsed.text(added)],
        _ => return false,
    };
    let is_value = |text: &str| {
        let text = text.trim_matches(['"', '\'']);
        text.strip_prefix("-gencode=").unwrap_or(text).parse::<Gencode>().is_ok()
    };
    match texts.as_slice() {
        [one] => is_value(one),
        [option, value] => option.trim_matches(['"', '\'']) == "-gencode" && is_value(value),
        _ => false,
    }
}
