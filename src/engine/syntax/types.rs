//! The type of a name, as far as a declaration in sight tells it.

use tree_sitter::Node;

use super::language::{Parsed, ancestors, descendants};

/// The types that C++ declarations give a name: those of the function around an offset, or of the whole file where that
/// has none. Nothing is known within the body of a macro.
pub fn types_in_sight(parsed: &Parsed, offset: usize, name: &str) -> Vec<String> {
    let place = parsed.node_at(&(offset..offset)).filter(|place| parsed.definition(*place).is_none());
    let Some(place) = place else { return Vec::new() };
    let function = ancestors(place).filter(|outer| outer.kind() == "function_definition").last();
    let near = function.map_or_else(Vec::new, |function| types(parsed, descendants(function), name));
    if near.is_empty() { types(parsed, parsed.nodes(), name) } else { near }
}

fn types<'t>(parsed: &Parsed, nodes: impl Iterator<Item = Node<'t>>, name: &str) -> Vec<String> {
    let declares = |node: &Node<'_>| declarators(*node).iter().any(|declared| parsed.text(*declared) == name);
    let types = nodes.filter(declares).filter_map(|node| node.child_by_field_name("type"));
    types.map(|node| parsed.text(node)).collect()
}

/// The names that a node declares, with a type in front of them.
fn declarators(node: Node<'_>) -> Vec<Node<'_>> {
    if node.kind() == "function_definition" || node.child_by_field_name("type").is_none() {
        return Vec::new();
    }
    let mut cursor = node.walk();
    node.children_by_field_name("declarator", &mut cursor).map(innermost).collect()
}

/// `x` of `*x`, `&x`, `x[3]`, `x = 1`.
fn innermost(declarator: Node<'_>) -> Node<'_> {
    std::iter::successors(Some(declarator), |node| inner(*node)).last().unwrap_or(declarator)
}

fn inner(declarator: Node<'_>) -> Option<Node<'_>> {
    match declarator.kind() {
        "reference_declarator" => declarator.named_child(0),
        _ => declarator.child_by_field_name("declarator"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::syntax::Language;

    const TEXT: &str = "#define D(x) x.data<float>()\n\
        void f(const at::Tensor &x, Blob<T>* b, int n = 3) {\n\
          cudaDeviceProp props[8], other;\n\
          for (const auto& q : v) {}\n\
          auto l = [&](Blob t) { t.data<float>(); };\n\
        }\n\
        struct S { Blob<float> blob_; void g() { blob_.data<float>(); x.data<float>(); } };\n\
        at::Tensor *x;\n";

    fn seen(name: &str, place: &str) -> Vec<String> {
        let parsed = Parsed::new(Language::Cpp, TEXT.as_bytes().into()).expect("parses");
        types_in_sight(&parsed, TEXT.find(place).expect(place), name)
    }

    #[test]
    fn the_function_comes_before_the_file() {
        assert_eq!(seen("x", "cudaDeviceProp"), ["at::Tensor"]);
        assert_eq!(seen("b", "props"), ["Blob<T>"]);
        assert_eq!(seen("n", "props"), ["int"]);
        assert_eq!(
            (seen("props", "auto l"), seen("other", "auto l")),
            (vec!["cudaDeviceProp".to_string()], vec!["cudaDeviceProp".to_string()])
        );
        assert_eq!(seen("q", "auto l"), ["auto"]);
        assert_eq!(seen("t", "t.data"), ["Blob"]);
        assert_eq!(seen("blob_", "blob_.data"), ["Blob<float>"]);
        assert!(seen("y", "blob_.data").is_empty());
    }

    #[test]
    fn a_parameter_of_a_macro_has_no_type() {
        assert!(seen("x", "x.data<float>()\nvoid").is_empty());
    }
}
