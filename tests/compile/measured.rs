//! A project's units before and after, and what became of each.

use std::collections::BTreeMap;

use super::closure::closure;
use super::compiler::{Compiled, Compiler};
use super::harness::say;
use super::migrations::{Cause, cause};
use super::said::Said;
use super::trees::{Reported, Trees};
use super::units::{Unit, units};

/// What became of a unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// It compiled and does.
    Good,
    /// It did not compile and does.
    Repaired,
    /// A file is missing that the tree does not have: another library, a submodule.
    Missing(String),
    /// What is left is reported by the plan.
    Reported(String),
    /// The catalogue knows what is left, and it was neither edited nor reported.
    Unhandled(String),
    /// Something else is left.
    Other(String),
    /// It compiled and does not any more.
    Broken(String),
}

/// One unit, measured.
pub struct Row {
    /// The unit as it is after.
    pub unit: Unit,
    /// Before.
    pub before: Compiled,
    /// After.
    pub after: Compiled,
    /// What became of it.
    pub fate: Fate,
}

impl Row {
    /// Whether nothing but entries of the catalogue stood between it and an object.
    pub fn is_of_catalogue(&self) -> bool {
        let known = |said: &Said| matches!(cause(&said.message), Some(Cause::Edit(_) | Cause::Sequel));
        let left = self.after.errors.iter().all(known);
        !self.before.is_good() && (self.after.is_good() || left && self.before.errors.iter().all(known))
    }
}

/// One project, measured.
pub struct Measured {
    /// `mmcv 2.2.0`, `facebookresearch+votenet`.
    pub name: String,
    /// What was said about its build files and its plan.
    pub notes: Vec<String>,
    /// Its units.
    pub rows: Vec<Row>,
}

/// Compiles the units of both trees that are wanted.
pub fn measure(name: &str, trees: &Trees, compiler: &Compiler, wanted: &dyn Fn(&Unit) -> bool) -> Measured {
    let (before, after) = (trees.before(), trees.after());
    let mut had = units(&before);
    let has = units(&after);
    let mut notes = std::mem::take(&mut had.notes);
    notes.extend(
        trees.refused.iter().map(|why| format!("not patched: {}", why.lines().next().unwrap_or(why))),
    );
    say(&format!("{name}: {} units", had.units.len()));
    let patched: BTreeMap<_, _> = has.units.iter().map(|unit| (unit.key(), unit)).collect();
    let rows = had.units.iter().filter(|unit| wanted(unit)).map(|unit| {
        let now = patched.get(&unit.key()).copied().unwrap_or(unit);
        let same = unit == now && closure(&before, unit) == closure(&after, now);
        let was = compiler.compile(&before, unit);
        let is = if same { was.clone() } else { compiler.compile(&after, now) };
        let files: Vec<String> = closure(&after, now).into_keys().collect();
        let fate = fate(&was, &is, &files, &trees.reported);
        Row { unit: now.clone(), before: was, after: is, fate }
    });
    let rows = rows.collect();
    Measured { name: name.to_string(), notes, rows }
}

fn fate(before: &Compiled, after: &Compiled, files: &[String], reported: &[Reported]) -> Fate {
    if after.is_good() {
        return if before.is_good() { Fate::Good } else { Fate::Repaired };
    }
    if before.is_good() {
        return Fate::Broken(after.errors[0].message.clone());
    }
    let here: Vec<&Reported> = reported.iter().filter(|place| files.contains(&place.path)).collect();
    let left = after.errors.iter().filter(|said| cause(&said.message) != Some(Cause::Sequel));
    let worst = left.map(|said| of_error(said, &here)).max();
    worst.unwrap_or_else(|| of_error(&after.errors[0], &here))
}

fn of_error(said: &Said, reported: &[&Reported]) -> Fate {
    let at = |place: &&&Reported| place.path == said.file && place.line.abs_diff(said.line) <= 2;
    if let Some(place) = reported.iter().find(at) {
        return Fate::Reported(place.op.clone());
    }
    match cause(&said.message) {
        Some(Cause::Hand(what)) if !reported.is_empty() => Fate::Reported(what.to_string()),
        Some(Cause::Hand(what) | Cause::Edit(what)) => Fate::Unhandled(what.to_string()),
        _ if said.message.contains("No such file or directory") => {
            Fate::Missing(said.message.split(':').next().unwrap_or_default().to_string())
        }
        _ => Fate::Other(format!("{}:{}: {}", said.file, said.line, said.message)),
    }
}
