//! Which code of a file the preprocessor never takes in an environment.
//!
//! The directives are read token by token, not from the tree: a branch may hold half an expression.

use std::ops::Range;

use super::condition::{Truth, evaluate, integer};
use super::passes::{Pass, Passes};
use super::tokens::{Kind, Token, tokens};

/// The code of a file that is never taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadCode(Vec<Range<usize>>);

impl DeadCode {
    /// The dead code of a C++ text: what no run of the preprocessor takes. Conditions that nobody knows are taken.
    pub fn of(bytes: &[u8], passes: &Passes) -> Self {
        Self::among(&directives(bytes), bytes, passes)
    }

    /// The same, of a text whose directives are known.
    pub fn among(directives: &[Directive], bytes: &[u8], passes: &Passes) -> Self {
        let mut taken = vec![false; directives.len() + 1];
        for pass in passes.iter() {
            Walk::new(bytes, pass).mark(directives, &mut taken);
        }
        Self(untaken(directives, &taken, bytes.len()))
    }

    /// These places; one may lie within another.
    pub fn at(mut ranges: Vec<Range<usize>>) -> Self {
        ranges.sort_by_key(|range| (range.start, std::cmp::Reverse(range.end)));
        let mut end = 0;
        ranges.retain(|range| {
            let outer = range.start >= end;
            end = end.max(range.end);
            outer
        });
        Self(ranges)
    }

    /// Its places, in order.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.0
    }

    /// Whether the byte at an offset is dead.
    pub fn holds(&self, offset: usize) -> bool {
        let next = self.0.partition_point(|range| range.end <= offset);
        self.0.get(next).is_some_and(|range| range.start <= offset)
    }
}

/// A line such as `#if CUDA_VERSION >= 9000`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// From the `#` to behind the newline.
    pub range: Range<usize>,
    /// What follows the `#`, comments left out.
    pub tokens: Vec<Token>,
}

impl Directive {
    /// `if`, `define`, …
    pub fn name<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        self.tokens.first().map_or(b"", |token| token.text(bytes))
    }

    /// The name and the body of a `#define`.
    pub fn definition(&self, bytes: &[u8]) -> Option<(Token, &[Token])> {
        let [define, name, rest @ ..] = self.tokens.as_slice() else { return None };
        if !define.is(bytes, "define") || name.kind != Kind::Word {
            return None;
        }
        let has_parameters = rest.first().is_some_and(|next| next.start == name.end && next.is(bytes, "("));
        let close = rest.iter().position(|token| token.is(bytes, ")"));
        let body = if has_parameters { close.map_or(rest.len(), |close| close + 1) } else { 0 };
        Some((*name, &rest[body..]))
    }

    fn argument(&self) -> &[Token] {
        self.tokens.get(1..).unwrap_or_default()
    }
}

/// The directives of a file, in order.
pub fn directives(bytes: &[u8]) -> Vec<Directive> {
    let mut found: Vec<Directive> = Vec::new();
    if memchr::memchr(b'#', bytes).is_none() {
        return found;
    }
    let mut inside = false;
    for token in tokens(bytes) {
        match (token.kind, found.last_mut()) {
            (Kind::Directive, _) => {
                found.push(Directive { range: token.range(), tokens: Vec::new() });
                inside = true;
            }
            (Kind::DirectiveEnd, Some(last)) => {
                last.range.end = token.end;
                inside = false;
            }
            (Kind::Comment, _) => {}
            (_, Some(last)) if inside => last.tokens.push(token),
            _ => {}
        }
    }
    found
}

/// The macros that a run over a file defines, in order: as a number, or as what nobody knows.
pub fn definitions(bytes: &[u8], directives: &[Directive], pass: Pass<'_>) -> Vec<(Vec<u8>, Option<i64>)> {
    let mut walk = Walk::new(bytes, pass);
    walk.mark(directives, &mut vec![false; directives.len() + 1]);
    walk.defined
}

/// One run of the preprocessor over the directives of a file.
struct Walk<'a> {
    bytes: &'a [u8],
    pass: Pass<'a>,
    open: Vec<Conditional>,
    taken: Taken,
    defined: Vec<(Vec<u8>, Option<i64>)>,
}

/// Whether code is taken: perhaps, and for certain.
#[derive(Debug, Clone, Copy)]
struct Taken {
    perhaps: bool,
    certainly: bool,
}

/// An `#if` whose `#endif` is still to come.
struct Conditional {
    /// Whether the code around it is taken.
    outer: Taken,
    /// Whether one of its branches is taken so far.
    so_far: Taken,
}

impl<'a> Walk<'a> {
    fn new(bytes: &'a [u8], pass: Pass<'a>) -> Self {
        let taken = Taken { perhaps: true, certainly: true };
        Self { bytes, pass, open: Vec::new(), taken, defined: Vec::new() }
    }

    /// Marks the stretches that are taken; the first lies before the first directive.
    fn mark(&mut self, directives: &[Directive], taken: &mut [bool]) {
        let Some((first, rest)) = taken.split_first_mut() else { return };
        *first = true;
        let next = directives.iter().skip(1).map(Some).chain([None]);
        for ((directive, next), taken) in directives.iter().zip(next).zip(rest) {
            self.step(directive, next);
            *taken |= self.taken.perhaps;
        }
    }

    fn step(&mut self, directive: &Directive, next: Option<&Directive>) {
        match directive.name(self.bytes) {
            b"if" | b"ifdef" | b"ifndef" => {
                let so_far = Taken { perhaps: false, certainly: false };
                self.open.push(Conditional { outer: self.taken, so_far });
                let guards = next.is_some_and(|next| self.is_guard(directive, next));
                self.enter(if guards { Truth::Yes } else { self.truth(directive) });
            }
            b"elif" | b"elifdef" | b"elifndef" | b"else" => self.enter(self.truth(directive)),
            b"endif" => {
                if let Some(closed) = self.open.pop() {
                    self.taken = closed.outer;
                }
            }
            b"define" | b"undef" if self.taken.perhaps => self.define(directive),
            _ => {}
        }
    }

    /// `#ifndef A_H` before `#define A_H`: a header is read once.
    fn is_guard(&self, directive: &Directive, next: &Directive) -> bool {
        let name = |directive: &Directive| directive.argument().first().map(|name| name.text(self.bytes));
        let alone = next.name(self.bytes) == b"define" && next.argument().len() == 1;
        directive.name(self.bytes) == b"ifndef" && alone && name(directive) == name(next)
    }

    fn define(&mut self, directive: &Directive) {
        let [name, value @ ..] = directive.argument() else { return };
        let value = match value {
            [open, value, close] if open.is(self.bytes, "(") && close.is(self.bytes, ")") => Some(value),
            [value] => Some(value),
            _ => None,
        };
        let number = value.filter(|_| self.taken.certainly && directive.name(self.bytes) == b"define");
        let number = number.and_then(|value| integer(value.text(self.bytes)));
        self.pass.set(name.text(self.bytes), number);
        self.defined.push((name.text(self.bytes).to_vec(), number));
    }

    fn enter(&mut self, truth: Truth) {
        let Some(Conditional { outer, so_far }) = self.open.last_mut() else { return };
        self.taken = Taken {
            perhaps: outer.perhaps && !so_far.certainly && truth != Truth::No,
            certainly: outer.certainly && !so_far.perhaps && truth == Truth::Yes,
        };
        so_far.perhaps |= truth != Truth::No;
        so_far.certainly |= truth == Truth::Yes;
    }

    fn truth(&self, directive: &Directive) -> Truth {
        let argument = directive.argument();
        let defined =
            || argument.first().map_or(Truth::Maybe, |name| self.pass.is_defined(name.text(self.bytes)));
        match directive.name(self.bytes) {
            b"else" => Truth::Yes,
            b"ifdef" | b"elifdef" => defined(),
            b"ifndef" | b"elifndef" => defined().not(),
            _ => evaluate(self.bytes, argument, &self.pass),
        }
    }
}

/// The stretches that are not taken, joined where only a directive lies between them.
fn untaken(directives: &[Directive], taken: &[bool], end: usize) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(directives.iter().map(|directive| directive.range.end));
    let ends = directives.iter().map(|directive| directive.range.start).chain([end]);
    let mut dead: Vec<Range<usize>> = Vec::new();
    let mut joins = false;
    for ((start, end), taken) in starts.zip(ends).zip(taken) {
        match dead.last_mut() {
            _ if *taken => {}
            Some(last) if joins => last.end = end,
            _ => dead.push(start..end),
        }
        joins = !taken;
    }
    dead
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that are left of a text.
    fn live(text: &str, cuda: &[&str], torch: Option<&str>) -> String {
        let dead = DeadCode::of(text.as_bytes(), &Passes::of_texts(cuda, torch));
        let names =
            tokens(text.as_bytes()).filter(|token| token.kind == Kind::Word && !dead.holds(token.start));
        let in_line =
            |token: &Token| directives(text.as_bytes()).iter().any(|it| it.range.contains(&token.start));
        let code: Vec<&str> =
            names.filter(|token| !in_line(token)).map(|token| &text[token.range()]).collect();
        code.join(" ")
    }

    #[test]
    fn branches_of_old_toolkits_are_dead() {
        let text = "a\n#if CUDA_VERSION >= 9000\nb\n#else\nc\n#endif\nd\n";
        assert_eq!(live(text, &["12.8"], None), "a b d");
        assert_eq!(live(text, &[], None), "a b c d");
        let newest = "#if CUDART_VERSION >= 13000\nb\n#elif FOO\nc\n#else\nd\n#endif\n";
        assert_eq!(live(newest, &["12.8"], None), "c d");
        assert_eq!(live(newest, &["13.0"], None), "b");
        assert_eq!(live(newest, &["12.8", "13.0"], None), "b c d");
    }

    #[test]
    fn code_of_the_host_and_of_any_compiled_architecture_is_live() {
        let atomics = "#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600\n#else\nown\n#endif\nx\n";
        assert_eq!(live(atomics, &["12.8", "13.0"], None), "own x");
        assert_eq!(live(atomics, &["13.0"], None), "x");
        let both =
            "#ifdef __CUDA_ARCH__\ndevice\n#else\nhost\n#endif\n#if __CUDA_ARCH__ < 700\nold\n#endif\n";
        assert_eq!(live(both, &["13.0"], None), "device host old");
        let exact = "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 700\nold\n#elif __CUDA_ARCH__ == 860\nnew\n#endif\n";
        assert_eq!(live(exact, &["13.0"], None), "new");
    }

    #[test]
    fn aliases_of_an_old_torch_are_dead() {
        let alias = "#ifdef TORCH_CHECK\n#define C TORCH_CHECK\n#else\nold\n#endif\n";
        assert_eq!(live(alias, &[], Some("2.6.0")), "");
        assert_eq!(live(alias, &[], None), "old");
        let reverse = "#ifndef TORCH_CHECK\n#define TORCH_CHECK AT_CHECK\nshim\n#endif\n#ifdef TORCH_CHECK\nb\n#endif\n";
        assert_eq!(live(reverse, &[], Some("2.6.0")), "b");
        assert_eq!(live(reverse, &[], None), "shim b");
        let version =
            "#if TORCH_VERSION_MAJOR >= 2\nnew\n#else\nold\n#endif\n#if TORCH_VERSION_PATCH\np\n#endif\n";
        assert_eq!(live(version, &[], Some("2.11")), "new p");
    }

    #[test]
    fn what_is_only_for_hip_is_dead_and_so_is_all_within() {
        let text = "#if defined(USE_ROCM) || defined(__HIP_PLATFORM_AMD__)\na\n#if FOO\nb\n#endif\nc\n#else\nd\n#endif\n";
        assert_eq!(live(text, &[], None), "d");
        let dead = DeadCode::of(text.as_bytes(), &Passes::of_texts(&[], None));
        let whole = text.find("a\n").expect("a")..text.find("#else").expect("else");
        assert_eq!(dead.ranges(), std::slice::from_ref(&whole));
        assert_eq!(live("#if 0\na\n#elif 1\nb\n#else\nc\n#endif\n#if 0\nd", &[], None), "b");
    }

    #[test]
    fn a_macro_that_the_file_defines_itself_is_unknown_from_there_on() {
        let text = "#ifdef USE_ROCM\na\n#endif\n#define USE_ROCM 1\n#ifdef USE_ROCM\nb\n#endif\n#if 0\n#define __HIP__\n#endif\n#ifdef __HIP__\nc\n#endif\n";
        assert_eq!(live(text, &[], None), "b");
    }

    #[test]
    fn directives_in_strings_and_comments_are_none_and_broken_ones_do_no_harm() {
        assert_eq!(live("/*\n#if 0\n*/ a \"\n#if 0\nb\nR\"(\n#endif\n)\" c\n#endif\nd", &[], None), "a d");
        assert_eq!(live("#endif\na\n#else\nb\n#if\nc\n#if 0 /*\n*/ || 1\nd\n#", &[], None), "a b c d");
    }
}
