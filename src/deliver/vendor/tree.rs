//! A tree in memory: what a vendored folder should hold, and what it does hold.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use git2::{ObjectType, Oid};

use crate::checkout::cache::sha256;
use crate::checkout::{Entry, Kind};

/// Path to entry, ordered.
pub type Tree = BTreeMap<String, Entry>;

/// The file that records the tree, in the root of a vendored folder.
pub const LOCK: &str = "mambapatch.lock";
/// The folder of the patches that were applied.
pub const PATCHES: &str = "patches";
/// The list of all files with their digests.
pub const FILES: &str = "patches/files";
/// Attributes of git in the root, so that the repository around the folder leaves every byte as it is.
pub const ATTRIBUTES: &str = ".gitattributes";

/// The mode and digest of each path, one a line, as [`FILES`] holds them.
pub fn listing(tree: &Tree) -> String {
    let line = |(path, entry): (&String, &Entry)| {
        format!("{:06o} {} {path}\n", entry.kind.mode(), sha256(&entry.bytes))
    };
    tree.iter().map(line).collect()
}

/// What a listing says of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What it is.
    pub kind: Kind,
    /// The SHA-256 of its bytes.
    pub sha256: String,
}

/// A listing, read; none where a line of it is not as [`listing`] writes it.
pub fn read_listing(text: &str) -> Option<BTreeMap<String, Listed>> {
    let line = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let kind = Kind::of_mode(u32::from_str_radix(words.next()?, 8).ok()?)?;
        let sha256 = words.next().filter(|digits| digits.len() == 64)?.to_string();
        Some((words.next()?.to_string(), Listed { kind, sha256 }))
    };
    text.lines().map(line).collect()
}

/// The id that git gives to bytes.
pub fn blob_id(bytes: &[u8]) -> String {
    Oid::hash_object(ObjectType::Blob, bytes).map_or_else(|_| String::new(), |id| id.to_string())
}

/// What stands at a path of a folder; none where nothing or a folder stands there.
pub fn entry_at(root: &Path, path: &str) -> io::Result<Option<Entry>> {
    let full = root.join(path);
    if has_link_above(root, path) {
        return Ok(None);
    }
    let metadata = match fs::symlink_metadata(&full) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if metadata.is_symlink() {
        let bytes = fs::read_link(&full)?.to_string_lossy().into_owned().into_bytes();
        return Ok(Some(Entry { kind: Kind::Link, bytes }));
    }
    if !metadata.is_file() {
        return Ok(None);
    }
    let kind = crate::checkout::folder::kind_of(&full);
    fs::read(&full).map(|bytes| Some(Entry { kind, bytes }))
}

/// A link in the place of a folder: what lies behind it is not in the tree.
fn has_link_above(root: &Path, path: &str) -> bool {
    let folders = path.match_indices('/').map(|(at, _)| root.join(&path[..at]));
    folders.into_iter().any(|folder| folder.symlink_metadata().is_ok_and(|found| found.is_symlink()))
}

/// Every path below a folder that is no folder itself, and every folder that holds nothing; links are not followed.
/// A name that is no UTF-8 is an error.
pub fn paths(root: &Path) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut open = vec![(root.to_path_buf(), String::new())];
    while let Some((folder, prefix)) = open.pop() {
        let mut is_empty = true;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            is_empty = false;
            let name = entry.file_name().into_string().map_err(|name| {
                io::Error::other(format!("the name `{}` is no UTF-8", name.to_string_lossy()))
            })?;
            match entry.file_type()?.is_dir() {
                true => open.push((entry.path(), format!("{prefix}{name}/"))),
                false => drop(found.insert(format!("{prefix}{name}"))),
            }
        }
        if is_empty && !prefix.is_empty() {
            found.insert(prefix);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_read_back() {
        let entry = |kind, text: &str| Entry { kind, bytes: text.as_bytes().to_vec() };
        let tree: Tree = [
            ("a b/c.py".to_string(), entry(Kind::Executable, "x")),
            ("l".to_string(), entry(Kind::Link, "a b/c.py")),
        ]
        .into();
        let text = listing(&tree);
        assert!(text.starts_with(
            "100755 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 a b/c.py\n"
        ));
        let read = read_listing(&text).expect("a listing");
        assert_eq!(read["l"], Listed { kind: Kind::Link, sha256: sha256(b"a b/c.py") });
        assert_eq!(read.len(), 2);
        for broken in [
            "100644 00 a\n",
            "040000 2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 a\n",
            "x",
        ] {
            assert_eq!(read_listing(broken), None, "{broken}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_seen_and_not_followed() {
        let root = tempfile::tempdir().expect("folder");
        fs::create_dir_all(root.path().join("a/empty")).expect("folder");
        fs::write(root.path().join("a/x"), "x").expect("write");
        std::os::unix::fs::symlink("a", root.path().join("b")).expect("link");
        let found: Vec<String> = paths(root.path()).expect("paths").into_iter().collect();
        assert_eq!(found, ["a/empty/", "a/x", "b"]);
        let link = entry_at(root.path(), "b").expect("read").expect("a link");
        assert_eq!((link.kind, link.bytes), (Kind::Link, b"a".to_vec()));
        assert_eq!(entry_at(root.path(), "b/x").expect("read"), None);
        assert_eq!(entry_at(root.path(), "a").expect("read"), None);
        assert_eq!(entry_at(root.path(), "a/x/y").expect("read"), None);
    }
}
