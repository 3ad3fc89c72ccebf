//! Conditions on what the metavariables of a match stand for.

use std::ops::Range;

use regex::Regex;
use tree_sitter::Node;

use super::File;
use super::lanes::varies;
use super::literal::is_computed;
use super::path::is_relative;
use crate::engine::edit::Edits;
use crate::engine::pattern::{Bound, Match, Pattern};
use crate::engine::syntax::language::{Parsed, ancestors};
use crate::engine::syntax::types::types_in_sight;

/// A condition on what a metavariable stands for.
#[derive(Debug, Clone)]
pub struct Condition {
    /// Its name, without `$`.
    pub name: String,
    /// Its text matches.
    pub regex: Option<Regex>,
    /// It is none of these.
    pub not: Vec<Pattern>,
    /// One of these stands in the function around and speaks of the same `$NAME`: `auto $T = $_.type();`.
    pub declared: Vec<Pattern>,
    /// Where it is a name that a declaration in sight gives a type, the type matches.
    pub kind: Option<Regex>,
    /// No other use of the name is left in the function around.
    pub unused: bool,
    /// In Python: it is a path that can be seen to begin in no fixed folder.
    pub relative: bool,
    /// In CUDA: it is computed from the number of a thread.
    pub varies: bool,
    /// In Python: it is no name that is given literals alone.
    pub computed: bool,
}

impl Condition {
    /// What it asks for, in words.
    pub(super) fn told(&self) -> String {
        let patterns = |word: &str, patterns: &[Pattern]| {
            let texts: Vec<String> = patterns.iter().map(|pattern| format!("`{}`", pattern.text)).collect();
            (!texts.is_empty()).then(|| format!("{word} {}", texts.join(", ")))
        };
        let regex = self.regex.as_ref().map(|regex| format!("matches {}", regex.as_str()));
        let unused = self.unused.then(|| "is used nowhere else".to_string());
        let relative = self.relative.then(|| "is a relative path".to_string());
        let computed = self.computed.then(|| "is computed".to_string());
        let (not, declared) = (patterns("is not", &self.not), patterns("is declared by", &self.declared));
        let varies = self.varies.then(|| "is computed from the number of a thread".to_string());
        let asked = [regex, not, declared, unused, relative, computed, varies];
        format!("${} {}", self.name, asked.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }

    /// Whether a match is one at all. That a name is still used is no matter of this.
    pub fn holds(&self, found: &Match, parsed: &Parsed) -> bool {
        let Some(bound) = found.bindings.get(&self.name) else { return true };
        self.regex.as_ref().is_none_or(|regex| regex.is_match(&bound.text))
            && !self.not.iter().any(|pattern| is_match(pattern, bound, parsed))
            && (self.declared.is_empty() || self.is_declared(bound, parsed))
            && self.kind.as_ref().is_none_or(|kind| has_type(bound, kind, parsed))
            && (!self.relative || is_relative(bound, parsed))
            && (!self.varies || varies(&bound.range, parsed))
            && (!self.computed || is_computed(bound, parsed))
    }

    fn is_declared(&self, bound: &Bound, parsed: &Parsed) -> bool {
        let scope = scope_of(&bound.range, parsed);
        let mut declarations = self.declared.iter().flat_map(|pattern| pattern.find_all(parsed));
        declarations.any(|found| {
            let same = found.bindings.get(&self.name).is_some_and(|other| other.text == bound.text);
            same && scope.start <= found.range.start && found.range.end <= scope.end
        })
    }

    /// Another use of the name, where there must be none and one is left; those in `going` do not count.
    fn use_left(&self, found: &Match, file: &File<'_>, going: &[Range<usize>]) -> Option<Range<usize>> {
        let bound = found.bindings.get(&self.name).filter(|_| self.unused)?;
        let scope = scope_of(&bound.range, file.parsed);
        let mut offsets = file.parsed.offsets_of(&bound.text);
        offsets.retain(|offset| scope.contains(offset) && !going.iter().any(|gone| gone.contains(offset)));
        let uses = file.parsed.nodes_holding(&offsets).filter(|node| {
            node.child_count() == 0
                && node.kind().ends_with("identifier")
                && file.parsed.text(*node) == bound.text
        });
        let counts = |range: &Range<usize>| {
            !file.dead.holds(range.start) && !is_gone(range, &bound.text, file.earlier)
        };
        uses.map(|node| node.byte_range()).find(counts)
    }
}

/// Of each match, a use of its name that keeps it, where conditions want none. Matches that go take the names in them
/// along.
pub(super) fn uses_left(
    conditions: &[Condition],
    matches: &[&Match],
    file: &File<'_>,
) -> Vec<Option<Range<usize>>> {
    let mut uses: Vec<Option<Range<usize>>> = vec![None; matches.len()];
    loop {
        let going = matches.iter().zip(&uses).filter(|(_, used)| used.is_none());
        let going: Vec<Range<usize>> = going.map(|(found, _)| found.range.clone()).collect();
        let of =
            |found: &Match| conditions.iter().find_map(|condition| condition.use_left(found, file, &going));
        let now: Vec<Option<Range<usize>>> =
            matches.iter().zip(&uses).map(|(found, used)| used.clone().or_else(|| of(found))).collect();
        if now == uses {
            return uses;
        }
        uses = now;
    }
}

fn has_type(bound: &Bound, kind: &Regex, parsed: &Parsed) -> bool {
    types_in_sight(parsed, bound.range.start, &bound.text).iter().all(|known| kind.is_match(known))
}

/// The function around a place; the macro or the whole file where there is none.
pub(super) fn scope_of(range: &Range<usize>, parsed: &Parsed) -> Range<usize> {
    let whole = 0..parsed.bytes.len();
    let Some(node) = parsed.node_at(range) else { return whole };
    let mut outermost = node;
    for outer in ancestors(node) {
        if outer.kind() == "function_definition" {
            return outer.byte_range();
        }
        outermost = outer;
    }
    if parsed.definition(node).is_some() { outermost.byte_range() } else { whole }
}

/// Whether an earlier op takes away a name that stands at a place.
fn is_gone(range: &Range<usize>, name: &str, earlier: Option<&Edits>) -> bool {
    let mut edits = earlier.into_iter().flat_map(Edits::iter);
    edits.any(|edit| {
        let covers = edit.range.start <= range.start && range.end <= edit.range.end;
        covers && memchr::memmem::find(&edit.text, name.as_bytes()).is_none()
    })
}

/// Whether what a metavariable stands for is, as a whole, a match of a pattern.
fn is_match(pattern: &Pattern, bound: &Bound, parsed: &Parsed) -> bool {
    let Some(node) = parsed.node_at(&bound.range) else { return false };
    let same = |outer: &Node<'_>| outer.byte_range() == bound.range;
    std::iter::once(node)
        .chain(ancestors(node))
        .take_while(same)
        .any(|node| pattern.match_node(parsed, node).is_some())
}
