//! Folders in which something is made beside its place. What a killed run left of them, the next one takes away.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = ".mambapatch-";
/// Characters behind the prefix.
const RANDOM: usize = 6;
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
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).rand_bytes(RANDOM).tempdir_in(parent)?;
            if let Some(lock) = locked(folder.path())? {
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    /// Where it lies.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// The lock of a new folder; none if the sweep of another run was there before it was locked.
fn locked(folder: &Path) -> io::Result<Option<File>> {
    let path = folder.join(LOCK);
    let lock = match File::create(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        created => created?,
    };
    // On a file system without locks nothing with a lock is ever swept.
    let _ = lock.lock();
    Ok(path.exists().then_some(lock))
}

fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    // What cannot be taken away now is met again.
    entries
        .filter(|entry| is_ours(&entry.file_name().to_string_lossy()))
        .for_each(|entry| drop(take_away(&entry.path())));
}

fn is_ours(name: &str) -> bool {
    let random = name.strip_prefix(PREFIX);
    random.is_some_and(|random| {
        random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Takes a folder away that no run uses. A run that was killed before it made the lock left its folder empty.
fn take_away(folder: &Path) -> io::Result<()> {
    match File::open(folder.join(LOCK)) {
        // The lock is held until the folder is gone: who has just made it waits, and makes another.
        Ok(lock) => lock.try_lock().map_err(io::Error::from).and_then(|()| fs::remove_dir_all(folder)),
        Err(_) => fs::remove_dir(folder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(parent: &Path) -> Vec<String> {
        let names = fs::read_dir(parent).expect("a folder").flatten();
        let mut names: Vec<String> =
            names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_killed_run_left_goes_and_what_is_used_stays() {
        let parent = tempfile::tempdir().expect("a folder");
        for folder in [
            ".mambapatch-left01/tree",
            ".mambapatch-empty1",
            ".mambapatch-mine01/a",
            ".mambapatch-notes",
            "b",
        ] {
            fs::create_dir_all(parent.path().join(folder)).expect("a folder");
        }
        for folder in [".mambapatch-left01", "b"] {
            File::create(parent.path().join(folder).join(LOCK)).expect("a file");
        }
        let used = Temporary::in_folder(parent.path()).expect("one");
        let other = Temporary::in_folder(parent.path()).expect("another");
        assert!(used.path().exists() && other.path().exists());
        drop((used, other));
        assert_eq!(folders(parent.path()), [".mambapatch-mine01", ".mambapatch-notes", "b"]);
    }

    #[test]
    fn runs_beside_each_other_sweep_nothing_that_is_used() {
        let parent = tempfile::tempdir().expect("a folder");
        let make = || {
            (0..200).for_each(|_| {
                assert!(Temporary::in_folder(parent.path()).expect("one").path().join(LOCK).exists())
            })
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(make))));
        assert_eq!(folders(parent.path()), Vec::<String>::new());
    }
}
