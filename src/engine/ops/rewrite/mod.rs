//! `rewrite`: no match of a pattern is left; only the tokens that differ are touched.

mod condition;
mod directive;
mod expect;
mod filter;
mod lanes;
mod literal;
mod path;
mod removal;
mod units;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

pub use condition::Condition;
use filter::Needed;
use rayon::prelude::*;
pub use units::Headers;
use units::Places;

use super::files::Files;
use super::own::{self, OwnName};
use super::rename::places;
use super::right_for::{Others, Otherwise, RightFor};
use super::{Left, NoAnchor, OpError, OpPlan, Outcome, Site, parse};
use crate::engine::edit::{Edit, Edits};
use crate::engine::pattern::{Match, Pattern, Template, minimal_edits};
use crate::engine::source::{Sources, line_of};
use crate::engine::syntax::language::Parsed;
use crate::engine::syntax::passes::{Macro, Passes};
use crate::engine::syntax::{DeadCode, Language};

/// Code that other code replaces, or that is reported.
#[derive(Debug, Clone)]
pub struct RewriteOp {
    /// Where to look.
    pub files: Files,
    /// What must not be left; any of them.
    pub find: Vec<Pattern>,
    /// What stands there instead; `None`: matches are reported.
    pub replace: Option<Replacement>,
    /// Conditions on metavariables.
    pub conditions: Vec<Condition>,
    /// Only within a match of one of these.
    pub inside: Vec<Pattern>,
    /// Not within a match of one of these.
    pub not_inside: Vec<Pattern>,
    /// In CUDA: only where some lanes of a warp may have left before.
    pub behind_exit: bool,
    /// A file with a match of one of these is cured already.
    pub unless: Vec<Pattern>,
    /// Only files with a match of one of these; all where there is none.
    pub beside: Vec<Pattern>,
    /// What may stand at a place instead of `replace`; such a place is done.
    pub accept: Vec<Pattern>,
    /// How many places there are, done or not.
    pub expect: Option<RangeInclusive<usize>>,
    /// What each changed file includes afterwards; without `replace`, what files with a match do that lack it.
    pub include: Vec<String>,
    /// For what `replace` is right.
    pub right_for: RightFor,
    /// What stands there where it is not.
    pub otherwise: Option<Otherwise<Replacement>>,
    /// Other headers that bring `include` along.
    pub brought_by: Headers,
    /// Only the first place that each of these comes to when it is compiled.
    pub read_by: Option<Files>,
    /// What a person should do about a place that is reported or left.
    pub advice: Option<String>,
}

/// Code that stands in place of other code.
#[derive(Debug, Clone)]
pub struct Replacement {
    /// What is written.
    pub text: Template,
    /// The same as a pattern, to see that the work was done before; nothing where it is empty.
    pub pattern: Option<Pattern>,
}

/// What a rewrite is planned on, besides the sources.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    /// What the preprocessor knows.
    pub passes: &'a Passes,
    /// What earlier ops of the patch change in the same text.
    pub earlier: &'a BTreeMap<String, Edits>,
}

/// A file with what is left alone in it.
struct File<'a> {
    path: &'a str,
    parsed: &'a Parsed,
    dead: DeadCode,
    others: Others,
    earlier: Option<&'a Edits>,
    own: &'a [Vec<OwnName>],
    sources: &'a Sources,
}

/// What an op does to a file.
enum Planned {
    /// It is not meant.
    Nothing,
    /// There is another cure in it.
    Cured(Site),
    /// Its places, sorted: where those begin that are not left, and how many are done.
    Sorted { plan: OpPlan, places: Vec<usize>, done: usize },
}

/// What becomes of a place.
enum Change {
    /// Edits within it.
    Edits(Vec<Edit>),
    /// Its whole lines go.
    Lines(Range<usize>),
}

/// Why a place stays, and whether a person should look at it.
type Reason = (String, bool);

impl RewriteOp {
    /// What the op does to these sources.
    pub fn plan(&self, sources: &Sources, ground: Ground<'_>) -> Result<OpPlan, OpError> {
        let mut plan = OpPlan::of(Outcome::AlreadySatisfied { why: String::new() });
        let (mut done, mut cured, mut places) = (0, None, Places::new());
        let needed: Vec<Needed<'_>> = self.conditions.iter().map(Needed::of).collect();
        let files = self.files.of(sources).filter(|(_, bytes)| self.concerns(bytes, &needed));
        let files: Vec<_> = files.collect();
        let own = if files.is_empty() { Vec::new() } else { self.own_names(sources, ground.passes) };
        let planned = files.par_iter().map(|file| self.plan_one(file.0, &own, (sources, ground)));
        let planned: Vec<_> = planned.collect();
        for ((path, _), planned) in files.into_iter().zip(planned) {
            match planned? {
                Planned::Nothing => {}
                Planned::Cured(site) => cured = cured.or(Some(site)),
                Planned::Sorted { plan: of_file, places: more, done: of_it } => {
                    done += of_it;
                    places.insert(path.to_string(), more);
                    plan.add(of_file);
                }
            }
        }
        places.retain(|_, places| !places.is_empty());
        plan.edits.retain(|_, edits| !edits.is_empty());
        self.keep_by_units(&mut plan, places, (sources, ground.passes));
        self.check_expected(sources, plan.sites.len() + plan.left.len(), done, cured.is_some())?;
        plan.outcome = self.outcome(&plan);
        if let (Outcome::AlreadySatisfied { why }, Some(site)) = (&mut plan.outcome, cured) {
            *why = format!("{} line {} has another cure", site.path, site.line);
        }
        Ok(plan)
    }

    fn plan_one(
        &self,
        path: &str,
        own: &[Vec<OwnName>],
        (sources, ground): (&Sources, Ground<'_>),
    ) -> Result<Planned, OpError> {
        let Some(parsed) = parse(sources, path)? else { return Ok(Planned::Nothing) };
        let bytes = &parsed.bytes;
        if let Some(found) = first_of(&self.unless, parsed) {
            return Ok(Planned::Cured(Site::of(path, bytes, found.range.start)));
        }
        if !self.beside.is_empty() && first_of(&self.beside, parsed).is_none() {
            return Ok(Planned::Nothing);
        }
        let done = if self.expect.is_some() { self.done(parsed) } else { 0 };
        let (dead, earlier) = (parsed.dead_code(ground.passes), ground.earlier.get(path));
        let others = Others::of(&self.right_for, bytes, (sources, ground.passes));
        let mut file = File { path, parsed, dead, others, earlier, own, sources };
        self.keep_headers(&mut file);
        let mut plan = OpPlan::of(Outcome::AlreadySatisfied { why: String::new() });
        let places = self.plan_file(&file, &mut plan)?;
        Ok(Planned::Sorted { plan, places, done })
    }

    /// Whether a file has to be parsed at all.
    fn concerns(&self, bytes: &[u8], needed: &[Needed<'_>]) -> bool {
        let counted = self.expect.iter().flat_map(|_| self.done_forms().chain(&self.unless));
        let may_match = |pattern: &Pattern| {
            let mut speaking = needed.iter().filter(|needed| pattern.has(needed.name()));
            pattern.may_match(bytes) && speaking.all(|needed| needed.may_hold(bytes))
        };
        self.find.iter().any(may_match) || counted.into_iter().any(|pattern| pattern.may_match(bytes))
    }

    /// Of each pattern, what the tree defines itself of the names that it speaks of; a branch for the case that a name
    /// is not there is taken.
    fn own_names(&self, sources: &Sources, passes: &Passes) -> Vec<Vec<OwnName>> {
        let of = |pattern: &Pattern| {
            let names = (pattern.language == Language::Cpp).then(|| pattern.names());
            let own = names.into_iter().flatten().flat_map(|name| {
                let passes = passes.clone().assuming(&name, Macro::Undefined);
                own::definitions(sources, &name, &passes)
            });
            own.collect()
        };
        self.find.iter().map(of).collect()
    }

    /// Sorts the matches of a file into edits, places that are reported, and places that are left; gives where those begin
    /// that are not left.
    fn plan_file(&self, file: &File<'_>, plan: &mut OpPlan) -> Result<Vec<usize>, OpError> {
        let failed = |overlap| OpError::Overlap { path: file.path.to_string(), overlap };
        let mut edits = Edits::new();
        let (mut removed, mut places) = (Vec::new(), Vec::new());
        let mut edited: Vec<Range<usize>> = Vec::new();
        for (found, reason) in self.reasons(file)? {
            let site = Site::of(file.path, &file.parsed.bytes, found.range.start);
            if let Some((why, open)) = reason {
                plan.left.push(Left { site, why, open });
                continue;
            }
            let added = match self.change(&found, file)? {
                Change::Lines(lines) => {
                    removed.push(lines);
                    Ok(())
                }
                Change::Edits(more) => edits.try_add(more),
            };
            match added {
                Ok(()) => {}
                Err(_) if edited.iter().any(|outer| holds(outer, &found.range)) => continue,
                Err(overlap) => return Err(failed(overlap)),
            }
            let include = self.otherwise(&found, file).map_or(&self.include, |otherwise| &otherwise.include);
            plan.want(file.path, include, found.range.start);
            places.push(found.range.start);
            plan.sites.push(site);
            edited.push(found.range);
        }
        edits.merge(removal::close(&file.parsed.bytes, removed)).map_err(failed)?;
        plan.edits.insert(file.path.to_string(), edits);
        Ok(places)
    }

    /// Keeps the headers of `replace` from those that lack them.
    fn keep_headers(&self, file: &mut File<'_>) {
        if file.others.is_empty() {
            return;
        }
        let places = self.matches(file.parsed, file.own).into_iter().map(|(found, _)| found.range.start);
        let is_right = |at: &usize| !file.dead.holds(*at) && file.others.compiling(*at).is_none();
        let places: Vec<usize> = places.filter(is_right).collect();
        file.others.keep_from(&self.include, &places, (&file.parsed.bytes, &file.dead));
    }

    /// What stands at a place for which `replace` is not right.
    fn otherwise(&self, found: &Match, file: &File<'_>) -> Option<&Otherwise<Replacement>> {
        self.otherwise.as_ref().filter(|_| file.others.compiling(found.range.start).is_some())
    }

    /// The matches of a file, each with the reason for which it stays, if there is one.
    fn reasons(&self, file: &File<'_>) -> Result<Vec<(Match, Option<Reason>)>, OpError> {
        let mut sorted = Vec::new();
        for (found, own) in self.matches(file.parsed, file.own) {
            let reason = self.reason_to_leave(&found, own, file)?;
            if let (Some((why, true)), Some(_)) = (&reason, &self.expect) {
                let site = Site::of(file.path, &file.parsed.bytes, found.range.start);
                return Err(OpError::CannotEdit { why: why.clone(), site });
            }
            sorted.push((found, reason));
        }
        if self.replace.is_some() && self.conditions.iter().any(|condition| condition.unused) {
            self.keep_used(file, &mut sorted);
        }
        Ok(sorted)
    }

    fn reason_to_leave(
        &self,
        found: &Match,
        own: &[OwnName],
        file: &File<'_>,
    ) -> Result<Option<Reason>, OpError> {
        if file.dead.holds(found.range.start) {
            return Ok(Some(("code that is never taken".to_string(), false)));
        }
        if self.searches()
            && let Some(own) = own::header(file.sources, file.path, found.range.start)
        {
            return Ok(Some((format!("{own} of the tree is meant"), false)));
        }
        let is_meant = |own: &&OwnName| own.is_meant(&file.parsed.bytes, found.range.start);
        if let Some(own) = own.iter().find(is_meant) {
            return Ok(Some((own.to_string(), false)));
        }
        let other = file.others.compiling(found.range.start).filter(|_| self.otherwise.is_none());
        if let (Some(other), Some(replace)) = (other, &self.replace) {
            return Ok(Some((Others::reason(other, &replace.text.to_string()), true)));
        }
        let hidden = match self.change(found, file)? {
            Change::Edits(edits) => edits.iter().any(|edit| !file.parsed.shows(&edit.range)),
            Change::Lines(_) => !file.parsed.shows(&found.range),
        };
        if let Some(new) = self.filled(found, file)?
            && directive::is_unreadable(&new, &found.range, file.parsed)
        {
            return Ok(Some(("in an `#if`, where it is to be changed by hand".to_string(), true)));
        }
        let unreadable = self.replace.is_some() && (found.uncertain || hidden);
        Ok(unreadable.then(|| ("the grammar cannot read this place for certain".to_string(), true)))
    }

    /// Names that are still used keep their declarations.
    fn keep_used(&self, file: &File<'_>, sorted: &mut [(Match, Option<Reason>)]) {
        let going: Vec<&mut (Match, Option<Reason>)> =
            sorted.iter_mut().filter(|(_, reason)| reason.is_none()).collect();
        let matches: Vec<&Match> = going.iter().map(|(found, _)| found).collect();
        let uses = condition::uses_left(&self.conditions, &matches, file);
        for ((_, reason), used) in going.into_iter().zip(uses) {
            *reason = used.map(|used| {
                let line = line_of(&file.parsed.bytes, used.start);
                let name = String::from_utf8_lossy(&file.parsed.bytes[used]);
                (format!("`{name}` is still used in line {line}"), true)
            });
        }
    }

    /// What stands at places that are done.
    fn done_forms(&self) -> impl Iterator<Item = &Pattern> {
        let otherwise = self.otherwise.iter().map(|otherwise| &otherwise.text);
        let replaced =
            self.replace.iter().chain(otherwise).filter_map(|replacement| replacement.pattern.as_ref());
        replaced.chain(&self.accept)
    }

    /// How many places are done.
    fn done(&self, parsed: &Parsed) -> usize {
        let mut places: Vec<Match> = self.done_forms().flat_map(|pattern| pattern.find_all(parsed)).collect();
        places.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end)));
        let mut end = 0;
        places.retain(|found| {
            found.range.start >= end && {
                end = found.range.end;
                true
            }
        });
        places.len()
    }

    /// The code that it speaks of.
    pub(super) fn parts(&self) -> Vec<(&'static str, String)> {
        let patterns = [
            ("find", &self.find),
            ("inside", &self.inside),
            ("not-inside", &self.not_inside),
            ("unless", &self.unless),
            ("beside", &self.beside),
            ("accept", &self.accept),
        ];
        let code = |(key, patterns): (&'static str, &Vec<Pattern>)| {
            patterns.iter().map(|pattern| (key, pattern.text.clone())).collect::<Vec<_>>()
        };
        let replace = self.replace.iter().map(|replace| ("replace", replace.text.to_string()));
        let otherwise = self.otherwise.iter().map(|otherwise| ("otherwise", otherwise.text.text.to_string()));
        let advice = self.advice.iter().map(|advice| ("advice", advice.clone()));
        let behind = self.behind_exit.then(|| ("behind-exit", "true".to_string()));
        let expect = self.expect.iter().map(|expect| ("expect", count(expect)));
        let include = self.include.iter().map(|include| ("include", include.clone()));
        let [find, others @ ..] = patterns;
        code(find)
            .into_iter()
            .chain(replace)
            .chain(self.conditions.iter().map(|condition| ("where", condition.told())))
            .chain(others.into_iter().flat_map(code))
            .chain(behind)
            .chain(include)
            .chain(self.right_for.parts())
            .chain(otherwise)
            .chain(self.brought_by.globs().iter().map(|glob| ("brought-by", glob.clone())))
            .chain(self.read_by.iter().map(|files| ("read-by", files.to_string())))
            .chain(expect)
            .chain(advice)
            .collect()
    }

    /// Whether it looks for its files: one that names them knows their docstrings, and what they include.
    fn searches(&self) -> bool {
        self.files.globs().iter().any(|glob| glob.contains('*'))
    }

    /// The places that are left, outer ones first, each with what the tree defines itself of its names.
    fn matches<'o>(&self, parsed: &Parsed, own: &'o [Vec<OwnName>]) -> Vec<(Match, &'o [OwnName])> {
        let holds_for =
            |found: &Match| self.conditions.iter().all(|condition| condition.holds(found, parsed));
        let mut matches: Vec<(Match, &[OwnName])> = Vec::new();
        for (pattern, own) in self.find.iter().zip(own) {
            let found = pattern.find_all(parsed).into_iter().map(|found| (found, own.as_slice()));
            matches.extend(found);
        }
        if matches.is_empty() {
            return matches;
        }
        let inside = ranges(&self.inside, parsed, holds_for);
        let not_inside = ranges(&self.not_inside, parsed, holds_for);
        let within =
            |found: &Match, outer: &[Range<usize>]| outer.iter().any(|outer| holds(outer, &found.range));
        matches.retain(|(found, _)| {
            (self.inside.is_empty() || within(found, &inside))
                && !within(found, &not_inside)
                && holds_for(found)
                && (!self.behind_exit || lanes::is_behind_exit(&found.range, parsed))
                && !(self.searches() && parsed.is_bare_string(&found.range))
        });
        matches.sort_by_key(|(found, _)| (found.range.start, std::cmp::Reverse(found.range.end)));
        let same = |one: &Match, other: &Match| self.replace.is_none() || one.bindings == other.bindings;
        matches.dedup_by(|(one, _), (other, _)| one.range == other.range && same(one, other));
        matches
    }

    /// What stands at one place afterwards.
    fn filled(&self, found: &Match, file: &File<'_>) -> Result<Option<String>, OpError> {
        let Some(replace) = &self.replace else { return Ok(None) };
        let replace = self.otherwise(found, file).map_or(replace, |otherwise| &otherwise.text);
        let matched = String::from_utf8_lossy(&file.parsed.bytes[found.range.clone()]);
        Ok(Some(replace.text.fill_match(&found.bindings, &matched)?))
    }

    /// What becomes of one place.
    fn change(&self, found: &Match, file: &File<'_>) -> Result<Change, OpError> {
        let Some(new) = self.filled(found, file)? else { return Ok(Change::Edits(Vec::new())) };
        let bytes = &file.parsed.bytes;
        let removal = new.trim().is_empty().then(|| removal::of(file.parsed, &found.range)).flatten();
        let language = file.parsed.language;
        Ok(removal
            .unwrap_or_else(|| Change::Edits(minimal_edits(language, bytes, found.range.clone(), &new))))
    }

    /// What a plan of it comes to.
    pub(super) fn outcome(&self, plan: &OpPlan) -> Outcome {
        let open = plan.open().count();
        let left = plan.reasons();
        let told = (!left.is_empty()).then(|| format!("left: {left}"));
        let advice =
            |count: usize, advice: &str| Outcome::Reported { advice: format!("{}: {advice}", places(count)) };
        if let Some(header) = self.only_include() {
            return included(header, plan, told);
        }
        match (&self.replace, plan.sites.len()) {
            (Some(_), 1..) => {
                let how = format!("rewrites {}", places(plan.sites.len()));
                Outcome::Changed { how: [how].into_iter().chain(told).collect() }
            }
            (None, found @ 1..) => advice(found, self.advice.as_deref().unwrap_or("needs a person")),
            (_, 0) if open > 0 => advice(open, self.advice.as_deref().unwrap_or(&left)),
            (_, 0) => {
                let told = told.map_or_else(String::new, |told| format!("; {told}"));
                Outcome::AlreadySatisfied { why: format!("no place is left{told}") }
            }
        }
    }
}

fn holds(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// What an op comes to that only includes a header.
fn included(header: &str, plan: &OpPlan, told: Option<String>) -> Outcome {
    let files = plan.sites.iter().map(|site| &site.path).collect::<BTreeSet<_>>().len();
    if files > 0 {
        let how = format!("includes `{header}` in {files} {}", if files == 1 { "file" } else { "files" });
        return Outcome::Changed { how: [how].into_iter().chain(told).collect() };
    }
    let told = told.map_or_else(String::new, |told| format!("; {told}"));
    Outcome::AlreadySatisfied { why: format!("no file lacks `{header}`{told}") }
}

/// `2`, `1 to 4`, `at least 1`.
fn count(expect: &RangeInclusive<usize>) -> String {
    match (expect.start(), expect.end()) {
        (start, &usize::MAX) => format!("at least {start}"),
        (start, end) if start == end => start.to_string(),
        (start, end) => format!("{start} to {end}"),
    }
}

fn first_of(patterns: &[Pattern], parsed: &Parsed) -> Option<Match> {
    patterns.iter().find_map(|pattern| pattern.find_all(parsed).into_iter().next())
}

/// The metavariable that alone counts of what something lies in, where a pattern speaks of it.
pub const HERE: &str = "HERE";

/// What the patterns match, or what `$HERE` stands for in them.
fn ranges(patterns: &[Pattern], parsed: &Parsed, counts: impl Fn(&Match) -> bool) -> Vec<Range<usize>> {
    let found = patterns.iter().flat_map(|pattern| pattern.find_all(parsed));
    let range = |found: Match| found.bindings.get(HERE).map_or(found.range, |here| here.range.clone());
    found.filter(|found| counts(found)).map(range).collect()
}

#[cfg(test)]
mod tests;
