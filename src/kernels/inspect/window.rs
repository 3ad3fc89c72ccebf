//! The bytes of a file for the object reader: read where they are asked for, within a budget.

use std::cell::{Cell, RefCell};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use elsa::FrozenVec;
use object::ReadRef;

/// The largest piece that is read; the names of all symbols of libtorch_cpu.so are 12 MB.
const LARGEST: u64 = 64 << 20;
/// All pieces together.
const BUDGET: u64 = 192 << 20;
const BLOCK: u64 = 64 << 10;

/// A file whose pieces stay in memory once they were read; a file that asks for more than the budget gets an error.
pub struct Window<R> {
    file: RefCell<R>,
    start: u64,
    length: u64,
    left: Cell<u64>,
    places: RefCell<Vec<Range<u64>>>,
    pieces: FrozenVec<Box<[u8]>>,
}

impl<R: Read + Seek> Window<R> {
    /// A range of a file, numbered from its start.
    pub fn new(file: R, range: Range<u64>) -> Self {
        Self {
            file: RefCell::new(file),
            start: range.start,
            length: range.end.saturating_sub(range.start),
            left: Cell::new(BUDGET),
            places: RefCell::default(),
            pieces: FrozenVec::new(),
        }
    }

    /// The piece that holds a range, read unless it is there.
    fn piece(&self, range: Range<u64>) -> Option<&[u8]> {
        let size = range.end.checked_sub(range.start).filter(|size| *size <= LARGEST)?;
        if let Some(bytes) = self.known(&range) {
            return Some(bytes);
        }
        let within = range.end <= self.length && size <= self.left.get();
        let bytes = within.then(|| self.load(range.start, size))??;
        self.left.set(self.left.get() - size);
        self.places.borrow_mut().push(range);
        Some(self.pieces.push_get(bytes.into_boxed_slice()))
    }

    fn known(&self, range: &Range<u64>) -> Option<&[u8]> {
        let places = self.places.borrow();
        let holds = |place: &Range<u64>| place.start <= range.start && range.end <= place.end;
        let at = places.iter().rposition(holds)?;
        let start = (range.start - places[at].start) as usize;
        self.pieces.get(at)?.get(start..start + (range.end - range.start) as usize)
    }

    fn load(&self, start: u64, size: u64) -> Option<Vec<u8>> {
        let mut file = self.file.borrow_mut();
        file.seek(SeekFrom::Start(self.start.checked_add(start)?)).ok()?;
        let mut bytes = vec![0; size as usize];
        file.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }
}

impl<'a, R: Read + Seek> ReadRef<'a> for &'a Window<R> {
    fn len(self) -> Result<u64, ()> {
        Ok(self.length)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size == 0 {
            return Ok(&[]);
        }
        let end = offset.checked_add(size).ok_or(())?;
        self.piece(offset..end).ok_or(())
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        // Names lie near each other: whole blocks are read, and the two that a name may touch.
        let block = range.start / BLOCK * BLOCK;
        let end = range.end.min(self.length);
        for end in [(block + BLOCK).min(end), (block + 2 * BLOCK).min(end)] {
            let start = block.min(range.start);
            let bytes = self.piece(start..end).ok_or(())?;
            let name = bytes.get((range.start - start) as usize..).ok_or(())?;
            if let Some(length) = memchr::memchr(delimiter, name) {
                return Ok(&name[..length]);
            }
        }
        Err(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn pieces_are_read_once_and_within_the_file() {
        let bytes: Vec<u8> = (0..=255).cycle().take(200_000).collect();
        let window = Window::new(Cursor::new(bytes), 10..150_010);
        assert_eq!((&window).read_bytes_at(0, 3), Ok(&[10, 11, 12][..]));
        assert_eq!((&window).read_bytes_at(1, 2), Ok(&[11, 12][..]));
        assert_eq!(window.pieces.len(), 1);
        assert_eq!((&window).read_bytes_at(149_999, 2), Err(()));
        assert_eq!((&window).read_bytes_at(u64::MAX, 2), Err(()));
        assert_eq!((&window).read_bytes_at(0, LARGEST + 1), Err(()));
    }

    #[test]
    fn names_may_cross_a_block() {
        let mut bytes = vec![b'a'; 3 * BLOCK as usize];
        bytes[BLOCK as usize + 5] = 0;
        let window = Window::new(Cursor::new(&bytes), 0..bytes.len() as u64);
        let name = (&window).read_bytes_at_until(BLOCK - 10..3 * BLOCK, 0).expect("a name");
        assert_eq!(name.len(), 15);
        assert_eq!((&window).read_bytes_at_until(BLOCK + 6..3 * BLOCK, 0), Err(()));
    }

    #[test]
    fn the_budget_ends() {
        let window = Window::new(Cursor::new(vec![0; 1000]), 0..1000);
        window.left.set(100);
        assert!((&window).read_bytes_at(0, 60).is_ok() && (&window).read_bytes_at(60, 60).is_err());
    }
}
