//! How much of each file the grammars could read.

use super::Plan;

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
    /// A row a file that a grammar read, as it was before the plan.
    pub fn understood(&self) -> Vec<Understood> {
        let parsed = self.before.paths().filter_map(|path| Some((path, self.before.parsed(path)?.ok()?)));
        parsed
            .map(|(path, parsed)| Understood {
                path: path.to_string(),
                size: parsed.bytes.len(),
                places: parsed.syntax_errors(),
                unread: parsed.unread_bytes(),
            })
            .collect()
    }
}
