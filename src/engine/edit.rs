//! Replacements of bytes in one file: sorted, never overlapping.

use std::ops::Range;

/// Bytes to replace in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The bytes of the old text that go; empty for an insertion.
    pub range: Range<usize>,
    /// What stands there afterwards.
    pub text: Vec<u8>,
}

/// Two edits that touch the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two edits touch the same bytes: {first:?} and {second:?}")]
pub struct Overlap {
    /// The edit that was there.
    pub first: Range<usize>,
    /// The one that came.
    pub second: Range<usize>,
}

/// The edits of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edits {
    sorted: Vec<Edit>,
}

impl From<Edit> for Edits {
    fn from(edit: Edit) -> Self {
        Self { sorted: vec![edit] }
    }
}

impl Edits {
    /// No edit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an edit. The same edit twice is once; one that changes nothing is none.
    pub fn insert(&mut self, edit: Edit) -> Result<(), Overlap> {
        if edit.range.is_empty() && edit.text.is_empty() {
            return Ok(());
        }
        let key = (edit.range.start, edit.range.end);
        let at = self.sorted.partition_point(|other| (other.range.start, other.range.end) < key);
        for other in at.checked_sub(1).into_iter().chain([at]).filter_map(|index| self.sorted.get(index)) {
            if *other == edit {
                return Ok(());
            }
            let crosses = other.range.start < edit.range.end && edit.range.start < other.range.end;
            if crosses || other.range == edit.range {
                return Err(Overlap { first: other.range.clone(), second: edit.range });
            }
        }
        self.sorted.insert(at, edit);
        Ok(())
    }

    /// Adds all of these edits, or none of them.
    pub fn try_add(&mut self, edits: Vec<Edit>) -> Result<(), Overlap> {
        let mut more = self.clone();
        edits.into_iter().try_for_each(|edit| more.insert(edit))?;
        *self = more;
        Ok(())
    }

    /// Adds all edits of another set.
    pub fn merge(&mut self, other: Edits) -> Result<(), Overlap> {
        other.sorted.into_iter().try_for_each(|edit| self.insert(edit))
    }

    /// Inserts a text at an offset of [`Edits::apply`]'s result, of which it becomes a part.
    pub fn insert_in_result(&mut self, at: usize, text: &[u8]) {
        let mut shift = 0isize;
        for (index, edit) in self.sorted.iter_mut().enumerate() {
            let start = edit.range.start.wrapping_add_signed(shift);
            if at < start {
                let at = at.wrapping_add_signed(-shift);
                self.sorted.insert(index, Edit { range: at..at, text: text.to_vec() });
                return;
            }
            if at <= start + edit.text.len() {
                edit.text.splice(at - start..at - start, text.iter().copied());
                return;
            }
            shift += edit.text.len() as isize - edit.range.len() as isize;
        }
        let at = at.wrapping_add_signed(-shift);
        self.sorted.push(Edit { range: at..at, text: text.to_vec() });
    }

    /// In the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = &Edit> {
        self.sorted.iter()
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// How many places change.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// The text with all edits made. Ranges must lie within `old`.
    pub fn apply(&self, old: &[u8]) -> Vec<u8> {
        let mut new = Vec::with_capacity(old.len());
        let mut at = 0;
        for edit in &self.sorted {
            new.extend_from_slice(&old[at..edit.range.start]);
            new.extend_from_slice(&edit.text);
            at = edit.range.end;
        }
        new.extend_from_slice(&old[at..]);
        new
    }

    /// The edits that lead back from [`Edits::apply`]'s text to `old`.
    pub fn reverse(&self, old: &[u8]) -> Edits {
        let mut shift = 0isize;
        let mut sorted = Vec::with_capacity(self.sorted.len());
        for edit in &self.sorted {
            let start = edit.range.start.wrapping_add_signed(shift);
            sorted
                .push(Edit { range: start..start + edit.text.len(), text: old[edit.range.clone()].to_vec() });
            shift += edit.text.len() as isize - edit.range.len() as isize;
        }
        Edits { sorted }
    }

    /// The smallest edits, by whole lines, that lead from `old` to `new`.
    pub fn between_lines(old: &[u8], new: &[u8]) -> Edits {
        let (old_lines, new_lines) = (lines(old), lines(new));
        let ops = similar::capture_diff_slices(similar::Algorithm::Patience, &old_lines, &new_lines);
        let (old_starts, new_starts) = (starts(&old_lines), starts(&new_lines));
        let sorted = ops
            .iter()
            .filter(|op| op.tag() != similar::DiffTag::Equal)
            .map(|op| Edit {
                range: old_starts[op.old_range().start]..old_starts[op.old_range().end],
                text: new[new_starts[op.new_range().start]..new_starts[op.new_range().end]].to_vec(),
            })
            .collect();
        Edits { sorted }
    }
}

/// The lines of a text, each with its newline.
pub fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

fn starts(lines: &[&[u8]]) -> Vec<usize> {
    let mut at = 0;
    let mut starts = vec![0];
    for line in lines {
        at += line.len();
        starts.push(at);
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edit(range: Range<usize>, text: &str) -> Edit {
        Edit { range, text: text.as_bytes().to_vec() }
    }

    #[test]
    fn the_same_edit_twice_is_once_and_a_clash_is_an_error() {
        let mut edits = Edits::new();
        assert_eq!(edits.insert(edit(2..4, "x")), Ok(()));
        assert_eq!(edits.insert(edit(2..4, "x")), Ok(()));
        assert_eq!(edits.insert(edit(4..4, "y")), Ok(()));
        assert_eq!(edits.len(), 2);
        assert!(edits.insert(edit(3..5, "z")).is_err());
        assert_eq!(edits.apply(b"abcdef"), b"abxyef");
    }

    proptest! {
        #[test]
        fn reverse_edits_restore_the_old_text(old in "[ab\n]{0,40}", new in "[ab\n]{0,40}") {
            let edits = Edits::between_lines(old.as_bytes(), new.as_bytes());
            prop_assert_eq!(edits.apply(old.as_bytes()), new.as_bytes());
            prop_assert_eq!(edits.reverse(old.as_bytes()).apply(new.as_bytes()), old.as_bytes());
        }

        #[test]
        fn a_text_inserted_in_the_result_stands_there(
            old in "[ab\n]{0,40}", new in "[ab\n]{0,40}", at in 0usize..40
        ) {
            let mut edits = Edits::between_lines(old.as_bytes(), new.as_bytes());
            let mut wanted = new.into_bytes();
            let at = at.min(wanted.len());
            edits.insert_in_result(at, b"xy");
            wanted.splice(at..at, *b"xy");
            prop_assert_eq!(edits.apply(old.as_bytes()), &wanted[..]);
            prop_assert_eq!(edits.reverse(old.as_bytes()).apply(&wanted), old.as_bytes());
        }

        #[test]
        fn accepted_edits_never_overlap(ranges in prop::collection::vec((0usize..20, 0usize..6, "[xy]{0,2}"), 0..12)) {
            let old = [b'.'; 30];
            let mut edits = Edits::new();
            for (start, length, text) in ranges {
                let _ = edits.insert(edit(start..start + length, &text));
            }
            let all: Vec<_> = edits.iter().collect();
            prop_assert!(all.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
            let new = edits.apply(&old);
            prop_assert_eq!(edits.reverse(&old).apply(&new), old);
        }
    }
}
