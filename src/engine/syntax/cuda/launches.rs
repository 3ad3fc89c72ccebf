//! Kernel launches: `k<<<g, b>>>(x)` is read as `k  (g, b)  (x)`, so that all that stands in one is code.

use super::Rewriting;
use super::part::{LONGEST_RUN, Part};

/// Turns the brackets of each launch into parentheses.
pub fn rewrite(part: &Part<'_>, rewriting: &mut Rewriting<'_>) {
    let mut at = 0;
    while at < part.tokens.len() {
        if !part.is(at, "<") || run(part, at) != 3 || part.before(at) == b"operator" {
            at += 1;
            continue;
        }
        if let Some(close) = closing(part, at + 3) {
            bracket(part, at, rewriting, ("(", 2));
            bracket(part, close, rewriting, (")", 0));
        }
        at += 3;
    }
}

/// Writes a parenthesis in place of one of three brackets, and blanks in place of the others.
fn bracket(
    part: &Part<'_>,
    first: usize,
    rewriting: &mut Rewriting<'_>,
    (parenthesis, place): (&str, usize),
) {
    for at in 0..3 {
        rewriting.put(part.tokens[first + at].start, if at == place { parenthesis } else { " " });
    }
}

/// How many equal brackets follow each other on a line. Formatters that do not know CUDA write `<< <`.
fn run(part: &Part<'_>, index: usize) -> usize {
    let first = part.text(index);
    let others = (index + 1..index + LONGEST_RUN).take_while(|next| part.text(*next) == first);
    1 + others.take_while(|next| !part.begins_line(*next)).count()
}

/// The index of the first `>` of the `>>>` that ends a launch whose configuration begins at `start`.
fn closing(part: &Part<'_>, start: usize) -> Option<usize> {
    find(part, start, true).or_else(|| find(part, start, false))
}

/// A configuration has at most so many tokens; brackets count as one.
const LONGEST: usize = 200;

/// With `templates`, a `<` right behind a name opens a list of template arguments, which a `>` closes first.
fn find(part: &Part<'_>, start: usize, templates: bool) -> Option<usize> {
    let (mut at, mut open) = (start, 0usize);
    for _ in 0..LONGEST {
        let run = run(part, at);
        match part.text(at) {
            b"" | b";" | b")" | b"}" | b"]" => return None,
            b"(" | b"[" | b"{" => at = part.partner(at)?,
            b"<" if run == 3 => return None,
            b"<" => {
                open += usize::from(templates && part.is_word(at - 1) && part.is_beside(at) && run == 1);
                at += run - 1;
            }
            b">" if run >= open + 3 => return Some(at + run - 3),
            b">" => {
                open = open.saturating_sub(run);
                at += run - 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}
