//! A plain folder: reads its files as they lie there, and replaces files whole, all or none.
//!
//! Symbolic links are neither followed nor replaced: a patch must not reach out of the folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rayon::prelude::*;

use super::names;
use super::tree_path::{self, BadPath};
use super::whole::Kind;
use crate::engine::source::Sources;
use crate::engine::tag::{SourceVersion, Tag};

/// Why a folder could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Reading failed.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// What was read.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Writing failed; every file has its old content.
    #[error("cannot write {}: {cause}; nothing was changed", path.display())]
    Write {
        /// What was written.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Writing failed, and so did putting the old content back.
    #[error("cannot write {}: {cause}; these files have their new content: {}", path.display(), left.join(", "))]
    HalfWritten {
        /// What was written.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
        /// Files that could not be put back.
        left: Vec<String>,
        /// Where the reverse patch lies.
        reverse_patch: PathBuf,
    },
    /// A path that may not be written.
    #[error("`{}` is refused: {why}", path.escape_debug())]
    Path {
        /// The path.
        path: String,
        /// What is wrong with it.
        why: BadPath,
    },
    /// A symbolic link, or something that is no file, stands where a file would be written.
    #[error("`{path}` is refused: {what}")]
    NotAFile {
        /// The path.
        path: String,
        /// What stands there.
        what: &'static str,
    },
    /// No folder for the reverse patch is known.
    #[error("no folder to keep the reverse patch in: neither MAMBAPATCH_STATE nor HOME is set")]
    NoStateFolder,
}

impl FolderError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Write { .. } => {
                Some("see the change only: --dry-run; or patch a copy of the folder".into())
            }
            Self::HalfWritten { reverse_patch, .. } => Some(format!("git apply {}", reverse_patch.display())),
            Self::NoStateFolder => Some("MAMBAPATCH_STATE=/some/folder".into()),
            Self::NotAFile { .. } => Some("replace the link by the file it names".into()),
            Self::Path { path, why: BadPath::NotPortable } => Some(names::rename(path)),
            Self::Read { .. } | Self::Path { .. } => None,
        }
    }
}

/// What was written in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The files that changed, ordered.
    pub files: Vec<String>,
    /// Where the patch that undoes it is kept; none where nothing changed.
    pub reverse_patch: Option<PathBuf>,
    /// Those that had other hard links, which keep the old content.
    pub parted: Vec<String>,
}

/// What a folder holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Its regular files.
    pub paths: Vec<String>,
    /// Its symbolic links.
    pub links: Vec<String>,
    /// Files and folders whose names are no UTF-8, as they are shown.
    pub unnamed: Vec<String>,
}

/// All regular files of a folder, ordered, with `/`.
pub fn paths(root: &Path) -> Result<Vec<String>, FolderError> {
    Ok(listed(root)?.paths)
}

/// All that a folder holds, ordered, with `/`. Version control's own folders and Python environments are left out.
pub fn listed(root: &Path) -> Result<Listing, FolderError> {
    let mut found = Listing::default();
    let mut open = vec![(root.to_path_buf(), String::new())];
    while let Some((folder, prefix)) = open.pop() {
        let failed = |cause| FolderError::Read { path: folder.clone(), cause };
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let name = match entry.file_name().into_string() {
                Ok(name) => name,
                Err(name) => {
                    found.unnamed.push(format!("{prefix}{}", names::shown(name.as_encoded_bytes())));
                    continue;
                }
            };
            if kind.is_dir() && !is_foreign(&name, &entry.path()) {
                open.push((entry.path(), format!("{prefix}{name}/")));
            } else if kind.is_file() {
                found.paths.push(format!("{prefix}{name}"));
            } else if kind.is_symlink() {
                found.links.push(format!("{prefix}{name}"));
            }
        }
    }
    [&mut found.paths, &mut found.links, &mut found.unnamed].into_iter().for_each(|names| names.sort());
    Ok(found)
}

fn is_foreign(name: &str, path: &Path) -> bool {
    matches!(name, ".git" | ".hg" | ".svn") || path.join("pyvenv.cfg").is_file()
}

/// The wanted ones of `paths`, read; a file that is gone by now is an error.
pub fn read(root: &Path, paths: &[String], wanted: &dyn Fn(&str) -> bool) -> Result<Sources, FolderError> {
    let wanted: Vec<&String> = paths.iter().filter(|path| wanted(path)).collect();
    let folders: BTreeSet<&str> = wanted.iter().filter_map(|path| Some(path.rsplit_once('/')?.0)).collect();
    let links: Vec<&str> = folders.into_iter().filter(|folder| is_behind_link(root, folder)).collect();
    let read = |path: &&String| {
        let full = root.join(path);
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        refuse_link(&full, path, links.contains(&folder))?;
        match fs::read(&full) {
            Ok(bytes) => Ok(((*path).clone(), Arc::from(bytes))),
            Err(cause) => Err(FolderError::Read { path: full, cause }),
        }
    };
    let read: Vec<(String, Arc<[u8]>)> = wanted.par_iter().map(read).collect::<Result<_, _>>()?;
    Ok(read.into_iter().collect())
}

/// The bytes of one file, unless a link stands at it or above it.
pub fn read_one(root: &Path, path: &str) -> Option<Vec<u8>> {
    let path = tree_path::checked(path).ok()?;
    refuse_links(root, &path).ok()?;
    fs::read(root.join(path)).ok()
}

/// What stands at a path; a file may be executed where its owner may do so.
pub fn kind_of(path: &Path) -> Kind {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Kind::File };
    #[cfg(unix)]
    let executable = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o100 != 0;
    #[cfg(not(unix))]
    let executable = false;
    match (metadata.is_symlink(), executable) {
        (true, _) => Kind::Link,
        (false, true) => Kind::Executable,
        (false, false) => Kind::File,
    }
}

/// The version that `PKG-INFO` states, as every unpacked source distribution has it.
pub fn version_of(root: &Path) -> SourceVersion {
    match read_one(root, "PKG-INFO").as_deref().and_then(pkg_info_version) {
        Some(tag) => SourceVersion::Release(tag),
        None => SourceVersion::Unknown,
    }
}

/// The `Version:` in the header of a `PKG-INFO`.
pub fn pkg_info_version(bytes: &[u8]) -> Option<Tag> {
    let text = String::from_utf8_lossy(bytes);
    let header = text.lines().take_while(|line| !line.trim().is_empty());
    let mut values = header.filter_map(|line| line.strip_prefix("Version:"));
    values.next()?.trim().parse().ok()
}

/// Replaces files, all or none. First the reverse patch is stored in the state folder, then each new content is
/// written beside its file (permission bits kept), then each is renamed over it; a failure puts everything back.
pub fn write_in_place(
    root: &Path,
    files: &[(String, Vec<u8>)],
    reverse_patch: &[u8],
    state: Option<&Path>,
) -> Result<Written, FolderError> {
    let mut changes = BTreeMap::new();
    for (path, bytes) in files {
        let change = Change::new(root, path, bytes)?;
        if change.before.as_deref() != Some(bytes) {
            changes.insert(change.path.clone(), change);
        }
    }
    let changes: Vec<Change<'_>> = changes.into_values().collect();
    if changes.is_empty() {
        return Ok(Written { files: Vec::new(), reverse_patch: None, parted: Vec::new() });
    }
    let parted = changes.iter().filter(|change| has_other_links(&change.full));
    let parted = parted.map(|change| change.path.clone()).collect();
    let kept = keep_reverse_patch(root, reverse_patch, state.ok_or(FolderError::NoStateFolder)?)?;
    let result = replace_all(&changes, &kept, &|temporary, target| {
        temporary.persist(target).map(drop).map_err(|error| error.error)
    });
    if matches!(result, Err(FolderError::Write { .. })) {
        let _ = fs::remove_file(&kept);
    }
    result?;
    let files = changes.into_iter().map(|change| change.path).collect();
    Ok(Written { files, reverse_patch: Some(kept), parted })
}

/// Whether a file has more names than this one.
fn has_other_links(path: &Path) -> bool {
    #[cfg(unix)]
    let more = fs::metadata(path).is_ok_and(|found| std::os::unix::fs::MetadataExt::nlink(&found) > 1);
    #[cfg(not(unix))]
    let more = {
        let _ = path;
        false
    };
    more
}

/// One file to replace.
struct Change<'a> {
    path: String,
    full: PathBuf,
    before: Option<Vec<u8>>,
    after: &'a [u8],
}

impl<'a> Change<'a> {
    fn new(root: &Path, path: &str, after: &'a [u8]) -> Result<Self, FolderError> {
        let path =
            tree_path::checked(path).map_err(|why| FolderError::Path { path: path.to_string(), why })?;
        refuse_links(root, &path)?;
        let full = root.join(&path);
        let before = match fs::read(&full) {
            Ok(bytes) => Some(bytes),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
            Err(cause) => return Err(FolderError::Read { path: full, cause }),
        };
        Ok(Self { path, full, before, after })
    }

    /// The new content, in a temporary file beside its place.
    fn prepare(&self) -> io::Result<tempfile::NamedTempFile> {
        let folder = self.full.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let permissions = fs::metadata(&self.full).map(|metadata| metadata.permissions()).ok();
        if permissions.as_ref().is_some_and(fs::Permissions::readonly) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
        }
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
        let mut temporary = builder.prefix(".mambapatch-").tempfile_in(folder)?;
        temporary.write_all(self.after)?;
        if let Some(permissions) = permissions {
            temporary.as_file().set_permissions(permissions)?;
        }
        temporary.as_file().sync_all()?;
        Ok(temporary)
    }

    fn put_back(&self) -> io::Result<()> {
        match &self.before {
            Some(bytes) => fs::write(&self.full, bytes),
            None => fs::remove_file(&self.full),
        }
    }
}

/// Refuses a path with a symbolic link in it, or with something at its end that is no regular file.
fn refuse_links(root: &Path, path: &str) -> Result<(), FolderError> {
    let behind_link = path.rsplit_once('/').is_some_and(|(folder, _)| is_behind_link(root, folder));
    refuse_link(&root.join(path), path, behind_link)
}

/// Whether a folder, or one above it, is a symbolic link.
fn is_behind_link(root: &Path, folder: &str) -> bool {
    let mut ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
    ends.any(|end| root.join(&folder[..end]).is_symlink())
}

/// Refuses what stands at a path, unless it is a regular file or nothing.
fn refuse_link(full: &Path, path: &str, behind_link: bool) -> Result<(), FolderError> {
    let found = fs::symlink_metadata(full).ok();
    let what = match found {
        _ if behind_link => "a symbolic link stands there",
        Some(found) if found.is_symlink() => "a symbolic link stands there",
        Some(found) if !found.is_file() => "no regular file stands there",
        _ => return Ok(()),
    };
    Err(FolderError::NotAFile { path: path.to_string(), what })
}

type Rename = dyn Fn(tempfile::NamedTempFile, &Path) -> io::Result<()>;

fn replace_all(changes: &[Change<'_>], reverse_patch: &Path, rename: &Rename) -> Result<(), FolderError> {
    let failed = |change: &Change<'_>, cause| FolderError::Write { path: change.full.clone(), cause };
    let mut prepared = Vec::new();
    for change in changes {
        prepared.push(change.prepare().map_err(|cause| failed(change, cause))?);
    }
    for (index, temporary) in prepared.into_iter().enumerate() {
        let change = &changes[index];
        let Err(cause) = rename(temporary, &change.full) else { continue };
        let left: Vec<String> = changes[..index]
            .iter()
            .filter(|written| written.put_back().is_err())
            .map(|written| written.path.clone())
            .collect();
        if left.is_empty() {
            return Err(failed(change, cause));
        }
        let (path, reverse_patch) = (change.full.clone(), reverse_patch.to_path_buf());
        return Err(FolderError::HalfWritten { path, cause, left, reverse_patch });
    }
    Ok(())
}

/// Stores the reverse patch under a name that tells folder and time.
fn keep_reverse_patch(root: &Path, patch: &[u8], state: &Path) -> Result<PathBuf, FolderError> {
    let folder = state.join("reverse");
    let failed = |cause| FolderError::Write { path: folder.clone(), cause };
    fs::create_dir_all(&folder).map_err(failed)?;
    let full = fs::canonicalize(root).unwrap_or_else(|_| root.to_path_buf());
    let name = full.file_name().map_or_else(|| "folder".into(), |name| name.to_string_lossy().into_owned());
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let mut file = tempfile::Builder::new()
        .prefix(&format!("{name}-{seconds}-"))
        .suffix(".patch")
        .tempfile_in(&folder)
        .map_err(failed)?;
    file.write_all(patch).map_err(failed)?;
    file.keep().map(|(_, path)| path).map_err(|error| failed(error.error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_rename_puts_everything_back() {
        let root = tempfile::tempdir().expect("folder");
        fs::write(root.path().join("a"), "old a").expect("write");
        fs::write(root.path().join("b"), "old b").expect("write");
        let change = |path, after| Change::new(root.path(), path, after).expect("change");
        let changes = [change("a", b"new a"), change("b", b"new b"), change("c", b"new c")];
        let rename = |temporary: tempfile::NamedTempFile, target: &Path| {
            if target.ends_with("c") {
                return Err(io::Error::other("disk full"));
            }
            temporary.persist(target).map(drop).map_err(|error| error.error)
        };
        let error = replace_all(&changes, Path::new("r"), &rename).expect_err("fails");
        assert!(error.to_string().contains("disk full; nothing was changed"), "{error}");
        assert_eq!(fs::read(root.path().join("a")).expect("read"), b"old a");
        assert_eq!(fs::read(root.path().join("b")).expect("read"), b"old b");
        assert_eq!(fs::read_dir(root.path()).expect("list").count(), 2);
    }

    #[test]
    fn the_version_stands_in_the_header_only() {
        let tag = |text: &str| pkg_info_version(text.as_bytes()).map(|tag| tag.to_string());
        assert_eq!(tag("Metadata-Version: 2.1\r\nVersion: 2.2.4\r\n\r\n"), Some("2.2.4".into()));
        assert_eq!(tag("Name: a\n\nVersion: 2.2.4\n"), None);
    }
}
