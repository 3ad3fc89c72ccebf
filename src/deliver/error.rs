//! Everything that can go wrong while something is delivered.

use std::path::PathBuf;

use crate::checkout::CheckoutError;
use crate::checkout::git::{GitError, RemoteError};

/// Why nothing was delivered.
#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    /// A source could not be read or written.
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    /// A repository could not be read or written.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Pushing failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// git knows no name of the user.
    #[error("git knows no name and address of yours, and upstream takes no commit without them")]
    NoIdentity,
    /// The folder of a series holds something else.
    #[error("{} exists and holds {what}", folder.display())]
    OtherSeries {
        /// The folder.
        folder: PathBuf,
        /// What it holds.
        what: String,
    },
    /// Something cannot be written.
    #[error("cannot write {}: {cause}", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
}

impl DeliverError {
    /// What to type next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Checkout(error) => error.hint(),
            Self::Git(error) => error.hint(),
            Self::Remote(error) => error.hint(),
            Self::NoIdentity => Some(
                "git config --global user.name \"Your Name\" && git config --global user.email you@your.host"
                    .into(),
            ),
            Self::OtherSeries { .. } => Some("write the series beside it: --out DIR".into()),
            Self::Write { .. } => Some("choose another folder: --out DIR".into()),
        }
    }
}
