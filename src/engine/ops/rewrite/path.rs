//! Expressions of Python that are paths, as far as the file tells how they begin.

use tree_sitter::Node;

use crate::engine::ops::list::resolve::{arguments, value_of};
use crate::engine::pattern::Bound;
use crate::engine::syntax::language::Parsed;

/// How far names are followed.
const STEPS: usize = 8;

/// Whether what a metavariable stands for can be seen to be a path that begins in no fixed folder.
pub(super) fn is_relative(bound: &Bound, parsed: &Parsed) -> bool {
    let whole = parsed.node_at(&bound.range).filter(|node| node.byte_range() == bound.range);
    let beginning = match whole {
        Some(node) if node.kind() != "string_content" => beginning(node, parsed, STEPS),
        _ => Some(bound.text.clone()),
    };
    let first = beginning.and_then(|text| text.chars().next());
    first.is_some_and(|first| first.is_alphanumeric() || matches!(first, '_' | '.'))
}

/// The text that the value of an expression begins with; none where the file does not tell.
fn beginning(node: Node<'_>, parsed: &Parsed, steps: usize) -> Option<String> {
    let steps = steps.checked_sub(1)?;
    let of = |node: Option<Node<'_>>| beginning(node?, parsed, steps);
    let field = |name| node.child_by_field_name(name);
    match node.kind() {
        "string" => match node.named_child(1)? {
            first if first.kind() == "interpolation" => of(first.child_by_field_name("expression")),
            first if first.kind() == "string_content" => Some(parsed.text(first)),
            _ => None,
        },
        "concatenated_string" | "parenthesized_expression" => of(node.named_child(0)),
        "identifier" => of(value_of(node, parsed)),
        "binary_operator" => {
            let left = of(field("left"))?;
            let right = field("right").map(|right| match right.kind() {
                "tuple" => right.named_child(0),
                _ => Some(right),
            });
            if left.starts_with("%s") { of(right.flatten()) } else { Some(left) }
        }
        "call" => {
            let function = field("function")?;
            let first = arguments(node).first().copied();
            let text = match function.child_by_field_name("attribute").unwrap_or(function) {
                name if parsed.text(name) == "format" => of(function.child_by_field_name("object"))?,
                name if matches!(parsed.text(name).as_str(), "join" | "normpath" | "str") => {
                    return of(first);
                }
                _ => return None,
            };
            if text.starts_with("{}") || text.starts_with("{0}") { of(first) } else { Some(text) }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::pattern::Pattern;
    use crate::engine::syntax::Language;

    fn relative(text: &str) -> bool {
        let text = format!(
            "import os\nROOT = os.path.dirname(os.path.abspath(__file__))\nSRC = '_ext'\nF(F({text}))\n"
        );
        let parsed = Parsed::new(Language::Python, text.into_bytes().into()).expect("parsed");
        let found = Pattern::new(Language::Python, "F(F($X))").expect("pattern").find_all(&parsed);
        found[0].bindings.get("X").is_some_and(|bound| is_relative(bound, &parsed))
    }

    #[test]
    fn a_path_is_relative_where_its_beginning_is_seen() {
        for path in [
            "'include'",
            "SRC",
            "'./a'",
            "'{}/include'.format(SRC)",
            "f'{SRC}/include'",
            "SRC + '/include'",
            "os.path.join(SRC, 'include')",
            "'%s/include' % SRC",
            "'%s/%s' % (SRC, ROOT)",
            "('a' 'b')",
            "f'a/{ROOT}'",
        ] {
            assert!(relative(path), "{path}");
        }
        for path in [
            "'/usr/include'",
            "ROOT",
            "'{}/{}/include'.format(ROOT, SRC)",
            "f'{ROOT}/include'",
            "ROOT + SRC",
            "''",
            "os.path.join(ROOT, SRC)",
            "'%s/%s' % (ROOT, SRC)",
            "unknown",
            "os.path.abspath(SRC)",
            "'$HOME/a'",
            "'~/a'",
            "'{root}'.format(root=SRC)",
            "get()",
        ] {
            assert!(!relative(path), "{path}");
        }
    }
}
