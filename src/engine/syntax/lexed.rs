//! A C++ file as tokens, each with its directive and its neighbours.

use std::ops::Range;

use super::tokens::{Kind, tokens};

/// A token of a file; `::`, `->` and `##` are one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Its bytes.
    pub range: Range<usize>,
    /// What it is.
    pub kind: Kind,
    /// The number of the directive that it belongs to.
    pub directive: Option<usize>,
}

/// A file as tokens.
#[derive(Debug, Clone)]
pub struct Lexed<'a> {
    /// The bytes of the file.
    pub bytes: &'a [u8],
    /// All tokens in order.
    pub all: Vec<Read>,
    /// Of each preprocessor directive, its tokens from `#` to the last before its newline.
    pub directives: Vec<Range<usize>>,
}

impl<'a> Lexed<'a> {
    /// Reads a file.
    pub fn of(bytes: &'a [u8]) -> Self {
        let mut lexed = Self { bytes, all: Vec::new(), directives: Vec::new() };
        let mut open = None;
        for token in tokens(bytes) {
            match token.kind {
                Kind::DirectiveEnd => open = None,
                kind => {
                    if kind == Kind::Directive {
                        open = Some(lexed.directives.len());
                        lexed.directives.push(lexed.all.len()..lexed.all.len());
                    }
                    lexed.push(Read { range: token.range(), kind, directive: open });
                }
            }
        }
        lexed
    }

    fn push(&mut self, read: Read) {
        match self.all.last_mut() {
            Some(last) if is_joined(self.bytes, last, &read) => last.range.end = read.range.end,
            _ => self.all.push(read),
        }
        let open = self.all.last().and_then(|last| last.directive);
        if let Some(directive) = open.and_then(|open| self.directives.get_mut(open)) {
            directive.end = self.all.len();
        }
    }

    /// The text of a token; empty where there is none.
    pub fn text(&self, index: usize) -> &'a [u8] {
        self.all.get(index).map_or(b"", |token| &self.bytes[token.range.clone()])
    }

    /// The kind of a token.
    pub fn kind(&self, index: usize) -> Option<Kind> {
        self.all.get(index).map(|token| token.kind)
    }

    /// The token before another one, comments left out. Code passes over the directives between its lines; a directive
    /// ends where it ends.
    pub fn before(&self, index: usize) -> Option<usize> {
        let directive = self.all.get(index)?.directive;
        (0..index)
            .rev()
            .find(|other| self.counts(*other, directive))
            .filter(|other| self.is_of(*other, directive))
    }

    /// The token after another one, as [`Lexed::before`].
    pub fn after(&self, index: usize) -> Option<usize> {
        let directive = self.all.get(index)?.directive;
        let mut others = index + 1..self.all.len();
        others.find(|other| self.counts(*other, directive)).filter(|other| self.is_of(*other, directive))
    }

    fn counts(&self, index: usize, directive: Option<usize>) -> bool {
        let token = &self.all[index];
        token.kind != Kind::Comment && (directive.is_some() || token.directive.is_none())
    }

    fn is_of(&self, index: usize, directive: Option<usize>) -> bool {
        self.all[index].directive == directive
    }

    /// The tokens of a directive, comments left out.
    pub fn of_directive(&self, directive: usize) -> Vec<usize> {
        let tokens = self.directives.get(directive).cloned().unwrap_or_default();
        tokens.filter(|index| self.all[*index].kind != Kind::Comment).collect()
    }

    /// The word of a directive: `define`, `if`, `include`.
    pub fn keyword(&self, directive: usize) -> &'a [u8] {
        self.of_directive(directive).get(1).map_or(b"", |index| self.text(*index))
    }
}

/// Whether two characters that stand side by side are one token.
fn is_joined(bytes: &[u8], first: &Read, second: &Read) -> bool {
    let adjacent = first.range.end == second.range.start && first.directive == second.directive;
    let joined = || matches!(&bytes[first.range.start..second.range.end], b"::" | b"->" | b"##");
    adjacent && joined()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, directive: usize) -> String {
        let lexed = Lexed::of(text.as_bytes());
        let tokens = lexed.of_directive(directive).into_iter().map(|index| lexed.text(index));
        tokens.map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn directives_go_over_continued_lines_and_comments() {
        let text = "\u{feff}#define A(x) \\\r\n  f(x) /* y\n z */ + a::b##x\nh\n /* c */ # if B // d\ni # j";
        assert_eq!(of(text, 0), "# define A ( x ) f ( x ) + a :: b ## x");
        assert_eq!(of(text, 1), "# if B");
        assert_eq!(Lexed::of(text.as_bytes()).directives.len(), 2);
        assert_eq!(Lexed::of(text.as_bytes()).keyword(1), b"if");
    }

    #[test]
    fn code_has_its_neighbours_over_directives_and_comments() {
        let lexed = Lexed::of(b"a\n#if B\n/* c */ ->\n#endif\nd");
        let arrow = (0..lexed.all.len()).find(|index| lexed.text(*index) == b"->").expect("arrow");
        let text = |index: Option<usize>| index.map(|index| lexed.text(index));
        assert_eq!((text(lexed.before(arrow)), text(lexed.after(arrow))), (Some(&b"a"[..]), Some(&b"d"[..])));
        assert_eq!(lexed.before(1), None);
    }
}
