//! A target that was found: what it is, and its files, wherever they lie.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use git2::{ObjectType, Oid};

use super::archive::{Archive, ArchiveFile};
use super::error::CheckoutError;
use super::folder::{self, FolderError};
use super::git::{GitRepository, TreeFile};
use super::options::CheckoutOptions;
use super::tree_path;
use crate::engine::source::Sources;
use crate::engine::tag::{SourceVersion, Tag};

/// Where a target's files come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A commit of a mirror or clone; no work tree is involved.
    Commit {
        /// The repository on this machine.
        repository: PathBuf,
        /// The commit, in hexadecimal digits.
        commit: String,
    },
    /// A git checkout of the user's, as it lies there.
    WorkTree {
        /// The target's folder.
        folder: PathBuf,
        /// The commit of HEAD.
        commit: String,
    },
    /// A source archive.
    Sdist {
        /// Its file name.
        file_name: String,
    },
    /// A plain folder.
    Folder {
        /// The folder.
        folder: PathBuf,
    },
}

impl Origin {
    /// The name of the folder or archive.
    pub fn name(&self) -> String {
        let path = match self {
            Origin::Commit { repository: path, .. }
            | Origin::WorkTree { folder: path, .. }
            | Origin::Folder { folder: path } => path.as_path(),
            Origin::Sdist { file_name } => Path::new(file_name),
        };
        path.file_name()
            .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
    }
}

/// A target that was found. Nothing was written for it but the cache.
#[derive(Debug)]
pub struct Target {
    /// The upstream's id; none where nothing recognises it.
    pub upstream: Option<String>,
    /// Which release, as far as anything tells.
    pub version: SourceVersion,
    /// How to call it: `mamba-ssm v2.2.4`.
    pub label: String,
    /// The tag, branch or short commit: `v2.2.4`.
    pub reference: String,
    /// Where its files come from.
    pub origin: Origin,
    /// All releases that its source knows, the oldest first.
    pub tags: Vec<Tag>,
    /// Files whose names are no UTF-8, which are not looked at.
    pub unnamed: Vec<String>,
    /// Symbolic links, which are not looked at either; those of a folder on disk alone.
    pub links: Vec<String>,
    pub(super) store: Store,
    pub(super) places: Places,
}

/// Where the files lie.
#[derive(Debug)]
pub(super) enum Store {
    Commit {
        repository: Rc<GitRepository>,
        commit: String,
        files: BTreeMap<String, TreeFile>,
    },
    WorkTree {
        repository: Rc<GitRepository>,
        commit: String,
        folder: PathBuf,
        below: String,
        paths: Vec<String>,
    },
    Archive {
        file_name: String,
        archive: Archive,
    },
    Folder {
        folder: PathBuf,
        paths: Vec<String>,
    },
}

/// Folders that writing needs later.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub current_dir: PathBuf,
    pub state: Option<PathBuf>,
    /// What `origin` of a new clone points at.
    pub git_url: Option<String>,
}

impl Places {
    pub(super) fn new(options: &CheckoutOptions, git_url: Option<&str>) -> Self {
        Self {
            current_dir: options.current_dir.clone(),
            state: options.variables.state_folder(),
            git_url: git_url.map(str::to_string),
        }
    }
}

impl Target {
    /// The paths of all its files, ordered.
    pub fn paths(&self) -> Vec<&str> {
        match &self.store {
            Store::Commit { files, .. } => files.keys().map(String::as_str).collect(),
            Store::WorkTree { paths, .. } | Store::Folder { paths, .. } => {
                paths.iter().map(String::as_str).collect()
            }
            Store::Archive { archive, .. } => archive.files.iter().map(|file| file.path.as_str()).collect(),
        }
    }

    /// Refuses to plan a change of a file whose name not every system can write.
    pub fn refuse_unwritable<'a>(&self, paths: impl Iterator<Item = &'a str>) -> Result<(), CheckoutError> {
        for path in paths {
            tree_path::checked(path).map_err(|why| FolderError::Path { path: path.to_string(), why })?;
        }
        Ok(())
    }

    /// The wanted files.
    pub fn read(&self, wanted: &dyn Fn(&str) -> bool) -> Result<Sources, CheckoutError> {
        match &self.store {
            Store::Commit { repository, files, .. } => {
                let wanted = files.iter().filter(|(path, _)| wanted(path));
                wanted.map(|(path, file)| Ok((path.clone(), repository.blob(&file.blob)?))).collect()
            }
            Store::Archive { archive, .. } => {
                let wanted = archive.files.iter().filter(|file| wanted(&file.path));
                Ok(wanted.map(|file| (file.path.clone(), file.bytes.clone())).collect())
            }
            Store::WorkTree { folder, paths, .. } | Store::Folder { folder, paths } => {
                Ok(folder::read(folder, paths, wanted)?)
            }
        }
    }

    /// The wanted files as the upstream has them, without what this program committed or anyone changed since, and which
    /// release they are. None of a plain folder, which does not tell.
    pub fn pristine(
        &self,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Option<(SourceVersion, Sources)>, CheckoutError> {
        let (repository, commit) = match &self.store {
            Store::Archive { .. } => return Ok(Some((self.version.clone(), self.read(wanted)?))),
            Store::Folder { .. } => return Ok(None),
            Store::WorkTree { below, .. } if !below.is_empty() => return Ok(None),
            Store::Commit { repository, commit, .. } | Store::WorkTree { repository, commit, .. } => {
                (repository, commit)
            }
        };
        let Some(commit) = repository.pristine(commit)? else { return Ok(None) };
        let version = repository.version_of(&commit)?;
        Ok(Some((version, repository.read(&commit, wanted)?)))
    }

    /// The wanted files, named by globs.
    pub fn read_globs(&self, globs: &globset::GlobSet) -> Result<Sources, CheckoutError> {
        self.read(&|path| globs.is_match(path))
    }

    /// One file's bytes.
    pub fn file(&self, path: &str) -> Result<Option<Vec<u8>>, CheckoutError> {
        Ok(self.read(&|other| other == path)?.get(path).map(|bytes| bytes.to_vec()))
    }

    /// The id that git gives, or would give, the content of a file. Equal ids are equal bytes; nothing is read for it
    /// where the files lie in git.
    pub fn blob_id(&self, path: &str) -> Result<Option<String>, CheckoutError> {
        if let Store::Commit { files, .. } = &self.store {
            return Ok(files.get(path).map(|file| file.blob.clone()));
        }
        let bytes = self.file(path)?;
        Ok(bytes.and_then(|bytes| Oid::hash_object(ObjectType::Blob, &bytes).ok()).map(|id| id.to_string()))
    }

    /// Whether there are CUDA sources in it. Old source distributions have none.
    pub fn carries_kernels(&self) -> bool {
        self.paths().iter().any(|path| path.ends_with(".cu") || path.ends_with(".cuh"))
    }

    /// The git submodules in it, whose files are not; a build may need `git submodule update --init`.
    pub fn submodules(&self) -> Result<Vec<String>, CheckoutError> {
        match &self.store {
            Store::Commit { repository, commit, .. } | Store::WorkTree { repository, commit, .. } => {
                Ok(repository.submodules(commit)?)
            }
            Store::Archive { .. } | Store::Folder { .. } => Ok(Vec::new()),
        }
    }

    /// The repository that its files come from; none for an archive or a plain folder.
    pub fn repository(&self) -> Option<&GitRepository> {
        match &self.store {
            Store::Commit { repository, .. } | Store::WorkTree { repository, .. } => Some(repository),
            Store::Archive { .. } | Store::Folder { .. } => None,
        }
    }

    /// The commit that its files come from; none for an archive or a plain folder.
    pub fn commit(&self) -> Option<&str> {
        match &self.store {
            Store::Commit { commit, .. } | Store::WorkTree { commit, .. } => Some(commit),
            Store::Archive { .. } | Store::Folder { .. } => None,
        }
    }

    /// Whether it is patched where it lies.
    pub fn is_local(&self) -> bool {
        matches!(self.store, Store::WorkTree { .. } | Store::Folder { .. })
    }

    /// The folder of a new checkout unless another is named: `mamba-ssm-2.2.4`.
    pub fn default_folder_name(&self) -> String {
        let state = match &self.version {
            SourceVersion::Release(tag) => tag.to_string(),
            _ => self.reference.replace(['/', '\\'], "-"),
        };
        format!("{}-{state}", self.upstream.as_deref().unwrap_or("source"))
    }

    /// The files of an archive.
    pub(super) fn archive_files(&self) -> &[ArchiveFile] {
        match &self.store {
            Store::Archive { archive, .. } => &archive.files,
            _ => &[],
        }
    }

    /// The folder that is patched in place.
    pub(super) fn local_folder(&self) -> Option<&Path> {
        match &self.store {
            Store::WorkTree { folder, .. } | Store::Folder { folder, .. } => Some(folder),
            _ => None,
        }
    }
}

/// How a state of an upstream is called.
pub(super) fn label(upstream: Option<&str>, version: &SourceVersion, reference: &str) -> String {
    let name = upstream.unwrap_or("source");
    match version {
        SourceVersion::Release(tag) => format!("{name} v{tag}"),
        SourceVersion::After(tag) => format!("{name} {reference} (after v{tag})"),
        SourceVersion::Unknown if reference.is_empty() => name.to_string(),
        SourceVersion::Unknown => format!("{name} {reference}"),
    }
}
