//! The bytes of a source tree, read before planning.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Files of a source tree: paths relative to its root, with `/` as separator, and their bytes.
///
/// Bytes are never decoded on the way: CRLF, a BOM, Latin-1 and a missing final newline survive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Sources {
    files: BTreeMap<String, Arc<[u8]>>,
}

impl Sources {
    /// No files at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or replaces the one of the same path.
    pub fn insert(&mut self, path: impl Into<String>, bytes: impl Into<Arc<[u8]>>) {
        self.files.insert(path.into(), bytes.into());
    }

    /// The bytes of one file.
    pub fn get(&self, path: &str) -> Option<&Arc<[u8]>> {
        self.files.get(path)
    }

    /// All files in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<[u8]>)> {
        self.files.iter().map(|(path, bytes)| (path.as_str(), bytes))
    }

    /// All paths, ordered.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Whether there is no file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

impl<P: Into<String>, B: Into<Arc<[u8]>>> FromIterator<(P, B)> for Sources {
    fn from_iter<I: IntoIterator<Item = (P, B)>>(files: I) -> Self {
        let mut sources = Self::new();
        for (path, bytes) in files {
            sources.insert(path, bytes);
        }
        sources
    }
}

/// The line (from 1) that holds the byte at `offset`.
pub fn line_of(bytes: &[u8], offset: usize) -> usize {
    1 + bytes[..offset.min(bytes.len())].iter().filter(|byte| **byte == b'\n').count()
}

/// The text of one line (from 1), without its newline; empty past the end.
pub fn line_text(bytes: &[u8], line: usize) -> String {
    let text = bytes.split(|byte| *byte == b'\n').nth(line.saturating_sub(1)).unwrap_or_default();
    String::from_utf8_lossy(text).trim_end_matches('\r').to_string()
}
