//! The patch sets that are built into the program.

use include_dir::{Dir, include_dir};

use super::load::{Texts, is_part};

static FOLDER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/patchsets");

/// Whether a folder of this name beside the sets is a set itself: the facts and the rules for logs are none.
pub fn is_set(name: &str) -> bool {
    !matches!(name, "catalogue" | "diagnose")
}

/// The texts of the shipped patch sets.
pub fn texts() -> Texts {
    let mut texts = Texts::default();
    let sets = FOLDER.dirs().filter(|set| set.path().to_str().is_some_and(is_set));
    for file in sets.flat_map(Dir::files) {
        if let (Some(path), Some(toml)) = (file.path().to_str(), file.contents_utf8())
            && is_part(path)
        {
            texts.insert(&path.replace('\\', "/"), toml, None);
        }
    }
    texts
}
