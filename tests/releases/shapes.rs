//! The shapes of all releases: what their patches look at, each once.

use std::sync::LazyLock;

use mambapatch::engine::catalogue::Catalogue;
use mambapatch::engine::patchset::bind::Bound;
use mambapatch::engine::patchset::select::{Request, is_for};
use mambapatch::engine::patchset::{PatchSets, Upstream, shipped};
use mambapatch::engine::plan::plan;
use mambapatch::engine::plan::prove::ProvedPlan;
use mambapatch::engine::source::Sources;
use mambapatch::engine::tag::{SourceVersion, Tag};

use super::harness::releases::{self, Release};
use super::harness::runs::{self, Matrix, SetupRuns};

static PATCH_SETS: LazyLock<PatchSets> =
    LazyLock::new(|| shipped::texts().load().expect("the shipped patch sets load"));

/// All shapes, in the order of their first releases.
pub static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(of_releases);

static UNPATCHED: LazyLock<Vec<SetupRuns>> = LazyLock::new(|| {
    let setups: Vec<_> = SHAPES.iter().map(|shape| (shape.name(), setup_alone(&shape.sources))).collect();
    runs::run(&setups, &Matrix::default())
});

/// Releases whose patches look at the same bytes and are the same.
#[derive(Debug, Clone)]
pub struct Shape {
    pub upstream: String,
    /// Of the first of its releases.
    pub version: SourceVersion,
    pub sources: Sources,
    pub releases: Vec<String>,
    /// Which ops of the patch set are written for it.
    pub ops: Vec<bool>,
    /// Its place in [`SHAPES`].
    pub number: usize,
}

impl Shape {
    /// How reports name it: `mamba-ssm v2.2.0 (as 2 more)`.
    pub fn name(&self) -> String {
        match self.releases.len() {
            1 => self.releases[0].clone(),
            many => format!("{} (as {} more)", self.releases[0], many - 1),
        }
    }

    /// The same release with other files.
    pub fn of(&self, sources: Sources) -> Shape {
        Shape { sources, ..self.clone() }
    }

    /// What it gives to nvcc unpatched.
    pub fn unpatched(&self) -> &'static SetupRuns {
        &UNPATCHED[self.number]
    }

    /// A proved plan, or why there is none.
    pub fn plan(&self, request: &Request) -> Result<ProvedPlan, String> {
        let upstream = patch_set(&self.upstream);
        let bound = Bound::new(upstream, self.version.clone(), request, Catalogue::shipped())
            .map_err(|error| format!("cannot be bound: {error}"))?;
        let plan =
            plan(&bound, &self.sources).map_err(|error| format!("cannot be planned: {error} ({error:?})"))?;
        plan.prove(&bound).map_err(|error| format!("cannot be proved: {error}"))
    }
}

/// What run_setup.py needs: neither the kernels nor the version make a difference to the flags.
pub fn setup_alone(sources: &Sources) -> Sources {
    sources.get("setup.py").map(|bytes| ("setup.py", bytes.clone())).into_iter().collect()
}

fn patch_set(upstream: &str) -> &'static Upstream {
    PATCH_SETS.upstream(upstream).unwrap_or_else(|| panic!("no patch set for {upstream}"))
}

fn of_releases() -> Vec<Shape> {
    let releases = releases::releases();
    let mut shapes: Vec<Shape> = Vec::new();
    for release in &releases {
        let shape = shape(release, version(release, &releases), shapes.len());
        let is_same = |known: &&mut Shape| {
            known.upstream == shape.upstream && known.ops == shape.ops && known.sources == shape.sources
        };
        match shapes.iter_mut().find(is_same) {
            Some(known) => known.releases.extend(shape.releases),
            None => shapes.push(shape),
        }
    }
    super::harness::say(&format!("{} releases in {} shapes", releases.len(), shapes.len()));
    shapes
}

fn shape(release: &Release, version: SourceVersion, number: usize) -> Shape {
    let ops: Vec<_> = patch_set(&release.upstream).patches.iter().flat_map(|patch| &patch.ops).collect();
    let is_looked_at = |path: &str| ops.iter().any(|op| op.op.files().contains(path));
    let sources = release.files.iter().filter(|(path, _)| is_looked_at(path));
    Shape {
        upstream: release.upstream.clone(),
        ops: ops.iter().map(|op| is_for(&op.tags, &version)).collect(),
        version,
        sources: sources.map(|(path, bytes)| (path, bytes.clone())).collect(),
        releases: vec![release.name()],
        number,
    }
}

/// A branch comes after the newest tag.
fn version(release: &Release, all: &[Release]) -> SourceVersion {
    let newest = || -> Option<Tag> {
        let same =
            all.iter().filter(|other| other.upstream == release.upstream && other.version.starts_with('v'));
        same.filter_map(Release::tag).max()
    };
    match release.tag() {
        Some(tag) => SourceVersion::Release(tag),
        None => newest().map_or(SourceVersion::Unknown, SourceVersion::After),
    }
}
