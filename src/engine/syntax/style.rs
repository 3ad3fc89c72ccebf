//! How a file is written: newlines, indentation and quotes of the neighbours.

use std::ops::Range;

/// The range of the whole lines that hold `range`: from the start of its first to the end of its last,
/// newline included.
pub fn whole_lines(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let start = line_start(bytes, range.start);
    let last = if range.end > range.start { range.end - 1 } else { range.end };
    start..line_end(bytes, last)
}

/// Where the line of an offset begins.
pub fn line_start(bytes: &[u8], offset: usize) -> usize {
    bytes[..offset].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1)
}

/// Where the line of an offset ends: behind its newline, or at the end of the file.
pub fn line_end(bytes: &[u8], offset: usize) -> usize {
    bytes[offset..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |newline| offset + newline + 1)
}

/// The blanks and tabs that the line of an offset begins with.
pub fn indent_at(bytes: &[u8], offset: usize) -> &[u8] {
    &bytes[after_bom(bytes, line_start(bytes, offset))..indent_end(bytes, offset)]
}

/// Where the text of the line of an offset begins, behind its blanks and tabs.
pub fn indent_end(bytes: &[u8], offset: usize) -> usize {
    let start = after_bom(bytes, line_start(bytes, offset));
    start + bytes[start..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

fn after_bom(bytes: &[u8], start: usize) -> usize {
    if start == 0 && bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { start }
}

/// The newline that the file uses, judged by its first.
pub fn newline(bytes: &[u8]) -> &'static str {
    match bytes.iter().position(|byte| *byte == b'\n') {
        Some(at) if at > 0 && bytes[at - 1] == b'\r' => "\r\n",
        _ => "\n",
    }
}

/// Whether a line holds nothing but white space.
pub fn is_blank(line: &[u8]) -> bool {
    line.iter().all(u8::is_ascii_whitespace)
}

/// The quote character that the string literals of a text use, where they use one only.
pub fn sole_quote(text: &str) -> Option<char> {
    let first = text.chars().find(|c| matches!(c, '"' | '\''))?;
    let other = if first == '"' { '\'' } else { '"' };
    (!text.contains(other)).then_some(first)
}

/// A text whose `"…"` literals use `quote` instead, unless one of them holds it.
pub fn requote(text: &str, quote: char) -> String {
    if quote == '"' || text.contains(quote) {
        text.to_string()
    } else {
        text.replace('"', &quote.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_even_without_a_final_newline() {
        let text = b"a\n  b\n\tc";
        assert_eq!(whole_lines(text, 4..5), 2..6);
        assert_eq!(whole_lines(text, 7..8), 6..8);
        assert_eq!(indent_at(text, 7), b"\t");
        assert_eq!(indent_at(b"\xef\xbb\xbf  x", 5), b"  ");
    }

    #[test]
    fn quotes_follow_the_neighbours() {
        assert_eq!(sole_quote("f('a', 'b')"), Some('\''));
        assert_eq!(sole_quote("f('a', \"b\")"), None);
        assert_eq!(requote("f(\"a\")", '\''), "f('a')");
    }
}
