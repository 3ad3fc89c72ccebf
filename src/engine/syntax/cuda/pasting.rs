//! `#` and `##` in the bodies of macros.

use super::Rewriting;
use super::part::Part;
use crate::engine::syntax::tokens::Kind;

/// Reads pasted tokens as one name, and a parameter that becomes a string as a name of its own.
pub fn rewrite(part: &Part<'_>, rewriting: &mut Rewriting<'_>) {
    let mut at = 0;
    while at < part.tokens.len() {
        if part.is(at, "#") {
            let length = part.run(at);
            if length == 2 {
                paste(part, at, rewriting)
            } else {
                stringize(part, at, rewriting)
            }
            at += length;
        } else {
            if part.is(at, "__VA_OPT__") {
                optional(part, at, rewriting);
            }
            at += 1;
        }
    }
}

/// `#x` is one name, and not `x`.
fn stringize(part: &Part<'_>, at: usize, rewriting: &mut Rewriting<'_>) {
    match part.tokens.get(at + 1) {
        Some(name) if name.kind == Kind::Word && !part.begins_line(at + 1) => {
            (part.tokens[at].start..name.start).for_each(|place| rewriting.put(place, "_"));
        }
        _ => rewriting.hide(part.tokens[at].range()),
    }
}

/// `a ## b` is one name, and neither `a` nor `b`.
fn paste(part: &Part<'_>, at: usize, rewriting: &mut Rewriting<'_>) {
    let (Some(before), Some(after)) =
        (at.checked_sub(1).map(|before| part.tokens[before]), part.tokens.get(at + 2))
    else {
        return;
    };
    let joins = |kind: Kind| matches!(kind, Kind::Word | Kind::Number);
    if !joins(before.kind) || !joins(after.kind) || part.begins_line(at) || part.begins_line(at + 2) {
        return rewriting.hide(part.tokens[at].start..part.tokens[at + 1].end);
    }
    (before.end..after.start).for_each(|place| rewriting.put(place, "_"));
    rewriting.hidden.push(before.start..after.end);
}

/// `__VA_OPT__(,)` is what stands in its parentheses.
fn optional(part: &Part<'_>, at: usize, rewriting: &mut Rewriting<'_>) {
    if let Some(close) = part.partner(at + 1) {
        rewriting.hide(part.tokens[at].start..part.tokens[at + 1].end);
        rewriting.hide(part.tokens[close].range());
    }
}
