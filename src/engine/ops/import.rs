//! Imports that come with an op in Python: once in each file that it changes.

use std::sync::Arc;

use tree_sitter::Node;

use super::include::Wanted;
use crate::engine::edit::Edits;
use crate::engine::syntax::language::{Language, Parsed, significant_children};
use crate::engine::syntax::style;

/// Adds to the edits of a file the imports that the changed file still lacks: `import os`.
pub fn add(bytes: &[u8], edits: &mut Edits, wanted: &[Wanted]) {
    for Wanted { header, .. } in wanted {
        let new: Arc<[u8]> = edits.apply(bytes).into();
        let Ok(parsed) = Parsed::new(Language::Python, new) else { continue };
        if let Some(at) = place(&parsed, header) {
            let newline = style::newline(&parsed.bytes).as_bytes();
            edits.insert_in_result(at, &[header.as_bytes(), newline].concat());
        }
    }
}

/// Where an import goes: after the last of its kind that the file begins with, else before its first statement that may
/// need it; none where the module has it already.
fn place(parsed: &Parsed, import: &str) -> Option<usize> {
    let statements = significant_children(parsed.root());
    let imports = || statements.iter().filter(|node| node.kind() == "import_statement");
    let name = import.trim_start_matches("import ");
    let names = |node: &Node<'_>| parsed.text(*node).trim_start_matches("import ").to_string();
    if imports().any(|node| names(node).split(',').any(|one| one.trim() == name)) {
        return None;
    }
    let line_end = |node: &Node<'_>| style::line_end(&parsed.bytes, node.end_byte());
    let opens = |node: &&Node<'_>| {
        let is_text =
            node.kind() == "expression_statement" && node.child(0).is_some_and(|it| it.kind() == "string");
        node.kind().starts_with("import") || node.kind() == "future_import_statement" || is_text
    };
    let opening: Vec<_> = statements.iter().take_while(|node| opens(node) || is_from(node)).collect();
    let like = opening.iter().rev().find(|node| node.kind() == "import_statement");
    let first = statements.iter().find(|node| is_from(node) || !opens(node));
    like.map(|node| line_end(node)).or_else(|| first.map(|node| node.start_byte()))
}

fn is_from(node: &Node<'_>) -> bool {
    node.kind() == "import_from_statement"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_os(text: &str) -> String {
        let mut edits = Edits::new();
        add(text.as_bytes(), &mut edits, &[Wanted { header: "import os".into(), places: Vec::new() }]);
        String::from_utf8(edits.apply(text.as_bytes())).expect("utf-8")
    }

    #[test]
    fn an_import_goes_beside_others_of_its_kind() {
        for (text, after) in [
            ("from a import b\nimport glob  # c\nfrom d import e\n\nf()\nimport sys\n", "import glob  # c\n"),
            ("import glob\r\nf()\r\n", "import glob\r\n"),
            (
                "\"\"\"doc\"\"\"\nfrom __future__ import annotations\nfrom a import b\n",
                "import annotations\n",
            ),
            ("# c\nfrom a import b\n", "# c\n"),
        ] {
            let newline = if text.contains('\r') { "\r\n" } else { "\n" };
            let wanted = text.replacen(after, &format!("{after}import os{newline}"), 1);
            assert_eq!(with_os(text), wanted);
            assert_eq!(with_os(&wanted), wanted);
        }
    }

    #[test]
    fn an_import_that_is_there_is_not_repeated() {
        for text in ["import os\n", "import sys, os\nf()\n", "f()\nimport os\n"] {
            assert_eq!(with_os(text), text);
        }
        assert_eq!(with_os("import os.path\n"), "import os.path\nimport os\n");
        assert_eq!(with_os("import os as o\n"), "import os as o\nimport os\n");
    }
}
