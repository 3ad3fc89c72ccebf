//! How much of each file the grammars could read.

use super::Plan;
use crate::engine::syntax::Parsed;

/// What the grammar made of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Understood {
    /// Relative to the root of the tree.
    pub path: String,
    /// Its size in bytes.
    pub size: usize,
    /// How many places could not be read; an edit that would touch one is refused.
    pub places: usize,
    /// How many bytes these places have.
    pub unread: usize,
}

impl Plan {
    /// A row a file that an op had to parse or changes, as it was before the plan. In C++ all branches of a `#if` count,
    /// and macro bodies do not.
    pub fn understood(&self) -> Vec<Understood> {
        for path in self.patches.iter().flat_map(|patch| patch.changes.keys()) {
            self.before.parsed(path);
        }
        let row = |(path, parsed): (&str, &Parsed)| Understood {
            path: path.to_string(),
            size: parsed.bytes.len(),
            places: parsed.syntax_errors(),
            unread: parsed.unread_bytes(),
        };
        self.before.parsed_files().map(row).collect()
    }
}
