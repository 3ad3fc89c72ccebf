//! Text as commit messages hold it.

/// The widest line of a commit message.
const WIDTH: usize = 72;

/// Paragraphs, each wrapped by itself; indented lines and lists stay as they are.
pub fn wrapped(text: &str) -> String {
    filled(text, WIDTH)
}

/// Paragraphs, each on a line of its own; indented lines and lists stay as they are.
pub fn unwrapped(text: &str) -> String {
    filled(text, usize::MAX)
}

fn filled(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for typed in text.trim_end().lines() {
        let stands = typed.trim().is_empty() || typed.starts_with([' ', '\t', '-', '*']);
        if stands {
            end(&mut out, &mut line);
            push(&mut out, typed.trim_end());
            continue;
        }
        for word in typed.split_whitespace() {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
                end(&mut out, &mut line);
            }
            let gap = if line.is_empty() { "" } else { " " };
            line.push_str(&format!("{gap}{word}"));
        }
    }
    end(&mut out, &mut line);
    out
}

fn end(out: &mut String, line: &mut String) {
    if !line.is_empty() {
        push(out, line);
        line.clear();
    }
}

/// Adds a line. One that begins like a part of a mail, or like a comment in git's editor, would not be taken for text: a
/// blank before it keeps it one.
fn push(out: &mut String, line: &str) {
    let parts = ["---", "diff -", "Index: ", "From ", "From:", "Date:", "Subject:", "#"];
    if parts.iter().any(|part| line.starts_with(part)) {
        out.push(' ');
    }
    out.push_str(&format!("{line}\n"));
}

/// Lines, each behind four blanks.
pub fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}").trim_end().to_string() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_wrapped_and_lists_stay() {
        let text = format!("{}\nand more\n\n- a list\n    code\nend", "word ".repeat(20));
        let lines = wrapped(&text);
        assert!(lines.lines().all(|line| line.len() <= WIDTH), "{lines}");
        assert!(lines.ends_with("word word and more\n\n- a list\n    code\nend\n"), "{lines}");
    }

    #[test]
    fn no_line_begins_like_a_part_of_a_mail() {
        let text = format!("{} From v2.3.2 on", "x".repeat(70));
        assert_eq!(wrapped(&text).lines().nth(1), Some(" From v2.3.2 on"));
    }
}
