//! Trees that are as they must be already: the program changes nothing in them. No compiler is needed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::harness::say;
use super::trees::Trees;
use super::units::files;
use super::variable;

/// Source distributions that compile for sm_120 with CUDA 13.0 and PyTorch 2.11 as they are.
const SDISTS: [(&str, &str); 3] =
    [("mamba-ssm", "2.3.1"), ("causal-conv1d", "1.6.1"), ("flash-attn", "2.8.3")];

/// The same of checkouts: how their names end.
const CHECKOUTS: [&str; 6] = ["mamba", "causal-conv1d", "bitsandbytes", "flash-attention", "apex", "kaolin"];

/// Packages of their own within flash-attention: their lists end with 90, and are to be longer.
const OLDER: [&str; 3] = ["csrc/layer_norm/setup.py", "csrc/ft_attention/setup.py", "hopper/setup.py"];

/// Every file of a tree.
fn bytes(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |path: String| {
        let bytes = fs::read(root.join(&path)).expect("a file can be read");
        (path, bytes)
    };
    files(root).into_iter().map(read).collect()
}

/// The files that differ after the program ran, or why it did not.
fn changed(trees: &Trees) -> Vec<String> {
    let (before, after) = (bytes(&trees.before()), bytes(&trees.after()));
    assert!(
        before.contains_key("setup.py") || before.contains_key("CMakeLists.txt"),
        "no build file is there"
    );
    let differs = |(path, bytes): &(&String, &Vec<u8>)| before.get(*path) != Some(bytes);
    let differing = after.iter().filter(differs).map(|(path, _)| path.clone());
    let changed = differing.filter(|path| !OLDER.contains(&path.as_str()));
    changed.chain(trees.refused.clone()).collect()
}

#[test]
fn current_releases_are_left_alone() {
    for (distribution, version) in SDISTS {
        let changed = changed(&Trees::of_sdist(distribution, version));
        assert!(changed.is_empty(), "{distribution} {version}: {changed:?}");
        say(&format!("control: nothing changes in {distribution} {version}"));
    }
}

#[test]
#[ignore = "needs checkouts (MAMBAPATCH_CORPUS)"]
fn current_checkouts_are_left_alone() {
    let corpus = variable("MAMBAPATCH_CORPUS").expect("MAMBAPATCH_CORPUS names a folder");
    let folders = fs::read_dir(corpus).expect("the corpus can be read").flatten();
    let named = |name: &str| CHECKOUTS.iter().any(|control| name.ends_with(control));
    let controls = folders.filter(|entry| named(&entry.file_name().to_string_lossy()));
    for control in controls {
        let changed = changed(&Trees::of_folder(&control.path()));
        assert!(changed.is_empty(), "{}: {changed:?}", control.path().display());
        say(&format!("control: nothing changes in {}", control.file_name().display()));
    }
}
