//! CUDA as text that the C++ grammar reads: an equal-length rewriting, so that offsets stay those of the file.

mod conditionals;
mod decorations;
mod expressions;
mod launches;
mod part;
mod pasting;
mod statements;

use std::ops::Range;

use super::branches::Directive;
use super::tokens::Token;
use conditionals::Shown;
use part::Part;

/// A text made readable, byte for byte in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// As long as the file, with the same newlines.
    pub text: Vec<u8>,
    /// What the grammar does not see of the file, or not as it is, in order.
    pub hidden: Vec<Range<usize>>,
    /// The branches that only this view shows; of the first view none: it shows all else.
    pub branches: Vec<Range<usize>>,
    /// The branches that no view shows; told by the first.
    pub unseen: Vec<Range<usize>>,
}

/// The bodies of the macros that a text defines, made readable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bodies {
    /// As long as the file; only what lies in bodies counts.
    pub text: Vec<u8>,
    /// What the grammar does not see of them, in order.
    pub hidden: Vec<Range<usize>>,
    /// The name and the body of each.
    pub places: Vec<(Range<usize>, Range<usize>)>,
}

/// Rewrites a C++ or CUDA text. Where a `#if` splits what the grammar reads as one, a view shows one branch, and the
/// others are seen in more views.
pub fn views(bytes: &[u8], directives: &[Directive]) -> Vec<View> {
    let shown = conditionals::shown(bytes, directives);
    shown.into_iter().map(|shown| view(bytes, directives, shown)).collect()
}

/// Rewrites the bodies of macros, each by itself.
pub fn bodies(bytes: &[u8], directives: &[Directive]) -> Bodies {
    let mut rewriting = Rewriting { bytes, text: bytes.to_vec(), hidden: Vec::new() };
    let mut places = Vec::new();
    for directive in directives {
        let Some((name, body)) = directive.definition(bytes) else { continue };
        let (Some(first), Some(last)) = (body.first(), body.last()) else { continue };
        places.push((name.range(), first.start..last.end));
        let part = Part::body(bytes, body.to_vec());
        pasting::rewrite(&part, &mut rewriting);
        rewriting.rewrite(&part);
    }
    let (text, hidden) = rewriting.done();
    Bodies { text, hidden, places }
}

fn view(bytes: &[u8], directives: &[Directive], shown: Shown) -> View {
    let mut rewriting = Rewriting { bytes, text: bytes.to_vec(), hidden: Vec::new() };
    directives.iter().for_each(|directive| rewriting.rewrite_condition(directive));
    shown.hidden.into_iter().for_each(|range| rewriting.hide(range));
    rewriting.rewrite(&Part::new(bytes, shown.tokens));
    let (text, hidden) = rewriting.done();
    View { text, hidden, branches: shown.branches, unseen: shown.unseen }
}

/// A rewriting under way.
struct Rewriting<'b> {
    bytes: &'b [u8],
    text: Vec<u8>,
    hidden: Vec<Range<usize>>,
}

impl Rewriting<'_> {
    fn rewrite(&mut self, part: &Part<'_>) {
        launches::rewrite(part, self);
        expressions::rewrite(part, self);
        decorations::rewrite(part, self);
        statements::rewrite(part, self);
    }

    /// Operators of a `#if` that the grammar knows by their signs alone.
    fn rewrite_condition(&mut self, directive: &Directive) {
        if !matches!(directive.name(self.bytes), b"if" | b"elif") {
            return;
        }
        for token in &directive.tokens {
            match token.text(self.bytes) {
                b"and" => self.put(token.start, "&& "),
                b"or" => self.put(token.start, "||"),
                b"not" => self.put(token.start, "!  "),
                b":" => self.put(token.start, "_"),
                _ => {}
            }
        }
    }

    fn done(mut self) -> (Vec<u8>, Vec<Range<usize>>) {
        self.hidden.sort_by_key(|range| range.start);
        (self.text, self.hidden)
    }

    /// Writes other characters in place of as many.
    fn put(&mut self, at: usize, characters: &str) {
        self.text[at..at + characters.len()].copy_from_slice(characters.as_bytes());
    }

    /// Writes other characters in place of as many that mean something else.
    fn pretend(&mut self, at: usize, characters: &str) {
        self.put(at, characters);
        self.hidden.push(at..at + characters.len());
    }

    /// Hides a stretch from the grammar; its newlines stay.
    fn hide(&mut self, range: Range<usize>) {
        let shown = self.text[range.clone()].iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r'));
        shown.for_each(|byte| *byte = b' ');
        self.hidden.push(range);
    }

    /// Makes a word an attribute: `__device__` becomes `[[device]]`. A short one is hidden.
    fn attribute(&mut self, word: &Token) {
        let name = word.start + 2..word.end.saturating_sub(2);
        if self.bytes.get(name).and_then(|name| name.first()).is_none_or(u8::is_ascii_digit) {
            return self.hide(word.range());
        }
        self.put(word.start, "[[");
        self.put(word.end - 2, "]]");
    }

    /// Ends a statement that ends at `end` without a `;`, in the white space before `next`. A newline is used where
    /// nothing else is there.
    fn terminate(&mut self, end: usize, next: usize) {
        let is = |at: usize, bytes: &[u8]| self.text.get(at).is_some_and(|byte| bytes.contains(byte));
        let places = [(end, &b" \t\r"[..]), (next.saturating_sub(1), b" \t"), (end, b"\n")];
        let mut free = places.into_iter().filter(|(at, bytes)| (end..next).contains(at) && is(*at, bytes));
        if let Some((place, _)) = free.next() {
            self.pretend(place, ";");
        }
    }
}

#[cfg(test)]
mod tests;
