//! Text as people see it: colours, columns, diffs, errors.

use anstyle::{AnsiColor, Style};
use similar::{ChangeTag, DiffOp, TextDiff};
use unicode_width::UnicodeWidthStr;

use super::failure::Report;
use crate::engine::plan::preview::FileDiff;

/// What is new or done.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// What goes or fails.
pub const BAD: Style = AnsiColor::Red.on_default();
/// What needs a look.
pub const WARN: Style = AnsiColor::Yellow.on_default();
/// What stands back.
pub const DIM: Style = Style::new().dimmed();
/// What stands out.
pub const STRONG: Style = Style::new().bold();
/// The word before a note.
pub const NOTE: Style = AnsiColor::Cyan.on_default().bold();
/// The word before an error.
const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The word before a hint.
pub const HINT: Style = AnsiColor::Green.on_default().bold();
const HUNK: Style = AnsiColor::Cyan.on_default();
const ADDED: Style = AnsiColor::Green.on_default().bold().underline();
const REMOVED: Style = AnsiColor::Red.on_default().bold().underline();

/// A text in a style.
pub fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Columns, each as wide as its widest cell; the last one is not padded. Styles do not count.
pub fn columns(rows: &[Vec<String>], indent: &str) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |cell: &String| anstream::adapter::strip_str(cell).to_string().width();
    let widths: Vec<usize> = (0..count)
        .map(|at| rows.iter().filter_map(|row| row.get(at)).map(width).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().enumerate().map(|(at, cell)| {
            let pad = if at + 1 == row.len() { 0 } else { widths[at] - width(cell) };
            format!("{cell}{}", " ".repeat(pad))
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(indent);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Text in lines of at most 100 columns, each behind an indent.
pub fn wrapped(text: &str, indent: &str) -> String {
    const WIDTH: usize = 100;
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let fits =
            |line: &&mut String| line.is_empty() || indent.len() + line.width() + 1 + word.width() <= WIDTH;
        match lines.last_mut().filter(fits) {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => line.extend([" ", word]),
            None => lines.push(word.to_string()),
        }
    }
    lines.iter().filter(|line| !line.is_empty()).map(|line| format!("{indent}{line}\n")).collect()
}

/// An error in rustc's manner: the fact, the place with its source, notes, and what to type next.
pub fn report(report: &Report) -> String {
    let mut text = format!("{} {}\n", paint(ERROR, "error:"), paint(STRONG, &report.error));
    if let Some(site) = &report.site {
        let number = site.line.to_string();
        let margin = " ".repeat(number.len());
        let (arrow, bar) = (paint(HUNK, "-->"), paint(HUNK, "|"));
        text.push_str(&format!("{margin} {arrow} {}:{}\n", site.path, site.line));
        text.push_str(&format!(
            "{margin}  {bar}\n{} {bar} {}\n{margin}  {bar}\n",
            paint(HUNK, &number),
            site.text
        ));
    }
    for note in &report.notes {
        text.push_str(&format!("{} {}\n", paint(NOTE, "note:"), note.trim_end()));
    }
    if let Some(hint) = &report.hint {
        text.push_str(&format!("{} {hint}\n", paint(HINT, "hint:")));
    }
    text
}

/// A diff with colours, the words that differ emphasised.
pub fn diff(file: &FileDiff) -> String {
    let (before, after) = (String::from_utf8_lossy(&file.before), String::from_utf8_lossy(&file.after));
    let diff = TextDiff::from_lines(before.as_ref(), after.as_ref());
    let path = &file.path;
    let mut text = paint(STRONG, &format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}"));
    text.push('\n');
    for group in diff.grouped_ops(3) {
        text.push_str(&paint(HUNK, &hunk_header(&group)));
        text.push('\n');
        for op in &group {
            for change in diff.iter_inline_changes(op) {
                text.push_str(&changed_line(change.tag(), change.iter_strings_lossy()));
            }
        }
    }
    text
}

/// A diff that is text already, with colours.
pub fn diff_text(diff: &[u8]) -> String {
    let text = String::from_utf8_lossy(diff);
    let paint_line = |line: &str| match line.as_bytes() {
        [b'+', b'+', ..] | [b'-', b'-', ..] | [b'd', ..] => paint(STRONG, line),
        [b'@', ..] => paint(HUNK, line),
        [b'+', ..] => paint(GOOD, line),
        [b'-', ..] => paint(BAD, line),
        _ => line.to_string(),
    };
    text.lines().map(|line| paint_line(line) + "\n").collect()
}

fn hunk_header(group: &[DiffOp]) -> String {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return String::new() };
    let range = |start: usize, end: usize| match end - start {
        1 => format!("{}", start + 1),
        0 => format!("{start},0"),
        length => format!("{},{length}", start + 1),
    };
    let old = range(first.old_range().start, last.old_range().end);
    let new = range(first.new_range().start, last.new_range().end);
    format!("@@ -{old} +{new} @@")
}

fn changed_line<'a>(
    tag: ChangeTag,
    parts: impl Iterator<Item = (bool, std::borrow::Cow<'a, str>)>,
) -> String {
    let (sign, plain, strong) = match tag {
        ChangeTag::Equal => (" ", Style::new(), Style::new()),
        ChangeTag::Insert => ("+", GOOD, ADDED),
        ChangeTag::Delete => ("-", BAD, REMOVED),
    };
    let mut line = paint(plain, sign);
    for (emphasised, part) in parts {
        let part = part.trim_end_matches(['\n', '\r']);
        if !part.is_empty() {
            line.push_str(&paint(if emphasised { strong } else { plain }, part));
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_seen() {
        let rows = vec![vec![paint(GOOD, "ab"), "x".into()], vec!["abcd".into(), "y".into()]];
        let text = anstream::adapter::strip_str(&columns(&rows, "  ")).to_string();
        assert_eq!(text, "  ab    x\n  abcd  y\n");
    }

    #[test]
    fn hunks_are_numbered_as_git_does() {
        let file = FileDiff { path: "a".into(), before: b"1\n2\n".to_vec(), after: b"1\n2\n3\n".to_vec() };
        let coloured = anstream::adapter::strip_str(&diff(&file)).to_string();
        assert_eq!(coloured.as_bytes(), file.unified());
    }
}
