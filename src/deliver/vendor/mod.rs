//! Vendored trees: a patched upstream in somebody else's repository, with a record of what it is made of.

pub mod branch;
pub mod disk;
pub mod hunks;
pub mod lock;
pub mod merge;
pub mod record;
pub mod state;
pub mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use disk::{Becomes, Disk, Place};
use merge::{Conflict, Sides, changes};
use record::Recorded;
use state::State;
use tree::{FILES, LOCK, Tree};

use super::DeliverError;
use crate::checkout::{Entry, Kind, Whole, is_free};

/// What became of local work in an update.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updated {
    /// Whether the tree was the new one already.
    pub already: bool,
    /// Files that a person made other than the new record has them, and came along.
    pub yours: BTreeMap<String, &'static str>,
    /// What a person must decide.
    pub conflicts: Vec<Conflict>,
}

impl Updated {
    /// Nothing was to be done.
    fn nothing() -> Self {
        Self { already: true, yours: BTreeMap::new(), conflicts: Vec::new() }
    }

    /// What a merge made of local work.
    fn of(merged: &merge::Merged, new: &Recorded) -> Self {
        let mut yours = changes(&new.tree, &merged.tree);
        yours.retain(|path, _| !merged.conflicts.iter().any(|conflict| conflict.is_at(path)));
        Self { already: false, yours, conflicts: merged.conflicts.clone() }
    }
}

/// A folder with all links on the way to it resolved; it need not be there itself.
pub fn resolved(folder: &Path) -> Result<PathBuf, DeliverError> {
    let failed = |cause| DeliverError::Write { path: folder.into(), cause };
    if let Ok(found) = folder.canonicalize() {
        return Ok(found);
    }
    let (parent, name) = (folder.parent(), folder.file_name());
    let (Some(parent), Some(name)) = (parent, name) else { return Ok(folder.into()) };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    fs::create_dir_all(parent).map_err(failed)?;
    Ok(parent.canonicalize().map_err(failed)?.join(name))
}

/// What keeps other runs away from a folder that is written, as long as it lives.
#[derive(Debug)]
pub struct Alone(#[expect(dead_code, reason = "it is there to be dropped")] Option<File>);

impl Alone {
    /// Waits a while for another run to end. Runs know each other by the folder above.
    pub fn at(folder: &Path) -> Result<Self, DeliverError> {
        let above = folder.parent().and_then(|parent| File::open(parent).ok());
        let Some(above) = above else { return Ok(Self(None)) };
        for _ in 0..100 {
            match above.try_lock() {
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(50)),
                // A file system without locks keeps nobody away.
                Ok(()) | Err(TryLockError::Error(_)) => return Ok(Self(Some(above))),
            }
        }
        Err(DeliverError::AtWork { folder: folder.into() })
    }
}

/// Completes or takes away what a run left that was killed.
pub fn recover(folder: &Path, disk: &dyn Disk) -> Result<(), DeliverError> {
    Place::new(folder, disk).recover().map_err(|cause| DeliverError::Write { path: folder.into(), cause })
}

/// Writes a new vendored tree. The same again is nothing to do: false.
pub fn add(recorded: &Recorded, folder: &Path, disk: &dyn Disk) -> Result<bool, DeliverError> {
    let failed = |cause| DeliverError::Write { path: folder.into(), cause };
    let _alone = Alone::at(folder)?;
    recover(folder, disk)?;
    if !is_free(folder).map_err(failed)? {
        return match State::of_folder(folder) {
            Ok(state) if state.lock.is_same(&recorded.lock) && state.deviations().is_empty() => Ok(false),
            _ => Err(DeliverError::InUse { folder: folder.into() }),
        };
    }
    let tree = with_listing(&recorded.tree, recorded);
    let (lock, nothing) = (recorded.lock.text(), BTreeSet::new());
    let last = (LOCK, lock.as_bytes());
    let becomes = Becomes { tree: &tree, same: &nothing, extras: &nothing, last };
    Place::new(folder, disk).create(&becomes).map(|()| true).map_err(failed)
}

fn with_listing(tree: &Tree, recorded: &Recorded) -> Tree {
    let listing = Entry { kind: Kind::File, bytes: recorded.listing().into_bytes() };
    tree.iter()
        .map(|(path, entry)| (path.clone(), entry.clone()))
        .chain([(FILES.to_string(), listing)])
        .collect()
}

/// What a tree becomes.
pub struct Update<'a> {
    /// The upstream's files at the recorded state, where they are needed.
    pub source: Option<&'a Whole>,
    /// What is to be recorded now.
    pub new: &'a Recorded,
    /// How that is called in a file with conflicts.
    pub name: &'a str,
}

impl Update<'_> {
    /// Merges what a person did since the record into the new tree. `None` where nothing is to be done.
    pub fn merged(&self, state: &State) -> Result<Option<merge::Merged>, DeliverError> {
        state.refuse_marks()?;
        let base = state.recorded(self.source)?;
        if base == self.new.tree && state.lock.is_same(&self.new.lock) {
            return Ok(None);
        }
        let ours = state.local(&self.new.tree)?;
        let sides = Sides { base: &base, ours: &ours, theirs: &self.new.tree, name: self.name };
        merge::merge(sides).map(Some).map_err(DeliverError::Merge)
    }

    /// Puts the new tree in the place of the folder's, with what a person did.
    pub fn of_folder(&self, state: &State, disk: &dyn Disk) -> Result<Updated, DeliverError> {
        let folder = &state.folder;
        let failed = |cause| DeliverError::Write { path: folder.clone(), cause };
        let Some(merged) = self.merged(state)? else { return Ok(Updated::nothing()) };
        let local = state.local(&self.new.tree)?;
        let extras = state.extras.iter().filter(|path| !merged.tree.contains_key(*path));
        let extras = extras.filter(|path| !local.contains_key(*path)).cloned().collect();
        let is_same = |(path, entry): &(&String, &Entry)| local.get(*path) == Some(*entry);
        let same = merged.tree.iter().filter(is_same).map(|(path, _)| path.clone()).collect();
        let tree = with_listing(&merged.tree, self.new);
        let lock = self.new.lock.text();
        let becomes = Becomes { tree: &tree, same: &same, extras: &extras, last: (LOCK, lock.as_bytes()) };
        Place::new(folder, disk).replace(&becomes).map_err(failed)?;
        Ok(Updated::of(&merged, self.new))
    }
}

/// What a person did since the record, as a diff; additions that `ignored` names are left out.
pub fn local_work(
    state: &State,
    source: Option<&Whole>,
    ignored: &dyn Fn(&str) -> bool,
) -> Result<Vec<u8>, DeliverError> {
    let base = state.recorded(source)?;
    let mut ours = state.tree.clone();
    for addition in state.additions(ignored) {
        if let Some(entry) = state.extra(&addition.path)? {
            ours.insert(addition.path, entry);
        }
    }
    merge::difference(&base, &ours).map_err(DeliverError::Merge)
}
