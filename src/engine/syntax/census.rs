//! Every place of a file where a name stands, and what it is there.
//!
//! An occurrence is the words of the name in their order, joined by `::`, each a whole word. Code is told from
//! comments, literals and directives by a lexer; nothing is parsed.

use std::ops::Range;

use super::declared::{Declared, Scope, is_specifier, is_statement};
use super::lexed::Lexed;
use super::tokens::{Kind, is_word};

/// A name, qualified or not: `AT_CHECK`, `cub::Sum`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    parts: Vec<String>,
}

/// What a name is at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Code.
    Code,
    /// In the body of a macro, whose name is given.
    MacroBody(String),
    /// Where the file gives it a meaning of its own.
    Definition(&'static str),
    /// `using cub::Sum;`
    Imported,
    /// A condition asks for it: `#ifdef AT_CHECK`.
    Condition,
    /// Another directive: `#undef`, `#include`, `#pragma`.
    Directive,
    /// A comment.
    Comment,
    /// A string.
    String,
    /// A raw string.
    RawString,
    /// A character.
    Character,
    /// `##` makes another name of it.
    Pasted,
    /// A parameter of the macro around it.
    Parameter,
    /// A member: `x.AT_CHECK`, `x->AT_CHECK`.
    Member,
    /// A name of another scope: `other::AT_CHECK`.
    Qualified,
    /// A comment or a new line stands between its words.
    Split,
    /// Its last word alone, where the file brings it in by a `using`.
    Bare,
}

impl Place {
    /// Whether it is no code at all.
    pub fn is_text(&self) -> bool {
        matches!(self, Place::Comment | Place::String | Place::RawString | Place::Character)
    }
}

/// A place where a name stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// Its bytes, a leading `::` included.
    pub range: Range<usize>,
    /// What it is there.
    pub place: Place,
}

/// All places of a file where a name stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Census {
    /// In the order of the file.
    pub occurrences: Vec<Occurrence>,
    /// Where the file gives the name a meaning of its own.
    pub definitions: Vec<Definition>,
}

/// A place where a file gives a name a meaning of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// Where.
    pub at: usize,
    /// As what: `macro`, `function`.
    pub what: &'static str,
    /// The namespaces around the whole name, outermost first: `mine`, where `mine::cub::Sum` is defined.
    pub outer: Vec<String>,
}

impl Definition {
    fn new(at: usize, what: &'static str, outer: &[&[u8]]) -> Self {
        let outer = outer.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        Self { at, what, outer }
    }
}

impl Name {
    /// From its text; a leading `::` does not count.
    pub fn new(text: &str) -> Self {
        let parts = text.split("::").map(str::trim).filter(|part| !part.is_empty());
        Self { parts: parts.map(str::to_string).collect() }
    }

    /// Whether a file can hold it or define it, judged without lexed its tokens.
    pub fn may_be_in(&self, bytes: &[u8]) -> bool {
        self.parts.iter().all(|part| memchr::memmem::find(bytes, part.as_bytes()).is_some())
    }

    /// The word that a declaration of it names.
    pub fn last(&self) -> &str {
        self.parts.last().map_or("", String::as_str)
    }

    fn qualifiers(&self) -> &[String] {
        self.parts.split_last().map_or(&[], |(_, qualifiers)| qualifiers)
    }

    /// Takes the census of a file.
    pub fn census(&self, bytes: &[u8]) -> Census {
        if !self.may_be_in(bytes) {
            return Census::default();
        }
        let lexed = Lexed::of(bytes);
        let reader = Reader { name: self, lexed: &lexed, brings_in: self.is_brought_in(&lexed) };
        let mut census = Census::default();
        for index in 0..lexed.all.len() {
            reader.read(index, &mut census);
        }
        census
    }

    /// Whether a file says `using namespace cub;` or `using cub::Sum;`.
    fn is_brought_in(&self, lexed: &Lexed<'_>) -> bool {
        let parts = || self.parts.iter().map(String::as_bytes);
        let namespace = [&b"namespace"[..]].into_iter().chain(self.qualifiers().iter().map(String::as_bytes));
        let says = |index: usize| {
            let after = std::iter::successors(lexed.after(index), |index| lexed.after(*index));
            let words = || after.clone().map(|index| lexed.text(index)).take_while(|text| *text != b";");
            let words = || words().filter(|text| *text != b"::").take(self.parts.len() + 1);
            lexed.text(index) == b"using" && (words().eq(namespace.clone()) || words().eq(parts()))
        };
        !self.qualifiers().is_empty() && (0..lexed.all.len()).any(says)
    }
}

struct Reader<'t> {
    name: &'t Name,
    lexed: &'t Lexed<'t>,
    brings_in: bool,
}

/// What stands before a name.
enum Qualifier {
    None,
    /// `::` with its token.
    Global(usize),
    Other,
}

impl Reader<'_> {
    fn read(&self, index: usize, census: &mut Census) {
        let text_place = match self.lexed.all[index].kind {
            Kind::Comment => Place::Comment,
            Kind::Literal => literal_place(self.lexed.text(index)),
            Kind::Word => return self.read_word(index, census),
            _ => return,
        };
        let range = self.lexed.all[index].range.clone();
        let found = self.within(range).into_iter();
        census.occurrences.extend(found.map(|range| Occurrence { range, place: text_place.clone() }));
    }

    fn read_word(&self, index: usize, census: &mut Census) {
        let text = self.lexed.text(index);
        if self.defines_scope(index, text) {
            let outer = self.scope(index).namespaces(index).unwrap_or_default();
            let at = self.lexed.all[index].range.start;
            census.definitions.push(Definition::new(at, "namespace", &outer));
        }
        if text != self.name.last().as_bytes() {
            return;
        }
        let occurrence = match self.first_of(index) {
            Some(first) => Some(self.occurrence(first, index)),
            None => self.bare(index, census),
        };
        if let Some(Occurrence { range, place: Place::Definition(what) }) = &occurrence {
            census.definitions.push(Definition::new(range.start, what, &[]));
        }
        census.occurrences.extend(occurrence);
    }

    /// `namespace cub = …`, `#define cub …`: what is qualified by it is another name then.
    fn defines_scope(&self, index: usize, text: &[u8]) -> bool {
        let Some(first) = self.name.qualifiers().first() else { return false };
        let Some(before) = self.lexed.before(index).filter(|_| text == first.as_bytes()) else {
            return false;
        };
        match self.lexed.text(before) {
            b"namespace" => self.lexed.after(index).is_some_and(|after| self.lexed.text(after) == b"="),
            b"define" => self.lexed.before(before).is_some_and(|hash| self.lexed.text(hash) == b"#"),
            _ => false,
        }
    }

    /// The first token of the name that ends with a token.
    fn first_of(&self, last: usize) -> Option<usize> {
        self.name.qualifiers().iter().rev().try_fold(last, |index, part| {
            let colons = self.lexed.before(index).filter(|colons| self.lexed.text(*colons) == b"::")?;
            self.lexed.before(colons).filter(|word| self.lexed.text(*word) == part.as_bytes())
        })
    }

    /// The last word of a qualified name by itself: a definition within its namespace, or a use that `using` allows.
    fn bare(&self, index: usize, census: &mut Census) -> Option<Occurrence> {
        let range = self.lexed.all[index].range.clone();
        let scope = self.scope(index);
        if matches!(scope.text_before(index), b"::" | b"." | b"->") || self.directive_place(index).is_some() {
            return None;
        }
        if let Some(Declared::Own(what)) = scope.declared(index, index) {
            let qualifiers: Vec<&[u8]> = self.name.qualifiers().iter().map(|part| part.as_bytes()).collect();
            let around = Scope { from: 0, ..scope }.namespaces(index);
            if let Some(outer) = around.as_ref().and_then(|around| around.strip_suffix(qualifiers.as_slice()))
            {
                census.definitions.push(Definition::new(range.start, what, outer));
            }
            return None;
        }
        self.brings_in.then_some(Occurrence { range, place: Place::Bare })
    }

    fn occurrence(&self, first: usize, last: usize) -> Occurrence {
        let mut range = self.lexed.all[first].range.start..self.lexed.all[last].range.end;
        let whole = range.clone();
        let qualifier = self.qualifier(first);
        if let Qualifier::Global(colons) = qualifier {
            range.start = self.lexed.all[colons].range.start;
        }
        let place = match self.directive_place(last) {
            Some(place) => place,
            None if self.is_pasted(first, last) => Place::Pasted,
            None => self.place(first, last, &qualifier),
        };
        let split = |byte: &u8| !(is_word(*byte) || matches!(byte, b':' | b' ' | b'\t'));
        match place {
            Place::Code | Place::MacroBody(_) if self.lexed.bytes[range.clone()].iter().any(split) => {
                Occurrence { range: whole, place: Place::Split }
            }
            Place::Code | Place::MacroBody(_) => Occurrence { range, place },
            _ => Occurrence { range: whole, place },
        }
    }

    fn place(&self, first: usize, last: usize, qualifier: &Qualifier) -> Place {
        let scope = self.scope(last);
        let start = match qualifier {
            Qualifier::Global(colons) => *colons,
            Qualifier::Other => return self.of_other_scope(first, last),
            Qualifier::None => first,
        };
        match (scope.text_before(first), scope.declared(start, last)) {
            (b"." | b"->", _) => Place::Member,
            (_, Some(Declared::Own(what))) => Place::Definition(what),
            (_, Some(Declared::Imported)) => Place::Imported,
            (_, None) => match self.macro_name(last) {
                Some(name) => Place::MacroBody(name),
                None => Place::Code,
            },
        }
    }

    /// `using other::AT_CHECK;` gives the name a meaning; `other::AT_CHECK` alone is another name.
    fn of_other_scope(&self, first: usize, last: usize) -> Place {
        let scope = self.scope(last);
        let mut at = scope.before(first);
        while let Some(index) = at.filter(|index| {
            self.lexed.text(*index) == b"::"
                || (self.lexed.kind(*index) == Some(Kind::Word) && !is_statement(self.lexed.text(*index)))
        }) {
            at = scope.before(index);
        }
        let imports =
            at.is_some_and(|index| self.lexed.text(index) == b"using") && scope.text_after(last) == b";";
        if imports { Place::Definition("using-declaration") } else { Place::Qualified }
    }

    /// A `::` before a name begins it, unless a word or a template stands right before.
    fn qualifier(&self, first: usize) -> Qualifier {
        let scope = self.scope(first);
        let Some(colons) = scope.before(first).filter(|index| self.lexed.text(*index) == b"::") else {
            return Qualifier::None;
        };
        let Some(before) = scope.before(colons) else { return Qualifier::Global(colons) };
        let text = self.lexed.text(before);
        let qualifies = match self.lexed.kind(before) {
            Some(Kind::Word) => !is_statement(text) && !is_specifier(text),
            _ => matches!(text, b">" | b")"),
        };
        if qualifies { Qualifier::Other } else { Qualifier::Global(colons) }
    }

    fn is_pasted(&self, first: usize, last: usize) -> bool {
        let scope = self.scope(last);
        scope.text_before(first) == b"##" || scope.text_after(last) == b"##"
    }

    /// What the directive around a token makes of it; none in code and in the body of a macro.
    fn directive_place(&self, index: usize) -> Option<Place> {
        let directive = self.lexed.all[index].directive?;
        match self.lexed.keyword(directive) {
            b"define" => self.define_place(index, directive),
            b"if" | b"ifdef" | b"ifndef" | b"elif" | b"elifdef" | b"elifndef" => Some(Place::Condition),
            _ => Some(Place::Directive),
        }
    }

    fn define_place(&self, index: usize, directive: usize) -> Option<Place> {
        let tokens = self.lexed.of_directive(directive);
        let body = self.body_start(&tokens);
        let is_parameter = |at: &usize| self.lexed.text(*at) == self.lexed.text(index);
        match tokens.get(2) {
            Some(name) if *name == index => Some(Place::Definition("macro")),
            _ if index < body || tokens.iter().skip(3).filter(|at| **at < body).any(is_parameter) => {
                Some(Place::Parameter)
            }
            _ => None,
        }
    }

    /// The index of the token at which the body of a macro begins, given the tokens of its definition.
    fn body_start(&self, tokens: &[usize]) -> usize {
        let end = tokens.last().map_or(0, |last| last + 1);
        let (Some(name), Some(next)) = (tokens.get(2), tokens.get(3)) else { return end };
        let adjacent = self.lexed.all[*name].range.end == self.lexed.all[*next].range.start;
        if !(adjacent && self.lexed.text(*next) == b"(") {
            return *next;
        }
        let close = tokens.iter().position(|index| self.lexed.text(*index) == b")");
        close.and_then(|close| tokens.get(close + 1)).copied().unwrap_or(end)
    }

    fn macro_name(&self, index: usize) -> Option<String> {
        let tokens = self.lexed.of_directive(self.lexed.all[index].directive?);
        tokens.get(2).map(|name| String::from_utf8_lossy(self.lexed.text(*name)).into_owned())
    }

    fn scope(&self, index: usize) -> Scope<'_> {
        let directive = self.lexed.all[index].directive;
        let from = directive.map_or(0, |directive| self.body_start(&self.lexed.of_directive(directive)));
        Scope { lexed: self.lexed, from }
    }

    /// Where the name stands in the text of a comment or a literal.
    fn within(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let text = &self.lexed.bytes[range.clone()];
        let first = self.name.parts.first().map_or("", String::as_str);
        let starts =
            memchr::memmem::find_iter(text, first.as_bytes()).filter(|at| !starts_within_word(text, *at));
        let ends = starts.filter_map(|at| Some(range.start + at..range.start + self.end_of(text, at)?));
        ends.collect()
    }

    fn end_of(&self, text: &[u8], start: usize) -> Option<usize> {
        let end = self.name.parts.iter().enumerate().try_fold(start, |at, (index, part)| {
            let at = if index == 0 { at } else { after_colons(text, at)? };
            text[at..].starts_with(part.as_bytes()).then_some(at + part.len())
        })?;
        let goes_on = text.get(end).is_some_and(|byte| is_word(*byte));
        (!goes_on).then_some(end)
    }
}

fn literal_place(literal: &[u8]) -> Place {
    let quote = literal.iter().position(|byte| matches!(byte, b'"' | b'\'')).unwrap_or_default();
    match literal.get(quote) {
        Some(b'\'') => Place::Character,
        _ if literal[..quote].ends_with(b"R") => Place::RawString,
        _ => Place::String,
    }
}

fn starts_within_word(text: &[u8], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| is_word(text[before]))
}

/// Behind `::` and the blanks around it.
fn after_colons(text: &[u8], at: usize) -> Option<usize> {
    let blanks = |at: usize| at + text[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let colons = blanks(at);
    text[colons..].starts_with(b"::").then(|| blanks(colons + 2))
}

#[cfg(test)]
mod tests;
