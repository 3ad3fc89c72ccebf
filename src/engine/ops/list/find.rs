//! Where lists of architectures stand in a Python file, and which toolkits read them.

use std::ops::Range;

use tree_sitter::Node;

use super::each::{filled_strings, is_told};
use super::element::{Element, Spelling, Token};
use super::grows::grows;
use super::resolve::{Origin, arguments, has_interpolation, resolve};
use super::write::{Container, ContainerKind};
use super::{FoundLists, InFile, Reader};
use crate::engine::arch::{Code, Gencode, parse_codes};
use crate::engine::ops::Aim;
use crate::engine::ops::choice::Choice;
use crate::engine::ops::gencode::guard::Evaluation;
use crate::engine::ops::gencode::worlds::{Truth, World, Worlds};
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
    /// Whether statements add single flags to it: those add what is wanted too.
    pub grows: bool,
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

/// Lists that hold nvcc flags, and command lines of nvcc.
pub fn with_flags(parsed: &Parsed, spellings: &[Spelling], aim: Aim<'_>) -> InFile {
    let file = File::new(parsed, aim);
    let mut offsets: Vec<usize> =
        spellings.iter().flat_map(|spelling| parsed.offsets_of(spelling.word())).collect();
    offsets.sort_unstable();
    let mut found = InFile::default();
    for node in descendants_holding(parsed.root(), &offsets) {
        let tokens = match node.kind() {
            "list" | "tuple" | "set" if !is_compared(node) => items(node, parsed),
            "string" if is_command_line(node, parsed) || is_cut(node, parsed) => {
                words(node, parsed, &[' ', '\t', '\n', '\r'])
            }
            "string" => {
                found.reported.extend(file.uncut(node, spellings));
                continue;
            }
            _ => continue,
        };
        let elements = Element::read_all(&tokens, &parsed.bytes, spellings);
        found.reported.extend(half_done(&elements, parsed));
        match node.parent().filter(|_| is_one_flag(&elements)) {
            Some(parent) if parent.kind() == "binary_operator" => {
                found.reported.extend(file.joined(node, &elements));
            }
            // A statement of its own adds it, and what is wanted needs another such statement.
            Some(parent) if is_adding(parent) => {}
            _ if elements.iter().all(|element| element.flag.is_none()) => {}
            _ => {
                found.push(Holder { grows: grows(node, parsed), ..file.holder(node, elements, Reader::Nvcc) })
            }
        }
    }
    found
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
    aim: Aim<'a>,
    worlds: Worlds,
}

impl<'a> File<'a> {
    fn new(parsed: &'a Parsed, aim: Aim<'a>) -> Self {
        let toolchain = aim.toolchain;
        Self { parsed, aim, worlds: Worlds::new(toolchain.catalogue, toolchain.floor, toolchain.cuda) }
    }

    fn holder(&self, node: Node<'_>, elements: Vec<Element>, reader: Reader) -> Holder {
        let kind = match node.kind() {
            "string" => ContainerKind::Words,
            "tuple" => ContainerKind::Tuple,
            _ => ContainerKind::Items,
        };
        let container = Container { range: node.byte_range(), kind };
        let (name, toolkits) = (name_of(node, self.parsed), self.readers(node));
        let prunes = reader != Reader::Unknown || !asks_by_name(self.parsed);
        let uncertain = self.parsed.is_uncertain(node);
        let choice = self.evaluation().choice(node);
        Holder { name, container, elements, toolkits, reader, prunes, grows: false, uncertain, choice }
    }

    /// The lists that loops write into flags.
    fn of_loops(&self, lists: &FoundLists, found: &mut InFile) {
        for (string, value) in filled_strings(self.parsed, &lists.each) {
            let line = line_of(&self.parsed.bytes, string.start_byte());
            match resolve(value, self.parsed) {
                Origin::Literal { node, default_of, .. } if self.names_arches(node) => {
                    let name = default_of.map(|name| self.parsed.text(name));
                    found.remarks.extend(name.map(|name| format!("line {line}: {name} overrides the list")));
                    found.push(self.bare(node, Reader::Nvcc));
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
                if is_list && self.names_arches(node) {
                    found.push(self.bare(node, Reader::Unknown));
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

    /// One flag that is joined to another list: only a person can tell whether that list is for all architectures.
    fn joined(&self, node: Node<'_>, elements: &[Element]) -> Option<String> {
        let serves = |code: Code| elements.iter().flat_map(Element::codes).any(|have| have.serves(code));
        let mut wanted = self.aim.wish.wanted();
        let line = line_of(&self.parsed.bytes, node.start_byte());
        let text = self.parsed.text(node);
        wanted
            .any(|code| !serves(code))
            .then(|| format!("line {line} joins {text} to another list: add what that list needs"))
    }

    /// Flags in one string of which nothing tells how it becomes words, where they are not as they should be.
    fn uncut(&self, node: Node<'_>, spellings: &[Spelling]) -> Option<String> {
        let elements = Element::read_all(
            &words(node, self.parsed, &[' ', '\t', '\n', '\r']),
            &self.parsed.bytes,
            spellings,
        );
        let codes: Vec<Code> = elements.iter().flat_map(|element| element.codes()).copied().collect();
        let is_item = node.parent().is_some_and(|parent| matches!(parent.kind(), "list" | "tuple" | "set"));
        let is_text = node.parent().is_some_and(|parent| parent.kind() == "expression_statement");
        let is_one = elements.len() == 1 && (is_item || node.parent().is_some_and(is_adding));
        if codes.is_empty() || is_one || is_text || is_told(node, self.parsed) {
            return None;
        }
        let line = line_of(&self.parsed.bytes, node.start_byte());
        let text = self.parsed.text(node);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!self.are_right(&codes))
            .then(|| format!("line {line}: nothing tells how {text} becomes flags: change it by hand"))
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

    fn evaluation(&self) -> Evaluation<'_> {
        let (parsed, worlds) = (self.parsed, &self.worlds);
        Evaluation { parsed, forms: &[], any: true, worlds, plain: Truth::Maybe }
    }

    /// The toolkits with which the program gets to a node.
    fn readers(&self, node: Node<'_>) -> Vec<Toolkit> {
        let reached = self.evaluation().reached(node);
        let reaches = |(at, world)| match world {
            World::Cuda(toolkit) if reached.at(at) != Truth::No => Some(toolkit),
            World::Cuda(_) | World::Hip => None,
        };
        self.worlds.iter().enumerate().filter_map(reaches).collect()
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

/// The items of a list.
fn items(node: Node<'_>, parsed: &Parsed) -> Vec<Token> {
    let children = significant_children(node).into_iter().filter(Node::is_named);
    let token = |child: Node<'_>| Token {
        range: child.byte_range(),
        content: content(child, parsed),
        number: matches!(child.kind(), "integer" | "float"),
    };
    children.map(token).collect()
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
fn words(node: Node<'_>, parsed: &Parsed, separators: &[char]) -> Vec<Token> {
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
fn name_of(node: Node<'_>, parsed: &Parsed) -> String {
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
    named.map_or_else(line, |name| format!("`{}`", parsed.text(name).trim_matches(['"', '\''])))
}

/// Whether a list is only compared with something.
fn is_compared(node: Node<'_>) -> bool {
    let outer = ancestors(node).take_while(|outer| !outer.kind().ends_with("block"));
    outer.into_iter().any(|outer| matches!(outer.kind(), "comparison_operator" | "assert_statement"))
}

/// Whether a list is one flag and nothing else; nvcc's `-arch` stands for a whole list.
fn is_one_flag(elements: &[Element]) -> bool {
    matches!(elements, [only] if only.flag.as_ref().is_some_and(|flag| !flag.shorthand))
}

/// `flags += […]`, `flags.extend([…])`
fn is_adding(parent: Node<'_>) -> bool {
    let is_method = |call: Node<'_>| {
        call.child_by_field_name("function").is_some_and(|function| function.kind() == "attribute")
            && arguments(call).len() == 1
    };
    parent.kind() == "augmented_assignment"
        || (parent.kind() == "argument_list" && parent.parent().is_some_and(is_method))
}

/// Whether a string is cut into words: `"…".split()`, `shlex.split("…")`, or under the name that it is assigned.
fn is_cut(node: Node<'_>, parsed: &Parsed) -> bool {
    let is_whole = |outer: &Node<'_>| outer.kind() == "parenthesized_expression";
    let Some(parent) = ancestors(node).find(|outer| !is_whole(outer)) else { return false };
    match parent.kind() {
        "attribute" => is_split(parent, parsed),
        "argument_list" => parent.parent().is_some_and(|call| is_shell_split(call, parsed)),
        "assignment" => parent.child_by_field_name("left").is_some_and(|left| {
            let name = parsed.text(left);
            let offsets = parsed.offsets_of(&name);
            descendants_holding(parsed.root(), &offsets).any(|outer| match outer.kind() {
                "attribute" => {
                    let object = outer.child_by_field_name("object");
                    object.is_some_and(|object| parsed.text(object) == name) && is_split(outer, parsed)
                }
                "call" => {
                    is_shell_split(outer, parsed)
                        && arguments(outer).first().is_some_and(|first| parsed.text(*first) == name)
                }
                _ => false,
            })
        }),
        _ => false,
    }
}

fn is_split(attribute: Node<'_>, parsed: &Parsed) -> bool {
    let is_it = |node: Node<'_>| parsed.text(node) == "split";
    let call = attribute.parent().filter(|outer| outer.kind() == "call");
    attribute.child_by_field_name("attribute").is_some_and(is_it)
        && call.is_some_and(|call| {
            arguments(call).is_empty() || parsed.text(arguments(call)[0]).trim_matches(['"', '\'']) == " "
        })
}

fn is_shell_split(call: Node<'_>, parsed: &Parsed) -> bool {
    call.child_by_field_name("function").is_some_and(|function| parsed.text(function) == "shlex.split")
}

/// Whether a string is a command line of nvcc that is run, or kept under a name.
fn is_command_line(node: Node<'_>, parsed: &Parsed) -> bool {
    const RUNNING: [&str; 9] = [
        "system",
        "popen",
        "call",
        "check_call",
        "check_output",
        "run",
        "Popen",
        "getoutput",
        "exec_command",
    ];
    let names_nvcc = || {
        parsed
            .text(node)
            .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '/'))
            .any(|word| word == "nvcc")
    };
    let mut outer = ancestors(node).take_while(|outer| !outer.kind().ends_with("block"));
    let run = |outer: Node<'_>| match outer.kind() {
        "assignment" => true,
        "call" => outer.child_by_field_name("function").is_some_and(|function| {
            let name = parsed.text(function);
            RUNNING.contains(&name.rsplit('.').next().unwrap_or_default())
        }),
        _ => false,
    };
    names_nvcc() && outer.any(run)
}

/// Hand edits that nvcc refuses.
fn half_done(elements: &[Element], parsed: &Parsed) -> Vec<String> {
    let others = elements.iter().filter(|element| element.flag.is_none());
    let fault = |element: &Element| {
        let text = element.text.trim_matches(['"', '\'']).trim();
        let is_value = |text: &str| text.trim().parse::<crate::engine::arch::Gencode>().is_ok();
        let line = line_of(&parsed.bytes, element.range.start);
        match text.strip_prefix("-gencode") {
            Some(rest) if is_value(rest) => {
                Some(format!("line {line}: `{text}` is one word, which nvcc refuses"))
            }
            None if is_value(text) => Some(format!("line {line}: `{text}` has no -gencode before it")),
            _ => None,
        }
    };
    others.filter_map(fault).collect()
}
