//! A run that dies at any step leaves the old tree or the new one, and the next run completes.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use mambapatch::checkout::{Entry, Kind};
use mambapatch::deliver::vendor::disk::{Disk, Real};
use mambapatch::deliver::vendor::lock::{Lock, Origin, Parameters, Record, Used, digest};
use mambapatch::deliver::vendor::record::Recorded;
use mambapatch::deliver::vendor::state::State;
use mambapatch::deliver::vendor::tree::listing;
use mambapatch::deliver::vendor::{Alone, Update, add, recover};

/// A disk on which nothing happens any more after some steps; the last one happens by half.
struct Dying {
    left: Cell<usize>,
    exchanges: bool,
}

impl Dying {
    fn after(steps: usize, exchanges: bool) -> Self {
        Self { left: Cell::new(steps), exchanges }
    }

    fn step(&self, whole: impl FnOnce() -> io::Result<()>, half: impl FnOnce()) -> io::Result<()> {
        match self.left.get() {
            0 => Err(io::Error::other("killed")),
            1 => {
                self.left.set(0);
                half();
                Err(io::Error::other("killed"))
            }
            left => {
                self.left.set(left - 1);
                whole()
            }
        }
    }

    fn is_dead(&self) -> bool {
        self.left.get() == 0
    }
}

impl Disk for Dying {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.step(|| Real.make_folder(path), || {})
    }

    fn write(&self, path: &Path, entry: &Entry) -> io::Result<()> {
        let half = Entry { kind: Kind::File, bytes: entry.bytes[..entry.bytes.len() / 2].to_vec() };
        self.step(|| Real.write(path, entry), || drop(Real.write(path, &half)))
    }

    fn carry(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|| Real.carry(from, to), || {})
    }

    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        if !self.exchanges {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.step(|| Real.exchange(one, other), || {})
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(|| Real.rename(from, to), || {})
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let some_file = || drop(fs::remove_file(path.join("setup.py")));
        self.step(|| Real.remove(path), some_file)
    }
}

fn recorded(reference: &str, files: &[(&str, &str)]) -> Recorded {
    let entry = |text: &str| Entry { kind: Kind::File, bytes: text.as_bytes().to_vec() };
    let tree: BTreeMap<String, Entry> =
        files.iter().map(|(path, text)| (path.to_string(), entry(text))).collect();
    let (format, made_by) = Lock::made_now();
    let origin =
        Origin { id: "x".into(), reference: reference.into(), commit: None, archive: None, url: None };
    let lock = Lock {
        format,
        made_by,
        upstream: origin,
        asked: Parameters::default(),
        patches: Used { applied: Vec::new(), content: digest(b"") },
        tree: Record {
            digest: digest(listing(&tree).as_bytes()),
            files: tree.len(),
            licences: Vec::new(),
            left_out: Vec::new(),
            lfs_pointers: Vec::new(),
        },
        changed: Vec::new(),
        submodule: Vec::new(),
    };
    Recorded { tree, lock, notes: Vec::new() }
}

fn old() -> Recorded {
    recorded("v1", &[("setup.py", "one\n"), ("csrc/a.cu", "a\n"), ("csrc/gone.cu", "gone\n")])
}

fn new() -> Recorded {
    recorded("v2", &[("setup.py", "two\n"), ("csrc/a.cu", "a\n"), ("csrc/deep/new.cu", "new\n")])
}

/// Every file below a folder with its content.
fn snapshot(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let name = entry.path().strip_prefix(root).expect("below").display().to_string();
            match entry.path().is_dir() {
                true => open.push(entry.path()),
                false => drop(found.insert(name, fs::read_to_string(entry.path()).expect("text"))),
            }
        }
    }
    found
}

fn names(folder: &Path) -> BTreeSet<String> {
    fs::read_dir(folder)
        .expect("list")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// A vendored folder with work of a person in it.
fn vendored(folder: &Path) {
    add(&old(), folder, &Real).expect("added");
    fs::write(folder.join("csrc/a.cu"), "mine\n").expect("write");
    fs::create_dir_all(folder.join("build/empty")).expect("folder");
    fs::write(folder.join("build/x.o"), "object\n").expect("write");
}

fn update(folder: &Path, disk: &dyn Disk) -> Result<(), String> {
    recover(folder, disk).map_err(|error| error.to_string())?;
    let state = State::of_folder(folder).map_err(|error| error.to_string())?;
    let source = mambapatch::checkout::Whole { entries: old().tree, ..Default::default() };
    let update = Update { source: Some(&source), new: &new(), name: "v2" };
    update.of_folder(&state, disk).map(drop).map_err(|error| error.to_string())
}

#[test]
fn an_update_is_whole_or_has_not_been() {
    for exchanges in [true, false] {
        let wanted = {
            let root = tempfile::tempdir().expect("folder");
            let folder = root.path().join("v");
            vendored(&folder);
            update(&folder, &Real).expect("updated");
            assert!(folder.join("build/empty").is_dir());
            snapshot(&folder)
        };
        assert_eq!((wanted["setup.py"].as_str(), wanted["csrc/a.cu"].as_str()), ("two\n", "mine\n"));
        assert!(wanted.contains_key("build/x.o") && !wanted.contains_key("csrc/gone.cu"));
        let mut deaths = 0;
        for steps in 1.. {
            let root = tempfile::tempdir().expect("folder");
            let folder = root.path().join("v");
            vendored(&folder);
            let before = snapshot(&folder);
            let disk = Dying::after(steps, exchanges);
            let result = update(&folder, &disk);
            let after = snapshot(&folder);
            let between_two_renames = !exchanges && !folder.exists();
            assert!(
                after == before || after == wanted || between_two_renames,
                "{steps} steps, exchange {exchanges}: a mixture: {after:#?}"
            );
            update(&folder, &Real).unwrap_or_else(|error| panic!("{steps} steps: the next run: {error}"));
            assert_eq!(snapshot(&folder), wanted, "{steps} steps: the next run completes");
            assert_eq!(
                names(root.path()),
                BTreeSet::from(["v".to_string()]),
                "{steps} steps: nothing is left beside"
            );
            if !disk.is_dead() {
                result.expect("nothing died");
                break;
            }
            deaths += 1;
        }
        assert!(deaths > 10, "{deaths} deaths");
    }
}

#[test]
fn an_addition_is_whole_or_has_not_been() {
    let mut deaths = 0;
    for steps in 1.. {
        let root = tempfile::tempdir().expect("folder");
        let folder = root.path().join("v");
        let disk = Dying::after(steps, true);
        let _ = add(&old(), &folder, &disk);
        let after = snapshot(&folder);
        assert!(
            after.is_empty() || after.len() == old().tree.len() + 2,
            "{steps} steps: a mixture: {after:#?}"
        );
        add(&old(), &folder, &Real).expect("the next run");
        assert!(State::of_folder(&folder).expect("read").deviations().is_empty());
        assert_eq!(
            names(root.path()),
            BTreeSet::from(["v".to_string()]),
            "{steps} steps: nothing is left beside"
        );
        if !disk.is_dead() {
            break;
        }
        deaths += 1;
    }
    assert!(deaths > 5, "{deaths} deaths");
}

#[test]
fn two_runs_at_once_are_told_apart() {
    let root = tempfile::tempdir().expect("folder");
    let folder = root.path().join("v");
    vendored(&folder);
    let other = Alone::at(&folder).expect("nobody else");
    let error = Alone::at(&folder).expect_err("someone else").to_string();
    assert!(error.contains("another mambapatch is at work on "), "{error}");
    drop(other);
    Alone::at(&folder).expect("nobody else");
}

#[cfg(unix)]
#[test]
fn files_that_stay_the_same_keep_their_times() {
    use std::os::unix::fs::MetadataExt;
    let root = tempfile::tempdir().expect("folder");
    let folder = root.path().join("v");
    vendored(&folder);
    let node = |path: &str| fs::metadata(folder.join(path)).expect("metadata").ino();
    let before = [node("csrc/a.cu"), node("build/x.o"), node("setup.py")];
    update(&folder, &Real).expect("updated");
    let after = [node("csrc/a.cu"), node("build/x.o"), node("setup.py")];
    assert_eq!((before[0], before[1]), (after[0], after[1]));
    assert_ne!(before[2], after[2]);
}
