//! Whether a name certainly has a value at a place, so that a guard may read it there.

use tree_sitter::Node;

use super::guard::ANY_TOOLKIT;
use crate::engine::syntax::language::{
    Parsed, ancestors, descendants, descendants_holding, significant_children,
};

/// What must be asked before a name is read at a place, with its `and`: nothing where every way to the place gives it a
/// value, in a function around it or in the file itself, or the file reads it there; `CUDA_HOME is not None` where
/// it has one under that alone. Where it may have no value for another reason, none.
pub(super) fn known_if(name: Node<'_>, place: usize, parsed: &Parsed) -> Option<String> {
    if name.kind() != "identifier" {
        return Some(String::new());
    }
    let name = Name { text: parsed.text(name), parsed };
    if name.is_deleted_before(place) {
        return None;
    }
    let own = name.owner(place);
    let is_own = |node: &Node<'_>| own.is_none_or(|owner| owner.byte_range().contains(&node.start_byte()));
    let before: Vec<Node<'_>> = statements_before(place, parsed).into_iter().filter(is_own).collect();
    if before.iter().any(|statement| name.is_given_by(*statement)) || name.is_parameter(place) {
        return Some(String::new());
    }
    // What a loop or a branch may have given it is read all the same where the file reads it.
    if name.is_given_before(place) && name.is_read_beside(place) {
        return Some(String::new());
    }
    before.iter().find_map(|statement| name.given_under(*statement)).map(|asked| format!("{asked} and "))
}

/// A name of a file.
struct Name<'a> {
    text: String,
    parsed: &'a Parsed,
}

impl<'a> Name<'a> {
    /// Whether this is the name, or one of several that are assigned.
    fn is_in(&self, node: Node<'_>) -> bool {
        descendants(node).any(|inner| inner.kind() == "identifier" && self.parsed.text(inner) == self.text)
    }

    fn nodes(&self) -> impl Iterator<Item = Node<'a>> {
        descendants_holding(self.parsed.root(), &self.parsed.offsets_of(&self.text))
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// The function around a place whose own name it is, by an assignment anywhere in it.
    fn owner(&self, place: usize) -> Option<Node<'a>> {
        let mut functions = around(place, self.parsed).into_iter().filter(|outer| is_function(*outer));
        functions.find(|function| {
            let is_own =
                |node: &Node<'_>| ancestors(*node).find(|outer| is_function(*outer)) == Some(*function);
            let mut nodes = self.nodes().filter(is_own).collect::<Vec<_>>().into_iter();
            let is_declared = nodes.clone().any(|node| node.kind() == "global_statement" && self.is_in(node));
            !is_declared && nodes.any(|node| self.is_assigned_by(node))
        })
    }

    fn is_parameter(&self, place: usize) -> bool {
        around(place, self.parsed).into_iter().any(|outer| {
            outer.child_by_field_name("parameters").is_some_and(|parameters| self.is_in(parameters))
        })
    }

    fn is_deleted_before(&self, place: usize) -> bool {
        self.nodes()
            .any(|node| node.kind() == "delete_statement" && self.is_in(node) && in_sight(node, place))
    }

    fn is_given_before(&self, place: usize) -> bool {
        self.nodes().any(|node| self.is_assigned_by(node) && in_sight(node, place))
    }

    fn is_assigned_by(&self, node: Node<'_>) -> bool {
        let left = node.child_by_field_name("left").filter(|_| node.kind() == "assignment");
        left.is_some_and(|left| self.is_in(left))
    }

    /// Whether the file compares the name on every way that leads to the place, in the same function.
    fn is_read_beside(&self, place: usize) -> bool {
        let here = around(place, self.parsed).into_iter().find(|outer| is_function(*outer));
        let branches = |node| ancestors(node).filter(|outer| outer.kind() == "block" && !is_body(*outer));
        let mut compared =
            self.nodes().filter(|node| node.kind() == "comparison_operator" && self.is_in(*node));
        compared.any(|node| {
            ancestors(node).find(|outer| is_function(*outer)) == here
                && branches(node).all(|branch| branch.byte_range().contains(&place))
        })
    }

    /// Whether a statement gives the name a value on every way that leads past it.
    fn is_given_by(&self, statement: Node<'_>) -> bool {
        let block = |owner: Node<'_>| {
            let named = ["body", "consequence"].iter().find_map(|field| owner.child_by_field_name(field));
            let block = named
                .or_else(|| significant_children(owner).into_iter().find(|child| child.kind() == "block"));
            block.is_some_and(|block| self.is_given_or_left(block))
        };
        let clauses = |kinds: &[&str]| -> Vec<Node<'_>> {
            significant_children(statement)
                .into_iter()
                .filter(|child| kinds.contains(&child.kind()))
                .collect()
        };
        match statement.kind() {
            "expression_statement" => {
                significant_children(statement).into_iter().any(|one| self.is_assigned_by(one))
            }
            "with_statement" => block(statement),
            "if_statement" => {
                let others = clauses(&["elif_clause", "else_clause"]);
                let is_whole = others.last().is_some_and(|last| last.kind() == "else_clause");
                let some = descendants(statement).any(|inner| self.is_assigned_by(inner));
                is_whole && some && block(statement) && others.into_iter().all(block)
            }
            "try_statement" => {
                let at_last = clauses(&["finally_clause"]).into_iter().any(block);
                let handlers = clauses(&["except_clause", "except_group_clause"]);
                let passed = block(statement) || clauses(&["else_clause"]).into_iter().any(block);
                let some = descendants(statement).any(|inner| self.is_assigned_by(inner));
                some && (at_last || (passed && handlers.into_iter().all(block)))
            }
            _ => false,
        }
    }

    /// Whether a block gives the name a value, or is left for good.
    fn is_given_or_left(&self, block: Node<'_>) -> bool {
        let statements = significant_children(block);
        statements.into_iter().any(|statement| self.is_given_by(statement) || leaves(statement, self.parsed))
    }

    /// The condition, that there is a toolkit, under which alone a statement gives the name a value.
    fn given_under(&self, statement: Node<'_>) -> Option<String> {
        let condition =
            statement.child_by_field_name("condition").filter(|_| statement.kind() == "if_statement")?;
        let alone =
            significant_children(statement).into_iter().all(|child| !child.kind().ends_with("_clause"));
        let gives = statement.child_by_field_name("consequence").is_some_and(|block| {
            significant_children(block).into_iter().any(|inner| self.is_given_by(inner))
        });
        let condition = self.parsed.text(condition);
        (alone && gives && ANY_TOOLKIT.contains(&condition.as_str())).then_some(condition)
    }
}

/// Whether a statement ends the program, the function, or the turn of a loop.
fn leaves(statement: Node<'_>, parsed: &Parsed) -> bool {
    const LEAVING: [&str; 4] = ["sys.exit", "exit", "quit", "os._exit"];
    match statement.kind() {
        "raise_statement" | "return_statement" | "continue_statement" | "break_statement" => true,
        "expression_statement" => {
            let call = statement.named_child(0).and_then(|call| call.child_by_field_name("function"));
            call.is_some_and(|function| LEAVING.contains(&parsed.text(function).as_str()))
        }
        _ => false,
    }
}

/// The nodes around a place, the innermost first.
fn around(place: usize, parsed: &Parsed) -> Vec<Node<'_>> {
    let node = parsed.root().descendant_for_byte_range(place, place);
    node.into_iter().flat_map(|node| std::iter::once(node).chain(ancestors(node))).collect()
}

/// The statements that the program has passed when it gets to a place, the nearest first. What a class assigns is
/// no name of the functions in it.
fn statements_before(place: usize, parsed: &Parsed) -> Vec<Node<'_>> {
    let around = around(place, parsed);
    let innermost = around.iter().position(|outer| is_function(*outer)).unwrap_or(around.len());
    let is_of_class =
        |block: &Node<'_>| block.parent().is_some_and(|parent| parent.kind() == "class_definition");
    let blocks = around.iter().enumerate().filter(|(at, outer)| {
        matches!(outer.kind(), "block" | "module") && (*at < innermost || !is_of_class(outer))
    });
    let passed = blocks.flat_map(|(_, block)| {
        let before =
            significant_children(*block).into_iter().filter(|statement| statement.end_byte() <= place);
        before.rev().collect::<Vec<_>>()
    });
    passed.collect()
}

/// Whether a node stands before a place, in the same function, one around it, or the file itself.
fn in_sight(node: Node<'_>, place: usize) -> bool {
    let function = ancestors(node).find(|outer| is_function(*outer));
    node.end_byte() <= place && function.is_none_or(|scope| scope.byte_range().contains(&place))
}

fn is_function(node: Node<'_>) -> bool {
    node.kind() == "function_definition"
}

/// Whether a block is all of a function or a class.
fn is_body(block: Node<'_>) -> bool {
    block.parent().is_some_and(|parent| is_function(parent) || parent.kind() == "class_definition")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::syntax::Language;

    /// What must be asked before `v` is read in the last line.
    fn asked(text: &str) -> Option<String> {
        asked_in(&format!("{text}\nif CUDA_HOME:\n    v\nhere()\n"))
    }

    /// What must be asked where `here` stands before the last `v` is read.
    fn asked_in(text: &str) -> Option<String> {
        let parsed = Parsed::new(Language::Python, text.as_bytes().into()).expect("python");
        let (at, place) = (text.rfind("v\n").expect("name"), text.rfind("here").expect("place"));
        let name = parsed.root().named_descendant_for_byte_range(at, at).expect("name");
        known_if(name, place, &parsed)
    }

    #[test]
    fn a_guard_asks_first_whether_its_name_has_a_value() {
        let plain = Some(String::new());
        let there = Some("CUDA_HOME is not None and ".to_string());
        assert_eq!(asked("v = get()"), plain);
        assert_eq!(asked("w = get()"), None);
        let home = "if CUDA_HOME is not None:\n    _, v = get()";
        assert_eq!(asked(home), there);
        assert_eq!(asked(&format!("{home}\nif v >= 1: pass")), plain);
        assert_eq!(asked(&format!("{home}\n    if v >= 1: pass")), there);
        assert_eq!(asked("if a or b:\n    v = get()"), None);
        assert_eq!(asked("if a:\n    v = get()\nelse:\n    v = None"), plain);
        assert_eq!(asked("if a:\n    v = get()\nelif b:\n    v = 1\nelse:\n    v = 2"), plain);
        assert_eq!(asked("if a:\n    v = get()\nelif b:\n    v = 1"), None);
        assert_eq!(asked("if a:\n    v = get()\nelif b:\n    pass\nelse:\n    v = 2"), None);
        assert_eq!(asked("if a:\n    v = get()\nelse:\n    raise OSError"), plain);
        assert_eq!(asked("if a:\n    v = get()\nelse:\n    sys.exit(1)"), plain);
        assert_eq!(asked("if a:\n    v = get()\nelse:\n    if b:\n        raise OSError"), None);
        assert_eq!(asked("if a:\n    v = get()\nelif b:\n    print()"), None);
        assert_eq!(asked("if a:\n    if b:\n        v = get()"), None);
        assert_eq!(asked("if a:\n    v = get()\nif b:\n    v = get()"), None);
        assert_eq!(asked("v = get()\ndel v"), None);
        assert_eq!(asked("with torch.device(0):\n    v = get()"), plain);
    }

    #[test]
    fn a_loop_and_a_try_may_give_no_value() {
        let plain = Some(String::new());
        assert_eq!(asked("try:\n    v = get()\nexcept OSError:\n    print()"), None);
        assert_eq!(asked("try:\n    v = get()\nexcept OSError:\n    v = 1"), plain);
        assert_eq!(asked("try:\n    v = get()\nexcept OSError:\n    raise RuntimeError()"), plain);
        assert_eq!(
            asked("try:\n    v = get()\nexcept OSError:\n    v = 1\nexcept ValueError:\n    pass"),
            None
        );
        assert_eq!(asked("try:\n    get()\nfinally:\n    v = 1"), plain);
        assert_eq!(asked("try:\n    w = get()\nexcept OSError:\n    w = 1\nelse:\n    v = w"), None);
        assert_eq!(asked("for w in get():\n    v = w"), None);
        assert_eq!(asked("while get():\n    v = 1"), None);
        assert_eq!(asked("match get():\n    case 1:\n        v = 1"), None);
    }

    #[test]
    fn a_name_of_a_function_has_no_value_outside() {
        assert_eq!(asked("def f():\n    v = get()"), None);
        assert_eq!(asked("def f():\n    v = get()\n    if v < 1: pass"), None);
        assert_eq!(
            asked("if CUDA_HOME is not None:\n    _, v = get()\ndef f():\n    if v < 1: pass"),
            Some("CUDA_HOME is not None and ".to_string())
        );
        assert_eq!(asked_in("class A:\n    v = 1\n    def f(self):\n        here()\n        v\n"), None);
        assert_eq!(asked_in("v = 1\ndef f():\n    here()\n    v = 2\n    v\n"), None);
        assert_eq!(
            asked_in("v = 1\ndef f():\n    global v\n    here()\n    v = 2\n    v\n"),
            Some(String::new())
        );
        let within = "if a:\n    v = get()\n    v >= Version(\"1\")\n";
        let parsed = Parsed::new(Language::Python, within.as_bytes().into()).expect("python");
        let place = within.rfind("v >=").expect("place");
        let name = parsed.root().named_descendant_for_byte_range(place, place).expect("name");
        assert_eq!(known_if(name, place, &parsed), Some(String::new()));
    }
}
