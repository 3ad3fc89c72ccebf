//! What decorates declarations: the words of CUDA, and macros that stand for them.

use std::collections::BTreeSet;

use super::Rewriting;
use super::part::{Part, is_macro_like};

/// Words that nvcc takes before or behind a type; the grammar reads attributes there.
const CUDA: [&[u8]; 11] = [
    b"__global__",
    b"__device__",
    b"__host__",
    b"__forceinline__",
    b"__noinline__",
    b"__shared__",
    b"__constant__",
    b"__managed__",
    b"__grid_constant__",
    b"__tile_global__",
    b"__nv_pure__",
];

/// Words of CUDA with values as arguments; the grammar reads `alignas` in their places.
const VALUES: [&[u8]; 5] =
    [b"__launch_bounds__", b"__align__", b"__cluster_dims__", b"__block_size__", b"__maxnreg__"];

/// Words with arguments that are no values.
const CALLS: [&[u8]; 4] = [b"__attribute__", b"__declspec", b"__annotate__", b"_Pragma"];

/// Words that begin a type, or stand before one.
const BEFORE_TYPE: [&[u8]; 28] = [
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
    b"auto",
    b"const",
    b"constexpr",
    b"volatile",
    b"static",
    b"inline",
    b"__inline__",
    b"__inline",
    b"extern",
    b"virtual",
    b"explicit",
    b"typename",
    b"decltype",
    b"mutable",
    b"operator",
    b"size_t",
    b"struct",
    b"class",
];

/// Words that begin something else than a type; a macro before them stands alone.
const BEGINNINGS: [&[u8]; 19] = [
    b"friend",
    b"template",
    b"namespace",
    b"using",
    b"typedef",
    b"public",
    b"private",
    b"protected",
    b"enum",
    b"union",
    b"return",
    b"if",
    b"for",
    b"while",
    b"switch",
    b"do",
    b"case",
    b"default",
    b"static_assert",
];

/// Whether a word with arguments decorates a declaration, whatever stands around it.
pub fn is_decoration(word: &[u8]) -> bool {
    VALUES.contains(&word) || CALLS.contains(&word)
}

/// Makes decorations attributes, or hides them.
pub fn rewrite(part: &Part<'_>, rewriting: &mut Rewriting<'_>) {
    let classes = classes(part);
    for (at, token) in part.tokens.iter().enumerate().filter(|(at, _)| part.is_word(*at)) {
        let text = token.text(part.bytes);
        match () {
            () if CUDA.contains(&text)
                && (is_of_lambda(part, at) || BEGINNINGS.contains(&part.text(at + 1))) =>
            {
                rewriting.hide(token.range())
            }
            () if CUDA.contains(&text) => rewriting.attribute(token),
            // Of this word the grammar knows one spelling.
            () if text == b"__restrict" => rewriting.hide(token.range()),
            () if text == b"__restrict__" => {}
            () if is_of_lambda(part, at) && is_macro_like(text) && !CALLS.contains(&text) => {
                rewriting.hide(token.range());
            }
            () if part.is(at + 1, "(") => call(part, at, rewriting),
            () if !is_macro_like(text) => {}
            () if matches!(part.before(at), b"*" | b"&") && part.is_word(at + 1) => {
                rewriting.hide(token.range())
            }
            () if decorates(part, at, &classes) => rewriting.attribute(token),
            () if stands_alone(part, at) => rewriting.hide(token.range()),
            () => {}
        }
    }
}

/// Whether a word stands between the captures and the parameters of a lambda.
pub fn is_of_lambda(part: &Part<'_>, at: usize) -> bool {
    const MOST: usize = 4;
    let is_word = |at: &usize| CUDA.contains(&part.text(*at)) || is_macro_like(part.text(*at));
    let first = (0..at).rev().take(MOST).find(|before| !is_word(before));
    let next = (at + 1..).take(MOST).find(|after| !is_word(after));
    first.is_some_and(|first| part.is(first, "]"))
        && next.is_some_and(|next| matches!(part.text(next), b"(" | b"{"))
}

fn call(part: &Part<'_>, at: usize, rewriting: &mut Rewriting<'_>) {
    let Some(close) = part.partner(at + 1) else { return };
    let word = part.text(at);
    let before_class = is_class(part.text(close + 1));
    if VALUES.contains(&word) && close > at + 2 && !before_class {
        values(part, at, close, rewriting);
    } else if is_decoration(word) || is_call_between(part, at, close) {
        rewriting.hide(part.tokens[at].start..part.tokens[close].end);
    }
}

/// `__launch_bounds__(a, b)` is read as `alignas(a+ b)`: where one may stand, so may the other.
fn values(part: &Part<'_>, at: usize, close: usize, rewriting: &mut Rewriting<'_>) {
    let token = &part.tokens[at];
    token.range().skip(7).for_each(|at| rewriting.put(at, " "));
    rewriting.put(token.start, "alignas");
    let mut next = at + 2;
    while next < close {
        if part.is(next, ",") {
            rewriting.pretend(part.tokens[next].start, "+");
        }
        let behind = if part.is(next, "<") { part.after_angles(next) } else { part.partner(next) };
        next = behind.filter(|behind| *behind > next).unwrap_or(next + 1);
    }
}

/// Whether a macro with arguments stands within a declaration or an argument: `template <…> BOUNDS(256) void f()`,
/// `void BOUNDS(256) f()`, `f(CAST((void *)) x)`.
fn is_call_between(part: &Part<'_>, at: usize, close: usize) -> bool {
    let (before, next) = (part.before(at), part.text(close + 1));
    let is_apart = part.begins_line(close + 1) && before != b">";
    if !is_macro_like(part.text(at)) || !part.is_word(close + 1) || is_apart {
        return false;
    }
    let within = before == b">" || CUDA.contains(&before) || BEFORE_TYPE.contains(&before);
    let is_trailing = matches!(next, b"const" | b"volatile") && before != b">";
    let type_follows = (BEFORE_TYPE.contains(&next) || CUDA.contains(&next)) && !is_trailing;
    (within && type_follows)
        || is_class(before)
        || (BEFORE_TYPE.contains(&before) && part.is(close + 2, "("))
        || (matches!(before, b"(" | b",") && matches!(part.text(close + 2), b"," | b")"))
}

/// The names of the classes that are defined.
fn classes<'b>(part: &Part<'b>) -> BTreeSet<&'b [u8]> {
    let heads = (0..part.tokens.len()).filter(|at| is_class(part.text(*at)));
    heads.filter_map(|at| class_name(part, at)).collect()
}

fn class_name<'b>(part: &Part<'b>, head: usize) -> Option<&'b [u8]> {
    const MOST_WORDS: usize = 8;
    let mut at = head + 1;
    for _ in 0..MOST_WORDS {
        match () {
            () if part.is(at, "(") => at = part.partner(at)? + 1,
            () if part.is_word(at) => at += 1,
            () => break,
        }
    }
    Some(part.before(at)).filter(|name| !name.is_empty())
}

/// Whether a macro stands before the type of a declaration, or before the name of a class or constructor.
fn decorates(part: &Part<'_>, at: usize, classes: &BTreeSet<&[u8]>) -> bool {
    let next = part.text(at + 1);
    match next {
        _ if is_class(part.before(at)) => {
            part.is_word(at + 1) && matches!(part.text(at + 2), b"{" | b":" | b";" | b"final" | b"<")
        }
        // `TYPE const &x` has no type behind the word.
        b"const" | b"volatile" => part.after_name(at + 2).is_some_and(|after| declares(part, after)),
        // `TYPE operator+(…)` needs its type, `operator bool()` has it.
        b"operator" => part.is_word(at + 2) || is_type_end(part, at),
        b"~" => true,
        _ if BEFORE_TYPE.contains(&next) || CUDA.contains(&next) => true,
        _ if part.is(at + 2, "(") && classes.contains(next) => true,
        _ if BEGINNINGS.contains(&next) => false,
        b":" if part.is_beside(at + 1) => false,
        _ => stands_before_type(part, at),
    }
}

/// Whether a name with a declarator follows, so that a word before it is not the type.
fn stands_before_type(part: &Part<'_>, at: usize) -> bool {
    let Some(after) = part.after_name(at + 1) else { return false };
    let constructs = part.is(after, "(") && after >= 4 + at && part.text(after - 1) == part.text(after - 4);
    let named = part.is_word(at + 1) && part.is(at + 2, "(") && is_type_end(part, at);
    constructs || named || declares(part, after)
}

/// Whether what a declaration declares follows its type.
fn declares(part: &Part<'_>, at: usize) -> bool {
    part.is_word(at) || matches!(part.text(at), b"*" | b"&")
}

fn is_class(word: &[u8]) -> bool {
    matches!(word, b"class" | b"struct" | b"union")
}

/// Whether a macro stands alone between statements.
fn stands_alone(part: &Part<'_>, at: usize) -> bool {
    let begins = matches!(part.before(at), b"" | b";" | b"}" | b"{" | b":" | b")") || part.begins_line(at);
    let next = part.text(at + 1);
    begins && (BEGINNINGS.contains(&next) || (next == b"}" && matches!(part.before(at), b";" | b"}")))
}

/// Whether a type ends before an index.
fn is_type_end(part: &Part<'_>, at: usize) -> bool {
    const OTHERS: [&[u8]; 12] = [
        b"const",
        b"constexpr",
        b"static",
        b"inline",
        b"extern",
        b"virtual",
        b"volatile",
        b"else",
        b"new",
        b"throw",
        b"goto",
        b"delete",
    ];
    let before = part.before(at);
    let is_name = at > 0 && part.is_word(at - 1);
    let is_other = BEGINNINGS.contains(&before) || OTHERS.contains(&before) || CUDA.contains(&before);
    (is_name && !is_other) || matches!(before, b">" | b"*" | b"&")
}
