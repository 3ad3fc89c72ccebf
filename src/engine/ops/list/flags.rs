//! Lists of nvcc flags in a Python file, and command lines of nvcc.

use tree_sitter::Node;

use super::each::is_told;
use super::element::{Element, Spelling};
use super::find::{File, Holder, is_compared, items, words};
use super::resolve::arguments;
use super::{InFile, Reader};
use crate::engine::arch::{Code, Gencode};
use crate::engine::ops::Aim;
use crate::engine::ops::flow::list_added_to;
use crate::engine::ops::givers::Givers;
use crate::engine::source::line_of;
use crate::engine::syntax::language::{Parsed, ancestors, descendants_holding};

/// Lists that hold nvcc flags, and command lines of nvcc.
pub fn with_flags(parsed: &Parsed, spellings: &[Spelling], aim: Aim<'_>) -> InFile {
    let file = File::new(parsed, aim);
    let givers = Givers::of(parsed, file.evaluation(), aim);
    let mut offsets: Vec<usize> =
        spellings.iter().flat_map(|spelling| parsed.offsets_of(spelling.word())).collect();
    offsets.sort_unstable();
    let mut found = InFile::default();
    for node in descendants_holding(parsed.root(), &offsets) {
        let tokens = match node.kind() {
            "list" | "tuple" | "set" if !is_compared(node) && !is_taken_out(node, parsed) => {
                items(node, parsed)
            }
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
            // A statement of its own adds it, and what is wanted needs another such statement.
            Some(parent) if is_adding(parent) || list_added_to(node, parsed).is_some() => {}
            Some(_) if givers.is_joined(node) => {
                let share = givers.of_literal(node);
                found.reported.extend(file.joined(node, &elements).filter(|_| share.left_to.is_none()));
                found.push(Holder { share, adds: false, ..file.holder(node, elements, Reader::Nvcc) });
            }
            _ if elements.iter().all(|element| element.flag.is_none()) => {}
            _ => {
                let share = givers.of_literal(node);
                let adds = share.left_to.is_none();
                found.push(Holder { share, adds, ..file.holder(node, elements, Reader::Nvcc) });
            }
        }
    }
    found
}

impl File<'_> {
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
}

/// Whether a loop takes each of a list out of another one.
fn is_taken_out(node: Node<'_>, parsed: &Parsed) -> bool {
    let outer = node.parent().filter(|outer| outer.kind() == "for_statement");
    outer.is_some_and(|outer| {
        let offsets = parsed.offsets_of(".remove(");
        offsets.iter().any(|offset| outer.byte_range().contains(offset))
    })
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
        let is_value = |text: &str| text.trim().parse::<Gencode>().is_ok();
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
