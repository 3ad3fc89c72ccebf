//! The edits that make a list what it was settled to be: whole lines where each element has its own, else the text
//! between the first element and the last.

use std::ops::Range;

use super::element::Element;
use super::settle::Slot;
use crate::engine::edit::{Edit, Edits, Overlap};
use crate::engine::syntax::style;

/// Where a list stands, and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// From its first bracket or quote to its last.
    pub range: Range<usize>,
    /// What it is.
    pub kind: ContainerKind,
}

/// What a list is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerKind {
    /// Items between brackets, with commas.
    Items,
    /// The same, where one item alone needs its comma.
    Tuple,
    /// Words of a text.
    Words,
    /// One value, without brackets.
    Single,
}

/// A list as it lies in a file.
#[derive(Debug, Clone, Copy)]
pub struct Written<'a> {
    /// The file.
    pub bytes: &'a [u8],
    /// The list.
    pub container: &'a Container,
    /// Its elements.
    pub elements: &'a [Element],
}

impl Written<'_> {
    /// The edits that leave these slots.
    pub fn edits(&self, slots: &[Slot]) -> Result<Edits, Overlap> {
        let mut edits = Edits::new();
        let stays = |(at, slot): (usize, &Slot)| {
            slot.was == Some(at) && self.elements.get(at).is_some_and(|element| element.text == slot.text)
        };
        if slots.len() == self.elements.len() && slots.iter().enumerate().all(stays) {
            return Ok(edits);
        }
        if self.is_one_a_line() {
            let (range, text) = self.by_lines(slots);
            for edit in Edits::between_lines(&self.bytes[range.clone()], &text).iter() {
                let moved = edit.range.start + range.start..edit.range.end + range.start;
                edits.insert(Edit { range: moved, text: edit.text.clone() })?;
            }
        } else {
            edits.insert(self.in_line(slots))?;
        }
        Ok(edits)
    }

    fn lines(&self, element: &Element) -> Range<usize> {
        style::whole_lines(self.bytes, element.range.clone())
    }

    /// Whether each element has lines of its own.
    fn is_one_a_line(&self) -> bool {
        !matches!(self.container.kind, ContainerKind::Words | ContainerKind::Single)
            && self.elements.iter().all(|element| {
                let line = self.lines(element);
                let after = self.bytes[element.range.end..line.end].trim_ascii_start();
                let after = after.strip_prefix(b",").unwrap_or(after).trim_ascii_start();
                style::is_blank(&self.bytes[line.start..element.range.start])
                    && (after.is_empty() || after.starts_with(b"#"))
            })
    }

    /// The lines of the list anew. Comments that speak of nothing else than what goes, go with it.
    fn by_lines(&self, slots: &[Slot]) -> (Range<usize>, Vec<u8>) {
        let start = style::line_end(self.bytes, self.container.range.start);
        let end = self.lines(&self.elements[self.elements.len() - 1]).end;
        let mut text = Vec::new();
        let mut next = 0;
        for piece in self.living(&self.pieces(start..end), slots) {
            let index = match piece {
                Piece::Other(line) => {
                    text.extend_from_slice(&self.bytes[line]);
                    continue;
                }
                Piece::Element(index) => index,
            };
            let has_place = |slot: &&Slot| slot.was.is_none_or(|was| was <= index);
            while let Some(slot) = slots.get(next).filter(has_place) {
                next += 1;
                self.write_line(slot, next < slots.len() || self.ends_in_comma(slots), &mut text);
            }
        }
        (start..end, text)
    }

    /// Whether a comma stands behind the last element; also where the one without goes.
    fn ends_in_comma(&self, slots: &[Slot]) -> bool {
        let last = self.elements.len() - 1;
        let element = &self.elements[last];
        let behind = self.bytes[element.range.end..self.lines(element).end].trim_ascii_start();
        behind.starts_with(b",") || !slots.iter().any(|slot| slot.was == Some(last))
    }

    /// One element with its line.
    fn write_line(&self, slot: &Slot, wants_comma: bool, text: &mut Vec<u8>) {
        let model = slot.was.and_then(|was| self.elements.get(was));
        let element = model.unwrap_or(&self.elements[0]);
        let line = self.lines(element);
        let rest = match model {
            Some(_) => &self.bytes[element.range.end..line.end],
            None => style::newline(self.bytes).as_bytes(),
        };
        text.extend_from_slice(&self.bytes[line.start..element.range.start]);
        text.extend_from_slice(slot.text.as_bytes());
        if wants_comma && !rest.trim_ascii_start().starts_with(b",") {
            text.push(b',');
        }
        text.extend_from_slice(rest);
    }

    /// The pieces without the comments of each paragraph of which every element goes, and the blank lines behind it.
    /// The places of elements stay: something new may stand there.
    fn living(&self, pieces: &[Piece], slots: &[Slot]) -> Vec<Piece> {
        let is_blank =
            |piece: &Piece| matches!(piece, Piece::Other(line) if style::is_blank(&self.bytes[line.clone()]));
        let stays = |piece: &&Piece| matches!(piece, Piece::Element(index) if slots.iter().any(|slot| slot.was == Some(*index)));
        let is_element = |piece: &&Piece| matches!(piece, Piece::Element(_));
        let mut living = Vec::new();
        let mut left = pieces;
        while !left.is_empty() {
            let length = left.iter().position(is_blank).unwrap_or(left.len());
            let blanks = left[length..].iter().take_while(|piece| is_blank(piece)).count();
            let (paragraph, rest) = left.split_at(length + blanks);
            let dead = paragraph.iter().any(|piece| is_element(&piece))
                && !paragraph.iter().any(|piece| stays(&piece));
            living.extend(paragraph.iter().filter(|piece| !dead || is_element(piece)).cloned());
            left = rest;
        }
        living
    }

    /// The lines of a range, those of an element as one.
    fn pieces(&self, range: Range<usize>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut at = range.start;
        for (index, element) in self.elements.iter().enumerate() {
            let lines = self.lines(element);
            self.push_others(at..lines.start, &mut pieces);
            pieces.push(Piece::Element(index));
            at = lines.end;
        }
        self.push_others(at..range.end, &mut pieces);
        pieces
    }

    fn push_others(&self, range: Range<usize>, pieces: &mut Vec<Piece>) {
        let mut at = range.start;
        while at < range.end {
            let end = style::line_end(self.bytes, at);
            pieces.push(Piece::Other(at..end));
            at = end;
        }
    }

    /// All elements anew, between the first and the last; the gaps between neighbours that stay are kept.
    fn in_line(&self, slots: &[Slot]) -> Edit {
        let range = self.elements[0].range.start..self.elements[self.elements.len() - 1].range.end;
        let gap = |index: usize| {
            let (before, after) = (self.elements.get(index)?, self.elements.get(index + 1)?);
            Some(self.bytes[before.range.end..after.range.start].to_vec())
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
        let comma = self.bytes[range.end..self.container.range.end].contains(&b',');
        if self.container.kind == ContainerKind::Tuple && slots.len() == 1 && !comma {
            text.push(b',');
        }
        smallest(self.bytes, range, text)
    }

    /// What stands between two elements: without a newline where any two stand in one line.
    fn separator(&self) -> Vec<u8> {
        let pairs = self.elements.windows(2).map(|pair| &self.bytes[pair[0].range.end..pair[1].range.start]);
        let gaps: Vec<&[u8]> = pairs.filter(|gap| !gap.contains(&b'#')).collect();
        let plain = gaps.iter().rfind(|gap| !gap.contains(&b'\n')).or(gaps.last());
        let fallback: &[u8] = match self.container.kind {
            ContainerKind::Words if self.elements.iter().any(Element::is_option) => b" ",
            ContainerKind::Words => b";",
            ContainerKind::Items | ContainerKind::Tuple | ContainerKind::Single => b", ",
        };
        plain.map_or(fallback, |gap| gap).to_vec()
    }
}

/// A piece of the lines of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Element(usize),
    /// A comment, or a blank line.
    Other(Range<usize>),
}

/// One edit without what is the same at both ends.
fn smallest(bytes: &[u8], range: Range<usize>, text: Vec<u8>) -> Edit {
    let old = &bytes[range.clone()];
    let start = old.iter().zip(&text).take_while(|(one, other)| one == other).count();
    let rest = old[start..].iter().rev().zip(text[start..].iter().rev());
    let end = rest.take_while(|(one, other)| one == other).count();
    Edit { range: range.start + start..range.end - end, text: text[start..text.len() - end].to_vec() }
}
