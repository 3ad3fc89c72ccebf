//! The wheel that a build left: exactly one, with all that was asked for in it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::BuildError;
use crate::engine::arch::Code;
use crate::kernels::inspect::Binary;
use crate::kernels::inspect::places::{PlaceError, places};

/// The libraries of a wheel, by their names in it.
pub type Libraries = Vec<(String, Binary)>;

/// The only wheel of a folder.
pub fn only(folder: &Path, log: &Path) -> Result<PathBuf, BuildError> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut wheels: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "whl")).collect();
    match (wheels.pop(), wheels.len()) {
        (Some(wheel), 0) => Ok(wheel),
        (wheel, more) => {
            let count = more + usize::from(wheel.is_some());
            Err(BuildError::NotOneWheel { count, log: log.to_path_buf() })
        }
    }
}

/// Its libraries, once all codes that were asked for are found in them.
pub fn proved(wheel: &Path, wanted: &[Code], log: &Path) -> Result<Libraries, BuildError> {
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let log = log.to_path_buf();
    let places = match places(&wheel.to_string_lossy(), None) {
        Err(PlaceError::Empty { .. }) => return Err(BuildError::NoCode { wheel: name, log }),
        places => places?,
    };
    let read = |place: &crate::kernels::inspect::places::Place| match place.read() {
        Ok(binary) => Ok((place.label.clone(), binary)),
        Err(cause) => Err(BuildError::Inspect { place: place.label.clone(), cause }),
    };
    let libraries = places.iter().map(read).collect::<Result<Libraries, _>>()?;
    let found = codes(&libraries);
    if found.is_empty() {
        return Err(BuildError::NoCode { wheel: name, log });
    }
    let is_there = |wanted: &&Code| found.keys().any(|code| code.serves(**wanted));
    let lacks: Vec<String> = wanted.iter().filter(|code| !is_there(code)).map(Code::to_string).collect();
    if lacks.is_empty() {
        return Ok(libraries);
    }
    let found = found.keys().map(Code::to_string).collect();
    Err(BuildError::Lacks { wheel: name, lacks, found, log })
}

/// All codes, and in how many parts they are.
pub fn codes(libraries: &Libraries) -> BTreeMap<Code, usize> {
    let mut all = BTreeMap::new();
    for (code, count) in libraries.iter().flat_map(|(_, binary)| binary.code.pieces()) {
        *all.entry(code).or_default() += count;
    }
    all
}

/// Refuses a folder that cannot be written to, before anything is compiled; nothing is left there.
pub fn check(out: &Path) -> Result<(), BuildError> {
    let full = std::path::absolute(out).unwrap_or_else(|_| out.to_path_buf());
    let there = full.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("."));
    let failed = |cause| BuildError::System { what: "write to", path: out.to_path_buf(), cause };
    tempfile::tempfile_in(there).map(drop).map_err(failed)
}

/// Moves a wheel to its folder: whole or not at all.
pub fn place(wheel: &Path, out: &Path) -> Result<PathBuf, BuildError> {
    let failed = |cause: io::Error| BuildError::System { what: "write", path: out.to_path_buf(), cause };
    fs::create_dir_all(out).map_err(failed)?;
    let target = fs::canonicalize(out).map_err(failed)?.join(wheel.file_name().unwrap_or_default());
    if fs::rename(wheel, &target).is_ok() {
        return Ok(target);
    }
    // Another file system.
    let temporary = tempfile::Builder::new().prefix(".mambapatch-").tempfile_in(out).map_err(failed)?;
    fs::copy(wheel, temporary.path()).map_err(failed)?;
    temporary.persist(&target).map_err(|error| failed(error.error))?;
    Ok(target)
}
