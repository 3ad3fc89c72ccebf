//! Everything that can go wrong between a TARGET and a written tree.

use std::path::PathBuf;

use super::archive::ArchiveError;
use super::folder::FolderError;
use super::git::{GitError, RemoteError};
use super::http::HttpError;
use super::index::IndexError;
use super::target::TargetError;

/// Why a target was not found, read or written.
#[derive(Debug, thiserror::Error)]
pub enum CheckoutError {
    /// The TARGET cannot be read.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// An archive was refused.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A folder could not be read or written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A repository could not be read or written.
    #[error(transparent)]
    Git(#[from] GitError),
    /// Cloning or fetching failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The package index failed.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A download failed.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// Nothing lies at a path.
    #[error("{} does not exist", path.display())]
    NoSuchPath {
        /// The path.
        path: PathBuf,
    },
    /// What lies at a path is neither folder nor archive.
    #[error("{} is neither a folder nor a .tar.gz or .zip archive", path.display())]
    NoSource {
        /// The path.
        path: PathBuf,
    },
    /// No source of the upstream knows the REF.
    #[error("{} has no tag, branch or commit `{}`", .0.upstream, .0.reference)]
    UnknownRef(Box<UnknownRef>),
    /// A file that cannot be carried elsewhere under its name.
    #[error("`{path}` is refused: its name is no UTF-8")]
    NoUtf8 {
        /// The path, as it is shown.
        path: String,
    },
    /// No source could be asked for a REF, and a folder here has its name.
    #[error("{cause}")]
    PerhapsAFolder {
        /// Why.
        cause: Box<CheckoutError>,
        /// The name of both.
        name: String,
    },
    /// The upstream has no release that could be the newest.
    #[error("{upstream} has no release")]
    NoRelease {
        /// The upstream.
        upstream: String,
    },
    /// A checkout whose files are not as HEAD has them.
    #[error("these files have changes that are not committed: {}", files.join(", "))]
    NotCommitted {
        /// The files.
        files: Vec<String>,
    },
    /// No repository tells which branch the upstream works on.
    #[error("no git repository of {upstream} tells the branch that it works on")]
    NoBranch {
        /// The upstream.
        upstream: String,
    },
    /// No upstream of that name.
    #[error("`{upstream}` is not a known upstream")]
    NoUpstream {
        /// The name.
        upstream: String,
    },
    /// The upstream has no git repository.
    #[error("no git repository of {upstream} is known")]
    NoGitUrl {
        /// The upstream.
        upstream: String,
    },
    /// A downloaded archive is not the one that its address promises.
    #[error("{url} is not what its address promises: SHA-256 {found}")]
    WrongHash {
        /// The address, without credentials.
        url: String,
        /// What came.
        found: String,
    },
    /// The network is needed and may not be used.
    #[error("{what} is not on this machine, and --offline forbids to fetch it")]
    Offline {
        /// What was wanted.
        what: String,
    },
    /// The new folder is in use.
    #[error("{} exists and holds something else", into.display())]
    IntoNotEmpty {
        /// The folder.
        into: PathBuf,
    },
    /// A new folder was asked for a target that is patched where it lies.
    #[error("{} is patched where it lies; --into is for releases", folder.display())]
    IntoOfLocal {
        /// The target's folder.
        folder: PathBuf,
    },
    /// The new folder cannot be written.
    #[error("cannot write {}: {cause}", path.display())]
    Write {
        /// The place.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A commit was asked for in a plain folder.
    #[error("{} is no git checkout", folder.display())]
    NotGit {
        /// The folder.
        folder: PathBuf,
    },
}

/// A REF that nobody knows, and what was meant perhaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnknownRef {
    /// The upstream.
    pub upstream: String,
    /// What was asked for.
    pub reference: String,
    /// Its tags that look like it, the nearest first.
    pub nearest: Vec<String>,
    /// Other upstreams that have a release of that name.
    pub elsewhere: Vec<String>,
    /// An upstream whose name looks like it.
    pub near_upstream: Option<String>,
    /// Whether a folder of that name lies in the current folder.
    pub is_folder: bool,
}

impl CheckoutError {
    /// What to type next.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Target(error) => error.hint(),
            Self::Archive(error) => error.hint(),
            Self::Folder(error) => error.hint(),
            Self::Git(error) => error.hint(),
            Self::Remote(error) => error.hint(),
            Self::Index(error) => error.hint(),
            Self::Http(error) => error.hint(),
            Self::UnknownRef(unknown) => unknown.hint(),
            Self::NoUtf8 { path } => {
                Some(format!("give it another name, also where it is named: mv -- $'{path}' NAME"))
            }
            Self::PerhapsAFolder { name, .. } => Some(folder_hint(name)),
            Self::NoRelease { upstream } => Some(format!("name a branch: {upstream}@main")),
            Self::NotCommitted { .. } => Some("commit them first; what is recorded is a commit".into()),
            Self::NoBranch { upstream } => {
                Some(format!("name it, and use git: {upstream}@main --source git"))
            }
            Self::NoUpstream { .. } => Some("mambapatch list".into()),
            Self::NoGitUrl { .. } => Some("--source sdist".into()),
            Self::Offline { .. } => Some("run it once without --offline".into()),
            Self::IntoNotEmpty { .. } => Some("choose another folder: --into DIR".into()),
            Self::IntoOfLocal { .. } => Some("leave out --into".into()),
            Self::Write { .. } => Some("choose another folder: --into DIR".into()),
            Self::NotGit { .. } => Some("--no-commit".into()),
            Self::NoSuchPath { .. } => {
                Some("name a folder that is there, or a release such as v2.2.4".into())
            }
            Self::NoSource { .. } => {
                Some("name the folder that setup.py lies in, or a release such as v2.2.4".into())
            }
            Self::WrongHash { .. } => {
                Some("do not trust what came; name another source: --source auto".into())
            }
        }
    }
}

fn folder_hint(name: &str) -> String {
    format!("for the folder of that name type ./{name}")
}

impl UnknownRef {
    fn hint(&self) -> Option<String> {
        if self.is_folder {
            return Some(folder_hint(&self.reference));
        }
        if let Some(other) = self.elsewhere.first() {
            return Some(format!("{other}@{}", self.reference));
        }
        if !self.nearest.is_empty() {
            return Some(format!("there are {}", self.nearest.join(", ")));
        }
        match &self.near_upstream {
            Some(upstream) => Some(format!("did you mean the upstream {upstream}?")),
            None => Some(format!("mambapatch list {}", self.upstream)),
        }
    }
}
