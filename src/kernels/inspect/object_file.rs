//! What an ELF or PE file says about itself: its machine, where its GPU code lies, what it needs from other libraries.

use std::io::{Read, Seek};
use std::ops::Range;

use object::elf::{self, FileHeader32, FileHeader64};
use object::pe::{ImageNtHeaders32, ImageNtHeaders64};
use object::read::coff::CoffFile;
use object::read::elf::{Dyn as _, FileHeader, SectionHeader as _, SectionTable, Sym as _};
use object::read::pe::{ImageNtHeaders, PeFile};
use object::{Endianness, FileKind, ObjectSection as _};

use super::window::Window;

/// What a file says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectFile {
    /// `x86_64`, `aarch64`.
    pub machine: String,
    /// Sections with GPU code that the loader uses as it is.
    pub linked: Vec<Range<u64>>,
    /// Sections with GPU code that nvlink links; in a finished library only the loader's own linker still uses it.
    pub relocatable: Vec<Range<u64>>,
    /// The libraries that it names: `libcudart.so.12`.
    pub needed: Vec<String>,
    /// The versions of symbols that it needs: `GLIBC_2.17`, `GLIBCXX_3.4.30`.
    pub versions: Vec<String>,
    /// The symbols that it takes from other libraries.
    pub imports: Vec<String>,
    /// The symbols that it offers; only read where they were asked for.
    pub exports: Vec<String>,
    /// Whether it was said where its sections lie.
    pub has_sections: bool,
}

/// What a file is.
pub enum Kind {
    /// A library or an object.
    Object(Box<ObjectFile>),
    /// A static library: the name of each member, and where it lies.
    Archive(Vec<(String, Range<u64>)>),
}

/// Which symbols are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symbols {
    /// Those that it takes from others.
    Imported,
    /// Those that it offers.
    Exported,
}

/// More members than any static library has.
const MOST_MEMBERS: usize = 200_000;

/// Reads what a file says about itself. The error says what is wrong with it.
pub fn read<R: Read + Seek>(window: &Window<R>, symbols: Symbols) -> Result<Kind, String> {
    let kind = FileKind::parse(window).map_err(|_| "it is no ELF or PE file".to_string())?;
    let object = match kind {
        FileKind::Elf64 => elf::<FileHeader64<Endianness>, R>(window, symbols),
        FileKind::Elf32 => elf::<FileHeader32<Endianness>, R>(window, symbols),
        FileKind::Pe64 => pe::<ImageNtHeaders64, R>(window),
        FileKind::Pe32 => pe::<ImageNtHeaders32, R>(window),
        FileKind::Coff => coff(window),
        FileKind::Archive => return archive(window).map(Kind::Archive).map_err(|error| error.to_string()),
        other => return Err(format!("{other:?} files hold no code of nvcc")),
    };
    object.map(|object| Kind::Object(Box::new(object))).map_err(|error| error.to_string())
}

fn elf<Elf: FileHeader<Endian = Endianness>, R: Read + Seek>(
    window: &Window<R>,
    symbols: Symbols,
) -> object::Result<ObjectFile> {
    let header = Elf::parse(window)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, window)?;
    let mut object = ObjectFile {
        machine: machine(header.e_machine(endian)),
        has_sections: !sections.is_empty(),
        ..ObjectFile::default()
    };
    for section in sections.iter() {
        let name = sections.section_name(endian, section).unwrap_or_default();
        if let Some((offset, size)) = section.file_range(endian) {
            object.place(name, offset..offset.saturating_add(size));
        }
    }
    read_needed(&mut object, &sections, (endian, window))?;
    let dynamic = sections.symbols(endian, window, elf::SHT_DYNSYM)?;
    let table = if header.e_type(endian) == elf::ET_REL {
        sections.symbols(endian, window, elf::SHT_SYMTAB)?
    } else {
        dynamic
    };
    for symbol in table.iter().filter(|symbol| symbol.st_name(endian) != 0) {
        let imported = symbol.is_undefined(endian);
        // The loader does without what is weak.
        if imported && symbol.st_bind() == elf::STB_WEAK {
            continue;
        }
        if imported == (symbols == Symbols::Imported)
            && let Ok(name) = symbol.name(endian, table.strings())
        {
            let list = if imported { &mut object.imports } else { &mut object.exports };
            list.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(object)
}

/// The libraries and symbol versions that an ELF file names.
fn read_needed<'a, Elf: FileHeader<Endian = Endianness>, R: Read + Seek>(
    object: &mut ObjectFile,
    sections: &SectionTable<'a, Elf, &'a Window<R>>,
    (endian, window): (Endianness, &'a Window<R>),
) -> object::Result<()> {
    if let Some((entries, link)) = sections.dynamic(endian, window)? {
        let strings = sections.strings(endian, window, link)?;
        for entry in entries.iter().filter(|entry| entry.tag(endian) == elf::DT_NEEDED) {
            let name = entry.string(endian, strings)?;
            object.needed.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    if let Some((mut needs, link)) = sections.gnu_verneed(endian, window)? {
        let strings = sections.strings(endian, window, link)?;
        while let Some((_, mut versions)) = needs.next()? {
            while let Some(version) = versions.next()? {
                object.versions.push(String::from_utf8_lossy(version.name(endian, strings)?).into_owned());
            }
        }
    }
    Ok(())
}

fn pe<Pe: ImageNtHeaders, R: Read + Seek>(window: &Window<R>) -> object::Result<ObjectFile> {
    let file = PeFile::<Pe, _>::parse(window)?;
    let mut object = with_sections(&file);
    // A library whose import table is too far apart to be read still tells where its GPU code lies.
    if let Ok(Some(table)) = file.import_table() {
        let mut descriptors = table.descriptors()?;
        while let Some(descriptor) = descriptors.next()? {
            let name = table.name(descriptor.name.get(object::LittleEndian))?;
            object.needed.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(object)
}

fn coff<R: Read + Seek>(window: &Window<R>) -> object::Result<ObjectFile> {
    Ok(with_sections(&CoffFile::<_>::parse(window)?))
}

fn with_sections<'data>(file: &impl object::Object<'data>) -> ObjectFile {
    let machine = match file.architecture() {
        object::Architecture::X86_64 => "x86_64".to_string(),
        object::Architecture::Aarch64 => "aarch64".to_string(),
        other => format!("{other:?}").to_lowercase(),
    };
    let mut object = ObjectFile { machine, has_sections: true, ..ObjectFile::default() };
    for section in file.sections() {
        if let (Ok(name), Some((offset, size))) = (section.name_bytes(), section.file_range()) {
            object.place(name, offset..offset.saturating_add(size));
        }
    }
    object
}

impl ObjectFile {
    /// Notes a section that holds GPU code. In PE files a name has eight letters at most.
    fn place(&mut self, name: &[u8], range: Range<u64>) {
        match name {
            b".nv_fatbin" | b".nv_fatb" => self.linked.push(range),
            b"__nv_relfatbin" | b"__nv_rel" => self.relocatable.push(range),
            _ => {}
        }
    }
}

/// As `uname -m` names it.
fn machine(machine: elf::Machine) -> String {
    match machine {
        elf::EM_X86_64 => "x86_64".to_string(),
        elf::EM_AARCH64 => "aarch64".to_string(),
        elf::EM_PPC64 => "ppc64le".to_string(),
        elf::EM_386 => "i686".to_string(),
        elf::EM_ARM => "arm".to_string(),
        other => format!("ELF machine {}", other.0),
    }
}

fn archive<R: Read + Seek>(window: &Window<R>) -> object::Result<Vec<(String, Range<u64>)>> {
    let archive = object::read::archive::ArchiveFile::parse(window)?;
    let mut members = Vec::new();
    for member in archive.members().take(MOST_MEMBERS) {
        let member = member?;
        let (offset, size) = member.file_range();
        let name = String::from_utf8_lossy(member.name()).into_owned();
        members.push((name, offset..offset.saturating_add(size)));
    }
    Ok(members)
}
