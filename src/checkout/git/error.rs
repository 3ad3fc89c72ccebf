//! Everything that can go wrong in a repository.

use std::path::PathBuf;

/// Why a repository could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// It cannot be opened.
    #[error("{} cannot be opened as a git repository: {cause}", path.display())]
    Open {
        /// Where it should be.
        path: PathBuf,
        /// What git2 said.
        cause: String,
    },
    /// It belongs to another user, and git's configuration does not trust it.
    #[error("{} belongs to another user", path.display())]
    NotTrusted {
        /// The repository.
        path: PathBuf,
    },
    /// Something in it cannot be read: an object is absent, a reference broken.
    #[error("cannot read {what} in {}: {cause}", path.display())]
    Read {
        /// The repository.
        path: PathBuf,
        /// What was read.
        what: String,
        /// What git2 said.
        cause: String,
    },
    /// It has no commit yet.
    #[error("{} has no commit yet", path.display())]
    NoCommit {
        /// The repository.
        path: PathBuf,
    },
    /// It cannot be written to.
    #[error("cannot write to {}: {cause}; no branch was made", path.display())]
    Write {
        /// The repository.
        path: PathBuf,
        /// What git2 said.
        cause: String,
    },
    /// A merge, rebase or the like is under way.
    #[error("{} is in the middle of a {what}", path.display())]
    Busy {
        /// The repository.
        path: PathBuf,
        /// What is under way.
        what: String,
    },
    /// Files that would change have changes already, or lie in the way.
    #[error("these files have changes that are not committed: {}", files.join(", "))]
    Dirty {
        /// The files.
        files: Vec<String>,
    },
    /// A path that is no regular file in the commit.
    #[error("`{}` is refused: {what}", path.escape_debug())]
    NotAFile {
        /// The path.
        path: String,
        /// What it is.
        what: String,
    },
    /// The branch exists with other content.
    #[error("the branch `{branch}` exists and holds something else")]
    BranchExists {
        /// The branch.
        branch: String,
    },
    /// The branch is checked out in another work tree.
    #[error("the branch `{branch}` is checked out in another work tree of this repository")]
    CheckedOutElsewhere {
        /// The branch.
        branch: String,
    },
    /// The branch is checked out, so that moving it would change what someone works on.
    #[error("the branch `{branch}` is checked out")]
    CheckedOut {
        /// The branch.
        branch: String,
    },
    /// No valid name for a branch.
    #[error("`{branch}` is no valid name for a branch: no blanks, no `..`, and none of `~^:?*[`")]
    BadBranch {
        /// The name.
        branch: String,
    },
    /// How git stores a file and how it lies in the work tree differ in more than line ends.
    #[error(
        "`{path}` is changed by a filter of git on its way into the work tree; its stored form is not known"
    )]
    Filtered {
        /// The file.
        path: String,
    },
}

impl GitError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Dirty { .. } => {
                Some("commit them, or write into the files: --allow-dirty --no-commit".into())
            }
            Self::BranchExists { .. } | Self::CheckedOutElsewhere { .. } | Self::BadBranch { .. } => {
                Some("--branch NAME".into())
            }
            Self::CheckedOut { .. } => Some("go to another branch first: git switch -".into()),
            Self::Busy { path, .. } => Some(format!("see git -C {} status", path.display())),
            Self::Write { .. } => {
                Some("see that it can be written, and that its disk has room: df -h".into())
            }
            Self::Filtered { .. } => Some("--no-commit".into()),
            Self::NoCommit { .. } => Some("--no-commit".into()),
            Self::Read { path, .. } => Some(format!("git -C {} fsck", path.display())),
            Self::NotTrusted { path } => {
                Some(format!("git config --global --add safe.directory {}", path.display()))
            }
            Self::NotAFile { .. } => Some(
                "put a regular file with a portable name there, in a clone of yours, and commit that".into(),
            ),
            Self::Open { .. } => None,
        }
    }
}
