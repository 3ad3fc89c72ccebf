//! Where the flags of a list of a Python file end up: through names, copies, sums, dictionaries, and functions.

use std::collections::BTreeSet;
use std::ops::Range;

use tree_sitter::Node;

use super::resolve::arguments;
use crate::engine::syntax::language::{
    Parsed, ancestors, descendants, descendants_holding, significant_children,
};

/// Methods that add to a list.
const ADDING: [&str; 3] = ["append", "extend", "insert"];
/// Functions that give a list with the same flags.
const COPYING: [&str; 7] = ["list", "tuple", "sorted", "reversed", "copy", "copy.copy", "copy.deepcopy"];

/// Where flags end up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ends {
    /// The offsets at which something else than another list takes them.
    uses: BTreeSet<usize>,
    /// The names that they are kept under, each with the offset of its function.
    names: BTreeSet<(usize, String)>,
}

impl Ends {
    /// Whether flags that end up there get wherever the others do.
    pub fn hold(&self, others: &Ends) -> bool {
        match others.uses.is_empty() {
            true => !others.names.is_empty() && self.names.is_superset(&others.names),
            false => self.uses.is_superset(&others.uses),
        }
    }
}

/// Where the flags of a literal end up, or those of what a statement adds.
pub fn ends(node: Node<'_>, parsed: &Parsed) -> Ends {
    let mut flow = Flow { parsed, ends: Ends::default(), calls: BTreeSet::new() };
    flow.climb(node);
    flow.ends
}

/// The list that a node is added to: `f` of `f.append(…)`, `f.extend(…)`, `f += …` and `f = f + …`.
pub fn list_added_to<'t>(added: Node<'t>, parsed: &Parsed) -> Option<Node<'t>> {
    let parent = added.parent()?;
    match parent.kind() {
        "augmented_assignment" => {
            parent.child_by_field_name("left").filter(|_| parent.child_by_field_name("right") == Some(added))
        }
        "argument_list" => {
            let function = parent.parent()?.child_by_field_name("function")?;
            let method = parsed.text(function.child_by_field_name("attribute")?);
            let object = function.child_by_field_name("object")?;
            let is_last = arguments(parent.parent()?).last() == Some(&added);
            (ADDING.contains(&method.as_str()) && is_last).then_some(object)
        }
        "binary_operator" => {
            let list = parent.child_by_field_name("left")?;
            let outer = parent.parent().filter(|outer| outer.kind() == "assignment")?;
            let left = outer.child_by_field_name("left")?;
            (list != added && parsed.text(left) == parsed.text(list)).then_some(left)
        }
        _ => None,
    }
}

/// What a statement adds to the list of this name, which stands there as what is added to.
pub fn added_with<'t>(name: Node<'t>, parsed: &Parsed) -> Option<Node<'t>> {
    let parent = name.parent()?;
    let added = match parent.kind() {
        "augmented_assignment" => parent.child_by_field_name("right"),
        "assignment" => parent.child_by_field_name("right")?.child_by_field_name("right"),
        "attribute" => parent.parent().filter(|call| call.kind() == "call").map(arguments)?.last().copied(),
        _ => None,
    };
    added.filter(|added| list_added_to(*added, parsed) == Some(name))
}

/// The name that the list is assigned to which a literal is, or is a part of.
pub fn begins(node: Node<'_>) -> Option<Node<'_>> {
    let whole = ["binary_operator", "parenthesized_expression", "conditional_expression", "boolean_operator"];
    let outer = ancestors(node).find(|outer| !whole.contains(&outer.kind()))?;
    outer.child_by_field_name("left").filter(|_| outer.kind() == "assignment")
}

/// The blocks, and arms of conditional expressions, around a node that the program may pass by.
pub fn branches(node: Node<'_>) -> Vec<Node<'_>> {
    let is_arm = |inner: Node<'_>, outer: Node<'_>| {
        outer.kind() == "conditional_expression" && outer.named_child(1) != Some(inner)
    };
    let pairs = std::iter::successors(Some(node), Node::parent).zip(ancestors(node));
    let branch = |(inner, outer): (Node<'_>, Node<'_>)| {
        let always = ["function_definition", "class_definition", "with_statement", "finally_clause"];
        (is_arm(inner, outer) || (inner.kind() == "block" && !always.contains(&outer.kind())))
            .then_some(inner.id())
    };
    let ids: Vec<usize> = pairs.filter_map(branch).collect();
    std::iter::once(node).chain(ancestors(node)).filter(|outer| ids.contains(&outer.id())).collect()
}

/// Whether the program never comes to both nodes: they stand in two branches of one statement.
pub fn exclude_each_other(one: Node<'_>, other: Node<'_>) -> bool {
    let others = branches(other);
    branches(one).iter().any(|branch| {
        let mut beside = others.iter().filter(|other| *other != branch);
        beside.any(|other| chooser(*other).is_some() && chooser(*other) == chooser(*branch))
    })
}

/// The statement, or the expression, that a branch belongs to.
fn chooser(branch: Node<'_>) -> Option<Node<'_>> {
    let parent = branch.parent()?;
    if parent.kind().ends_with("_clause") { parent.parent() } else { Some(parent) }
}

fn function_around(node: Node<'_>) -> Option<Node<'_>> {
    ancestors(node).find(|outer| outer.kind() == "function_definition")
}

/// The place of a name, or of `flags["nvcc"]`, in one spelling.
pub fn spelt(name: Node<'_>, parsed: &Parsed) -> String {
    parsed.text(name).replace('\'', "\"").split_whitespace().collect()
}

/// The offset of the function that a name is assigned in, or is a parameter of; 0: the file.
pub fn scope(name: Node<'_>, parsed: &Parsed) -> usize {
    let base = base(name);
    let text = parsed.text(base);
    let nodes: Vec<Node<'_>> = descendants_holding(parsed.root(), &parsed.offsets_of(&text)).collect();
    let gives = |node: &Node<'_>| match node.kind() {
        "assignment" => node.child_by_field_name("left").is_some_and(|left| parsed.text(left) == text),
        "parameters" => significant_children(*node).into_iter().any(|one| parameter(one, parsed) == text),
        _ => false,
    };
    let owners: Vec<Range<usize>> = nodes
        .iter()
        .filter(|node| gives(node))
        .filter_map(|node| Some(function_around(*node)?.byte_range()))
        .collect();
    let around = ancestors(name).filter(|outer| outer.kind() == "function_definition");
    let mut own = around.filter(|outer| owners.contains(&outer.byte_range()));
    own.next().map_or(0, |function| function.start_byte())
}

/// `f` of `f["nvcc"]`.
fn base(name: Node<'_>) -> Node<'_> {
    match name.child_by_field_name("value").filter(|_| name.kind() == "subscript") {
        Some(value) => base(value),
        None => name,
    }
}

fn parameter(node: Node<'_>, parsed: &Parsed) -> String {
    parsed.text(node.child_by_field_name("name").or(node.named_child(0)).unwrap_or(node))
}

/// One walk.
struct Flow<'t> {
    parsed: &'t Parsed,
    ends: Ends,
    calls: BTreeSet<usize>,
}

impl<'t> Flow<'t> {
    /// From a list, or a part of one, to what takes it.
    fn climb(&mut self, node: Node<'t>) {
        let Some(parent) = node.parent() else { return };
        let is = |field| parent.child_by_field_name(field) == Some(node);
        match parent.kind() {
            "parenthesized_expression" | "list_splat" => self.climb(parent),
            "list" | "tuple" | "set" if node.kind() == "list_splat" => self.climb(parent),
            "binary_operator" | "boolean_operator" => self.climb(parent),
            "conditional_expression" if parent.named_child(1) != Some(node) => self.climb(parent),
            "subscript" if is("value") && parent.named_child(1).is_some_and(|key| key.kind() == "slice") => {
                self.climb(parent);
            }
            "assignment" | "augmented_assignment" if is("right") => {
                match parent.child_by_field_name("left") {
                    Some(left) => self.name(left),
                    None => self.end(node),
                }
            }
            "attribute" if is("object") => self.method(node, parent),
            "argument_list" => self.argument(node, parent),
            "pair" if is("value") => self.pair(node, parent),
            "return_statement" => self.returned(node),
            _ => self.end(node),
        }
    }

    fn end(&mut self, node: Node<'t>) {
        self.ends.uses.insert(node.start_byte());
    }

    /// `f.copy()` is the list again; `f.append(…)` is no use of it.
    fn method(&mut self, object: Node<'t>, attribute: Node<'t>) {
        let name = attribute.child_by_field_name("attribute").map(|name| self.parsed.text(name));
        match (name.as_deref(), attribute.parent().filter(|call| call.kind() == "call")) {
            (Some("copy"), Some(call)) => self.climb(call),
            (Some("append" | "extend" | "insert" | "remove" | "sort" | "clear" | "pop"), Some(_)) => {}
            _ => self.end(object),
        }
    }

    fn argument(&mut self, node: Node<'t>, list: Node<'t>) {
        if let Some(name) = list_added_to(node, self.parsed) {
            return self.name(name);
        }
        let call = list.parent().filter(|call| call.kind() == "call");
        let Some((call, function)) =
            call.and_then(|call| Some((call, call.child_by_field_name("function")?)))
        else {
            return self.end(node);
        };
        let text = self.parsed.text(function);
        if COPYING.contains(&text.as_str()) && arguments(call) == [node] {
            return self.climb(call);
        }
        let at = arguments(call).iter().position(|one| *one == node);
        let parameters =
            self.definition(&text).and_then(|definition| definition.child_by_field_name("parameters"));
        let parameters = parameters.map(significant_children).unwrap_or_default();
        let names: Vec<Node<'t>> = parameters.into_iter().filter(Node::is_named).collect();
        match at.and_then(|at| names.get(at)) {
            Some(name) if name.kind() == "identifier" => self.name(*name),
            _ => self.end(node),
        }
    }

    /// `{"nvcc": […]}` under a name is kept as `name["nvcc"]`.
    fn pair(&mut self, node: Node<'t>, pair: Node<'t>) {
        let assignment = pair.parent().and_then(|dictionary| dictionary.parent());
        let left = assignment.filter(|outer| outer.kind() == "assignment");
        let left = left.and_then(|outer| outer.child_by_field_name("left"));
        match (left.filter(|left| left.kind() == "identifier"), pair.child_by_field_name("key")) {
            (Some(left), Some(key)) => {
                let text = format!("{}[{}]", self.parsed.text(left), spelt(key, self.parsed));
                self.named(left, text);
            }
            _ => self.end(node),
        }
    }

    fn returned(&mut self, node: Node<'t>) {
        let name = function_around(node).and_then(|function| function.child_by_field_name("name"));
        let Some(name) = name.map(|name| self.parsed.text(name)) else { return self.end(node) };
        let is_call = |one: &Node<'t>| {
            one.kind() == "call"
                && one.child_by_field_name("function").is_some_and(|called| self.parsed.text(called) == name)
        };
        let calls: Vec<Node<'t>> = self.holding(&name).into_iter().filter(is_call).collect();
        if calls.is_empty() {
            self.end(node);
        }
        for call in calls {
            if self.calls.insert(call.start_byte()) {
                self.climb(call);
            }
        }
    }

    /// What is kept under a name goes wherever the name is read.
    fn name(&mut self, name: Node<'t>) {
        match name.kind() {
            "identifier" | "subscript" | "attribute" => self.named(name, spelt(name, self.parsed)),
            _ => self.end(name),
        }
    }

    fn named(&mut self, name: Node<'t>, text: String) {
        let scope = scope(name, self.parsed);
        if !self.ends.names.insert((scope, text.clone())) {
            return;
        }
        let base = self.parsed.text(base(name));
        for node in self.holding(&base) {
            let is_it = matches!(node.kind(), "identifier" | "subscript" | "attribute")
                && spelt(node, self.parsed) == text;
            // All of a dictionary is read with one of its lists.
            let is_whole = text.contains('[')
                && node.kind() == "identifier"
                && self.parsed.text(node) == base
                && node.parent().is_none_or(|parent| {
                    parent.kind() != "subscript" || parent.child_by_field_name("value") != Some(node)
                });
            if (is_it || is_whole) && is_read(node) && self::scope(node, self.parsed) == scope {
                self.climb(node);
            }
        }
    }

    fn holding(&self, text: &str) -> Vec<Node<'t>> {
        descendants_holding(self.parsed.root(), &self.parsed.offsets_of(text)).collect()
    }

    fn definition(&self, name: &str) -> Option<Node<'t>> {
        let mut functions =
            self.holding(name).into_iter().filter(|node| node.kind() == "function_definition");
        functions.find(|node| {
            node.child_by_field_name("name").is_some_and(|inner| self.parsed.text(inner) == name)
        })
    }
}

/// Whether a name stands there for its value.
fn is_read(name: Node<'_>) -> bool {
    let Some(parent) = name.parent() else { return false };
    let is = |field| parent.child_by_field_name(field) == Some(name);
    match parent.kind() {
        "assignment" | "augmented_assignment" => !is("left"),
        "default_parameter" | "typed_default_parameter" | "keyword_argument" => !is("name"),
        "parameters" | "lambda_parameters" | "typed_parameter" => false,
        "global_statement" | "nonlocal_statement" | "delete_statement" => false,
        "function_definition" | "class_definition" => !is("name"),
        "attribute" => is("object"),
        _ => true,
    }
}

/// The statements that give a name another list, and do not read it.
pub fn begun<'t>(name: Node<'t>, parsed: &'t Parsed) -> Vec<Node<'t>> {
    let (text, scope) = (spelt(name, parsed), scope(name, parsed));
    let offsets = parsed.offsets_of(&parsed.text(base(name)));
    let nodes = descendants_holding(parsed.root(), &offsets);
    let begins = |node: &Node<'_>| {
        let left = node.child_by_field_name("left").filter(|_| node.kind() == "assignment");
        let right = node.child_by_field_name("right");
        left.is_some_and(|left| spelt(left, parsed) == text && self::scope(left, parsed) == scope)
            && !right.is_some_and(|right| descendants(right).any(|inner| spelt(inner, parsed) == text))
    };
    nodes.filter(begins).collect()
}
