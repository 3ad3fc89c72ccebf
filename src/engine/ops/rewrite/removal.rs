//! Statements that go: with their lines, and without a hole.

use std::ops::Range;

use tree_sitter::Node;

use super::Change;
use crate::engine::edit::{Edit, Edits};
use crate::engine::syntax::Language;
use crate::engine::syntax::language::Parsed;
use crate::engine::syntax::style::{is_blank, line_end, line_start};

/// Nodes whose children are statements.
const BLOCKS: [&str; 12] = [
    "translation_unit",
    "compound_statement",
    "declaration_list",
    "field_declaration_list",
    "case_statement",
    "preproc_if",
    "preproc_ifdef",
    "preproc_else",
    "preproc_elif",
    "linkage_specification",
    "module",
    "block",
];

/// Nodes of which a statement is a part that something must stand for.
const HEADS: [&str; 7] = [
    "if_statement",
    "else_clause",
    "for_statement",
    "while_statement",
    "do_statement",
    "for_range_loop",
    "labeled_statement",
];

/// What goes with what stands at a place; none where that is no whole statement.
pub fn of(parsed: &Parsed, range: &Range<usize>) -> Option<Change> {
    let bytes = &parsed.bytes;
    let range = range.start..range.start + bytes[range.clone()].trim_ascii_end().len();
    let (range, block) = statement(parsed, range)?;
    if HEADS.contains(&block.kind()) {
        return Some(Change::Edits(vec![Edit { range, text: b";".to_vec() }]));
    }
    let lines = line_start(bytes, range.start)..line_end(bytes, range.end.max(range.start + 1) - 1);
    let before = &bytes[lines.start..range.start];
    let (rest, continued) = rest_of_line(parsed.language, &bytes[range.end..lines.end]);
    let alone = is_blank(before) && rest.is_empty();
    let in_macro = parsed.node_at(&range).is_some_and(|node| parsed.definition(node).is_some());
    Some(match (alone, in_macro) {
        (true, true) if !continued => Change::Edits(vec![last_line(bytes, &lines)]),
        (true, _) => Change::Lines(lines),
        (false, _) => Change::Edits(vec![part(bytes, range)]),
    })
}

/// A whole statement, and what it is a part of.
fn statement<'t>(parsed: &'t Parsed, range: Range<usize>) -> Option<(Range<usize>, Node<'t>)> {
    let mut node = parsed.node_at(&range)?;
    if node.byte_range() != range && BLOCKS.contains(&node.kind()) {
        return Some((range, node));
    }
    loop {
        let parent = node.parent()?;
        if BLOCKS.contains(&parent.kind()) || HEADS.contains(&parent.kind()) {
            return is_statement(node).then(|| (node.byte_range(), parent));
        }
        let same_start = parent.start_byte() == node.start_byte();
        let rest = &parsed.bytes[node.end_byte()..parent.end_byte().max(node.end_byte())];
        if !same_start || !matches!(rest.trim_ascii(), b"" | b";") {
            return None;
        }
        node = parent;
    }
}

fn is_statement(node: Node<'_>) -> bool {
    let kind = node.kind();
    kind.ends_with("_statement")
        || kind.ends_with("declaration")
        || kind.ends_with("_definition")
        || kind.starts_with("preproc_")
}

/// What stands on the rest of a line, its comment left out, and whether a `\\` continues the line.
fn rest_of_line(language: Language, rest: &[u8]) -> (&[u8], bool) {
    let line = rest.trim_ascii_end();
    let (line, continued) = match line.strip_suffix(b"\\") {
        Some(line) if language == Language::Cpp => (line, true),
        _ => (line, false),
    };
    let line = line.trim_ascii();
    let block = language == Language::Cpp
        && line.starts_with(b"/*")
        && memchr::memmem::find(line, b"*/") == line.len().checked_sub(2);
    let is_comment = line.starts_with(language.line_comment().as_bytes()) || block;
    (if is_comment { b"" } else { line }, continued)
}

/// The last line of a macro goes with the `\\` that continues to it.
fn last_line(bytes: &[u8], lines: &Range<usize>) -> Edit {
    let before = bytes[..lines.start].trim_ascii_end();
    let before = before.strip_suffix(b"\\").unwrap_or(before).trim_ascii_end();
    let end = lines.start + bytes[lines.clone()].trim_ascii_end().len();
    Edit { range: before.len()..end, text: Vec::new() }
}

/// A statement among others on its line goes with the blanks on one side of it.
fn part(bytes: &[u8], range: Range<usize>) -> Edit {
    let blanks = |text: &[u8]| text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let after = blanks(&bytes[range.end..]);
    Edit { range: range.start..range.end + after, text: Vec::new() }
}

/// The edits that take lines away. Where blank lines or the edge of a block would meet, a blank line goes too.
pub fn close(bytes: &[u8], mut removed: Vec<Range<usize>>) -> Edits {
    removed.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in removed {
        match joined.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    let mut edits = Edits::new();
    for range in joined {
        // The ranges are apart, so that no two edits meet.
        let _ = edits.insert(Edit { range: without_hole(bytes, range), text: Vec::new() });
    }
    edits
}

fn without_hole(bytes: &[u8], lines: Range<usize>) -> Range<usize> {
    let above = match lines.start {
        0 => &b"{"[..],
        start => bytes[line_start(bytes, start - 1)..start].trim_ascii(),
    };
    let next = lines.end..line_end(bytes, lines.end);
    let below = bytes[next.clone()].trim_ascii();
    match (above, below) {
        (b"", b"") if next.is_empty() => line_start(bytes, lines.start - 1)..lines.end,
        (b"", [b'}', ..]) => line_start(bytes, lines.start - 1)..lines.end,
        (b"" | [.., b'{'], b"") => lines.start..next.end,
        _ => lines,
    }
}
