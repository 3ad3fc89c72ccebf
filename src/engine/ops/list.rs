//! `list`: a named list, tuple, set or string holds the wanted architectures; its notation is kept.

use std::ops::Range;

use tree_sitter::Node;

use super::files::Files;
use super::gencode::ArchWish;
use super::{NoAnchor, OpError, OpPlan, Outcome, Site, parse};
use crate::engine::arch::{Arch, Code, parse_codes};
use crate::engine::edit::{Edit, Edits};
use crate::engine::source::Sources;
use crate::engine::syntax::language::{Parsed, descendants, significant_children};
use crate::engine::syntax::style;

/// A list of architectures that a name stands for, such as one that only validates.
#[derive(Debug, Clone)]
pub struct ListOp {
    /// Where to look.
    pub files: Files,
    /// The variable that holds it.
    pub name: String,
}

/// One element of a list: its bytes and the results that it names.
#[derive(Debug, Clone)]
struct Element {
    range: Range<usize>,
    text: String,
    codes: Vec<Code>,
}

/// An element of the settled list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Slot {
    /// Which element it was; `None`: it is new.
    was: Option<usize>,
    text: String,
}

impl ListOp {
    /// What the op does to these sources.
    pub fn plan(&self, sources: &Sources, wish: &ArchWish) -> Result<OpPlan, OpError> {
        let mut plan = OpPlan::of(Outcome::AlreadySatisfied { why: format!("`{}` holds them", self.name) });
        let mut how = Vec::new();
        for (path, bytes) in self.files.of(sources) {
            let Some(parsed) = parse(sources, path)? else { continue };
            let no_list = || self.no_anchor(path, format!("no list named `{}`", self.name));
            let list = self.value(parsed).map(|value| List::read(value, parsed)).ok_or_else(no_list)?;
            plan.sites.push(Site::of(path, bytes, list.value.start_byte()));
            if list.model().is_none() && wish.wanted().next().is_some() {
                return Err(self.no_anchor(path, format!("no architecture in `{}`", self.name)));
            }
            let slots = list.settled(wish, &mut how);
            if slots.is_empty() && !list.elements.is_empty() {
                return Err(OpError::NothingLeft { place: format!("`{}` of {path}", self.name) });
            }
            let edits =
                list.edits(&slots).map_err(|overlap| OpError::Overlap { path: path.to_string(), overlap })?;
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
        let mut values = assignments.filter_map(|node| {
            let left = node.child_by_field_name("left")?;
            let named = match left.child_by_field_name("subscript") {
                Some(key) => unquoted(&parsed.text(key)) == self.name,
                None => parsed.text(left) == self.name,
            };
            named.then(|| literal(node.child_by_field_name("right")?, parsed))?
        });
        values.next()
    }

    fn no_anchor(&self, path: &str, fact: String) -> OpError {
        OpError::NoAnchor(Box::new(NoAnchor {
            fact,
            path: path.to_string(),
            looked_for: format!("{} = [...]", self.name),
            nearest: None,
        }))
    }
}

/// The literal inside of an expression: `("8.0 9.0")`, `frozenset([…])`, `"8.0 9.0".split()`, and the default of
/// `os.getenv("X", "8.0")`.
fn literal<'t>(node: Node<'t>, parsed: &Parsed) -> Option<Node<'t>> {
    match node.kind() {
        "list" | "tuple" | "set" | "string" => Some(node),
        "parenthesized_expression" => literal(node.named_child(0)?, parsed),
        "call" => {
            let function = node.child_by_field_name("function")?;
            let arguments: Vec<Node<'t>> = significant_children(node.child_by_field_name("arguments")?);
            let arguments: Vec<Node<'t>> = arguments.into_iter().filter(Node::is_named).collect();
            let name = parsed.text(function);
            match (name.rsplit('.').next().unwrap_or_default(), arguments.as_slice()) {
                ("getenv" | "get", [_, default]) => literal(*default, parsed),
                ("set" | "frozenset" | "tuple" | "list" | "sorted", [only]) => literal(*only, parsed),
                ("split" | "strip" | "replace", _) => {
                    literal(function.child_by_field_name("object")?, parsed)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// A list as it was read.
struct List<'t> {
    value: Node<'t>,
    parsed: &'t Parsed,
    elements: Vec<Element>,
}

impl<'t> List<'t> {
    fn read(value: Node<'t>, parsed: &'t Parsed) -> Self {
        let elements = if value.kind() == "string" { words(value, parsed) } else { items(value, parsed) };
        Self { value, parsed, elements }
    }

    /// An element that shows how architectures are written.
    fn model(&self) -> Option<&Element> {
        self.elements.iter().rfind(|element| !element.codes.is_empty())
    }

    /// What the list must hold, in words too.
    fn settled(&self, wish: &ArchWish, how: &mut Vec<String>) -> Vec<Slot> {
        let mut slots = Vec::new();
        for (index, element) in self.elements.iter().enumerate() {
            let kept: Vec<Code> = element.codes.iter().copied().filter(|code| wish.keeps(*code)).collect();
            let unchanged = kept.len() == element.codes.len();
            let text = match kept.first() {
                _ if unchanged => element.text.clone(),
                Some(code) => written(&element.text, code.arch(), false),
                None => String::new(),
            };
            if !unchanged {
                how.push(if text.is_empty() {
                    format!("drops {}", element.text)
                } else {
                    format!("{} becomes {text}", element.text)
                });
            }
            if unchanged || !text.is_empty() {
                slots.push(Slot { was: Some(index), text });
            }
        }
        let Some(model) = self.model() else { return slots };
        for code in wish.wanted() {
            add(&mut slots, code, &model.text, how);
        }
        slots
    }

    fn edits(&self, slots: &[Slot]) -> Result<Edits, crate::engine::edit::Overlap> {
        let mut edits = Edits::new();
        let whole = slots.iter().enumerate().all(|(at, slot)| {
            slot.was == Some(at) && self.elements.get(at).is_some_and(|element| element.text == slot.text)
        });
        if whole && slots.len() == self.elements.len() {
            return Ok(edits);
        }
        let wanted = if self.is_one_a_line() { self.by_lines(slots) } else { vec![self.in_line(slots)] };
        wanted.into_iter().try_for_each(|edit| edits.insert(edit))?;
        Ok(edits)
    }

    /// Whether each element has a line of its own.
    fn is_one_a_line(&self) -> bool {
        let bytes = &self.parsed.bytes;
        self.value.kind() != "string"
            && self.elements.iter().all(|element| {
                let line = style::whole_lines(bytes, element.range.clone());
                let after = bytes[element.range.end..line.end].trim_ascii_start();
                let after = after.strip_prefix(b",").unwrap_or(after).trim_ascii_start();
                style::is_blank(&bytes[line.start..element.range.start])
                    && (after.is_empty() || after.starts_with(b"#"))
            })
    }

    /// Lines go and come as a whole.
    fn by_lines(&self, slots: &[Slot]) -> Vec<Edit> {
        let bytes = &self.parsed.bytes;
        let line = |element: &Element| style::whole_lines(bytes, element.range.clone());
        let mut edits = Vec::new();
        for (index, element) in self.elements.iter().enumerate() {
            match slots.iter().find(|slot| slot.was == Some(index)) {
                None => edits.push(Edit { range: line(element), text: Vec::new() }),
                Some(slot) if slot.text != element.text => {
                    edits.push(Edit { range: element.range.clone(), text: slot.text.clone().into() });
                }
                Some(_) => {}
            }
        }
        let newline = style::newline(bytes);
        let indent =
            String::from_utf8_lossy(style::indent_at(bytes, self.elements[0].range.start)).into_owned();
        let mut news: Vec<(usize, String)> = Vec::new();
        let mut at = line(&self.elements[0]).start;
        for slot in slots {
            match slot.was {
                Some(index) => at = line(&self.elements[index]).end,
                None => news.push((at, format!("{indent}{},{newline}", slot.text))),
            }
        }
        let last = &self.elements[self.elements.len() - 1];
        let end = line(last).end;
        let has_comma = bytes[last.range.end..end].trim_ascii_start().starts_with(b",");
        if !has_comma
            && news.iter().any(|(at, _)| *at == end)
            && slots.iter().any(|slot| slot.was == Some(self.elements.len() - 1))
        {
            edits.push(Edit { range: last.range.end..last.range.end, text: b",".to_vec() });
            if let Some((_, text)) = news.last_mut() {
                *text = text.replacen(&format!(",{newline}"), newline, 1);
            }
        }
        edits.extend(news.into_iter().map(|(at, text)| Edit { range: at..at, text: text.into() }));
        joined(edits)
    }

    /// All elements anew, between the first and the last; the gaps between neighbours that stay are kept.
    fn in_line(&self, slots: &[Slot]) -> Edit {
        let bytes = &self.parsed.bytes;
        let range = self.elements[0].range.start..self.elements[self.elements.len() - 1].range.end;
        let gap = |index: usize| {
            let (before, after) = (self.elements.get(index)?, self.elements.get(index + 1)?);
            Some(bytes[before.range.end..after.range.start].to_vec())
        };
        let mut text: Vec<u8> = Vec::new();
        for (at, slot) in slots.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| slots.get(before));
            let between = before.map(|before| match (before.was, slot.was) {
                (Some(index), Some(_)) => gap(index),
                (None, Some(index)) => index.checked_sub(1).and_then(gap),
                (_, None) => None,
            });
            if let Some(between) = between {
                text.extend(between.unwrap_or_else(|| self.separator()));
            }
            text.extend_from_slice(slot.text.as_bytes());
        }
        let comma = bytes[range.end..self.value.end_byte()].contains(&b',');
        if self.value.kind() == "tuple" && slots.len() == 1 && !comma {
            text.push(b',');
        }
        smallest(bytes, range, text)
    }

    /// What stands between two elements of one line.
    fn separator(&self) -> Vec<u8> {
        let pairs =
            self.elements.windows(2).map(|pair| &self.parsed.bytes[pair[0].range.end..pair[1].range.start]);
        let mut plain = pairs.filter(|gap| !gap.contains(&b'#') && !gap.contains(&b'\n'));
        let fallback: &[u8] = if self.value.kind() == "string" { b";" } else { b", " };
        plain.next_back().unwrap_or(fallback).to_vec()
    }
}

/// Adds what is wanted and not there; in notations that know it, PTX is part of its architecture.
fn add(slots: &mut Vec<Slot>, code: Code, model: &str, how: &mut Vec<String>) {
    let arch = code.arch();
    let codes = |slot: &Slot| codes_of(&slot.text);
    let served = |slot: &Slot| codes(slot).iter().any(|other| other.serves(code));
    if slots.iter().any(served) {
        return;
    }
    match code {
        Code::Sass(_) => {
            let smaller = |slot: &Slot| codes(slot).first().is_some_and(|other| other.arch() < arch);
            let after = slots.iter().rposition(smaller).map(|index| index + 1);
            let named = || slots.iter().position(|slot| !codes(slot).is_empty());
            let text = written(model, arch, false);
            how.push(format!("adds {text}"));
            slots.insert(after.or_else(named).unwrap_or(slots.len()), Slot { was: None, text });
        }
        Code::Ptx(_) if unquoted(model).contains('.') => {
            let same = |slot: &&mut Slot| codes_of(&slot.text).contains(&Code::Sass(arch));
            if let Some(slot) = slots.iter_mut().find(same) {
                slot.text = written(model, arch, true);
                how.push(format!("adds PTX to {arch}"));
            }
        }
        Code::Ptx(_) | Code::Lto(_) => {}
    }
}

/// One edit without what is the same at both ends.
fn smallest(bytes: &[u8], range: Range<usize>, text: Vec<u8>) -> Edit {
    let old = &bytes[range.clone()];
    let start = old.iter().zip(&text).take_while(|(one, other)| one == other).count();
    let rest = old[start..].iter().rev().zip(text[start..].iter().rev());
    let end = rest.take_while(|(one, other)| one == other).count();
    Edit { range: range.start + start..range.end - end, text: text[start..text.len() - end].to_vec() }
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

fn items(value: Node<'_>, parsed: &Parsed) -> Vec<Element> {
    let children = significant_children(value).into_iter().filter(Node::is_named);
    let element = |child: Node<'_>| {
        let text = parsed.text(child);
        Element { range: child.byte_range(), codes: codes_of(&text), text }
    };
    children.map(element).collect()
}

/// The words of a string such as `"8.0;9.0+PTX"`.
fn words(value: Node<'_>, parsed: &Parsed) -> Vec<Element> {
    let content = value.named_child(1).filter(|node| node.kind() == "string_content");
    let Some(content) = content else { return Vec::new() };
    let text = parsed.text(content);
    let mut elements = Vec::new();
    let mut start = 0;
    for end in text.match_indices([';', ',', ' ']).map(|(at, _)| at).chain([text.len()]) {
        let word = &text[start..end];
        if !word.is_empty() {
            let range = content.start_byte() + start..content.start_byte() + end;
            elements.push(Element { range, text: word.to_string(), codes: codes_of(word) });
        }
        start = end + 1;
    }
    elements
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\''])
}

fn codes_of(text: &str) -> Vec<Code> {
    parse_codes(unquoted(text)).unwrap_or_default()
}

/// An architecture as its neighbour is written (`90`, `9.0`, `sm_90`), quotes included.
fn written(model: &str, arch: Arch, ptx: bool) -> String {
    let quote: String = model.chars().take_while(|c| matches!(c, '"' | '\'')).collect();
    let name = match unquoted(model) {
        bare if bare.contains('.') => arch.capability() + if ptx { "+PTX" } else { "" },
        bare if bare.contains("sm_") => Code::Sass(arch).to_string(),
        bare if bare.contains("compute_") => Code::Ptx(arch).to_string(),
        _ => arch.to_string(),
    };
    format!("{quote}{name}{quote}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(text: &str, add: &str, drop: &str, only: &str) -> String {
        let op =
            ListOp { files: Files::new(&["setup.py".to_string()]).expect("glob"), name: "ARCHES".into() };
        let codes =
            |text: &str| text.split_whitespace().flat_map(|arch| parse_codes(arch).expect(arch)).collect();
        let wish = ArchWish { add: codes(add), drop: codes(drop), only: codes(only) };
        let sources: Sources = [("setup.py", text.as_bytes())].into_iter().collect();
        let plan = op.plan(&sources, &wish).expect("plan");
        let new =
            plan.edits.get("setup.py").map_or(text.as_bytes().to_vec(), |edits| edits.apply(text.as_bytes()));
        String::from_utf8(new).expect("utf-8")
    }

    fn listed(text: &str, add: &str, drop: &str) -> String {
        settled(text, add, drop, "")
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
        assert_eq!(
            listed("ARCHES = [\n  80,\n  90\n]\n", "86 120", ""),
            "ARCHES = [\n  80,\n  86,\n  90,\n  120\n]\n"
        );
    }

    #[test]
    fn several_neighbours_may_go() {
        assert_eq!(listed("ARCHES = [60, 61, 70, 80]\n", "", "60 61"), "ARCHES = [70, 80]\n");
        assert_eq!(listed("ARCHES = [60, 61, 70, 80]\n", "", "70 80"), "ARCHES = [60, 61]\n");
        assert_eq!(settled("ARCHES = ('60', '61', '90')\n", "", "", "90"), "ARCHES = ('90',)\n");
        assert_eq!(settled("ARCHES = [60, 61]\n", "", "", "90"), "ARCHES = [90]\n");
        let lines = "ARCHES = [\n    60,  # a\n    61,  # b\n    70  # c\n]\n";
        assert_eq!(settled(lines, "", "60 70", ""), "ARCHES = [\n    61,  # b\n]\n");
        assert_eq!(settled(lines, "80", "70", ""), "ARCHES = [\n    60,  # a\n    61,  # b\n    80,\n]\n");
    }

    #[test]
    fn ptx_belongs_to_its_architecture() {
        assert_eq!(
            listed("ARCHES = '8.0 9.0'\n", "9.0+PTX 12.0+PTX", ""),
            "ARCHES = '8.0 9.0+PTX 12.0+PTX'\n"
        );
        assert_eq!(listed("ARCHES = '8.0;9.0+PTX'\n", "", "compute_90"), "ARCHES = '8.0;9.0'\n");
        assert_eq!(listed("ARCHES = '8.0;9.0+PTX'\n", "", "90"), "ARCHES = '8.0'\n");
    }

    #[test]
    fn the_list_may_stand_within_a_call() {
        for text in [
            "ARCHES = os.getenv('X', '80')\n",
            "ARCHES = set(['80'])\n",
            "ARCHES = '80'.split(';')\n",
            "os.environ['ARCHES'] = '80'\n",
        ] {
            let added = listed(text, "120", "");
            assert!(added.contains("80;120") || added.contains("80', '120"), "{added}");
        }
    }
}
