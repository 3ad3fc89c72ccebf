//! The tree that is written to: where a local target lies, or a new checkout of a release.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use git2::Repository;
use git2::build::CheckoutBuilder;

use super::error::CheckoutError;
use super::folder::{self, Written};
use super::git::{CommitBranch, CommitToMake, Committed, GitError, GitRepository, Import};
use super::opened::{Store, Target};
use super::temporary::Temporary;
use crate::engine::tag::SourceVersion;

/// How a checkout came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckoutState {
    /// The user's own folder.
    InPlace,
    /// Made just now.
    New,
    /// Made by an earlier run for the same target.
    Again,
}

/// A tree on disk that can be written to.
#[derive(Debug)]
pub struct Checkout {
    folder: PathBuf,
    state: CheckoutState,
    git: Option<InGit>,
    reverse_patches: Option<PathBuf>,
    /// Of a new one: the folders that were not there before, the innermost first.
    absent: Vec<PathBuf>,
}

#[derive(Debug)]
struct InGit {
    repository: Rc<GitRepository>,
    base: String,
    /// The path from the root of the work tree to the folder.
    below: String,
    /// Whether the plan was made from the files in the work tree, not from git's objects.
    from_disk: bool,
}

/// How files are written in place.
#[derive(Debug, Clone, Copy)]
pub struct InPlace<'a> {
    /// The patch that undoes it, kept in the user's state folder.
    pub reverse_patch: &'a [u8],
    /// Whether files with changes that are not committed may be written.
    pub allow_dirty: bool,
}

impl Target {
    /// The tree to write to. A local target is patched where it lies; a release gets a new checkout in `into` (else
    /// in `./<upstream>-<version>`), which must not exist, be empty, or come from an earlier run for the same target.
    ///
    /// A source distribution becomes a git repository with one commit `Import <file name>`; a commit of a mirror or
    /// clone becomes a clone with that commit checked out. Both are made beside their place and renamed.
    pub fn prepare_checkout(&self, into: Option<&Path>) -> Result<Checkout, CheckoutError> {
        if let Some(folder) = self.local_folder() {
            return match into {
                Some(_) => Err(CheckoutError::IntoOfLocal { folder: folder.into() }),
                None => Ok(self.in_place(folder)),
            };
        }
        let into = match into {
            Some(into) => self.places.current_dir.join(into),
            None => self.places.current_dir.join(self.default_folder_name()),
        };
        let into: PathBuf = into.components().collect();
        let failed = |cause| CheckoutError::Write { path: into.clone(), cause };
        if !is_free(&into).map_err(failed)? {
            return self.again(&into).ok_or(CheckoutError::IntoNotEmpty { into });
        }
        let absent = absent(&into);
        let made = self.make_in(&into).and_then(|()| self.made(into.clone(), CheckoutState::New));
        match made {
            Ok(checkout) => Ok(Checkout { absent, ..checkout }),
            Err(error) => {
                remove_new(&into, &absent);
                Err(error)
            }
        }
    }

    fn make_in(&self, into: &Path) -> Result<(), CheckoutError> {
        let failed = |cause| CheckoutError::Write { path: into.to_path_buf(), cause };
        let parent = into.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(failed)?;
        let temporary = Temporary::in_folder(parent).map_err(failed)?;
        let tree = temporary.path().join("tree");
        fs::create_dir(&tree).map_err(failed)?;
        self.fill(&tree)?;
        GitRepository::open(&tree, "v")?.mark_prepared(&self.state_id())?;
        settle(&tree, into).map_err(failed)
    }

    fn in_place(&self, folder: &Path) -> Checkout {
        let git = match &self.store {
            Store::WorkTree { repository, commit, below, .. } => Some(InGit {
                repository: repository.clone(),
                base: commit.clone(),
                below: below.clone(),
                from_disk: true,
            }),
            _ => None,
        };
        let reverse_patches = self.places.state.clone();
        Checkout {
            folder: folder.into(),
            state: CheckoutState::InPlace,
            git,
            reverse_patches,
            absent: Vec::new(),
        }
    }

    fn fill(&self, tree: &Path) -> Result<(), CheckoutError> {
        match &self.store {
            Store::Commit { repository, commit, .. } => {
                let clone = NewClone { from: repository, commit, url: self.places.git_url.as_deref() };
                Ok(clone.write(tree)?)
            }
            _ => {
                let files = self.archive_files().iter();
                let file = |file: &'_ super::archive::ArchiveFile| (file.bytes.clone(), file.executable);
                let files: Vec<_> = files.map(|entry| (entry.path.as_str(), file(entry))).collect();
                let files = files.iter().map(|(path, (bytes, exec))| (*path, (&bytes[..], *exec))).collect();
                let tag = self.import_tag();
                Ok(Import { message: &self.import_message(), tag: tag.as_deref(), files }.write(tree)?)
            }
        }
    }

    /// What a prepared checkout remembers of its target.
    fn state_id(&self) -> String {
        match &self.store {
            Store::Commit { commit, .. } => format!("commit {commit}"),
            _ => self.import_message(),
        }
    }

    fn import_message(&self) -> String {
        match &self.store {
            Store::Archive { file_name, .. } => format!("Import {file_name}"),
            _ => String::new(),
        }
    }

    fn import_tag(&self) -> Option<String> {
        match &self.version {
            SourceVersion::Release(tag) => Some(format!("v{tag}")),
            _ => None,
        }
    }

    fn made(&self, folder: PathBuf, state: CheckoutState) -> Result<Checkout, CheckoutError> {
        let repository = GitRepository::open(&folder, "v")?;
        let base = match &self.store {
            Store::Commit { commit, .. } => commit.clone(),
            _ => self.import_in(&repository).ok_or(CheckoutError::NotGit { folder: folder.clone() })?,
        };
        let git = InGit { repository: Rc::new(repository), base, below: String::new(), from_disk: false };
        let reverse_patches = self.places.state.clone();
        Ok(Checkout { folder, state, git: Some(git), reverse_patches, absent: Vec::new() })
    }

    /// The checkout that an earlier run made of the same target.
    fn again(&self, into: &Path) -> Option<Checkout> {
        let (repository, below) = GitRepository::of_checkout(into, "v").ok()??;
        let known = below.is_empty() && repository.prepared_for()? == self.state_id();
        known.then(|| self.made(into.into(), CheckoutState::Again).ok())?
    }

    /// The commit in which this archive was imported, by its message, below HEAD.
    fn import_in(&self, repository: &GitRepository) -> Option<String> {
        repository.root_commit_with(&self.import_message())
    }
}

impl Checkout {
    /// The folder that is written to.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How it came to be.
    pub fn state(&self) -> CheckoutState {
        self.state
    }

    /// Whether commits can be made in it.
    pub fn is_git(&self) -> bool {
        self.git.is_some()
    }

    /// The commit that a branch starts from.
    pub fn base(&self) -> Option<&str> {
        self.git.as_ref().map(|git| git.base.as_str())
    }

    /// Takes a new checkout away again; one that was there before stays.
    pub fn take_back(&self) {
        if self.state == CheckoutState::New {
            remove_new(&self.folder, &self.absent);
        }
    }

    /// Which of these files have changes that are not committed. In a plain folder none has.
    pub fn dirty(&self, paths: &[String]) -> Vec<String> {
        let Some(git) = &self.git else { return Vec::new() };
        let full: Vec<String> = paths.iter().map(|path| git.full(path)).collect();
        let dirty = git.repository.dirty(&full);
        let of = |path: &String| dirty.contains(&git.full(path));
        paths.iter().filter(|path| of(path)).cloned().collect()
    }

    /// Makes a branch with these commits, and goes to it. Paths are those of the target.
    pub fn commit(&self, branch: &str, commits: &[CommitToMake]) -> Result<Committed, CheckoutError> {
        let Some(git) = &self.git else {
            return Err(CheckoutError::NotGit { folder: self.folder.clone() });
        };
        let paths: Vec<String> =
            commits.iter().flat_map(|commit| &commit.files).map(|(path, _)| path.clone()).collect();
        if git.from_disk {
            self.refuse_dirty(&paths)?;
        }
        let stored = commits.iter().map(|commit| git.stored(commit, &self.folder));
        let commits = stored.collect::<Result<Vec<_>, _>>()?;
        let order = CommitBranch { base: &git.base, branch, commits: &commits, checkout: true, when: None };
        Ok(git.repository.commit_branch(order)?)
    }

    /// Writes the files where they lie, all or none, and keeps the reverse patch.
    pub fn write_in_place(
        &self,
        files: &[(String, Vec<u8>)],
        how: InPlace<'_>,
    ) -> Result<Written, CheckoutError> {
        if !how.allow_dirty {
            let paths: Vec<String> = files.iter().map(|(path, _)| path.clone()).collect();
            self.refuse_dirty(&paths)?;
        }
        let state = self.reverse_patches.as_deref();
        Ok(folder::write_in_place(&self.folder, files, how.reverse_patch, state)?)
    }

    fn refuse_dirty(&self, paths: &[String]) -> Result<(), CheckoutError> {
        let files = self.dirty(paths);
        if files.is_empty() { Ok(()) } else { Err(GitError::Dirty { files }.into()) }
    }
}

impl InGit {
    fn full(&self, path: &str) -> String {
        if self.below.is_empty() { path.to_string() } else { format!("{}/{path}", self.below) }
    }

    /// The commit with paths from the root of the repository, and content as git stores it.
    fn stored(&self, commit: &CommitToMake, folder: &Path) -> Result<CommitToMake, CheckoutError> {
        let old = if self.from_disk { Some(self.repository.files(&self.base, "")?) } else { None };
        let file = |(path, bytes): &(String, Vec<u8>)| {
            let full = self.full(path);
            let blob = old.as_ref().and_then(|files| files.get(&full));
            let (Some(blob), Some(lies)) = (blob, folder::read_one(folder, path)) else {
                return Ok((full, bytes.clone()));
            };
            let stored = self.repository.blob(&blob.blob)?;
            Ok((full, GitRepository::stored_form(path, &stored, &lies, bytes)?))
        };
        let files = commit.files.iter().map(file).collect::<Result<Vec<_>, CheckoutError>>()?;
        Ok(CommitToMake { message: commit.message.clone(), files })
    }
}

/// Moves a finished tree to its place. An empty folder that is there stays the same folder, since someone may stand in
/// it: it is filled, `.git` last.
fn settle(tree: &Path, into: &Path) -> io::Result<()> {
    if !into.exists() {
        return fs::rename(tree, into);
    }
    let names = fs::read_dir(tree)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    let (git, files): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name == ".git");
    files.iter().chain(&git).try_for_each(|name| fs::rename(tree.join(name), into.join(name)))
}

/// The folders of a path that are not there, the innermost first.
fn absent(into: &Path) -> Vec<PathBuf> {
    into.ancestors().take_while(|folder| !folder.exists()).map(Path::to_path_buf).collect()
}

/// Removes what was made: the folders that were not there before, or all that lies in one that was empty. Nothing can
/// be done about what cannot be removed.
fn remove_new(into: &Path, absent: &[PathBuf]) {
    if absent.is_empty() {
        for entry in fs::read_dir(into).into_iter().flatten().flatten() {
            let path = entry.path();
            let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        }
    }
    let _ = absent.first().map(fs::remove_dir_all);
    absent.iter().skip(1).for_each(|folder| drop(fs::remove_dir(folder)));
}

/// Whether a folder is not there or empty; an error where no folder can be.
pub fn is_free(folder: &Path) -> io::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}

/// A clone with a work tree, made from a repository on this machine.
///
/// The objects are copied as files: a mirror that lacks an object that nobody needs is cloned all the same, where
/// `git clone` would stop.
struct NewClone<'a> {
    from: &'a GitRepository,
    commit: &'a str,
    url: Option<&'a str>,
}

impl NewClone<'_> {
    fn write(&self, into: &Path) -> Result<(), GitError> {
        let failed = |cause: String| GitError::Write { path: into.into(), cause };
        let of_git = |error: git2::Error| failed(error.message().into());
        let mut options = git2::RepositoryInitOptions::new();
        options.initial_head("main").external_template(false);
        let repository = Repository::init_opts(into, &options).map_err(of_git)?;
        for source in self.from.object_folders() {
            copy_folder(&source, &repository.path().join("objects"))
                .map_err(|error| failed(error.to_string()))?;
        }
        // Opened again, so that the new packs are seen.
        let repository = Repository::open(into).map_err(of_git)?;
        self.write_references(&repository).map_err(of_git)
    }

    fn write_references(&self, repository: &Repository) -> Result<(), git2::Error> {
        if let Some(url) = self.url {
            repository.remote("origin", url)?;
        }
        for (name, target) in self.from.shared_references() {
            // A reference to an absent object is left out.
            let _ = repository.reference(&name, target, true, "mambapatch");
        }
        repository.set_head_detached(git2::Oid::from_str(self.commit)?)?;
        repository.checkout_head(Some(CheckoutBuilder::new().force()))
    }
}

/// Copies regular files; what exists stays.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else if kind.is_file() && !target.exists() && entry.file_name() != "alternates" {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
