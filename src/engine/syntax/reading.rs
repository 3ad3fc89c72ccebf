//! A lexer of our own for C, C++ and CUDA: every byte of a file belongs to a token or to the white space between two.
//!
//! Nothing derails it: an unterminated string or character ends with its line, an unterminated comment or raw string
//! with the file; bytes that are no ASCII count as letters, so Latin-1 and UTF-8 are read alike.

use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or a keyword.
    Word,
    /// A number, digit separators and suffixes included.
    Number,
    /// `// …` or `/* … */`
    Comment,
    /// `"…"`, with its prefix.
    String,
    /// `R"x(…)x"`, with its prefix.
    RawString,
    /// `'…'`, with its prefix.
    Character,
    /// `::`, `->`, `##`, `...`, or a single other byte.
    Mark,
}

/// A token of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its bytes.
    pub range: Range<usize>,
    /// What it is.
    pub kind: Kind,
    /// Which of [`Tokens::directives`] it belongs to.
    pub directive: Option<usize>,
}

/// A preprocessor directive: its tokens, from `#` to the last before its newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// Indices into [`Tokens::all`].
    pub tokens: Range<usize>,
}

/// A file as tokens.
#[derive(Debug, Clone)]
pub struct Tokens<'a> {
    /// The bytes of the file.
    pub bytes: &'a [u8],
    /// All tokens in order.
    pub all: Vec<Token>,
    /// All directives in order.
    pub directives: Vec<Directive>,
}

impl<'a> Tokens<'a> {
    /// Reads a file.
    pub fn of(bytes: &'a [u8]) -> Self {
        let mut lexer = Lexer { bytes, at: bom_length(bytes), fresh: true, open: None };
        let mut tokens = Self { bytes, all: Vec::new(), directives: Vec::new() };
        while let Some((range, kind)) = lexer.next() {
            tokens.push(range, kind, &mut lexer);
        }
        tokens
    }

    fn push(&mut self, range: Range<usize>, kind: Kind, lexer: &mut Lexer<'_>) {
        let starts = lexer.fresh && self.bytes[range.clone()] == *b"#";
        if starts {
            let at = self.all.len();
            lexer.open = Some(self.directives.len());
            self.directives.push(Directive { tokens: at..at });
        }
        lexer.fresh &= kind == Kind::Comment;
        self.all.push(Token { range, kind, directive: lexer.open });
        if let Some(directive) = lexer.open.and_then(|open| self.directives.get_mut(open)) {
            directive.tokens.end = self.all.len();
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

    /// The token before another one, comments left out, within the same directive or among the code around it.
    pub fn before(&self, index: usize) -> Option<usize> {
        let directive = self.all.get(index)?.directive;
        (0..index)
            .rev()
            .find(|other| self.counts(*other, directive))
            .filter(|other| self.joins(*other, directive))
    }

    /// The token after another one, as [`Tokens::before`].
    pub fn after(&self, index: usize) -> Option<usize> {
        let directive = self.all.get(index)?.directive;
        let mut others = index + 1..self.all.len();
        others.find(|other| self.counts(*other, directive)).filter(|other| self.joins(*other, directive))
    }

    /// Code passes over the directives between its lines; a directive ends where it ends.
    fn counts(&self, index: usize, directive: Option<usize>) -> bool {
        let token = &self.all[index];
        token.kind != Kind::Comment && (directive.is_some() || token.directive.is_none())
    }

    fn joins(&self, index: usize, directive: Option<usize>) -> bool {
        self.all[index].directive == directive
    }

    /// The tokens of a directive, comments left out.
    pub fn of_directive(&self, directive: usize) -> Vec<usize> {
        let tokens = self.directives.get(directive).map_or(0..0, |directive| directive.tokens.clone());
        tokens.filter(|index| self.all[*index].kind != Kind::Comment).collect()
    }

    /// The word of a directive: `define`, `if`, `include`.
    pub fn keyword(&self, directive: usize) -> &'a [u8] {
        self.of_directive(directive).get(1).map_or(b"", |index| self.text(*index))
    }
}

fn bom_length(bytes: &[u8]) -> usize {
    if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 }
}

/// Whether a byte may stand in an identifier.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether nothing but comments stood on this line so far.
    fresh: bool,
    /// The directive that is being read.
    open: Option<usize>,
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<(Range<usize>, Kind)> {
        self.skip_blanks();
        let text = &self.bytes[self.at..];
        let (kind, length) = token(text)?;
        let range = self.at..self.at + length.max(1);
        self.at = range.end;
        Some((range, kind))
    }

    /// Passes white space; a newline that no `\` continues ends a directive.
    fn skip_blanks(&mut self) {
        while let Some(byte) = self.bytes.get(self.at) {
            let splice = splice_length(&self.bytes[self.at..]);
            match byte {
                b'\n' => {
                    (self.fresh, self.open) = (true, None);
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                _ if splice > 0 => self.at += splice,
                _ => return,
            }
        }
    }
}

/// The length of a `\` with its newline at the start of a text; blanks between the two are passed, as compilers do.
fn splice_length(text: &[u8]) -> usize {
    let Some((b'\\', rest)) = text.split_first() else { return 0 };
    let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r')).count();
    if rest.get(blanks) == Some(&b'\n') { blanks + 2 } else { 0 }
}

/// The token at the start of a text, with its length; none at the end of the file.
fn token(text: &[u8]) -> Option<(Kind, usize)> {
    let first = *text.first()?;
    let second = text.get(1).copied().unwrap_or_default();
    let of_number = first.is_ascii_digit() || (first == b'.' && second.is_ascii_digit());
    Some(match (first, second) {
        (b'/', b'/') => (Kind::Comment, line_length(text)),
        (b'/', b'*') => {
            (Kind::Comment, memchr::memmem::find(&text[2..], b"*/").map_or(text.len(), |end| end + 4))
        }
        (b'"', _) => (Kind::String, literal_length(text)),
        (b'\'', _) => (Kind::Character, literal_length(text)),
        _ if of_number => (Kind::Number, number_length(text)),
        _ if is_word(first) => word(text),
        (b':', b':') | (b'-', b'>') | (b'#', b'#') => (Kind::Mark, 2),
        (b'.', b'.') if text.get(2) == Some(&b'.') => (Kind::Mark, 3),
        _ => (Kind::Mark, 1),
    })
}

/// To the end of the line, over lines that `\` continues.
fn line_length(text: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let Some(newline) = memchr::memchr(b'\n', &text[at..]) else { return text.len() };
        let line = text[..at + newline].trim_ascii_end();
        if line.len() < at || line.last() != Some(&b'\\') {
            return at + newline - usize::from(text[..at + newline].ends_with(b"\r"));
        }
        at += newline + 1;
    }
}

/// From the opening quote to the closing one, or to the end of the line where there is none.
fn literal_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'\\' => at += splice_length(&text[at..]).max(2),
            b'\n' => return at - usize::from(text[..at].ends_with(b"\r")),
            _ if *byte == text[0] => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// A number as the preprocessor reads it: `1'000`, `0x1p-3`, `1e+5f`.
fn number_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        let after_exponent = matches!(text[at - 1], b'e' | b'E' | b'p' | b'P');
        let separates = *byte == b'\'' && text.get(at + 1).is_some_and(|next| is_word(*next));
        match byte {
            b'+' | b'-' if after_exponent => at += 1,
            _ if is_word(*byte) || *byte == b'.' || separates => at += 1,
            _ => break,
        }
    }
    at
}

/// An identifier, or the literal that it is the prefix of.
fn word(text: &[u8]) -> (Kind, usize) {
    let length = text.iter().take_while(|byte| is_word(**byte)).count();
    let rest = &text[length..];
    match (&text[..length], rest.first()) {
        (b"R" | b"LR" | b"uR" | b"UR" | b"u8R", Some(b'"')) => match raw_length(rest) {
            Some(raw) => (Kind::RawString, length + raw),
            None => (Kind::String, length + literal_length(rest)),
        },
        (b"L" | b"u" | b"U" | b"u8", Some(b'"')) => (Kind::String, length + literal_length(rest)),
        (b"L" | b"u" | b"U" | b"u8", Some(b'\'')) => (Kind::Character, length + literal_length(rest)),
        _ => (Kind::Word, length),
    }
}

/// A raw string from its quote on; to the end of the file where nothing closes it; none where it is no raw string.
fn raw_length(text: &[u8]) -> Option<usize> {
    let open = text.iter().take(18).position(|byte| *byte == b'(')?;
    let delimiter = &text[1..open];
    if delimiter.iter().any(|byte| byte.is_ascii_whitespace() || matches!(byte, b')' | b'\\' | b'"')) {
        return None;
    }
    let close = [b")", delimiter, b"\""].concat();
    let end = memchr::memmem::find(&text[open..], &close);
    Some(end.map_or(text.len(), |end| open + end + close.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        let tokens = Tokens::of(text.as_bytes());
        tokens.all.iter().map(|token| (token.kind, &text[token.range.clone()])).collect()
    }

    fn words(text: &str) -> Vec<&str> {
        kinds(text).into_iter().filter(|(kind, _)| *kind == Kind::Word).map(|(_, text)| text).collect()
    }

    #[test]
    fn literals_and_comments_are_one_token_each() {
        let text = r##"a "b\"c" 'd\'' R"x(e)" f)x" u8"g" L'h' /* i "j */ k // l "##;
        let expected = [
            (Kind::Word, "a"),
            (Kind::String, r#""b\"c""#),
            (Kind::Character, r"'d\''"),
            (Kind::RawString, r#"R"x(e)" f)x""#),
            (Kind::String, r#"u8"g""#),
            (Kind::Character, "L'h'"),
            (Kind::Comment, "/* i \"j */"),
            (Kind::Word, "k"),
            (Kind::Comment, "// l "),
        ];
        assert_eq!(kinds(text), expected);
    }

    #[test]
    fn numbers_hold_their_separators_and_exponents() {
        assert_eq!(words("x = 1'000'000 + 0x1p-3 + .5e+3f + 'a' + y;"), ["x", "y"]);
        assert_eq!(words("case 1:'b'; z"), ["case", "z"]);
    }

    #[test]
    fn what_is_not_closed_ends_with_its_line_or_the_file() {
        assert_eq!(words("#error don't\nx"), ["error", "don", "x"]);
        assert_eq!(words("a = \"b c\r\nd \"e\\\r\nf\" g"), ["a", "d", "g"]);
        assert_eq!(words("a /* b\nc"), ["a"]);
        assert_eq!(words("a R\"(b\nc"), ["a"]);
        assert_eq!(words("a R\"x y(b\nc"), ["a", "c"]);
        assert_eq!(words("// a \\\n b\nc // d\\ \r\n e"), ["c"]);
        assert_eq!(words("a \\"), ["a"]);
    }

    #[test]
    fn directives_go_over_continued_lines_and_comments() {
        let text = "\u{feff}#define A(x) \\\r\n  f(x) /* y\n z */ + g\nh\n /* c */ # if B // d\ni # j";
        let tokens = Tokens::of(text.as_bytes());
        let of = |directive| {
            let indices = tokens.of_directive(directive);
            indices.into_iter().map(|index| String::from_utf8_lossy(tokens.text(index))).collect::<Vec<_>>()
        };
        assert_eq!(of(0).join(" "), "# define A ( x ) f ( x ) + g");
        assert_eq!((of(1).join(" "), tokens.keyword(1)), ("# if B".to_string(), &b"if"[..]));
        assert_eq!(tokens.directives.len(), 2);
    }

    proptest::proptest! {
        #[test]
        fn every_byte_belongs_to_a_token_or_to_white_space(bytes in proptest::collection::vec(0u8..=255, 0..60)) {
            let tokens = Tokens::of(&bytes);
            let mut at = bom_length(&bytes);
            for token in &tokens.all {
                proptest::prop_assert!(token.range.start >= at && token.range.end > token.range.start);
                let between = &bytes[at..token.range.start];
                proptest::prop_assert!(between.iter().all(|byte| *byte == b'\\' || *byte == 0x0b || byte.is_ascii_whitespace()));
                at = token.range.end;
            }
            proptest::prop_assert!(at <= bytes.len());
        }
    }
}
