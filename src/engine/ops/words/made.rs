//! Functions of make that make words of each word of a list: `$(foreach sm,60 80,-arch=sm_$(sm))`,
//! `$(addprefix -arch=sm_,$(ARCHS))`, `$(ARCHS:%=-arch=sm_%)`.

use std::ops::Range;

use crate::engine::syntax::words::{Word, inside};

/// The variable of functions that name none: a pattern writes it so.
pub const STEM: &str = "%";

/// A call of such a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// What stands for the word in what is made.
    pub variable: String,
    /// The words of the list.
    pub list: Vec<Word>,
    /// What is made of each.
    pub body: Vec<Word>,
    /// All of the call.
    pub range: Range<usize>,
}

/// The calls in a word; those within the quotes of a word, and those within what is made, are left out.
pub fn made(bytes: &[u8], word: &Word) -> Vec<Made> {
    let mut found = Vec::new();
    let mut at = word.range.start;
    while at < word.range.end {
        if let Some(quoted) = word.quoted.iter().find(|quoted| quoted.contains(&at)) {
            at = quoted.end;
            continue;
        }
        let call = closing(bytes, at..word.range.end).and_then(|end| Made::read(bytes, at..end + 1));
        at = call.as_ref().map_or(at + 1, |call| call.range.end);
        found.extend(call);
    }
    found
}

/// The text of a call in a word that nothing ends; make stops there.
pub fn unclosed(bytes: &[u8], word: &Word) -> Option<String> {
    let mut places = word.range.clone().filter(|at| matches!(bytes.get(*at..at + 2), Some(b"$(" | b"${")));
    let open = places.find(|at| closing(bytes, *at..word.range.end).is_none())?;
    Some(String::from_utf8_lossy(&bytes[open..word.range.end]).into_owned())
}

/// Where a `$(…)` or `${…}` ends that begins here.
fn closing(bytes: &[u8], range: Range<usize>) -> Option<usize> {
    let close = match bytes.get(range.clone())? {
        [b'$', b'(', ..] => b')',
        [b'$', b'{', ..] => b'}',
        _ => return None,
    };
    let open = bytes[range.start + 1];
    let mut depth = 0;
    (range.start + 1..range.end).find(|at| {
        depth += usize::from(bytes[*at] == open);
        depth -= usize::from(bytes[*at] == close);
        depth == 0
    })
}

/// The parts of a text that commas stand between, those within parentheses left out; no more than these.
fn arguments(bytes: &[u8], range: Range<usize>, most: usize) -> Vec<Range<usize>> {
    let (mut arguments, mut start, mut depth) = (Vec::new(), range.start, 0usize);
    for at in range.clone() {
        match bytes[at] {
            b'(' | b'{' => depth += 1,
            b')' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 && arguments.len() + 1 < most => {
                arguments.push(start..at);
                start = at + 1;
            }
            _ => {}
        }
    }
    arguments.push(start..range.end);
    arguments
}

/// The words of a list, seen through functions that leave them what they are: `$(sort …)`, `$(strip …)`, and
/// `$(subst …)` that writes blanks between them.
fn listed(bytes: &[u8], range: Range<usize>) -> Vec<Word> {
    let words = inside(bytes, range);
    let [only] = words.as_slice() else { return words };
    let Some(end) = closing(bytes, only.range.clone()).filter(|end| end + 1 == only.range.end) else {
        return words;
    };
    let inner = only.range.start + 2..end;
    let text = String::from_utf8_lossy(&bytes[inner.clone()]).into_owned();
    let name = text.split(char::is_whitespace).next().unwrap_or_default();
    let rest = inner.start + name.len()..inner.end;
    match (name, arguments(bytes, rest.clone(), 3).as_slice()) {
        ("sort" | "strip", _) => listed(bytes, rest),
        ("subst", [_, to, list]) if is_blank(&bytes[to.clone()]) => listed(bytes, list.clone()),
        _ => words,
    }
}

fn is_blank(text: &[u8]) -> bool {
    matches!(text.trim_ascii(), b"" | b"$(space)" | b"$(SPACE)" | b"${space}")
}

impl Made {
    fn read(bytes: &[u8], range: Range<usize>) -> Option<Self> {
        let inner = range.start + 2..range.end - 1;
        let text = std::str::from_utf8(&bytes[inner.clone()]).ok()?;
        let name = text.split([' ', '\t', ',']).next().unwrap_or_default();
        let rest = inner.start + name.len()..inner.end;
        let text_of =
            |range: &Range<usize>| String::from_utf8_lossy(&bytes[range.clone()]).trim().to_string();
        match (name, arguments(bytes, rest.clone(), 3).as_slice()) {
            ("foreach", [variable, list, body]) => {
                let (list, body) = (listed(bytes, list.clone()), inside(bytes, body.clone()));
                Some(Self { variable: text_of(variable), list, body, range })
            }
            ("patsubst", [pattern, body, list]) if text_of(pattern) == STEM => {
                let (list, body) = (listed(bytes, list.clone()), inside(bytes, body.clone()));
                Some(Self { variable: STEM.to_string(), list, body, range })
            }
            ("addprefix", _) => {
                let [prefix, list] = arguments(bytes, rest, 2).try_into().ok()?;
                let mut body = inside(bytes, prefix);
                body.last_mut()?.text.push_str(STEM);
                Some(Self { variable: STEM.to_string(), list: listed(bytes, list), body, range })
            }
            _ => Self::substitution(bytes, inner, range),
        }
    }

    /// `$(ARCHS:%=-arch=sm_%)`
    fn substitution(bytes: &[u8], inner: Range<usize>, range: Range<usize>) -> Option<Self> {
        let text = std::str::from_utf8(&bytes[inner.clone()]).ok()?;
        let (name, _) = text.split_once(":%=")?;
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let place = inner.start..inner.start + name.len();
        let list = Word { range: place.clone(), text: format!("$({name})"), quoted: Vec::new() };
        let body = inside(bytes, place.end + ":%=".len()..inner.end);
        is_name.then(|| Self { variable: STEM.to_string(), list: vec![list], body, range })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        let word = Word { range: 0..text.len(), text: text.to_string(), quoted: Vec::new() };
        let texts = |words: &[Word]| words.iter().map(|word| word.text.clone()).collect::<Vec<_>>().join(" ");
        let told = |one: Made| format!("{}|{}|{}", one.variable, texts(&one.list), texts(&one.body));
        made(text.as_bytes(), &word).into_iter().map(told).collect()
    }

    #[test]
    fn what_nothing_ends_is_seen() {
        let unclosed = |text: &str| {
            unclosed(
                text.as_bytes(),
                &Word { range: 0..text.len(), text: text.to_string(), quoted: Vec::new() },
            )
        };
        assert_eq!(unclosed("x$(a)${b$(c)}$((d))"), None);
        assert_eq!(unclosed("x$(a)$(b $(c)").as_deref(), Some("$(b $(c)"));
        assert_eq!(unclosed("${a)").as_deref(), Some("${a)"));
    }

    #[test]
    fn calls_are_read_with_their_lists() {
        assert_eq!(told("$(foreach sm, 60 80,-a=sm_$(sm),x)"), ["sm|60 80|-a=sm_$(sm),x"]);
        assert_eq!(
            told("x${foreach a,$(sort $(B)),$(a)}$(eval $(foreach c,1,$(c)))"),
            ["a|$(B)|$(a)", "c|1|$(c)"]
        );
        assert_eq!(told("$(patsubst %,-arch=sm_%,$(subst ;, ,$(A)))"), ["%|$(A)|-arch=sm_%"]);
        assert_eq!(told("$(addprefix -arch=sm_,60 80)$(A:%=sm_%)"), ["%|60 80|-arch=sm_%", "%|$(A)|sm_%"]);
        assert!(
            told("$(foreach a,$(b)").is_empty()
                && told("$(patsubst a%,%,$(A))$(A:.c=.o)$(addprefix)").is_empty()
        );
    }
}
