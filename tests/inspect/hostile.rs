//! Cut, changed and forged files: an error or an answer, never a panic, and no more memory than a fixed amount.

use std::io::Cursor;

use mambapatch::kernels::inspect::read;
use proptest::prelude::*;

use crate::binaries::{archive, extension, fatbin};
use crate::{folder_with, run, wheel};

fn survives(bytes: &[u8]) {
    // An error is as good as an answer.
    let _ = read(&mut Cursor::new(bytes));
}

#[test]
fn every_cut_is_survived() {
    let library = extension(&[80, 120]);
    for whole in [library.elf(), library.pe(), archive("one.o", &library.elf())] {
        (0..whole.len()).for_each(|length| survives(&whole[..length]));
    }
}

#[test]
fn a_section_that_is_cut_is_an_error() {
    let mut bytes = extension(&[80, 120]).elf();
    let magic = fatbin(&[vec![]])[..4].to_vec();
    let at = bytes.windows(4).position(|window| window == magic).expect("a record");
    bytes[at + 8..at + 16].fill(0x7f);
    let error = read(&mut Cursor::new(&bytes)).expect_err("it is cut").to_string();
    assert!(error.contains("is broken or cut off"), "{error}");
}

#[test]
fn huge_sizes_and_counts_are_errors() {
    let whole = extension(&[80, 120]).elf();
    let table = u64::from_le_bytes(whole[40..48].try_into().expect("eight bytes")) as usize;
    for section in 1..=7 {
        for (at, size) in [(24, 8), (32, 8), (40, 4)] {
            let mut bytes = whole.clone();
            let at = table + section * 64 + at;
            bytes[at..at + size].fill(0xff);
            survives(&bytes);
            bytes[at + size - 1] = 0x7f;
            survives(&bytes);
        }
    }
}

#[test]
fn what_unpacks_to_far_more_than_it_is_is_refused() {
    let folder =
        folder_with(&[("bomb.whl", wheel(&[("a.so", vec![0; 80 << 20]), ("b.so", extension(&[90]).elf())]))]);
    let (code, out, _) = run(folder.path(), &["./bomb.whl"]);
    assert_eq!(code, 1);
    assert!(out.contains("not read: a.so: it unpacks to more than 64 MB") && out.contains("b.so\n"), "{out}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_bytes_are_survived(
        changes in prop::collection::vec((0.0..1.0_f64, any::<u8>()), 1..12),
        cut in 0.3..1.0_f64,
        kind in 0..3,
    ) {
        let library = extension(&[80, 120]);
        let mut bytes = match kind {
            0 => library.elf(),
            1 => library.pe(),
            _ => archive("one.o", &library.elf()),
        };
        let length = bytes.len();
        for (place, value) in changes {
            bytes[(place * length as f64) as usize] = value;
        }
        bytes.truncate(((cut + 0.4).min(1.0) * length as f64) as usize);
        survives(&bytes);
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..4096), magic in 0..4_usize) {
        let beginning: &[u8] = [&b"\x7fELF\x02\x01\x01"[..], b"MZ", b"!<arch>\n", b""][magic];
        survives(&[beginning, &bytes].concat());
    }
}
