//! Where the flags of a list of a Python file end up: through names, copies, sums, dictionaries, and functions.

use std::collections::BTreeSet;
use std::rc::Rc;

use tree_sitter::Node;

use super::list::resolve::arguments;
use crate::engine::memo::Memo;
use crate::engine::syntax::language::{
    Parsed, ancestors, descendants, descendants_holding, significant_children,
};

/// Methods that add to a list.
const ADDING: [&str; 3] = ["append", "extend", "insert"];
/// Methods that change a list and give nothing of it away.
const CHANGING: [&str; 7] = ["append", "extend", "insert", "remove", "sort", "clear", "pop"];
/// Functions that give a list with the same flags.
const COPYING: [&str; 7] = ["list", "tuple", "sorted", "reversed", "copy", "copy.copy", "copy.deepcopy"];

/// A name of a file, or `flags["nvcc"]`: what is kept under it is one list at a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The offset of the function that it belongs to; 0: the file.
    scope: usize,
    /// It, in one spelling.
    spelt: String,
    /// `flags` of `flags["nvcc"]`.
    base: String,
}

impl Place {
    /// Whether both are spelt alike, as a parameter and what its function is called with may be.
    pub fn is_like(&self, other: &Place) -> bool {
        self.spelt == other.spelt
    }
}

/// Where flags end up.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// The offsets at which something else than another list takes them.
    uses: BTreeSet<usize>,
    /// The names that they are kept under.
    names: BTreeSet<Place>,
}

impl Ends {
    /// Whether flags that end up there get wherever the others do.
    pub fn hold(&self, others: &Ends) -> bool {
        match (others.uses.is_empty(), others.names.is_empty()) {
            (true, true) => false,
            _ if std::ptr::eq(self, others) => true,
            (true, false) => self.names.is_superset(&others.names),
            (false, _) => self.uses.is_superset(&others.uses),
        }
    }
}

/// What takes a list, or a part of one.
#[derive(Clone)]
enum Taker<'t> {
    /// Something else than a list.
    Use(usize),
    /// A name that it is kept under.
    Name(Place),
    /// The calls of the function that returns it.
    Calls(Vec<Node<'t>>),
    /// Nothing.
    Nobody,
}

/// The lists of a file, each followed once.
pub struct Flow<'t> {
    parsed: &'t Parsed,
    /// The functions that give a name its value, by their offsets.
    owners: Memo<String, Rc<BTreeSet<usize>>>,
    takers: Memo<Place, Rc<Vec<Taker<'t>>>>,
    ends: Memo<Place, Rc<Ends>>,
    begun: Memo<Place, Rc<Vec<Node<'t>>>>,
}

impl<'t> Flow<'t> {
    /// Of a file.
    pub fn new(parsed: &'t Parsed) -> Self {
        Self {
            parsed,
            owners: Memo::default(),
            takers: Memo::default(),
            ends: Memo::default(),
            begun: Memo::default(),
        }
    }

    /// Where the flags of a literal end up, or those of what a statement adds.
    pub fn ends(&self, node: Node<'t>) -> Rc<Ends> {
        match self.taker(node) {
            Taker::Name(place) => self.ends.get(&place, || Rc::new(self.reached(Taker::Name(place.clone())))),
            other => Rc::new(self.reached(other)),
        }
    }

    /// The place of a name.
    pub fn place(&self, name: Node<'t>) -> Place {
        let base = self.parsed.text(base(name));
        Place { scope: self.scope(name, &base), spelt: spelt(name, self.parsed), base }
    }

    /// Where a place is named.
    pub fn named(&self, place: &Place) -> Vec<Node<'t>> {
        let is_it =
            |node: &Node<'t>| self.is_spelt(*node, place) && self.scope(*node, &place.base) == place.scope;
        self.holding(&place.base).filter(is_it).collect()
    }

    /// The statements that give a place another list, and do not read it.
    pub fn begun(&self, place: &Place) -> Rc<Vec<Node<'t>>> {
        self.begun.get(place, || {
            let begins = |node: &Node<'t>| {
                is_begun_by(*node, self.parsed, &place.spelt)
                    && node.child_by_field_name("left").map(|left| self.place(left)).as_ref() == Some(place)
            };
            Rc::new(self.holding(&place.base).filter(begins).collect())
        })
    }

    /// The offset of the function that a name is assigned in, or is a parameter of; 0: the file.
    fn scope(&self, name: Node<'t>, base: &str) -> usize {
        let owners = self.owners.get(&base.to_string(), || {
            let gives = |node: &Node<'t>| match node.kind() {
                "assignment" => {
                    node.child_by_field_name("left").is_some_and(|left| self.parsed.text(left) == base)
                }
                "parameters" => {
                    significant_children(*node).into_iter().any(|one| parameter(one, self.parsed) == base)
                }
                _ => false,
            };
            let functions = self.holding(base).filter(gives).filter_map(function_around);
            Rc::new(functions.map(|function| function.start_byte()).collect())
        });
        if owners.is_empty() {
            return 0;
        }
        let around = ancestors(name).filter(|outer| outer.kind() == "function_definition");
        let mut own = around.map(|function| function.start_byte()).filter(|start| owners.contains(start));
        own.next().unwrap_or(0)
    }

    fn is_spelt(&self, node: Node<'t>, place: &Place) -> bool {
        matches!(node.kind(), "identifier" | "subscript" | "attribute")
            && spelt(node, self.parsed) == place.spelt
    }

    /// From what takes a list to all that its flags get to.
    fn reached(&self, first: Taker<'t>) -> Ends {
        let (mut ends, mut calls) = (Ends::default(), BTreeSet::new());
        let mut open = vec![first];
        while let Some(taker) = open.pop() {
            match taker {
                Taker::Use(offset) => {
                    ends.uses.insert(offset);
                }
                Taker::Name(place) => {
                    if !ends.names.contains(&place) {
                        open.extend(self.takers(&place).iter().cloned());
                        ends.names.insert(place);
                    }
                }
                Taker::Calls(nodes) => {
                    let new = nodes.into_iter().filter(|call| calls.insert(call.start_byte()));
                    open.extend(new.map(|call| self.taker(call)));
                }
                Taker::Nobody => {}
            }
        }
        ends
    }

    /// What is kept under a name goes wherever the name is read.
    fn takers(&self, place: &Place) -> Rc<Vec<Taker<'t>>> {
        self.takers.get(place, || {
            // All of a dictionary is read with one of its lists.
            let is_whole = |node: Node<'t>| {
                place.spelt.contains('[')
                    && node.kind() == "identifier"
                    && self.parsed.text(node) == place.base
                    && node.parent().is_none_or(|parent| {
                        parent.kind() != "subscript" || parent.child_by_field_name("value") != Some(node)
                    })
            };
            let reads = |node: &Node<'t>| {
                (self.is_spelt(*node, place) || is_whole(*node))
                    && is_read(*node)
                    && self.scope(*node, &place.base) == place.scope
            };
            Rc::new(self.holding(&place.base).filter(reads).map(|node| self.taker(node)).collect())
        })
    }

    /// What takes a list, or a part of one.
    fn taker(&self, part: Node<'t>) -> Taker<'t> {
        let node = std::iter::successors(Some(part), |inner| self.whole(*inner)).last().unwrap_or(part);
        let Some(parent) = node.parent() else { return Taker::Nobody };
        let is = |field| parent.child_by_field_name(field) == Some(node);
        let taker = match parent.kind() {
            "assignment" | "augmented_assignment" if is("right") => {
                parent.child_by_field_name("left").map(|left| self.name(left))
            }
            "attribute" if is("object") => is_changed(node, self.parsed).then_some(Taker::Nobody),
            "argument_list" => self.argument(node, parent),
            "pair" if is("value") => self.pair(parent),
            "return_statement" => self.returned(node),
            _ => None,
        };
        taker.unwrap_or(Taker::Use(node.start_byte()))
    }

    /// The expression around a list that has its flags: a sum, a slice, a copy.
    fn whole(&self, node: Node<'t>) -> Option<Node<'t>> {
        let parent = node.parent()?;
        let is = |field| parent.child_by_field_name(field) == Some(node);
        let has_all = match parent.kind() {
            "parenthesized_expression" | "list_splat" | "binary_operator" | "boolean_operator" => true,
            "list" | "tuple" | "set" => node.kind() == "list_splat",
            "conditional_expression" => parent.named_child(1) != Some(node),
            "subscript" => is("value") && parent.named_child(1).is_some_and(|key| key.kind() == "slice"),
            "attribute" => {
                let method = parent.child_by_field_name("attribute").filter(|_| is("object"));
                let call = parent.parent().filter(|call| call.kind() == "call");
                return call.filter(|_| method.is_some_and(|method| self.parsed.text(method) == "copy"));
            }
            "argument_list" => {
                let call = parent.parent().filter(|call| call.kind() == "call")?;
                let function = self.parsed.text(call.child_by_field_name("function")?);
                let copies = COPYING.contains(&function.as_str()) && arguments(call) == [node];
                return copies.then_some(call);
            }
            _ => false,
        };
        has_all.then_some(parent)
    }

    /// What is added to a list is kept with it; the parameter of a function of the file is a name.
    fn argument(&self, node: Node<'t>, list: Node<'t>) -> Option<Taker<'t>> {
        if let Some(name) = list_added_to(node, self.parsed) {
            return Some(self.name(name));
        }
        let call = list.parent().filter(|call| call.kind() == "call")?;
        let definition = self.definition(&self.parsed.text(call.child_by_field_name("function")?))?;
        let parameters = significant_children(definition.child_by_field_name("parameters")?);
        let at = arguments(call).iter().position(|one| *one == node)?;
        let name = parameters.into_iter().filter(Node::is_named).nth(at)?;
        (name.kind() == "identifier").then(|| self.name(name))
    }

    /// `{"nvcc": […]}` under a name is kept as `name["nvcc"]`.
    fn pair(&self, pair: Node<'t>) -> Option<Taker<'t>> {
        let assignment = pair.parent()?.parent().filter(|outer| outer.kind() == "assignment")?;
        let left = assignment.child_by_field_name("left").filter(|left| left.kind() == "identifier")?;
        let key = spelt(pair.child_by_field_name("key")?, self.parsed);
        let place = self.place(left);
        Some(Taker::Name(Place { spelt: format!("{}[{key}]", place.base), ..place }))
    }

    fn returned(&self, node: Node<'t>) -> Option<Taker<'t>> {
        let name = self.parsed.text(function_around(node)?.child_by_field_name("name")?);
        let is_call = |one: &Node<'t>| {
            one.kind() == "call"
                && one.child_by_field_name("function").is_some_and(|called| self.parsed.text(called) == name)
        };
        let calls: Vec<Node<'t>> = self.holding(&name).filter(is_call).collect();
        (!calls.is_empty()).then_some(Taker::Calls(calls))
    }

    fn name(&self, name: Node<'t>) -> Taker<'t> {
        match name.kind() {
            "identifier" | "subscript" | "attribute" => Taker::Name(self.place(name)),
            _ => Taker::Use(name.start_byte()),
        }
    }

    fn definition(&self, name: &str) -> Option<Node<'t>> {
        let mut functions = self.holding(name).filter(|node| node.kind() == "function_definition");
        functions.find(|node| {
            node.child_by_field_name("name").is_some_and(|inner| self.parsed.text(inner) == name)
        })
    }

    fn holding(&self, text: &str) -> impl Iterator<Item = Node<'t>> + use<'t> {
        let offsets = self.parsed.offsets_of(text);
        descendants_holding(self.parsed.root(), &offsets).collect::<Vec<_>>().into_iter()
    }
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
pub fn chooser(branch: Node<'_>) -> Option<Node<'_>> {
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

/// Whether a name stands there for its value.
pub fn is_read(name: Node<'_>) -> bool {
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

/// Whether a name is only changed there: `f` of `f.append(…)`.
pub fn is_changed(name: Node<'_>, parsed: &Parsed) -> bool {
    let attribute = name.parent().filter(|parent| parent.kind() == "attribute");
    let is_called = |node: &Node<'_>| node.parent().is_some_and(|call| call.kind() == "call");
    let method = attribute.filter(is_called).and_then(|node| node.child_by_field_name("attribute"));
    method.is_some_and(|method| CHANGING.contains(&parsed.text(method).as_str()))
}

/// Whether an assignment gives a name another list, which does not hold what the list held.
pub fn is_begun_by(node: Node<'_>, parsed: &Parsed, name: &str) -> bool {
    let field = |name| node.child_by_field_name(name).filter(|_| node.kind() == "assignment");
    let is_it = |node: Node<'_>| spelt(node, parsed) == name;
    field("left").is_some_and(is_it) && !field("right").is_some_and(|right| descendants(right).any(is_it))
}
