//! `rewrite`: no match of a pattern is left; only the tokens that differ are touched.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use regex::Regex;

use super::files::Files;
use super::rename::places;
use super::{NoAnchor, OpError, OpPlan, Outcome, Site, parse};
use crate::engine::edit::Edits;
use crate::engine::pattern::{Bound, Match, Pattern, Template, minimal_edits};
use crate::engine::source::{Sources, line_text};
use crate::engine::syntax::language::{Parsed, ancestors, descendants};

/// Code that other code replaces, or that is reported.
#[derive(Debug, Clone)]
pub struct RewriteOp {
    /// Where to look.
    pub files: Files,
    /// What must not be left; any of them.
    pub find: Vec<Pattern>,
    /// What stands there instead; `None`: matches are reported.
    pub replace: Option<Template>,
    /// `replace` as a pattern, to see that the work was done before.
    pub replaced: Option<Pattern>,
    /// Conditions on metavariables.
    pub conditions: Vec<Condition>,
    /// Only within a match of one of these.
    pub inside: Vec<Pattern>,
    /// Not within a match of one of these.
    pub not_inside: Vec<Pattern>,
    /// A file with a match of one of these is cured already.
    pub unless: Vec<Pattern>,
    /// What may stand at a place instead of `replace`; such a place is done.
    pub accept: Vec<Pattern>,
    /// How many places there are, done or not.
    pub expect: Option<RangeInclusive<usize>>,
    /// What each changed file includes afterwards.
    pub include: Vec<String>,
    /// What a person should do about a reported match.
    pub advice: Option<String>,
}

/// A condition on what a metavariable stands for.
#[derive(Debug, Clone)]
pub struct Condition {
    /// Its name, without `$`.
    pub name: String,
    /// Its text matches.
    pub regex: Option<Regex>,
    /// It is none of these.
    pub not: Vec<Pattern>,
    /// No other use of the name is left in the function around.
    pub unused: bool,
}

impl RewriteOp {
    /// What the op does to these sources.
    pub fn plan(&self, sources: &Sources) -> Result<OpPlan, OpError> {
        let mut plan = OpPlan::of(Outcome::AlreadySatisfied { why: String::new() });
        let mut edits: BTreeMap<String, Edits> = BTreeMap::new();
        let mut done = 0;
        let mut cured = None;
        for (path, bytes) in self.files.of(sources) {
            let Some(parsed) = parse(sources, path)? else { continue };
            if let Some(found) = first_of(&self.unless, parsed) {
                cured = cured.or(Some(Site::of(path, bytes, found.range.start)));
                continue;
            }
            done += self.done(parsed);
            for found in self.matches(parsed) {
                plan.sites.push(Site::of(path, bytes, found.range.start));
                let file = edits.entry(path.to_string()).or_default();
                self.edit(&found, parsed, path, file)?;
            }
        }
        edits.retain(|_, edits| !edits.is_empty());
        self.check_expected(sources, plan.sites.len(), done, cured.is_some())?;
        plan.outcome = self.outcome(plan.sites.len(), cured);
        plan.edits = edits;
        Ok(plan)
    }

    /// How many places are done.
    fn done(&self, parsed: &Parsed) -> usize {
        let forms = self.replaced.iter().chain(&self.accept);
        let mut places: Vec<Match> = forms.flat_map(|pattern| pattern.find_all(parsed)).collect();
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
            ("accept", &self.accept),
        ];
        let code = |(key, patterns): (&'static str, &Vec<Pattern>)| {
            patterns.iter().map(|pattern| (key, pattern.text.clone())).collect::<Vec<_>>()
        };
        let replace = self.replace.iter().map(|template| ("replace", template.to_string()));
        let advice = self.advice.iter().map(|advice| ("advice", advice.clone()));
        let expect = self.expect.iter().map(|expect| ("expect", count(expect)));
        let [find, others @ ..] = patterns;
        code(find)
            .into_iter()
            .chain(replace)
            .chain(others.into_iter().flat_map(code))
            .chain(expect)
            .chain(advice)
            .collect()
    }

    /// The places that are left.
    fn matches(&self, parsed: &Parsed) -> Vec<Match> {
        let inside = ranges(&self.inside, parsed);
        let not_inside = ranges(&self.not_inside, parsed);
        let within = |found: &Match, outer: &[std::ops::Range<usize>]| {
            outer.iter().any(|outer| outer.start <= found.range.start && found.range.end <= outer.end)
        };
        let mut matches: Vec<Match> = self.find.iter().flat_map(|pattern| pattern.find_all(parsed)).collect();
        matches.retain(|found| {
            (self.inside.is_empty() || within(found, &inside))
                && !within(found, &not_inside)
                && self.conditions.iter().all(|condition| condition.holds(found, parsed))
        });
        matches.sort_by_key(|found| found.range.start);
        matches
    }

    fn edit(&self, found: &Match, parsed: &Parsed, path: &str, edits: &mut Edits) -> Result<(), OpError> {
        let Some(replace) = &self.replace else { return Ok(()) };
        if found.uncertain {
            let why = "the grammar cannot read this place for certain".to_string();
            return Err(OpError::CannotEdit { why, site: Site::of(path, &parsed.bytes, found.range.start) });
        }
        let matched = String::from_utf8_lossy(&parsed.bytes[found.range.clone()]);
        let new = replace.fill_match(&found.bindings, &matched)?;
        for edit in minimal_edits(parsed.language, &parsed.bytes, found.range.clone(), &new) {
            edits.insert(edit).map_err(|overlap| OpError::Overlap { path: path.to_string(), overlap })?;
        }
        Ok(())
    }

    fn check_expected(
        &self,
        sources: &Sources,
        found: usize,
        done: usize,
        cured: bool,
    ) -> Result<(), OpError> {
        let Some(expect) = &self.expect else { return Ok(()) };
        let too_few = found + done < *expect.start();
        if cured || !(too_few || found > *expect.end()) {
            return Ok(());
        }
        let looked_for = self.find.first().map_or_else(String::new, |pattern| pattern.text.clone());
        let fact = format!("{} of `{looked_for}` where {} expected", places(found), expected(expect));
        let path = self.files.to_string();
        let nearest = self.nearest(sources, &looked_for);
        Err(OpError::NoAnchor(Box::new(NoAnchor { fact, path, looked_for, nearest })))
    }

    /// The line that has most in common with what was looked for.
    fn nearest(&self, sources: &Sources, looked_for: &str) -> Option<Site> {
        let lines = self.files.of(sources).flat_map(|(path, bytes)| {
            let count = bytes.split(|byte| *byte == b'\n').count();
            (1..=count).map(move |line| Site { path: path.to_string(), line, text: line_text(bytes, line) })
        });
        let ratio = |site: &Site| similar::TextDiff::from_chars(site.text.trim(), looked_for).ratio();
        let close = lines.map(|site| (ratio(&site), site)).filter(|(ratio, _)| *ratio > 0.5);
        close.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, site)| site)
    }

    fn outcome(&self, found: usize, cured: Option<Site>) -> Outcome {
        match (&self.replace, found, cured) {
            (_, 0, Some(site)) => Outcome::AlreadySatisfied {
                why: format!("{} line {} has another cure", site.path, site.line),
            },
            (_, 0, None) => Outcome::AlreadySatisfied { why: "no place is left".to_string() },
            (Some(_), _, _) => Outcome::Changed { how: vec![format!("rewrites {}", places(found))] },
            (None, _, _) => {
                let advice = self.advice.clone().unwrap_or_else(|| "needs a person".to_string());
                Outcome::Reported { advice: format!("{}: {advice}", places(found)) }
            }
        }
    }
}

fn expected(expect: &RangeInclusive<usize>) -> String {
    format!("{} {}", count(expect), if *expect == (1..=1) { "was" } else { "were" })
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

fn ranges(patterns: &[Pattern], parsed: &Parsed) -> Vec<std::ops::Range<usize>> {
    patterns.iter().flat_map(|pattern| pattern.find_all(parsed)).map(|found| found.range).collect()
}

impl Condition {
    fn holds(&self, found: &Match, parsed: &Parsed) -> bool {
        let Some(bound) = found.bindings.get(&self.name) else { return true };
        self.regex.as_ref().is_none_or(|regex| regex.is_match(&bound.text))
            && !self.not.iter().any(|pattern| is_match(pattern, bound, parsed))
            && (!self.unused || !is_used_elsewhere(bound, parsed))
    }
}

/// Whether what a metavariable stands for is, as a whole, a match of a pattern.
fn is_match(pattern: &Pattern, bound: &Bound, parsed: &Parsed) -> bool {
    let node = parsed.root().named_descendant_for_byte_range(bound.range.start, bound.range.end);
    node.is_some_and(|node| pattern.match_node(parsed, node).is_some())
}

/// Whether the name stands at another place of the function around it, or of the file where there is none.
fn is_used_elsewhere(bound: &Bound, parsed: &Parsed) -> bool {
    let Some(node) = parsed.root().named_descendant_for_byte_range(bound.range.start, bound.range.end) else {
        return true;
    };
    let scope = ancestors(node).find(|outer| outer.kind() == "function_definition").unwrap_or(parsed.root());
    descendants(scope).any(|other| {
        other.child_count() == 0
            && other.kind().ends_with("identifier")
            && other.byte_range() != bound.range
            && parsed.text(other) == bound.text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::syntax::Language;

    fn python(text: &str) -> Pattern {
        Pattern::new(Language::Python, text).expect(text)
    }

    fn cxx20() -> RewriteOp {
        let replace = "\"-std=c++20\" if NEW else \"-std=c++17\"";
        RewriteOp {
            files: Files::new(&["setup.py".to_string()]).expect("glob"),
            find: vec![python("\"-std=c++17\"")],
            replace: Some(Template::new(replace)),
            replaced: Some(python(replace)),
            conditions: Vec::new(),
            inside: Vec::new(),
            not_inside: vec![python("$_ if $_ else $_")],
            unless: Vec::new(),
            accept: vec![python("\"-std=c++20\"")],
            expect: Some(2..=4),
            include: Vec::new(),
            advice: None,
        }
    }

    fn plan(op: &RewriteOp, text: &str) -> Result<(String, OpPlan), OpError> {
        let sources: Sources = [("setup.py", text.as_bytes())].into_iter().collect();
        let plan = op.plan(&sources)?;
        let new =
            plan.edits.get("setup.py").map_or(text.as_bytes().to_vec(), |edits| edits.apply(text.as_bytes()));
        Ok((String::from_utf8(new).expect("utf-8"), plan))
    }

    #[test]
    fn a_rewrite_is_a_fixed_point_and_keeps_the_rest() {
        let text = "x = ['-O3',  '-std=c++17', # std\n]\ny = '-std=c++20'\n# \"-std=c++17\"\n";
        let (new, _) = plan(&cxx20(), text).expect("plan");
        assert_eq!(new, text.replacen("'-std=c++17'", "'-std=c++20' if NEW else '-std=c++17'", 1));
        let (again, second) = plan(&cxx20(), &new).expect("plan");
        assert_eq!(again, new);
        assert_eq!(second.outcome.word(), "already-satisfied");
    }

    #[test]
    fn an_accepted_form_counts_as_a_place_once() {
        let satisfied = |text: &str| plan(&cxx20(), text).map(|(_, plan)| plan.outcome.word());
        assert_eq!(satisfied("x = ['-std=c++20']\ny = ['-std=c++20']\n"), Ok("already-satisfied"));
        let done = "x = ['-std=c++20' if NEW else '-std=c++17']\n";
        assert!(matches!(satisfied(done), Err(OpError::NoAnchor(_))));
        assert_eq!(satisfied(&format!("{done}y = '-std=c++20'\n")), Ok("already-satisfied"));
    }

    #[test]
    fn unmet_expectations_name_what_was_looked_for() {
        let error = plan(&cxx20(), "x = ['-std=c++14']\n").expect_err("no anchor");
        let OpError::NoAnchor(missing) = error else { panic!("{error}") };
        let NoAnchor { looked_for, nearest, .. } = *missing;
        assert_eq!(looked_for, "\"-std=c++17\"");
        assert_eq!(nearest.map(|site| site.line), Some(1));
    }

    #[test]
    fn without_a_replacement_matches_are_reported() {
        let op = RewriteOp { replace: None, replaced: None, expect: None, ..cxx20() };
        let (new, plan) = plan(&op, "x = ['-std=c++17']\n").expect("plan");
        assert_eq!((new.as_str(), plan.outcome.word()), ("x = ['-std=c++17']\n", "reported"));
    }

    #[test]
    fn conditions_choose_among_matches() {
        let condition = Condition {
            name: "M".into(),
            regex: Some(Regex::new("^AT_DISPATCH_").expect("regex")),
            not: Vec::new(),
            unused: false,
        };
        let other =
            Condition { name: "X".into(), regex: None, not: vec![python("$_.device()")], unused: false };
        let op = RewriteOp {
            find: vec![python("$M($$$A, $X.type(), $$$B)")],
            replace: Some(Template::new("$M($$$A, $X.scalar_type(), $$$B)")),
            replaced: None,
            conditions: vec![condition, other],
            not_inside: Vec::new(),
            expect: None,
            ..cxx20()
        };
        let text =
            "AT_DISPATCH_ALL(x.type(), \"a\", f)\nOTHER(x.type())\nAT_DISPATCH_ALL(x.device().type())\n";
        let expected = text.replacen("x.type()", "x.scalar_type()", 1);
        assert_eq!(plan(&op, text).expect("plan").0, expected);
    }
}
