//! Small libraries for ELF and PE, with GPU code as nvcc lays it out; nothing is compiled.

#![allow(dead_code)]

/// The entry kinds of a fatbinary record.
pub const PTX: u16 = 1;
/// Machine code.
pub const SASS: u16 = 2;
/// The flag of `120a`.
pub const SPECIFIC: u64 = 1 << 20;

/// What a library is to hold.
#[derive(Default, Clone)]
pub struct Library {
    /// The records: kind, arch and flags of each entry.
    pub parts: Vec<Vec<(u16, u32, u64)>>,
    /// Records before nvlink.
    pub relocatable: Vec<Vec<(u16, u32, u64)>>,
    /// Libraries that it needs.
    pub needed: Vec<&'static str>,
    /// Versions of symbols that it needs of `libc.so.6`.
    pub versions: Vec<&'static str>,
    /// Symbols that it takes from others.
    pub imports: Vec<&'static str>,
    /// Symbols that it offers.
    pub exports: Vec<&'static str>,
}

/// An extension as mamba-ssm builds it for two architectures.
pub fn extension(arches: &[u32]) -> Library {
    let part: Vec<_> = arches.iter().map(|arch| (SASS, *arch, 0x11)).collect();
    Library {
        parts: vec![part; 3],
        needed: vec!["libc10.so", "libtorch_cuda.so", "libcudart.so.12", "libc.so.6"],
        versions: vec!["GLIBC_2.2.5", "GLIBC_2.32"],
        imports: vec![
            "_ZN3c104cuda9SetDeviceEa",
            "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs",
            "_ZN3c1021throwNullDataPtrErrorEv",
            "memcpy",
        ],
        ..Library::default()
    }
}

/// The records of a section.
pub fn fatbin(parts: &[Vec<(u16, u32, u64)>]) -> Vec<u8> {
    parts.iter().flat_map(|part| record(part)).collect()
}

fn record(entries: &[(u16, u32, u64)]) -> Vec<u8> {
    let body: Vec<u8> = entries
        .iter()
        .flat_map(|(kind, arch, flags)| {
            let mut entry = vec![0; 64 + 16];
            put(&mut entry, 0, &kind.to_le_bytes());
            put(&mut entry, 4, &64_u32.to_le_bytes());
            put(&mut entry, 8, &16_u64.to_le_bytes());
            put(&mut entry, 24, &[0, 0, 9, 0]);
            put(&mut entry, 28, &arch.to_le_bytes());
            put(&mut entry, 40, &flags.to_le_bytes());
            entry
        })
        .collect();
    let mut record = 0xBA55_ED50_u32.to_le_bytes().to_vec();
    record.extend([1, 0, 16, 0]);
    record.extend((body.len() as u64).to_le_bytes());
    [record, body].concat()
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Names, each ended by a zero; where each begins.
#[derive(Default)]
struct Names(Vec<u8>);

impl Names {
    fn add(&mut self, name: &str) -> u32 {
        if self.0.is_empty() {
            self.0.push(0);
        }
        let at = self.0.len() as u32;
        self.0.extend(name.bytes().chain([0]));
        at
    }
}

/// A section before it has a place.
struct Section {
    name: &'static str,
    kind: u32,
    link: u32,
    entry: u64,
    bytes: Vec<u8>,
}

impl Library {
    /// As a shared library for Linux on x86-64.
    pub fn elf(&self) -> Vec<u8> {
        let mut names = Names::default();
        let dynamic: Vec<u8> = self
            .needed
            .iter()
            .map(|name| (1_u64, u64::from(names.add(name))))
            .chain([(0, 0)])
            .flat_map(|(tag, value)| [tag.to_le_bytes(), value.to_le_bytes()].concat())
            .collect();
        let mut symbols = vec![0; 24];
        for (name, section) in
            self.imports.iter().map(|name| (name, 0_u8)).chain(self.exports.iter().map(|name| (name, 1)))
        {
            let mut symbol = vec![0; 24];
            put(&mut symbol, 0, &names.add(name).to_le_bytes());
            symbol[4] = 0x12;
            symbol[6] = section;
            symbols.extend(symbol);
        }
        let versions = self.version_needs(&mut names);
        let section = |name, kind, link, entry, bytes| Section { name, kind, link, entry, bytes };
        // Section 1 is the table of names that the others point to.
        laid_out(&[
            section(".dynstr", 3, 0, 0, names.0),
            section(".dynsym", 11, 1, 24, symbols),
            section(".dynamic", 6, 1, 16, dynamic),
            section(".gnu.version_r", 0x6fff_fffe, 1, 0, versions),
            section(".nv_fatbin", 1, 0, 0, fatbin(&self.parts)),
            section("__nv_relfatbin", 1, 0, 0, fatbin(&self.relocatable)),
        ])
    }

    fn version_needs(&self, names: &mut Names) -> Vec<u8> {
        let count = self.versions.len() as u16;
        let mut bytes = vec![0; 16];
        put(&mut bytes, 0, &1_u16.to_le_bytes());
        put(&mut bytes, 2, &count.to_le_bytes());
        put(&mut bytes, 4, &names.add("libc.so.6").to_le_bytes());
        put(&mut bytes, 8, &16_u32.to_le_bytes());
        for (at, version) in self.versions.iter().enumerate() {
            let mut need = vec![0; 16];
            put(&mut need, 8, &names.add(version).to_le_bytes());
            let next = if at + 1 < self.versions.len() { 16_u32 } else { 0 };
            put(&mut need, 12, &next.to_le_bytes());
            bytes.extend(need);
        }
        if self.versions.is_empty() { Vec::new() } else { bytes }
    }

    /// As a library for Windows on x86-64, without imports.
    pub fn pe(&self) -> Vec<u8> {
        let code = fatbin(&self.parts);
        let mut file = vec![0; 0x200];
        put(&mut file, 0, b"MZ");
        put(&mut file, 0x3c, &0x40_u32.to_le_bytes());
        put(&mut file, 0x40, b"PE\0\0");
        put(&mut file, 0x44, &0x8664_u16.to_le_bytes());
        put(&mut file, 0x46, &1_u16.to_le_bytes());
        put(&mut file, 0x54, &240_u16.to_le_bytes());
        put(&mut file, 0x58, &0x020b_u16.to_le_bytes());
        put(&mut file, 0x58 + 108, &16_u32.to_le_bytes());
        put(&mut file, 0x148, b".nv_fatb");
        put(&mut file, 0x150, &(code.len() as u32).to_le_bytes());
        put(&mut file, 0x154, &0x1000_u32.to_le_bytes());
        put(&mut file, 0x158, &(code.len() as u32).to_le_bytes());
        put(&mut file, 0x15c, &0x200_u32.to_le_bytes());
        file.extend(code);
        file
    }
}

/// Sections behind the header, the names of the sections, and the table of all.
fn laid_out(sections: &[Section]) -> Vec<u8> {
    let mut file = vec![0; 64];
    let (mut names, mut table) = (Names::default(), vec![0; 64]);
    let mut header = |name: u32, section: &Section, at: usize| {
        let mut header = vec![0; 64];
        put(&mut header, 0, &name.to_le_bytes());
        put(&mut header, 4, &section.kind.to_le_bytes());
        put(&mut header, 24, &(at as u64).to_le_bytes());
        put(&mut header, 32, &(section.bytes.len() as u64).to_le_bytes());
        put(&mut header, 40, &section.link.to_le_bytes());
        put(&mut header, 56, &section.entry.to_le_bytes());
        table.extend(header);
    };
    for section in sections {
        let name = names.add(section.name);
        file.resize(file.len().next_multiple_of(8), 0);
        header(name, section, file.len());
        file.extend(&section.bytes);
    }
    let name = names.add(".shstrtab");
    let section = Section { name: ".shstrtab", kind: 3, link: 0, entry: 0, bytes: names.0 };
    header(name, &section, file.len());
    file.extend(&section.bytes);
    file.resize(file.len().next_multiple_of(8), 0);
    let table_at = file.len() as u64;
    file.extend(table);
    put(&mut file, 0, b"\x7fELF\x02\x01\x01");
    put(&mut file, 16, &3_u16.to_le_bytes());
    put(&mut file, 18, &62_u16.to_le_bytes());
    put(&mut file, 20, &1_u32.to_le_bytes());
    put(&mut file, 40, &table_at.to_le_bytes());
    put(&mut file, 52, &64_u16.to_le_bytes());
    put(&mut file, 58, &64_u16.to_le_bytes());
    put(&mut file, 60, &(sections.len() as u16 + 2).to_le_bytes());
    put(&mut file, 62, &(sections.len() as u16 + 1).to_le_bytes());
    file
}

/// A static library of one member.
pub fn archive(name: &str, member: &[u8]) -> Vec<u8> {
    let mut file = b"!<arch>\n".to_vec();
    file.extend(
        format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", format!("{name}/"), 0, 0, 0, 644, member.len())
            .bytes(),
    );
    file.extend(member);
    file.resize(file.len().next_multiple_of(2), b'\n');
    file
}
