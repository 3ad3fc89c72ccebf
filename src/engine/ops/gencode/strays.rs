//! Flags that the reader does not understand: a person must look at them.

use std::ops::Range;

use tree_sitter::Node;

use super::GencodeOp;
use super::tree::Block;
use crate::engine::source::line_of;
use crate::engine::syntax::language::{Parsed, ancestors, descendants_holding};

/// What a person should look at: gencode flags that are added in an unknown way, `-gencode` without a value, and
/// places that the grammar cannot read.
pub fn reports(op: &GencodeOp, parsed: &Parsed, root: &Block) -> Vec<String> {
    let read: Vec<Range<usize>> = root
        .entries()
        .iter()
        .filter_map(|(entry, _)| entry.origin.as_ref().map(|origin| origin.span.clone()))
        .collect();
    let is_read = |node: &Node<'_>| read.iter().any(|span| span.contains(&node.start_byte()));
    let mut offsets = ["arch=", "gencode", "generate-code"].map(|word| parsed.offsets_of(word)).concat();
    offsets.sort_unstable();
    let near: Vec<Node<'_>> =
        descendants_holding(parsed.root(), &offsets).filter(|node| !is_read(node)).collect();
    let unread: Vec<Node<'_>> = near.iter().copied().filter(|node| is_flag(*node, parsed)).collect();
    let is_option = |node: &Node<'_>| op.options.iter().any(|one| one.match_node(parsed, *node).is_some());
    let options = near.iter().copied().filter(is_option);
    let alone = options.filter(|option| !is_followed(*option, &unread));
    let line = |node: &Node<'_>| line_of(&parsed.bytes, node.start_byte());
    let alone = alone.map(|node| (line(&node), "adds `-gencode` without a value".to_string()));
    let told = |node: &Node<'_>| {
        (line(node), format!("adds a gencode flag that is not read: {}", parsed.text(*node)))
    };
    let mut reports: Vec<(usize, String)> =
        unread.iter().map(told).chain(alone).chain(broken(parsed)).collect();
    reports.sort();
    reports.dedup_by_key(|(line, _)| *line);
    reports.into_iter().map(|(line, what)| format!("line {line} {what}")).collect()
}

/// Whether a string is added somewhere as a gencode flag.
fn is_flag(node: Node<'_>, parsed: &Parsed) -> bool {
    if node.kind() != "string" {
        return false;
    }
    let text = parsed.text(node);
    let text = text.trim_start_matches(|c: char| c.is_ascii_alphabetic()).trim_matches(['"', '\'']).trim();
    let option = ["--generate-code", "-gencode"].iter().find_map(|option| text.strip_prefix(option));
    let flag = text.starts_with("arch=compute_") || option.is_some_and(|rest| rest.contains("arch="));
    flag && ancestors(node)
        .take_while(|outer| !outer.kind().ends_with("statement"))
        .any(|outer| is_adding(outer, parsed))
}

fn is_adding(node: Node<'_>, parsed: &Parsed) -> bool {
    let method = || {
        let attribute = node.child_by_field_name("function")?.child_by_field_name("attribute")?;
        Some(parsed.text(attribute))
    };
    match node.kind() {
        "list" | "tuple" => true,
        "call" => method().is_some_and(|name| matches!(name.as_str(), "append" | "extend" | "insert")),
        _ => false,
    }
}

/// Whether the statement behind an option holds a flag that is reported by itself.
fn is_followed(option: Node<'_>, unread: &[Node<'_>]) -> bool {
    let next = std::iter::successors(option.next_named_sibling(), |node| node.next_named_sibling());
    let next = next.into_iter().find(|node| !node.is_extra());
    next.is_some_and(|next| unread.iter().any(|node| next.byte_range().contains(&node.start_byte())))
}

/// The first place that the grammar cannot read.
fn broken(parsed: &Parsed) -> Option<(usize, String)> {
    let at = parsed.first_error()?;
    Some((line_of(&parsed.bytes, at), format!("is no valid {:?}", parsed.language)))
}
