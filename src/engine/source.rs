//! The bytes of a source tree, read before planning.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::syntax::constants::perhaps_macros;
use super::syntax::includes::{Include, includes};
use super::syntax::language::{Language, ParseFailed, Parsed};
use super::syntax::lexed::Lexed;

/// Files of a source tree: paths relative to its root, with `/` as separator, and their bytes.
///
/// Bytes are never decoded on the way: CRLF, a BOM, Latin-1 and a missing final newline survive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    files: BTreeMap<String, Arc<File>>,
}

/// One version of a file, read as code at most once.
#[derive(Debug)]
struct File {
    bytes: Arc<[u8]>,
    parsed: OnceLock<Result<Parsed, ParseFailed>>,
    includes: OnceLock<Vec<Include>>,
    macros: OnceLock<Vec<Range<usize>>>,
}

impl PartialEq for File {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for File {}

impl Sources {
    /// No files at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or replaces the one of the same path.
    pub fn insert(&mut self, path: impl Into<String>, bytes: impl Into<Arc<[u8]>>) {
        let (parsed, includes, macros) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let file = File { bytes: bytes.into(), parsed, includes, macros };
        self.files.insert(path.into(), Arc::new(file));
    }

    /// The bytes of one file.
    pub fn get(&self, path: &str) -> Option<&Arc<[u8]>> {
        self.files.get(path).map(|file| &file.bytes)
    }

    /// One file, parsed; `None` where it is absent or no grammar reads it.
    pub fn parsed(&self, path: &str) -> Option<Result<&Parsed, ParseFailed>> {
        let language = Language::of_path(path)?;
        let file = self.files.get(path)?;
        let parsed = file.parsed.get_or_init(|| Parsed::new(language, file.bytes.clone()));
        Some(parsed.as_ref().map_err(|failed| *failed))
    }

    /// What one file includes, wherever it does; nothing where it is absent.
    pub fn includes(&self, path: &str) -> &[Include] {
        let of = |bytes: &[u8]| match memchr::memmem::find(bytes, b"include") {
            Some(_) => includes(&Lexed::of(bytes)),
            None => Vec::new(),
        };
        self.files.get(path).map_or(&[], |file| file.includes.get_or_init(|| of(&file.bytes)))
    }

    /// The words that one file may define as macros; nothing where it is absent.
    pub fn macros(&self, path: &str) -> &[Range<usize>] {
        let of = |file: &File| perhaps_macros(&file.bytes);
        self.files.get(path).map_or(&[], |file| file.macros.get_or_init(|| of(file)))
    }

    /// The files that were parsed so far, in the order of their paths. Most files of a tree never have to be.
    pub fn parsed_files(&self) -> impl Iterator<Item = (&str, &Parsed)> {
        self.files
            .iter()
            .filter_map(move |(path, file)| Some((path.as_str(), file.parsed.get()?.as_ref().ok()?)))
    }

    /// All files in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arc<[u8]>)> {
        self.files.iter().map(|(path, file)| (path.as_str(), &file.bytes))
    }

    /// All files with their bytes, by which equal trees can be told.
    pub fn contents(&self) -> Vec<(String, Arc<[u8]>)> {
        self.iter().map(|(path, bytes)| (path.to_string(), bytes.clone())).collect()
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
