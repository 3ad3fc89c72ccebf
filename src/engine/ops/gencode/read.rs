//! Reading a build file into blocks of entries and guards.

use std::ops::Range;

use tree_sitter::Node;

use super::GencodeOp;
use super::guard::{Evaluation, Known, names_hip};
use super::reach::{assigned_first, begins_list, uncalled_functions};
use super::tree::{Block, Defect, Entry, Fate, Group, Header, Item, Lines, Origin, Part};
use super::worlds::{Presence, Truth, Worlds};
use crate::engine::arch::Gencode;
use crate::engine::ops::choice::Choice;
use crate::engine::pattern::Match;
use crate::engine::source::line_of;
use crate::engine::syntax::language::{Parsed, descendants, significant_children};
use crate::engine::syntax::style;

/// Reads a parsed file.
pub fn read(op: &GencodeOp, parsed: &Parsed, worlds: &Worlds) -> Block {
    let known = Known::default();
    let evaluation =
        Evaluation { parsed, forms: &op.forms, any: op.any, worlds, plain: Truth::Maybe, known: &known };
    let sites = sites(op, parsed);
    let uncalled = uncalled_functions(parsed, &sites);
    let mut reader = Reader { op, parsed, evaluation, sites, uncalled, next_id: 0 };
    let whole = 0..parsed.bytes.len();
    let around = Around { presence: worlds.everywhere(), context: None, choice: None };
    reader.block(parsed.root(), Vec::new(), whole, around)
}

/// Where gencode values stand, right written or not.
fn sites(op: &GencodeOp, parsed: &Parsed) -> Vec<Range<usize>> {
    let found = op.values.iter().flat_map(|value| value.find_all(parsed));
    found.filter(|found| value(found).is_some()).map(|found| found.range).collect()
}

/// A gencode value as it was found, and where the value itself begins: `-gencode=arch=…` is one word that nvcc takes.
fn value(found: &Match) -> Option<(Gencode, usize, Option<Defect>)> {
    let text = found.bindings.get("GENCODE")?.text.as_str();
    let start = text.find("arch=")?;
    let gencode = text[start..].parse().ok()?;
    let before = text[..start].trim_start();
    let option = before.strip_prefix("--generate-code").or_else(|| before.strip_prefix("-gencode"));
    let defect = match option {
        None => before.is_empty().then_some(Some(Defect::ValueAlone)),
        Some("=") => Some(None),
        Some(blank) => blank.trim().is_empty().then_some(Some(Defect::OneString)),
    };
    defect.map(|defect| (gencode, start, defect))
}

struct Reader<'a> {
    op: &'a GencodeOp,
    parsed: &'a Parsed,
    evaluation: Evaluation<'a>,
    sites: Vec<Range<usize>>,
    uncalled: Vec<Range<usize>>,
    next_id: usize,
}

/// What reaches a block, and the context that it belongs to; `None`: it is one itself.
struct Around {
    presence: Presence,
    context: Option<usize>,
    /// The condition before it that may choose an architecture, and its line.
    choice: Option<Choice>,
}

/// An entry as it was found, and how many statements it takes.
struct Found {
    length: usize,
    span: Range<usize>,
    value: Range<usize>,
    gencode: Gencode,
    defect: Option<Defect>,
}

impl<'a> Reader<'a> {
    fn block(&mut self, node: Node<'a>, indent: Vec<u8>, lines: Range<usize>, around: Around) -> Block {
        let statements: Vec<Node<'a>> =
            significant_children(node).into_iter().filter(Node::is_named).collect();
        let id = self.next_id;
        self.next_id += 1;
        let inline = lines.is_empty();
        let Around { presence, context, choice } = around;
        let own_list = self.begins_list(node, context.is_none());
        let context = context.unwrap_or(id);
        let mut block = Block { id, indent, presence, context, inline, own_list, choice, items: Vec::new() };
        let (mut at, mut next) = (lines.start, 0);
        while next < statements.len() {
            let (length, item) = self.item(&statements[next..], &block);
            let frozen = |item: &Item| matches!(item, Item::Entry(entry) if entry.is_frozen());
            if let Some((range, item)) = item.filter(|(range, item)| range.start >= at || frozen(item)) {
                self.push_text(&mut block, at..range.start.max(at));
                if frozen(&item) {
                    self.push_text(&mut block, range.start.max(at)..range.end.min(lines.end));
                }
                at = at.max(range.end);
                block.items.push(item);
            }
            next += length;
        }
        self.push_text(&mut block, at..lines.end);
        block
    }

    /// Whether a block begins a list of its own: the body of a function, and where names are not known also a block
    /// that something else than the toolkit decides about.
    fn begins_list(&self, block: Node<'a>, is_context: bool) -> bool {
        let Some(list) = self.op.list() else { return false };
        let in_function = begins_list(block, self.parsed, list);
        let anew = || block.parent().is_some() && assigned_first(block, self.parsed, list, &self.sites);
        in_function || (self.op.any && is_context && anew())
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
        if let Some(found) = self.entry(statements) {
            let length = found.length;
            let (range, entry) = self.placed(found, block);
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
    fn entry(&self, statements: &[Node<'a>]) -> Option<Found> {
        let whole = self.op.entries.iter().find_map(|entry| {
            let found = entry.match_siblings(self.parsed, statements)?;
            let bound = found.bindings.get("GENCODE")?;
            let (gencode, value) = (bound.text.parse().ok()?, bound.range.clone());
            Some(Found { length: entry.length(), span: found.range, value, gencode, defect: None })
        });
        whole.or_else(|| {
            let found = self.op.values.first()?.match_node(self.parsed, statements[0])?;
            let (gencode, start, defect) = value(&found)?;
            let bound = found.bindings.get("GENCODE")?.range.clone();
            let value = bound.start + start..bound.end;
            Some(Found { length: 1, span: found.range, value, gencode, defect })
        })
    }

    /// The entry and its lines; it has none of its own where it shares them.
    fn placed(&self, found: Found, block: &Block) -> (Range<usize>, Entry) {
        let bytes = &self.parsed.bytes;
        let whole = style::whole_lines(bytes, found.span.clone());
        let alone = !block.inline && self.stands_alone(&whole, &found.span);
        let range = if alone { whole.clone() } else { whole.end..whole.end };
        let line = line_of(bytes, found.span.start);
        let lines = Lines { range, indent: block.indent.clone(), statement: true };
        let origin = Some(Origin { lines, span: found.span, value: found.value, line });
        (whole, Entry { gencode: found.gencode, origin, defect: found.defect, fate: Fate::Stays })
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

    /// A statement with blocks. A block that shares the line of its header belongs to that line.
    fn group(&mut self, statement: Node<'a>, lines: &Range<usize>, block: &Block) -> Option<Group> {
        let bytes = &self.parsed.bytes;
        let mut parts = Vec::new();
        let mut open = self.evaluation.worlds.everywhere();
        let mut at = lines.start;
        for body in bodies(statement) {
            let start = style::line_start(bytes, body.start_byte());
            let end = style::whole_lines(bytes, body.byte_range()).end;
            let inline = start < at || !style::is_blank(&bytes[start..body.start_byte()]);
            let (header, inner) = if inline { (at..end.max(at), end..end) } else { (at..start, start..end) };
            let (condition, rest) = self.condition(body, &open);
            open = rest;
            let header = Header::Read(self.lines(header, &block.indent));
            let indent = if inline { Vec::new() } else { bytes[start..body.start_byte()].to_vec() };
            let decided = statement.kind() == "if_statement" && condition.is_certain();
            let context = decided.then_some(block.context);
            let choice = self.choice(body, statement);
            let around = Around { presence: self.reached(block, &condition, statement), context, choice };
            let body = self.block(body, indent, inner, around);
            parts.push(Part { header, condition, body });
            at = end.max(at);
        }
        let conditional = statement.kind() == "if_statement";
        (!parts.is_empty() && at == lines.end).then_some(Group { conditional, rest: open, parts })
    }

    /// The condition of a statement that may choose the architectures of one of its blocks, where names are not known.
    fn choice(&self, body: Node<'a>, statement: Node<'a>) -> Option<Choice> {
        let line = line_of(&self.parsed.bytes, statement.start_byte());
        self.evaluation.choice(body).filter(|choice| self.op.any && choice.line >= line)
    }

    /// Where a block within another is reached. What the toolkit alone rules out is dead for HIP too.
    fn reached(&self, block: &Block, condition: &Presence, statement: Node<'a>) -> Presence {
        let reached = block.presence.and(condition);
        let mut conditions = descendants(statement).filter_map(|node| node.child_by_field_name("condition"));
        let ruled_out = reached.no_toolkit() && !block.presence.no_toolkit();
        if ruled_out && !conditions.any(|condition| names_hip(&self.parsed.text(condition))) {
            return self.evaluation.worlds.nowhere();
        }
        reached
    }

    /// Where a block lets through what reaches its statement, and what is left for the clauses after it.
    fn condition(&self, body: Node<'a>, open: &Presence) -> (Presence, Presence) {
        let Some(owner) = body.parent() else { return (open.clone(), open.clone()) };
        match (owner.kind(), owner.child_by_field_name("condition")) {
            ("if_statement" | "elif_clause", Some(condition)) => {
                let holds = self.evaluation.presence(condition);
                (open.and(&holds), open.and(&holds.negated()))
            }
            ("else_clause", _) if owner.parent().is_some_and(|outer| outer.kind() == "if_statement") => {
                (open.clone(), self.evaluation.worlds.nowhere())
            }
            // Of a block that may be left by an exception and those that catch it, nothing tells which are run.
            ("try_statement" | "except_clause" | "except_group_clause", _) if self.op.any => {
                (self.evaluation.worlds.presence(|_| Truth::Maybe), open.clone())
            }
            ("function_definition", _) if self.uncalled.contains(&owner.byte_range()) => {
                (self.evaluation.worlds.nowhere(), open.clone())
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
