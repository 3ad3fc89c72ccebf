//! Qualified names of C++: `cub::LaneId` stands for `::cub::LaneId` too, and not for `other::cub::LaneId`.

use tree_sitter::Node;

use super::compile::PatternNode;

const QUALIFIED: &str = "qualified_identifier";

/// The name behind a leading `::`, where a pattern has none.
pub(super) fn without_global<'t>(pattern: &PatternNode, node: Node<'t>) -> Node<'t> {
    if !begins_with_scope(pattern) || !is_global(node) {
        return node;
    }
    node.child_by_field_name("name").filter(|name| name.kind() == QUALIFIED).unwrap_or(node)
}

/// Whether a node is the end of a longer name, where a pattern is a qualified name.
pub(super) fn is_end_of_longer(pattern: &PatternNode, node: Node<'_>) -> bool {
    let longer = |parent: Node<'_>| {
        parent.kind() == QUALIFIED && parent.child_by_field_name("name").is_some_and(|name| name == node)
    };
    begins_with_scope(pattern) && node.parent().is_some_and(longer)
}

fn begins_with_scope(pattern: &PatternNode) -> bool {
    let PatternNode::Branch { kind, children } = pattern else { return false };
    kind.name == QUALIFIED
        && !matches!(children.first(), Some(PatternNode::Leaf { text, .. }) if text == "::")
}

fn is_global(node: Node<'_>) -> bool {
    node.kind() == QUALIFIED && node.child(0).is_some_and(|first| first.kind() == "::")
}

#[cfg(test)]
mod tests {
    use crate::engine::pattern::Pattern;
    use crate::engine::syntax::language::{Language, Parsed};

    fn found(pattern: &str, text: &str) -> Vec<String> {
        let parsed = Parsed::new(Language::Cpp, text.as_bytes().into()).expect("parses");
        let all = Pattern::new(Language::Cpp, pattern).expect(pattern).find_all(&parsed);
        all.into_iter().map(|one| text[one.range].to_string()).collect()
    }

    #[test]
    fn a_leading_colon_belongs_to_the_name_and_another_scope_makes_another_name() {
        let text = "void f(::cub::Int2Type<1> a, my::cub::Int2Type<2> b) {\n  g(::cub::LaneId(), my::cub::LaneId());\n  \
                    h<::cub::Int2Type<3>>(cub::LaneId());\n  x = ::cub::If<(a > 4), int, long>::Type(1);\n}\n";
        assert_eq!(found("cub::Int2Type<$N>", text), ["::cub::Int2Type<1>", "::cub::Int2Type<3>"]);
        assert_eq!(found("cub::LaneId()", text), ["::cub::LaneId()", "cub::LaneId()"]);
        assert_eq!(found("cub::If<$C, $A, $B>::Type", text), ["::cub::If<(a > 4), int, long>::Type"]);
        assert_eq!(found("::cub::LaneId()", text), ["::cub::LaneId()"]);
    }
}
