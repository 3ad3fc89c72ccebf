//! Python statements at a column that Python refuses, and blocks without a statement: the grammar is lenient and reads
//! them without an error.

use tree_sitter::Node;

use super::language::{descendants, significant_children};
use super::style;

/// The levels of indentation that Python takes at most (its tokenizer's MAXINDENT).
pub const DEEPEST: usize = 100;

/// How many lines stand one within the other at most, each indented further than the one around it.
pub fn depth(bytes: &[u8]) -> usize {
    let (mut open, mut deepest): (Vec<usize>, usize) = (Vec::new(), 0);
    for line in bytes.split(|byte| *byte == b'\n') {
        let indent = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        if line[indent..].is_empty() || matches!(line[indent], b'#' | b'\r') {
            continue;
        }
        while open.last().is_some_and(|last| *last >= indent) {
            open.pop();
        }
        open.push(indent);
        deepest = deepest.max(open.len() - 1);
    }
    deepest
}

/// Statements that begin their line at another column than the first of their block, and those that lack a block, in the
/// order of the file.
pub fn misplaced<'t>(root: Node<'t>, bytes: &[u8]) -> Vec<Node<'t>> {
    let blocks = descendants(root).filter(|node| matches!(node.kind(), "module" | "block"));
    let mut found: Vec<Node<'t>> = blocks.flat_map(|block| misplaced_in(block, bytes)).collect();
    found.sort_by_key(Node::start_byte);
    found
}

fn misplaced_in<'t>(block: Node<'t>, bytes: &[u8]) -> Vec<Node<'t>> {
    if block.kind() == "block" && significant_children(block).is_empty() {
        return block.parent().into_iter().collect();
    }
    let own_line = |node: &Node<'t>| style::indent_end(bytes, node.start_byte()) == node.start_byte();
    let mut statements = significant_children(block).into_iter().filter(Node::is_named).filter(own_line);
    let indent = |node: &Node<'t>| style::indent_at(bytes, node.start_byte());
    let wanted: &[u8] = match (block.kind(), statements.clone().next()) {
        ("block", Some(first)) => indent(&first),
        _ => b"",
    };
    statements.by_ref().filter(|node| indent(node) != wanted).collect()
}

#[cfg(test)]
mod tests {
    use crate::engine::syntax::{Language, Parsed};

    fn errors(text: &str) -> usize {
        Parsed::new(Language::Python, text.as_bytes().into()).expect("parses").syntax_errors()
    }

    #[test]
    fn a_statement_at_a_wrong_column_is_an_error() {
        assert_eq!(errors("if a:\n    if b:\n        x = 1\n        if c:\n            y = 2; z = 3\n"), 0);
        assert_eq!(errors("\u{feff}def f():\n\tx = (1,\n2)\n\n# c\n\treturn x\n"), 0);
        assert_eq!(errors("if a: x = 1; y = 2\nz = 3\n"), 0);
        assert_ne!(
            errors("if a:\n    if b:\n        x = 1\n    y = 1\n        if c:\n            z = 2\n"),
            0
        );
        assert_ne!(errors("if a:\n    x = 1\ny = 1\n    z = 2\n"), 0);
    }

    #[test]
    fn what_is_nested_deeper_than_python_takes_is_not_parsed() {
        let nested = |depth: usize| {
            let lines = (0..depth).map(|at| format!("{}if a:\n", " ".repeat(at)));
            lines.collect::<String>() + &format!("{}x = 1\n", " ".repeat(depth))
        };
        let parse = |depth| Parsed::new(Language::Python, nested(depth).into_bytes().into());
        assert_eq!(parse(100).map(|parsed| parsed.syntax_errors()).ok(), Some(0));
        assert!(parse(101).is_err());
        assert!(parse(2000).is_err());
        assert_eq!(super::depth(b"a\n  b\n\n# c\n  d\n    e\n f\n  g\n"), 2);
    }

    #[test]
    fn a_block_without_a_statement_is_an_error() {
        assert_ne!(errors("if a:\nx = 1\n"), 0);
        assert_ne!(errors("for a in b:\n    if c:\n    # d\n    else:\n        pass\n"), 0);
        assert_eq!(errors("def f(): ...\nclass A: pass\nif a:\n    # b\n    \"c\"\n"), 0);
    }
}
