//! What an expression stands for: a literal in the file, a variable of the environment, what the machine has.

use tree_sitter::Node;

use crate::engine::syntax::language::{
    Parsed, ancestors, descendants, descendants_holding, significant_children,
};

/// Where the value of an expression comes from.
#[derive(Debug, Clone, Copy)]
pub enum Origin<'t> {
    /// A list, tuple, set or string that stands in the file.
    Literal {
        /// It.
        node: Node<'t>,
        /// Whether it is only the default of a variable.
        default_of: Option<Node<'t>>,
        /// Whether it is a string that is cut into words.
        split: bool,
    },
    /// A variable of the environment, without a default.
    Environment(Node<'t>),
    /// The GPUs of the machine that builds.
    Machine,
    /// The source does not tell.
    Unknown,
}

/// How far names are followed.
const STEPS: usize = 6;

/// Follows names that are assigned once, calls that only convert, and parameters of functions that are called once.
pub fn resolve<'t>(node: Node<'t>, parsed: &'t Parsed) -> Origin<'t> {
    Resolving { parsed, left: STEPS }.origin(node)
}

/// What a name stands for: the one value that it is assigned, or that its function is called with.
pub fn value_of<'t>(name: Node<'t>, parsed: &'t Parsed) -> Option<Node<'t>> {
    Resolving { parsed, left: STEPS }.value_of(name)
}

#[derive(Clone, Copy)]
struct Resolving<'t> {
    parsed: &'t Parsed,
    left: usize,
}

impl<'t> Resolving<'t> {
    fn origin(self, node: Node<'t>) -> Origin<'t> {
        let Some(left) = self.left.checked_sub(1) else { return Origin::Unknown };
        let next = Self { left, ..self };
        match node.kind() {
            "list" | "tuple" | "set" => Origin::Literal { node, default_of: None, split: false },
            "string" if !has_interpolation(node) => Origin::Literal { node, default_of: None, split: false },
            "parenthesized_expression" | "list_splat" => next.of_child(node.named_child(0)),
            "boolean_operator" => next.alternative(node),
            "identifier" => next.of_child(self.value_of(node)),
            "subscript" if self.is_environment(node.child_by_field_name("value")) => {
                next.environment(node.child_by_field_name("subscript"))
            }
            "call" => next.call(node),
            "list_comprehension" | "generator_expression" | "set_comprehension" => {
                let mut clauses = descendants(node).filter(|inner| inner.kind() == "for_in_clause");
                next.of_child(clauses.next().and_then(|clause| clause.child_by_field_name("right")))
            }
            _ => Origin::Unknown,
        }
    }

    fn of_child(self, node: Option<Node<'t>>) -> Origin<'t> {
        node.map_or(Origin::Unknown, |node| self.origin(node))
    }

    fn environment(self, name: Option<Node<'t>>) -> Origin<'t> {
        name.map_or(Origin::Unknown, Origin::Environment)
    }

    /// `os.environ.get("X") or "8.0"`
    fn alternative(self, node: Node<'t>) -> Origin<'t> {
        let side = |field| self.of_child(node.child_by_field_name(field));
        match (side("left"), side("right")) {
            (Origin::Environment(name), Origin::Literal { node, split, .. }) => {
                Origin::Literal { node, default_of: Some(name), split }
            }
            _ => Origin::Unknown,
        }
    }

    fn call(self, node: Node<'t>) -> Origin<'t> {
        let Some(function) = node.child_by_field_name("function") else { return Origin::Unknown };
        let arguments = arguments(node);
        let text = self.parsed.text(function);
        let name = text.rsplit('.').next().unwrap_or_default();
        match (name, arguments.as_slice()) {
            ("getenv", [only]) => Origin::Environment(*only),
            ("get", [only]) if text.contains("environ") => Origin::Environment(*only),
            ("getenv" | "get" | "setdefault", [variable, default, ..]) => match self.origin(*default) {
                Origin::Literal { node, split, .. } if !is_empty(node, self.parsed) => {
                    Origin::Literal { node, default_of: Some(*variable), split }
                }
                _ if text.contains("env") => Origin::Environment(*variable),
                _ => Origin::Unknown,
            },
            ("set" | "frozenset" | "tuple" | "list" | "sorted" | "join" | "reversed", [only]) => {
                self.origin(*only)
            }
            ("split", _) => match self.of_child(function.child_by_field_name("object")) {
                Origin::Literal { node, default_of, .. } => Origin::Literal { node, default_of, split: true },
                other => other,
            },
            ("strip" | "replace" | "lower" | "upper", _) => {
                self.of_child(function.child_by_field_name("object"))
            }
            _ if self.asks_the_machine(function, &text) => Origin::Machine,
            _ => Origin::Unknown,
        }
    }

    /// Whether a function is PyTorch's question for the GPU, or one of the file that asks it.
    fn asks_the_machine(self, function: Node<'t>, text: &str) -> bool {
        const QUESTIONS: [&str; 4] =
            ["get_device_capability", "get_device_properties", "nvidia-smi", "compute_cap"];
        let asks = |text: &str| QUESTIONS.iter().any(|question| text.contains(question));
        let body = || self.definition(function).map(|body| self.parsed.text(body));
        asks(text) || body().is_some_and(|body| asks(&body))
    }

    /// The function of the file with this name.
    fn definition(self, name: Node<'t>) -> Option<Node<'t>> {
        let mut functions = self
            .named(name)
            .filter(|node| node.kind() == "function_definition" && self.is_it(*node, "name", name));
        functions.next()
    }

    /// Nodes around the places of a name.
    fn named(self, name: Node<'t>) -> impl Iterator<Item = Node<'t>> {
        let offsets = self.parsed.offsets_of(&self.parsed.text(name));
        descendants_holding(self.parsed.root(), &offsets).collect::<Vec<_>>().into_iter()
    }

    fn is_it(self, node: Node<'t>, field: &str, name: Node<'t>) -> bool {
        node.child_by_field_name(field).is_some_and(|inner| self.parsed.text(inner) == self.parsed.text(name))
    }

    /// What a name stands for: the one value that it is assigned, or that its function is called with. What is added to a
    /// list later, by `+=` or by `append`, is not it.
    fn value_of(self, name: Node<'t>) -> Option<Node<'t>> {
        let is_assigned = |node: &Node<'t>| {
            matches!(node.kind(), "assignment" | "for_statement" | "for_in_clause")
                && self.is_it(*node, "left", name)
        };
        let mut assigned = self.named(name).filter(is_assigned);
        match (assigned.next(), assigned.next()) {
            (Some(only), None) if only.kind() == "assignment" => only.child_by_field_name("right"),
            (None, _) => self.argument_for(name),
            _ => None,
        }
    }

    /// The argument of the one call of the function whose parameter a name is.
    fn argument_for(self, name: Node<'t>) -> Option<Node<'t>> {
        let function = ancestors(name).find(|node| node.kind() == "function_definition")?;
        let parameters = function.child_by_field_name("parameters")?;
        let parameters: Vec<Node<'t>> =
            significant_children(parameters).into_iter().filter(Node::is_named).collect();
        let is_it = |node: &Node<'t>| {
            let own = node.child_by_field_name("name").or(node.named_child(0)).unwrap_or(*node);
            self.parsed.text(own) == self.parsed.text(name)
        };
        let position = parameters.iter().position(is_it)?;
        let function = function.child_by_field_name("name")?;
        let mut calls = self
            .named(function)
            .filter(|node| node.kind() == "call" && self.is_it(*node, "function", function));
        match (calls.next(), calls.next()) {
            (Some(only), None) => arguments(only).get(position).copied(),
            _ => None,
        }
    }

    fn is_environment(self, node: Option<Node<'t>>) -> bool {
        node.is_some_and(|node| self.parsed.text(node).ends_with("environ"))
    }
}

/// The arguments of a call, in order.
pub fn arguments(call: Node<'_>) -> Vec<Node<'_>> {
    let list = call.child_by_field_name("arguments");
    let children = list.map(significant_children).unwrap_or_default();
    children.into_iter().filter(Node::is_named).collect()
}

/// Whether a string holds code that is only known when the program runs.
pub fn has_interpolation(string: Node<'_>) -> bool {
    let mut cursor = string.walk();
    string.named_children(&mut cursor).any(|child| child.kind() == "interpolation")
}

fn is_empty(node: Node<'_>, parsed: &Parsed) -> bool {
    node.kind() == "string" && parsed.text(node).trim_matches(['"', '\'']).trim().is_empty()
}
