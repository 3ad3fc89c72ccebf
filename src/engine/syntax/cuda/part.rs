//! Tokens that are read together: the code of a view, or the body of a macro.

use crate::engine::syntax::tokens::{Kind, Token};

/// The longest run of equal characters that is counted.
pub const LONGEST_RUN: usize = 16;

/// Tokens without comments and directives, and which brackets belong together.
pub struct Part<'b> {
    /// The file.
    pub bytes: &'b [u8],
    /// In order.
    pub tokens: Vec<Token>,
    /// Whether this is the body of a macro.
    pub is_body: bool,
    partners: Vec<Option<usize>>,
}

impl<'b> Part<'b> {
    /// Looks for the brackets.
    pub fn new(bytes: &'b [u8], tokens: Vec<Token>) -> Self {
        let partners = partners(bytes, &tokens);
        Self { bytes, tokens, is_body: false, partners }
    }

    /// The same, for the body of a macro.
    pub fn body(bytes: &'b [u8], tokens: Vec<Token>) -> Self {
        Self { is_body: true, ..Self::new(bytes, tokens) }
    }

    /// Whether the token at an index is this word or character.
    pub fn is(&self, index: usize, text: &str) -> bool {
        self.text(index) == text.as_bytes()
    }

    /// The text of the token at an index; empty where there is none.
    pub fn text(&self, index: usize) -> &'b [u8] {
        self.tokens.get(index).map_or(b"", |token| token.text(self.bytes))
    }

    /// The text of the token before an index; empty where there is none.
    pub fn before(&self, index: usize) -> &'b [u8] {
        index.checked_sub(1).map_or(b"", |before| self.text(before))
    }

    /// Whether the token at an index is a word.
    pub fn is_word(&self, index: usize) -> bool {
        self.tokens.get(index).is_some_and(|token| token.kind == Kind::Word)
    }

    /// The index of the bracket that belongs to the one at an index.
    pub fn partner(&self, bracket: usize) -> Option<usize> {
        self.partners.get(bracket).copied().flatten()
    }

    /// Whether nothing lies between a token and the one before it.
    pub fn is_beside(&self, index: usize) -> bool {
        let pair = index.checked_sub(1).and_then(|before| self.tokens.get(before..=index));
        pair.is_some_and(|pair| pair[0].end == pair[1].start)
    }

    /// Whether a token is the first of its line, or there is none.
    pub fn begins_line(&self, index: usize) -> bool {
        let pair = index.checked_sub(1).and_then(|before| self.tokens.get(before..=index));
        pair.is_none_or(|pair| self.bytes[pair[0].end..pair[1].start].contains(&b'\n'))
    }

    /// How many equal characters stand directly beside each other from an index on; longer runs do not matter.
    pub fn run(&self, index: usize) -> usize {
        let first = self.text(index);
        let others = (index + 1..index + LONGEST_RUN).take_while(|next| self.is_beside(*next));
        1 + others.take_while(|next| self.text(*next) == first).count()
    }

    /// The index behind a list of template arguments that begins with the `<` at an index.
    pub fn after_angles(&self, open: usize) -> Option<usize> {
        const LONGEST: usize = 400;
        let (mut at, mut depth) = (open, 0usize);
        while at < open + LONGEST {
            match self.text(at) {
                b"" | b";" | b")" | b"]" | b"{" | b"}" => return None,
                b"(" | b"[" => at = self.partner(at)?,
                b"<" | b">" if self.is(at + 1, "=") && self.is_beside(at + 1) => {}
                b">" if self.before(at) == b"-" && self.is_beside(at) => {}
                b"<" => depth += 1,
                b">" => depth -= 1,
                _ => {}
            }
            at += 1;
            if depth == 0 {
                return Some(at);
            }
        }
        None
    }

    /// The index behind a name such as `a::b<c>::d` that begins at an index.
    pub fn after_name(&self, start: usize) -> Option<usize> {
        const MOST_PARTS: usize = 32;
        let mut at = start;
        if self.is(at, ":") {
            at += 2;
        }
        for _ in 0..MOST_PARTS {
            at += usize::from(self.is(at, "template"));
            if !self.is_word(at) {
                return None;
            }
            at += 1;
            if self.is(at, "<") && self.run(at) == 1 {
                at = self.after_angles(at)?;
            }
            if !(self.is(at, ":") && self.is(at + 1, ":")) {
                return Some(at);
            }
            at += 2;
        }
        None
    }
}

fn partners(bytes: &[u8], tokens: &[Token]) -> Vec<Option<usize>> {
    let mut partners = vec![None; tokens.len()];
    let mut open: Vec<(usize, u8)> = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Punctuation) {
        let character = bytes[token.start];
        match character {
            b'(' => open.push((at, b')')),
            b'[' => open.push((at, b']')),
            b'{' => open.push((at, b'}')),
            b')' | b']' | b'}' if open.last().is_some_and(|(_, close)| *close == character) => {
                if let Some((first, _)) = open.pop() {
                    partners[first] = Some(at);
                    partners[at] = Some(first);
                }
            }
            _ => {}
        }
    }
    partners
}

/// Whether a word is written as macros are: `TORCH_CHECK`, `MAKE_Optimizer`, `__host_device__`.
pub fn is_macro_like(word: &[u8]) -> bool {
    let underscores = word.iter().take_while(|byte| **byte == b'_').count();
    let name = &word[underscores..];
    let capitals = name.iter().take_while(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()).count();
    let begins =
        capitals > 2 && name.get(capitals).is_none_or(|next| *next == b'_') && !name[0].is_ascii_digit();
    let only = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    let short = name.len() > 2 && name.iter().all(only) && name[0].is_ascii_uppercase();
    begins || short || (underscores == 2 && name.len() > 2 && name.ends_with(b"__"))
}
