//! Writing settled blocks back as text.

use super::GencodeOp;
use super::tree::{Block, Entry, Fate, Group, Header, Item, Lines, Part};
use crate::engine::arch::Gencode;
use crate::engine::pattern::Unbound;
use crate::engine::syntax::language::Parsed;
use crate::engine::syntax::style;

/// The settled file. What nothing touched comes out byte for byte.
pub fn render(op: &GencodeOp, parsed: &Parsed, root: &Block) -> Result<Vec<u8>, Unbound> {
    let entries = root.entries();
    let origins = || entries.iter().filter_map(|(entry, _)| entry.origin.as_ref());
    let quote = origins()
        .find_map(|origin| style::sole_quote(&String::from_utf8_lossy(&parsed.bytes[origin.span.clone()])));
    let newline =
        origins().map(|origin| &parsed.bytes[origin.lines.range.clone()]).find(|text| text.contains(&b'\n'));
    let newline = style::newline(newline.unwrap_or(&parsed.bytes));
    let mut writer = Writer { op, parsed, quote, newline, out: Vec::new(), gap: false };
    writer.block(root)?;
    let mut out = writer.out;
    if !parsed.bytes.ends_with(b"\n") && out.ends_with(b"\n") {
        out.truncate(out.len() - if out.ends_with(b"\r\n") { 2 } else { 1 });
    }
    Ok(out)
}

struct Writer<'a> {
    op: &'a GencodeOp,
    parsed: &'a Parsed,
    quote: Option<char>,
    newline: &'static str,
    out: Vec<u8>,
    /// Something was left out since the last line that was written.
    gap: bool,
}

impl Writer<'_> {
    fn block(&mut self, block: &Block) -> Result<(), Unbound> {
        for item in &block.items {
            match item {
                Item::Text(lines) => self.text(lines, &block.indent),
                Item::Entry(entry) => self.entry(entry, block)?,
                Item::Group(group) if group.is_emptied() => self.gap = true,
                Item::Group(group) => self.group(group, block)?,
            }
        }
        Ok(())
    }

    /// Lines of the file; where something before them went, no second blank line is left.
    fn text(&mut self, lines: &Lines, indent: &[u8]) {
        let mut bytes = &self.parsed.bytes[lines.range.clone()];
        if self.gap && self.ends_open() {
            while let Some(first) = bytes.split_inclusive(|byte| *byte == b'\n').next()
                && style::is_blank(first)
            {
                bytes = &bytes[first.len()..];
            }
        }
        if !bytes.is_empty() {
            let text = reindented(bytes, &lines.indent, indent);
            self.write(&text);
        }
    }

    /// Whether the text so far ends in a blank line, or in a line that opens a block.
    fn ends_open(&self) -> bool {
        let last = self.out.strip_suffix(b"\n").unwrap_or(&self.out);
        let last = &last[style::line_start(last, last.len())..];
        style::is_blank(last) || last.trim_ascii_end().ends_with(b":")
    }

    fn entry(&mut self, entry: &Entry, block: &Block) -> Result<(), Unbound> {
        match (&entry.fate, &entry.origin) {
            (Fate::Goes, _) => {
                self.gap = true;
                Ok(())
            }
            (Fate::Becomes(gencode), Some(origin)) => {
                let range = &origin.lines.range;
                let bytes = &self.parsed.bytes;
                let mut text = bytes[range.start..origin.value.start].to_vec();
                text.extend_from_slice(gencode.to_string().as_bytes());
                text.extend_from_slice(&bytes[origin.value.end..range.end]);
                self.write(&reindented(&text, &origin.lines.indent, &block.indent));
                Ok(())
            }
            (_, Some(origin)) if entry.defect.is_none() || entry.fate == Fate::Stays => {
                let bytes = &self.parsed.bytes[origin.lines.range.clone()];
                let text = reindented(bytes, &origin.lines.indent, &block.indent);
                self.write(&text);
                Ok(())
            }
            _ => self.new_entry(&entry.gencode, &block.indent),
        }
    }

    fn new_entry(&mut self, gencode: &Gencode, indent: &[u8]) -> Result<(), Unbound> {
        let text = self.op.template.fill(|name| super::written(gencode, name))?;
        let text = self.quote.map_or_else(|| text.clone(), |quote| style::requote(&text, quote));
        text.lines().for_each(|line| self.line(indent, line));
        Ok(())
    }

    fn group(&mut self, group: &Group, block: &Block) -> Result<(), Unbound> {
        let last = group.parts.iter().rposition(|part| !group.conditional || part.body.has_statement());
        let parts = last.map_or(&group.parts[..], |last| &group.parts[..=last]);
        parts.iter().try_for_each(|part| self.part(part, block))?;
        self.gap = parts.len() < group.parts.len();
        Ok(())
    }

    fn part(&mut self, part: &Part, block: &Block) -> Result<(), Unbound> {
        match &part.header {
            Header::Read(lines) => self.text(lines, &block.indent),
            Header::Written(condition) => {
                let condition =
                    self.quote.map_or_else(|| condition.clone(), |quote| style::requote(condition, quote));
                self.line(&block.indent, &format!("if {condition}:"));
            }
        }
        self.block(&part.body)?;
        if !part.body.has_statement() && !part.body.inline {
            self.line(&part.body.indent, "pass");
        }
        Ok(())
    }

    fn line(&mut self, indent: &[u8], line: &str) {
        let text = [indent, line.as_bytes(), self.newline.as_bytes()].concat();
        self.write(&text);
    }

    fn write(&mut self, text: &[u8]) {
        if !text.is_empty() && !self.out.is_empty() && !self.out.ends_with(b"\n") {
            self.out.extend_from_slice(self.newline.as_bytes());
        }
        self.out.extend_from_slice(text);
        self.gap = false;
    }
}

/// Lines that were written for one indentation, for another. Blank lines stay as they are.
fn reindented(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    if from == to {
        return text.to_vec();
    }
    let lines = text.split_inclusive(|byte| *byte == b'\n').map(|line| match line.strip_prefix(from) {
        Some(rest) if !style::is_blank(line) => [to, rest].concat(),
        _ => line.to_vec(),
    });
    lines.collect::<Vec<_>>().concat()
}
