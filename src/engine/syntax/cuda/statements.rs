//! Macros that are statements: without a `;` behind them, or with statements among their arguments.

use super::Rewriting;
use super::decorations::is_decoration;
use super::expressions::types;
use super::part::{Part, is_macro_like};
use crate::engine::syntax::tokens::Kind;

/// Words before a parenthesis that are no call.
const KEYWORDS: [&[u8]; 11] = [
    b"for",
    b"if",
    b"while",
    b"switch",
    b"catch",
    b"return",
    b"sizeof",
    b"decltype",
    b"requires",
    b"alignas",
    b"explicit",
];

/// Ends macro calls that lack a `;`, and takes statements out of the arguments of macros.
pub fn rewrite(part: &Part<'_>, rewriting: &mut Rewriting<'_>) {
    // The brackets that are open, by where they close, and whether statements stand in them.
    let mut open: Vec<(usize, bool)> = Vec::new();
    for at in 0..part.tokens.len() {
        while open.last().is_some_and(|(close, _)| *close <= at) {
            open.pop();
        }
        let Some(close) = part.partner(at).filter(|close| *close > at) else { continue };
        let between_statements = open.last().is_none_or(|(_, statements)| *statements);
        let is_call = part.is(at, "(") && at > 0 && is_called(part, at - 1);
        let holds_statements = match is_call && between_statements {
            true => call(part, at, close, rewriting),
            false => part.is(at, "{"),
        };
        open.push((close, holds_statements));
    }
}

fn is_called(part: &Part<'_>, name: usize) -> bool {
    part.is_word(name) && !KEYWORDS.contains(&part.text(name)) && !is_decoration(part.text(name))
}

/// Rewrites a call between statements; whether its arguments are statements.
fn call(part: &Part<'_>, open: usize, close: usize, rewriting: &mut Rewriting<'_>) -> bool {
    if let Some(start) = statements(part, open, close, 0) {
        take_out(part, start, close, rewriting);
        return true;
    }
    let is_condition = part.is(close + 1, "else");
    if is_condition {
        // The macro has the `if`.
        rewriting.hide(part.tokens[close + 1].range());
    }
    if is_condition || lacks_end(part, open, close) {
        rewriting.terminate(part.tokens[close].end, next_start(part, close));
        types(part, open, rewriting);
    }
    false
}

fn next_start(part: &Part<'_>, at: usize) -> usize {
    part.tokens.get(at + 1).map_or(part.bytes.len(), |next| next.start)
}

/// How deep macros with statements are nested in each other.
const DEEPEST: usize = 12;

/// The first token of the statements among the arguments of a macro: before a `;`, or such a macro in turn.
fn statements(part: &Part<'_>, open: usize, close: usize, depth: usize) -> Option<usize> {
    open.checked_sub(1).filter(|name| depth <= DEEPEST && is_called(part, *name))?;
    if let Some(end) = first_semicolon(part, open, close) {
        return Some(comma_before(part, open, end).unwrap_or(open) + 1);
    }
    let inner = part.partner(close - 1).filter(|inner| *inner > open && part.is(*inner, "("))?;
    statements(part, inner, close - 1, depth + 1)?;
    matches!(part.before(inner - 1), b"," | b"(").then_some(inner - 1)
}

fn first_semicolon(part: &Part<'_>, open: usize, close: usize) -> Option<usize> {
    let mut at = open + 1;
    while at < close {
        if part.is(at, ";") {
            return Some(at);
        }
        at = part.partner(at).filter(|partner| *partner > at).unwrap_or(at) + 1;
    }
    None
}

/// `MACRO(a, b, statement; …)` is read as `MACRO(a, b); statement; …`.
fn take_out(part: &Part<'_>, start: usize, close: usize, rewriting: &mut Rewriting<'_>) {
    let separator = part.tokens[start - 1];
    if part.is(start - 1, ",") {
        rewriting.pretend(separator.start, ")");
        rewriting.terminate(separator.end, part.tokens[start].start);
    } else {
        rewriting.pretend(separator.start, ";");
    }
    rewriting.pretend(part.tokens[close].start, " ");
}

/// The comma before the argument that ends at `end`; those between template arguments do not count.
fn comma_before(part: &Part<'_>, open: usize, end: usize) -> Option<usize> {
    let (mut at, mut angles) = (end, 0usize);
    while at > open + 1 {
        at -= 1;
        match part.text(at) {
            b")" | b"]" | b"}" => at = part.partner(at)?,
            b">" if !(part.before(at) == b"-" && part.is_beside(at)) => angles += 1,
            b"<" => angles = angles.saturating_sub(1),
            b"," if angles == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

/// Whether a macro call is a statement without a `;`: the next line begins another one, or the next macro does.
fn lacks_end(part: &Part<'_>, open: usize, close: usize) -> bool {
    let name = open - 1;
    let is_scope = name > 1 && part.is(name - 1, ":") && part.is(name - 2, ":");
    let begins =
        matches!(part.before(name), b"" | b";" | b"{" | b"}" | b")" | b":" | b"else" | b"do") && !is_scope;
    if !begins {
        return false;
    }
    let next = part.text(close + 1);
    let begins_line = part.begins_line(close + 1);
    match next {
        b"}" => matches!(part.before(name), b";" | b"}") || is_macro_like(part.text(name)),
        b"" => !part.is_body,
        b"const" | b"volatile" => {
            begins_line && part.is_word(close + 2) && !BEHIND_PARAMETERS.contains(&part.text(close + 2))
        }
        b"{" => is_macro_like(part.text(name)) && part.before(name) != b":" && is_computed(part, open, close),
        b"~" => begins_line,
        _ if BEHIND_PARAMETERS.contains(&next) => false,
        _ if next == part.text(name) => true,
        _ => part.is_word(close + 1) && begins_line,
    }
}

/// Words that follow the parameters of a function, and operators that are words.
const BEHIND_PARAMETERS: [&[u8]; 7] =
    [b"noexcept", b"override", b"final", b"and", b"or", b"try", b"requires"];

/// Whether arguments are computed, so that they cannot be the parameters of a function.
fn is_computed(part: &Part<'_>, open: usize, close: usize) -> bool {
    let is_value = |at: usize| {
        let token = &part.tokens[at];
        token.kind == Kind::Number || matches!(part.text(at), b"+" | b"-" | b"/" | b"." | b"(" | b"[")
    };
    let is_product = |at: usize| part.is(at, "*") && part.is_word(at + 1) && !part.is_beside(at + 1);
    (open + 1..close).any(|at| is_value(at) || is_product(at))
}
