//! GPU code inside an object: the records that nvcc puts into its fatbinary sections.
//!
//! NVIDIA does not document the format. What is read here was measured on objects of nvcc 11.0 to 13.4 against
//! `cuobjdump`: a record is `u32 magic, u16 version, u16 header size, u64 body size`; its entries are `u16 kind, u16,
//! u32 header size, u64 payload size, …, u16 minor and u16 major (+24), u32 arch (+28), …, u64 flags (+40)`. Payloads
//! may be compressed (LZ4 until CUDA 12, zstd since 13.0); the header never is, so that nothing is decompressed.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

use crate::engine::arch::{Arch, Code, Variant};

const MAGIC: u32 = 0xBA55_ED50;
const RECORD_HEADER: u64 = 16;
const ENTRY_HEADER: u64 = 48;
/// Compiled for `120a`, `120f`.
const SPECIFIC: u64 = 1 << 20;
const FAMILY: u64 = 1 << 21;
/// More than anything seen (libraries of 1.3 GB hold 20 kinds of parts, of at most 13 codes).
const MOST_KINDS: usize = 4096;
const MOST_CODES: usize = 1024;

/// The GPU code of an object, part by part. A part is what nvcc made of one source file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuCode {
    /// What a part holds, sorted, and how many parts hold just that.
    pub parts: BTreeMap<Vec<Code>, usize>,
    /// The newest version of PTX in it: 9.0.
    pub ptx_version: Option<(u16, u16)>,
    /// Entries of a kind that is not known.
    pub unknown: usize,
}

/// Why fatbinary records cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FatbinError {
    /// The file is shorter than the record says, or the record than its entries.
    #[error("the GPU code at byte {at} is broken or cut off")]
    Cut {
        /// Where in the file.
        at: u64,
    },
    /// No compiler makes that many.
    #[error("the GPU code holds more kinds of parts than any compiler makes")]
    TooMany,
    /// The file could not be read.
    #[error("{0}")]
    Read(#[from] io::Error),
}

impl GpuCode {
    /// How many pieces there are of each code; `cuobjdump` lists as many.
    pub fn pieces(&self) -> BTreeMap<Code, usize> {
        let mut pieces = BTreeMap::new();
        for (codes, count) in &self.parts {
            codes.iter().for_each(|code| *pieces.entry(*code).or_insert(0) += count);
        }
        pieces
    }

    /// How many parts there are.
    pub fn count(&self) -> usize {
        self.parts.values().sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds what other sections or objects hold.
    pub fn add(&mut self, other: &GpuCode) {
        other.parts.iter().for_each(|(codes, count)| *self.parts.entry(codes.clone()).or_insert(0) += count);
        self.ptx_version = self.ptx_version.max(other.ptx_version);
        self.unknown += other.unknown;
    }
}

/// Reads the records in a range of a file: a section. Only headers are read, whatever the section's size.
pub fn read(file: impl Read + Seek, section: Range<u64>) -> Result<GpuCode, FatbinError> {
    let mut bytes = Bytes::new(file, section.end)?;
    let mut code = GpuCode::default();
    let mut at = section.start;
    while at.checked_add(RECORD_HEADER).is_some_and(|end| end <= section.end) {
        let header: [u8; 16] = bytes.read(at)?;
        let (magic, start) = (number(&header, 0, 4), number(&header, 6, 2));
        if magic != u64::from(MAGIC) || start < RECORD_HEADER {
            // Records are aligned to eight bytes; zeros lie between them.
            at += 8;
            continue;
        }
        let end = (at + start).checked_add(number(&header, 8, 8)).filter(|end| *end <= section.end);
        let end = end.ok_or(FatbinError::Cut { at })?;
        let part = part(&mut bytes, at + start..end, &mut code)?;
        *code.parts.entry(part).or_insert(0) += 1;
        if code.parts.len() > MOST_KINDS {
            return Err(FatbinError::TooMany);
        }
        at = end.max(at + RECORD_HEADER);
    }
    Ok(code)
}

/// The codes of one record, sorted.
fn part<R: Read + Seek>(
    bytes: &mut Bytes<R>,
    body: Range<u64>,
    code: &mut GpuCode,
) -> Result<Vec<Code>, FatbinError> {
    let (mut part, mut at) = (Vec::new(), body.start);
    while at + ENTRY_HEADER <= body.end {
        let entry: [u8; 48] = bytes.read(at)?;
        match code_of(&entry) {
            Some(found) => part.push(found),
            None => code.unknown += 1,
        }
        if let Some(Code::Ptx(_)) = code_of(&entry) {
            let version = (number(&entry, 26, 2) as u16, number(&entry, 24, 2) as u16);
            code.ptx_version = code.ptx_version.max(Some(version));
        }
        if part.len() > MOST_CODES {
            return Err(FatbinError::TooMany);
        }
        let (header, payload) = (number(&entry, 4, 4), number(&entry, 8, 8));
        let next = (at + header).checked_add(payload).filter(|next| *next <= body.end);
        at = next.filter(|_| header >= ENTRY_HEADER).ok_or(FatbinError::Cut { at })?;
    }
    part.sort();
    Ok(part)
}

/// What an entry is; none where the kind is not known.
fn code_of(entry: &[u8; 48]) -> Option<Code> {
    let flags = number(entry, 40, 8);
    let variant = match (flags & SPECIFIC, flags & FAMILY) {
        (0, 0) => Variant::Plain,
        (0, _) => Variant::Family,
        _ => Variant::Specific,
    };
    let arch = Arch { number: number(entry, 28, 4).try_into().ok()?, variant };
    match number(entry, 0, 2) {
        1 => Some(Code::Ptx(arch)),
        2 => Some(Code::Sass(arch)),
        8 => Some(Code::Lto(arch)),
        _ => None,
    }
}

/// A number, the least byte first.
fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes.iter().skip(at).take(length).rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// A file that is read here and there, mostly forwards.
struct Bytes<R> {
    file: BufReader<R>,
    at: u64,
}

impl<R: Read + Seek> Bytes<R> {
    /// A file that is at least so long: no place in it overflows.
    fn new(file: R, length: u64) -> Result<Self, FatbinError> {
        let mut file = BufReader::with_capacity(4096, file);
        let at = file.seek(SeekFrom::End(0))?;
        if at < length { Err(FatbinError::Cut { at }) } else { Ok(Self { file, at }) }
    }

    fn read<const N: usize>(&mut self, at: u64) -> Result<[u8; N], FatbinError> {
        self.file.seek_relative(at.wrapping_sub(self.at) as i64)?;
        let mut bytes = [0; N];
        self.at = at + N as u64;
        match self.file.read_exact(&mut bytes) {
            Ok(()) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(FatbinError::Cut { at }),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Cursor;

    use super::*;

    /// A record as nvcc 13 writes it: kind, arch, flags and payload of each entry.
    pub fn record(entries: &[(u16, u32, u64, usize)]) -> Vec<u8> {
        let mut body = Vec::new();
        for (kind, arch, flags, payload) in entries {
            let mut header = [0; 64];
            header[0..2].copy_from_slice(&kind.to_le_bytes());
            header[4..8].copy_from_slice(&64_u32.to_le_bytes());
            header[8..16].copy_from_slice(&(*payload as u64).to_le_bytes());
            header[26] = 9;
            header[28..32].copy_from_slice(&arch.to_le_bytes());
            header[40..48].copy_from_slice(&flags.to_le_bytes());
            body.extend_from_slice(&header);
            // The payload looks like a record; it must not be taken for one.
            body.extend(MAGIC.to_le_bytes().iter().cycle().take(*payload));
        }
        let mut record = MAGIC.to_le_bytes().to_vec();
        record.extend_from_slice(&[1, 0, 16, 0]);
        record.extend_from_slice(&(body.len() as u64).to_le_bytes());
        [record, body].concat()
    }

    fn codes(bytes: &[u8]) -> Result<Vec<(String, usize)>, FatbinError> {
        let code = read(Cursor::new(bytes), 0..bytes.len() as u64)?;
        let words = |codes: &[Code]| codes.iter().map(Code::to_string).collect::<Vec<_>>().join(" ");
        Ok(code.parts.iter().map(|(codes, count)| (words(codes), *count)).collect())
    }

    #[test]
    fn machine_code_and_ptx_are_told_apart_with_their_suffix() {
        let one = record(&[
            (2, 80, 0x11, 40),
            (1, 120, 0x8011, 16),
            (2, 120, 0x1100011, 8),
            (2, 100, 0x1208011, 8),
        ]);
        let bytes = [one.clone(), vec![0; 24], one, record(&[(8, 90, 0x18011, 0)]), vec![0; 8]].concat();
        let found = codes(&bytes).expect("readable");
        assert_eq!(found, [("sm_80 sm_100f sm_120a compute_120".into(), 2), ("lto_90".into(), 1)]);
        let code = read(Cursor::new(&bytes), 0..bytes.len() as u64).expect("readable");
        assert_eq!((code.ptx_version, code.count(), code.unknown), (Some((9, 0)), 3, 0));
        assert_eq!(code.pieces()[&Code::Sass(Arch::plain(80))], 2);
    }

    #[test]
    fn unknown_kinds_are_counted() {
        let code = record(&[(64, 90, 0, 8), (2, 90, 0, 8), (2, 70_000, 0, 8)]);
        let code = read(Cursor::new(&code), 0..code.len() as u64).expect("readable");
        assert_eq!((code.unknown, code.count()), (2, 1));
    }

    #[test]
    fn every_cut_is_an_error_or_finds_less() {
        let whole = [record(&[(2, 80, 0, 40), (1, 90, 0, 16)]), record(&[(2, 90, 0, 8)])].concat();
        for length in 0..whole.len() {
            match codes(&whole[..length]) {
                Ok(found) => assert!(found.len() < 2, "{length}"),
                Err(error) => assert!(matches!(error, FatbinError::Cut { .. }), "{length}: {error}"),
            }
        }
    }

    #[test]
    fn sizes_that_overflow_are_errors() {
        for at in [8, 20, 24] {
            let mut bytes = record(&[(2, 80, 0, 40)]);
            bytes[at..at + 4].fill(0xff);
            assert!(matches!(codes(&bytes), Err(FatbinError::Cut { .. })), "{at}");
            bytes[at + 4..at + 8].fill(0xff);
            assert!(matches!(codes(&bytes), Err(FatbinError::Cut { .. })), "{at}");
        }
        let mut endless = record(&[(2, 80, 0, 0)]);
        endless[20..24].fill(0);
        assert!(matches!(codes(&endless), Err(FatbinError::Cut { .. })));
    }

    #[test]
    fn more_kinds_than_any_compiler_makes_are_refused() {
        let many: Vec<u8> = (0..5000).flat_map(|arch| record(&[(2, arch, 0, 0)])).collect();
        assert!(matches!(codes(&many), Err(FatbinError::TooMany)));
        let long: Vec<_> = (0..2000).map(|arch| (2, arch, 0, 0)).collect();
        assert!(matches!(codes(&record(&long)), Err(FatbinError::TooMany)));
    }
}
