//! Whether a piece of C++ gives a name a meaning of its own, judged by its tokens alone.
//!
//! In doubt it does: a name that is taken for the tree's own is left alone, and said so.

use super::lexed::Lexed;
use super::tokens::Kind;

/// A name that a file declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Declared {
    /// As a macro, a function, a type, a variable.
    Own(&'static str),
    /// `using cub::Sum;`: the name of another scope.
    Imported,
}

/// The tokens that a declaration may reach back to: those of a file, or those of a macro body.
#[derive(Clone, Copy)]
pub struct Scope<'t> {
    /// The file.
    pub lexed: &'t Lexed<'t>,
    /// The first token that counts.
    pub from: usize,
}

const CLASS_KEYS: [&[u8]; 4] = [b"class", b"struct", b"union", b"enum"];

/// Words after which no declarator stands.
const STATEMENTS: [&[u8]; 27] = [
    b"return",
    b"else",
    b"do",
    b"goto",
    b"case",
    b"default",
    b"throw",
    b"new",
    b"delete",
    b"sizeof",
    b"typeid",
    b"co_return",
    b"co_await",
    b"co_yield",
    b"and",
    b"or",
    b"not",
    b"xor",
    b"operator",
    b"using",
    b"namespace",
    b"if",
    b"for",
    b"while",
    b"switch",
    b"catch",
    b"asm",
];

/// Words of a declaration that name no type.
const SPECIFIERS: [&[u8]; 30] = [
    b"static",
    b"inline",
    b"extern",
    b"const",
    b"constexpr",
    b"consteval",
    b"constinit",
    b"virtual",
    b"explicit",
    b"friend",
    b"typedef",
    b"mutable",
    b"thread_local",
    b"template",
    b"typename",
    b"register",
    b"volatile",
    b"public",
    b"private",
    b"protected",
    b"__device__",
    b"__host__",
    b"__global__",
    b"__shared__",
    b"__constant__",
    b"__forceinline__",
    b"__noinline__",
    b"__inline__",
    b"__restrict__",
    b"__extension__",
];

/// What may follow the parameters of a function.
const AFTER_PARAMETERS: [&[u8]; 10] =
    [b"const", b"noexcept", b"->", b"override", b"final", b"try", b"=", b"requires", b"__attribute__", b":"];

/// Whether a word begins no declarator after it.
pub fn is_statement(word: &[u8]) -> bool {
    STATEMENTS.contains(&word)
}

/// Whether a word is one of a declaration and names no type.
pub fn is_specifier(word: &[u8]) -> bool {
    SPECIFIERS.contains(&word)
}

/// What stands before a declarator, back to the start of its statement.
#[derive(Debug, Default)]
struct Before<'t> {
    words: Vec<&'t [u8]>,
    depth: usize,
}

impl Before<'_> {
    fn names_a_type(&self) -> bool {
        self.depth == 0 && self.words.iter().any(|word| !is_specifier(word))
    }
}

impl<'t> Scope<'t> {
    /// The token before another one.
    pub fn before(self, index: usize) -> Option<usize> {
        self.lexed.before(index).filter(|before| *before >= self.from)
    }

    /// The text of the token before another one.
    pub fn text_before(self, index: usize) -> &'t [u8] {
        self.before(index).map_or(b"", |before| self.lexed.text(before))
    }

    /// The text of the token after another one.
    pub fn text_after(self, index: usize) -> &'t [u8] {
        self.lexed.after(index).map_or(b"", |after| self.lexed.text(after))
    }

    /// How the name that goes from one token to another is declared there, if it is.
    pub fn declared(self, first: usize, last: usize) -> Option<Declared> {
        let (before, after) = (self.text_before(first), self.text_after(last));
        match (before, after) {
            (b"using", b";" | b",") => return Some(Declared::Imported),
            (b"using", b"=") => return Some(Declared::Own("type")),
            (b"namespace", b"{" | b"=" | b"::") => return Some(Declared::Own("namespace")),
            (b"concept", b"=") => return Some(Declared::Own("concept")),
            _ if self.is_class(first, last) => return Some(Declared::Own("type")),
            _ => {}
        }
        let what = self.declarator(last)?;
        let specifiers = self.specifiers(first)?;
        let heads = matches!(what, Shape::Function { body: true } | Shape::Value { assigned: true });
        if !specifiers.names_a_type() || !(heads || self.shares_line(first)) {
            return None;
        }
        Some(Declared::Own(match what {
            _ if specifiers.words.contains(&&b"typedef"[..]) => "type",
            Shape::Function { .. } => "function",
            Shape::Value { .. } => "variable",
        }))
    }

    /// `struct NAME {`, `class EXPORT NAME : …`, `enum NAME;`
    fn is_class(self, first: usize, last: usize) -> bool {
        let Some(mut key) = self.before(first) else { return false };
        if self.lexed.text(key) == b")" {
            let Some(attribute) = self.opening(key).and_then(|open| self.before(open)) else { return false };
            key = attribute;
        }
        let is_key = |index: usize| CLASS_KEYS.contains(&self.lexed.text(index));
        let with_attribute = self.lexed.kind(key) == Some(Kind::Word) && self.before(key).is_some_and(is_key);
        match self.text_after(last) {
            b"{" | b":" | b"final" => is_key(key) || with_attribute,
            b";" | b"<" => is_key(key),
            _ => false,
        }
    }

    /// What the tokens after a name make of it.
    fn declarator(self, last: usize) -> Option<Shape> {
        let mut next = self.lexed.after(last)?;
        if self.lexed.text(next) == b"<" {
            next = self.lexed.after(self.closing(next, b"<", b">")?)?;
        }
        match self.lexed.text(next) {
            b"(" => {
                let end = self.closing(next, b"(", b")")?;
                match self.text_after(end) {
                    b"{" => Some(Shape::Function { body: true }),
                    b";" => Some(Shape::Function { body: false }),
                    after => AFTER_PARAMETERS.contains(&after).then_some(Shape::Function { body: false }),
                }
            }
            b"=" => (self.text_after(next) != b"=").then_some(Shape::Value { assigned: true }),
            b";" | b"," | b"[" | b"{" => Some(Shape::Value { assigned: false }),
            _ => None,
        }
    }

    /// What stands before a declarator; none where something stands there that no declaration holds.
    fn specifiers(self, first: usize) -> Option<Before<'t>> {
        let mut found = Before::default();
        let mut at = self.before(first);
        while let Some(index) = at {
            let text = self.lexed.text(index);
            at = match (text, self.lexed.kind(index)?) {
                (b";" | b"{" | b"}" | b":", _) => return Some(found),
                (b")", _) if found.depth > 0 => self.opening(index),
                (b")", _) => Some(self.attribute(index)?),
                (b"]", _) => self.matching(index, b"[", b"]"),
                (b">", _) => {
                    found.depth += 1;
                    Some(index)
                }
                (b"<", _) => {
                    found.depth = found.depth.checked_sub(1)?;
                    Some(index)
                }
                (b"::" | b"*" | b"&", _) | (_, Kind::Literal) => Some(index),
                (_, Kind::Punctuation | Kind::Number) if found.depth > 0 => Some(index),
                (word, Kind::Word) if !is_statement(word) => {
                    if found.depth == 0 {
                        found.words.push(word);
                    }
                    Some(index)
                }
                _ => return None,
            };
            at = at.and_then(|index| self.before(index));
        }
        Some(found)
    }

    /// The word of `__launch_bounds__(256)`, whose closing bracket is given; none where it is `if (…)` or a cast.
    fn attribute(self, close: usize) -> Option<usize> {
        let word = self.before(self.opening(close)?)?;
        let is_word = self.lexed.kind(word) == Some(Kind::Word) && !is_statement(self.lexed.text(word));
        is_word.then_some(word)
    }

    fn opening(self, close: usize) -> Option<usize> {
        self.matching(close, b"(", b")")
    }

    /// The bracket that opens what another one closes.
    fn matching(self, close: usize, opens: &[u8], closes: &[u8]) -> Option<usize> {
        let (mut depth, mut at) = (0usize, close);
        loop {
            let text = self.lexed.text(at);
            depth += usize::from(text == closes);
            if text == opens {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            at = self.before(at)?;
        }
    }

    /// The bracket that closes what another one opens.
    fn closing(self, open: usize, opens: &[u8], closes: &[u8]) -> Option<usize> {
        let (mut depth, mut at) = (0usize, open);
        loop {
            let text = self.lexed.text(at);
            depth += usize::from(text == opens);
            if text == closes {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            at = self.lexed.after(at)?;
        }
    }

    /// Whether a name stands on the line of the word before it, as a macro alone on its line does not, and does not
    /// follow `a &&`.
    fn shares_line(self, first: usize) -> bool {
        let Some(before) = self.before(first) else { return false };
        let range = self.lexed.all[before].range.end..self.lexed.all[first].range.start;
        let and = self.lexed.text(before) == b"&" && self.text_before(before) == b"&";
        !and && !self.lexed.bytes[range].contains(&b'\n')
    }

    /// The names of the namespaces around a token, outermost first; none within a class or a function.
    pub fn namespaces(self, index: usize) -> Option<Vec<&'t [u8]>> {
        self.frames(index).into_iter().collect::<Option<Vec<_>>>().map(|frames| frames.concat())
    }

    /// The same, within a class or a function too.
    pub fn around(self, index: usize) -> Vec<&'t [u8]> {
        self.frames(index).into_iter().flatten().flatten().collect()
    }

    /// What the braces around a token belong to: the names of a namespace, or something else. Those of an inline
    /// namespace are names of the one around it.
    fn frames(self, index: usize) -> Vec<Option<Vec<&'t [u8]>>> {
        let mut frames: Vec<Option<Vec<&[u8]>>> = Vec::new();
        let mut named: Option<Vec<&[u8]>> = None;
        let mut inline = false;
        let code = (self.from..index).filter(|at| self.lexed.all[*at].directive.is_none());
        for at in code {
            match (self.lexed.text(at), &mut named) {
                (b"namespace", _) => {
                    named = Some(Vec::new());
                    inline = self.text_before(at) == b"inline";
                }
                (b"{", _) => frames.push(named.take()),
                (b"}", _) => drop(frames.pop()),
                (b";" | b"=", _) => named = None,
                (word, Some(names)) if self.lexed.kind(at) == Some(Kind::Word) && !inline => names.push(word),
                _ => {}
            }
        }
        frames
    }
}

/// What a declarator declares.
enum Shape {
    Function { body: bool },
    Value { assigned: bool },
}
