//! Names that a tree defines itself: they mean what the tree says, and are left alone.

use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;

use super::Site;
use crate::engine::source::Sources;
use crate::engine::syntax::census::{Name, Place};
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
}

impl fmt::Display for OwnName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, site, what } = self;
        write!(f, "{} line {} defines `{name}` itself, as a {what}", site.path, site.line)
    }
}

impl OwnName {
    /// From the place of a definition.
    pub fn new(name: &str, site: Site, what: &'static str) -> Self {
        Self { name: name.to_string(), site, what }
    }
}

/// Where some C++ file of a tree defines a name, but for branches that are never taken.
pub fn definition(sources: &Sources, name: &str, passes: &Passes) -> Option<OwnName> {
    let parsed = Name::new(name);
    cpp(sources).into_par_iter().find_map_first(|(path, bytes)| {
        let definitions = parsed.census(bytes).definitions;
        // Most files use the name and do not define it; then the dead code does not matter.
        let dead = (!definitions.is_empty()).then(|| DeadCode::of(bytes, passes))?;
        let (at, what) = definitions.into_iter().find(|(at, _)| !dead.holds(*at))?;
        Some(OwnName::new(name, Site::of(path, bytes, at), what))
    })
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
