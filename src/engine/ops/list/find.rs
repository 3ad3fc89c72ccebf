//! Where lists of architectures stand in a Python file, and which toolkits read them.

use std::ops::Range;

use tree_sitter::Node;

use super::each::filled_strings;
use super::element::{Element, Spelling, Token};
use super::resolve::{Origin, arguments, has_interpolation, resolve};
use super::write::{Container, ContainerKind};
use super::{FoundLists, InFile, Reader};
use crate::engine::arch::{Code, Gencode, parse_codes};
use crate::engine::ops::Aim;
use crate::engine::ops::choice::Choice;
use crate::engine::ops::flow::{Flow, list_added_to};
use crate::engine::ops::gencode::guard::{Evaluation, Known};
use crate::engine::ops::gencode::worlds::{Truth, Worlds};
use crate::engine::ops::givers::Share;
use crate::engine::pattern::Match;
use crate::engine::source::line_of;
use crate::engine::syntax::language::{
    Parsed, ancestors, descendants, descendants_holding, significant_children,
};
use crate::engine::toolkit::Toolkit;

/// Names that PyTorch takes, and that stand for other architectures from version to version.
const UNLISTED: [&str; 3] = ["All", "Blackwell", "Common"];

/// A list of architectures as it lies in a file.
#[derive(Debug)]
pub struct Holder {
    /// What it is called: a name, or its line.
    pub name: String,
    /// Where it stands.
    pub container: Container,
    /// What it holds.
    pub elements: Vec<Element>,
    /// The toolkits that read it.
    pub toolkits: Vec<Toolkit>,
    /// Who reads it.
    pub reader: Reader,
    /// Whether what a given toolkit refuses goes: not where the file asks for each architecture by name.
    pub prunes: bool,
    /// Whether what is wanted is added to it.
    pub adds: bool,
    /// What others have to do with it.
    pub share: Share,
    /// Whether the grammar cannot read the place for certain.
    pub uncertain: bool,
    /// The condition around it that may choose an architecture.
    pub choice: Option<Choice>,
}

/// The list, tuple, set or string that a name is assigned.
pub fn named(parsed: &Parsed, name: &str, aim: Aim<'_>) -> Option<Holder> {
    let assignments = descendants(parsed.root()).filter(|node| node.kind() == "assignment");
    let mut values = assignments.filter_map(|node| {
        let left = node.child_by_field_name("left")?;
        let is_it = match left.child_by_field_name("subscript") {
            Some(key) => parsed.text(key).trim_matches(['"', '\'']) == name,
            None => parsed.text(left) == name,
        };
        let Origin::Literal { node, .. } =
            resolve(node.child_by_field_name("right").filter(|_| is_it)?, parsed)
        else {
            return None;
        };
        Some(node)
    });
    let file = File::new(parsed, aim);
    values.next().map(|node| Holder { name: format!("`{name}`"), ..file.bare(node, Reader::Unknown) })
}

/// Lists that PyTorch reads, those that a loop writes into flags, and those that are known by their names.
pub fn found(parsed: &Parsed, lists: &FoundLists, aim: Aim<'_>) -> InFile {
    let file = File::new(parsed, aim);
    let mut found = InFile::default();
    for one in lists.torch.iter().flat_map(|pattern| pattern.find_all(parsed)) {
        file.of_torch(&one, &mut found);
    }
    if !lists.torch.is_empty() {
        found.reported.extend(file.in_commands());
    }
    if lists.is_in_build_code(&parsed.bytes) {
        file.of_loops(lists, &mut found);
        file.by_name(lists, &mut found);
    }
    found.remarks.sort();
    found.remarks.dedup();
    found
}

impl InFile {
    /// Adds a list, unless it was found in another way. One in a place that cannot be read is only told.
    pub(super) fn push(&mut self, holder: Holder) {
        let is_known = self.holders.iter().any(|other| other.container == holder.container);
        match holder.uncertain {
            true => self.reported.push(format!("{} stands in a place that cannot be read", holder.name)),
            false if is_known => {}
            false => self.holders.push(holder),
        }
    }
}

/// What an expression may come to: of `a if b else c`, `a` and `c`.
fn alternatives(node: Node<'_>) -> Vec<Node<'_>> {
    match (node.kind(), node.named_child(0), node.named_child(2)) {
        ("conditional_expression", Some(then), Some(other)) => {
            [then, other].into_iter().flat_map(alternatives).collect()
        }
        ("parenthesized_expression", Some(inner), None) => alternatives(inner),
        _ => vec![node],
    }
}

/// What is known of architectures that stand in no list of the file.
pub(super) fn elsewhere(origin: Origin<'_>, parsed: &Parsed) -> String {
    match origin {
        Origin::Environment(name) => {
            format!("takes its architectures from the environment: set {}", parsed.text(name))
        }
        Origin::Machine => "compiles for the GPU of the machine that builds".to_string(),
        Origin::Literal { .. } | Origin::Unknown => {
            "compiles for architectures that the source alone does not tell".to_string()
        }
    }
}

/// A file with its guards.
pub(super) struct File<'a> {
    pub(super) parsed: &'a Parsed,
    pub(super) aim: Aim<'a>,
    pub(super) flow: Flow<'a>,
    worlds: Worlds,
    known: Known,
}

impl<'a> File<'a> {
    pub(super) fn new(parsed: &'a Parsed, aim: Aim<'a>) -> Self {
        let toolchain = aim.toolchain;
        let flow = Flow::new(parsed);
        let worlds = Worlds::new(toolchain.catalogue, toolchain.floor, toolchain.cuda);
        Self { parsed, aim, flow, worlds, known: Known::default() }
    }

    pub(super) fn holder(&self, node: Node<'_>, elements: Vec<Element>, reader: Reader) -> Holder {
        let kind = match node.kind() {
            "string" => ContainerKind::Words,
            "tuple" => ContainerKind::Tuple,
            _ => ContainerKind::Items,
        };
        let container = Container { range: node.byte_range(), kind };
        let (name, toolkits) = (name_of(node, self.parsed), self.evaluation().toolkits(node));
        let elements = self.held(elements);
        let prunes = reader != Reader::Unknown || !asks_by_name(self.parsed);
        let uncertain = self.parsed.is_uncertain(node);
        let choice = self.evaluation().choice(node);
        Holder {
            name,
            container,
            elements,
            toolkits,
            reader,
            prunes,
            adds: true,
            share: Share::default(),
            uncertain,
            choice,
        }
    }

    /// Elements that a statement takes out again are marked: without them, that statement would fail.
    fn held(&self, elements: Vec<Element>) -> Vec<Element> {
        let line = |element: &Element| taken_out_in(element.value()?, self.parsed);
        elements.into_iter().map(|element| Element { held: line(&element), ..element }).collect()
    }

    /// The lists that loops write into flags.
    fn of_loops(&self, lists: &FoundLists, found: &mut InFile) {
        for (string, value) in filled_strings(self.parsed, &lists.each) {
            let line = line_of(&self.parsed.bytes, string.start_byte());
            match resolve(value, self.parsed) {
                Origin::Literal { node, default_of, .. } if self.holds_arches(node) => {
                    let name = default_of.map(|name| self.parsed.text(name));
                    found.remarks.extend(name.map(|name| format!("line {line}: {name} overrides the list")));
                    self.push_arches(node, Reader::Nvcc, found);
                }
                origin => found.remarks.push(format!("line {line} {}", elsewhere(origin, self.parsed))),
            }
        }
    }

    /// The lists that are known by what stands around them.
    fn by_name(&self, lists: &FoundLists, found: &mut InFile) {
        let matches = lists.find.iter().flat_map(|pattern| pattern.find_all(self.parsed));
        let fits = |one: &Match| lists.conditions.iter().all(|condition| condition.holds(one, self.parsed));
        for one in matches.filter(fits) {
            for value in self.values_in(&one) {
                let Origin::Literal { node, split, .. } = resolve(value, self.parsed) else { continue };
                // A word alone may be anything, and behind it a second one would be wrong.
                let is_list = split || node.kind() != "string" || self.bare_elements(node).len() > 1;
                if is_list && self.holds_arches(node) {
                    self.push_arches(node, Reader::Unknown, found);
                }
            }
        }
    }

    /// What `$ARCHES` stands for: of `a if b else c`, each of both.
    pub(super) fn values_in(&self, found: &Match) -> Vec<Node<'a>> {
        let range = found.bindings.get("ARCHES").map(|bound| bound.range.clone());
        let node = range
            .and_then(|range| self.parsed.root().named_descendant_for_byte_range(range.start, range.end));
        node.map(alternatives).unwrap_or_default()
    }

    /// Whether results are as they should be: all that is wanted, nothing that a given toolkit refuses.
    pub(super) fn are_right(&self, codes: &[Code]) -> bool {
        let (wish, toolchain) = (self.aim.wish, self.aim.toolchain);
        let takes = |code: &Code| {
            let gencode = Gencode::of(*code);
            toolchain.cuda.iter().all(|toolkit| toolchain.catalogue.takes(*toolkit, &gencode))
        };
        codes.iter().all(|code| wish.keeps(*code) && takes(code))
            && wish.wanted().all(|wanted| codes.iter().any(|code| code.serves(wanted)))
    }

    /// A list of plain architectures.
    pub(super) fn bare(&self, node: Node<'_>, reader: Reader) -> Holder {
        self.holder(node, self.bare_elements(node), reader)
    }

    pub(super) fn bare_elements(&self, node: Node<'_>) -> Vec<Element> {
        let tokens = match node.kind() {
            "string" => words(node, self.parsed, &[';', ',', ' ']),
            "integer" | "float" => vec![token(node, self.parsed)],
            _ => items(node, self.parsed),
        };
        Element::read_all(&tokens, &self.parsed.bytes, &Spelling::bare())
    }

    /// Whether a literal names architectures and nothing else.
    pub(super) fn names_arches(&self, node: Node<'_>) -> bool {
        let elements = self.bare_elements(node);
        let known = |element: &Element| {
            let mut codes = element.codes().iter();
            element.flag.is_some()
                && codes.all(|code| self.aim.toolchain.catalogue.arch(code.arch()).is_some())
        };
        !elements.is_empty() && elements.iter().all(known)
    }

    /// Whether a literal may name architectures, as `Pascal` does and `Not Set` does not.
    pub(super) fn may_name_arches(&self, node: Node<'_>) -> bool {
        let catalogue = self.aim.toolchain.catalogue;
        let is_name = |word: &str| UNLISTED.contains(&word) || catalogue.named(word).is_some();
        let text = self.parsed.text(node);
        let mut words = text.split(|char: char| !(char.is_alphanumeric() || char == '+' || char == '.'));
        words.any(|word| word.contains(|char: char| char.is_ascii_digit()) || is_name(word))
    }

    pub(super) fn evaluation(&self) -> Evaluation<'_> {
        let (parsed, worlds) = (self.parsed, &self.worlds);
        Evaluation { parsed, forms: &[], any: true, worlds, plain: Truth::Maybe, known: &self.known }
    }
}

/// Whether a file asks for architectures by name: `"90" in archs`. Such code decides itself what a toolkit takes.
fn asks_by_name(parsed: &Parsed) -> bool {
    let offsets = parsed.offsets_of(" in ");
    descendants_holding(parsed.root(), &offsets).any(|node| asks_for_arch(node, parsed))
}

/// Whether a node is `"90" in archs`.
pub(in crate::engine::ops) fn asks_for_arch(node: Node<'_>, parsed: &Parsed) -> bool {
    let mut cursor = node.walk();
    let is_in =
        node.kind() == "comparison_operator" && node.children(&mut cursor).any(|child| child.kind() == "in");
    let left = node.named_child(0).filter(|left| is_in && left.kind() == "string");
    left.is_some_and(|left| parse_codes(parsed.text(left).trim_matches(['"', '\''])).is_ok())
}

/// The line of `flags.remove("…")` for a flag, or for its value.
pub(in crate::engine::ops) fn taken_out_in(flag: &str, parsed: &Parsed) -> Option<usize> {
    let value = |text: &str| {
        let text = text.trim().trim_matches(['"', '\'']);
        text.rsplit_once("-gencode=").map_or(text, |(_, value)| value).to_string()
    };
    let is_removal = |call: &Node<'_>| {
        let function = call.child_by_field_name("function").filter(|_| call.kind() == "call");
        let method = function.and_then(|function| function.child_by_field_name("attribute"));
        let takes = arguments(*call).into_iter().any(|argument| value(&parsed.text(argument)) == value(flag));
        takes && method.is_some_and(|method| parsed.text(method) == "remove")
    };
    let call = descendants_holding(parsed.root(), &parsed.offsets_of(".remove(")).find(is_removal);
    call.map(|call| line_of(&parsed.bytes, call.start_byte()))
}

/// The items of a list.
pub(super) fn items(node: Node<'_>, parsed: &Parsed) -> Vec<Token> {
    let children = significant_children(node).into_iter().filter(Node::is_named);
    children.map(|child| token(child, parsed)).collect()
}

pub(super) fn token(item: Node<'_>, parsed: &Parsed) -> Token {
    let number = matches!(item.kind(), "integer" | "float");
    Token { range: item.byte_range(), content: content(item, parsed), number }
}

/// What stands between the quotes of a string, or a number.
fn content(node: Node<'_>, parsed: &Parsed) -> Option<Range<usize>> {
    match node.kind() {
        "integer" | "float" => Some(node.byte_range()),
        "string" if !has_interpolation(node) => {
            let last = node.child_count().checked_sub(1)?;
            let range = node.child(0)?.end_byte()..node.child(last)?.start_byte();
            (range.start <= range.end && range.end <= parsed.bytes.len()).then_some(range)
        }
        _ => None,
    }
}

/// The words of a string.
pub(super) fn words(node: Node<'_>, parsed: &Parsed, separators: &[char]) -> Vec<Token> {
    let last = node.child_count().saturating_sub(1);
    let (Some(first), Some(last)) = (node.child(0), node.child(last)) else { return Vec::new() };
    let content = first.end_byte()..last.start_byte();
    let Ok(text) = std::str::from_utf8(&parsed.bytes[content.clone()]) else { return Vec::new() };
    let mut tokens = Vec::new();
    let mut start = 0;
    for end in text.match_indices(separators).map(|(at, _)| at).chain([text.len()]) {
        if start < end {
            let range = content.start + start..content.start + end;
            tokens.push(Token { range: range.clone(), content: Some(range), number: false });
        }
        start = end + 1;
    }
    tokens
}

/// What a list is called: the name that it is assigned, its key, its keyword; else its line.
pub(in crate::engine::ops) fn name_of(node: Node<'_>, parsed: &Parsed) -> String {
    let named = ancestors(node).take_while(|outer| !outer.kind().ends_with("block")).find_map(|outer| {
        let field = match outer.kind() {
            "assignment" | "augmented_assignment" => "left",
            "pair" => "key",
            "keyword_argument" => "name",
            _ => return None,
        };
        outer.child_by_field_name(field)
    });
    let line = || format!("line {}", line_of(&parsed.bytes, node.start_byte()));
    let named = list_added_to(node, parsed).or(named);
    named.map_or_else(line, |name| format!("`{}`", parsed.text(name).trim_matches(['"', '\''])))
}

/// Whether a list is only compared with something.
pub(in crate::engine::ops) fn is_compared(node: Node<'_>) -> bool {
    let outer = ancestors(node).take_while(|outer| !outer.kind().ends_with("block"));
    outer.into_iter().any(|outer| matches!(outer.kind(), "comparison_operator" | "assert_statement"))
}
