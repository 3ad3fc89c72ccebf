//! Writing a folder so that it is the old one or the new one at every moment, whatever kills the program.
//!
//! The new tree is written beside the folder; then the two exchange their names in one step. Where the system cannot do
//! that, two renames take its place, and the next run completes them if they were cut apart.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::tree::Tree;
use crate::checkout::{Entry, Kind};

/// What is done to a disk, one visible step each. Tests have one that dies.
pub trait Disk {
    /// Makes a folder and those above it.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Writes a new file or link.
    fn write(&self, path: &Path, entry: &Entry) -> io::Result<()>;
    /// Gives a file a second name, so that its times stay; a copy where that cannot be.
    fn carry(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Exchanges two folders in one step.
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()>;
    /// Renames a folder; an empty one in its place goes.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a folder with all that is in it.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The disk of this machine.
#[derive(Debug, Clone, Copy)]
pub struct Real;

impl Disk for Real {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn write(&self, path: &Path, entry: &Entry) -> io::Result<()> {
        #[cfg(unix)]
        if entry.kind == Kind::Link {
            let target = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&entry.bytes);
            return std::os::unix::fs::symlink(target, path);
        }
        fs::write(path, &entry.bytes)?;
        #[cfg(unix)]
        if entry.kind == Kind::Executable {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(path)?.permissions().mode();
            // Whoever may read it may execute it.
            fs::set_permissions(path, fs::Permissions::from_mode(mode | (mode & 0o444) >> 2))?;
        }
        Ok(())
    }

    fn carry(&self, from: &Path, to: &Path) -> io::Result<()> {
        if fs::hard_link(from, to).is_ok() {
            return Ok(());
        }
        if fs::symlink_metadata(from)?.is_symlink() {
            let bytes = fs::read_link(from)?.to_string_lossy().into_owned().into_bytes();
            return self.write(to, &Entry { kind: Kind::Link, bytes });
        }
        fs::copy(from, to).map(drop)
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        #[cfg(any(target_os = "linux", target_vendor = "apple"))]
        {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
        }
        #[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
        {
            let _ = (one, other);
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if cfg!(windows) && to.is_dir() {
            fs::remove_dir(to)?;
        }
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// A folder to write, and what is beside it while that lasts.
pub struct Place<'a> {
    folder: PathBuf,
    disk: &'a dyn Disk,
}

/// What a folder becomes.
pub struct Becomes<'a> {
    /// Its files.
    pub tree: &'a Tree,
    /// Files of the folder that are in the tree as they lie there.
    pub same: &'a BTreeSet<String>,
    /// Files and empty folders of the folder that are nobody's business and come along.
    pub extras: &'a BTreeSet<String>,
    /// The file that comes last, and its bytes: a tree with it is whole.
    pub last: (&'a str, &'a [u8]),
}

impl<'a> Place<'a> {
    /// A folder; what leads to it must be no link.
    pub fn new(folder: &Path, disk: &'a dyn Disk) -> Self {
        Self { folder: folder.to_path_buf(), disk }
    }

    /// `.NAME.mambapatch-new` and the like, beside the folder.
    fn beside(&self, what: &str) -> PathBuf {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        self.folder.with_file_name(format!(".{name}.mambapatch-{what}"))
    }

    /// Completes or takes away what a run left that was killed.
    pub fn recover(&self) -> io::Result<()> {
        let (new, old) = (self.beside("new"), self.beside("old"));
        if old.is_dir() && !self.folder.exists() {
            // The old tree only goes away when the new one is whole.
            let next = if new.is_dir() { &new } else { &old };
            self.disk.rename(next, &self.folder)?;
        }
        [new, old].iter().filter(|left| left.is_dir()).try_for_each(|left| self.disk.remove(left))
    }

    /// Writes the folder, which is not there yet or is empty.
    pub fn create(&self, becomes: &Becomes<'_>) -> io::Result<()> {
        self.recover()?;
        let new = self.prepare(becomes)?;
        self.disk.rename(&new, &self.folder)
    }

    /// Puts a new tree in the place of the folder's.
    pub fn replace(&self, becomes: &Becomes<'_>) -> io::Result<()> {
        self.recover()?;
        let (new, old) = (self.prepare(becomes)?, self.beside("old"));
        fs::set_permissions(&new, fs::metadata(&self.folder)?.permissions())?;
        if self.disk.exchange(&new, &self.folder).is_err() {
            self.disk.rename(&self.folder, &old)?;
            if let Err(error) = self.disk.rename(&new, &self.folder) {
                self.disk.rename(&old, &self.folder)?;
                return Err(error);
            }
        }
        [new, old].iter().filter(|left| left.is_dir()).try_for_each(|left| self.disk.remove(left))
    }

    /// The new tree beside the folder.
    fn prepare(&self, becomes: &Becomes<'_>) -> io::Result<PathBuf> {
        let new = self.beside("new");
        let made = self.fill(&new, becomes);
        if made.is_err() {
            let _ = self.disk.remove(&new);
        }
        made.map(|()| new)
    }

    fn fill(&self, new: &Path, becomes: &Becomes<'_>) -> io::Result<()> {
        self.disk.make_folder(new)?;
        let mut folders = BTreeSet::new();
        let mut room = |path: &str| match path.rsplit_once('/') {
            Some((folder, _)) if folders.insert(folder.to_string()) => {
                self.disk.make_folder(&new.join(folder))
            }
            _ => Ok(()),
        };
        for (path, entry) in becomes.tree {
            let written = room(path).and_then(|()| match becomes.same.contains(path) {
                true => self.disk.carry(&self.folder.join(path), &new.join(path)),
                false => self.disk.write(&new.join(path), entry),
            });
            written.map_err(|error| named(path, &error))?;
        }
        for path in becomes.extras {
            let carry = || match path.ends_with('/') {
                true => Ok(()),
                false => self.disk.carry(&self.folder.join(path), &new.join(path)),
            };
            room(path).and_then(|()| carry()).map_err(|error| named(path, &error))?;
        }
        let (path, bytes) = becomes.last;
        self.disk.write(&new.join(path), &Entry { kind: Kind::File, bytes: bytes.to_vec() })
    }
}

/// The error with the file that it speaks of.
fn named(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path}: {error}"))
}
