//! Bodies of `#define`s, which the C++ grammar leaves as opaque text.

use tree_sitter::{Node, Tree};

use super::language::{Language, descendants};

/// Parses each macro body by itself; offsets stay those of the file.
///
/// `\` continuations are white space to the grammar, so a body of several lines is read whole.
pub fn parse_bodies(tree: &Tree, text: &[u8]) -> Vec<Tree> {
    let bodies: Vec<Node<'_>> = descendants(tree.root_node()).filter(|node| is_body(*node)).collect();
    if bodies.is_empty() {
        return Vec::new();
    }
    let mut parser = Language::Cpp.parser();
    bodies
        .into_iter()
        .filter_map(|body| {
            parser.set_included_ranges(&[body.range()]).ok()?;
            parser.parse(text, None)
        })
        .collect()
}

fn is_body(node: Node<'_>) -> bool {
    node.kind() == "preproc_arg"
        && node.parent().is_some_and(|parent| matches!(parent.kind(), "preproc_def" | "preproc_function_def"))
}
