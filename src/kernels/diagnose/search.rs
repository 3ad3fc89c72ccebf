//! Where the patterns of the rules match in a log. The log is read in pieces; each piece is searched as it stands and
//! with the lines joined that a console broke at its last column.

use std::collections::BTreeMap;

use regex::bytes::{Captures, Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use unicode_width::UnicodeWidthStr;

/// A piece is searched when it has this many bytes.
const PIECE: usize = 128 << 10;
/// Lines of a piece that the next one begins with, so that nothing is cut apart.
const KEPT_LINES: usize = 12;
const KEPT_BYTES: usize = 16 << 10;
/// Consoles are this wide.
const WIDTHS: std::ops::RangeInclusive<usize> = 79..=250;
const EXCERPT: usize = 400;

/// Where something was found first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// The line, from 1.
    pub line: usize,
    /// What stands there.
    pub excerpt: String,
    /// What the named groups caught.
    pub captures: BTreeMap<String, String>,
}

/// The patterns of many rules; each rule has several.
pub struct Patterns {
    set: RegexSet,
    regexes: Vec<(usize, Regex)>,
}

impl Patterns {
    /// The names of all groups of a rule's patterns.
    pub fn groups(&self, rule: usize) -> impl Iterator<Item = &str> {
        let ours = self.regexes.iter().filter(move |(owner, _)| *owner == rule);
        ours.flat_map(|(_, regex)| regex.capture_names().flatten())
    }
}

impl Patterns {
    /// Compiles the patterns of each rule.
    pub fn compile<'a>(rules: impl Iterator<Item = &'a [String]>) -> Result<Self, regex::Error> {
        let owned: Vec<(usize, &str)> = rules
            .enumerate()
            .flat_map(|(rule, patterns)| patterns.iter().map(move |pattern| (rule, pattern.as_str())))
            .collect();
        // Letters are bytes here: Unicode's classes of them would make the search many times slower.
        let set = owned.iter().map(|(_, pattern)| pattern);
        let set = RegexSetBuilder::new(set).multi_line(true).unicode(false).build()?;
        let regex = |(rule, pattern): &(usize, &str)| {
            Ok((*rule, RegexBuilder::new(pattern).multi_line(true).unicode(false).build()?))
        };
        Ok(Self { set, regexes: owned.iter().map(regex).collect::<Result<_, regex::Error>>()? })
    }
}

/// Goes through a log, line by line.
pub struct Search<'a> {
    patterns: &'a Patterns,
    lines: Vec<(usize, String)>,
    bytes: usize,
    /// The first place of each rule that was found.
    pub hits: BTreeMap<usize, Hit>,
}

/// Lines as one text, with the places where they begin.
struct Piece {
    text: String,
    starts: Vec<(usize, usize)>,
}

impl<'a> Search<'a> {
    /// Nothing was found yet.
    pub fn new(patterns: &'a Patterns) -> Self {
        Self { patterns, lines: Vec::new(), bytes: 0, hits: BTreeMap::new() }
    }

    /// Takes a line.
    pub fn line(&mut self, number: usize, text: &str) {
        self.bytes += text.len() + 1;
        self.lines.push((number, text.to_string()));
        if self.bytes >= PIECE {
            self.search();
            self.keep();
        }
    }

    /// All lines were taken: where each rule was found first.
    pub fn end(mut self) -> BTreeMap<usize, Hit> {
        self.search();
        self.hits
    }

    fn keep(&mut self) {
        let (mut kept, mut bytes) = (0, 0);
        for (_, text) in self.lines.iter().rev().take(KEPT_LINES) {
            bytes += text.len() + 1;
            kept += usize::from(bytes <= KEPT_BYTES);
        }
        self.lines.drain(..self.lines.len() - kept);
        self.bytes = self.lines.iter().map(|(_, text)| text.len() + 1).sum();
    }

    fn search(&mut self) {
        let pieces = [Some(plain(&self.lines)), rejoined(&self.lines)];
        for piece in pieces.into_iter().flatten() {
            for at in self.patterns.set.matches(piece.text.as_bytes()) {
                let (rule, regex) = &self.patterns.regexes[at];
                let found = regex.captures(piece.text.as_bytes()).map(|found| hit(regex, &found, &piece));
                if let Some(found) = found
                    && self.hits.get(rule).is_none_or(|known| found.line < known.line)
                {
                    self.hits.insert(*rule, found);
                }
            }
        }
    }
}

fn hit(regex: &Regex, captures: &Captures<'_>, piece: &Piece) -> Hit {
    let text = piece.text.as_bytes();
    let whole = captures.get(0).map_or(0..0, |found| found.range());
    let start = memchr::memrchr(b'\n', &text[..whole.start]).map_or(0, |at| at + 1);
    let end = memchr::memchr(b'\n', &text[whole.end..]).map_or(text.len(), |at| whole.end + at);
    let line = piece.starts.partition_point(|(at, _)| *at <= whole.start).saturating_sub(1);
    let caught = |name: &str| {
        let bytes = captures.name(name)?.as_bytes();
        Some((name.to_string(), String::from_utf8_lossy(bytes).into_owned()))
    };
    Hit {
        line: piece.starts.get(line).map_or(1, |(_, number)| *number),
        excerpt: shortened(&piece.text[start..end], whole.start - start),
        captures: regex.capture_names().flatten().filter_map(caught).collect(),
    }
}

/// The part of a line around what was found.
fn shortened(text: &str, at: usize) -> String {
    let mut start = at.saturating_sub(EXCERPT / 4);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let start = if text.chars().count() <= EXCERPT { 0 } else { start };
    text[start..].chars().take(EXCERPT).map(|letter| if letter == '\n' { ' ' } else { letter }).collect()
}

fn plain(lines: &[(usize, String)]) -> Piece {
    let mut piece = Piece { text: String::new(), starts: Vec::new() };
    for (number, text) in lines {
        piece.starts.push((piece.text.len(), *number));
        piece.text.push_str(text);
        piece.text.push('\n');
    }
    piece
}

/// The lines that fill a console's width, joined with what follows; nothing where no line does.
fn rejoined(lines: &[(usize, String)]) -> Option<Piece> {
    let width = lines.iter().map(|(_, text)| text.width()).max()?;
    if !WIDTHS.contains(&width) {
        return None;
    }
    let mut piece = Piece { text: String::new(), starts: Vec::new() };
    for (number, text) in lines {
        piece.starts.push((piece.text.len(), *number));
        piece.text.push_str(text);
        // A wide letter that did not fit leaves a column free.
        if text.width() + 1 < width {
            piece.text.push('\n');
        }
    }
    Some(piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(patterns: &[&str], log: &str) -> Vec<(usize, usize, String)> {
        let rules: Vec<Vec<String>> = patterns.iter().map(|pattern| vec![pattern.to_string()]).collect();
        let patterns = Patterns::compile(rules.iter().map(Vec::as_slice)).expect("patterns");
        let mut search = Search::new(&patterns);
        log.lines().enumerate().for_each(|(at, line)| search.line(at + 1, line));
        search.end().into_iter().map(|(rule, hit)| (rule, hit.line, hit.excerpt)).collect()
    }

    #[test]
    fn the_first_place_of_each_rule_is_kept() {
        let log = "a\nbad one\nworse\nbad two\n";
        assert_eq!(
            found(&["bad", "worse", "never"], log),
            [(0, 2, "bad one".into()), (1, 3, "worse".into())]
        );
        assert_eq!(found(&[r"one\s+worse"], log), [(0, 2, "bad one worse".into())]);
    }

    #[test]
    fn lines_that_a_console_broke_are_joined() {
        let broken = format!("{}unsuppo\nrted version\nshort\n", "x".repeat(113));
        assert_eq!(found(&["unsupported version"], &broken)[0].1, 1);
        let wide = format!("{}应为编\n译时常量\n", "x".repeat(113));
        assert_eq!(found(&["应为编译时常量"], &wide).len(), 1);
        assert!(found(&["unsupported"], "unsuppo\nrted\n").is_empty());
    }

    #[test]
    fn what_lies_across_pieces_is_found_once() {
        let line = "y".repeat(1000);
        for before in 125..140 {
            let log = format!(
                "{}split\nhere\n{}",
                format!("{line}\n").repeat(before),
                format!("{line}\n").repeat(200)
            );
            assert_eq!(found(&[r"split\s+here"], &log), [(0, before + 1, "split here".into())]);
        }
    }

    #[test]
    fn long_lines_are_shortened() {
        let log = format!("{}needle{}", "ä".repeat(3000), "b".repeat(3000));
        let (_, line, excerpt) = found(&["needle"], &log).remove(0);
        assert!(line == 1 && excerpt.contains("needle") && excerpt.chars().count() <= EXCERPT, "{excerpt}");
    }
}
