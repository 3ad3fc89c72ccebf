//! What compilers call errors.

use std::sync::LazyLock;

use regex::Regex;

use super::units::below;

/// More errors than these are not kept of one start.
const KEPT: usize = 40;

/// One error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The file: below the tree, or the end of its path elsewhere. Empty: the command line.
    pub file: String,
    /// The line, or 0.
    pub line: u32,
    /// The text after `error:`.
    pub message: String,
}

/// `a.cu(7): error: …` of nvcc's front end, with or without a number.
static FRONT_END: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(.+?)\((\d+)\): (?:catastrophic )?error(?: #[\w-]+)?\s*: (.+)$"));

/// `a.cpp:7:3: error: …` of g++.
static HOST: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(.+?):(\d+)(?::\d+)?: (?:fatal )?error: (.+)$"));

/// `nvcc fatal   : …`, `ptxas file.ptx, line 9; error   : …`, `nvlink error : …`.
static TOOL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?:nvcc|ptxas|nvlink|cicc|fatbinary|cudafe\+\+)\b.*?\b(?:fatal|error)\s*: (.+)$")
});

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern")
}

/// The errors in what a failed compiler said in a folder of the tree, whose own folder is written `{tree}`: each text
/// once; if none is recognised, the last line.
pub fn said(text: &str, folder: &str) -> Vec<Said> {
    let mut errors: Vec<Said> = Vec::new();
    for line in text.lines() {
        let Some(error) = error(line, folder) else { continue };
        if errors.len() < KEPT && !errors.iter().any(|known| known.message == error.message) {
            errors.push(error);
        }
    }
    if errors.is_empty() {
        let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no output, or out of time");
        errors.push(Said { file: String::new(), line: 0, message: shortened(last) });
    }
    errors
}

fn error(line: &str, folder: &str) -> Option<Said> {
    if let Some(found) = FRONT_END.captures(line).or_else(|| HOST.captures(line)) {
        let file = from_tree(&found[1], folder);
        return Some(Said { file, line: found[2].parse().unwrap_or(0), message: shortened(&found[3]) });
    }
    let found = TOOL.captures(line)?;
    Some(Said { file: String::new(), line: 0, message: shortened(&found[1]) })
}

fn from_tree(file: &str, folder: &str) -> String {
    let inside = file.strip_prefix("{tree}/").map(String::from);
    let inside = inside.or_else(|| below(folder, file));
    inside.unwrap_or_else(|| {
        let parts: Vec<&str> = file.rsplit('/').take(3).collect();
        format!("…/{}", parts.into_iter().rev().collect::<Vec<_>>().join("/"))
    })
}

fn shortened(message: &str) -> String {
    message.trim().chars().take(300).collect()
}
