//! `matrix`: for every release, whether each patch is needed, there already, or lost.

use std::collections::HashMap;

use rayon::prelude::*;
use serde_json::{Value, json};

use super::Answer;
use super::args::{Everywhere, MatrixArgs};
use super::failure::Failure;
use super::json as documents;
use super::list::find;
use super::planned::{Asked, asked, check_floor, check_size, infos, options};
use super::style::{BAD, DIM, GOOD, STRONG, WARN, columns, paint};
use super::terminal::Terminal;
use crate::checkout::{Progress, Releases};
use crate::engine::catalogue::Catalogue;
use crate::engine::ops::Outcome;
use crate::engine::ops::files::Files;
use crate::engine::patchset::Upstream;
use crate::engine::patchset::bind::Bound;
use crate::engine::plan::{PatchPlan, plan};
use crate::engine::source::Sources;
use crate::engine::tag::{SourceVersion, Tag};

/// What holds of one patch at one release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It would change something.
    Needed,
    /// What it wants holds already.
    There,
    /// It does not concern this release.
    NotApplicable,
    /// It was seen, and a person must look.
    Reported,
    /// It has nothing to hang on.
    Lost,
}

impl Standing {
    fn word(self) -> &'static str {
        match self {
            Standing::Needed => "needed",
            Standing::There => "there",
            Standing::NotApplicable => "-",
            Standing::Reported => "reported",
            Standing::Lost => "lost",
        }
    }

    fn of(patch: &PatchPlan) -> Self {
        let outcomes = || patch.ops.iter().map(|op| &op.outcome);
        match () {
            () if outcomes().any(|outcome| matches!(outcome, Outcome::Changed { .. })) => Standing::Needed,
            () if outcomes().any(|outcome| matches!(outcome, Outcome::Reported { .. })) => Standing::Reported,
            () if outcomes().any(|outcome| matches!(outcome, Outcome::AlreadySatisfied { .. })) => {
                Standing::There
            }
            () => Standing::NotApplicable,
        }
    }
}

/// A release and the standing of each patch, in the order of the patch set.
struct Row {
    tag: Tag,
    standings: Vec<Standing>,
}

/// Shows the matrix of an upstream.
pub fn matrix(
    args: &MatrixArgs,
    everywhere: &Everywhere,
    terminal: &mut Terminal,
) -> Result<Answer, Failure> {
    let asked = asked(&args.wish, everywhere, terminal)?;
    let upstream = find(&asked.sets, &args.upstream)?;
    if upstream.project.is_none() {
        return Err(Failure::NoReleases { set: upstream.id.clone() });
    }
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
    if terminal.is_json() {
        terminal.answer(documents::text(&document(upstream, &patches, &rows)).as_bytes())?;
    } else {
        terminal.show_long(&table(&patches, &rows))?;
    }
    Ok(Answer::Yes)
}

/// One patch on the files of one release, or of several that have the same.
struct Job<'a> {
    alone: Bound<'a>,
    sources: Sources,
}

/// What a job depends on: the ops, and the paths and bytes of the files that they look at.
type Key<'a> = (Vec<&'a str>, Vec<(String, std::sync::Arc<[u8]>)>);

/// One row a release. What is the same for several releases is planned once, and different jobs side by side.
fn rows(
    releases: &Releases,
    upstream: &Upstream,
    asked: &Asked,
    terminal: &mut Terminal,
) -> Result<Vec<Row>, Failure> {
    let (mut known, mut jobs) = (HashMap::new(), Vec::new());
    let mut numbers: Vec<(Tag, Vec<usize>)> = Vec::new();
    let tags = releases.tags();
    terminal.progress(Progress::Step(format!("planning {} releases of {}", tags.len(), upstream.id)));
    for (done, tag) in tags.iter().enumerate() {
        terminal.count(done, tags.len());
        let target = releases.release(tag, &mut |_| {})?;
        let version = SourceVersion::Release(tag.clone());
        let bound = Bound::new(upstream, version, &asked.request, Catalogue::shipped())?;
        let files = files(&bound);
        let sources = target.read(&|path| files.iter().any(|files| files.contains(path)))?;
        check_size(&sources)?;
        let patches = 0..bound.patches.len();
        let number = |index| number(&bound, index, &sources, (&mut known, &mut jobs));
        numbers.push((tag.clone(), patches.map(number).collect()));
    }
    let standings: Vec<Standing> = jobs.par_iter().map(Job::standing).collect();
    let row = |(tag, numbers): (Tag, Vec<usize>)| Row {
        tag,
        standings: numbers.into_iter().map(|number| standings[number]).collect(),
    };
    Ok(numbers.into_iter().map(row).collect())
}

/// The number of the job of one patch; a new one where there is none yet. A patch is planned by itself, so that one
/// that is lost does not hide the others.
fn number<'a>(
    bound: &Bound<'a>,
    index: usize,
    sources: &Sources,
    (known, jobs): (&mut HashMap<Key<'a>, usize>, &mut Vec<Job<'a>>),
) -> usize {
    let alone = Bound { patches: vec![bound.patches[index].clone()], ..bound.clone() };
    let files = files(&alone);
    let looked_at =
        sources.contents().into_iter().filter(|(path, _)| files.iter().any(|files| files.contains(path)));
    let ops = alone.patches.iter().flat_map(|patch| patch.ops.iter().map(|op| op.id.as_str()));
    *known.entry((ops.collect(), looked_at.collect())).or_insert_with(|| {
        jobs.push(Job { alone, sources: sources.clone() });
        jobs.len() - 1
    })
}

impl Job<'_> {
    fn standing(&self) -> Standing {
        match plan(&self.alone, &self.sources) {
            Ok(plan) => plan.patches.first().map_or(Standing::NotApplicable, Standing::of),
            Err(_) => Standing::Lost,
        }
    }
}

/// The files that the ops of these patches look at.
fn files<'a>(bound: &Bound<'a>) -> Vec<&'a Files> {
    bound.patches.iter().flat_map(|bound| bound.ops.iter().map(|op| op.op.files())).collect()
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
        json!({ "release": row.tag.to_string(), "patches": cells.collect::<serde_json::Map<_, _>>() })
    };
    json!({
        "upstream": upstream.id,
        "tested-through": documents::tested_through(upstream),
        "releases": rows.iter().map(row).collect::<Vec<_>>(),
    })
}
