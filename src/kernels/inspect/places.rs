//! Which files a word on the command line means: a file, a wheel, a folder, or an installed module.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tempfile::SpooledTempFile;
use zip::ZipArchive;

use super::{Binary, InspectError, read};
use crate::kernels::python;

/// A library or object somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// How it is shown: below the folder or wheel that was named.
    pub label: String,
    source: Source,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    File(PathBuf),
    Member { wheel: PathBuf, number: usize },
}

/// Why a word means no file.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// A path where nothing is.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    /// It could not be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// No library and no object lies there.
    #[error("{place} holds no library and no object")]
    Empty {
        /// The folder, wheel or module.
        place: String,
    },
    /// No such module and no such package.
    #[error("no module and no package `{name}` is installed{}", if *asked { "" } else { ": no Python was found" })]
    NoModule {
        /// The name.
        name: String,
        /// Whether there was a Python to ask.
        asked: bool,
        /// A file or folder of that name lies here.
        is_here: bool,
    },
}

/// More files than any installation has.
const MOST_FILES: usize = 200_000;
/// A member that unpacks to more than this, or to this many times its size, is no library.
const MOST_BYTES: u64 = 8 << 30;
const MOST_GROWTH: u64 = 200;
const SMALL: u64 = 64 << 20;

/// The files that a word means: a path if it looks like one or names a binary, else an installed module.
pub fn places(word: &str, python: Option<&Path>) -> Result<Vec<Place>, PlaceError> {
    let is_path = word.contains(['/', '\\']) || word.starts_with(['.', '~']);
    let named = is_binary(word) || is_archive(word);
    if !is_path && !named {
        return module(word, python);
    }
    let path = at_home(word);
    let data = fs::metadata(&path).map_err(|_| PlaceError::Missing(path.clone()))?;
    if !data.is_dir() && is_archive(word) {
        return members(&path);
    }
    if !data.is_dir() {
        return Ok(vec![Place { label: word.to_string(), source: Source::File(path) }]);
    }
    let mut files = Vec::new();
    walk(&path, &mut files)?;
    some(below(files, &path), word)
}

/// Whether a name is one of a library or an object.
pub fn is_binary(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".so", ".pyd", ".dll", ".o", ".obj", ".a", ".lib"].iter().any(|ending| name.ends_with(ending))
        || name
            .split_once(".so.")
            .is_some_and(|(_, version)| version.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_archive(name: &str) -> bool {
    name.ends_with(".whl") || name.ends_with(".zip")
}

/// A path, with the home folder for a leading `~`.
pub fn at_home(word: &str) -> PathBuf {
    let rest = word.strip_prefix("~/").or(word.strip_prefix("~").filter(|rest| rest.is_empty()));
    match (rest, std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(word),
    }
}

fn some(places: Vec<Place>, place: &str) -> Result<Vec<Place>, PlaceError> {
    if places.is_empty() { Err(PlaceError::Empty { place: place.to_string() }) } else { Ok(places) }
}

/// All binaries below a folder, links left out: a library and its link would count twice.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), PlaceError> {
    let unreadable =
        |error: io::Error| PlaceError::Unreadable { path: folder.to_path_buf(), cause: error.to_string() };
    let mut entries: Vec<_> =
        fs::read_dir(folder).map_err(unreadable)?.collect::<Result<_, _>>().map_err(unreadable)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() {
            walk(&entry.path(), files)?;
        } else if kind.is_file()
            && is_binary(&entry.file_name().to_string_lossy())
            && files.len() < MOST_FILES
        {
            files.push(entry.path());
        }
    }
    Ok(())
}

fn below(files: Vec<PathBuf>, folder: &Path) -> Vec<Place> {
    let label = |path: &Path| path.strip_prefix(folder).unwrap_or(path).display().to_string();
    files.into_iter().map(|path| Place { label: label(&path), source: Source::File(path) }).collect()
}

/// The binaries of a wheel.
fn members(wheel: &Path) -> Result<Vec<Place>, PlaceError> {
    let unreadable = |cause: String| PlaceError::Unreadable { path: wheel.to_path_buf(), cause };
    let file = File::open(wheel).map_err(|error| unreadable(error.to_string()))?;
    let archive = ZipArchive::new(file).map_err(|error| unreadable(error.to_string()))?;
    let names = (0..archive.len()).filter_map(|number| Some((number, archive.name_for_index(number)?.ok()?)));
    let places = names.filter(|(_, name)| is_binary(name)).map(|(number, name)| Place {
        label: name.into_owned(),
        source: Source::Member { wheel: wheel.to_path_buf(), number },
    });
    some(places.collect(), &wheel.display().to_string())
}

/// What Python knows of a name. Nothing is imported but the parents of a dotted name.
const WHERE: &str = r#"
import importlib.metadata as m, importlib.util as u, json, sys
name = sys.argv[1]
try: spec = u.find_spec(name)
except (ImportError, ValueError): spec = None
origin = spec.origin if spec and spec.has_location else None
folders = list(spec.submodule_search_locations or []) if spec else []
owners = getattr(m, "packages_distributions", dict)().get(name, [])
files = []
for owner in dict.fromkeys([name, *owners]):
    try: files += [str(file.locate()) for file in m.files(owner) or []]
    except (m.PackageNotFoundError, ValueError): pass
print(json.dumps({"origin": origin, "folders": folders, "files": files}))
"#;

#[derive(Debug, Deserialize)]
struct Where {
    origin: Option<PathBuf>,
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

/// A module that is one binary; else the binaries of the packages that it belongs to; else those of its folders.
fn module(name: &str, python: Option<&Path>) -> Result<Vec<Place>, PlaceError> {
    let found: Option<Where> = python::ask(python, WHERE, &[name]);
    let asked = found.is_some();
    let is_binary_path = |path: &Path| is_binary(&path.to_string_lossy());
    let Some(found) =
        found.filter(|found| found.origin.is_some() || !found.files.is_empty() || !found.folders.is_empty())
    else {
        let is_here = Path::new(name).exists();
        return Err(PlaceError::NoModule { name: name.to_string(), asked, is_here });
    };
    if let Some(origin) = found.origin.filter(|origin| is_binary_path(origin)) {
        return Ok(below(vec![origin], Path::new("")));
    }
    let mut files: Vec<PathBuf> =
        found.files.into_iter().filter(|path| is_binary_path(path) && path.is_file()).collect();
    if files.is_empty() {
        found.folders.iter().try_for_each(|folder| walk(folder, &mut files))?;
    }
    files.sort();
    files.dedup();
    some(below(files, Path::new("")), name)
}

impl Place {
    /// Reads what it holds. A member of a wheel is unpacked to a temporary file where it is large.
    pub fn read(&self) -> Result<Binary, InspectError> {
        match &self.source {
            Source::File(path) => read(&mut File::open(path)?),
            Source::Member { wheel, number } => read(&mut unpacked(wheel, *number)?),
        }
    }

    /// Whether it must be unpacked first.
    pub fn is_packed(&self) -> bool {
        matches!(self.source, Source::Member { .. })
    }
}

fn unpacked(wheel: &Path, number: usize) -> Result<SpooledTempFile, InspectError> {
    let broken = |error: zip::result::ZipError| InspectError::NoObject(error.to_string());
    let mut archive = ZipArchive::new(File::open(wheel)?).map_err(broken)?;
    let member = archive.by_index(number).map_err(broken)?;
    let limit = MOST_BYTES.min(member.compressed_size().saturating_mul(MOST_GROWTH).max(SMALL));
    let mut file = tempfile::spooled_tempfile(SMALL as usize);
    let copied = io::copy(&mut member.take(limit + 1), &mut file)?;
    if copied > limit {
        return Err(InspectError::NoObject(format!("it unpacks to more than {} MB", limit >> 20)));
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binaries_are_told_by_their_names() {
        for name in
            ["a.so", "liba.so.12", "a.cp311-win_amd64.pyd", "A.DLL", "a.o", "liba.a", "a.obj", "a.lib"]
        {
            assert!(is_binary(name), "{name}");
        }
        for name in ["a.py", "so", "a.so.txt", "a.json", "a.so.", "a.oo"] {
            assert!(!is_binary(name), "{name}");
        }
    }
}
