//! A recorded diff applied again, to the very bytes that it was made of: no offset, no fuzz, no other place.

/// The bytes of a file after its part of a diff; none where the diff does not fit them exactly. A diff that does not
/// speak of the file leaves it as it is.
pub fn apply(before: &[u8], diff: &[u8], path: &str) -> Option<Vec<u8>> {
    let old: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let (mut after, mut at) = (Vec::new(), 0);
    let mut lines = of_file(diff, path).into_iter().peekable();
    while let Some(head) = lines.next() {
        let start = old_start(head)?;
        after.extend(old.get(at..start)?.concat());
        at = start;
        while let Some(line) = lines.next_if(|line| !line.starts_with(b"@@ ")) {
            let is_cut = lines.next_if(|next| next.starts_with(b"\\")).is_some();
            let (sign, text) = line.split_first()?;
            let text = if is_cut { text.strip_suffix(b"\n")? } else { text };
            if *sign != b'+' {
                (*old.get(at)? == text).then_some(())?;
                at += 1;
            }
            if *sign != b'-' {
                after.extend_from_slice(text);
            }
        }
    }
    after.extend(old.get(at..)?.concat());
    Some(after)
}

/// The hunks of one file, line by line.
fn of_file<'a>(diff: &'a [u8], path: &str) -> Vec<&'a [u8]> {
    let name = format!("+++ b/{path}\n");
    let lines = diff.split_inclusive(|byte| *byte == b'\n');
    let mut lines = lines.skip_while(|line| *line != name.as_bytes());
    lines.next();
    lines
        .take_while(|line| [&b"@@ "[..], b" ", b"+", b"-", b"\\"].iter().any(|start| line.starts_with(start)))
        .collect()
}

/// How many lines of the old file come before a hunk: of `@@ -12,3 +12,4 @@` eleven, of `@@ -12,0 +13,2 @@` twelve.
fn old_start(head: &[u8]) -> Option<usize> {
    let head = std::str::from_utf8(head).ok()?;
    let old = head.strip_prefix("@@ -")?.split(' ').next()?;
    let (start, count) = old.split_once(',').unwrap_or((old, "1"));
    let start: usize = start.parse().ok()?;
    if count == "0" { Some(start) } else { start.checked_sub(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plan::preview::FileDiff;

    fn check(before: &str, after: &str) {
        let file = |path: &str, before: &str, after: &str| FileDiff {
            path: path.into(),
            before: before.into(),
            after: after.into(),
        };
        let others = [file("a.py.x", "1\n", "2\n").unified(), file("b", "1\n", "2").unified()];
        let diff = [
            b"Title: +++ b/a.py\n\n".to_vec(),
            others[0].clone(),
            file("a.py", before, after).unified(),
            others[1].clone(),
        ];
        let applied = apply(before.as_bytes(), &diff.concat(), "a.py");
        assert_eq!(applied.as_deref(), Some(after.as_bytes()), "{}", String::from_utf8_lossy(&diff.concat()));
    }

    #[test]
    fn a_diff_gives_back_what_it_was_made_of() {
        let long: String = (0..40).map(|number| format!("{number}\n")).collect();
        check(&long, &long.replace("3\n", "x\ny\n").replace("30\n", ""));
        check(&long, &format!("first\n{long}last"));
        check("a\r\nb", "a\r\nc");
        check("a\n", "a");
        check("a", "a\n-- b\n");
        check("", "a\n");
        check("a\n", "");
        check("same\n", "same\n");
    }

    #[test]
    fn a_diff_of_other_bytes_is_refused() {
        let file = FileDiff { path: "a".into(), before: b"1\n2\n3\n".to_vec(), after: b"1\nx\n3\n".to_vec() };
        let diff = file.unified();
        assert_eq!(apply(b"0\n1\n2\n3\n", &diff, "a"), None, "moved by a line");
        assert_eq!(apply(b"1\n2\n", &diff, "a"), None, "cut off");
        assert_eq!(apply(b"1\n2\n3", &diff, "a"), None, "without its last newline");
        assert_eq!(apply(b"1\n2\n3\n", &diff, "b").as_deref(), Some(&b"1\n2\n3\n"[..]));
    }
}
