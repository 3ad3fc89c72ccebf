//! `matrix`: for every release, whether each patch is needed, there already, or lost.

use serde_json::{Value, json};

use super::Answer;
use super::args::{Everywhere, MatrixArgs};
use super::failure::Failure;
use super::json as documents;
use super::list::find;
use super::planned::{asked, check_floor, infos, options, patch_sets};
use super::standing::{Row, Standing, rows};
use super::style::{BAD, DIM, GOOD, STRONG, WARN, columns, paint};
use super::terminal::Terminal;
use crate::checkout::Releases;
use crate::engine::catalogue::Catalogue;
use crate::engine::patchset::bind::Bound;
use crate::engine::patchset::{PatchSets, Upstream};
use crate::engine::tag::SourceVersion;

/// Shows the matrix of an upstream.
pub fn matrix(
    args: &MatrixArgs,
    everywhere: &Everywhere,
    terminal: &mut Terminal,
) -> Result<Answer, Failure> {
    has_releases(&patch_sets(everywhere)?, &args.upstream)?;
    let asked = asked(&args.wish, everywhere, terminal)?;
    let upstream = find(&asked.sets, &args.upstream)?;
    check_floor(upstream, &asked.request)?;
    let infos = infos(&asked.sets);
    let info = infos.iter().find(|info| info.id == upstream.id);
    let info =
        info.ok_or_else(|| Failure::UnknownUpstream { name: args.upstream.clone(), known: Vec::new() })?;
    let options = options(&args.source, everywhere);
    let releases = Releases::open(info, &options, &mut |progress| terminal.progress(progress))?;
    let newest = releases.tags().last().cloned().map_or(SourceVersion::Unknown, SourceVersion::Release);
    let bound = Bound::new(upstream, newest, &asked.request, Catalogue::shipped())?;
    let patches: Vec<String> = bound.patches.iter().map(|bound| bound.patch.id.clone()).collect();
    bound.notes.iter().for_each(|note| terminal.note(note));
    let rows = rows(&releases, upstream, &asked, terminal)?;
    untested(upstream, &rows).iter().for_each(|note| terminal.note(note));
    if terminal.is_json() {
        terminal.answer(documents::text(&document(upstream, &patches, &rows)).as_bytes())?;
    } else {
        terminal.show_long(&table(&patches, &rows))?;
    }
    Ok(Answer::Yes)
}

/// An upstream that is known and has releases, before anything else is asked.
fn has_releases(sets: &PatchSets, name: &str) -> Result<(), Failure> {
    match sets.upstream(name) {
        Some(upstream) if upstream.project.is_some() => Ok(()),
        Some(upstream) => Err(Failure::NoReleases { set: upstream.id.clone() }),
        None => {
            let known = infos(sets).into_iter().map(|info| info.id).collect();
            Err(Failure::UnknownUpstream { name: name.to_string(), known })
        }
    }
}

/// Whether the patch set was tested on a release.
fn is_tested(upstream: &Upstream, row: &Row) -> bool {
    upstream.project.as_ref().is_some_and(|project| row.tag <= project.tested_through)
}

/// Whether what the patches look at is known from a tested release.
fn is_known(upstream: &Upstream, rows: &[Row], row: &Row) -> bool {
    row.is_known(rows.iter().filter(|other| is_tested(upstream, other)))
}

/// The releases that came after the patch set was tested, and whether they bring anything new for it.
fn untested(upstream: &Upstream, rows: &[Row]) -> Vec<String> {
    let later = rows.iter().filter(|row| !is_tested(upstream, row));
    let note = |row: &Row| {
        let what = match is_known(upstream, rows, row) {
            true => "the files that its patches look at are those of a tested release",
            false => "the files that its patches look at are new: see its row",
        };
        format!("v{} is newer than what {} was tested on: {what}", row.tag, upstream.id)
    };
    later.map(note).collect()
}

fn table(patches: &[String], rows: &[Row]) -> String {
    let head = std::iter::once("release".to_string()).chain(patches.iter().cloned());
    let mut lines = vec![head.map(|cell| paint(DIM, &cell)).collect::<Vec<_>>()];
    for row in rows {
        let cells = row.standings.iter().map(|standing| match standing {
            Standing::Needed => paint(GOOD, standing.word()),
            Standing::There | Standing::NotApplicable => paint(DIM, standing.word()),
            Standing::Reported => paint(WARN, standing.word()),
            Standing::Lost => paint(BAD, standing.word()),
        });
        lines.push(std::iter::once(format!("v{}", row.tag)).chain(cells).collect());
    }
    let mut text = columns(&lines, "");
    text.push('\n');
    for (index, patch) in patches.iter().enumerate() {
        text.push_str(&format!("{}: {}\n", paint(STRONG, patch), summary(rows, index)));
    }
    text
}

/// `needed v1.0.0 to v2.2.5, there since v2.2.6`
fn summary(rows: &[Row], index: usize) -> String {
    let standing = |row: &Row| row.standings.get(index).copied();
    let mut parts: Vec<String> = Vec::new();
    let mut start = 0;
    while start < rows.len() {
        let end = (start..rows.len())
            .take_while(|at| standing(&rows[*at]) == standing(&rows[start]))
            .last()
            .unwrap_or(start);
        let word = standing(&rows[start]).map_or("", |standing| match standing {
            Standing::NotApplicable => "not concerned",
            other => other.word(),
        });
        parts.push(match (start == end, end + 1 == rows.len()) {
            (false, true) => format!("{word} since v{}", rows[start].tag),
            (true, _) => format!("{word} at v{}", rows[start].tag),
            (false, false) => format!("{word} v{} to v{}", rows[start].tag, rows[end].tag),
        });
        start = end + 1;
    }
    parts.join(", ")
}

fn document(upstream: &Upstream, patches: &[String], rows: &[Row]) -> Value {
    let row = |row: &Row| {
        let standings = patches.iter().zip(&row.standings);
        let cells = standings.map(|(patch, standing)| {
            let word = if *standing == Standing::NotApplicable { "not-applicable" } else { standing.word() };
            (patch.clone(), Value::from(word))
        });
        json!({
            "release": row.tag.to_string(),
            "tested": is_tested(upstream, row),
            "known": is_known(upstream, rows, row),
            "patches": cells.collect::<serde_json::Map<_, _>>(),
        })
    };
    json!({
        "upstream": upstream.id,
        "tested-through": documents::tested_through(upstream),
        "releases": rows.iter().map(row).collect::<Vec<_>>(),
    })
}
