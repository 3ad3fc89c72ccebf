//! `rename`: a name is gone from code and macro bodies.
//!
//! Places come from the census of the name, never from a parse: every occurrence is edited, or left with a reason.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::files::Files;
use super::own::{self, OwnName};
use super::reach::Reach;
use super::rewrite::Headers;
use super::right_for::{Others, Otherwise, RightFor};
use super::{Left, OpError, OpPlan, Outcome, Site};
use crate::engine::edit::{Edit, Edits};
use crate::engine::pattern::Pattern;
use crate::engine::source::Sources;
use crate::engine::syntax::census::{Census, Name, Occurrence, Place};
use crate::engine::syntax::passes::{Macro, Number, Passes};
use crate::engine::syntax::{DeadCode, Language};

/// A name that another replaces, in call, type and declaration positions.
#[derive(Debug, Clone)]
pub struct RenameOp {
    /// Where to look.
    pub files: Files,
    /// The old name, qualified or not: `AT_CHECK`, `cub::Sum`.
    pub from: String,
    /// What replaces it.
    pub to: String,
    /// What each changed file includes afterwards: `<cuda/std/functional>`.
    pub include: Vec<String>,
    /// For what the new name is right.
    pub right_for: RightFor,
    /// Another name where it is not.
    pub otherwise: Option<Otherwise<String>>,
    /// A tree with a match of one of these brings the name from elsewhere.
    pub unless: Vec<Pattern>,
    /// The headers that the name comes from; none: wherever it stands, it is meant.
    pub brought_by: Headers,
}

/// A file that holds the name.
struct Counted<'a> {
    path: &'a str,
    bytes: &'a [u8],
    census: Census,
    dead: DeadCode,
    others: Others,
}

impl RenameOp {
    /// What the op does to these sources. A branch that is taken only while the old name is there, or only where the new
    /// one is not, is dead.
    pub fn plan(&self, sources: &Sources, passes: &Passes) -> Result<OpPlan, OpError> {
        let passes = passes
            .clone()
            .assuming(&self.from, Macro::Undefined)
            .assuming(&self.to, Macro::Defined(Number::ANY));
        let mut counted = self.counted(sources, &passes);
        let mut plan = OpPlan::of(Outcome::AlreadySatisfied { why: String::new() });
        if !counted.is_empty() && !self.brought_by.globs().is_empty() {
            let reading = Reach::of(sources, &passes).reading_one(|header| self.brought_by.contains(header));
            let (meant, others) = counted.into_iter().partition(|file| reading.contains(file.path));
            let others: Vec<Counted<'_>> = others;
            plan.left = self.left_alone(String::new(), NOT_READ, &others).left;
            counted = meant;
        }
        let own = self.own_definitions(&counted);
        if let Some(own) = own.iter().find(|own| own.is_everywhere()) {
            let mut plan = self.left_alone(own.to_string(), OWN, &counted);
            plan.sites.push(own.site.clone());
            return Ok(plan);
        }
        if let Some(site) = self.brought(sources).filter(|_| !counted.is_empty()) {
            let why = format!("{} line {} brings `{}` from elsewhere", site.path, site.line, self.from);
            return Ok(self.left_alone(why, "brought from elsewhere", &counted));
        }
        let unused = unused_choices(sources, &counted);
        let stays = Stays { own, unused };
        for file in counted.iter().filter(|file| self.files.contains(file.path)) {
            let edits = self.read(file, &stays, &mut plan)?;
            if !edits.is_empty() {
                plan.edits.insert(file.path.to_string(), edits);
            }
        }
        let new_name = self.to.split('<').next().unwrap_or(&self.to);
        let taken = (!plan.edits.is_empty()).then(|| own::definitions(sources, new_name, &passes));
        let may_be = |own: &OwnName| own.is_everywhere() || !self.to.starts_with("::");
        if let Some(own) = taken.into_iter().flatten().find(may_be) {
            return Ok(self.own_replacement(plan, &own));
        }
        plan.outcome = self.outcome(&plan);
        Ok(plan)
    }

    /// The files of the tree that hold the name.
    fn counted<'a>(&self, sources: &'a Sources, passes: &Passes) -> Vec<Counted<'a>> {
        let name = Name::new(&self.from);
        let holds = |(path, bytes): &(&str, &Arc<[u8]>)| {
            Language::of_path(path) == Some(Language::Cpp) && name.may_be_in(bytes)
        };
        let count = |(path, bytes): (&'a str, &'a Arc<[u8]>)| {
            let (census, dead) = (name.census(bytes), DeadCode::of(bytes, passes));
            let others = Others::of(&self.right_for, bytes, (sources, passes));
            self.keeping_headers(Counted { path, bytes, census, dead, others })
        };
        let all: Vec<_> = sources.iter().collect();
        all.into_par_iter().filter(holds).map(count).collect()
    }

    /// A file whose headers are kept from those that lack them.
    fn keeping_headers<'a>(&self, mut file: Counted<'a>) -> Counted<'a> {
        if !file.others.is_empty() {
            let here = file.census.occurrences.iter().filter(|found| self.left(found, &file.dead).is_none());
            let places = here.map(|found| found.range.start);
            let places: Vec<usize> = places.filter(|at| file.others.compiling(*at).is_none()).collect();
            file.others.keep_from(&self.include, &places, (file.bytes, &file.dead));
        }
        file
    }

    /// The code that it speaks of.
    pub(super) fn parts(&self) -> Vec<(&'static str, String)> {
        let include = self.include.iter().map(|include| ("include", include.clone()));
        let unless = self.unless.iter().map(|pattern| ("unless", pattern.text.clone()));
        let names = [("from", self.from.clone()), ("to", self.to.clone())];
        let otherwise = self.otherwise.iter().map(|otherwise| ("otherwise", otherwise.text.clone()));
        let brought_by = self.brought_by.globs().iter().map(|glob| ("brought-by", glob.clone()));
        names
            .into_iter()
            .chain(include)
            .chain(self.right_for.parts())
            .chain(otherwise)
            .chain(unless)
            .chain(brought_by)
            .collect()
    }

    /// Where the tree brings the name from elsewhere.
    fn brought(&self, sources: &Sources) -> Option<Site> {
        let may = |bytes: &[u8]| self.unless.iter().any(|pattern| pattern.may_match(bytes));
        sources.iter().filter(|(_, bytes)| may(bytes)).find_map(|(path, bytes)| {
            let parsed = sources.parsed(path)?.ok()?;
            let found = self.unless.iter().find_map(|pattern| pattern.find_all(parsed).into_iter().next())?;
            Some(Site::of(path, bytes, found.range.start))
        })
    }

    /// Where the tree gives the name a meaning of its own, in whatever file.
    fn own_definitions(&self, counted: &[Counted<'_>]) -> Vec<OwnName> {
        let definitions = counted.iter().flat_map(|file| {
            let live = file.census.definitions.iter().filter(|one| !file.dead.holds(one.at));
            live.map(|one| OwnName::new(&self.from, Site::of(file.path, file.bytes, one.at), one))
        });
        definitions.collect()
    }

    /// The plan for a tree in which nothing changes: every place in code is left for the same reason.
    fn left_alone(&self, fact: String, reason: &str, counted: &[Counted<'_>]) -> OpPlan {
        let mut plan = OpPlan::of(Outcome::AlreadySatisfied { why: fact });
        let files = counted.iter().filter(|file| self.files.contains(file.path));
        for (file, found) in
            files.flat_map(|file| file.census.occurrences.iter().map(move |found| (file, found)))
        {
            let (why, _) = self.left(found, &file.dead).unwrap_or_default();
            let why = if found.place.is_text() { why } else { reason.to_string() };
            plan.left.push(file.left(found.range.start, &why, false));
        }
        plan
    }

    /// The plan for a tree whose new name means something else: a person must decide.
    fn own_replacement(&self, plan: OpPlan, own: &OwnName) -> OpPlan {
        let advice = format!("{own}; {} of `{}` may have to become it", places(plan.sites.len()), self.from);
        let mut reported = OpPlan::of(Outcome::Reported { advice });
        let open = plan.sites.into_iter().map(|site| Left { site, why: own.to_string(), open: true });
        reported.left = plan.left.into_iter().chain(open).collect();
        reported
    }

    /// Sorts the occurrences of a file into edits and places that are left.
    fn read(&self, file: &Counted<'_>, stays: &Stays<'_>, plan: &mut OpPlan) -> Result<Edits, OpError> {
        let failed = |overlap| OpError::Overlap { path: file.path.to_string(), overlap };
        let mut edits = Edits::new();
        for found in &file.census.occurrences {
            let at = found.range.start;
            let new = match self.left(found, &file.dead).or_else(|| stays.reason(found, file.bytes)) {
                Some(reason) => Err(reason),
                None => self.new_name(file.others.compiling(at)),
            };
            match new {
                Err((why, open)) => plan.left.push(file.left(at, &why, open)),
                Ok((name, include)) => {
                    plan.sites.push(Site::of(file.path, file.bytes, at));
                    plan.want(file.path, include, at);
                    let text = written(name, file.bytes, found.range.clone());
                    edits.insert(Edit { range: found.range.clone(), text }).map_err(failed)?;
                }
            }
        }
        Ok(edits)
    }

    /// The new name with what it needs, where something else compiles a place too; or why the place stays.
    fn new_name(&self, other: Option<&str>) -> Result<(&str, &[String]), (String, bool)> {
        match (other, &self.otherwise) {
            (None, _) => Ok((&self.to, &self.include)),
            (Some(_), Some(otherwise)) => Ok((&otherwise.text, &otherwise.include)),
            (Some(other), None) => Err((Others::reason(other, &self.to), true)),
        }
    }

    /// Why an occurrence stays, and whether a person should look at it; none where it is edited.
    fn left(&self, found: &Occurrence, dead: &DeadCode) -> Option<(String, bool)> {
        let plain = |why: &str, open| Some((why.to_string(), open));
        match &found.place {
            Place::Comment => plain("comment", false),
            Place::String => plain("string", false),
            Place::RawString => plain("raw string", false),
            Place::Character => plain("character", false),
            Place::Condition => plain("condition", false),
            _ if dead.holds(found.range.start) => plain("code that is never taken", false),
            Place::Code => None,
            Place::MacroBody(name) if *name == self.to => Some((format!("definition of `{name}`"), false)),
            Place::MacroBody(_) => None,
            Place::Definition(_) => plain("own definition", false),
            Place::Directive => plain("other directive", false),
            Place::Parameter => plain("parameter of a macro", false),
            Place::Member => plain("member", false),
            Place::Qualified => plain("name of another scope", false),
            Place::Imported => plain("using-declaration", true),
            Place::Pasted => plain("pasted by ##", true),
            Place::Split => plain("split by a comment or a new line", true),
            Place::Bare => plain("may be it, by a `using`", true),
        }
    }

    /// The new names that a plan writes.
    fn names(&self, plan: &OpPlan) -> String {
        let other = self.otherwise.iter().map(|otherwise| otherwise.text.as_str());
        let texts =
            || plan.edits.values().flat_map(Edits::iter).map(|edit| String::from_utf8_lossy(&edit.text));
        let names = std::iter::once(self.to.as_str()).chain(other);
        let written = names.filter(|name| texts().any(|text| text.contains(name)));
        written.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
    }

    /// What a plan of it comes to.
    pub(super) fn outcome(&self, plan: &OpPlan) -> Outcome {
        let open = plan.open().count();
        let left = plan.reasons();
        let told = (!left.is_empty()).then(|| format!("left: {left}"));
        if !plan.edits.is_empty() {
            let how =
                format!("renames {} of `{}` to {}", places(plan.sites.len()), self.from, self.names(plan));
            return Outcome::Changed { how: [how].into_iter().chain(told).collect() };
        }
        if open > 0 {
            let advice =
                format!("{} of `{}` may have to become `{}`: {left}", places(open), self.from, self.to);
            return Outcome::Reported { advice };
        }
        let told = told.map_or_else(String::new, |told| format!("; {told}"));
        Outcome::AlreadySatisfied { why: format!("no `{}` is left{told}", self.from) }
    }
}

impl Counted<'_> {
    fn left(&self, at: usize, why: &str, open: bool) -> Left {
        Left { site: Site::of(self.path, self.bytes, at), why: why.to_string(), open }
    }
}

/// A new name as it replaces an occurrence: a leading `::` stays, and no two tokens become one.
fn written(name: &str, bytes: &[u8], range: Range<usize>) -> Vec<u8> {
    let global = bytes[range.clone()].starts_with(b"::") && !name.starts_with("::");
    let mut text = format!("{}{name}", if global { "::" } else { "" }).into_bytes();
    if text.starts_with(b":") && bytes[..range.start].ends_with(b":") {
        text.insert(0, b' ');
    }
    if text.ends_with(b">") && bytes.get(range.end) == Some(&b'=') {
        text.push(b' ');
    }
    text
}

/// The macros with the name in their bodies that a tree defines for several cases, and never uses: nothing is compiled of
/// them.
fn unused_choices<'a>(sources: &Sources, counted: &'a [Counted<'_>]) -> BTreeSet<&'a str> {
    let bodies = counted.iter().flat_map(|file| &file.census.occurrences).filter_map(macro_around);
    let names: BTreeSet<&str> = bodies.collect();
    names.into_iter().filter(|name| own::is_unused_choice(sources, name)).collect()
}

const OWN: &str = "the tree's own name";
const NOT_READ: &str = "no header that brings it is read there";

/// What of a tree keeps single places as they are.
struct Stays<'a> {
    /// What the tree defines by the name in namespaces of its own.
    own: Vec<OwnName>,
    /// Macros that nothing uses.
    unused: BTreeSet<&'a str>,
}

impl Stays<'_> {
    fn reason(&self, found: &Occurrence, bytes: &[u8]) -> Option<(String, bool)> {
        if self.own.iter().any(|own| own.is_meant(bytes, found.range.start)) {
            return Some((OWN.to_string(), false));
        }
        let name = macro_around(found).filter(|name| self.unused.contains(name))?;
        Some((format!("`{name}`, a macro that nothing uses"), false))
    }
}

fn macro_around(found: &Occurrence) -> Option<&str> {
    match &found.place {
        Place::MacroBody(name) => Some(name),
        _ => None,
    }
}

/// `1 place`, `2 places`.
pub(super) fn places(count: usize) -> String {
    if count == 1 { "1 place".to_string() } else { format!("{count} places") }
}

#[cfg(test)]
mod tests;
