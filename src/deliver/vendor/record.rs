//! What a vendored tree should hold: the upstream's files as patches leave them, and the record of it.

use std::collections::BTreeMap;

use super::lock::{Changed, Lock, Origin, Parameters, Record, SubmoduleRecord, Used, digest};
use super::tree::{ATTRIBUTES, FILES, LOCK, PATCHES, Tree, blob_id, listing};
use crate::checkout::tree_path::link_stays;
use crate::checkout::{Entry, Kind, Target, Whole};
use crate::deliver::DeliverError;
use crate::deliver::prose::wrapped;
use crate::engine::patchset::Patch;
use crate::engine::plan::preview::FileDiff;
use crate::engine::plan::{PatchPlan, Plan};

/// What is recorded, and of what.
#[derive(Debug)]
pub struct Making<'a> {
    /// The source that was patched.
    pub target: &'a Target,
    /// Its upstream's id.
    pub upstream: &'a str,
    /// Where it is cloned from.
    pub url: Option<String>,
    /// The patches that were asked for.
    pub patches: Vec<&'a Patch>,
    /// What they do.
    pub plan: &'a Plan,
    /// The flags that ask for the same again.
    pub asked: Parameters,
    /// Whether the repository around the tree must be kept from changing its bytes.
    pub in_folder: bool,
}

/// What a vendored tree should hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Every file but the two of the record itself.
    pub tree: Tree,
    /// The record.
    pub lock: Lock,
    /// What the person should know.
    pub notes: Vec<String>,
}

/// What stands in the `.gitattributes` of a vendored folder.
pub(super) const OWN_ATTRIBUTES: &str = "\
# Written by `mambapatch vendor`: every byte stays as upstream and the patches have it.
* -text -ident -filter -working-tree-encoding -export-subst
";

/// Works out the tree and its record.
pub fn record(making: &Making<'_>) -> Result<Recorded, DeliverError> {
    let whole = making.target.whole()?;
    refuse_strange(&whole)?;
    let mut tree = whole.entries.clone();
    let left_out = if making.in_folder { leave_out_attributes(&mut tree) } else { Vec::new() };
    let changed = change(making.plan, &mut tree)?;
    for (number, patch) in changing(making.plan).enumerate() {
        let known = making.patches.iter().find(|known| known.id == patch.id);
        let name = format!("{PATCHES}/{:04}-{}.patch", number + 1, patch.id.replace('/', "-"));
        tree.insert(name, Entry { kind: Kind::File, bytes: explained(patch, known.copied()) });
    }
    if making.in_folder {
        tree.insert(ATTRIBUTES.into(), Entry { kind: Kind::File, bytes: OWN_ATTRIBUTES.into() });
    }
    let texts: String =
        making.patches.iter().map(|patch| format!("{}\n{}\n", patch.id, patch.text)).collect();
    let (format, made_by) = Lock::made_now();
    let lock = Lock {
        format,
        made_by,
        upstream: origin(making),
        asked: making.asked.clone(),
        patches: Used {
            applied: changing(making.plan).map(|patch| patch.id.clone()).collect(),
            content: digest(texts.as_bytes()),
        },
        tree: Record {
            digest: digest(listing(&tree).as_bytes()),
            files: tree.len(),
            licences: tree.keys().filter(|path| is_licence(path)).cloned().collect(),
            left_out: left_out.into_iter().chain(whole.left_out.iter().cloned()).collect(),
            lfs_pointers: tree
                .iter()
                .filter(|(_, entry)| is_pointer(entry))
                .map(|(path, _)| path.clone())
                .collect(),
        },
        changed,
        submodule: whole.submodules.iter().map(submodule).collect(),
    };
    let notes = notes(&lock);
    Ok(Recorded { tree, lock, notes })
}

impl Recorded {
    /// The list of all files, as `patches/files` holds it.
    pub fn listing(&self) -> String {
        listing(&self.tree)
    }
}

/// Refuses by name what cannot be vendored.
fn refuse_strange(whole: &Whole) -> Result<(), DeliverError> {
    for (path, entry) in &whole.entries {
        let lower = path.to_ascii_lowercase();
        if lower == LOCK || lower == PATCHES || lower.starts_with(&format!("{PATCHES}/")) {
            return Err(DeliverError::Reserved { path: path.clone() });
        }
        let target = String::from_utf8_lossy(&entry.bytes);
        if entry.kind == Kind::Link && !link_stays(path, &target) {
            return Err(DeliverError::LinkLeaves { path: path.clone(), target: target.into_owned() });
        }
    }
    Ok(())
}

/// Takes out the upstream's `.gitattributes`: in another repository they would change bytes on their way in and out.
fn leave_out_attributes(tree: &mut Tree) -> Vec<String> {
    let is_it = |path: &String| path.rsplit('/').next() == Some(ATTRIBUTES);
    let found: Vec<String> = tree.keys().filter(|path| is_it(path)).cloned().collect();
    found.iter().for_each(|path| drop(tree.remove(path)));
    found
}

fn changing(plan: &Plan) -> impl Iterator<Item = &PatchPlan> {
    plan.patches.iter().filter(|patch| !patch.changes.is_empty())
}

/// Puts the patched files into the tree.
fn change(plan: &Plan, tree: &mut Tree) -> Result<Vec<Changed>, DeliverError> {
    let mut changed = Vec::new();
    for FileDiff { path, before, after } in plan.diffs() {
        let entry = tree.get_mut(&path).filter(|entry| entry.bytes == before);
        let entry = entry.ok_or_else(|| DeliverError::NotAsCommitted { path: path.clone() })?;
        let by = changing(plan).filter(|patch| patch.changes.contains_key(&path));
        let by = by.map(|patch| patch.id.clone()).collect();
        changed.push(Changed { path, before: blob_id(&before), after: blob_id(&after), by });
        entry.bytes = after;
    }
    Ok(changed)
}

/// A patch with its reason above it, as Debian writes them (DEP-3).
fn explained(patch: &PatchPlan, known: Option<&Patch>) -> Vec<u8> {
    let why = wrapped(&patch.why);
    let why = why.lines().map(|line| if line.is_empty() { " .\n".to_string() } else { format!(" {line}\n") });
    let mut head = format!("Description: {}\n{}", patch.title, why.collect::<String>());
    head.push_str(&format!("Origin: mambapatch, {}\n", patch.id));
    for reference in &patch.references {
        head.push_str(&format!("Bug: {reference}\n"));
    }
    if let Some(known) = known {
        head.push_str(&format!("Upstream-Status: {}\n", known.upstream_status));
    }
    let mut text = format!("{head}---\n").into_bytes();
    for (path, change) in &patch.changes {
        let (before, after) = (change.before.to_vec(), change.after.to_vec());
        text.extend(FileDiff { path: path.clone(), before, after }.unified());
    }
    text
}

fn origin(making: &Making<'_>) -> Origin {
    let target = making.target;
    let archive = match &target.origin {
        crate::checkout::Origin::Sdist { file_name } => Some(file_name.clone()),
        _ => None,
    };
    Origin {
        id: making.upstream.to_string(),
        reference: target.reference.clone(),
        commit: target.commit().map(str::to_string),
        archive,
        url: making.url.clone(),
    }
}

fn submodule(module: &crate::checkout::Submodule) -> SubmoduleRecord {
    SubmoduleRecord { path: module.path.clone(), commit: module.commit.clone(), url: module.url.clone() }
}

fn is_licence(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_uppercase();
    ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "PATENTS"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Whether a file only points at what git LFS keeps elsewhere.
fn is_pointer(entry: &Entry) -> bool {
    entry.kind != Kind::Link && entry.bytes.starts_with(b"version https://git-lfs.github.com/spec/")
}

/// What a person should know of a record.
fn notes(lock: &Lock) -> Vec<String> {
    let mut notes = Vec::new();
    for module in &lock.submodule {
        let url = module.url.as_deref().unwrap_or("an address that .gitmodules does not tell");
        let (path, commit) = (&module.path, &module.commit);
        notes.push(format!("{path} is a submodule and is not here: {url} at {commit} belongs there"));
    }
    if !lock.tree.left_out.is_empty() {
        notes.push(format!("left out: {}", lock.tree.left_out.join(", ")));
    }
    if !lock.tree.lfs_pointers.is_empty() {
        let pointers = lock.tree.lfs_pointers.join(", ");
        notes.push(format!("pointers of git LFS, not what they point at: {pointers}"));
    }
    if lock.tree.licences.is_empty() {
        notes.push("the upstream has no licence file".into());
    }
    notes
}

/// The files of the record itself.
pub fn own_files(recorded: &Recorded) -> BTreeMap<&'static str, Vec<u8>> {
    [(FILES, recorded.listing().into_bytes()), (LOCK, recorded.lock.text().into_bytes())].into()
}
