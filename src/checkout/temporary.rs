//! Folders in which something is made beside its place. What a killed run left of them, the next one takes away.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = ".mambapatch-";
/// Locked as long as the run lives.
const LOCK: &str = "lock";

/// A folder that goes away with this value.
#[derive(Debug)]
pub struct Temporary {
    folder: TempDir,
    _lock: File,
}

impl Temporary {
    /// Makes one in a folder, and takes away those there that no run uses any more.
    pub fn in_folder(parent: &Path) -> io::Result<Self> {
        sweep(parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let fresh = folder.path().join("fresh");
        let lock = File::create(&fresh)?;
        // On a file system without locks nothing is ever swept.
        let _ = lock.lock();
        fs::rename(fresh, folder.path().join(LOCK))?;
        Ok(Self { folder, _lock: lock })
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_left = || File::open(entry.path().join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok());
        if is_ours && is_left() {
            // What cannot be taken away now is met again.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_goes_and_what_is_used_stays() {
        let parent = tempfile::tempdir().expect("a folder");
        let left = parent.path().join(".mambapatch-left/tree");
        let (foreign, mine) = (parent.path().join(".mambapatch-notes"), parent.path().join("mine"));
        [&left, &foreign, &mine].iter().for_each(|path| fs::create_dir_all(path).expect("a folder"));
        fs::write(left.with_file_name(LOCK), "").expect("a file");
        fs::write(mine.join(LOCK), "").expect("a file");
        let used = Temporary::in_folder(parent.path()).expect("one");
        let other = Temporary::in_folder(parent.path()).expect("another");
        assert!(!left.exists() && foreign.exists() && mine.exists() && used.path().exists());
        let path = other.path().to_path_buf();
        drop(other);
        assert!(!path.exists());
    }
}
