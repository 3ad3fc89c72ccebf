//! C++ as the preprocessor sees it: words, numbers, literals, comments and directives, whatever they mean.
//!
//! Every text is read, broken ones too: an unclosed comment ends with the file, an unclosed string with its line.

use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A name or a keyword.
    Word,
    /// A number, with its suffix.
    Number,
    /// A string or a character, with prefix and quotes; raw strings too.
    Literal,
    /// Either kind of comment.
    Comment,
    /// The `#` that begins a directive.
    Directive,
    /// The newline that ends a directive, or the end of the file.
    DirectiveEnd,
    /// One other character.
    Punctuation,
}

/// A piece of C++; white space and `\` continuations lie between tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Where it begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
}

impl Token {
    /// Its bytes.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Its text.
    pub fn text<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[self.range()]
    }

    /// Whether it is this word or character.
    pub fn is(&self, bytes: &[u8], text: &str) -> bool {
        self.text(bytes) == text.as_bytes()
    }
}

/// The tokens of a text, in order.
pub fn tokens(bytes: &[u8]) -> Tokens<'_> {
    let at = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    Tokens { bytes, at, begins_line: true, in_directive: false }
}

/// See [`tokens`].
#[derive(Debug, Clone)]
pub struct Tokens<'b> {
    bytes: &'b [u8],
    at: usize,
    begins_line: bool,
    in_directive: bool,
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        if let Some(newline) = self.skip_space() {
            return Some(newline);
        }
        let start = self.at;
        let (kind, end) = match self.bytes.get(start) {
            Some(first) => self.read(*first),
            None if self.in_directive => (Kind::DirectiveEnd, start),
            None => return None,
        };
        self.in_directive = (self.in_directive || kind == Kind::Directive) && kind != Kind::DirectiveEnd;
        self.begins_line &= kind == Kind::Comment;
        self.at = end;
        Some(Token { kind, start, end })
    }
}

impl Tokens<'_> {
    /// Goes to the next token; to the newline that ends a directive, if there is one before it.
    fn skip_space(&mut self) -> Option<Token> {
        loop {
            match self.bytes.get(self.at)? {
                b'\n' => {
                    self.begins_line = true;
                    self.at += 1;
                    if std::mem::take(&mut self.in_directive) {
                        return Some(Token { kind: Kind::DirectiveEnd, start: self.at - 1, end: self.at });
                    }
                }
                byte if byte.is_ascii_whitespace() || *byte == 0x0b => self.at += 1,
                b'\\' => self.at += self.splice(self.at)?,
                _ => return None,
            }
        }
    }

    /// The length of a `\` and the newline behind it.
    fn splice(&self, at: usize) -> Option<usize> {
        match self.bytes.get(at..)? {
            [b'\\', b'\n', ..] => Some(2),
            [b'\\', b'\r', b'\n', ..] => Some(3),
            _ => None,
        }
    }

    fn read(&self, first: u8) -> (Kind, usize) {
        let (start, bytes) = (self.at, self.bytes);
        let next = bytes.get(start + 1).copied().unwrap_or_default();
        match first {
            b'#' if self.begins_line && !self.in_directive => (Kind::Directive, start + 1),
            b'/' if next == b'/' => (Kind::Comment, self.line_end(start)),
            b'/' if next == b'*' => (Kind::Comment, after(bytes, start + 2, b"*/")),
            b'"' | b'\'' => self.literal(start, false),
            b'0'..=b'9' => (Kind::Number, self.number_end(start)),
            b'.' if next.is_ascii_digit() => (Kind::Number, self.number_end(start)),
            _ if is_word(first) => self.word(start),
            _ => (Kind::Punctuation, start + 1),
        }
    }

    /// A word, or the literal whose prefix it is.
    fn word(&self, start: usize) -> (Kind, usize) {
        let rest = &self.bytes[start..];
        let end = start + rest.iter().take_while(|byte| is_word(**byte)).count();
        let word = &self.bytes[start..end];
        let raw = matches!(word, b"R" | b"LR" | b"uR" | b"UR" | b"u8R");
        match self.bytes.get(end) {
            Some(b'"') if raw || matches!(word, b"L" | b"u" | b"U" | b"u8") => self.literal(end, raw),
            Some(b'\'') if matches!(word, b"L" | b"u" | b"U" | b"u8") => self.literal(end, false),
            _ => (Kind::Word, end),
        }
    }

    /// The literal whose quote stands at `quote`; the quote alone where it is not closed.
    fn literal(&self, quote: usize, raw: bool) -> (Kind, usize) {
        let end = if raw { self.raw_end(quote) } else { self.quoted_end(quote) };
        end.map_or((Kind::Punctuation, quote + 1), |end| (Kind::Literal, end))
    }

    fn quoted_end(&self, quote: usize) -> Option<usize> {
        let mut at = quote + 1;
        loop {
            match self.bytes.get(at)? {
                b'\\' => at += self.splice(at).unwrap_or(2),
                b'\n' => return None,
                byte if *byte == self.bytes[quote] => return Some(at + 1),
                _ => at += 1,
            }
        }
    }

    fn raw_end(&self, quote: usize) -> Option<usize> {
        let rest = &self.bytes[quote + 1..];
        let open = rest.iter().take(17).position(|byte| *byte == b'(')?;
        let mut close = b")".to_vec();
        close.extend_from_slice(&rest[..open]);
        close.push(b'"');
        Some(after(self.bytes, quote + 1 + open, &close))
    }

    fn number_end(&self, start: usize) -> usize {
        let mut end = start + 1;
        while let Some(byte) = self.bytes.get(end) {
            let before = self.bytes[end - 1].to_ascii_lowercase();
            let next_is_word = self.bytes.get(end + 1).is_some_and(|next| is_word(*next));
            let goes_on = match byte {
                b'+' | b'-' => before == b'p' || (before == b'e' && !self.bytes[start..end].contains(&b'x')),
                b'\'' => next_is_word,
                _ => *byte == b'.' || is_word(*byte),
            };
            if !goes_on {
                break;
            }
            end += 1;
        }
        end
    }

    /// The end of the line, without its newline; a `\` before it goes on.
    fn line_end(&self, start: usize) -> usize {
        let mut at = start;
        while let Some(found) = memchr::memchr(b'\n', &self.bytes[at..]) {
            let line =
                self.bytes[start..at + found].strip_suffix(b"\r").unwrap_or(&self.bytes[start..at + found]);
            if !line.ends_with(b"\\") {
                return start + line.len();
            }
            at += found + 1;
        }
        self.bytes.len()
    }
}

/// Letters, digits, `_`, `$`, and whatever is no ASCII.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

/// Behind the next `needle` from `start` on, or the end.
fn after(bytes: &[u8], start: usize, needle: &[u8]) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    memchr::memmem::find(rest, needle).map_or(bytes.len(), |found| start + found + needle.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(Kind, &str)> {
        tokens(text.as_bytes()).map(|token| (token.kind, &text[token.range()])).collect()
    }

    fn texts(text: &str) -> Vec<&str> {
        read(text).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn literals_and_comments_are_one_token() {
        let text = "u8\"a\\\"b\" L'\\'' R\"x(\" )y\" )x\" // c \\\n d\n/* \" */ e";
        assert_eq!(
            texts(text),
            ["u8\"a\\\"b\"", "L'\\''", "R\"x(\" )y\" )x\"", "// c \\\n d", "/* \" */", "e"]
        );
        assert_eq!(texts("don't \"x\ny"), ["don", "'", "t", "\"", "x", "y"]);
        assert_eq!(
            texts("1'000u 0x1e+2 1e+2f .5 a.b"),
            ["1'000u", "0x1e", "+", "2", "1e+2f", ".5", "a", ".", "b"]
        );
    }

    #[test]
    fn a_directive_goes_over_continued_lines_and_comments() {
        use Kind::{Directive, DirectiveEnd, Punctuation, Word};
        let kinds: Vec<Kind> =
            read("/**/ #if a \\\r\n b /* \n */ c\nx # y\n#z").iter().map(|it| it.0).collect();
        let comment = Kind::Comment;
        let first = [comment, Directive, Word, Word, Word, comment, Word, DirectiveEnd];
        assert_eq!(kinds[..8], first);
        assert_eq!(kinds[8..], [Word, Punctuation, Word, Directive, Word, DirectiveEnd]);
    }

    #[test]
    fn broken_texts_end() {
        for text in ["/*", "R\"", "R\"(", "'", "\"\\", "#", "\\", "a\\\nb", "//\\", "\u{feff}#if"] {
            let end = tokens(text.as_bytes()).last().map_or(0, |token| token.end);
            assert!(end <= text.len(), "{text}");
        }
    }
}
