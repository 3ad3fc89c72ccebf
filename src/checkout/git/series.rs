//! Commits that nothing points at until all of them are there, and the branch that then does.

use git2::build::TreeUpdateBuilder;
use git2::{BranchType, FileMode, Oid};

use super::{CommitToMake, GitError, GitRepository};
use crate::checkout::tree_path;
use crate::checkout::whole::{Entry, Kind};

/// Files that differ from a tree: what they become, or nothing where they go.
pub type Changes<'a> = Vec<(&'a str, Option<&'a Entry>)>;

/// One commit with any parents.
#[derive(Debug, Clone)]
pub struct Joined<'a> {
    /// The commit whose tree it starts from.
    pub tree_of: &'a str,
    /// What differs from that.
    pub changes: Changes<'a>,
    /// Its parents.
    pub parents: Vec<&'a str>,
    /// Its message.
    pub message: &'a str,
}

impl GitRepository {
    /// Copies a commit of another repository with all that it stands on.
    pub fn take(&self, other: &GitRepository, commit: &str) -> Result<(), GitError> {
        let copy = || {
            let id = Oid::from_str(commit)?;
            let mut walk = other.repository.revwalk()?;
            walk.push(id)?;
            let mut pack = other.repository.packbuilder()?;
            pack.insert_walk(&mut walk)?;
            let odb = self.repository.odb()?;
            let mut writer = odb.packwriter()?;
            let mut failed = None;
            pack.foreach(|bytes| {
                failed = std::io::Write::write_all(&mut writer, bytes).err();
                failed.is_none()
            })?;
            match failed {
                Some(error) => Err(git2::Error::from_str(&error.to_string())),
                None => writer.commit().map(drop),
            }
        };
        if self.commit(commit).is_ok() {
            return Ok(());
        }
        copy().map_err(|error: git2::Error| self.unwritable(&error))
    }

    /// One commit after the other on a base; the last one. Whether the user has no identity in git is told too.
    pub fn series(&self, base: &str, commits: &[CommitToMake]) -> Result<(String, bool), GitError> {
        let order = super::CommitBranch { base, branch: "", commits, checkout: false, when: None };
        let (who, own_identity) = self.signature(None)?;
        let trees = self.write_trees(&order)?;
        let made = self.write_commits(&order, &trees, &who)?;
        Ok((made.last().map_or_else(|| base.to_string(), Oid::to_string), own_identity))
    }

    /// One commit with any parents, which nothing points at yet.
    pub fn join(&self, joined: &Joined<'_>) -> Result<String, GitError> {
        let (who, _) = self.signature(None)?;
        let tree = self.tree(joined.tree_of)?;
        let mut update = TreeUpdateBuilder::new();
        for (path, entry) in &joined.changes {
            let refused = |what: String| GitError::NotAFile { path: (*path).into(), what };
            tree_path::checked(path).map_err(|why| refused(why.to_string()))?;
            match entry {
                Some(entry) => {
                    let blob = self.repository.blob(&entry.bytes).map_err(|error| self.unwritable(&error))?;
                    update.upsert(*path, blob, mode(entry.kind));
                }
                None => drop(update.remove(*path)),
            }
        }
        let failed = |error: git2::Error| self.unwritable(&error);
        let id = update.create_updated(&self.repository, &tree).map_err(failed)?;
        let tree = self.repository.find_tree(id).map_err(failed)?;
        let parents =
            joined.parents.iter().map(|parent| self.commit(parent)).collect::<Result<Vec<_>, _>>()?;
        let parents: Vec<_> = parents.iter().collect();
        let made =
            self.repository.commit(None, &who, &who, joined.message, &tree, &parents).map_err(failed)?;
        Ok(made.to_string())
    }

    /// Makes a branch, or moves it from the commit where it was seen. One that is checked out is left alone.
    pub fn point(&self, branch: &str, to: &str, from: Option<&str>) -> Result<(), GitError> {
        let name = format!("refs/heads/{branch}");
        if !super::is_branch_name(branch) {
            return Err(GitError::BadBranch { branch: branch.into() });
        }
        let to = self.oid(to)?;
        let existing = self.repository.find_branch(branch, BranchType::Local).ok();
        let (Some(existing), Some(from)) = (&existing, from) else {
            let exists = |_| GitError::BranchExists { branch: branch.into() };
            return self.repository.reference(&name, to, false, "mambapatch").map(drop).map_err(exists);
        };
        self.refuse_checked_out(branch, existing)?;
        let moved = self.repository.reference_matching(&name, to, true, self.oid(from)?, "mambapatch");
        moved.map(drop).map_err(|error| self.unwritable(&error))
    }

    fn refuse_checked_out(&self, name: &str, branch: &git2::Branch<'_>) -> Result<(), GitError> {
        let here = branch.is_head() && !self.is_bare();
        if here || self.is_checked_out_elsewhere(branch.get()) {
            return Err(GitError::CheckedOut { branch: name.into() });
        }
        Ok(())
    }

    /// The local branches whose newest commit has a file of this name in its root: name and commit.
    pub fn branches_with(&self, file: &str) -> Result<Vec<(String, String)>, GitError> {
        let branches = self.repository.branches(Some(BranchType::Local));
        let branches = branches.map_err(|error| self.unreadable("the branches", &error))?;
        let one = |branch: git2::Branch<'_>| {
            let commit = branch.get().peel_to_commit().ok()?;
            commit.tree().ok()?.get_name(file)?;
            Some((branch.name().ok()??.to_string(), commit.id().to_string()))
        };
        Ok(branches.flatten().filter_map(|(branch, _)| one(branch)).collect())
    }

    /// The newest commit below another one whose message has a line that begins like this.
    pub fn newest_with(&self, from: &str, line: &str) -> Result<Option<String>, GitError> {
        let walk = || {
            let mut walk = self.repository.revwalk()?;
            walk.push(Oid::from_str(from)?)?;
            walk.set_sorting(git2::Sort::TOPOLOGICAL).map(|()| walk)
        };
        let mut walk = walk().map_err(|error| self.unreadable(from, &error))?;
        let has_it = |id: &Oid| {
            let commit = self.repository.find_commit(*id).ok();
            commit.is_some_and(|commit| {
                commit.message().is_ok_and(|text| text.lines().any(|one| one.starts_with(line)))
            })
        };
        Ok(walk.by_ref().map_while(Result::ok).find(has_it).map(|id| id.to_string()))
    }
}

fn mode(kind: Kind) -> FileMode {
    match kind {
        Kind::File => FileMode::Blob,
        Kind::Executable => FileMode::BlobExecutable,
        Kind::Link => FileMode::Link,
    }
}
