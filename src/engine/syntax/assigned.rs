//! What a name of a Python file holds where it is used, as far as one assignment before it tells.

use tree_sitter::Node;

use super::language::{Parsed, ancestors, descendants, descendants_holding, significant_children};

/// The value of an assignment, or one of the values that it takes apart.
#[derive(Debug, Clone, Copy)]
pub struct Assigned<'t> {
    /// What stands on the right.
    pub value: Node<'t>,
    /// Which element of it, and of how many.
    pub element: Option<(usize, usize)>,
}

/// The only assignment to a name in its scope, where it stands before the place; else the file's own.
pub fn assigned<'t>(name: Node<'t>, parsed: &'t Parsed) -> Option<Assigned<'t>> {
    let text = parsed.text(name);
    let offsets = parsed.offsets_of(&text);
    let all: Vec<Node<'_>> = descendants_holding(parsed.root(), &offsets)
        .filter(|node| node.kind() == "identifier" && parsed.text(*node) == text && is_bound(*node))
        .collect();
    let own = function(name).filter(|own| all.iter().any(|node| function(*node) == Some(*own)));
    let mut bound = all.into_iter().filter(|node| function(*node) == own);
    let only = bound.next().filter(|_| bound.next().is_none())?;
    let found = taken_apart(only)?;
    (found.value.end_byte() <= name.start_byte()).then_some(found)
}

/// The only value that the function of a call returns, where it is defined in the file before the call.
pub fn returned<'t>(call: Node<'t>, parsed: &'t Parsed) -> Option<Node<'t>> {
    let name = parsed.text(call.child_by_field_name("function")?);
    let is_it = |node: &Node<'_>| {
        let own = node.child_by_field_name("name").filter(|_| node.kind() == "function_definition");
        own.is_some_and(|own| parsed.text(own) == name) && node.end_byte() <= call.start_byte()
    };
    let defined = descendants_holding(parsed.root(), &parsed.offsets_of(&name)).find(is_it)?;
    let mut returns = descendants(defined).filter(|node| node.kind() == "return_statement");
    let only = returns.next().filter(|_| returns.next().is_none())?;
    only.named_child(0)
}

/// The function around a node.
fn function(node: Node<'_>) -> Option<Node<'_>> {
    ancestors(node).find(|outer| matches!(outer.kind(), "function_definition" | "lambda"))
}

/// Whether a name gets a value here: by an assignment, a loop, a parameter, or as the name of something imported.
fn is_bound(name: Node<'_>) -> bool {
    let mut inner = name;
    for outer in ancestors(name) {
        let left = outer.child_by_field_name("left") == Some(inner);
        match outer.kind() {
            "pattern_list"
            | "tuple_pattern"
            | "list_pattern"
            | "list_splat_pattern"
            | "default_parameter"
            | "typed_parameter"
            | "typed_default_parameter"
            | "dotted_name"
            | "as_pattern_target" => inner = outer,
            "assignment" | "augmented_assignment" | "for_statement" | "for_in_clause" => return left,
            "named_expression" => return outer.child_by_field_name("name") == Some(inner),
            // `from packaging.version import Version` gives no `version`.
            "import_from_statement" => return outer.child_by_field_name("module_name") != Some(inner),
            kind => {
                return matches!(kind, "parameters" | "as_pattern" | "global_statement")
                    || kind.contains("import");
            }
        }
    }
    false
}

/// What a bound name gets: the right side of its assignment, or an element of it.
fn taken_apart(name: Node<'_>) -> Option<Assigned<'_>> {
    let outer = name.parent()?;
    if outer.kind() == "assignment" {
        return Some(Assigned { value: outer.child_by_field_name("right")?, element: None });
    }
    let assignment = outer.parent().filter(|outer| outer.kind() == "assignment")?;
    let elements: Vec<Node<'_>> = significant_children(outer).into_iter().filter(Node::is_named).collect();
    let index = elements.iter().position(|element| *element == name)?;
    let value = assignment.child_by_field_name("right")?;
    let is_plain = elements.iter().all(|element| element.kind() == "identifier");
    is_plain.then_some(Assigned { value, element: Some((index, elements.len())) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::syntax::Language;

    /// What the last `v` of a text holds.
    fn held(text: &str) -> String {
        let parsed = Parsed::new(Language::Python, text.as_bytes().into()).expect("parses");
        let names = descendants(parsed.root())
            .filter(|node| node.kind() == "identifier" && parsed.text(*node) == "v");
        let last = names.max_by_key(Node::start_byte).expect("v");
        assigned(last, &parsed).map_or("-".to_string(), |found| {
            let element = found.element.map_or(String::new(), |(index, count)| format!("#{index}/{count}"));
            parsed.text(found.value) + &element
        })
    }

    #[test]
    fn one_assignment_before_the_place_tells() {
        assert_eq!(held("v = f()\nif v > 1: pass\n"), "f()");
        assert_eq!(held("_, v = f()\nif v > 1: pass\n"), "f()#1/2");
        assert_eq!(held("(a, b, v) = f()\nprint(v)\n"), "f()#2/3");
        assert_eq!(held("v = f()\ndef g():\n    return v\n"), "f()");
        assert_eq!(held("def g():\n    v = 1\nv = f()\nprint(v)\n"), "f()");
        assert_eq!(held("from x.v import y\nv = f()\nprint(v)\n"), "f()");
    }

    #[test]
    fn more_than_one_or_a_later_one_tells_nothing() {
        for text in [
            "v = 1\nv = 2\nprint(v)\n",
            "v = 1\nv += 2\nprint(v)\n",
            "v = 1\nfor v in x: print(v)\n",
            "v = 1\ndef g(v=None):\n    return v\n",
            "from x import v\nprint(v)\n",
            "_, *v = f()\nprint(v)\n",
            "print(v)\n",
        ] {
            assert_eq!(held(text), "-", "{text}");
        }
    }
}
