//! What a repository tells of its history, and commits as patches.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use git2::{
    DiffFormat, DiffStatsFormat, ErrorCode, ObjectType, Oid, Repository, TreeWalkMode, TreeWalkResult,
};

use super::{GitError, GitRepository, RefKind, Resolved};
use crate::checkout::names;

/// Who makes commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name.
    pub name: String,
    /// The address of mail.
    pub email: String,
}

/// A commit as others get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitPatch {
    /// The commit, in hexadecimal digits.
    pub commit: String,
    /// Who made it.
    pub author: Identity,
    /// Seconds since 1970, and the minutes that the author's clock is ahead of UTC.
    pub time: (i64, i32),
    /// The first line of its message.
    pub subject: String,
    /// The rest of its message.
    pub body: String,
    /// How many lines of which files change.
    pub stat: String,
    /// Its difference to its parent, as git writes it.
    pub diff: Vec<u8>,
}

impl GitRepository {
    /// The branch that upstream works on: `origin`'s in a clone with a work tree, else that of HEAD.
    pub fn default_branch(&self) -> Result<Option<Resolved>, GitError> {
        let remote = self.repository.find_reference("refs/remotes/origin/HEAD").ok();
        let remote = remote.and_then(|head| head.resolve().ok());
        let head = match remote.map_or_else(|| self.repository.head(), Ok) {
            Ok(head) => head,
            Err(error) if matches!(error.code(), ErrorCode::UnbornBranch | ErrorCode::NotFound) => {
                return Ok(None);
            }
            Err(error) => return Err(self.unreadable("HEAD", &error)),
        };
        let name = head.shorthand().unwrap_or("HEAD");
        let name = name.strip_prefix("origin/").unwrap_or(name).to_string();
        let commit = head.peel_to_commit().map_err(|error| self.unreadable(&name, &error))?.id().to_string();
        let kind = if name == "HEAD" { RefKind::Commit } else { RefKind::Branch };
        let name = if name == "HEAD" { commit.chars().take(12).collect() } else { name };
        Ok(Some(Resolved { commit, kind, name }))
    }

    /// The subjects of the newest commits below `from` that changed one of these paths, at most `most`; without merges.
    /// A commit whose objects are absent is passed over.
    pub fn subjects(&self, from: &str, paths: &[String], most: usize) -> Result<Vec<String>, GitError> {
        let walk = || {
            let mut walk = self.repository.revwalk()?;
            walk.push(Oid::from_str(from)?)?;
            walk.set_sorting(git2::Sort::TIME).map(|()| walk)
        };
        let walk = walk().map_err(|error| self.unreadable(from, &error))?;
        let subject = |commit: Oid| {
            let commit = self.repository.find_commit(commit).ok()?;
            let subject = commit.summary().ok().flatten()?.to_string();
            (commit.parent_count() < 2 && touches(&commit, paths)).then_some(subject)
        };
        Ok(walk.map_while(Result::ok).filter_map(subject).take(most).collect())
    }

    /// The identity that the user gave git; none where there is none.
    pub fn identity(&self) -> Option<Identity> {
        let signature = self.repository.signature().ok()?;
        let text =
            |value: Result<&str, _>| value.ok().map(str::to_string).filter(|text| !text.trim().is_empty());
        Some(Identity { name: text(signature.name())?, email: text(signature.email())? })
    }

    /// The address that a remote of this name is pushed to.
    pub fn push_address(&self, remote: &str) -> Option<String> {
        let remote = self.repository.find_remote(remote).ok()?;
        let address = remote.pushurl().ok().flatten().map(str::to_string);
        address.or_else(|| remote.url().ok().map(str::to_string))
    }

    /// A new bare repository in an empty folder that has every object of another one, without a copy, and in which
    /// that identity commits.
    pub fn borrowing(folder: &Path, from: &GitRepository, who: &Identity) -> Result<Self, GitError> {
        let failed = |cause: String| GitError::Write { path: folder.into(), cause };
        let made = || {
            let repository = Repository::init_bare(folder)?;
            let mut config = repository.config()?;
            config.set_str("user.name", &who.name)?;
            config.set_str("user.email", &who.email)
        };
        made().map_err(|error: git2::Error| failed(error.message().into()))?;
        let folders = from.object_folders().into_iter().map(|folder| folder.canonicalize().unwrap_or(folder));
        let lines: String = folders.map(|folder| format!("{}\n", folder.display())).collect();
        fs::write(folder.join("objects/info/alternates"), lines)
            .map_err(|error| failed(error.to_string()))?;
        Self::open(folder, &from.tag_prefix)
    }

    /// A commit as a patch.
    pub fn patch(&self, commit: &str) -> Result<CommitPatch, GitError> {
        let failed = |error: git2::Error| self.unreadable(commit, &error);
        let found = self.repository.find_commit(self.oid(commit)?).map_err(failed)?;
        let parent = found.parent_id(0).map_err(failed)?.to_string();
        let (stat, diff) = self.difference(&parent, commit)?;
        let (author, time) = (found.author(), found.time());
        Ok(CommitPatch {
            commit: commit.to_string(),
            author: Identity {
                name: author.name().unwrap_or_default().into(),
                email: author.email().unwrap_or_default().into(),
            },
            time: (time.seconds(), time.offset_minutes()),
            subject: found.summary().ok().flatten().unwrap_or_default().to_string(),
            body: found.body().ok().flatten().unwrap_or_default().to_string(),
            stat,
            diff,
        })
    }

    /// Every file, link and submodule of a commit: path, mode, object.
    pub fn listed(&self, commit: &str) -> Result<Vec<(String, u32, String)>, GitError> {
        let mut found = Vec::new();
        let mut unreadable = None;
        let walked = self.tree(commit)?.walk(TreeWalkMode::PreOrder, |folder, entry| {
            match entry.name() {
                Ok(_) if entry.kind() == Some(ObjectType::Tree) => {}
                Ok(name) => {
                    let mode = u32::try_from(entry.filemode()).unwrap_or(0);
                    found.push((format!("{folder}{name}"), mode, entry.id().to_string()));
                }
                Err(_) => {
                    unreadable = Some(format!("{folder}{}", String::from_utf8_lossy(entry.name_bytes())))
                }
            }
            TreeWalkResult::Ok
        });
        walked.map_err(|error| self.unreadable(commit, &error))?;
        match unreadable {
            Some(path) => Err(GitError::NotAFile { path, what: "its name is no UTF-8".into() }),
            None => Ok(found),
        }
    }

    /// The files of a commit whose names are no UTF-8, as they are shown.
    pub fn unnamed(&self, commit: &str) -> Result<Vec<String>, GitError> {
        let mut found = Vec::new();
        let walked = self.tree(commit)?.walk(TreeWalkMode::PreOrder, |folder, entry| {
            if entry.name().is_err() {
                found.push(format!("{folder}{}", names::shown(entry.name_bytes())));
            }
            TreeWalkResult::Ok
        });
        walked.map_err(|error| self.unreadable(commit, &error))?;
        Ok(found)
    }

    /// The tracked files below a folder whose names are no UTF-8, as they are shown.
    pub fn unnamed_below(&self, prefix: &str) -> Result<Vec<String>, GitError> {
        let index = self.repository.index().map_err(|error| self.unreadable("the index", &error))?;
        let inside = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        let unnamed = index.iter().filter(|entry| std::str::from_utf8(&entry.path).is_err());
        let below =
            unnamed.filter_map(|entry| Some(names::shown(entry.path.strip_prefix(inside.as_bytes())?)));
        Ok(below.collect())
    }

    /// The id of a commit's tree.
    pub fn tree_id(&self, commit: &str) -> Result<String, GitError> {
        Ok(self.tree(commit)?.id().to_string())
    }

    /// The id of HEAD's tree, where no tracked file differs from it.
    pub fn clean_tree_id(&self) -> Option<String> {
        let tracked = self.tracked("").ok()?;
        let head = self.head().ok().filter(|_| self.dirty(&tracked).is_empty())?;
        self.tree_id(&head).ok()
    }

    /// How one commit differs from another: how many lines of which files, and the diff.
    pub fn difference(&self, from: &str, to: &str) -> Result<(String, Vec<u8>), GitError> {
        let failed = |error: git2::Error| self.unreadable(to, &error);
        let (old, new) = (self.tree(from)?, self.tree(to)?);
        let diff = self.repository.diff_tree_to_tree(Some(&old), Some(&new), None).map_err(failed)?;
        let stat = diff.stats().and_then(|stats| stats.to_buf(DiffStatsFormat::FULL, 72)).map_err(failed)?;
        Ok((String::from_utf8_lossy(&stat).into_owned(), diff_text(&diff).map_err(failed)?))
    }
}

/// Which of these paths below a folder the repository around it ignores; outside of one, what Python leaves behind.
pub fn ignored(folder: &Path, paths: &[&str]) -> BTreeSet<String> {
    let around = Repository::discover(folder).ok().filter(|repository| !repository.is_bare());
    let is_ignored = |path: &&&str| match &around {
        Some(repository) => repository.is_path_ignored(folder.join(path)).unwrap_or(false),
        None => path.split('/').any(|part| part == "__pycache__"),
    };
    paths.iter().filter(is_ignored).map(|path| path.to_string()).collect()
}

/// Whether a commit changed one of these paths; the first one changed all that it has.
fn touches(commit: &git2::Commit<'_>, paths: &[String]) -> bool {
    let id = |tree: Result<git2::Tree<'_>, git2::Error>, path: &String| {
        tree.ok()?.get_path(Path::new(path)).ok().map(|entry| entry.id())
    };
    let parent = commit.parent(0).ok();
    paths
        .iter()
        .any(|path| id(commit.tree(), path) != parent.as_ref().and_then(|parent| id(parent.tree(), path)))
}

/// A diff as git writes it, byte for byte.
pub fn diff_text(diff: &git2::Diff<'_>) -> Result<Vec<u8>, git2::Error> {
    let mut text = Vec::new();
    diff.print(DiffFormat::Patch, |_, _, line| {
        if matches!(line.origin(), ' ' | '+' | '-') {
            text.push(line.origin() as u8);
        }
        text.extend_from_slice(line.content());
        true
    })?;
    Ok(text)
}
