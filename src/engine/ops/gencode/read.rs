//! Reading a build file into blocks of entries and guards.

use std::ops::Range;

use tree_sitter::Node;

use super::GencodeOp;
use super::guard::Evaluation;
use super::tree::{Block, Defect, Entry, Fate, Group, Header, Item, Lines, Origin, Part};
use super::worlds::{Presence, Worlds};
use crate::engine::arch::Gencode;
use crate::engine::pattern::Match;
use crate::engine::source::line_of;
use crate::engine::syntax::language::{Parsed, descendants, significant_children};
use crate::engine::syntax::style;

/// Reads a parsed file.
pub fn read(op: &GencodeOp, parsed: &Parsed, worlds: &Worlds) -> Block {
    let evaluation = Evaluation { parsed, forms: &op.forms, worlds };
    let mut reader = Reader { op, parsed, evaluation, sites: sites(op, parsed), next_id: 0 };
    let whole = 0..parsed.bytes.len();
    reader.block(parsed.root(), Vec::new(), whole, worlds.everywhere())
}

/// Where gencode values stand, right written or not.
fn sites(op: &GencodeOp, parsed: &Parsed) -> Vec<Range<usize>> {
    op.value
        .find_all(parsed)
        .iter()
        .filter(|found| value(found).is_some())
        .map(|found| found.range.clone())
        .collect()
}

/// A gencode value as it was found: `-gencode=arch=…` is one word that nvcc takes.
fn value(found: &Match) -> Option<(Gencode, Option<Defect>)> {
    let text = found.bindings.get("GENCODE")?.text.trim().to_string();
    if let Ok(gencode) = text.parse() {
        return Some((gencode, Some(Defect::ValueAlone)));
    }
    let rest = text.strip_prefix("--generate-code").or_else(|| text.strip_prefix("-gencode"))?;
    match rest.strip_prefix('=') {
        Some(rest) => rest.parse().ok().map(|gencode| (gencode, None)),
        None => rest.trim().parse().ok().map(|gencode| (gencode, Some(Defect::OneString))),
    }
}

struct Reader<'a> {
    op: &'a GencodeOp,
    parsed: &'a Parsed,
    evaluation: Evaluation<'a>,
    sites: Vec<Range<usize>>,
    next_id: usize,
}

impl<'a> Reader<'a> {
    fn block(&mut self, node: Node<'a>, indent: Vec<u8>, lines: Range<usize>, presence: Presence) -> Block {
        let statements: Vec<Node<'a>> =
            significant_children(node).into_iter().filter(Node::is_named).collect();
        let id = self.next_id;
        self.next_id += 1;
        let mut block = Block { id, indent, presence, items: Vec::new() };
        let (mut at, mut next) = (lines.start, 0);
        while next < statements.len() {
            let (length, item) = self.item(&statements[next..], &block);
            if let Some((range, item)) = item.filter(|(range, _)| range.start >= at || range.is_empty()) {
                self.push_text(&mut block, at..range.start.max(at));
                at = at.max(range.end);
                block.items.push(item);
            }
            next += length;
        }
        self.push_text(&mut block, at..lines.end);
        block
    }

    fn push_text(&self, block: &mut Block, range: Range<usize>) {
        if !range.is_empty() {
            let lines = self.lines(range, &block.indent);
            block.items.push(Item::Text(lines));
        }
    }

    fn lines(&self, range: Range<usize>, indent: &[u8]) -> Lines {
        let comment = self.parsed.language.line_comment().as_bytes();
        let statement = self.parsed.bytes[range.clone()]
            .split(|byte| *byte == b'\n')
            .any(|line| !style::is_blank(line) && !line.trim_ascii_start().starts_with(comment));
        Lines { range, indent: indent.to_vec(), statement }
    }

    /// The item that begins at the first of these statements, its lines, and how many statements it takes.
    fn item(&mut self, statements: &[Node<'a>], block: &Block) -> (usize, Option<(Range<usize>, Item)>) {
        let first = statements[0];
        if let Some((length, found, gencode, defect)) = self.entry(statements) {
            let entry = self.placed(&found, gencode, defect, block);
            let range = entry.origin.as_ref().map_or(0..0, |origin| origin.lines.range.clone());
            return (length, Some((range, Item::Entry(entry))));
        }
        let holds = |site: &Range<usize>| first.start_byte() <= site.start && site.end <= first.end_byte();
        if !self.sites.iter().any(holds) {
            return (1, None);
        }
        let range = style::whole_lines(&self.parsed.bytes, first.byte_range());
        (1, self.group(first, &range, block).map(|group| (range, Item::Group(group))))
    }

    /// A right written entry, or a half-done one, at the first of these statements.
    fn entry(&self, statements: &[Node<'a>]) -> Option<(usize, Match, Gencode, Option<Defect>)> {
        if let Some(found) = self.op.entry.match_siblings(self.parsed, statements)
            && let Some(gencode) = found.bindings.get("GENCODE").and_then(|bound| bound.text.parse().ok())
        {
            return Some((self.op.entry.length(), found, gencode, None));
        }
        let found = self.op.value.match_node(self.parsed, statements[0])?;
        let (gencode, defect) = value(&found)?;
        Some((1, found, gencode, defect))
    }

    fn placed(&self, found: &Match, gencode: Gencode, defect: Option<Defect>, block: &Block) -> Entry {
        let bytes = &self.parsed.bytes;
        let whole = style::whole_lines(bytes, found.range.clone());
        let range = if self.stands_alone(&whole, &found.range) {
            whole
        } else {
            found.range.start..found.range.start
        };
        let value = found.bindings.get("GENCODE").map_or(0..0, |bound| bound.range.clone());
        let line = line_of(bytes, found.range.start);
        let lines = Lines { range, indent: block.indent.clone(), statement: true };
        Entry { gencode, origin: Some(Origin { lines, value, line }), defect, fate: Fate::Stays }
    }

    /// Whether nothing but white space and comments shares the lines.
    fn stands_alone(&self, whole: &Range<usize>, range: &Range<usize>) -> bool {
        let bytes = &self.parsed.bytes;
        let after = bytes[range.end..whole.end].trim_ascii_start();
        let before = &bytes[whole.start..range.start];
        let before = before.strip_prefix(b"\xef\xbb\xbf").unwrap_or(before);
        style::is_blank(before)
            && (after.is_empty() || after.starts_with(self.parsed.language.line_comment().as_bytes()))
    }

    /// A statement whose blocks stand on lines of their own.
    fn group(&mut self, statement: Node<'a>, lines: &Range<usize>, block: &Block) -> Option<Group> {
        let bytes = &self.parsed.bytes;
        let mut parts = Vec::new();
        let mut open = self.evaluation.worlds.everywhere();
        let mut at = lines.start;
        for body in bodies(statement) {
            let start = style::line_start(bytes, body.start_byte());
            if start < at || !style::is_blank(&bytes[start..body.start_byte()]) {
                return None;
            }
            let (condition, rest) = self.condition(body, &open);
            open = rest;
            let end = style::whole_lines(bytes, body.byte_range()).end;
            let header = Header::Read(self.lines(at..start, &block.indent));
            let indent = bytes[start..body.start_byte()].to_vec();
            let presence = block.presence.and(&condition);
            let body = self.block(body, indent, start..end, presence);
            parts.push(Part { header, condition, body });
            at = end;
        }
        (!parts.is_empty() && at == lines.end).then_some(Group { parts })
    }

    /// Where a block lets through what reaches its statement, and what is left for the clauses after it.
    fn condition(&self, body: Node<'a>, open: &Presence) -> (Presence, Presence) {
        let Some(owner) = body.parent() else { return (open.clone(), open.clone()) };
        match (owner.kind(), owner.child_by_field_name("condition")) {
            ("if_statement" | "elif_clause", Some(condition)) => {
                let holds = self.evaluation.presence(condition);
                (open.and(&holds), open.and(&holds.negated()))
            }
            _ => (open.clone(), open.clone()),
        }
    }
}

/// The blocks of a statement, without those within them.
fn bodies(statement: Node<'_>) -> Vec<Node<'_>> {
    let mut found: Vec<Node<'_>> = Vec::new();
    for node in descendants(statement).filter(|node| node.kind() == "block") {
        if !found.iter().any(|outer| outer.end_byte() >= node.end_byte()) {
            found.push(node);
        }
    }
    found
}
