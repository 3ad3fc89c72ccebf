//! Elements of a list, and how each spells what is compiled.
//!
//! Nothing here knows a grammar: tokens are items of a list, or words of a text.

use std::ops::Range;

use crate::engine::arch::{Code, Gencode, parse_codes};

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// `arch=compute_90,code=sm_90`
    Gencode,
    /// `sm_90`
    Code,
    /// `90`
    Number,
    /// `9.0`, `9.0+PTX`
    Capability,
}

impl Notation {
    const NAMES: [(&'static str, Notation); 4] = [
        ("$GENCODE", Notation::Gencode),
        ("$CODE", Notation::Code),
        ("$NN", Notation::Number),
        ("$CC", Notation::Capability),
    ];

    fn read(self, text: &str) -> Option<Gencode> {
        let codes = match self {
            Notation::Gencode => return text.parse().ok(),
            Notation::Code if text.contains('_') => parse_codes(text).ok()?,
            Notation::Number if !text.contains(['_', '.', '+']) => parse_codes(text).ok()?,
            Notation::Capability if text.contains('.') => parse_codes(text).ok()?,
            _ => return None,
        };
        Some(Gencode { virtual_arch: codes.first()?.arch(), codes })
    }

    fn write(self, gencode: &Gencode) -> String {
        let arch = gencode.codes.first().map_or(gencode.virtual_arch, Code::arch);
        let ptx = gencode.codes.iter().any(|code| matches!(code, Code::Ptx(_)));
        match self {
            Notation::Gencode => gencode.to_string(),
            Notation::Code => gencode.codes.first().map_or_else(|| arch.to_string(), Code::to_string),
            Notation::Number => arch.to_string(),
            Notation::Capability => arch.capability() + if ptx { "+PTX" } else { "" },
        }
    }
}

/// An item of a list, or a word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Its bytes, quotes included.
    pub range: Range<usize>,
    /// What stands between the quotes; `None`: it is not known before the program runs.
    pub content: Option<Range<usize>>,
    /// Whether it is a number of the language, which has no letters.
    pub number: bool,
}

/// How one flag is spelled over consecutive tokens: `'-gencode', '$GENCODE',` or `-arch=$CODE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spelling {
    /// As it was written.
    pub text: String,
    parts: Vec<Part>,
}

/// What one token of a spelling is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    before: String,
    value: Option<(Notation, String)>,
}

/// A text that spells no flag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` has not exactly one of $GENCODE, $CODE, $NN and $CC")]
pub struct NoSpelling {
    /// What was read.
    pub text: String,
}

impl Spelling {
    /// Reads a spelling: tokens are set off by commas or blanks, and may be quoted.
    pub fn new(text: &str) -> Result<Self, NoSpelling> {
        let words = text.split([',', ' ', '\n']).filter(|word| !word.is_empty());
        let parts: Vec<Part> = words.map(|word| Part::new(word.trim_matches(['"', '\'']))).collect();
        let values = parts.iter().filter(|part| part.value.is_some()).count();
        let text = text.trim().to_string();
        if values == 1 { Ok(Self { text, parts }) } else { Err(NoSpelling { text }) }
    }

    /// The three ways of naming an architecture by itself: `sm_90`, `9.0`, `90`.
    pub fn bare() -> Vec<Self> {
        let names = [Notation::Code, Notation::Capability, Notation::Number];
        let part = |notation| Part { before: String::new(), value: Some((notation, String::new())) };
        names.map(|notation| Self { text: String::new(), parts: vec![part(notation)] }).to_vec()
    }

    /// A text that every file with such a flag holds.
    pub fn word(&self) -> &str {
        self.parts
            .iter()
            .map(|part| part.before.as_str())
            .max_by_key(|before| before.len())
            .unwrap_or_default()
    }

    /// Whether it is nvcc's `-arch`, which stands for machine code and PTX and cannot be repeated.
    fn is_shorthand(&self) -> bool {
        let names_code = self.parts.iter().any(|part| matches!(part.value, Some((Notation::Code, _))));
        names_code && self.word().contains("arch")
    }

    /// The flag at the first of these tokens.
    fn read(&self, tokens: &[Token], bytes: &[u8]) -> Option<Element> {
        let tokens = tokens.get(..self.parts.len())?;
        let mut found = None;
        for (part, token) in self.parts.iter().zip(tokens) {
            let content = token.content.clone()?;
            let value = part.value_in(&bytes[content.clone()])?;
            found = found.or(value.map(|(value, notation, gencode)| {
                (content.start + value.start..content.start + value.end, notation, gencode)
            }));
        }
        let (value, notation, mut gencode) = found?;
        let range = tokens.first()?.range.start..tokens.last()?.range.end;
        let shorthand = self.is_shorthand();
        if let ([Code::Sass(arch)], true) = (gencode.codes.as_slice(), shorthand) {
            gencode.codes.push(Code::Ptx(*arch));
        }
        let value = value.start - range.start..value.end - range.start;
        let text = String::from_utf8_lossy(&bytes[range.clone()]).into_owned();
        let number = tokens.iter().any(|token| token.number);
        Some(Element {
            range,
            text,
            flag: Some(Flag { gencode, notation, value, shorthand, number }),
            held: None,
        })
    }
}

impl Part {
    fn new(word: &str) -> Self {
        let split = Notation::NAMES.iter().find_map(|(name, notation)| {
            let (before, after) = word.split_once(name)?;
            Some(Self { before: before.to_string(), value: Some((*notation, after.to_string())) })
        });
        split.unwrap_or_else(|| Self { before: word.to_string(), value: None })
    }

    /// Whether a token is this part, and the value in it.
    #[allow(clippy::type_complexity, reason = "a value, its place and its notation")]
    fn value_in(&self, content: &[u8]) -> Option<Option<(Range<usize>, Notation, Gencode)>> {
        let text = std::str::from_utf8(content).ok()?;
        let rest = text.strip_prefix(&self.before)?;
        let Some((notation, after)) = &self.value else { return rest.is_empty().then_some(None) };
        let value = rest.strip_suffix(after.as_str())?;
        let gencode = notation.read(value)?;
        Some(Some((self.before.len()..self.before.len() + value.len(), *notation, gencode)))
    }
}

/// One element of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// Its bytes.
    pub range: Range<usize>,
    /// Its text.
    pub text: String,
    /// The flag that it is; `None`: it is something else.
    pub flag: Option<Flag>,
    /// The line of a statement that takes it out of the list again.
    pub held: Option<usize>,
}

/// What an element compiles, and how it says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// What is compiled.
    pub gencode: Gencode,
    /// How the value is written.
    pub notation: Notation,
    /// Whether it is nvcc's `-arch`.
    pub shorthand: bool,
    /// Whether it is a number of the language, which has no letters.
    pub number: bool,
    value: Range<usize>,
}

impl Element {
    /// The elements of a list: each flag by the first spelling that fits, every other token by itself.
    pub fn read_all(tokens: &[Token], bytes: &[u8], spellings: &[Spelling]) -> Vec<Self> {
        let mut elements = Vec::new();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let flag = spellings
                .iter()
                .find_map(|spelling| Some((spelling.parts.len(), spelling.read(&tokens[at..], bytes)?)));
            let (length, element) = flag.unwrap_or_else(|| (1, Self::other(token, bytes)));
            elements.push(element);
            at += length;
        }
        elements
    }

    fn other(token: &Token, bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&bytes[token.range.clone()]).into_owned();
        Self { range: token.range.clone(), text, flag: None, held: None }
    }

    /// What it compiles; nothing where it is something else.
    pub fn codes(&self) -> &[Code] {
        self.flag.as_ref().map_or(&[], |flag| &flag.gencode.codes)
    }

    /// Its value as it is written.
    pub fn value(&self) -> Option<&str> {
        self.text.get(self.flag.as_ref()?.value.clone())
    }

    /// Whether it is an option with its value: `-gencode arch=…`.
    pub fn is_option(&self) -> bool {
        self.flag.is_some() && self.text.starts_with('-')
    }

    /// The element with another value.
    pub fn spelt(&self, gencode: &Gencode) -> String {
        let Some(flag) = &self.flag else { return self.text.clone() };
        let value = flag.notation.write(gencode);
        format!("{}{value}{}", &self.text[..flag.value.start], &self.text[flag.value.end..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Token> {
        let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
        let token = |word: &str| Token {
            range: start(word)..start(word) + word.len(),
            content: Some(start(word)..start(word) + word.len()),
            number: false,
        };
        text.split_whitespace().map(token).collect()
    }

    #[test]
    fn flags_are_read_and_written_in_their_spelling() {
        let spellings = ["'-gencode', '$GENCODE',", "-gencode=$GENCODE", "-arch=$CODE"];
        let spellings: Vec<Spelling> =
            spellings.iter().map(|text| Spelling::new(text).expect(text)).collect();
        let text = "nvcc -O2 -gencode  arch=compute_70,code=sm_70 -gencode=arch=compute_80,code=[sm_80,compute_80] -arch=sm_52";
        let elements = Element::read_all(&words(text), text.as_bytes(), &spellings);
        let flags: Vec<String> =
            elements.iter().filter_map(|e| Some(e.flag.as_ref()?.gencode.to_string())).collect();
        assert_eq!(
            flags,
            [
                "arch=compute_70,code=sm_70",
                "arch=compute_80,code=[sm_80,compute_80]",
                "arch=compute_52,code=[sm_52,compute_52]"
            ]
        );
        let new = Gencode::of(Code::Sass("120".parse().expect("arch")));
        let written: Vec<String> = elements.iter().map(|element| element.spelt(&new)).collect();
        assert_eq!(
            written,
            [
                "nvcc",
                "-O2",
                "-gencode  arch=compute_120,code=sm_120",
                "-gencode=arch=compute_120,code=sm_120",
                "-arch=sm_120"
            ]
        );
    }

    #[test]
    fn a_spelling_has_one_value() {
        assert!(Spelling::new("'-gencode', 'arch'").is_err() && Spelling::new("$NN $CC").is_err());
        assert_eq!(Spelling::new("'-gencode', '$GENCODE',").expect("spelling").word(), "-gencode");
    }
}
