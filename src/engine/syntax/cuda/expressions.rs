//! Expressions that the grammar does not read.

use super::Rewriting;
use super::decorations::is_of_lambda;
use super::part::{Part, is_macro_like};
use crate::engine::syntax::tokens::Kind;

/// Words of which the built-in types are made.
const TYPES: [&[u8]; 22] = [
    b"void",
    b"bool",
    b"char",
    b"short",
    b"int",
    b"long",
    b"float",
    b"double",
    b"signed",
    b"unsigned",
    b"const",
    b"size_t",
    b"ssize_t",
    b"ptrdiff_t",
    b"int8_t",
    b"int16_t",
    b"int32_t",
    b"int64_t",
    b"uint8_t",
    b"uint16_t",
    b"uint32_t",
    b"uint64_t",
];

/// Rewrites them.
pub fn rewrite(part: &Part<'_>, rewriting: &mut Rewriting<'_>) {
    for at in 0..part.tokens.len() {
        match part.text(at) {
            b"typename" => construction(part, at, rewriting),
            b"template" if matches!(part.text(at + 1), b"class" | b"struct") => {
                rewriting.hide(part.tokens[at].range())
            }
            b":" if part.is(at + 1, ":") && part.is_beside(at + 1) => colons(part, at, rewriting),
            b"(" if at > 0 && is_macro_like(part.before(at)) && !is_of_lambda(part, at - 1) => {
                types(part, at, rewriting);
                empty(part, at, rewriting);
            }
            b"enum" if part.is(at + 1, ":") => enumeration(part, at, rewriting),
            b"try" if part.is(at + 1, "{") => attempt(part, at, rewriting),
            b"(" if matches!(part.before(at), b"unsigned" | b"signed" | b"long" | b"short") => {
                cast(part, at, rewriting);
            }
            b"<" if at > 0 && part.is_word(at - 1) => comparisons(part, at, rewriting),
            b"operator" => operator_call(part, at, rewriting),
            b"=" if part.is(at + 1, "{") => default_value(part, at + 1, rewriting),
            // `if IN_BOUNDS(i, n) {`: the macro has the parentheses.
            b"if" | b"while" if is_macro_like(part.text(at + 1)) && part.is(at + 2, "(") => {
                rewriting.hide(part.tokens[at + 1].range());
            }
            _ => {}
        }
    }
}

/// `unsigned(x)`: the grammar takes one word of these for a type alone.
fn cast(part: &Part<'_>, open: usize, rewriting: &mut Rewriting<'_>) {
    let before = part.before(open - 1);
    let ends_statement = matches!(before, b"" | b";" | b"{" | b"}" | b")" | b"_");
    let is_operand = before == b"return" || (before.iter().all(u8::is_ascii_punctuation) && !ends_statement);
    let first = part.text(open + 1);
    if is_operand && !matches!(first, b"*" | b"&" | b")") && !TYPES.contains(&first) {
        rewriting.put(part.tokens[open - 1].start, "T");
    }
}

/// `enable_if<N >= 80, int>::type`: in a list of template arguments the grammar takes the `>` for its end.
fn comparisons(part: &Part<'_>, open: usize, rewriting: &mut Rewriting<'_>) {
    let Some(after) = part.after_angles(open) else { return };
    if !matches!(part.text(after), b":" | b"(" | b"{" | b">" | b"," | b";" | b"*" | b"&") {
        return;
    }
    let is_comparison = |at: usize| part.is(at, ">") && part.is(at + 1, "=") && part.is_beside(at + 1);
    for at in (open..after).filter(|at| is_comparison(*at)) {
        rewriting.pretend(part.tokens[at].start, "==");
    }
}

/// `x.operator++()`, `operator++();`: a call of an operator by its name.
fn operator_call(part: &Part<'_>, at: usize, rewriting: &mut Rewriting<'_>) {
    let Some(open) = (at + 2..at + 5).find(|open| part.is(*open, "(")) else { return };
    let is_member = part.before(at) == b"." || (part.before(at) == b">" && part.is_beside(at));
    let whole = part.tokens[at].start..part.tokens[open - 1].end;
    let is_statement = matches!(part.before(at), b";" | b"{" | b"}") && !part.is_word(at + 1);
    let is_call = part.partner(open).is_some_and(|close| part.is(close + 1, ";"));
    let is_one_line = !part.bytes[whole.clone()].contains(&b'\n');
    if is_one_line && (is_member || (is_statement && is_call)) {
        name(rewriting, whole);
    }
}

/// `T const &x = {1}` among parameters.
fn default_value(part: &Part<'_>, open: usize, rewriting: &mut Rewriting<'_>) {
    let Some(close) = part.partner(open) else { return };
    let is_parameter = matches!(part.text(close + 1), b"," | b")") && part.is_word(open.wrapping_sub(2));
    if is_parameter && part.tokens[close].start == part.tokens[open].end {
        rewriting.pretend(part.tokens[open].start, "0 ");
    } else if is_parameter && close > open + 1 {
        rewriting.pretend(part.tokens[open].start, "(");
        rewriting.pretend(part.tokens[close].start, ")");
    }
}

/// `A::*` in the type of a pointer to a member.
fn member_pointer(part: &Part<'_>, colons: usize, rewriting: &mut Rewriting<'_>) {
    let is_name = |at: usize| part.is_word(at) || matches!(part.text(at), b":" | b"<" | b">" | b",");
    let Some(open) = (0..colons).rev().take(40).find(|at| !is_name(*at)) else { return };
    if part.is(open, "(") {
        rewriting.hide(part.tokens[open].end..part.tokens[colons + 1].end);
    }
}

/// `typename T::X(a).f()`: the grammar reads `typename` in declarations alone.
fn construction(part: &Part<'_>, at: usize, rewriting: &mut Rewriting<'_>) {
    let Some(open) = part.after_name(at + 1) else { return };
    let is_value = part.before(at) == b"return" || !matches!(part.text(open + 1), b"*" | b"&");
    let is_call = (part.is(open, "(") && is_value) || part.is(open, "{");
    let is_argument = part.before(at) == b"<" && at > 1 && !part.is(at - 2, "<");
    if is_call && !is_argument && part.before(at) != b"new" {
        rewriting.hide(part.tokens[at].range());
    }
}

fn colons(part: &Part<'_>, at: usize, rewriting: &mut Rewriting<'_>) {
    if part.is(at + 2, "*") {
        member_pointer(part, at, rewriting);
    } else {
        operands(part, at, rewriting);
    }
}

/// `asm("…" :: "r"(x))`: two colons, no scope.
fn operands(part: &Part<'_>, at: usize, rewriting: &mut Rewriting<'_>) {
    let is_literal = |at: usize| part.tokens.get(at).is_some_and(|token| token.kind == Kind::Literal);
    let end = part.tokens[at + 1].end;
    let after_string = at > 0 && (is_literal(at - 1) || part.before(at) == b")");
    if after_string && is_literal(at + 2) && part.bytes.get(end) == Some(&b' ') {
        rewriting.put(end - 1, " :");
    }
}

/// `MACRO(, x)`: an argument that is empty.
fn empty(part: &Part<'_>, open: usize, rewriting: &mut Rewriting<'_>) {
    if part.is(open + 1, ",") {
        rewriting.hide(part.tokens[open + 1].range());
    }
}

/// `try { … } CATCH_ALL;`: the macro has the handler.
fn attempt(part: &Part<'_>, at: usize, rewriting: &mut Rewriting<'_>) {
    if part.partner(at + 1).is_some_and(|close| !part.is(close + 1, "catch")) {
        rewriting.hide(part.tokens[at].range());
    }
}

/// `enum : int {`: without a name the grammar takes no type.
fn enumeration(part: &Part<'_>, at: usize, rewriting: &mut Rewriting<'_>) {
    if let Some(open) = (at + 2..at + 8).find(|open| part.is(*open, "{")) {
        rewriting.hide(part.tokens[at + 1].start..part.tokens[open - 1].end);
    }
}

/// Types among the arguments of a macro: each is read as one name.
pub fn types(part: &Part<'_>, open: usize, rewriting: &mut Rewriting<'_>) {
    let Some(close) = part.partner(open).filter(|_| !is_declared(part, open - 1)) else { return };
    let (mut start, mut at) = (open + 1, open + 1);
    while at <= close {
        if at == close || part.is(at, ",") {
            if is_type(part, start, at) {
                name(rewriting, part.tokens[start].start..part.tokens[at - 1].end);
            }
            start = at + 1;
        }
        at = part.partner(at).filter(|partner| *partner > at).unwrap_or(at) + 1;
    }
}

/// Whether a type stands before a name: what follows are parameters.
fn is_declared(part: &Part<'_>, name: usize) -> bool {
    let before = part.before(name);
    let is_word = name > 0 && part.is_word(name - 1);
    let keyword = matches!(before, b"return" | b"else" | b"do" | b"case" | b"throw");
    (is_word && !keyword) || matches!(before, b"*" | b"&" | b">")
}

fn is_type(part: &Part<'_>, start: usize, end: usize) -> bool {
    end > start
        && TYPES.contains(&part.text(start))
        && (start..end).all(|at| TYPES.contains(&part.text(at)) || matches!(part.text(at), b"*" | b"&"))
        && !part.bytes[part.tokens[start].start..part.tokens[end - 1].end].contains(&b'\n')
}

fn name(rewriting: &mut Rewriting<'_>, range: std::ops::Range<usize>) {
    for byte in &mut rewriting.text[range.clone()] {
        if !byte.is_ascii_alphanumeric() {
            *byte = b'_';
        }
    }
    rewriting.text[range.start] = b'T';
}
