//! Downloaded files in the user's cache folder. What is read back is checked against the SHA-256 that was recorded.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// A folder of downloads; without a folder nothing is kept.
#[derive(Debug, Clone)]
pub struct Cache {
    root: Option<PathBuf>,
}

impl Cache {
    /// A cache in this folder.
    pub fn new(root: Option<PathBuf>) -> Self {
        Self { root }
    }

    /// The folder.
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The bytes kept under a name (path with `/`); none where there are none or they are not what was kept.
    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        let path = self.root.as_ref()?.join(name);
        let recorded = fs::read_to_string(record_of(&path)).ok()?;
        let bytes = fs::read(path).ok()?;
        (recorded.trim() == sha256(&bytes)).then_some(bytes)
    }

    /// Whether something is kept under a name, whole or not.
    pub fn holds(&self, name: &str) -> bool {
        self.root.as_ref().is_some_and(|root| root.join(name).exists())
    }

    /// Keeps bytes under a name: written beside, then renamed; the record comes last, so half a write counts as none.
    pub fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let Some(root) = &self.root else { return Ok(()) };
        let path = root.join(name);
        write_whole(&path, bytes)?;
        write_whole(&record_of(&path), sha256(bytes).as_bytes())
    }
}

fn record_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".sha256");
    path.with_file_name(name)
}

/// Writes a file beside its place and renames it.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// SHA-256 in lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_kept_comes_back() {
        let folder = tempfile::tempdir().expect("folder");
        let cache = Cache::new(Some(folder.path().join("new")));
        assert_eq!(cache.get("a/b.zip"), None);
        cache.put("a/b.zip", b"bytes").expect("put");
        assert_eq!(cache.get("a/b.zip").as_deref(), Some(&b"bytes"[..]));
        fs::write(folder.path().join("new/a/b.zip"), "byteZ").expect("corrupt");
        assert_eq!(cache.get("a/b.zip"), None);
        assert!(cache.holds("a/b.zip"));
    }

    #[test]
    fn known_digest() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
