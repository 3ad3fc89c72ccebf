//! How patches stand at releases: needed, there already, not concerned, reported, lost.

use std::collections::HashMap;

use rayon::prelude::*;

use super::failure::Failure;
use super::planned::{Asked, check_size};
use super::terminal::Terminal;
use crate::checkout::{Progress, Releases};
use crate::engine::catalogue::Catalogue;
use crate::engine::ops::Outcome;
use crate::engine::ops::files::Files;
use crate::engine::patchset::Upstream;
use crate::engine::patchset::bind::{Bound, BoundPatch};
use crate::engine::plan::{PatchPlan, plan};
use crate::engine::source::Sources;
use crate::engine::tag::{SourceVersion, Tag};

/// What holds of one patch at one release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
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
    /// As the table shows it.
    pub fn word(self) -> &'static str {
        match self {
            Standing::Needed => "needed",
            Standing::There => "there",
            Standing::NotApplicable => "-",
            Standing::Reported => "reported",
            Standing::Lost => "lost",
        }
    }

    /// Of a patch that was planned.
    pub fn of(patch: &PatchPlan) -> Self {
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

    /// Whether the release does without the patch.
    pub fn is_settled(self) -> bool {
        matches!(self, Standing::There | Standing::NotApplicable)
    }
}

/// A release and the standing of each patch, in the order of the patch set.
pub struct Row {
    /// The release.
    pub tag: Tag,
    /// Of each patch.
    pub standings: Vec<Standing>,
    /// Of each patch a number, the same where it looks at the same files.
    pub files: Vec<usize>,
}

impl Row {
    /// Whether its files are those of some of these rows, patch by patch: nothing new for the patches.
    pub fn is_known<'a>(&self, rows: impl Iterator<Item = &'a Row> + Clone) -> bool {
        let is_known =
            |(at, number): (usize, &usize)| rows.clone().any(|row| row.files.get(at) == Some(number));
        self.files.iter().enumerate().all(is_known)
    }
}

/// One patch on the files of one release, or of several that have the same.
struct Job<'a> {
    alone: Bound<'a>,
    sources: Sources,
}

/// What a job depends on: the ops, and the paths and bytes of the files that they look at.
type Key<'a> = (Vec<&'a str>, Vec<(String, std::sync::Arc<[u8]>)>);

/// One row a release. What is the same for several releases is planned once, and different jobs side by side.
pub fn rows(
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
        standings: numbers.iter().map(|number| standings[*number]).collect(),
        files: numbers,
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

/// How each patch stands at one source, each planned by itself.
pub fn of_each(bound: &Bound<'_>, sources: &Sources) -> Vec<Standing> {
    let job = |patch: &BoundPatch<'_>| {
        Job { alone: Bound { patches: vec![patch.clone()], ..bound.clone() }, sources: sources.clone() }
            .standing()
    };
    bound.patches.iter().map(job).collect()
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
