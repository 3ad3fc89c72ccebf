//! The work of compiling, written down for a machine with more processors: both trees of each project, and the steps of
//! each unit. What it answers is kept like what was compiled here: `{"key": …, "failed": […], "seconds": …}`.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use serde::Serialize;

use super::compiler::{Step, key, steps};
use super::harness::say;
use super::trees::{Trees, copy};
use super::units::units;

/// One unit of one tree.
#[derive(Serialize)]
struct Work<'a> {
    key: String,
    project: &'a str,
    tree: &'a str,
    folder: &'a str,
    unit: &'a str,
    steps: Vec<Step>,
}

/// Writes a project's trees and adds its units.
pub fn write(name: &str, trees: &Trees, folder: &Path) {
    let name = name.replace(' ', "-");
    fs::create_dir_all(folder).expect("a folder can be made");
    let mut list =
        File::options().create(true).append(true).open(folder.join("units.jsonl")).expect("a list");
    for (side, tree) in [("before", trees.before()), ("after", trees.after())] {
        let place = format!("{name}/{side}");
        copy(&tree, &folder.join(&place));
        let found = units(&tree);
        found.notes.iter().for_each(|note| say(&format!("{place}: {note}")));
        for unit in found.units {
            let steps = steps(&unit);
            let key = key(&tree, &unit, &steps);
            let work =
                Work { key, project: &name, tree: &place, folder: &unit.folder, unit: &unit.path, steps };
            writeln!(list, "{}", serde_json::to_string(&work).expect("JSON"))
                .expect("the list can be written");
        }
    }
}
