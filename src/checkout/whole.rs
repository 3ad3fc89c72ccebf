//! A target's whole tree: every file with its kind, not only what patches look at.

use std::collections::BTreeMap;

use super::error::CheckoutError;
use super::folder;
use super::git::GitRepository;
use super::opened::{Store, Target};
use super::tree_path;

/// What an entry of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file.
    File,
    /// A file that may be executed.
    Executable,
    /// A symbolic link; its bytes are where it leads.
    Link,
}

impl Kind {
    /// As git writes it.
    pub fn mode(self) -> u32 {
        match self {
            Kind::File => 0o100_644,
            Kind::Executable => 0o100_755,
            Kind::Link => 0o120_000,
        }
    }

    /// What git's mode says; none for a folder or a submodule.
    pub fn of_mode(mode: u32) -> Option<Self> {
        match mode {
            0o100_755 => Some(Kind::Executable),
            0o120_000 => Some(Kind::Link),
            _ if mode & 0o170_000 == 0o100_000 => Some(Kind::File),
            _ => None,
        }
    }
}

/// A file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it is.
    pub kind: Kind,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A submodule, whose files are not in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submodule {
    /// Its folder.
    pub path: String,
    /// The commit that belongs there.
    pub commit: String,
    /// Where it is cloned from, where `.gitmodules` says so.
    pub url: Option<String>,
}

/// All that a target holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whole {
    /// Path to entry.
    pub entries: BTreeMap<String, Entry>,
    /// Its submodules.
    pub submodules: Vec<Submodule>,
    /// Links of an archive or a folder, which are not read.
    pub left_out: Vec<String>,
}

impl Target {
    /// The whole tree. Of a checkout of the user's it is that of HEAD; its files must be as HEAD has them.
    pub fn whole(&self) -> Result<Whole, CheckoutError> {
        if let Some(path) = self.unnamed.first() {
            return Err(CheckoutError::NoUtf8 { path: path.clone() });
        }
        match &self.store {
            Store::Commit { repository, commit, .. } => Ok(repository.whole(commit)?),
            Store::WorkTree { repository, commit, below, paths, .. } if below.is_empty() => {
                let files = repository.dirty(paths);
                if files.is_empty() {
                    return Ok(repository.whole(commit)?);
                }
                Err(CheckoutError::NotCommitted { files })
            }
            Store::Archive { archive, .. } => {
                let entry = |file: &super::archive::ArchiveFile| {
                    let kind = if file.executable { Kind::Executable } else { Kind::File };
                    (file.path.clone(), Entry { kind, bytes: file.bytes.to_vec() })
                };
                let entries = archive.files.iter().map(entry).collect();
                Ok(Whole { entries, left_out: archive.skipped.clone(), ..Whole::default() })
            }
            Store::WorkTree { folder, paths, .. } | Store::Folder { folder, paths } => {
                self.refuse_unwritable(paths.iter().map(String::as_str))?;
                let left_out = match &self.store {
                    Store::WorkTree { repository, below, .. } => repository.tracked_links(below)?,
                    _ => folder::listed(folder)?.links,
                };
                let sources = folder::read(folder, paths, &|_| true)?;
                let entry = |(path, bytes): (&str, &std::sync::Arc<[u8]>)| {
                    let kind = folder::kind_of(&folder.join(path));
                    (path.to_string(), Entry { kind, bytes: bytes.to_vec() })
                };
                Ok(Whole { entries: sources.iter().map(entry).collect(), left_out, ..Whole::default() })
            }
        }
    }
}

impl GitRepository {
    /// The whole tree of a commit. A path that no checkout may have is refused.
    pub fn whole(&self, commit: &str) -> Result<Whole, super::git::GitError> {
        let mut whole = Whole::default();
        for (path, mode, id) in self.listed(commit)? {
            tree_path::checked(&path).map_err(|why| super::git::GitError::NotAFile {
                path: path.clone(),
                what: why.to_string(),
            })?;
            match Kind::of_mode(mode) {
                Some(kind) => drop(whole.entries.insert(path, Entry { kind, bytes: self.blob(&id)? })),
                None => whole.submodules.push(Submodule { path, commit: id, url: None }),
            }
        }
        let modules =
            whole.entries.get(".gitmodules").map(|entry| String::from_utf8_lossy(&entry.bytes).into_owned());
        let urls = modules.as_deref().map(module_urls).unwrap_or_default();
        for submodule in &mut whole.submodules {
            submodule.url = urls.get(&submodule.path).cloned();
        }
        Ok(whole)
    }
}

/// The address of each submodule by its folder, as `.gitmodules` has them.
fn module_urls(text: &str) -> BTreeMap<String, String> {
    let mut urls = BTreeMap::new();
    for section in text.split("[submodule").skip(1) {
        let value = |key: &str| {
            let mut lines = section.lines().filter_map(|line| line.split_once('='));
            lines.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_string())
        };
        if let (Some(path), Some(url)) = (value("path"), value("url")) {
            urls.insert(path, url);
        }
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_submodules() {
        let text = "[submodule \"csrc/cutlass\"]\n\tpath = csrc/cutlass\n\turl = https://host.test/cutlass.git\n\
                    [submodule \"b\"]\n\turl=../b\n\tpath=b\n\tbranch = x\n[submodule \"c\"]\n\tpath = c\n";
        let urls = module_urls(text);
        assert_eq!(urls.get("csrc/cutlass").map(String::as_str), Some("https://host.test/cutlass.git"));
        assert_eq!(urls.get("b").map(String::as_str), Some("../b"));
        assert_eq!(urls.len(), 2);
    }
}
