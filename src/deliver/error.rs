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
    /// A folder that no `vendor add` wrote.
    #[error("{} is no vendored tree: it has no mambapatch.lock", folder.display())]
    NotVendored {
        /// The folder.
        folder: PathBuf,
    },
    /// A record that cannot be read.
    #[error("{} cannot be read\n{message}", path.display())]
    BadLock {
        /// The file.
        path: PathBuf,
        /// Line, caret and what is wrong.
        message: String,
    },
    /// A path of the upstream that the record needs for itself.
    #[error("the upstream has a file `{path}`, and that place is mambapatch's in a vendored tree")]
    Reserved {
        /// The path.
        path: String,
    },
    /// A symbolic link that leaves the tree.
    #[error("`{path}` is refused: it is a symbolic link to `{target}`, outside of the tree")]
    LinkLeaves {
        /// The link.
        path: String,
        /// Where it leads.
        target: String,
    },
    /// What lies at the source is not what was recorded.
    #[error("`{path}` cannot be told: what the source has is not what was recorded")]
    SourceDiffers {
        /// The file.
        path: String,
    },
    /// A checkout whose files are not those of its commit.
    #[error("`{path}` lies in the checkout in another form than in its commit")]
    NotAsCommitted {
        /// The file.
        path: String,
    },
    /// A file of the record that a person changed.
    #[error("`{path}` was changed by hand, so that the record tells nothing")]
    HandMade {
        /// The file.
        path: String,
    },
    /// Marks of a conflict that nobody has settled.
    #[error("the marks of a conflict stand in {}", files.join(", "))]
    Marks {
        /// The files.
        files: Vec<String>,
    },
    /// The new folder is in use.
    #[error("{} exists and holds something else", folder.display())]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// A repository without a vendored branch.
    #[error("{} has no {} with a mambapatch.lock", folder.display(), name.as_ref().map_or("branch".to_string(), |name| format!("branch `{name}`")))]
    NoBranch {
        /// The repository.
        folder: PathBuf,
        /// The branch, where one was named.
        name: Option<String>,
    },
    /// A repository with several of them.
    #[error("{} has several vendored branches: {}", folder.display(), names.join(", "))]
    SeveralBranches {
        /// The repository.
        folder: PathBuf,
        /// The branches.
        names: Vec<String>,
    },
    /// A branch without the upstream's history.
    #[error("{label} has no history, and a branch is made of one")]
    NoHistory {
        /// What was found.
        label: String,
    },
    /// Another run is at work.
    #[error("another mambapatch is at work on {}", folder.display())]
    AtWork {
        /// The folder.
        folder: PathBuf,
    },
    /// Something cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// Where.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Merging failed.
    #[error("git cannot merge: {0}")]
    Merge(git2::Error),
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
            Self::NotVendored { .. } => Some("mambapatch vendor add TARGET --into DIR".into()),
            Self::BadLock { .. } | Self::HandMade { .. } => Some("take it back: git checkout -- FILE".into()),
            Self::Reserved { .. } => Some("keep it as a branch: --as branch".into()),
            Self::LinkLeaves { .. } => Some("name a release without that link, or another upstream".into()),
            Self::SourceDiffers { .. } => Some("name another source: --source git".into()),
            Self::NotAsCommitted { .. } => Some("name a clone without a filter of git: --source git".into()),
            Self::Marks { .. } => Some("settle them, then run this again".into()),
            Self::InUse { folder } => Some(format!(
                "another folder: --into DIR; or, where a vendored tree lies there: mambapatch vendor update {}",
                folder.display()
            )),
            Self::NoBranch { .. } => {
                Some("mambapatch vendor add TARGET --as branch --into REPOSITORY".into())
            }
            Self::SeveralBranches { names, .. } => names.first().map(|name| format!("--branch {name}")),
            Self::NoHistory { .. } => Some("--source git".into()),
            Self::AtWork { .. } => Some("wait for it, then run this again".into()),
            Self::Merge(_) | Self::Read { .. } => None,
            Self::Write { .. } => Some("choose a folder that you can write".into()),
        }
    }
}
