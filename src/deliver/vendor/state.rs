//! A vendored tree as it lies there: what deviates from its record, and what the record says was there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::hunks;
use super::lock::{Lock, digest};
use super::merge;
use super::tree::{self, FILES, LOCK, Listed, PATCHES, Tree, blob_id, entry_at, read_listing};
use crate::checkout::cache::sha256;
use crate::checkout::{Entry, Kind, Whole};
use crate::deliver::DeliverError;

/// A vendored tree as it lies there.
#[derive(Debug)]
pub struct State {
    /// Where it lies.
    pub folder: PathBuf,
    /// Its record.
    pub lock: Lock,
    /// What the record says of each file.
    pub listed: BTreeMap<String, Listed>,
    /// The recorded files that are there, as they are.
    pub tree: Tree,
    /// What is there besides; empty folders end in `/`.
    pub extras: BTreeSet<String>,
    /// What is there besides, where it lies in a commit.
    others: Tree,
    /// What is wrong with the record itself.
    faults: Vec<Deviation>,
}

/// A file that is not as recorded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deviation {
    /// Its path.
    pub path: String,
    /// What is the matter.
    pub what: &'static str,
}

/// Gives the entry at a path; none where nothing stands.
type Reader<'a> = dyn Fn(&str) -> Result<Option<Entry>, DeliverError> + 'a;

impl State {
    /// Reads a vendored folder.
    pub fn of_folder(folder: &Path) -> Result<Self, DeliverError> {
        let failed = |cause| DeliverError::Read { path: folder.into(), cause };
        let own = |path: &str| entry_at(folder, path).map_err(failed);
        let lock = own(LOCK)?.ok_or_else(|| DeliverError::NotVendored { folder: folder.into() })?;
        let paths = tree::paths(folder).map_err(failed)?;
        Self::new(folder, (&lock, own(FILES)?.as_ref()), (&paths, &|path| own(path)))
    }

    /// Reads a vendored tree that lies in a commit.
    pub fn of_whole(folder: &Path, whole: &Whole) -> Result<Self, DeliverError> {
        let own = |path: &str| whole.entries.get(path).cloned();
        let lock = own(LOCK).ok_or_else(|| DeliverError::NotVendored { folder: folder.into() })?;
        let paths = whole.entries.keys().cloned().collect();
        let state = Self::new(folder, (&lock, own(FILES).as_ref()), (&paths, &|path| Ok(own(path))))?;
        let others = state.extras.iter().filter_map(|path| Some((path.clone(), own(path)?))).collect();
        Ok(Self { others, ..state })
    }

    fn new(
        folder: &Path,
        (lock, files): (&Entry, Option<&Entry>),
        (paths, read): (&BTreeSet<String>, &Reader<'_>),
    ) -> Result<Self, DeliverError> {
        let text = String::from_utf8_lossy(&lock.bytes);
        let lock = Lock::read(&text)
            .map_err(|message| DeliverError::BadLock { path: folder.join(LOCK), message })?;
        let files = files.map_or(&[][..], |files| &files.bytes);
        let listed = read_listing(&String::from_utf8_lossy(files)).unwrap_or_default();
        let mut faults = Vec::new();
        if digest(files) != lock.tree.digest {
            faults.push(Deviation { path: FILES.into(), what: "is not the list that the record speaks of" });
        }
        let mut tree = Tree::new();
        for path in listed.keys() {
            if let Some(entry) = read(path)? {
                tree.insert(path.clone(), entry);
            }
        }
        let own = [LOCK, FILES];
        let extras = paths.iter().filter(|path| !own.contains(&path.as_str()) && !tree.contains_key(*path));
        let extras = extras.cloned().collect();
        let others = Tree::new();
        Ok(Self { folder: folder.into(), lock, listed, tree, extras, others, faults })
    }

    /// Whether a recorded file is as recorded.
    fn is_kept(&self, path: &str) -> bool {
        let (Some(listed), Some(entry)) = (self.listed.get(path), self.tree.get(path)) else { return false };
        is_listed(listed, entry)
    }

    /// What deviates, without what is there besides.
    pub fn deviations(&self) -> Vec<Deviation> {
        let of = |(path, listed): (&String, &Listed)| {
            let what = match self.tree.get(path) {
                None => "missing",
                Some(entry) if is_listed(listed, entry) => return None,
                Some(entry) if entry.kind == Kind::Link || listed.kind == Kind::Link => "changed",
                Some(entry) if sha256(&entry.bytes) == listed.sha256 => "mode changed",
                Some(entry) if has_marks(entry) => "has conflict marks",
                Some(_) => "changed",
            };
            Some(Deviation { path: path.clone(), what })
        };
        let changed = self.lock.changed.iter().filter_map(|changed| {
            let entry = self.tree.get(&changed.path).filter(|_| self.is_kept(&changed.path))?;
            let wrong = blob_id(&entry.bytes) != changed.after;
            let what = "is not what the record says the patches made of it";
            wrong.then(|| Deviation { path: changed.path.clone(), what })
        });
        self.faults.iter().cloned().chain(self.listed.iter().filter_map(of)).chain(changed).collect()
    }

    /// What is there besides, as far as it counts: not below a submodule, and not where `ignored` says so.
    pub fn additions(&self, ignored: &dyn Fn(&str) -> bool) -> Vec<Deviation> {
        let counts = |path: &&String| !path.ends_with('/') && !self.is_of_submodule(path) && !ignored(path);
        let extras = self.extras.iter().filter(counts);
        extras.map(|path| Deviation { path: path.clone(), what: "not recorded" }).collect()
    }

    fn is_of_submodule(&self, path: &str) -> bool {
        self.lock.submodule.iter().any(|module| {
            path.strip_prefix(&module.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }

    /// Whether the upstream's files are needed to tell what was recorded.
    pub fn needs_source(&self) -> bool {
        self.listed.keys().any(|path| !self.is_kept(path))
    }

    /// The tree that was recorded: what is as recorded from here, all else from the upstream and the kept patches.
    pub fn recorded(&self, source: Option<&Whole>) -> Result<Tree, DeliverError> {
        self.refuse_hand_made()?;
        let one = |(path, listed): (&String, &Listed)| {
            if self.is_kept(path) {
                return Ok((path.clone(), self.tree[path].clone()));
            }
            let entry = source.and_then(|source| self.made_again(path, source));
            let entry = entry.map(|bytes| Entry { kind: listed.kind, bytes });
            match entry.filter(|entry| is_listed(listed, entry)) {
                Some(entry) => Ok((path.clone(), entry)),
                None => Err(DeliverError::SourceDiffers { path: path.clone() }),
            }
        };
        self.listed.iter().map(one).collect()
    }

    /// A record that a person changed tells nothing.
    fn refuse_hand_made(&self) -> Result<(), DeliverError> {
        let is_own = |path: &&String| path.starts_with(&format!("{PATCHES}/"));
        let patches = self.listed.keys().filter(is_own).filter(|path| !self.is_kept(path));
        match self.faults.iter().map(|fault| &fault.path).chain(patches).next() {
            Some(path) => Err(DeliverError::HandMade { path: path.clone() }),
            None => Ok(()),
        }
    }

    /// The recorded bytes of a file, from the upstream's and the kept patches.
    fn made_again(&self, path: &str, source: &Whole) -> Option<Vec<u8>> {
        if path == tree::ATTRIBUTES && self.lock.tree.left_out.iter().any(|left| left == path) {
            return Some(super::record::OWN_ATTRIBUTES.into());
        }
        let Some(entry) = source.entries.get(path) else {
            return (path == tree::ATTRIBUTES).then(|| super::record::OWN_ATTRIBUTES.into());
        };
        let patches = self.tree.iter().filter(|(name, _)| name.starts_with(&format!("{PATCHES}/")));
        patches
            .into_iter()
            .try_fold(entry.bytes.clone(), |bytes, (_, patch)| hunks::apply(&bytes, &patch.bytes, path))
    }

    /// The tree as the person has it, with those additions that the new tree could run into or that a recorded file
    /// may have been renamed to.
    pub fn local(&self, new: &Tree) -> Result<Tree, DeliverError> {
        let mut local = self.tree.clone();
        let lacks_some = self.listed.keys().any(|path| !self.tree.contains_key(path));
        for path in &self.extras {
            let is_small =
                || self.folder.join(path).metadata().is_ok_and(|found| found.len() <= LARGEST_RENAMED);
            let may_be_renamed = || lacks_some && !self.is_of_submodule(path) && is_small();
            if new.contains_key(path) || self.others.contains_key(path) || may_be_renamed() {
                local.extend(self.extra(path)?.map(|entry| (path.clone(), entry)));
            }
        }
        Ok(local)
    }

    /// Something that is there besides.
    pub fn extra(&self, path: &str) -> Result<Option<Entry>, DeliverError> {
        if let Some(entry) = self.others.get(path) {
            return Ok(Some(entry.clone()));
        }
        entry_at(&self.folder, path)
            .map_err(|cause| DeliverError::Read { path: self.folder.join(path), cause })
    }

    /// Refuses to go on while marks of an earlier conflict stand in files.
    pub fn refuse_marks(&self) -> Result<(), DeliverError> {
        let marked = self.tree.iter().filter(|(path, entry)| !self.is_kept(path) && has_marks(entry));
        let files: Vec<String> = marked.map(|(path, _)| path.clone()).collect();
        if files.is_empty() { Ok(()) } else { Err(DeliverError::Marks { files }) }
    }
}

/// The largest addition that may be a renamed file.
const LARGEST_RENAMED: u64 = 1 << 20;

fn is_listed(listed: &Listed, entry: &Entry) -> bool {
    let same_kind = match (listed.kind, entry.kind) {
        (Kind::Link, kind) | (kind, Kind::Link) => kind == Kind::Link,
        // Only Unix tells whether a file may be executed.
        (one, other) => one == other || !cfg!(unix),
    };
    same_kind && listed.sha256 == sha256(&entry.bytes)
}

/// Whether the marks of a conflict stand in a file.
fn has_marks(entry: &Entry) -> bool {
    let mark = format!("<<<<<<< {}\n", merge::OURS);
    entry.bytes.split_inclusive(|byte| *byte == b'\n').any(|line| line == mark.as_bytes())
}
