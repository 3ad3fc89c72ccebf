//! A vendored tree as a branch: upstream's history, one commit per patch, and a commit that records it.

use std::collections::BTreeMap;
use std::path::Path;

use super::merge::changes;
use super::record::{Recorded, own_files};
use super::state::State;
use super::tree::{LOCK, PATCHES, Tree};
use super::{Update, Updated};
use crate::checkout::git::{CommitToMake, GitRepository, Joined};
use crate::checkout::{Entry, Kind};
use crate::deliver::DeliverError;

/// The trailer of a commit that records a vendored tree.
const TRAILER: &str = "Mambapatch-Record: ";

/// A branch that is a vendored tree.
#[derive(Debug)]
pub struct Branch {
    /// The repository.
    pub repository: GitRepository,
    /// Its name.
    pub name: String,
    /// Its newest commit.
    pub tip: String,
}

/// What a branch is made from.
pub struct Source<'a> {
    /// The repository that has the upstream's history.
    pub repository: &'a GitRepository,
    /// The commit that was patched.
    pub commit: &'a str,
    /// The patches.
    pub patches: &'a [CommitToMake],
}

/// What became of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// What became of local work.
    pub updated: Updated,
    /// Where the new tree without local work lies, when a person must merge.
    pub beside: Option<String>,
}

impl Branch {
    /// The vendored branch of a repository: that of a name, else the only one that has a record.
    pub fn find(folder: &Path, name: Option<&str>) -> Result<Self, DeliverError> {
        let repository = GitRepository::open(folder, "v")?;
        let mut found = repository.branches_with(LOCK)?;
        found.retain(|(branch, _)| name.is_none_or(|name| name == branch));
        match found.as_slice() {
            [(name, tip)] => {
                let (name, tip) = (name.clone(), tip.clone());
                Ok(Self { repository, name, tip })
            }
            [] => Err(DeliverError::NoBranch { folder: folder.into(), name: name.map(str::to_string) }),
            several => {
                let names = several.iter().map(|(name, _)| name.clone()).collect();
                Err(DeliverError::SeveralBranches { folder: folder.into(), names })
            }
        }
    }

    /// What the branch holds.
    pub fn state(&self) -> Result<State, DeliverError> {
        State::of_whole(&self.repository.path(), &self.repository.whole(&self.tip)?)
    }

    /// Puts the new tree, with what a person did, onto the branch. Where a person must decide, the branch stays, and the
    /// new tree lies beside it, ready to be merged.
    pub fn update(&self, source: &Source<'_>, update: &Update<'_>) -> Result<Moved, DeliverError> {
        let state = self.state()?;
        let Some(merged) = update.merged(&state)? else {
            return Ok(Moved { updated: Updated::nothing(), beside: None });
        };
        let old = self.repository.newest_with(&self.tip, TRAILER)?;
        let old = old.ok_or_else(|| DeliverError::NoBranch {
            folder: self.repository.path(),
            name: Some(self.name.clone()),
        })?;
        let new = recorded(&self.repository, source, (update.new, Some(&old)))?;
        if !merged.conflicts.is_empty() {
            let beside = format!("{}-{}", self.name, update.new.lock.upstream.reference);
            self.repository.point(&beside, &new, None)?;
            return Ok(Moved { updated: Updated::of(&merged, update.new), beside: Some(beside) });
        }
        let tip = if self.tip == old { new } else { self.joined(&new, (&update.new.tree, &merged.tree))? };
        self.repository.point(&self.name, &tip, Some(&self.tip))?;
        Ok(Moved { updated: Updated::of(&merged, update.new), beside: None })
    }

    /// The commit that joins local work with the new record.
    fn joined(&self, new: &str, (from, to): (&Tree, &Tree)) -> Result<String, DeliverError> {
        let differ = changes(from, to);
        let changes = differ.keys().map(|path| (path.as_str(), to.get(path))).collect();
        let message = format!("Merge the new record into {}\n", self.name);
        let joined = Joined { tree_of: new, changes, parents: vec![&self.tip, new], message: &message };
        Ok(self.repository.join(&joined)?)
    }
}

/// Makes the branch. The same again is nothing to do: false; and whether the user has no identity in git.
pub fn add(
    folder: &Path,
    name: &str,
    (source, new): (&Source<'_>, &Recorded),
) -> Result<(bool, bool), DeliverError> {
    let repository = GitRepository::open(folder, "v")?;
    let existing = repository.branches_with(LOCK)?.into_iter().find(|(branch, _)| branch == name);
    if let Some((name, tip)) = existing {
        let same = Branch { repository, name: name.clone(), tip }.state()?;
        return match same.lock.is_same(&new.lock) && same.deviations().is_empty() {
            true => Ok((false, false)),
            false => Err(crate::checkout::git::GitError::BranchExists { branch: name }.into()),
        };
    }
    let own_identity = repository.identity().is_none();
    let tip = recorded(&repository, source, (new, None))?;
    repository.point(name, &tip, None)?;
    Ok((true, own_identity))
}

/// The upstream's commit, the patches, and the commit that records them; nothing points at it yet.
fn recorded(
    repository: &GitRepository,
    source: &Source<'_>,
    (new, old): (&Recorded, Option<&str>),
) -> Result<String, DeliverError> {
    repository.take(source.repository, source.commit)?;
    let (series, _) = repository.series(source.commit, source.patches)?;
    let own =
        own_files(new).into_iter().map(|(path, bytes)| (path.to_string(), Entry { kind: Kind::File, bytes }));
    let patches = new.tree.iter().filter(|(path, _)| path.starts_with(&format!("{PATCHES}/")));
    let files: BTreeMap<String, Entry> =
        patches.map(|(path, entry)| (path.clone(), entry.clone())).chain(own).collect();
    let origin = &new.lock.upstream;
    let message = format!("Record {} {}\n\n{TRAILER}{}\n", origin.id, origin.reference, new.lock.tree.digest);
    let changes = files.iter().map(|(path, entry)| (path.as_str(), Some(entry))).collect();
    let parents = std::iter::once(series.as_str()).chain(old).collect();
    Ok(repository.join(&Joined { tree_of: &series, changes, parents, message: &message })?)
}
