//! The smallest edits that turn a match into its filled template: only the tokens that differ are touched.

use std::ops::Range;

use similar::DiffOp;

use crate::engine::edit::Edit;
use crate::engine::syntax::{Language, style};

struct Token {
    range: Range<usize>,
    /// What it is compared by: string literals by content and prefix, whatever their quotes.
    key: Vec<u8>,
}

/// The edits, in offsets of the file, that turn `range` of `bytes` into `new`.
///
/// Comments between the tokens count as white space and stay.
pub fn minimal_edits(language: Language, bytes: &[u8], range: Range<usize>, new: &str) -> Vec<Edit> {
    if new.trim().is_empty() {
        return vec![removal(bytes, range)];
    }
    let new = &with_prefixes(language, &bytes[range.clone()], new);
    if let Some(edit) = within_string(language, bytes, range.clone(), new) {
        return vec![edit];
    }
    let old_tokens = tokens(language, bytes, range.clone());
    let new_tokens = tokens(language, new.as_bytes(), 0..new.len());
    let keys = |tokens: &[Token]| tokens.iter().map(|token| token.key.clone()).collect::<Vec<_>>();
    let texts = Texts { bytes, range, old: &old_tokens, new, new_tokens: &new_tokens };
    let ops = similar::capture_diff_slices(similar::Algorithm::Myers, &keys(&old_tokens), &keys(&new_tokens));
    let previous = std::iter::once(None).chain(ops.iter().map(Some));
    ops.iter().zip(previous).filter_map(|(op, previous)| texts.edit(&texts.slid(*op, previous))).collect()
}

/// What differs between two string literals of Python, where the old one keeps its quotes: it may go over several lines.
fn within_string(language: Language, bytes: &[u8], range: Range<usize>, new: &str) -> Option<Edit> {
    let text = bytes.get(range.clone()).filter(|_| language == Language::Python)?;
    let (old, fresh) = (content(text)?, content(new.as_bytes())?);
    if !prefix(text).eq_ignore_ascii_case(prefix(new.as_bytes())) {
        return None;
    }
    let new = &new[fresh];
    // Two literals in a row end the first with its quotes.
    let quotes = &text[old.end..];
    if memchr::memmem::find(&text[old.clone()], quotes).is_some() {
        return None;
    }
    let at = range.start + old.start;
    let old = &text[old];
    let alike =
        |pairs: &mut dyn Iterator<Item = (&u8, &u8)>| pairs.take_while(|(one, other)| one == other).count();
    let before = alike(&mut old.iter().zip(new.as_bytes()));
    let after = alike(&mut old[before..].iter().rev().zip(new.as_bytes()[before..].iter().rev()));
    let text = &new.as_bytes()[before..new.len() - after];
    // Quotes of the template would end the literal.
    let is_plain = !text.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'\\' | b'\n'));
    (is_plain && before + after < old.len().max(new.len()))
        .then(|| Edit { range: at + before..at + old.len() - after, text: text.to_vec() })
}

/// The new text, in which a literal of Python without a prefix has that of the old literal that it stands for: a pattern
/// matches literals whatever their prefix, and `f"{x}"` without its `f` says something else. It stands for the one of the
/// same content, else, where there are as many as before, for the one in the same place.
fn with_prefixes(language: Language, old: &[u8], new: &str) -> String {
    let strings = |text: &[u8]| {
        let all = tokens(language, text, 0..text.len());
        all.into_iter().filter(|token| content(&text[token.range.clone()]).is_some()).collect::<Vec<_>>()
    };
    if language != Language::Python
        || strings(old).iter().all(|token| prefix(&old[token.range.clone()]).is_empty())
    {
        return new.to_string();
    }
    let (old_strings, new_strings) = (strings(old), strings(new.as_bytes()));
    let mut text = new.to_string();
    for (at, token) in new_strings.iter().enumerate().rev() {
        let same = |other: &&Token| token.key == other.key[prefix(&other.key).len()..];
        let beside = || old_strings.get(at).filter(|_| old_strings.len() == new_strings.len());
        if let Some(other) = old_strings.iter().find(same).or_else(beside)
            && prefix(&token.key).is_empty()
        {
            let prefix = prefix(&old[other.range.clone()]);
            text.insert_str(token.range.start, &String::from_utf8_lossy(prefix));
        }
    }
    text
}

/// The letters before the quotes of a literal.
fn prefix(text: &[u8]) -> &[u8] {
    &text[..text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count()]
}

/// What stands between the quotes of a literal.
fn content(text: &[u8]) -> Option<Range<usize>> {
    let prefix = prefix(text).len();
    let quote = *text.get(prefix).filter(|byte| matches!(byte, b'"' | b'\''))?;
    let length = if text[prefix..].starts_with(&[quote; 3]) && text.len() >= prefix + 6 { 3 } else { 1 };
    let range = prefix + length..text.len().checked_sub(length)?;
    (range.start <= range.end && text.ends_with(&vec![quote; length])).then_some(range)
}

/// What goes within a line takes the blanks on one side along; a `{` behind it goes to the line before.
fn removal(bytes: &[u8], range: Range<usize>) -> Edit {
    let blanks = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let before = bytes[..range.start].iter().rev().take_while(blanks).count();
    let after = bytes[range.end..].iter().take_while(blanks).count();
    let first = style::indent_end(bytes, range.start) == range.start;
    let range = match bytes.get(range.end + after) {
        Some(b'{') if first => bytes[..range.start].trim_ascii_end().len()..range.end,
        _ if first => range.start..range.end + after,
        _ => range.start - before..range.end,
    };
    Edit { range, text: Vec::new() }
}

struct Texts<'a> {
    bytes: &'a [u8],
    range: Range<usize>,
    old: &'a [Token],
    new: &'a str,
    new_tokens: &'a [Token],
}

impl Texts<'_> {
    /// Of two ways to insert a bracket before or after an equal one, the one that keeps it on the line of what it
    /// closes.
    fn slid(&self, op: DiffOp, previous: Option<&DiffOp>) -> DiffOp {
        let (DiffOp::Insert { old_index, new_index, new_len }, Some(DiffOp::Equal { len: 2.., .. })) =
            (op, previous)
        else {
            return op;
        };
        let same = self.new_tokens[new_index - 1].key == self.new_tokens[new_index + new_len - 1].key;
        let better = self.new_gap(new_index - 1).is_empty() && !self.old_gap(old_index - 1).is_empty();
        if same && better && self.old_gap(old_index).is_empty() {
            return DiffOp::Insert { old_index: old_index - 1, new_index: new_index - 1, new_len };
        }
        op
    }

    fn edit(&self, op: &DiffOp) -> Option<Edit> {
        let (old, new) = (op.old_range(), op.new_range());
        match op {
            DiffOp::Equal { .. } => None,
            DiffOp::Replace { .. } => Some(self.replacement(old, new)),
            DiffOp::Insert { .. } => Some(self.insertion(old.start, new)),
            DiffOp::Delete { .. } => Some(self.deletion(old, new.start)),
        }
    }

    fn new_text(&self, tokens: Range<usize>) -> &str {
        &self.new[self.new_tokens[tokens.start].range.start..self.new_tokens[tokens.end - 1].range.end]
    }

    /// The white space before a token of the new text.
    fn new_gap(&self, token: usize) -> &str {
        match (
            token.checked_sub(1).and_then(|before| self.new_tokens.get(before)),
            self.new_tokens.get(token),
        ) {
            (Some(before), Some(after)) => &self.new[before.range.end..after.range.start],
            _ => "",
        }
    }

    fn old_gap(&self, token: usize) -> &[u8] {
        match (token.checked_sub(1).and_then(|before| self.old.get(before)), self.old.get(token)) {
            (Some(before), Some(after)) => &self.bytes[before.range.end..after.range.start],
            _ => b"",
        }
    }

    /// The new white space stands only where the old text has none. Nothing stands before a new `.`, nor behind a new `(` or `!`.
    fn replacement(&self, old: Range<usize>, new: Range<usize>) -> Edit {
        let gap = |old_token, new_token| {
            if self.old_gap(old_token).is_empty() { self.new_gap(new_token) } else { "" }
        };
        let (before, after) = (gap(old.start, new.start), gap(old.end, new.end));
        let text = self.new_text(new);
        let bare =
            |token: usize| self.old_gap(token).iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let within = |token: usize, joins: bool| {
            if joins && bare(token) == self.old_gap(token).len() { bare(token) } else { 0 }
        };
        let start = self.old[old.start].range.start - within(old.start, text.starts_with(['.', ')']));
        let end = self.old[old.end - 1].range.end + within(old.end, text.ends_with(['.', '(', '!']));
        Edit { range: start..end, text: format!("{before}{text}{after}").into() }
    }

    /// What the new text writes without a gap, as a comma or a bracket, stays with the token before it.
    fn insertion(&self, at: usize, new: Range<usize>) -> Edit {
        let text = self.new_text(new.clone());
        let before = self.new_gap(new.start);
        let previous = at.checked_sub(1).and_then(|index| self.old.get(index));
        match (previous, self.old.get(at)) {
            (Some(previous), Some(_)) if before.is_empty() && !self.old_gap(at).is_empty() => {
                let end = previous.range.end;
                Edit { range: end..end, text: text.into() }
            }
            (_, Some(next)) => {
                let before = if self.old_gap(at).is_empty() { before } else { "" };
                let text = format!("{before}{text}{}", self.new_gap(new.end));
                Edit { range: next.range.start..next.range.start, text: text.into() }
            }
            (previous, None) => {
                let end = previous.map_or(self.range.start, |token| token.range.end);
                Edit { range: end..end, text: format!("{before}{text}").into() }
            }
        }
    }

    fn deletion(&self, old: Range<usize>, new_next: usize) -> Edit {
        let start = old.start.checked_sub(1).map_or(self.range.start, |before| self.old[before].range.end);
        let end = self.old.get(old.end).map_or(self.range.end, |after| after.range.start);
        let blank = |gap: &[u8]| gap.iter().all(u8::is_ascii_whitespace);
        let broken = |gap: &[u8]| gap.contains(&b'\n') || !blank(gap);
        let (before, after) = (self.old_gap(old.start), self.old_gap(old.end));
        let at_an_end = old.start == 0 || old.end == self.old.len();
        let kept = match () {
            () if at_an_end && blank(before) && blank(after) => b"",
            () if broken(before) => before,
            () if broken(after) => after,
            () => self.new_gap(new_next).as_bytes(),
        };
        let kept = if old.start == 0 { kept.trim_ascii_start() } else { kept };
        Edit { range: start..end, text: kept.to_vec() }
    }
}

fn tokens(language: Language, bytes: &[u8], range: Range<usize>) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let text = &bytes[at..range.end];
        let between = comment_length(language, text).or_else(|| continuation_length(text));
        let length = between.unwrap_or_else(|| token_length(language, text));
        if between.is_none() && !bytes[at].is_ascii_whitespace() {
            let range = at..at + length;
            tokens.push(Token { key: key(&bytes[range.clone()]), range });
        }
        at += length;
    }
    tokens
}

/// Strings become `prefix"content`, so that their quotes do not count.
fn key(token: &[u8]) -> Vec<u8> {
    if let Some(content) = content(token).filter(|content| content.start > prefix(token).len() + 1) {
        return [prefix(token), b"\"", &token[content]].concat();
    }
    let mut key = token.to_vec();
    if let (Some(start), Some(last)) = (key.iter().position(|byte| is_quote(*byte)), key.last().copied())
        && is_quote(last)
        && key.len() > start + 1
    {
        key[start] = b'"';
        key.pop();
    }
    key
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'')
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The length of the token or of the one blank at the start of a text that is not empty.
fn token_length(language: Language, text: &[u8]) -> usize {
    let word = text.iter().take_while(|byte| is_word(**byte)).count();
    let long = [b"\"\"\"", b"'''"].into_iter().filter(|_| language == Language::Python && word <= 2);
    let mut ends = long.filter_map(|quotes| text[word..].strip_prefix(quotes).zip(Some(quotes)));
    if let Some(end) = ends.find_map(|(behind, quotes)| memchr::memmem::find(behind, quotes)) {
        return word + end + 6;
    }
    match text.get(word) {
        Some(byte) if is_quote(*byte) && word <= 2 => word + string_length(&text[word..]),
        _ => word.max(1),
    }
}

/// The length of the comment that a text begins with.
fn comment_length(language: Language, text: &[u8]) -> Option<usize> {
    if text.starts_with(language.line_comment().as_bytes()) {
        return Some(text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len()));
    }
    (language == Language::Cpp && text.starts_with(b"/*"))
        .then(|| memchr::memmem::find(text, b"*/").map_or(text.len(), |end| end + 2))
}

/// The length of the `\` and the end of the line that a text begins with.
fn continuation_length(text: &[u8]) -> Option<usize> {
    [&b"\\\n"[..], b"\\\r\n"].into_iter().find(|end| text.starts_with(end)).map(<[u8]>::len)
}

/// From the opening quote to the closing one; one byte where there is none.
fn string_length(text: &[u8]) -> usize {
    let quote = text[0];
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::edit::Edits;

    fn turned(old: &str, new: &str) -> (String, usize) {
        let mut edits = Edits::new();
        for edit in minimal_edits(Language::Cpp, old.as_bytes(), 0..old.len(), new) {
            edits.insert(edit).expect("no overlap");
        }
        (String::from_utf8(edits.apply(old.as_bytes())).expect("utf-8"), edits.len())
    }

    #[test]
    fn only_the_tokens_that_differ_are_touched() {
        let old = "f(a,\n  // why\n  x.type(),  b)";
        assert_eq!(turned(old, "f(a, x.scalar_type(), b)").0, old.replace("type", "scalar_type"));
        assert_eq!(turned("f( 'a' )", "f(\"a\", \"b\")"), ("f( 'a', \"b\" )".into(), 1));
        let continued = "f(   \\\n  x.type(), \\\r\n  b)";
        assert_eq!(turned(continued, "f(x.scalar_type(), b)").0, continued.replace("type", "scalar_type"));
        assert_eq!(turned("f(a, \\\n  b)", "f(a)").0, "f(a)");
    }

    #[test]
    fn literals_of_python_keep_their_prefix() {
        let turned = |old: &str, new: &str| {
            let mut all = Edits::new();
            let edits = minimal_edits(Language::Python, old.as_bytes(), 0..old.len(), new);
            edits.into_iter().for_each(|edit| all.insert(edit).expect("no overlap"));
            String::from_utf8(all.apply(old.as_bytes())).expect("utf-8")
        };
        for literal in ["f'-O2 {x} 14'", "F\"\"\"-O2 {x}\n14\"\"\"", "b'-O2 14'", "rf\"\\d {x} 14\"", "u'14'"]
        {
            let inner = literal.trim_start_matches(char::is_alphabetic).trim_matches(['"', '\'']);
            let new = format!("\"{}\"", inner.replace("14", "17"));
            assert_eq!(turned(literal, &new), literal.replace("14", "17"));
        }
        assert_eq!(turned("f'{a}', b'14'", "\"{a}\", \"17\""), "f'{a}', b\"17\"");
        assert_eq!(turned("f(f'{a}')", "g(\"x\", \"{a}\")"), "g(\"x\", f'{a}')");
        assert_eq!(turned("g('{a}')", "g(f\"{a}\")"), "g(f\"{a}\")");
        assert_eq!(turned("'a', f'{b}'", "\"a\""), "'a'");
    }

    #[test]
    fn insertions_and_deletions_keep_the_space_around() {
        assert_eq!(turned("x + y", "x + z + y").0, "x + z + y");
        assert_eq!(turned("\"a\"", "\"b\" if c else \"a\"").0, "\"b\" if c else \"a\"");
        assert_eq!(turned("f(a, b, c)", "f(a, c)").0, "f(a, c)");
        assert_eq!(turned("f(a\n  + b\n)", "f(a + (c or b))").0, "f(a\n  + (c or b)\n)");
        assert_eq!(turned("T *s = g();", "").0, "");
        assert_eq!(turned("a.t() == b.t()", "a.o().same(b.o())").0, "a.o().same(b.o())");
        assert_eq!(turned("f( 'a' )", "f(\"b\")").0, "f( \"b\" )");
        assert_eq!(turned("a and not b", "a and !b").0, "a and !b");
    }

    #[test]
    fn what_goes_takes_the_blanks_on_one_side_along() {
        let gone = |text: &str, what: &str| {
            let start = text.find(what).expect(what);
            let edits = minimal_edits(Language::Cpp, text.as_bytes(), start..start + what.len(), "");
            let mut all = Edits::new();
            edits.into_iter().for_each(|edit| all.insert(edit).expect("one edit"));
            String::from_utf8(all.apply(text.as_bytes())).expect("utf-8")
        };
        assert_eq!(gone("struct F : public B {", ": public B"), "struct F {");
        assert_eq!(gone("struct F : public B\n{", ": public B"), "struct F\n{");
        assert_eq!(gone("struct F\n  : public B {", ": public B"), "struct F {");
        assert_eq!(gone("f(\n  a, b)", "a,"), "f(\n  b)");
    }

    #[test]
    fn a_line_that_goes_at_an_end_of_the_match_leaves_no_blank_line() {
        assert_eq!(turned("t = A;\n    return t(x);", "return B(x);").0, "return B(x);");
        assert_eq!(turned("f();\n    g();", "f();").0, "f();");
        assert_eq!(turned("f();  // why\n  g();", "g();").0, "// why\n  g();");
    }

    proptest::proptest! {
        #[test]
        fn the_new_text_comes_out_but_for_white_space(
            old in "[ab(), \"\n]{0,24}", new in "[ab(), \"\n]{0,24}"
        ) {
            let squeezed = |text: &str| {
                tokens(Language::Cpp, text.as_bytes(), 0..text.len()).into_iter().map(|token| token.key).collect::<Vec<_>>()
            };
            let is_open = |text: &str| !text.matches('"').count().is_multiple_of(2);
            let closed = |text: String| if is_open(&text) { text + "\"" } else { text };
            let (old, new) = (closed(old), closed(new));
            proptest::prop_assert_eq!(squeezed(&turned(&old, &new).0), squeezed(&new));
        }
    }
}
