//! The law of merging, on random trees: no line of either side is lost, and the result can be written.

use std::collections::{BTreeMap, BTreeSet};

use mambapatch::checkout::{Entry, Kind};
use mambapatch::deliver::vendor::merge::{Sides, merge};
use mambapatch::deliver::vendor::tree::Tree;
use proptest::prelude::*;

/// Path to lines.
type Files = BTreeMap<String, Vec<String>>;

/// What is done to some files: nothing but a removal, or lines that become others.
type Edits = BTreeMap<usize, Option<Vec<usize>>>;

const PATHS: [&str; 6] = ["a", "b", "d/a", "d/b", "d", "e/f"];

fn edits() -> impl Strategy<Value = Edits> {
    let lines = prop::collection::vec(0..8usize, 0..3);
    prop::collection::btree_map(0..PATHS.len(), prop::option::of(lines), 0..4)
}

fn base() -> Files {
    let lines = |file: usize| (0..8).map(|line| format!("base {file} {line}")).collect();
    (0..4).map(|file| (PATHS[file].to_string(), lines(file))).collect()
}

/// The base after edits; each new line names its side.
fn edited(side: &str, edits: &Edits) -> Files {
    let mut files = base();
    for (file, lines) in edits {
        match (lines, PATHS[*file]) {
            (None, "d") => {
                // A file in the place of a folder.
                files.retain(|path, _| !path.starts_with("d/"));
                files.insert("d".into(), vec![format!("{side} is a file")]);
            }
            (None, "e/f") => {
                let moved = files.remove("a").unwrap_or_default();
                files.insert(format!("{side}/moved"), moved);
            }
            (None, path) => drop(files.remove(path)),
            (Some(_), "d") if files.keys().any(|path| path.starts_with("d/")) => {}
            (Some(lines), path) => {
                edit(files.entry(path.into()).or_default(), &format!("{side} {file}"), lines)
            }
        }
    }
    files
}

fn edit(text: &mut Vec<String>, name: &str, lines: &[usize]) {
    for line in lines {
        let new = format!("{name} {line}");
        match text.get_mut(*line) {
            Some(old) => *old = new,
            None => text.push(new),
        }
    }
}

fn tree(files: &Files) -> Tree {
    let text = |lines: &Vec<String>| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let entry = |lines| Entry { kind: Kind::File, bytes: text(lines).into_bytes() };
    files.iter().map(|(path, lines)| (path.clone(), entry(lines))).collect()
}

fn own_lines(files: &Files) -> BTreeSet<String> {
    files.values().flatten().filter(|line| !line.starts_with("base")).cloned().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(64),
    ) })]
    #[test]
    fn no_line_of_either_side_is_lost(ours in edits(), theirs in edits()) {
        let (ours, theirs) = (edited("ours", &ours), edited("theirs", &theirs));
        let sides = Sides { base: &tree(&base()), ours: &tree(&ours), theirs: &tree(&theirs), name: "theirs" };
        let found = merge(sides).expect("a merge");
        let text: String = found.tree.values().map(|entry| String::from_utf8_lossy(&entry.bytes)).collect();
        for line in own_lines(&ours).union(&own_lines(&theirs)) {
            prop_assert!(text.contains(&format!("{line}\n")), "{line} is lost\n{found:?}");
        }
        for path in found.tree.keys() {
            let inside = format!("{path}/");
            prop_assert!(!found.tree.keys().any(|other| other.starts_with(&inside)), "{path} is both");
        }
    }
}
