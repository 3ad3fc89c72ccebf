//! The includes of a C++ file, each with the conditions around it.

use super::branches::DeadCode;
use super::lexed::{Lexed, Read};
use super::passes::Passes;
use super::style;
use super::tokens::Kind;

/// A branch of an `#if`: its directives up to it, a line each.
pub type Condition = Vec<u8>;

/// Whether the preprocessor takes a branch whatever else is chosen: every other one is dead.
pub fn is_always_taken(condition: &Condition, passes: &Passes) -> bool {
    const OTHER: &[u8] = b"\nother\n";
    let lines: Vec<&[u8]> = condition.split(|byte| *byte == b'\n').collect();
    let Some((last, before)) = lines.split_last() else { return false };
    let mut text: Vec<u8> = before.iter().flat_map(|line| [line, OTHER].concat()).collect();
    text.extend([last, &b"\nthis\n"[..]].concat());
    if !last.ends_with(b"else") {
        text.extend([b"#else", OTHER].concat());
    }
    text.extend(b"#endif\n");
    let dead = DeadCode::of(&text, passes);
    memchr::memmem::find_iter(&text, OTHER).all(|at| dead.holds(at + 1))
}

/// An `#include` of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Include {
    /// `cuda/std/functional`
    pub path: Vec<u8>,
    /// Whether it is written with `<>`.
    pub system: bool,
    /// What its line begins with, up to the path: `    #include `.
    pub head: Vec<u8>,
    /// Where its directive begins.
    pub start: usize,
    /// Where its line ends, newline included.
    pub end: usize,
    /// Whether it belongs to the block at the top of the file.
    pub top: bool,
    /// The conditions around it.
    pub conditions: Vec<Condition>,
}

/// The conditions around an offset, but for the guard of a header.
pub fn conditions(lexed: &Lexed<'_>, guard: Option<usize>, offset: usize) -> Vec<Condition> {
    let starts = |directive: &usize| lexed.all[lexed.directives[*directive].start].range.start < offset;
    let mut open: Vec<Condition> = Vec::new();
    for directive in (0..lexed.directives.len()).take_while(starts) {
        let tokens = lexed.of_directive(directive);
        // `&&` are two tokens.
        let gap = |index: usize| {
            index
                .checked_sub(1)
                .is_some_and(|before| lexed.all[before].range.end < lexed.all[index].range.start)
        };
        let word = |index: &usize| [if gap(*index) { &b" "[..] } else { b"" }, lexed.text(*index)].concat();
        let text: Vec<u8> = tokens.iter().flat_map(word).collect::<Vec<u8>>().trim_ascii().to_vec();
        match (nesting(lexed.keyword(directive)), lexed.keyword(directive)) {
            (1, _) => open.push(if guard == Some(directive) { Vec::new() } else { text }),
            (-1, _) => drop(open.pop()),
            (_, b"else" | b"elif") => open
                .iter_mut()
                .next_back()
                .into_iter()
                .for_each(|last| last.extend([b"\n", &text[..]].concat())),
            _ => {}
        }
    }
    open.retain(|condition| !condition.is_empty());
    open
}

/// The directive that begins the guard of a header: `#ifndef X` and `#define X` before all code, whose `#endif` is the
/// end of the file.
pub fn guard(lexed: &Lexed<'_>) -> Option<usize> {
    let keyword = |directive: usize| lexed.keyword(directive);
    let first = (0..lexed.directives.len()).find(|directive| keyword(*directive) != b"pragma")?;
    let code = lexed.all.iter().position(|token| token.directive.is_none() && token.kind != Kind::Comment);
    let named = |directive: usize, word: usize| {
        lexed.of_directive(directive).get(word).map(|index| lexed.text(*index)).unwrap_or_default()
    };
    let asks = match keyword(first) {
        b"ifndef" => named(first, 2),
        b"if" if named(first, 2) == b"!" && named(first, 3) == b"defined" => {
            if named(first, 4) == b"(" {
                named(first, 5)
            } else {
                named(first, 4)
            }
        }
        _ => return None,
    };
    let second = lexed.directives.get(first + 1)?;
    let before_code = code.is_none_or(|code| second.start < code);
    let defines = keyword(first + 1) == b"define" && named(first + 1, 2) == asks;
    let last = lexed.directives.len() - 1;
    let behind = &lexed.all[lexed.directives[last].end..];
    let ends = closing(lexed, first) == Some(last) && behind.iter().all(|token| token.kind == Kind::Comment);
    (before_code && defines && ends).then_some(first)
}

/// The `#endif` of an `#if`.
fn closing(lexed: &Lexed<'_>, open: usize) -> Option<usize> {
    let mut depth = 0usize;
    (open..lexed.directives.len()).find(|directive| {
        depth = depth.saturating_add_signed(nesting(lexed.keyword(*directive)));
        depth == 0
    })
}

fn nesting(keyword: &[u8]) -> isize {
    match keyword {
        b"if" | b"ifdef" | b"ifndef" => 1,
        b"endif" => -1,
        _ => 0,
    }
}

/// All includes of a file. The block at the top ends where code begins that is more than a name.
pub fn includes(lexed: &Lexed<'_>) -> Vec<Include> {
    let guard = guard(lexed);
    let begins = |(_, token): &(usize, &Read)| {
        let text = &lexed.bytes[token.range.clone()];
        token.directive.is_none() && token.kind == Kind::Punctuation && !matches!(text, b";" | b"::" | b",")
    };
    let code = lexed.all.iter().enumerate().find(begins).map_or(usize::MAX, |(index, _)| index);
    let all =
        (0..lexed.directives.len()).filter_map(|directive| Some((directive, include(lexed, directive)?)));
    let placed = all.map(|(directive, include)| {
        let top = lexed.directives[directive].start < code;
        Include { top, conditions: conditions(lexed, guard, include.start), ..include }
    });
    placed.collect()
}

fn include(lexed: &Lexed<'_>, directive: usize) -> Option<Include> {
    let tokens = lexed.of_directive(directive);
    let (keyword, last) = (tokens.get(1)?, lexed.directives.get(directive)?.end - 1);
    if lexed.text(*keyword) != b"include" {
        return None;
    }
    let after = lexed.all[*keyword].range.end;
    let bytes = lexed.bytes;
    let open = after + bytes[after..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let close = match bytes.get(open)? {
        b'<' => b'>',
        b'"' => b'"',
        _ => return None,
    };
    let length = bytes[open + 1..].iter().position(|byte| *byte == close || *byte == b'\n')?;
    let text = style::indent_end(bytes, open);
    let head = &bytes[text - style::indent_at(bytes, open).len()..open];
    Some(Include {
        path: bytes[open + 1..open + 1 + length].to_vec(),
        system: close == b'>',
        head: if bytes[text..].starts_with(b"#") { head } else { b"#include " }.to_vec(),
        start: lexed.all[*tokens.first()?].range.start,
        end: style::line_end(bytes, lexed.all[last].range.end),
        top: false,
        conditions: Vec::new(),
    })
}
