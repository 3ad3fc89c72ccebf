//! The effect of a plan: what each toolkit would compile, before and after.

use std::collections::BTreeSet;

use super::Plan;
use crate::engine::ops::Op;
use crate::engine::ops::gencode::{Compiled, Listed};
use crate::engine::patchset::bind::Bound;
use crate::engine::patchset::select::is_for;
use crate::engine::source::Sources;
use crate::engine::toolkit::Toolkit;

/// What a list of a build file makes each toolkit compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The build file.
    pub path: String,
    /// The list; `None` where all lists of the file give the same.
    pub list: Option<String>,
    /// A row a toolkit.
    pub rows: Vec<EffectRow>,
    /// Whether a guard can stand before a flag, so that `--cuda` cures what a toolkit refuses.
    pub guarded: bool,
}

/// What one toolkit compiles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectRow {
    /// The toolkit.
    pub toolkit: Toolkit,
    /// Its flags before.
    pub before: Vec<Compiled>,
    /// Its flags after.
    pub after: Vec<Compiled>,
}

/// The toolkits that an effect shows: milestones of the catalogue, and those given.
fn shown(bound: &Bound<'_>) -> Vec<Toolkit> {
    let milestones =
        [(11, 8), (12, 3), (12, 8), (12, 9), (13, 0)].map(|(major, minor)| Toolkit::new(major, minor));
    let given = bound.request.environment.cuda.iter().copied();
    let mut toolkits: Vec<Toolkit> =
        milestones.into_iter().chain(given).filter(|toolkit| *toolkit >= bound.upstream.floor).collect();
    toolkits.sort();
    toolkits.dedup();
    toolkits
}

/// A list before and after.
struct Pair {
    name: String,
    line: usize,
    rows: Vec<EffectRow>,
    /// Whether statements add to a list of that name.
    adds: bool,
}

impl Plan {
    /// The lists of build files that name architectures in a way that the patch set knows.
    pub fn effect(&self, bound: &Bound<'_>) -> Vec<Effect> {
        let toolkits = shown(bound);
        let ops = bound.upstream.patches.iter().flat_map(|patch| &patch.ops);
        let ops = ops.filter(|op| is_for(&op.tags, &bound.version)).map(|op| &op.op);
        let ops: Vec<&Op> = ops.filter(|op| op.reads_arches()).collect();
        let guarded = bound.upstream.project.is_some();
        let effects = |path: &str| {
            let ops = ops.iter().filter(|op| op.files().contains(path));
            let pairs = ops.flat_map(|op| self.pairs(bound, (op, path), &toolkits)).collect();
            let lists = named(joined(pairs)).into_iter();
            lists
                .map(|(list, rows)| Effect { path: path.to_string(), list, rows, guarded })
                .collect::<Vec<_>>()
        };
        self.before.paths().flat_map(effects).collect()
    }

    /// The lists that an op reads in a file.
    fn pairs(&self, bound: &Bound<'_>, (op, path): (&Op, &str), toolkits: &[Toolkit]) -> Vec<Pair> {
        let listed = |sources: &Sources| op.compiled(sources, path, (toolkits, bound.aim()));
        let before = listed(&self.before);
        let is_same = self.before.get(path) == self.after.get(path);
        let after = if is_same { before.clone() } else { listed(&self.after) };
        let pair = |(before, after): (Listed, Listed)| {
            let adds = before.adds || after.adds;
            let given = before.given.into_iter().zip(after.given);
            let rows = toolkits.iter().zip(given).map(|(toolkit, (before, after))| EffectRow {
                toolkit: *toolkit,
                before,
                after,
            });
            Pair { name: before.name, line: before.line, rows: rows.collect(), adds }
        };
        matched(before, after).into_iter().map(pair).collect()
    }
}

/// The lists of a file before with those after: by their order, or by their names where some went or came. Those of one
/// name that are not as many as before are one list, for what moved between them neither went nor came.
fn matched(before: Vec<Listed>, after: Vec<Listed>) -> Vec<(Listed, Listed)> {
    if before.iter().map(key).eq(after.iter().map(key)) {
        return before.into_iter().zip(after).collect();
    }
    let mut names: Vec<String> = before.iter().chain(&after).map(key).collect();
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    let of_name = |name: &String| {
        let own = |lists: &[Listed]| lists.iter().filter(|list| key(list) == *name).cloned().collect();
        let (before, after): (Vec<Listed>, Vec<Listed>) = (own(&before), own(&after));
        match before.len() == after.len() {
            true => before.into_iter().zip(after).collect::<Vec<_>>(),
            false => as_one(before).map_or_else(
                || after.iter().map(|list| (nothing(list), list.clone())).collect(),
                |before| vec![(before.clone(), as_one(after.clone()).unwrap_or_else(|| nothing(&before)))],
            ),
        }
    };
    names.iter().flat_map(of_name).collect()
}

/// What tells lists apart that may have moved: those without a name are named by their line.
fn key(list: &Listed) -> String {
    if list.name == format!("line {}", list.line) { String::new() } else { list.name.clone() }
}

/// A list that gives nothing.
fn nothing(list: &Listed) -> Listed {
    Listed { given: vec![Vec::new(); list.given.len()], ..list.clone() }
}

/// What several lists give together.
fn as_one(lists: Vec<Listed>) -> Option<Listed> {
    lists.into_iter().reduce(|mut one, other| {
        one.given.iter_mut().zip(other.given).for_each(|(own, more)| extend(own, more));
        one
    })
}

/// What another list repeats is not said again.
fn extend(flags: &mut Vec<Compiled>, more: Vec<Compiled>) {
    let new: Vec<Compiled> = more.into_iter().filter(|flag| !flags.contains(flag)).collect();
    flags.extend(new);
}

/// Lists of one name as one, where statements add to it or each toolkit reads one of them alone, such as in a ladder.
/// Each row is ascending.
fn joined(pairs: Vec<Pair>) -> Vec<Pair> {
    let mut joined: Vec<Pair> = Vec::new();
    for pair in pairs.into_iter().filter(|pair| !pair.is_empty()) {
        match joined.iter_mut().find(|other| other.name == pair.name && other.is_one_with(&pair)) {
            Some(other) => other.join(pair),
            None => joined.push(pair),
        }
    }
    let order = |flag: &Compiled| flag.gencode.order();
    for row in joined.iter_mut().flat_map(|pair| &mut pair.rows) {
        row.before.sort_by_key(order);
        row.after.sort_by_key(order);
    }
    joined
}

/// Lists with their names; with their lines too where two have the same name. Where all give the same, once.
fn named(pairs: Vec<Pair>) -> Vec<(Option<String>, Vec<EffectRow>)> {
    let names: Vec<String> = pairs.iter().map(|pair| pair.name.clone()).collect();
    if pairs.windows(2).all(|two| two[0].rows == two[1].rows) {
        return pairs.into_iter().take(1).map(|pair| (None, pair.rows)).collect();
    }
    let name = |pair: &Pair| match names.iter().filter(|name| **name == pair.name).count() {
        1 => pair.name.clone(),
        _ => format!("{} line {}", pair.name, pair.line),
    };
    pairs.into_iter().map(|pair| (Some(name(&pair)), pair.rows)).collect()
}

impl Pair {
    fn is_empty(&self) -> bool {
        self.rows.iter().all(|row| row.before.is_empty() && row.after.is_empty())
    }

    fn is_one_with(&self, other: &Pair) -> bool {
        let is_apart = |(own, other): (&EffectRow, &EffectRow)| {
            let is_empty = |row: &EffectRow| row.before.is_empty() && row.after.is_empty();
            is_empty(own) || is_empty(other)
        };
        self.adds || other.adds || self.rows.iter().zip(&other.rows).all(is_apart)
    }

    fn join(&mut self, other: Pair) {
        self.adds |= other.adds;
        for (row, more) in self.rows.iter_mut().zip(other.rows) {
            extend(&mut row.before, more.before);
            extend(&mut row.after, more.after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list of 12.8 and 13.0, what each compiles before and after: `70 80|80`.
    fn pair(name: &str, line: usize, rows: [&str; 2]) -> Pair {
        let flag = |number: &str| Compiled {
            gencode: format!("arch=compute_{number},code=sm_{number}").parse().expect("gencode"),
            accepted: true,
        };
        let flags = |text: &str| text.split_whitespace().map(flag).collect::<Vec<_>>();
        let toolkits = [(12, 8), (13, 0)].map(|(major, minor)| Toolkit::new(major, minor));
        let row = |(toolkit, text): (Toolkit, &str)| {
            let (before, after) = text.split_once('|').expect("two sides");
            EffectRow { toolkit, before: flags(before), after: flags(after) }
        };
        let rows = toolkits.into_iter().zip(rows).map(row).collect();
        Pair { name: name.to_string(), line, rows, adds: false }
    }

    fn shown(pairs: Vec<Pair>) -> Vec<(String, Vec<String>)> {
        let text = |flags: &[Compiled]| {
            flags.iter().map(|flag| flag.gencode.virtual_arch.to_string()).collect::<Vec<_>>().join(" ")
        };
        let row = |row: &EffectRow| format!("{}|{}", text(&row.before), text(&row.after));
        let lists = named(joined(pairs)).into_iter();
        lists.map(|(name, rows)| (name.unwrap_or_default(), rows.iter().map(row).collect())).collect()
    }

    #[test]
    fn lists_that_differ_are_shown_apart_and_ascending() {
        let two = vec![pair("A", 1, ["90 70|90", "90|90"]), pair("B", 2, ["80|80", "80|80"])];
        let wanted = [("A", ["70 90|90", "90|90"]), ("B", ["80|80", "80|80"])];
        assert_eq!(
            shown(two),
            wanted.map(|(name, rows)| (name.to_string(), rows.map(str::to_string).to_vec()))
        );
        let alternatives = vec![pair("A", 1, ["70|70", "70|70"]), pair("A", 5, ["80|80", "80|80"])];
        let names: Vec<String> = shown(alternatives).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["A line 1", "A line 5"]);
    }

    #[test]
    fn a_ladder_and_what_statements_add_are_one_list() {
        let ladder = vec![pair("A", 1, ["70|70", "|"]), pair("A", 3, ["|", "80|80 120"])];
        assert_eq!(shown(ladder), [(String::new(), vec!["70|70".to_string(), "80|80 120".to_string()])]);
        let statements = Pair { adds: true, ..pair("A", 3, ["70|70", "70|70"]) };
        let added = vec![pair("A", 1, ["80|80", "80|80"]), statements];
        assert_eq!(shown(added), [(String::new(), vec!["70 80|70 80".to_string(); 2])]);
    }

    #[test]
    fn a_list_that_went_is_matched_by_its_name() {
        let list =
            |name: &str| Listed { name: name.to_string(), line: 1, adds: false, given: vec![Vec::new()] };
        let pairs = matched(vec![list("A"), list("B"), list("C")], vec![list("A"), list("C")]);
        let names: Vec<(&str, &str)> =
            pairs.iter().map(|(before, after)| (before.name.as_str(), after.name.as_str())).collect();
        assert_eq!(names, [("A", "A"), ("B", "B"), ("C", "C")]);
    }

    #[test]
    fn what_moved_between_lists_of_one_name_neither_went_nor_came() {
        let list = |name: &str, line: usize, flags: &str| {
            let rows = pair(name, line, [flags; 2]).rows;
            Listed {
                name: name.to_string(),
                line,
                adds: false,
                given: rows.into_iter().map(|row| row.before).collect(),
            }
        };
        let told = |before: Vec<Listed>, after: Vec<Listed>| {
            let text = |list: &Listed| {
                let codes = list.given[0].iter().map(|flag| flag.gencode.virtual_arch.to_string());
                codes.collect::<Vec<_>>().join(" ")
            };
            let pairs = matched(before, after);
            pairs.iter().map(|(before, after)| [text(before), text(after)].join("|")).collect::<Vec<_>>()
        };
        let split = vec![list("A", 3, "35|"), list("B", 4, "75|"), list("A", 5, "80 120|")];
        assert_eq!(
            told(vec![list("A", 1, "60 80|"), list("B", 4, "75|")], split),
            ["60 80|35 80 120", "75|75"]
        );
        let commands = vec![list("line 1", 1, "70|"), list("line 2", 2, "80|"), list("line 3", 3, "90|")];
        let left = vec![list("line 1", 1, "80|"), list("line 2", 2, "90|")];
        assert_eq!(told(commands, left), ["70 80 90|80 90"]);
        assert_eq!(told(vec![list("B", 1, "75|")], vec![list("A", 1, "80|")]), ["75|", "|80"]);
    }
}
