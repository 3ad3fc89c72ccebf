//! Git repositories, read through git2: tags, commits and the files of their trees. Nothing is checked out to read.

mod error;
mod history;
mod remote;
mod series;
mod write;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use git2::{ErrorCode, ObjectType, Oid, Repository, TreeWalkMode, TreeWalkResult};

pub use error::GitError;
pub use history::{CommitPatch, Identity, diff_text, ignored};
pub use remote::{
    ClonePlace, Push, RemoteError, cached_clone, clone_bare, fetch, mirror, owner_and_name, push,
};
pub use series::{Changes, Joined};
pub(super) use write::Import;
pub use write::{CommitBranch, CommitToMake, Committed};

use crate::engine::source::Sources;
use crate::engine::tag::{SourceVersion, Tag};

/// The trailer by which a commit of this program is known: it does not make a release another version.
pub const TRAILER: &str = "Mambapatch-Version";

/// The key in a repository's own configuration that tells what it was prepared for.
const PREPARED: &str = "mambapatch.prepared";

/// A tag of a repository that PEP 440 can read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitTag {
    /// Its name: `v2.2.4`.
    pub name: String,
    /// The release.
    pub tag: Tag,
    /// The commit, in hexadecimal digits.
    pub commit: String,
}

/// What a REF is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefKind {
    /// A tag.
    Tag,
    /// A branch: it may have moved where it came from.
    Branch,
    /// A commit.
    Commit,
}

/// A REF that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The commit, in hexadecimal digits.
    pub commit: String,
    /// What the REF is.
    pub kind: RefKind,
    /// How it is called: the tag's name, the branch, the short commit.
    pub name: String,
}

/// One file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    /// The id of its content: equal ids are equal bytes.
    pub blob: String,
    /// Whether it may be executed.
    pub executable: bool,
}

/// An open repository: a work tree, a bare mirror or a cached clone.
pub struct GitRepository {
    repository: Repository,
    tag_prefix: String,
}

impl std::fmt::Debug for GitRepository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GitRepository").field("path", &self.path()).finish()
    }
}

/// Whether git takes this as the name of a branch.
pub fn is_branch_name(name: &str) -> bool {
    git2::Reference::is_valid_name(&format!("refs/heads/{name}")) && !name.starts_with('-')
}

impl GitRepository {
    /// Opens the repository at exactly this folder. `tag_prefix` stands before the version in its tags' names.
    pub fn open(path: &Path, tag_prefix: &str) -> Result<Self, GitError> {
        // A mirror without a configuration file would count as the `.git` of the folder above it.
        let bare = !path.join(".git").exists() && path.join("HEAD").is_file();
        let open = if bare { Repository::open_bare } else { Repository::open };
        let repository = open(path).map_err(|error| unopened(path, &error))?;
        Ok(Self { repository, tag_prefix: tag_prefix.into() })
    }

    /// The repository whose checkout this folder is: its work tree's root, or a folder in it with tracked files; with
    /// the path from the root to the folder. An unpacked folder inside someone's repository is none.
    pub fn of_checkout(folder: &Path, tag_prefix: &str) -> Result<Option<(Self, String)>, GitError> {
        let repository = match Repository::discover(folder) {
            Ok(repository) => repository,
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(None),
            // What is a checkout but cannot be opened must not be written as if it were none.
            Err(error) => return Err(unopened(folder, &error)),
        };
        let below = path_to_tracked(&repository, folder);
        Ok(below.map(|below| (Self { repository, tag_prefix: tag_prefix.into() }, below)))
    }

    /// Where it lies: the root of the work tree, or the bare repository.
    pub fn path(&self) -> PathBuf {
        // Gathered from its parts, it has no `/` at the end.
        self.repository.workdir().unwrap_or_else(|| self.repository.path()).components().collect()
    }

    /// Whether it has no work tree.
    pub fn is_bare(&self) -> bool {
        self.repository.is_bare()
    }

    /// The commit of HEAD.
    pub fn head(&self) -> Result<String, GitError> {
        let head = self.repository.head().and_then(|head| head.peel_to_commit());
        match head {
            Ok(commit) => Ok(commit.id().to_string()),
            Err(error) if error.code() == ErrorCode::UnbornBranch => {
                Err(GitError::NoCommit { path: self.path() })
            }
            Err(error) => Err(self.unreadable("HEAD", &error)),
        }
    }

    /// The branch of HEAD; none where it is detached.
    pub fn head_branch(&self) -> Option<String> {
        let head = self.repository.head().ok()?;
        if head.is_branch() { head.shorthand().ok().map(str::to_string) } else { None }
    }

    /// All tags that PEP 440 can read, the oldest release first. One whose object is absent is left out.
    pub fn tags(&self) -> Result<Vec<GitTag>, GitError> {
        let names = self.repository.tag_names(None).map_err(|error| self.unreadable("the tags", &error))?;
        let mut tags = BTreeMap::new();
        for name in names.iter().flatten().flatten() {
            let Some(tag) = self.release_of(name) else { continue };
            let reference = self.repository.find_reference(&format!("refs/tags/{name}"));
            let Ok(commit) = reference.and_then(|reference| reference.peel_to_commit()) else { continue };
            let found = GitTag { name: name.into(), tag: tag.clone(), commit: commit.id().to_string() };
            // Of `v1.0` and `1.0` the one in the upstream's own spelling stays.
            if name.starts_with(&self.tag_prefix) || !tags.contains_key(&tag) {
                tags.insert(tag, found);
            }
        }
        Ok(tags.into_values().collect())
    }

    fn release_of(&self, name: &str) -> Option<Tag> {
        let version = name.strip_prefix(&self.tag_prefix).unwrap_or(name);
        version.parse().or_else(|_| name.parse()).ok()
    }

    /// What a REF names: a tag by its name or release (`2.2.4` is `v2.2.4`), a branch, a full or short commit.
    pub fn resolve(&self, reference: &str) -> Result<Option<Resolved>, GitError> {
        let tags = self.tags()?;
        let by_name = tags.iter().find(|tag| tag.name == reference);
        let release = self.release_of(reference);
        let by_release = || tags.iter().find(|tag| Some(&tag.tag) == release.as_ref());
        if let Some(tag) = by_name.or_else(by_release) {
            let (commit, name) = (tag.commit.clone(), tag.name.clone());
            return Ok(Some(Resolved { commit, kind: RefKind::Tag, name }));
        }
        let places = [
            (format!("refs/tags/{reference}"), RefKind::Tag),
            (format!("refs/heads/{reference}"), RefKind::Branch),
            (format!("refs/remotes/origin/{reference}"), RefKind::Branch),
        ];
        for (place, kind) in places {
            let Ok(found) = self.repository.find_reference(&place) else { continue };
            let commit = found.peel_to_commit().map_err(|error| self.unreadable(&place, &error))?;
            return Ok(Some(Resolved { commit: commit.id().to_string(), kind, name: reference.into() }));
        }
        Ok(self.find_commit(reference))
    }

    fn find_commit(&self, reference: &str) -> Option<Resolved> {
        let digits = reference.len() >= 4 && reference.bytes().all(|byte| byte.is_ascii_hexdigit());
        let object = digits.then(|| self.repository.revparse_single(reference).ok())??;
        let commit = object.peel_to_commit().ok()?.id().to_string();
        let name = commit.get(..12)?.to_string();
        Some(Resolved { commit, kind: RefKind::Commit, name })
    }

    /// What a commit is: the newest release that points at it; else newer than the newest release it contains.
    /// Commits of this program on top of a release do not count.
    pub fn version_of(&self, commit: &str) -> Result<SourceVersion, GitError> {
        let tags = self.tags()?;
        let mut at = self.oid(commit)?;
        loop {
            let here = at.to_string();
            if let Some(tag) = tags.iter().rev().find(|tag| tag.commit == here) {
                return Ok(SourceVersion::Release(tag.tag.clone()));
            }
            match self.parent_of_own(at) {
                Some(parent) => at = parent,
                None => break,
            }
        }
        let contained = self.ancestors(at);
        let newest = tags.iter().rev().find(|tag| contained.contains(&tag.commit));
        Ok(newest.map_or(SourceVersion::Unknown, |tag| SourceVersion::After(tag.tag.clone())))
    }

    /// The newest commit at or below one that holds no commit of this program: the upstream's own state. None where no
    /// release tells how far back that is.
    pub fn pristine(&self, commit: &str) -> Result<Option<String>, GitError> {
        let mut at = self.oid(commit)?;
        while let Some(parent) = self.parent_of_own(at) {
            at = parent;
        }
        let contained = self.ancestors(at);
        let tags = self.tags()?;
        let newest = tags.iter().rev().find(|tag| contained.contains(&tag.commit));
        let below = match newest {
            Some(tag) => self.ancestors(self.oid(&tag.commit)?),
            None => HashSet::new(),
        };
        let is_own = |id: &&String| Oid::from_str(id).is_ok_and(|id| self.parent_of_own(id).is_some());
        match contained.difference(&below).find(is_own) {
            None => Ok(Some(at.to_string())),
            Some(_) => Ok(newest.map(|tag| tag.commit.clone())),
        }
    }

    /// The parent of a commit that this program made.
    fn parent_of_own(&self, commit: Oid) -> Option<Oid> {
        let commit = self.repository.find_commit(commit).ok()?;
        let trailer = format!("{TRAILER}:");
        let own = commit.message().ok()?.lines().any(|line| line.starts_with(&trailer));
        if own { commit.parent_id(0).ok() } else { None }
    }

    /// Every commit that can be reached. An absent commit ends its line of the walk, not the walk.
    fn ancestors(&self, from: Oid) -> HashSet<String> {
        let mut seen = HashSet::from([from]);
        let mut open = vec![from];
        while let Some(id) = open.pop() {
            let Ok(commit) = self.repository.find_commit(id) else { continue };
            open.extend(commit.parent_ids().filter(|parent| seen.insert(*parent)));
        }
        seen.into_iter().map(|id| id.to_string()).collect()
    }

    /// All regular files of a commit, below `prefix` (empty: all), by path from there. Links and submodules are left
    /// out.
    pub fn files(&self, commit: &str, prefix: &str) -> Result<BTreeMap<String, TreeFile>, GitError> {
        let tree = self.tree(commit)?;
        let mut files = BTreeMap::new();
        let inside = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let walked = tree.walk(TreeWalkMode::PreOrder, |folder, entry| {
            let Ok(name) = entry.name() else { return TreeWalkResult::Ok };
            let mode = entry.filemode();
            let is_file = entry.kind() == Some(ObjectType::Blob) && mode != 0o120_000;
            let path = format!("{folder}{name}");
            if let (true, Some(path)) = (is_file, path.strip_prefix(&inside)) {
                let file = TreeFile { blob: entry.id().to_string(), executable: mode == 0o100_755 };
                files.insert(path.to_string(), file);
            }
            TreeWalkResult::Ok
        });
        walked.map_err(|error| self.unreadable(&format!("the files of {commit}"), &error))?;
        Ok(files)
    }

    /// The paths of a commit's submodules. Their files are never read; a build may need them.
    pub fn submodules(&self, commit: &str) -> Result<Vec<String>, GitError> {
        let mut found = Vec::new();
        let walked = self.tree(commit)?.walk(TreeWalkMode::PreOrder, |folder, entry| {
            if let (0o160_000, Ok(name)) = (entry.filemode(), entry.name()) {
                found.push(format!("{folder}{name}"));
            }
            TreeWalkResult::Ok
        });
        walked.map_err(|error| self.unreadable(&format!("the files of {commit}"), &error))?;
        Ok(found)
    }

    /// The bytes of a blob.
    pub fn blob(&self, id: &str) -> Result<Vec<u8>, GitError> {
        let blob = self.repository.find_blob(self.oid(id)?);
        blob.map(|blob| blob.content().to_vec())
            .map_err(|error| self.unreadable(&format!("blob {id}"), &error))
    }

    /// The wanted files of a commit.
    pub fn read(&self, commit: &str, wanted: &dyn Fn(&str) -> bool) -> Result<Sources, GitError> {
        let files = self.files(commit, "")?;
        let wanted = files.into_iter().filter(|(path, _)| wanted(path));
        wanted.map(|(path, file)| Ok((path, self.blob(&file.blob)?))).collect()
    }

    /// The regular files that are tracked in the work tree below `prefix`, by path from there.
    pub fn tracked(&self, prefix: &str) -> Result<Vec<String>, GitError> {
        self.tracked_of(prefix, 0o100_000)
    }

    /// The tracked symbolic links below a folder, as seen from it.
    pub fn tracked_links(&self, prefix: &str) -> Result<Vec<String>, GitError> {
        self.tracked_of(prefix, 0o120_000)
    }

    fn tracked_of(&self, prefix: &str, kind: u32) -> Result<Vec<String>, GitError> {
        let index = self.repository.index().map_err(|error| self.unreadable("the index", &error))?;
        let inside = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let path = |entry: git2::IndexEntry| {
            let is_meant = entry.mode & 0o170_000 == kind;
            let path = String::from_utf8(entry.path).ok().filter(|_| is_meant)?;
            path.strip_prefix(&inside).map(str::to_string)
        };
        Ok(index.iter().filter_map(path).collect())
    }

    /// Which of these paths differ from what is committed, or lie untracked in the way.
    pub fn dirty(&self, paths: &[String]) -> Vec<String> {
        let is_dirty = |path: &&String| match self.repository.status_file(Path::new(path)) {
            Ok(status) => status != git2::Status::CURRENT,
            // Neither tracked nor there; a folder in its place is in the way.
            Err(_) => self.path().join(path).symlink_metadata().is_ok(),
        };
        paths.iter().filter(is_dirty).cloned().collect()
    }

    /// The root commit below HEAD (by first parents), if its message is this.
    pub fn root_commit_with(&self, message: &str) -> Option<String> {
        let mut at = self.repository.head().ok()?.peel_to_commit().ok()?;
        while let Ok(parent) = at.parent(0) {
            at = parent;
        }
        (at.message().ok()?.trim_end() == message).then(|| at.id().to_string())
    }

    /// What [`GitRepository::mark_prepared`] wrote into this repository's own configuration.
    pub fn prepared_for(&self) -> Option<String> {
        self.repository.config().ok()?.get_string(PREPARED).ok()
    }

    /// Remembers that this program made the checkout, and for what: it may be used again for the same.
    pub fn mark_prepared(&self, what: &str) -> Result<(), GitError> {
        let marked = self.repository.config().and_then(|mut config| config.set_str(PREPARED, what));
        marked.map_err(|error| GitError::Write { path: self.path(), cause: error.message().into() })
    }

    /// The folders of its objects: its own, and those that it borrows from.
    pub fn object_folders(&self) -> Vec<PathBuf> {
        let own = self.repository.commondir().join("objects");
        let borrowed = std::fs::read_to_string(own.join("info/alternates")).unwrap_or_default();
        let borrowed: Vec<PathBuf> = borrowed.lines().map(|line| own.join(line)).collect();
        [own].into_iter().chain(borrowed).collect()
    }

    /// Its tags, and its branches as a clone names them, with their objects.
    pub fn shared_references(&self) -> Vec<(String, Oid)> {
        let Ok(references) = self.repository.references() else { return Vec::new() };
        let shared = |reference: git2::Reference<'_>| {
            let (name, target) = (reference.name().ok()?.to_string(), reference.target()?);
            match name.strip_prefix("refs/heads/") {
                Some(branch) => Some((format!("refs/remotes/origin/{branch}"), target)),
                None => name.starts_with("refs/tags/").then_some((name, target)),
            }
        };
        references.flatten().filter_map(shared).collect()
    }

    fn oid(&self, id: &str) -> Result<Oid, GitError> {
        Oid::from_str(id).map_err(|error| self.unreadable(id, &error))
    }

    fn tree(&self, commit: &str) -> Result<git2::Tree<'_>, GitError> {
        let found = self.repository.find_commit(self.oid(commit)?);
        found.and_then(|found| found.tree()).map_err(|error| self.unreadable(commit, &error))
    }

    fn unreadable(&self, what: &str, error: &git2::Error) -> GitError {
        GitError::Read { path: self.path(), what: what.into(), cause: error.message().into() }
    }
}

/// The path from the root of the work tree to a folder that is the root or holds tracked files.
fn path_to_tracked(repository: &Repository, folder: &Path) -> Option<String> {
    let root = repository.workdir()?.canonicalize().ok()?;
    let full = folder.canonicalize().ok()?;
    let below = full.strip_prefix(&root).ok()?.to_str()?.replace('\\', "/");
    if !below.is_empty() {
        let inside = format!("{below}/");
        repository.index().ok()?.iter().find(|entry| entry.path.starts_with(inside.as_bytes()))?;
    }
    Some(below)
}

fn unopened(path: &Path, error: &git2::Error) -> GitError {
    match error.code() {
        ErrorCode::Owner => {
            let found = Repository::discover_path(path, &[] as &[&Path]).ok();
            let root = found.as_deref().map(|found| match found.file_name() {
                Some(name) if name == ".git" => found.parent().unwrap_or(found),
                _ => found,
            });
            GitError::NotTrusted { path: root.unwrap_or(path).into() }
        }
        _ => GitError::Open { path: path.into(), cause: error.message().into() },
    }
}
