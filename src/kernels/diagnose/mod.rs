//! Why a build, an import or a run failed: rules (data) find the causes in a log, facts decide between them.

pub mod decide;
mod names;
mod rules;
mod search;
pub mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::LazyLock;

use regex::Regex;

use super::facts::Facts;
use decide::{Names, Truth};
pub use names::how_to_know;
pub use rules::{Case, Rule, Rules};
pub use search::Hit;
use search::Search;
use text::TextError;

/// The rank of rules that only tell that something else failed.
const WRAPPER: u8 = 8;

/// A cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The rule's id and title.
    pub id: String,
    /// What happened, in a few words.
    pub title: String,
    /// How sure it is: the rank of the rule.
    pub rank: u8,
    /// Where it stands in the log.
    pub hit: Hit,
    /// What it means here.
    pub cause: String,
    /// What helps.
    pub remedy: String,
    /// Commands to type.
    pub commands: Vec<String>,
    /// The patches that cure it; which of them depends on the source.
    pub patches: Vec<String>,
    /// Facts that would decide better, and are not known.
    pub missing: BTreeSet<String>,
}

/// What a log tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// The causes, the one to act on first.
    pub causes: Vec<Cause>,
    /// Where no rule matched, or none but a wrapper: the first line that speaks of an error.
    pub first_error: Option<Hit>,
    /// How many lines there were.
    pub lines: usize,
    /// Only the beginning of the log was read.
    pub cut: bool,
}

impl Diagnosis {
    /// The causes that are more than a wrapper's word.
    pub fn known(&self) -> impl Iterator<Item = &Cause> {
        self.causes.iter().filter(|cause| cause.rank < WRAPPER)
    }
}

/// Looks for causes in a log.
pub fn diagnose(log: impl Read, facts: &Facts) -> Result<Diagnosis, TextError> {
    let rules = Rules::shipped();
    let mut search = Search::new(&rules.patterns);
    let (mut errors, mut lines) = (FirstError::default(), 0);
    let cut = text::lines(log, &mut |number, line| {
        lines = number;
        if !line.starts_with("ptxas info") {
            errors.line(number, line);
            search.line(number, line);
        }
    })?;
    let hits = search.end();
    let names = names_of(rules, &hits, facts);
    let causes = causes(rules, &hits, &names);
    let only_wrappers = causes.iter().all(|cause| cause.rank == WRAPPER);
    Ok(Diagnosis { causes, first_error: errors.found().filter(|_| only_wrappers), lines, cut })
}

/// The facts of the machine, and over them those that the log tells.
fn names_of(rules: &Rules, hits: &BTreeMap<usize, Hit>, facts: &Facts) -> Names {
    let mut names = names::of_machine(facts);
    for (at, fact) in rules.facts.iter().enumerate() {
        let value = match (hits.get(&(rules.rules.len() + at)), &fact.default) {
            (Some(hit), _) => {
                let caught = hit.captures.get("value").cloned();
                Some(fact.value.clone().or(caught).unwrap_or_else(|| "true".to_string()))
            }
            (None, Some(default)) if !names.contains_key(&fact.name) => Some(default.clone()),
            (None, _) => None,
        };
        if let Some(value) = value {
            names.insert(fact.name.clone(), vec![value]);
        }
    }
    names
}

/// What matched, the best rank first, within a rank what stands first in the log.
fn causes(rules: &Rules, hits: &BTreeMap<usize, Hit>, names: &Names) -> Vec<Cause> {
    let told =
        |fact: &String| names.get(fact).is_some_and(|values| values.iter().any(|value| value == "true"));
    let mut found: Vec<(usize, &Rule, &Hit)> = rules
        .rules
        .iter()
        .enumerate()
        .filter_map(|(at, rule)| Some((at, rule, hits.get(&at)?)))
        .filter(|(_, rule, _)| rule.requires.iter().all(told))
        .collect();
    let refined: BTreeSet<&String> = found.iter().flat_map(|(_, rule, _)| &rule.refines).collect();
    found.retain(|(_, rule, _)| !refined.contains(&rule.id));
    found.sort_by_key(|(_, rule, hit)| (rule.rank, hit.line));
    let groups = |at| rules.patterns.groups(at).collect::<Vec<_>>();
    found
        .into_iter()
        .map(|(at, rule, hit)| cause(rule, hit, with_captures(names, hit, &groups(at))))
        .collect()
}

/// The facts, and what the pattern caught. A group that caught nothing is known to be empty, unless it is a fact of the
/// machine by another name.
fn with_captures(names: &Names, hit: &Hit, groups: &[&str]) -> Names {
    let mut names = names.clone();
    for group in groups.iter().filter(|group| how_to_know(group).is_none()) {
        names.insert(group.to_string(), vec![String::new()]);
    }
    names.extend(hit.captures.iter().map(|(name, value)| (name.clone(), vec![value.clone()])));
    names
}

/// The first case that holds. One that cannot be decided is passed over, and what would decide it is named.
fn cause(rule: &Rule, hit: &Hit, mut names: Names) -> Cause {
    names::derived(&mut names);
    let mut missing = BTreeSet::new();
    for case in &rule.cases {
        let filled = match decide::all(&case.when, &names) {
            Truth::Yes => fill(case, &names),
            Truth::No => continue,
            Truth::Unknown(more) => Err(more),
        };
        match filled {
            Ok((cause, remedy, commands)) => {
                return Cause {
                    cause,
                    remedy,
                    commands,
                    patches: case.patches.clone(),
                    missing,
                    ..blank(rule, hit)
                };
            }
            Err(more) => missing.extend(more),
        }
    }
    Cause { missing, ..blank(rule, hit) }
}

type Filled = (String, String, Vec<String>);

fn fill(case: &Case, names: &Names) -> Result<Filled, BTreeSet<String>> {
    let text = |template: &String| decide::filled(template, names);
    let commands = case.commands.iter().map(text).collect::<Result<_, _>>()?;
    Ok((text(&case.cause)?, text(&case.remedy)?, commands))
}

fn blank(rule: &Rule, hit: &Hit) -> Cause {
    Cause {
        id: rule.id.clone(),
        title: rule.title.clone(),
        rank: rule.rank,
        hit: hit.clone(),
        cause: String::new(),
        remedy: String::new(),
        commands: Vec::new(),
        patches: Vec::new(),
        missing: BTreeSet::new(),
    }
}

/// The first line that speaks of an error, best below ninja's first `FAILED:`; lines that only wrap one do not count.
#[derive(Default)]
struct FirstError {
    failed: bool,
    below: Option<Hit>,
    any: Option<Hit>,
}

impl FirstError {
    fn line(&mut self, number: usize, line: &str) {
        static ERROR: LazyLock<Regex> = LazyLock::new(|| {
            pattern(
                r"(?:\berror(?: [A-Z]+\d+)?\s*:|\b[Ff]atal(?: error)?\b.*:|^[A-Za-z_.]*(?:Error|Exception): )",
            )
        });
        static WRAPS: LazyLock<Regex> = LazyLock::new(|| {
            pattern(concat!(
                r"subprocess-exited-with-error|metadata-generation-failed|legacy-install-failure|CalledProcessError|",
                r"Error compiling objects|Failed building wheel|failed-wheel-build|command .* failed with exit|^FAILED: "
            ))
        });
        self.failed |= line.starts_with("FAILED: ");
        let wanted = if self.failed { self.below.is_none() } else { self.any.is_none() };
        if wanted && ERROR.is_match(line) && !WRAPS.is_match(line) {
            let excerpt = line.chars().take(400).collect();
            let hit = Some(Hit { line: number, excerpt, captures: BTreeMap::new() });
            if self.failed { self.below = hit } else { self.any = hit }
        }
    }

    fn found(self) -> Option<Hit> {
        self.below.or(self.any)
    }
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|error| panic!("{error}"))
}
