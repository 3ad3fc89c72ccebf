//! Reads and writes the source trees that are patched: git repositories, source distributions, plain folders.

pub mod archive;
pub mod cache;
pub mod folder;
pub mod http;
pub mod index;
pub mod options;
pub mod target;
pub mod tree_path;
pub mod upstream;
pub mod variables;

/// What happens while sources are looked for and fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Something that the user should know: which source was taken and why.
    Note(String),
    /// Something that may take a while begins.
    Step(String),
    /// Bytes that have come.
    Bytes {
        /// What is fetched, without credentials.
        what: String,
        /// So many so far.
        done: u64,
        /// So many in all, where that is known.
        total: Option<u64>,
    },
}
