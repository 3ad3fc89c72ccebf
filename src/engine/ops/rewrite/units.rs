//! Rewrites that look at translation units: what they lack, and what they read.

use std::collections::{BTreeMap, BTreeSet};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::RewriteOp;
use crate::engine::edit::Edits;
use crate::engine::ops::files::Files;
use crate::engine::ops::reach::Reach;
use crate::engine::ops::{OpPlan, Site};
use crate::engine::source::Sources;
use crate::engine::syntax::passes::Macro;
use crate::engine::syntax::{DeadCode, Passes};

/// Headers from outside of a tree, by globs.
#[derive(Debug, Clone, Default)]
pub struct Headers {
    globs: Vec<String>,
    some: GlobSet,
    others: GlobSet,
}

impl Headers {
    /// Those that one of the globs matches, but none that begins with `!`; `*` does not match `/`.
    pub fn new(globs: &[String]) -> Result<Self, globset::Error> {
        let (others, some): (Vec<&str>, Vec<&str>) =
            globs.iter().map(String::as_str).partition(|glob| glob.starts_with('!'));
        let set = |globs: Vec<&str>| {
            let mut set = GlobSetBuilder::new();
            for glob in globs {
                set.add(GlobBuilder::new(glob.trim_start_matches('!')).literal_separator(true).build()?);
            }
            set.build()
        };
        Ok(Self { globs: globs.to_vec(), some: set(some)?, others: set(others)? })
    }

    /// As they were written.
    pub fn globs(&self) -> &[String] {
        &self.globs
    }

    /// Whether a header, as an include names it, is among them.
    pub fn contains(&self, header: &str) -> bool {
        self.some.is_match(header) && !self.others.is_match(header)
    }
}

/// Where the places of each file begin.
pub(super) type Places = BTreeMap<String, Vec<usize>>;

impl RewriteOp {
    /// The header that files with a match include afterwards, where nothing else is done to them.
    pub(super) fn only_include(&self) -> Option<&String> {
        self.include.first().filter(|_| self.replace.is_none())
    }

    /// Leaves of the places those that their units matter for.
    pub(super) fn keep_by_units(
        &self,
        plan: &mut OpPlan,
        places: Places,
        (sources, passes): (&Sources, &Passes),
    ) {
        if plan.sites.is_empty() {
            return;
        }
        if let Some(header) = self.only_include() {
            self.keep_lacking(plan, header, (&places, &Reach::of(sources, passes)));
        }
        if let Some(units) = &self.read_by {
            // Only nvcc defines it.
            let passes = passes.clone().assuming("__CUDACC__", Macro::Undefined);
            keep_first(plan, units, (places, sources, &passes));
        }
    }

    /// Of the files that need a header, those that lack it.
    fn keep_lacking<'a>(&self, plan: &mut OpPlan, header: &str, (places, reach): (&'a Places, &Reach<'a>)) {
        let places: BTreeMap<&str, Vec<usize>> =
            places.iter().map(|(path, places)| (path.as_str(), places.clone())).collect();
        let path = header.trim_matches(['<', '>', '"']);
        let lacking = reach.lacking(&places, (path, |header| self.brought_by.contains(header)));
        let lacking: BTreeSet<String> = lacking.into_iter().map(str::to_string).collect();
        plan.sites.retain(|site| lacking.contains(&site.path));
        plan.edits.extend(lacking.into_iter().map(|path| (path, Edits::new())));
    }
}

/// Of the places, the first that each of some units comes to; says which units.
fn keep_first(plan: &mut OpPlan, units: &Files, (places, sources, passes): (Places, &Sources, &Passes)) {
    let reach = Reach::of(sources, passes);
    let bytes = |path: &str| sources.get(path).map_or(&[][..], |bytes| bytes);
    let taken = |(path, places): (&'_ String, &Vec<usize>)| {
        let dead = DeadCode::of(bytes(path), passes);
        places.iter().copied().filter(|place| !dead.holds(*place)).collect::<Vec<_>>()
    };
    let places = places.iter().map(|one| (one.0.as_str(), taken(one))).collect();
    let mut readers: BTreeMap<(&str, usize), Vec<&str>> = BTreeMap::new();
    for unit in reach.units().filter(|unit| units.contains(unit)) {
        if let Some(first) = reach.first(unit, &places) {
            readers.entry(first).or_default().push(unit);
        }
    }
    plan.sites = readers.keys().map(|(path, at)| Site::of(path, bytes(path), *at)).collect();
    for (site, units) in plan.sites.iter().zip(readers.values()) {
        let told = match units.as_slice() {
            [unit] if *unit == site.path => continue,
            [unit, others @ ..] if !others.is_empty() => format!("{unit} and {} more", others.len()),
            units => units.concat(),
        };
        plan.remarks.push(format!("{} line {} is read by {told}", site.path, site.line));
    }
}
