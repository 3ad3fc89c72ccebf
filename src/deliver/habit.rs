//! The habit of an upstream's log: how the subjects of its commits are written.

use std::collections::BTreeMap;

/// The kinds of change that conventional commits name.
const KINDS: [&str; 10] =
    ["build: ", "chore: ", "ci: ", "docs: ", "feat: ", "fix: ", "perf: ", "refactor: ", "style: ", "test: "];

/// Fewer subjects than this are no habit.
const ENOUGH: usize = 5;

/// How subjects are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Habit {
    /// What stands before each: `[Build] `, `build: `, or nothing.
    pub prefix: String,
    /// Whether the first word begins with a small letter.
    pub small: bool,
}

impl Habit {
    /// The habit of most of these subjects; without a majority, a plain sentence.
    pub fn of(subjects: &[String]) -> Self {
        if subjects.len() < ENOUGH {
            return Self::default();
        }
        let split: Vec<(&str, &str)> = subjects.iter().map(|subject| split(subject)).collect();
        let is_most = |count: usize| 2 * count > subjects.len();
        let counts = counts(split.iter().map(|(prefix, _)| *prefix));
        let tag = counts.iter().find(|(prefix, count)| prefix.starts_with('[') && is_most(**count));
        let kinds: BTreeMap<&str, usize> = counts
            .iter()
            .filter(|(prefix, _)| prefix.ends_with(": "))
            .map(|(kind, count)| (*kind, *count))
            .collect();
        let prefix = match tag {
            Some((tag, _)) => tag,
            None if is_most(kinds.values().sum()) && kinds.contains_key("build: ") => "build: ",
            None if is_most(kinds.values().sum()) => most(&kinds),
            None => "",
        };
        let same: Vec<&str> =
            split.iter().filter(|(other, _)| *other == prefix).map(|(_, rest)| *rest).collect();
        let small = same.iter().filter(|rest| rest.starts_with(char::is_lowercase)).count();
        Self { prefix: prefix.to_string(), small: 2 * small > same.len() }
    }

    /// A title as a subject of this log.
    pub fn subject(&self, title: &str) -> String {
        let mut letters = title.chars();
        let first = letters.next();
        let is_word = letters.clone().next().is_some_and(char::is_lowercase);
        match first.filter(|_| self.small && is_word) {
            Some(first) => format!("{}{}{}", self.prefix, first.to_lowercase(), letters.as_str()),
            None => format!("{}{title}", self.prefix),
        }
    }
}

/// What stands before a subject, in its plain form (`fix(ci)!: ` is `fix: `), and the rest.
fn split(subject: &str) -> (&str, &str) {
    if let Some((tag, rest)) = subject.strip_prefix('[').and_then(|inner| inner.split_once("] ")) {
        return (&subject[..tag.len() + 3], rest);
    }
    let Some((head, rest)) = subject.split_once(": ") else { return ("", subject) };
    let kind = head.split(['(', '!']).next().unwrap_or(head);
    match KINDS.iter().find(|known| known.strip_suffix(": ") == Some(kind)) {
        Some(known) => (known, rest),
        None => ("", subject),
    }
}

fn counts<'a>(prefixes: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    prefixes.for_each(|prefix| *counts.entry(prefix).or_insert(0) += 1);
    counts
}

fn most<'a>(counts: &BTreeMap<&'a str, usize>) -> &'a str {
    counts.iter().max_by_key(|(_, count)| **count).map_or("", |(prefix, _)| prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(log: &[&str], title: &str) -> String {
        let log: Vec<String> = log.iter().map(|subject| subject.to_string()).collect();
        Habit::of(&log).subject(title)
    }

    const PLAIN: [&str; 5] =
        ["Add triton", "[CI] Drop python", "Don't compile for sm_70", "ci: fix", "Bump to v2"];

    #[test]
    fn a_title_is_written_as_most_subjects_are() {
        let title = "Compile for more GPU architectures";
        assert_eq!(subject(&PLAIN, title), title);
        let tags = ["[Build] Use C++17", "[Build] Drop sm_53", "[CI] x", "[Build] Add sm_90", "Bump to v2"];
        assert_eq!(subject(&tags, title), "[Build] Compile for more GPU architectures");
        let kinds = ["fix(ci): use a", "build: add b", "feat!: c", "fix: d", "Bump to v2"];
        assert_eq!(subject(&kinds, title), "build: compile for more GPU architectures");
        let kinds = ["fix(ci): Use a", "ci: Add b", "feat: C", "fix: D", "Bump to v2"];
        assert_eq!(subject(&kinds, title), "fix: Compile for more GPU architectures");
    }

    #[test]
    fn small_letters_are_a_habit_too() {
        let log = ["fixed setup", "add b200 support", "update readme", "First release", "minimal kernel"];
        assert_eq!(subject(&log, "Use no CUB names"), "use no CUB names");
        assert_eq!(subject(&log, "CUDA 13"), "CUDA 13", "no word is torn");
    }

    #[test]
    fn few_subjects_and_many_tags_are_no_habit() {
        assert_eq!(subject(&["[CI] a", "[CI] b"], "Title"), "Title");
        let many = ["[AMD] a", "[ROCm] b", "[NVIDIA] c", "[CI] d", "[BE] e"];
        assert_eq!(subject(&many, "Title"), "Title");
    }
}
