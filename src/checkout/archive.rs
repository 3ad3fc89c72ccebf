//! Source archives, unpacked in memory under strict rules. Nothing is executed, nothing is written.
//!
//! One top folder is expected and stripped. Absolute paths, `..`, hard links, devices, links that leave the tree, a path
//! that comes twice (or twice but for case) are refused by name. A symbolic link that stays in the tree is skipped and
//! named in [`Archive::skipped`]: a patch never needs one, and nothing then follows it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor, Read};
use std::sync::Arc;

use super::tree_path::{self, BadPath};

/// One file of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveFile {
    /// Path below the top folder, with `/`.
    pub path: String,
    /// Its content.
    pub bytes: Arc<[u8]>,
    /// Whether the owner may execute it.
    pub executable: bool,
}

/// An unpacked archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// The name of the top folder that was stripped: `mamba_ssm-2.2.4`.
    pub top: String,
    /// All files, ordered by path.
    pub files: Vec<ArchiveFile>,
    /// Symbolic links inside the tree, which were left out.
    pub skipped: Vec<String>,
}

/// How much an archive may hold.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Unpacked bytes, headers included.
    pub bytes: u64,
    /// Entries of any kind.
    pub entries: usize,
}

impl Default for Limits {
    /// 1 GiB and 100,000 entries.
    fn default() -> Self {
        Self { bytes: 1 << 30, entries: 100_000 }
    }
}

/// Why an archive was refused.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// Neither `.tar.gz` nor `.zip`.
    #[error("{archive}: only .tar.gz, .tgz and .zip can be unpacked")]
    UnknownKind {
        /// The archive's file name.
        archive: String,
    },
    /// Broken or cut off.
    #[error("{archive} is broken or cut off: {cause}")]
    Broken {
        /// The archive's file name.
        archive: String,
        /// What the reader said.
        cause: String,
    },
    /// An entry with a path that may not be written.
    #[error("{archive}: entry `{entry}` is refused: {why}")]
    Path {
        /// The archive's file name.
        archive: String,
        /// The entry as it is named there.
        entry: String,
        /// What is wrong with it.
        why: BadPath,
    },
    /// A link, device or another thing that is no file.
    #[error("{archive}: entry `{entry}` is refused: it is {what}")]
    NotAFile {
        /// The archive's file name.
        archive: String,
        /// The entry.
        entry: String,
        /// What it is.
        what: &'static str,
    },
    /// Two entries for one place.
    #[error("{archive}: entry `{entry}` clashes with `{other}`")]
    Clash {
        /// The archive's file name.
        archive: String,
        /// The later entry.
        entry: String,
        /// The earlier one.
        other: String,
    },
    /// The files do not lie in one top folder.
    #[error("{archive}: not all entries lie in one top folder: `{entry}` does not lie in `{top}`")]
    NoSingleTop {
        /// The archive's file name.
        archive: String,
        /// The entry outside.
        entry: String,
        /// The first top folder.
        top: String,
    },
    /// More than the limits allow.
    #[error("{archive} unpacks to more than {limit}")]
    TooLarge {
        /// The archive's file name.
        archive: String,
        /// The limit, in words.
        limit: String,
    },
}

impl ArchiveError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Broken { .. } => Some("download it again, or use the git repository: --source git".into()),
            Self::UnknownKind { .. } => Some("unpack it yourself and give the folder as target".into()),
            _ => Some("do not trust this archive; use the git repository: --source git".into()),
        }
    }
}

/// Whether a file name is one of an archive that [`unpack`] reads.
pub fn is_archive(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".tar.gz", ".tgz", ".zip"].iter().any(|suffix| name.ends_with(suffix))
}

/// Unpacks an archive within the usual limits; `name` tells its kind.
pub fn unpack(name: &str, bytes: &[u8]) -> Result<Archive, ArchiveError> {
    unpack_within(name, bytes, Limits::default())
}

/// Unpacks an archive within other limits.
pub fn unpack_within(name: &str, bytes: &[u8], limits: Limits) -> Result<Archive, ArchiveError> {
    let mut entries = Entries::new(name, limits);
    match name.to_ascii_lowercase() {
        lower if lower.ends_with(".zip") => read_zip(bytes, &mut entries)?,
        lower if is_archive(&lower) => read_tar(bytes, &mut entries)?,
        _ => return Err(ArchiveError::UnknownKind { archive: name.into() }),
    }
    entries.finish()
}

fn read_tar(bytes: &[u8], entries: &mut Entries) -> Result<(), ArchiveError> {
    // Headers count too: long-name records could be a bomb of their own. One byte more tells "full" from "too much".
    let unzipped = flate2::read::MultiGzDecoder::new(bytes).take(entries.limits.bytes.saturating_add(1));
    let mut tar = tar::Archive::new(unzipped);
    let iterator = tar.entries().map_err(|error| entries.broken(&error))?;
    for entry in iterator {
        let mut entry = entry.map_err(|error| entries.broken(&error))?;
        read_tar_entry(&mut entry, entries)?;
    }
    let mut rest = tar.into_inner();
    // The checksum of the compressed stream stands at its end.
    io::copy(&mut rest, &mut io::sink()).map_err(|error| entries.broken(&error))?;
    if rest.limit() == 0 { Err(entries.too_large()) } else { Ok(()) }
}

fn read_tar_entry<R: Read>(entry: &mut tar::Entry<'_, R>, entries: &mut Entries) -> Result<(), ArchiveError> {
    use tar::EntryType as Type;
    let kind = entry.header().entry_type();
    if matches!(kind, Type::XGlobalHeader) {
        return Ok(());
    }
    let raw = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    let executable = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
    match kind {
        Type::Regular | Type::Continuous => {
            let size = entry.size();
            entries.file(&raw, executable, Content { reader: entry, size })
        }
        Type::Directory => entries.folder(&raw),
        Type::Symlink => {
            let target = entry.link_name_bytes().unwrap_or_default();
            let target = String::from_utf8_lossy(&target).into_owned();
            entries.link(&raw, &target)
        }
        Type::Link => Err(entries.not_a_file(&raw, "a hard link")),
        Type::Char | Type::Block => Err(entries.not_a_file(&raw, "a device")),
        Type::Fifo => Err(entries.not_a_file(&raw, "a named pipe")),
        _ => Err(entries.not_a_file(&raw, "of an unknown kind")),
    }
}

fn read_zip(bytes: &[u8], entries: &mut Entries) -> Result<(), ArchiveError> {
    let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).map_err(|error| entries.broken(&error))?;
    // The reader keeps one entry a name; the count in the file's own end record tells whether one was lost.
    if zip_entry_count(bytes).is_some_and(|count| count != zip.len() & 0xffff) {
        return Err(entries.broken(&"its list of entries names a path twice"));
    }
    for index in 0..zip.len() {
        let mut entry = zip.by_index(index).map_err(|error| entries.broken(&error))?;
        let raw = String::from_utf8_lossy(entry.name_raw()).into_owned();
        let mode = entry.unix_mode().unwrap_or(0o644);
        if entry.is_symlink() {
            let mut target = String::new();
            (&mut entry).take(4096).read_to_string(&mut target).map_err(|error| entries.broken(&error))?;
            entries.link(&raw, &target)?;
        } else if entry.is_dir() {
            entries.folder(&raw)?;
        } else if matches!(mode & 0o170_000, 0 | 0o100_000) {
            let size = entry.size();
            entries.file(&raw, mode & 0o100 != 0, Content { reader: &mut entry, size })?;
        } else {
            return Err(entries.not_a_file(&raw, "no regular file"));
        }
    }
    Ok(())
}

/// The number of entries (modulo 65,536) that the end record of a zip file states.
fn zip_entry_count(bytes: &[u8]) -> Option<usize> {
    let at = bytes.windows(4).rposition(|window| window == b"PK\x05\x06")?;
    let count = bytes.get(at + 10..at + 12)?;
    Some(usize::from(u16::from_le_bytes([count[0], count[1]])))
}

/// What is left to read of one entry, and how long it says it is.
struct Content<'a> {
    reader: &'a mut dyn Read,
    size: u64,
}

/// The entries read so far.
struct Entries {
    archive: String,
    limits: Limits,
    left: u64,
    count: usize,
    top: Option<String>,
    files: BTreeMap<String, ArchiveFile>,
    folders: BTreeSet<String>,
    /// Lower-case path to the path as it was.
    places: BTreeMap<String, String>,
    skipped: Vec<String>,
}

impl Entries {
    fn new(archive: &str, limits: Limits) -> Self {
        Self {
            archive: archive.into(),
            limits,
            left: limits.bytes,
            count: 0,
            top: None,
            files: BTreeMap::new(),
            folders: BTreeSet::new(),
            places: BTreeMap::new(),
            skipped: Vec::new(),
        }
    }

    fn file(&mut self, raw: &str, executable: bool, content: Content<'_>) -> Result<(), ArchiveError> {
        let Some(path) = self.admit(raw)? else {
            return Err(self.no_top(raw));
        };
        self.claim(&path)?;
        let mut bytes = Vec::new();
        if content.size > self.left {
            return Err(self.too_large());
        }
        content
            .reader
            .take(self.left.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| self.broken(&error))?;
        if bytes.len() as u64 != content.size {
            return Err(self.broken(&format!("`{raw}` is not as long as it says")));
        }
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| self.too_large())?;
        self.files.insert(path.clone(), ArchiveFile { path, bytes: bytes.into(), executable });
        Ok(())
    }

    fn folder(&mut self, raw: &str) -> Result<(), ArchiveError> {
        let Some(path) = self.admit(raw)? else { return Ok(()) };
        if self.files.contains_key(&path) {
            return Err(self.clash(&path, &path));
        }
        self.folders.insert(path);
        Ok(())
    }

    fn link(&mut self, raw: &str, target: &str) -> Result<(), ArchiveError> {
        let Some(path) = self.admit(raw)? else {
            return Err(self.not_a_file(raw, "a symbolic link in the place of the top folder"));
        };
        if !tree_path::link_stays(&path, target) {
            return Err(self.not_a_file(raw, "a symbolic link that leaves the tree"));
        }
        self.claim(&path)?;
        self.skipped.push(path);
        Ok(())
    }

    /// The path below the top folder; none for the top folder itself.
    fn admit(&mut self, raw: &str) -> Result<Option<String>, ArchiveError> {
        self.count += 1;
        if self.count > self.limits.entries {
            let limit = format!("{} entries", self.limits.entries);
            return Err(ArchiveError::TooLarge { archive: self.archive.clone(), limit });
        }
        let refused = |why| ArchiveError::Path {
            archive: self.archive.clone(),
            entry: raw.escape_debug().to_string(),
            why,
        };
        let path = match tree_path::checked(raw) {
            Err(BadPath::NotPortable) if raw.trim_end_matches('/') == "." => return Ok(None),
            other => other.map_err(refused)?,
        };
        let (top, below) =
            path.split_once('/').map_or((path.as_str(), None), |(top, rest)| (top, Some(rest)));
        if self.top.get_or_insert_with(|| top.to_string()) != top {
            return Err(self.no_top(raw));
        }
        Ok(below.map(str::to_string))
    }

    /// Takes the place of a path; refuses a second file there, also one that differs by case only.
    fn claim(&mut self, path: &str) -> Result<(), ArchiveError> {
        if let Some(other) = self.places.insert(path.to_lowercase(), path.to_string()) {
            return Err(self.clash(path, &other));
        }
        if self.folders.contains(path) {
            return Err(self.clash(path, path));
        }
        for (at, _) in path.match_indices('/') {
            let parent = &path[..at];
            if let Some(other) = self.places.get(&parent.to_lowercase()) {
                return Err(self.clash(path, other));
            }
            self.folders.insert(parent.to_string());
        }
        Ok(())
    }

    fn finish(self) -> Result<Archive, ArchiveError> {
        let Some(top) = self.top.clone().filter(|_| !self.files.is_empty()) else {
            return Err(self.broken(&"it holds no files"));
        };
        Ok(Archive { top, files: self.files.into_values().collect(), skipped: self.skipped })
    }

    fn broken(&self, cause: &dyn std::fmt::Display) -> ArchiveError {
        ArchiveError::Broken { archive: self.archive.clone(), cause: cause.to_string() }
    }

    fn not_a_file(&self, raw: &str, what: &'static str) -> ArchiveError {
        ArchiveError::NotAFile { archive: self.archive.clone(), entry: raw.escape_debug().to_string(), what }
    }

    fn clash(&self, path: &str, other: &str) -> ArchiveError {
        ArchiveError::Clash { archive: self.archive.clone(), entry: path.into(), other: other.into() }
    }

    fn no_top(&self, raw: &str) -> ArchiveError {
        let top = self.top.clone().unwrap_or_default();
        ArchiveError::NoSingleTop {
            archive: self.archive.clone(),
            entry: raw.escape_debug().to_string(),
            top,
        }
    }

    fn too_large(&self) -> ArchiveError {
        ArchiveError::TooLarge {
            archive: self.archive.clone(),
            limit: format!("{} bytes", self.limits.bytes),
        }
    }
}
