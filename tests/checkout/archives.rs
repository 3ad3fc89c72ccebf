use std::io::{Cursor, Write};

use mambapatch::checkout::archive::{Archive, ArchiveError, Limits, unpack, unpack_within};
use tar::EntryType;

use crate::made::{tar_entry, tar_gz, tar_gz_with, tar_link};

fn zip(entries: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, mode, bytes) in entries {
        let options = zip::write::SimpleFileOptions::default().unix_permissions(*mode);
        zip.start_file(*path, options).expect("entry");
        zip.write_all(bytes).expect("write");
    }
    zip.finish().expect("zip").into_inner()
}

fn refused(bytes: &[u8]) -> String {
    unpack("a-1.tar.gz", bytes).expect_err("refused").to_string()
}

fn paths(archive: &Archive) -> Vec<(&str, bool)> {
    archive.files.iter().map(|file| (file.path.as_str(), file.executable)).collect()
}

#[test]
fn a_tarball_is_unpacked_with_its_executable_bits() {
    let bytes = tar_gz_with(|tar| {
        tar_entry(tar, "a-1/", (EntryType::Directory, 0o755, b""));
        tar_entry(tar, "pax_global_header", (EntryType::XGlobalHeader, 0o644, b"18 comment=abcdef\n"));
        tar_entry(tar, "a-1/setup.py", (EntryType::Regular, 0o755, b"one\r\n\xff"));
        tar_entry(tar, "./a-1/csrc//b.cu", (EntryType::Regular, 0o644, b""));
        tar_link(tar, "a-1/csrc/link", (EntryType::Symlink, "../setup.py"));
    });
    let archive = unpack("a-1.tar.gz", &bytes).expect("archive");
    assert_eq!(paths(&archive), [("csrc/b.cu", false), ("setup.py", true)]);
    assert_eq!(&archive.files[1].bytes[..], b"one\r\n\xff");
    assert_eq!((archive.top.as_str(), &archive.skipped[..]), ("a-1", &["csrc/link".to_string()][..]));
}

#[test]
fn a_zip_is_unpacked() {
    let archive = unpack("a-1.zip", &zip(&[("a-1/x.sh", 0o755, b"x"), ("a-1/y", 0o644, b"y")])).expect("zip");
    assert_eq!(paths(&archive), [("x.sh", true), ("y", false)]);
}

#[test]
fn paths_that_leave_the_tree_are_refused_by_name() {
    for path in ["a-1/../../etc/x", "/etc/x", "a-1/..", "a-1/.git/hooks/x", "C:/x", r"a-1\x"] {
        let message = refused(&tar_gz(&[("a-1/ok", b""), (path, b"")]));
        assert!(message.contains(&path.escape_debug().to_string()), "{path}: {message}");
        let error = unpack("a-1.zip", &zip(&[(path, 0o644, b"")])).expect_err("refused");
        assert!(matches!(error, ArchiveError::Path { .. }), "{path}: {error}");
    }
}

#[test]
fn links_and_devices_are_refused_by_name() {
    let cases = [
        (EntryType::Symlink, "../../etc/passwd", "a symbolic link that leaves the tree"),
        (EntryType::Symlink, "/etc/passwd", "a symbolic link that leaves the tree"),
        (EntryType::Link, "a-1/ok", "a hard link"),
        (EntryType::Char, "", "a device"),
        (EntryType::Fifo, "", "a named pipe"),
    ];
    for (kind, target, what) in cases {
        let bytes = tar_gz_with(|tar| {
            tar_entry(tar, "a-1/ok", (EntryType::Regular, 0o644, b""));
            tar_link(tar, "a-1/evil", (kind, target));
        });
        let message = refused(&bytes);
        assert!(message.contains("`a-1/evil`") && message.contains(what), "{message}");
    }
}

#[test]
fn a_file_behind_a_skipped_link_is_refused() {
    let bytes = tar_gz_with(|tar| {
        tar_link(tar, "a-1/d", (EntryType::Symlink, "e"));
        tar_entry(tar, "a-1/d/x", (EntryType::Regular, 0o644, b""));
    });
    assert!(matches!(unpack("a-1.tgz", &bytes), Err(ArchiveError::Clash { .. })));
}

#[test]
fn two_entries_for_one_place_are_refused() {
    for pair in [["a-1/x", "a-1/x"], ["a-1/README", "a-1/readme"], ["a-1/x", "a-1/x/y"], ["a-1/x/y", "a-1/x"]]
    {
        let message = refused(&tar_gz(&[(pair[0], b"1"), (pair[1], b"2")]));
        assert!(message.contains("clashes"), "{pair:?}: {message}");
    }
    // The zip writer refuses the same name twice, so one of two names is changed afterwards.
    let mut twice = zip(&[("a-1/x", 0o644, b"1"), ("a-1/y", 0o644, b"2")]);
    while let Some(at) = twice.windows(5).position(|window| window == b"a-1/y") {
        twice[at + 4] = b'x';
    }
    assert!(unpack("a-1.zip", &twice).is_err());
}

#[test]
fn one_top_folder_is_needed() {
    let message = refused(&tar_gz(&[("a-1/x", b""), ("b-1/y", b"")]));
    assert!(message.contains("`b-1/y` does not lie in `a-1`"), "{message}");
    assert!(refused(&tar_gz(&[("setup.py", b"")])).contains("does not lie in"));
    assert!(refused(&tar_gz(&[])).contains("holds no files"));
}

#[test]
fn bombs_are_stopped_while_unpacking() {
    let zeros = vec![0; 3 << 20];
    let limits = Limits { bytes: 1 << 20, entries: 100 };
    for (name, bytes) in [("a.tar.gz", tar_gz(&[("a/x", &zeros)])), ("a.zip", zip(&[("a/x", 0o644, &zeros)]))]
    {
        assert!(bytes.len() < 20_000);
        let error = unpack_within(name, &bytes, limits).expect_err("bomb");
        assert!(matches!(error, ArchiveError::TooLarge { .. }), "{error}");
    }
    let names: Vec<String> = (0..101).map(|number| format!("a/{number}")).collect();
    let many: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    let error = unpack_within("a.tar.gz", &tar_gz(&many), limits).expect_err("many");
    assert_eq!(error.to_string(), "a.tar.gz unpacks to more than 100 entries");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_bytes_at_all_make_it_panic(places in proptest::collection::vec((0..4096usize, 0..=255u8), 1..8)) {
        let tar = tar_gz(&[("a-1/x", b"content"), ("a-1/d/y", b"more")]);
        let mut plain = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&tar[..]), &mut plain).expect("gzip");
        let zip = zip(&[("a-1/x", 0o644, b"content"), ("a-1/d/y", 0o755, b"more")]);
        for (name, whole) in [("a.tar.gz", &tar), ("a.tar", &plain), ("a.zip", &zip)] {
            let mut bytes = whole.clone();
            for (at, byte) in &places {
                let at = at % bytes.len();
                bytes[at] = *byte;
            }
            if name == "a.tar" {
                let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                gzip.write_all(&bytes).expect("gzip");
                bytes = gzip.finish().expect("gzip");
            }
            let read = unpack(if name == "a.zip" { name } else { "a.tar.gz" }, &bytes);
            for file in read.iter().flat_map(|archive| &archive.files) {
                proptest::prop_assert!(!file.path.contains("..") || !file.path.split('/').any(|part| part == ".."));
                proptest::prop_assert!(!file.path.starts_with('/'));
            }
        }
    }
}

#[test]
fn broken_archives_say_so() {
    let whole = tar_gz(&[("a-1/x", &(0..40_000u32).flat_map(u32::to_le_bytes).collect::<Vec<_>>())]);
    for length in [0, 10, whole.len() / 2, whole.len() - 4] {
        let message = refused(&whole[..length]);
        assert!(message.contains("broken or cut off"), "{length}: {message}");
    }
    let mut wrong_sum = whole.clone();
    let at = wrong_sum.len() - 6;
    wrong_sum[at] ^= 1;
    assert!(refused(&wrong_sum).contains("broken"));
    let zipped = zip(&[("a-1/x", 0o644, b"content")]);
    assert!(unpack("a.zip", &zipped[..zipped.len() - 10]).is_err());
    assert!(matches!(unpack("a.tar.bz2", b""), Err(ArchiveError::UnknownKind { .. })));
}
