//! Names that a tree defines itself: they mean what the tree says, and are left alone.

use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;

use super::Site;
use crate::engine::source::Sources;
use crate::engine::syntax::census::{Definition, Name, Place};
use crate::engine::syntax::namespaces::looks_in;
use crate::engine::syntax::{DeadCode, Language, Passes};

/// A name with the place where the tree defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnName {
    /// The name.
    pub name: String,
    /// Where.
    pub site: Site,
    /// As what: `macro`, `function`.
    pub what: &'static str,
    /// The namespaces around the whole name; none where it is defined outside of all.
    outer: Vec<String>,
}

impl fmt::Display for OwnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, site, what, outer } = self;
        let name = outer.iter().chain([name]).map(String::as_str).collect::<Vec<_>>().join("::");
        write!(f, "{} line {} defines `{name}` itself, as a {what}", site.path, site.line)
    }
}

impl OwnName {
    /// From the place of a definition.
    pub fn new(name: &str, site: Site, definition: &Definition) -> Self {
        let Definition { what, outer, .. } = definition;
        Self { name: name.to_string(), site, what, outer: outer.clone() }
    }

    /// Whether the name may mean this one wherever it stands.
    pub fn is_everywhere(&self) -> bool {
        self.outer.is_empty()
    }

    /// Whether the name may mean this one at a place of a file.
    pub fn is_meant(&self, bytes: &[u8], at: usize) -> bool {
        self.is_everywhere() || looks_in(bytes, at, &self.outer)
    }
}

/// The file of the tree that an include at a place means, if it is one: beside the file; where the include names a folder,
/// also by the end of its path.
pub fn header<'s>(sources: &'s Sources, path: &str, at: usize) -> Option<&'s str> {
    let include = sources.includes(path).iter().find(|include| (include.start..include.end).contains(&at))?;
    let name = std::str::from_utf8(&include.path).ok()?;
    let folder = |path: &str| path.rsplit_once('/').map_or(0, |(folder, _)| folder.len() + 1);
    let beside = |other: &str| !include.system && other.get(folder(path)..) == Some(name);
    let ends = |other: &str| {
        name.contains('/')
            && other.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    let mut others = sources.paths().filter(|other| *other != path);
    others.find(|other| ends(other) || (other.starts_with(&path[..folder(path)]) && beside(other)))
}

/// Where the C++ files of a tree define a name, but for branches that are never taken.
pub fn definitions(sources: &Sources, name: &str, passes: &Passes) -> Vec<OwnName> {
    let parsed = Name::new(name);
    let of = |(path, bytes): (&str, &Arc<[u8]>)| {
        let definitions = parsed.census(bytes).definitions;
        // Most files use the name and do not define it; then the dead code does not matter.
        let dead = if definitions.is_empty() { DeadCode::default() } else { DeadCode::of(bytes, passes) };
        let live = definitions.into_iter().filter(|one| !dead.holds(one.at));
        live.map(|one| OwnName::new(name, Site::of(path, bytes, one.at), &one)).collect::<Vec<_>>()
    };
    cpp(sources).into_par_iter().flat_map_iter(of).collect()
}

/// The C++ files of a tree.
fn cpp(sources: &Sources) -> Vec<(&str, &Arc<[u8]>)> {
    sources.iter().filter(|(path, _)| Language::of_path(path) == Some(Language::Cpp)).collect()
}

/// Whether a tree defines a macro several times, as for several platforms, and uses it nowhere.
pub fn is_unused_choice(sources: &Sources, name: &str) -> bool {
    let parsed = Name::new(name);
    let occurrences =
        cpp(sources).into_par_iter().flat_map_iter(|(_, bytes)| parsed.census(bytes).occurrences);
    let (defined, others): (Vec<Place>, Vec<Place>) =
        occurrences.map(|found| found.place).partition(|place| matches!(place, Place::Definition("macro")));
    let is_use = |place: &Place| !place.is_text() && !matches!(place, Place::Condition | Place::Directive);
    defined.len() > 1 && !others.iter().any(is_use)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_include_may_mean_a_file_of_the_tree() {
        let meant = |path: &str, include: &str, other: &str| {
            let sources: Sources = [(path, include.as_bytes()), (other, b"")].into_iter().collect();
            header(&sources, path, 0).map(str::to_string)
        };
        for (path, include, other) in [
            ("a/b.cu", "#include \"h.h\"\n", "a/h.h"),
            ("b.cu", "#include \"h.h\"\n", "h.h"),
            ("a/b.cu", "#include <THC/h.h>\n", "shims/THC/h.h"),
            ("a/b.cu", "#include \"THC/h.h\"\n", "THC/h.h"),
        ] {
            assert_eq!(meant(path, include, other).as_deref(), Some(other), "{path} {include}");
        }
        for (path, include, other) in [
            ("a/b.cu", "#include \"h.h\"\n", "c/h.h"),
            ("a/b.cu", "#include <h.h>\n", "a/h.h"),
            ("a/b.cu", "#include <THC/h.h>\n", "MyTHC/h.h"),
        ] {
            assert_eq!(meant(path, include, other), None, "{path} {include}");
        }
    }
}
