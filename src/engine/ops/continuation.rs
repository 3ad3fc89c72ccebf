//! Lines that a `\\` continues: it stays in its column.

use std::collections::BTreeMap;

use crate::engine::edit::{Edit, Edits};
use crate::engine::syntax::style;

/// Edits of the blanks before the `\` of edited lines, which keep it in its column where that is aligned.
pub fn kept_columns(edits: &Edits, bytes: &[u8]) -> Edits {
    let mut growth: BTreeMap<usize, isize> = BTreeMap::new();
    for edit in edits.iter() {
        let end = style::line_end(bytes, edit.range.end);
        *growth.entry(end).or_default() += edit.text.len() as isize - edit.range.len() as isize;
    }
    let mut kept = Edits::new();
    for (end, growth) in growth {
        let line = bytes[..end].trim_ascii_end();
        let Some(code) = line.strip_suffix(b"\\") else { continue };
        let blanks = code.len() - code.trim_ascii_end().len();
        let wanted = blanks.saturating_add_signed(-growth).max(1);
        if blanks > 1 && code.ends_with(b"  ") && wanted != blanks {
            let range = code.len() - blanks..code.len();
            // The ranges are the ends of different lines.
            let _ = kept.insert(Edit { range, text: vec![b' '; wanted] });
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `old` becomes `new`, wherever it stands.
    fn replaced(text: &str, old: &str, new: &str) -> String {
        let mut edits = Edits::new();
        for (at, _) in text.match_indices(old) {
            edits.insert(Edit { range: at..at + old.len(), text: new.into() }).expect("no overlap");
        }
        edits.merge(kept_columns(&edits, text.as_bytes())).expect("no overlap");
        String::from_utf8(edits.apply(text.as_bytes())).expect("utf-8")
    }

    #[test]
    fn the_backslash_of_a_macro_stays_in_its_column() {
        let renamed = |text: &str| replaced(text, "AT_CHECK", "TORCH_CHECK");
        let narrow = "#define A(x)       \\\n    AT_CHECK(x);   \\\n    AT_CHECK(y); \\\n    f(x)\n";
        let wanted = "#define A(x)       \\\n    TORCH_CHECK(x); \\\n    TORCH_CHECK(y); \\\n    f(x)\n";
        assert_eq!(renamed(narrow), wanted);
        let wide = "#define A(x)           \\\n    AT_CHECK(x);       \\\n    f(x)\n";
        assert_eq!(renamed(wide), wide.replace("AT_CHECK(x);   ", "TORCH_CHECK(x);"));
        let crlf = wide.replace('\n', "\r\n");
        assert_eq!(renamed(&crlf), crlf.replace("AT_CHECK(x);   ", "TORCH_CHECK(x);"));
        assert_eq!(replaced(wide, "AT_CHECK", "g"), wide.replace("AT_CHECK(x);", "g(x);       "));
    }
}
