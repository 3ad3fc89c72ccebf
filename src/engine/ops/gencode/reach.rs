//! What reaches nvcc: whether a list is read, which functions begin lists of their own, and which nobody calls.

use std::ops::Range;

use tree_sitter::Node;

use super::GencodeOp;
use crate::engine::ops::flow::{is_begun_by, is_changed, is_read};
use crate::engine::source::line_of;
use crate::engine::syntax::language::{
    Parsed, ancestors, descendants, descendants_holding, significant_children,
};

impl GencodeOp {
    /// The name of the list that entries are added to, where the entry begins with one.
    pub(super) fn list(&self) -> Option<&str> {
        let name = self.entry.text.split(['.', '[', ' ']).next()?;
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        (is_name && !name.is_empty()).then_some(name)
    }

    /// Whether something reads the list that the entries are added to.
    pub(super) fn is_used(&self, parsed: &Parsed) -> bool {
        let Some(list) = self.list().filter(|_| !self.any) else { return true };
        names(parsed, list).any(|node| is_read(node) && !is_changed(node, parsed))
    }
}

fn names<'t>(parsed: &'t Parsed, name: &str) -> impl Iterator<Item = Node<'t>> {
    let all = descendants_holding(parsed.root(), &parsed.offsets_of(name)).collect::<Vec<_>>();
    all.into_iter().filter(move |node| node.kind() == "identifier" && parsed.text(*node) == name)
}

/// Whether a block is the body of a function that assigns the list by itself.
pub(super) fn begins_list(block: Node<'_>, parsed: &Parsed, list: &str) -> bool {
    let Some(function) = block.parent().filter(|parent| parent.kind() == "function_definition") else {
        return false;
    };
    let own = |node: &Node<'_>| {
        ancestors(*node).find(|outer| outer.kind() == "function_definition") == Some(function)
    };
    let named = |node: Node<'_>| descendants(node).any(|inner| parsed.text(inner) == list);
    let declared = |kind| descendants(block).any(|node| node.kind() == kind && own(&node) && named(node));
    let assigned = descendants(block).any(|node| is_begun_by(node, parsed, list) && own(&node));
    assigned && !declared("global_statement") && !declared("nonlocal_statement")
}

/// Whether a statement of a block assigns the list before it or a block within adds to it.
pub(super) fn assigned_first(block: Node<'_>, parsed: &Parsed, list: &str, sites: &[Range<usize>]) -> bool {
    let range = block.byte_range();
    let first = sites.iter().map(|site| site.start).filter(|start| range.contains(start)).min();
    let statements = significant_children(block).into_iter().filter_map(|statement| statement.named_child(0));
    let mut assigned = statements.filter(|node| is_begun_by(*node, parsed, list));
    assigned.any(|node| first.is_some_and(|first| node.end_byte() <= first))
}

/// The line in which a block assigns the list anew between flags that are added to it: each of its values is another list.
pub(super) fn begun_again(parsed: &Parsed, list: &str, starts: &[usize]) -> Option<usize> {
    let mut assigned = names(parsed, list).filter_map(|name| {
        let assignment = name.parent().filter(|parent| is_begun_by(*parent, parsed, list))?;
        (assignment.child_by_field_name("left") == Some(name)).then_some(assignment)
    });
    let between = |node: &Node<'_>| {
        let block = ancestors(*node).find(|outer| matches!(outer.kind(), "block" | "module"));
        let range = block.map(|block| block.byte_range());
        let within: Vec<usize> = starts
            .iter()
            .copied()
            .filter(|at| range.as_ref().is_some_and(|range| range.contains(at)))
            .collect();
        within.iter().any(|at| *at < node.start_byte()) && within.iter().any(|at| *at > node.start_byte())
    };
    assigned.find(between).map(|node| line_of(&parsed.bytes, node.start_byte()))
}

/// The functions of a file that hold sites and that nothing in it names: what they add reaches nothing. Where all sites stand in such
/// functions, other files must call them.
pub(super) fn uncalled_functions(parsed: &Parsed, sites: &[Range<usize>]) -> Vec<Range<usize>> {
    let holds = |function: &Node<'_>| {
        sites.iter().any(|site| function.start_byte() <= site.start && site.end <= function.end_byte())
    };
    let starts: Vec<usize> = sites.iter().map(|site| site.start).collect();
    let functions =
        descendants_holding(parsed.root(), &starts).filter(|node| node.kind() == "function_definition");
    let plain = functions.filter(holds).filter(|node| {
        !ancestors(*node).any(|outer| {
            matches!(outer.kind(), "function_definition" | "class_definition" | "decorated_definition")
        })
    });
    let uncalled: Vec<Range<usize>> = plain
        .filter(|function| {
            function.child_by_field_name("name").is_some_and(|name| !is_named(parsed, *function, name))
        })
        .map(|function| function.byte_range())
        .collect();
    let within = |site: &Range<usize>| {
        uncalled.iter().any(|function| function.start <= site.start && site.end <= function.end)
    };
    if sites.iter().all(within) { Vec::new() } else { uncalled }
}

/// Whether something outside of a function names it.
fn is_named(parsed: &Parsed, function: Node<'_>, name: Node<'_>) -> bool {
    let range = function.byte_range();
    names(parsed, &parsed.text(name)).any(|node| !range.contains(&node.start_byte()))
}
