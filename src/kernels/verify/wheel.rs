//! A wheel that is unpacked beside everything, so that it can be imported without being installed.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zip::ZipArchive;
use zip::read::ZipFile;

use super::VerifyError;

/// More than any wheel holds, in bytes: 16 GiB.
const MOST_BYTES: u64 = 16 << 30;

/// A wheel's contents, deleted when this is dropped.
#[derive(Debug)]
pub struct Unpacked {
    folder: TempDir,
    roots: Vec<PathBuf>,
    /// The distribution: what its file name begins with.
    pub distribution: String,
}

impl Unpacked {
    /// The folders that belong on the search path.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }
}

/// Unpacks a wheel into a temporary folder.
pub fn unpack(wheel: &Path) -> Result<Unpacked, VerifyError> {
    let wrong = |cause: String| VerifyError::Wheel { wheel: wheel.to_path_buf(), cause };
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    let distribution = name.split('-').next().unwrap_or_default().to_string();
    let folder = tempfile::tempdir().map_err(|cause| VerifyError::Folder { cause })?;
    let file = File::open(wheel).map_err(|error| wrong(error.to_string()))?;
    let mut archive = ZipArchive::new(file).map_err(|error| wrong(error.to_string()))?;
    let mut left = MOST_BYTES;
    for at in 0..archive.len() {
        let member = archive.by_index(at).map_err(|error| wrong(error.to_string()))?;
        write(member, folder.path(), &mut left).map_err(wrong)?;
    }
    // Files of NAME.data/platlib and purelib go where the others go.
    let data = fs::read_dir(folder.path()).into_iter().flatten().flatten().map(|entry| entry.path());
    let data = data.filter(|path| path.extension().is_some_and(|ending| ending == "data"));
    let data = data.flat_map(|path| ["platlib", "purelib"].map(|kind| path.join(kind)));
    let roots = [folder.path().to_path_buf()].into_iter().chain(data.filter(|path| path.is_dir()));
    Ok(Unpacked { roots: roots.collect(), folder, distribution })
}

impl AsRef<Path> for Unpacked {
    fn as_ref(&self) -> &Path {
        self.folder.path()
    }
}

fn write(member: ZipFile<'_, File>, folder: &Path, left: &mut u64) -> Result<(), String> {
    let name = member.enclosed_name().ok_or("a file in it has no name below its own folder")?;
    let path = folder.join(&name);
    if member.is_dir() {
        return fs::create_dir_all(&path).map_err(|error| error.to_string());
    }
    if member.is_symlink() {
        return Err(format!("{} in it is a symbolic link", name.display()));
    }
    let parent = path.parent().unwrap_or(folder);
    fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    let mut file = File::create(&path).map_err(|error| error.to_string())?;
    let written =
        io::copy(&mut member.take(left.saturating_add(1)), &mut file).map_err(|error| error.to_string())?;
    *left = left
        .checked_sub(written)
        .ok_or_else(|| format!("it unpacks to more than {} GiB", MOST_BYTES >> 30))?;
    Ok(())
}
