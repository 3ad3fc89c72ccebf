//! Local work, carried from the recorded tree to a new one: git2's three-way merge of trees, with renames.

use std::collections::BTreeMap;

use git2::{
    FileMode, Index, IndexConflict, IndexEntry, IndexTime, MergeFileInput, MergeFileOptions, MergeOptions,
    Oid, Repository,
};

use super::tree::Tree;
use crate::checkout::{Entry, Kind};

/// How the side of the person is called in a file with conflicts.
pub const OURS: &str = "yours";

/// What a merge gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The merged tree; a file with conflicts holds both sides.
    pub tree: Tree,
    /// What a person must decide.
    pub conflicts: Vec<Conflict>,
}

/// A file that a person must decide on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    /// Its path.
    pub path: String,
    /// What is the matter, and what lies there now.
    pub what: String,
    /// Where another version lies, where it does not lie there too.
    pub beside: Option<String>,
}

impl Conflict {
    /// Whether it is about what lies at a path.
    pub fn is_at(&self, path: &str) -> bool {
        self.path == path || self.beside.as_deref() == Some(path)
    }
}

/// Three trees to merge.
#[derive(Debug, Clone, Copy)]
pub struct Sides<'a> {
    /// What was recorded.
    pub base: &'a Tree,
    /// What the person made of it.
    pub ours: &'a Tree,
    /// What it becomes.
    pub theirs: &'a Tree,
    /// How what it becomes is called in a file with conflicts.
    pub name: &'a str,
}

/// Merges; nothing of either side is lost.
pub fn merge(sides: Sides<'_>) -> Result<Merged, git2::Error> {
    let place = tempfile::tempdir().map_err(|error| git2::Error::from_str(&error.to_string()))?;
    let repository = Repository::init_bare(place.path())?;
    let [base, ours, theirs] = [sides.base, sides.ours, sides.theirs].map(|tree| written(&repository, tree));
    let mut options = MergeOptions::new();
    options.find_renames(true);
    let (base, ours, theirs) = (base?, ours?, theirs?);
    let trees = [base, ours, theirs].map(|id| repository.find_tree(id));
    let [base, ours, theirs] = trees;
    let index = repository.merge_trees(&base?, &ours?, &theirs?, Some(&options))?;
    let mut merged = Merged { tree: Tree::new(), conflicts: Vec::new() };
    for entry in index.iter().filter(|entry| entry.flags >> 12 & 3 == 0) {
        merged.put(&text(&entry.path), read(&repository, &entry)?);
    }
    for conflict in index.conflicts()? {
        merged.settle(&repository, &conflict?, sides.name)?;
    }
    merged.untangle();
    merged.conflicts.sort();
    merged.conflicts.dedup();
    Ok(merged)
}

impl Merged {
    fn put(&mut self, path: &str, entry: Entry) {
        self.tree.insert(path.to_string(), entry);
    }

    /// Lays a conflict down as files.
    fn settle(
        &mut self,
        repository: &Repository,
        conflict: &IndexConflict,
        name: &str,
    ) -> Result<(), git2::Error> {
        let side = |entry: &Option<IndexEntry>| {
            let read =
                |entry: &IndexEntry| Ok::<_, git2::Error>((text(&entry.path), read(repository, entry)?));
            entry.as_ref().map(read).transpose()
        };
        match (side(&conflict.ancestor)?, side(&conflict.our)?, side(&conflict.their)?) {
            (base, Some((path, ours)), Some((_, theirs))) => {
                let base = base.map(|(_, entry)| entry);
                self.both(&path, Versions { base: base.as_ref(), ours: &ours, theirs: &theirs, name });
            }
            (Some(_), Some((path, ours)), None) => {
                self.put(&path, ours);
                self.mark(&path, "you changed it and upstream has it no longer; yours stays");
            }
            (Some(_), None, Some((path, theirs))) => {
                self.put(&path, theirs);
                self.mark(&path, "you removed it and it changed; it is here again");
            }
            (None, Some((path, entry)), None) | (None, None, Some((path, entry))) => {
                self.put(&path, entry);
                self.mark(&path, "it was renamed or stands where something else is; see both");
            }
            (Some((path, _)), None, None) => self.mark(&path, "both sides renamed or removed it"),
            (None, None, None) => {}
        }
        Ok(())
    }

    /// Both sides changed a file.
    fn both(&mut self, path: &str, versions: Versions<'_>) {
        match versions.merged(path) {
            Some(bytes) => {
                self.put(path, Entry { kind: versions.ours.kind, bytes });
                self.mark(path, "both sides changed the same lines; both stand there, between marks");
            }
            None => {
                self.put(path, versions.ours.clone());
                let beside = self.free(&format!("{path}.new"));
                self.put(&beside, versions.theirs.clone());
                self.mark_beside(path, "it is no text, and both sides changed it; yours stays", beside);
            }
        }
    }

    /// Moves a file out of the way of a folder of the same name.
    fn untangle(&mut self) {
        let is_folder = |path: &&String| {
            let inside = format!("{path}/");
            self.tree.range(inside.clone()..).next().is_some_and(|(next, _)| next.starts_with(&inside))
        };
        let both: Vec<String> = self.tree.keys().filter(is_folder).cloned().collect();
        for path in both {
            let beside = self.free(&format!("{path}.file"));
            self.tree
                .remove(&path)
                .into_iter()
                .for_each(|entry| drop(self.tree.insert(beside.clone(), entry)));
            self.mark_beside(&path, "a folder of that name is there too", beside);
        }
    }

    /// A path that nothing stands at.
    fn free(&self, path: &str) -> String {
        let mut path = path.to_string();
        while self.tree.contains_key(&path) {
            path.push_str(".new");
        }
        path
    }

    fn mark(&mut self, path: &str, what: &str) {
        self.conflicts.push(Conflict { path: path.to_string(), what: what.to_string(), beside: None });
    }

    fn mark_beside(&mut self, path: &str, what: &str, beside: String) {
        let what = format!("{what}; see {beside}");
        self.conflicts.push(Conflict { path: path.to_string(), what, beside: Some(beside) });
    }
}

/// The versions of one file.
struct Versions<'a> {
    base: Option<&'a Entry>,
    ours: &'a Entry,
    theirs: &'a Entry,
    name: &'a str,
}

impl Versions<'_> {
    /// The text with both sides where they differ; none where a side is no text.
    fn merged(&self, path: &str) -> Option<Vec<u8>> {
        let sides = [self.base, Some(self.ours), Some(self.theirs)].into_iter().flatten();
        if sides.clone().any(|entry| entry.kind == Kind::Link || entry.bytes.contains(&0)) {
            return None;
        }
        let input = |entry: Option<&'_ Entry>| {
            let mut input = MergeFileInput::new();
            let mode = entry.map(|_| FileMode::Blob);
            input.path(path).mode(mode);
            input
        };
        let (mut base, mut ours, mut theirs) =
            (input(self.base), input(Some(self.ours)), input(Some(self.theirs)));
        base.content(self.base.map_or(&[], |entry| &entry.bytes));
        ours.content(&self.ours.bytes);
        theirs.content(&self.theirs.bytes);
        let mut options = MergeFileOptions::new();
        options.our_label(OURS).their_label(self.name);
        let merged = git2::merge_file(&base, &ours, &theirs, Some(&mut options)).ok()?;
        Some(merged.content().to_vec())
    }
}

/// Writes a tree into the repository of the merge.
pub(super) fn written(repository: &Repository, tree: &Tree) -> Result<Oid, git2::Error> {
    let mut index = Index::new()?;
    let time = IndexTime::new(0, 0);
    let blobs =
        tree.iter().map(|(path, entry)| Ok((path, entry.kind.mode(), repository.blob(&entry.bytes)?)));
    for (path, mode, id) in blobs.collect::<Result<Vec<_>, git2::Error>>()? {
        index.add(&IndexEntry {
            ctime: time,
            mtime: time,
            dev: 0,
            ino: 0,
            mode,
            uid: 0,
            gid: 0,
            file_size: 0,
            id,
            flags: 0,
            flags_extended: 0,
            path: path.as_bytes().to_vec(),
        })?;
    }
    index.write_tree_to(repository)
}

fn read(repository: &Repository, entry: &IndexEntry) -> Result<Entry, git2::Error> {
    let kind = Kind::of_mode(entry.mode).unwrap_or(Kind::File);
    Ok(Entry { kind, bytes: repository.find_blob(entry.id)?.content().to_vec() })
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// The difference between two trees, as git writes it: modes, new and removed files, renames.
pub fn difference(from: &Tree, to: &Tree) -> Result<Vec<u8>, git2::Error> {
    let place = tempfile::tempdir().map_err(|error| git2::Error::from_str(&error.to_string()))?;
    let repository = Repository::init_bare(place.path())?;
    let (old, new) = (written(&repository, from)?, written(&repository, to)?);
    let (old, new) = (repository.find_tree(old)?, repository.find_tree(new)?);
    let mut diff = repository.diff_tree_to_tree(Some(&old), Some(&new), None)?;
    diff.find_similar(None)?;
    crate::checkout::git::diff_text(&diff)
}

/// The files that differ in two trees, each with what became of it.
pub fn changes(from: &Tree, to: &Tree) -> BTreeMap<String, &'static str> {
    let gone = from.keys().filter(|path| !to.contains_key(*path)).map(|path| (path.clone(), "missing"));
    let other = to.iter().filter_map(|(path, entry)| {
        let what = match from.get(path) {
            None => "new",
            Some(old) if old.bytes != entry.bytes => "changed",
            Some(old) if old.kind != entry.kind => "mode changed",
            Some(_) => return None,
        };
        Some((path.clone(), what))
    });
    gone.chain(other).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let entry = |text: &str| Entry { kind: Kind::File, bytes: text.as_bytes().to_vec() };
        files.iter().map(|(path, text)| (path.to_string(), entry(text))).collect()
    }

    fn merged(base: &Tree, ours: &Tree, theirs: &Tree) -> Merged {
        merge(Sides { base, ours, theirs, name: "mamba-ssm v2.2.5" }).expect("a merge")
    }

    const LONG: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

    #[test]
    fn edits_of_both_sides_come_together() {
        let base = tree(&[("a", LONG), ("b", "b\n"), ("c", "c\n"), ("gone", "x\n")]);
        let ours = tree(&[
            ("a", &LONG.replace('2', "two")),
            ("b", "b\n"),
            ("c", "mine\n"),
            ("new", "n\n"),
            ("gone", "x\n"),
        ]);
        let theirs = tree(&[("a", &LONG.replace('8', "eight")), ("b", "B\n"), ("c", "c\n"), ("d", "d\n")]);
        let wanted = tree(&[
            ("a", &LONG.replace('2', "two").replace('8', "eight")),
            ("b", "B\n"),
            ("c", "mine\n"),
            ("d", "d\n"),
            ("new", "n\n"),
        ]);
        assert_eq!(merged(&base, &ours, &theirs), Merged { tree: wanted, conflicts: Vec::new() });
    }

    #[test]
    fn an_edit_follows_a_file_that_the_other_side_renamed() {
        let base = tree(&[("old", LONG)]);
        let edited = LONG.replace('5', "five");
        let here = merged(&base, &tree(&[("mine", LONG)]), &tree(&[("old", &edited)]));
        assert_eq!(here, Merged { tree: tree(&[("mine", &edited)]), conflicts: Vec::new() });
        let there = merged(&base, &tree(&[("old", &edited)]), &tree(&[("theirs", LONG)]));
        assert_eq!(there, Merged { tree: tree(&[("theirs", &edited)]), conflicts: Vec::new() });
    }

    #[test]
    fn conflicts_lose_nothing() {
        let base = tree(&[("a", "1\n"), ("b", "1\n"), ("c", "1\n"), ("d", "1\0\n")]);
        let ours = tree(&[("a", "mine\n"), ("b", "mine\n"), ("d", "mine\0\n"), ("e", "mine\n")]);
        let theirs = tree(&[("a", "theirs\n"), ("c", "theirs\n"), ("d", "theirs\0\n"), ("e", "theirs\n")]);
        let found = merged(&base, &ours, &theirs);
        let marks = "<<<<<<< yours\nmine\n=======\ntheirs\n>>>>>>> mamba-ssm v2.2.5\n";
        let wanted = tree(&[
            ("a", marks),
            ("b", "mine\n"),
            ("c", "theirs\n"),
            ("d", "mine\0\n"),
            ("d.new", "theirs\0\n"),
            ("e", marks),
        ]);
        assert_eq!(found.tree, wanted);
        let paths: Vec<&str> = found.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
        assert_eq!(paths, ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn a_file_steps_aside_for_a_folder() {
        let base = tree(&[("a", "1\n")]);
        let (ours, theirs) =
            (tree(&[("a", "1\n"), ("x", "mine\n")]), tree(&[("a", "1\n"), ("x/y", "theirs\n")]));
        for (ours, theirs) in [(&ours, &theirs), (&theirs, &ours)] {
            let found = merged(&base, ours, theirs);
            let texts: Vec<&[u8]> = found.tree.values().map(|entry| &entry.bytes[..]).collect();
            assert!(texts.contains(&&b"mine\n"[..]) && texts.contains(&&b"theirs\n"[..]), "{found:?}");
            assert!(!found.tree.contains_key("x"), "{found:?}");
            assert!(!found.conflicts.is_empty());
        }
    }

    #[test]
    fn modes_are_merged_too() {
        let base = tree(&[("a", LONG)]);
        let mut ours = base.clone();
        ours.get_mut("a").expect("a").kind = Kind::Executable;
        let theirs = tree(&[("a", &LONG.replace('5', "five"))]);
        let found = merged(&base, &ours, &theirs);
        assert_eq!((found.tree["a"].kind, &found.tree["a"].bytes), (Kind::Executable, &theirs["a"].bytes));
        assert_eq!(changes(&base, &ours), BTreeMap::from([("a".to_string(), "mode changed")]));
    }

    #[test]
    fn a_difference_is_what_git_takes() {
        let text =
            difference(&tree(&[("a", "1\n"), ("b", "2")]), &tree(&[("a", "x\n"), ("c", "3")])).expect("diff");
        let text = String::from_utf8(text).expect("text");
        for part in
            ["--- a/a\n+++ b/a\n", "deleted file mode 100644\n", "new file mode 100644\n", "\\ No newline"]
        {
            assert!(text.contains(part), "{text}");
        }
    }
}
