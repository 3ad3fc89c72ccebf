//! What was measured, as a table and as lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::measured::{Fate, Measured, Row};
use super::said::Said;

/// Writes the Markdown table to a path, and a line for each unit beside it.
pub fn write(projects: &[Measured], path: &Path) {
    fs::write(path, table(projects)).expect("the report can be written");
    fs::write(path.with_extension("tsv"), lines(projects)).expect("the units can be written");
}

/// A row for each project.
pub fn table(projects: &[Measured]) -> String {
    let mut text = String::from(
        "| project | units | failed before | compile after | why the rest fails | compiled before, fail after |\n\
         |---|---:|---:|---:|---|---:|\n",
    );
    for project in projects {
        row(&mut text, &project.name, &project.rows.iter().collect::<Vec<_>>(), &project.notes);
    }
    let all: Vec<&Row> = projects.iter().flat_map(|project| &project.rows).collect();
    row(&mut text, "**all**", &all, &[]);
    let catalogue: Vec<_> = all.iter().filter(|row| row.is_of_catalogue()).collect();
    let repaired = catalogue.iter().filter(|row| row.after.is_good()).count();
    let _ = writeln!(
        text,
        "\nOnly entries of the catalogue in the way: {repaired} of {} compile after.",
        catalogue.len()
    );
    text
}

fn row(text: &mut String, name: &str, rows: &[&Row], notes: &[String]) {
    let failed = rows.iter().filter(|row| !row.before.is_good()).count();
    let count = |fits: &dyn Fn(&Fate) -> bool| rows.iter().filter(|row| fits(&row.fate)).count();
    let repaired = count(&|fate| *fate == Fate::Repaired);
    let broken = count(&|fate| matches!(fate, Fate::Broken(_)));
    let why = if name.starts_with('*') { String::new() } else { reasons(rows, notes) };
    let _ = writeln!(text, "| {name} | {} | {failed} | {repaired} | {why} | {broken} |", rows.len());
}

/// `3 × missing: glm/glm.hpp; 1 × by hand: thc-blas`.
fn reasons(rows: &[&Row], notes: &[String]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for row in rows {
        let Some(reason) = reason(&row.fate) else { continue };
        *counts.entry(reason).or_default() += 1;
    }
    let counted = counts.iter().map(|(reason, count)| format!("{count} × {reason}"));
    let all: Vec<String> = counted.chain(notes.iter().cloned()).collect();
    all.join("; ").replace('|', "\\|").replace('\n', " ")
}

fn reason(fate: &Fate) -> Option<String> {
    match fate {
        Fate::Good | Fate::Repaired => None,
        Fate::Missing(what) => Some(format!("missing: `{what}`")),
        Fate::Reported(what) => Some(format!("by hand, reported: {what}")),
        Fate::Unhandled(what) => Some(format!("not handled: {what}")),
        Fate::Other(what) => Some(format!("other: `{what}`")),
        Fate::Broken(what) => Some(format!("broken: `{what}`")),
    }
}

/// Project, unit, before, after, seconds of each, fate, first errors of each.
fn lines(projects: &[Measured]) -> String {
    let mut text = String::from("project\tunit\tbefore\tafter\tseconds\tfate\terrors before\terrors after\n");
    for (project, row) in
        projects.iter().flat_map(|project| project.rows.iter().map(move |row| (project, row)))
    {
        let word = |good: bool| if good { "ok" } else { "fails" };
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{}\t{:.0}+{:.0}\t{}\t{}\t{}",
            project.name,
            row.unit.path,
            word(row.before.is_good()),
            word(row.after.is_good()),
            row.before.seconds,
            row.after.seconds,
            reason(&row.fate).unwrap_or_else(|| format!("{:?}", row.fate).to_lowercase()),
            first(&row.before.errors),
            first(&row.after.errors),
        );
    }
    text
}

fn first(errors: &[Said]) -> String {
    let texts: BTreeSet<String> =
        errors.iter().map(|said| format!("{}:{}: {}", said.file, said.line, said.message)).collect();
    let texts: Vec<String> = texts.into_iter().take(5).collect();
    texts.join(" ¦ ").replace('\t', " ")
}
