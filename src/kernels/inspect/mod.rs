//! What a compiled extension really holds: read from the file itself, without any toolkit.

pub mod fatbin;
pub mod fit;
pub mod links;
mod object_file;
pub mod places;
pub mod torch_symbols;
mod window;

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use fatbin::{FatbinError, GpuCode};
use object_file::{Kind, ObjectFile, Symbols};
use window::Window;

/// A library, an object, or all members of a static library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Binary {
    /// The GPU code that runs as it is.
    pub code: GpuCode,
    /// In a finished library: GPU code that was linked into `code`; its PTX can still be translated.
    pub relocatable: GpuCode,
    /// What the file says about itself; of a static library, only the machine.
    pub object: ObjectFile,
}

/// Why a file cannot be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// It is no object, or a broken one.
    #[error("{0}")]
    NoObject(String),
    /// Its GPU code is broken.
    #[error(transparent)]
    Code(#[from] FatbinError),
    /// It could not be read.
    #[error("{0}")]
    Read(#[from] io::Error),
}

/// Reads a library, an object or a static library.
pub fn read(file: &mut (impl Read + Seek)) -> Result<Binary, InspectError> {
    let length = file.seek(SeekFrom::End(0))?;
    read_range(file, 0..length, true)
}

/// The symbols that a library offers.
pub fn exports(file: &mut (impl Read + Seek)) -> Result<Vec<String>, InspectError> {
    let length = file.seek(SeekFrom::End(0))?;
    match object_file::read(&Window::new(file, 0..length), Symbols::Exported) {
        Ok(Kind::Object(object)) => Ok(object.exports),
        Ok(Kind::Archive(_)) => Ok(Vec::new()),
        Err(what) => Err(InspectError::NoObject(what)),
    }
}

fn read_range(
    file: &mut (impl Read + Seek),
    range: Range<u64>,
    outermost: bool,
) -> Result<Binary, InspectError> {
    let kind = object_file::read(&Window::new(&mut *file, range.clone()), Symbols::Imported);
    match kind.map_err(InspectError::NoObject)? {
        Kind::Object(object) => read_code(file, range.start, *object),
        Kind::Archive(members) if outermost => read_members(file, members),
        Kind::Archive(_) => Ok(Binary::default()),
    }
}

fn read_code(file: &mut (impl Read + Seek), start: u64, object: ObjectFile) -> Result<Binary, InspectError> {
    let mut codes = [GpuCode::default(), GpuCode::default()];
    for (code, sections) in codes.iter_mut().zip([&object.linked, &object.relocatable]) {
        for section in sections {
            let section = start.saturating_add(section.start)..start.saturating_add(section.end);
            code.add(&fatbin::read(&mut *file, section)?);
        }
    }
    let [code, relocatable] = codes;
    if code.is_empty() {
        // An object before nvlink: what it holds is all that there is.
        return Ok(Binary { code: relocatable, relocatable: GpuCode::default(), object });
    }
    Ok(Binary { code, relocatable, object })
}

/// All members together; those that are no objects (the list of names, resources) hold no code.
fn read_members(
    file: &mut (impl Read + Seek),
    members: Vec<(String, Range<u64>)>,
) -> Result<Binary, InspectError> {
    let mut whole = Binary::default();
    for (_, range) in members {
        match read_range(file, range, false) {
            Ok(member) => whole.add(member),
            Err(InspectError::NoObject(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(whole)
}

impl Binary {
    fn add(&mut self, member: Binary) {
        self.code.add(&member.code);
        self.relocatable.add(&member.relocatable);
        self.object.has_sections |= member.object.has_sections;
        if self.object.machine.is_empty() {
            self.object.machine = member.object.machine;
        }
    }
}
