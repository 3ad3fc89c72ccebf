//! Strings that spell a flag once for each architecture of a list: `f"-gencode=arch=compute_{a},code=sm_{a}"`.

use tree_sitter::Node;

use super::resolve::{arguments, has_interpolation};
use crate::engine::syntax::language::{Parsed, ancestors, descendants, descendants_holding};

/// The strings that something is written into behind one of these marks, and the expression that it comes from: the
/// list that a loop goes through, else what stands there.
pub fn filled_strings<'t>(parsed: &'t Parsed, marks: &[String]) -> Vec<(Node<'t>, Node<'t>)> {
    let mut offsets: Vec<usize> = marks.iter().flat_map(|mark| parsed.offsets_of(mark)).collect();
    offsets.sort_unstable();
    let strings = descendants_holding(parsed.root(), &offsets)
        .filter(|node| node.kind() == "string" && !is_told(*node, parsed));
    let filled = strings.filter_map(|string| {
        let value = marks.iter().find_map(|mark| written_behind(string, mark, parsed))?;
        Some((string, source_of(value, parsed)))
    });
    filled.collect()
}

/// Whether a string is only said to a person.
pub(super) fn is_told(string: Node<'_>, parsed: &Parsed) -> bool {
    const TELLING: [&str; 9] =
        ["print", "warn", "warning", "info", "debug", "error", "exception", "write", "exit"];
    ancestors(string).take_while(|outer| !outer.kind().ends_with("block")).any(|outer| match outer.kind() {
        "raise_statement" | "assert_statement" => true,
        "call" => outer.child_by_field_name("function").is_some_and(|function| {
            let name = parsed.text(function);
            TELLING.contains(&name.rsplit('.').next().unwrap_or_default())
        }),
        _ => false,
    })
}

/// What is written into a string behind a mark: by an f-string, by `%`, by `.format`, by `+`.
fn written_behind<'t>(string: Node<'t>, mark: &str, parsed: &'t Parsed) -> Option<Node<'t>> {
    if has_interpolation(string) {
        return interpolated(string, mark, parsed);
    }
    let text = parsed.text(string);
    let parent = string.parent()?;
    let is_left = parent.child_by_field_name("left") == Some(string);
    match parent.kind() {
        "binary_operator" if is_left && text.contains(&format!("{mark}%")) => {
            let right = parent.child_by_field_name("right")?;
            if right.kind() == "tuple" { right.named_child(0) } else { Some(right) }
        }
        "binary_operator" if text.trim_end_matches(['"', '\'']).ends_with(mark) => {
            let outer = if is_left { parent } else { parent.parent()? };
            outer.child_by_field_name("right").filter(|_| outer.kind() == "binary_operator")
        }
        "attribute" if text.contains(&format!("{mark}{{")) => {
            arguments(parent.parent().filter(|call| call.kind() == "call")?).first().copied()
        }
        _ => None,
    }
}

fn interpolated<'t>(string: Node<'t>, mark: &str, parsed: &Parsed) -> Option<Node<'t>> {
    let mut cursor = string.walk();
    let holes: Vec<Node<'t>> =
        string.named_children(&mut cursor).filter(|child| child.kind() == "interpolation").collect();
    let behind = |hole: &&Node<'t>| parsed.bytes[..hole.start_byte()].ends_with(mark.as_bytes());
    holes.iter().find(behind)?.named_child(0)
}

/// The list that a loop takes a value from; else the value itself, without what only converts it.
fn source_of<'t>(value: Node<'t>, parsed: &'t Parsed) -> Node<'t> {
    let value = bare(value);
    if value.kind() != "identifier" {
        return value;
    }
    let name = parsed.text(value);
    let is_it = |clause: &Node<'t>| {
        matches!(clause.kind(), "for_statement" | "for_in_clause")
            && clause.child_by_field_name("left").is_some_and(|left| parsed.text(left) == name)
    };
    let loops = ancestors(value).flat_map(|outer| match outer.kind() {
        "for_statement" => vec![outer],
        kind if kind.ends_with("comprehension") || kind == "generator_expression" => {
            descendants(outer).filter(|node| node.kind() == "for_in_clause").collect()
        }
        _ => Vec::new(),
    });
    let mut iterables = loops.filter(is_it).filter_map(|clause| clause.child_by_field_name("right"));
    iterables.next().unwrap_or(value)
}

/// An expression without subscripts, `str(…)` and methods that only convert.
fn bare(node: Node<'_>) -> Node<'_> {
    let inner = match node.kind() {
        "subscript" => node.child_by_field_name("value"),
        "binary_operator" => node.child_by_field_name("left"),
        "call" => {
            let function = node.child_by_field_name("function");
            let object = function.and_then(|function| function.child_by_field_name("object"));
            let is_name = |node: &Node<'_>| matches!(node.kind(), "identifier" | "subscript" | "call");
            match (object.filter(is_name), arguments(node).as_slice()) {
                (Some(object), _) => Some(object),
                (None, [only]) if function.is_some_and(|function| function.kind() == "identifier") => {
                    (only.kind() == "identifier").then_some(*only)
                }
                _ => None,
            }
        }
        _ => None,
    };
    inner.map_or(node, bare)
}
