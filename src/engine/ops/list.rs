//! `list`: a named list, tuple, set or string holds the wanted architectures; its notation is kept.

use std::ops::Range;

use tree_sitter::Node;

use super::files::Files;
use super::gencode::ArchWish;
use super::{NoAnchor, OpError, OpPlan, Outcome, Site, parse};
use crate::engine::arch::{Arch, Code, parse_codes};
use crate::engine::edit::{Edit, Edits};
use crate::engine::source::Sources;
use crate::engine::syntax::language::{Parsed, descendants};

/// A list of architectures that a name stands for, such as one that only validates.
#[derive(Debug, Clone)]
pub struct ListOp {
    /// Where to look.
    pub files: Files,
    /// The variable that holds it.
    pub name: String,
}

/// How a list writes an architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    /// `90`
    Number,
    /// `9.0`
    Capability,
    /// `sm_90`
    Code,
}

/// One element of a list: its bytes and the architecture that it names.
struct Element {
    range: Range<usize>,
    text: String,
    arch: Option<Arch>,
}

impl ListOp {
    /// What the op does to these sources.
    pub fn plan(&self, sources: &Sources, wish: &ArchWish) -> Result<OpPlan, OpError> {
        let mut plan = OpPlan::of(Outcome::AlreadySatisfied { why: format!("`{}` holds them", self.name) });
        let mut how = Vec::new();
        for (path, bytes) in self.files.of(sources) {
            let Some(parsed) = parse(path, bytes)? else { continue };
            let value = self.value(&parsed).ok_or_else(|| self.no_anchor(path))?;
            plan.sites.push(Site::of(path, bytes, value.start_byte()));
            let mut edits = Edits::new();
            for edit in edits_of(value, &parsed, wish, &mut how) {
                edits.insert(edit).map_err(|overlap| OpError::Overlap { path: path.to_string(), overlap })?;
            }
            if !edits.is_empty() {
                plan.edits.insert(path.to_string(), edits);
            }
        }
        if !how.is_empty() {
            plan.outcome = Outcome::Changed { how: vec![format!("`{}`: {}", self.name, how.join(", "))] };
        }
        Ok(plan)
    }

    /// The list, tuple, set or string that the name is assigned.
    fn value<'t>(&self, parsed: &'t Parsed) -> Option<Node<'t>> {
        let assignments = descendants(parsed.root()).filter(|node| node.kind() == "assignment");
        let named = assignments.filter_map(|node| {
            let name = node.child_by_field_name("left")?;
            (parsed.text(name) == self.name).then(|| node.child_by_field_name("right"))?
        });
        let mut values = named.filter(|value| matches!(value.kind(), "list" | "tuple" | "set" | "string"));
        values.next()
    }

    fn no_anchor(&self, path: &str) -> OpError {
        OpError::NoAnchor(Box::new(NoAnchor {
            fact: format!("no list named `{}`", self.name),
            path: path.to_string(),
            looked_for: format!("{} = [...]", self.name),
            nearest: None,
        }))
    }
}

fn edits_of(value: Node<'_>, parsed: &Parsed, wish: &ArchWish, how: &mut Vec<String>) -> Vec<Edit> {
    let is_text = value.kind() == "string";
    let elements = if is_text { words(value, parsed) } else { items(value, parsed) };
    let Some(model) = elements.iter().rposition(|element| element.arch.is_some()) else { return Vec::new() };
    let mut edits = Vec::new();
    let goes = |arch: Arch| {
        let wanted = wish.wanted().any(|code| arch.serves(code.arch()));
        wish.drop.iter().any(|code| arch.serves(code.arch())) || (!wish.only.is_empty() && !wanted)
    };
    for (index, element) in elements.iter().enumerate() {
        if element.arch.is_some_and(goes) {
            edits.push(Edit { range: with_separator(&elements, index), text: Vec::new() });
            how.push(format!("drops {}", element.text));
        }
    }
    let separator = separator(&elements, parsed, is_text);
    for arch in missing(&elements, wish) {
        let text = written(&elements[model].text, notation(&elements[model].text), arch);
        let before = elements.iter().rposition(|element| element.arch.is_some_and(|other| other < arch));
        let edit = match before {
            Some(index) => insertion(elements[index].range.end, format!("{separator}{text}")),
            None => insertion(elements[0].range.start, format!("{text}{separator}")),
        };
        how.push(format!("adds {text}"));
        edits.push(edit);
    }
    joined(edits)
}

fn insertion(at: usize, text: String) -> Edit {
    Edit { range: at..at, text: text.into() }
}

/// Insertions at the same place become one, in their order.
fn joined(edits: Vec<Edit>) -> Vec<Edit> {
    let mut joined: Vec<Edit> = Vec::new();
    for edit in edits {
        match joined.iter_mut().find(|other| other.range == edit.range && other.range.is_empty()) {
            Some(other) => other.text.extend_from_slice(&edit.text),
            None => joined.push(edit),
        }
    }
    joined
}

fn missing(elements: &[Element], wish: &ArchWish) -> Vec<Arch> {
    let mut arches: Vec<Arch> = wish
        .wanted()
        .filter(|code| matches!(code, Code::Sass(_)))
        .map(|code| code.arch())
        .filter(|arch| !elements.iter().any(|element| element.arch.is_some_and(|other| other.serves(*arch))))
        .collect();
    arches.sort();
    arches.dedup();
    arches
}

fn items(value: Node<'_>, parsed: &Parsed) -> Vec<Element> {
    let mut cursor = value.walk();
    let children = value.named_children(&mut cursor).filter(|child| !child.is_extra());
    children
        .map(|child| {
            let text = parsed.text(child);
            let arch = arch_of(text.trim_matches(['"', '\'']));
            Element { range: child.byte_range(), text, arch }
        })
        .collect()
}

/// The words of a string such as `"8.0;9.0+PTX"`.
fn words(value: Node<'_>, parsed: &Parsed) -> Vec<Element> {
    let Some(content) = value.named_child(1).filter(|node| node.kind() == "string_content") else {
        return Vec::new();
    };
    let text = parsed.text(content);
    let mut elements = Vec::new();
    let mut start = 0;
    for end in text.match_indices([';', ',', ' ']).map(|(at, _)| at).chain([text.len()]) {
        let word = &text[start..end];
        if !word.is_empty() {
            let range = content.start_byte() + start..content.start_byte() + end;
            elements.push(Element { range, text: word.to_string(), arch: arch_of(word) });
        }
        start = end + 1;
    }
    elements
}

fn arch_of(text: &str) -> Option<Arch> {
    parse_codes(text).ok().and_then(|codes| codes.first().map(Code::arch))
}

fn notation(text: &str) -> Notation {
    match text {
        text if text.contains('.') => Notation::Capability,
        text if text.contains("sm_") => Notation::Code,
        _ => Notation::Number,
    }
}

/// An architecture as its neighbour is written, quotes included.
fn written(model: &str, notation: Notation, arch: Arch) -> String {
    let quote: String = model.chars().take_while(|c| matches!(c, '"' | '\'')).collect();
    let name = match notation {
        Notation::Number => arch.to_string(),
        Notation::Capability => arch.capability(),
        Notation::Code => Code::Sass(arch).to_string(),
    };
    format!("{quote}{name}{quote}")
}

/// What stands between two elements.
fn separator(elements: &[Element], parsed: &Parsed, is_text: bool) -> String {
    let fallback = if is_text { ";" } else { ", " };
    let between = elements.windows(2).next_back().map(|pair| pair[0].range.end..pair[1].range.start);
    let between = between.map(|range| String::from_utf8_lossy(&parsed.bytes[range]).into_owned());
    between.filter(|text| !text.contains('#')).unwrap_or_else(|| fallback.to_string())
}

/// An element and the separator that goes with it.
fn with_separator(elements: &[Element], index: usize) -> Range<usize> {
    match (index.checked_sub(1), elements.get(index + 1)) {
        (_, Some(next)) => elements[index].range.start..next.range.start,
        (Some(before), None) => elements[before].range.end..elements[index].range.end,
        (None, None) => elements[index].range.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str, add: &str, drop: &str) -> String {
        let op =
            ListOp { files: Files::new(&["setup.py".to_string()]).expect("glob"), name: "ARCHES".into() };
        let codes =
            |text: &str| text.split_whitespace().flat_map(|arch| parse_codes(arch).expect(arch)).collect();
        let wish = ArchWish { add: codes(add), drop: codes(drop), only: Vec::new() };
        let sources: Sources = [("setup.py", text.as_bytes())].into_iter().collect();
        let plan = op.plan(&sources, &wish).expect("plan");
        let new =
            plan.edits.get("setup.py").map_or(text.as_bytes().to_vec(), |edits| edits.apply(text.as_bytes()));
        String::from_utf8(new).expect("utf-8")
    }

    #[test]
    fn notation_separator_and_layout_are_kept() {
        assert_eq!(
            listed("ARCHES = [\"80\", \"90\"]\n", "120 100", ""),
            "ARCHES = [\"80\", \"90\", \"100\", \"120\"]\n"
        );
        assert_eq!(listed("ARCHES = '8.0;9.0+PTX'\n", "12.0", ""), "ARCHES = '8.0;9.0+PTX;12.0'\n");
        assert_eq!(listed("ARCHES = {80, 90}\n", "75", "90"), "ARCHES = {75, 80}\n");
        let lines = "ARCHES = (\n    'sm_80',\n    'sm_90',\n)\n";
        assert_eq!(listed(lines, "120", ""), lines.replace("'sm_90',", "'sm_90',\n    'sm_120',"));
        assert_eq!(listed("ARCHES = [\"120\"]\n", "120", ""), "ARCHES = [\"120\"]\n");
    }
}
