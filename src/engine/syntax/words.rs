//! Text of words that no grammar reads: shell scripts, makefiles, Dockerfiles, and strings of flags.
//!
//! Comments are left out, quotes are seen through, a `\` at the end of a line continues it. What is not understood, such
//! as a quote that is never closed, is read as plain letters: then no flag is found there, and nothing is edited.

use std::ops::Range;

/// How a file of words is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Shell scripts, and whatever else is not one of the others.
    Shell,
    /// `Makefile`, `*.mk`
    Make,
    /// `Dockerfile`
    Docker,
}

impl Dialect {
    /// By the name of the file.
    pub fn of_path(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
        let begins = |start: &str| name == start || name.starts_with(&format!("{start}."));
        if begins("makefile") || begins("gnumakefile") || name.ends_with(".mk") || name.ends_with(".make") {
            Self::Make
        } else if name.starts_with("dockerfile") || name.ends_with("dockerfile") || begins("containerfile") {
            Self::Docker
        } else {
            Self::Shell
        }
    }
}

/// A word of a command or of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Its bytes, quotes included.
    pub range: Range<usize>,
    /// What it says, without quotes.
    pub text: String,
    /// The insides of its quotes.
    pub quoted: Vec<Range<usize>>,
}

/// The words of a command line, of an assignment, of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// At least one.
    pub words: Vec<Word>,
    /// Whether it begins a line; others follow `;`, `&&` or `|`.
    pub begins_line: bool,
    /// The arrays that its words give to variables.
    pub arrays: Vec<Array>,
}

/// An array of a shell: `ARCHS=(60 70)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// The word before it: `ARCHS=`, `ARCHS+=`.
    pub holder: Word,
    /// What stands in it.
    pub elements: Vec<Word>,
    /// Where its parenthesis ends.
    pub end: usize,
}

impl Command {
    /// From its first word to its last.
    pub fn range(&self) -> Range<usize> {
        let first = self.words.first().map_or(0, |word| word.range.start);
        first..self.words.last().map_or(first, |word| word.range.end)
    }
}

/// The commands of a file. What a here-document holds is left out.
pub fn commands(dialect: Dialect, bytes: &[u8]) -> Vec<Command> {
    let mut scanner = Scanner { bytes, dialect, at: 0, is_value: false };
    scanner.begin_line();
    let (mut commands, mut words, mut begins_line) = (Vec::new(), Vec::new(), true);
    let mut arrays: Vec<Array> = Vec::new();
    let mut documents: Vec<String> = Vec::new();
    while let Some(token) = scanner.token() {
        if let Token::Word(word) = token {
            arrays.extend(scanner.array(&word));
            words.push(word);
            continue;
        }
        documents.extend(here_documents(dialect, &words));
        if !words.is_empty() {
            let (words, arrays) = (std::mem::take(&mut words), std::mem::take(&mut arrays));
            commands.push(Command { words, begins_line, arrays });
        }
        begins_line = token == Token::Newline;
        if begins_line {
            documents.drain(..).for_each(|end| scanner.skip_document(&end));
        }
    }
    if !words.is_empty() {
        commands.push(Command { words, begins_line, arrays });
    }
    commands
}

/// The words within a string of flags or of a list: blanks, newlines, `;` and continuations stand between them.
pub fn inside(bytes: &[u8], range: Range<usize>) -> Vec<Word> {
    let mut scanner =
        Scanner { bytes: &bytes[..range.end], dialect: Dialect::Make, at: range.start, is_value: false };
    let mut words = Vec::new();
    while scanner.at < range.end {
        let start = scanner.at;
        let gap = scanner.gap();
        match gap {
            Some(length) => scanner.at += length,
            None => {
                while scanner.at < range.end && scanner.gap().is_none() {
                    scanner.at += scanner.expansion().unwrap_or(1);
                }
                let word = start..scanner.at.min(range.end);
                let text = String::from_utf8_lossy(&bytes[word.clone()]).into_owned();
                words.push(Word { range: word, text, quoted: Vec::new() });
            }
        }
    }
    words
}

/// An expansion that says what stands there where its variable was not given: `${ARCH:-sm_70}`, `${ARCH:=sm_70}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    /// The variable.
    pub variable: String,
    /// Whether the variable keeps the default.
    pub assigns: bool,
    /// All of it.
    pub range: Range<usize>,
    /// The default, without quotes around it; of one within another, the innermost.
    pub default: Range<usize>,
}

/// The expansions with a default in a word, those within its quotes left out.
pub fn expansions(bytes: &[u8], word: &Word) -> Vec<Expansion> {
    let mut scanner = Scanner { bytes, dialect: Dialect::Shell, at: word.range.start, is_value: false };
    let mut found = Vec::new();
    while scanner.at < word.range.end {
        if let Some(quoted) = word.quoted.iter().find(|quoted| quoted.contains(&scanner.at)) {
            scanner.at = quoted.end;
            continue;
        }
        let length = scanner.expansion();
        let range = scanner.at..scanner.at + length.unwrap_or(1);
        found.extend(length.and_then(|_| Expansion::read(bytes, range.clone())));
        scanner.at = range.end;
    }
    found
}

impl Expansion {
    fn read(bytes: &[u8], range: Range<usize>) -> Option<Self> {
        let text = std::str::from_utf8(&bytes[range.clone()]).ok()?;
        let inner = text.strip_prefix("${")?.strip_suffix('}')?;
        let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
        let (variable, rest) = inner.split_at(end);
        let operator = [":-", ":=", "-", "="].into_iter().find(|operator| rest.starts_with(operator))?;
        let start = range.start + "${".len() + end + operator.len();
        let default = unquoted(bytes, start..range.end - 1);
        let nested = Self::read(bytes, default.clone()).map(|nested| nested.default);
        let (variable, assigns) = (variable.to_string(), operator.ends_with('='));
        Some(Self { variable, assigns, range, default: nested.unwrap_or(default) })
    }
}

/// A text without the quotes around it.
fn unquoted(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    match &bytes[range.clone()] {
        [first @ (b'"' | b'\''), inner @ .., last] if first == last && !inner.contains(first) => {
            range.start + 1..range.end - 1
        }
        _ => range,
    }
}

/// The words that end the here-documents that a command begins: `<<EOF`, `<<- 'EOF'`.
fn here_documents(dialect: Dialect, words: &[Word]) -> Vec<String> {
    if dialect == Dialect::Make {
        return Vec::new();
    }
    let begun = words.iter().enumerate().filter_map(|(at, word)| {
        let (_, end) = word.text.split_once("<<").filter(|(_, end)| !end.starts_with('<'))?;
        match end.trim_start_matches('-') {
            "" => words.get(at + 1).map(|next| next.text.clone()),
            end => Some(end.to_string()),
        }
    });
    begun.filter(|end| end.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')).collect()
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(Word),
    /// `;`, `&&`, `|`, a parenthesis.
    Separator,
    Newline,
}

struct Scanner<'a> {
    bytes: &'a [u8],
    dialect: Dialect,
    at: usize,
    /// Whether the line gives a variable its value and runs no command, so that `;` and its like separate nothing.
    is_value: bool,
}

impl Scanner<'_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// Looks at the line that begins here.
    fn begin_line(&mut self) {
        let end = crate::engine::syntax::style::line_end(self.bytes, self.at);
        let line = String::from_utf8_lossy(&self.bytes[self.at.min(end)..end]).into_owned();
        let mut words =
            line.split_whitespace().skip_while(|word| matches!(*word, "export" | "override" | "private"));
        let first = words.next().unwrap_or_default();
        // A makefile takes nearly anything for a name, `$(ARCH)_FLAGS` too.
        let name = first.trim_start_matches(|c: char| !":=?+!#;&|\"'".contains(c));
        let begins = |text: &str| ["=", ":=", "::=", "?=", "+="].iter().any(|sign| text.starts_with(sign));
        self.is_value = match self.dialect {
            Dialect::Shell => false,
            Dialect::Docker => matches!(first.to_ascii_uppercase().as_str(), "ENV" | "ARG"),
            Dialect::Make if line.starts_with('\t') => false,
            Dialect::Make if name.is_empty() => begins(words.next().unwrap_or_default()),
            Dialect::Make => name.len() < first.len() && begins(name),
        };
    }

    fn token(&mut self) -> Option<Token> {
        self.skip_blanks();
        match self.byte(self.at)? {
            b'\n' => {
                self.at += 1;
                self.begin_line();
                Some(Token::Newline)
            }
            b';' | b'&' | b'|' | b'(' | b')' if !self.is_value => {
                self.at += 1;
                Some(Token::Separator)
            }
            _ => Some(Token::Word(self.word())),
        }
    }

    /// The array that a word gives to its variable, if one begins here; it may have several lines.
    fn array(&mut self, holder: &Word) -> Option<Array> {
        let is_given = holder.quoted.is_empty() && holder.text.ends_with('=');
        if self.dialect != Dialect::Shell || !is_given || self.byte(self.at) != Some(b'(') {
            return None;
        }
        let start = self.at;
        self.at += 1;
        let mut elements = Vec::new();
        loop {
            match self.token() {
                Some(Token::Word(word)) => elements.push(word),
                Some(Token::Newline) => {}
                Some(Token::Separator) if self.byte(self.at - 1) == Some(b')') => {
                    return Some(Array { holder: holder.clone(), elements, end: self.at });
                }
                Some(Token::Separator) | None => {
                    self.at = start;
                    return None;
                }
            }
        }
    }

    /// Skips blanks, continuations and comments, up to the newline.
    fn skip_blanks(&mut self) {
        while let Some(byte) = self.byte(self.at) {
            match (byte, self.continuation()) {
                (b' ' | b'\t' | b'\r', _) => self.at += 1,
                (_, Some(length)) => {
                    self.at += length;
                    self.skip_docker_comments();
                }
                (b'#', _) => self.skip_comment(),
                _ => return,
            }
        }
    }

    /// How many bytes a `\` with its newline has here.
    fn continuation(&self) -> Option<usize> {
        let rest = self.bytes.get(self.at..)?;
        [b"\\\n".as_slice(), b"\\\r\n"].into_iter().find(|end| rest.starts_with(end)).map(<[u8]>::len)
    }

    /// To the end of the line; makefiles continue comments too.
    fn skip_comment(&mut self) {
        while let Some(byte) = self.byte(self.at) {
            match self.continuation().filter(|_| self.dialect == Dialect::Make) {
                Some(length) => self.at += length,
                None if byte == b'\n' => return,
                None => self.at += 1,
            }
        }
    }

    /// Comment lines and empty ones between the lines of one instruction do not end it.
    fn skip_docker_comments(&mut self) {
        while self.dialect == Dialect::Docker {
            let line = &self.bytes[self.at..crate::engine::syntax::style::line_end(self.bytes, self.at)];
            let text = line.trim_ascii();
            if line.is_empty() || !(text.is_empty() || text.starts_with(b"#")) {
                return;
            }
            self.at += line.len();
        }
    }

    /// Skips the lines up to the one that ends a here-document; where there is none, nothing.
    fn skip_document(&mut self, end: &str) {
        let mut at = self.at;
        for line in self.bytes[self.at..].split_inclusive(|byte| *byte == b'\n') {
            at += line.len();
            if line.trim_ascii() == end.as_bytes() {
                self.at = at;
                return;
            }
        }
    }

    fn word(&mut self) -> Word {
        let start = self.at;
        let (mut text, mut quoted) = (Vec::new(), Vec::new());
        while let Some(byte) = self.byte(self.at) {
            if self.ends_word(byte) {
                break;
            }
            if let Some(end) = self.closing_quote(byte) {
                let inner = self.at + 1..end;
                text.extend(unescaped(&self.bytes[inner.clone()], byte));
                quoted.push(inner);
                self.at = end + 1;
            } else if let Some(length) = self.expansion() {
                text.extend_from_slice(&self.bytes[self.at..self.at + length]);
                self.at += length;
            } else {
                let escape = usize::from(byte == b'\\' && self.byte(self.at + 1).is_some());
                text.extend(self.byte(self.at + escape));
                self.at += 1 + escape;
            }
        }
        Word { range: start..self.at, text: String::from_utf8_lossy(&text).into_owned(), quoted }
    }

    fn ends_word(&self, byte: u8) -> bool {
        matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
            || (matches!(byte, b';' | b'&' | b'|' | b'(' | b')') && !self.is_value)
            || self.continuation().is_some()
            || (byte == b'#' && self.dialect == Dialect::Make)
    }

    /// Where the quote ends that begins here. Outside of shell scripts it must end on its line.
    fn closing_quote(&self, quote: u8) -> Option<usize> {
        if !matches!(quote, b'"' | b'\'') {
            return None;
        }
        let mut at = self.at + 1;
        loop {
            match self.byte(at)? {
                byte if byte == quote => return Some(at),
                b'\\' if quote == b'"' || self.byte(at + 1) == Some(b'\n') => at += 2,
                b'\n' if self.dialect != Dialect::Shell => return None,
                _ => at += 1,
            }
        }
    }

    /// The length of a `$(…)` or `${…}` that begins here and ends on its line; blanks in it end no word.
    fn expansion(&self) -> Option<usize> {
        let rest = self.bytes.get(self.at..)?;
        let (open, close) = match rest {
            [b'$', b'(', ..] => (b'(', b')'),
            [b'$', b'{', ..] => (b'{', b'}'),
            _ => return None,
        };
        let mut depth = 0;
        for (at, byte) in rest.iter().enumerate().skip(1) {
            depth += usize::from(*byte == open);
            depth -= usize::from(*byte == close);
            match byte {
                _ if depth == 0 => return Some(at + 1),
                b'\n' if rest[at - 1] != b'\\' && rest[at - 1] != b'\r' => return None,
                _ => {}
            }
        }
        None
    }

    /// How many bytes stand here that no word of a string holds.
    fn gap(&self) -> Option<usize> {
        match self.byte(self.at)? {
            b' ' | b'\t' | b'\r' | b'\n' | b';' => Some(1),
            b'\\' if self.byte(self.at + 1) == Some(b';') => Some(2),
            _ => self.continuation(),
        }
    }
}

/// What stands within quotes: a continuation says nothing, `\"` is a quote.
fn unescaped(inner: &[u8], quote: u8) -> Vec<u8> {
    let mut text = Vec::new();
    let mut at = 0;
    while let Some(byte) = inner.get(at) {
        match (byte, inner.get(at + 1)) {
            (b'\\', Some(b'\n')) => at += 1,
            (b'\\', Some(next @ (b'"' | b'\\' | b'$'))) if quote == b'"' => {
                text.push(*next);
                at += 1;
            }
            _ => text.push(*byte),
        }
        at += 1;
    }
    text
}

#[cfg(test)]
mod tests;
