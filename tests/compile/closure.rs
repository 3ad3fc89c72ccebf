//! Which files of a tree a translation unit reads, by the names that it includes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::units::{Unit, below};

static INCLUDE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?m)^[ \t]*#[ \t]*include[ \t]*[<"]([^">\n]+)[">]"#).expect("a pattern"));

/// The unit and all that it includes from the tree, each with its bytes; a branch that is never taken counts too.
pub fn closure(tree: &Path, unit: &Unit) -> BTreeMap<String, Vec<u8>> {
    let folders = folders(unit);
    let mut read = BTreeMap::new();
    let mut open = BTreeSet::from([unit.path.clone()]);
    while let Some(path) = open.pop_first() {
        let Ok(bytes) = fs::read(tree.join(&path)) else { continue };
        let own = Path::new(&path).parent().unwrap_or(Path::new("")).display().to_string();
        for name in INCLUDE.captures_iter(&bytes).map(|found| String::from_utf8_lossy(&found[1]).into_owned())
        {
            let places = [&own].into_iter().chain(&folders).filter_map(|folder| below(folder, &name));
            let found = places.into_iter().find(|place| tree.join(place).is_file());
            open.extend(found.filter(|place| !read.contains_key(place) && *place != path));
        }
        read.insert(path, bytes);
    }
    read
}

/// The folders of the tree on the include path.
fn folders(unit: &Unit) -> Vec<String> {
    let mut folders = Vec::new();
    let mut flags = unit.flags.iter();
    while let Some(flag) = flags.next() {
        let Some(folder) = flag.strip_prefix("-I") else { continue };
        let folder = if folder.is_empty() { flags.next().map_or("", String::as_str) } else { folder };
        folders.extend(below(&unit.folder, folder));
    }
    folders
}
