//! Source trees in the shape of each release, real releases, and what a patch makes of both.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use mambapatch::engine::catalogue::Catalogue;
use mambapatch::engine::patchset::bind::Bound;
use mambapatch::engine::patchset::select::{Request, is_for};
use mambapatch::engine::patchset::{PatchSets, shipped};
use mambapatch::engine::plan::{self, Plan};
use mambapatch::engine::source::Sources;
use mambapatch::engine::tag::{SourceVersion, Tag};

use super::families::small::SMALL;
use super::harness::runs::{self, Matrix, Run, SetupRuns};
use super::harness::{self, releases};

/// The newest mamba builds its kernels only when asked to.
pub const KEEP: [&str; 2] = ["--env", "MAMBA_KEEP_CUDA_BUILD=TRUE"];
pub const GENERATION: &str = "mamba_ssm/utils/generation.py";

pub static SETS: LazyLock<PatchSets> =
    LazyLock::new(|| shipped::texts().load().unwrap_or_else(|error| panic!("{error}")));
pub static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| small_cases().chain(real_cases()).collect());

/// One source tree.
pub struct Case {
    pub name: String,
    pub upstream: String,
    pub version: SourceVersion,
    pub sources: Sources,
}

fn small_cases() -> impl Iterator<Item = Case> {
    SMALL.iter().map(|small| {
        let mut sources: Sources = [("setup.py", small.setup().into_bytes())].into_iter().collect();
        if let Some(text) = small.generation() {
            sources.insert(GENERATION, text.into_bytes());
        }
        Case {
            name: format!("small {} {}", small.upstream, small.version),
            upstream: small.upstream.to_string(),
            version: version(small.version, small.upstream),
            sources,
        }
    })
}

fn real_cases() -> impl Iterator<Item = Case> {
    releases::releases().into_iter().map(|release| Case {
        name: release.name(),
        version: version(&release.version, &release.upstream),
        upstream: release.upstream,
        sources: release.files,
    })
}

/// `main` comes after the newest tag of the mirrors.
pub fn version(text: &str, upstream: &str) -> SourceVersion {
    let newest = if upstream == "mamba-ssm" { "2.3.2.post1" } else { "1.6.1.post4" };
    let tag = |text: &str| text.parse::<Tag>().expect("a tag");
    if text == "main" { SourceVersion::After(tag(newest)) } else { SourceVersion::Release(tag(text)) }
}

impl Case {
    pub fn is(&self, mamba: &str, causal_conv1d: &str) -> bool {
        let range = if self.upstream == "mamba-ssm" { mamba } else { causal_conv1d };
        is_for(&range.parse().expect("a range"), &self.version)
    }

    pub fn is_main_of_mamba(&self) -> bool {
        self.upstream == "mamba-ssm" && matches!(self.version, SourceVersion::After(_))
    }

    /// The plan of a request, proved; planned again, nothing changes.
    pub fn planned(&self, request: &Request) -> Plan {
        let upstream = SETS.upstream(&self.upstream).expect("a shipped set");
        let bound = Bound::new(upstream, self.version.clone(), request, Catalogue::shipped());
        let bound = bound.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let plan = |sources: &Sources| {
            plan::plan(&bound, sources).unwrap_or_else(|error| panic!("{}: {error}", self.name))
        };
        let proved =
            plan(&self.sources).prove(&bound).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        assert!(plan(&proved.plan().after).is_empty(), "{}: the second plan is not empty", self.name);
        proved.plan().clone()
    }
}

pub fn by_name(patch: &str) -> Request {
    Request { patches: vec![patch.to_string()], ..Request::default() }
}

fn has(patch: &str, case: &Case) -> bool {
    SETS.upstream(&case.upstream).is_some_and(|upstream| upstream.patch(patch).is_some())
}

/// The cases of the upstreams that have the patch, before and after; it changes exactly those for which `changes`
/// holds, and only the named file.
pub fn patched(patch: &str, file: &str, changes: impl Fn(&Case) -> bool) -> Vec<(&'static Case, Sources)> {
    let mut changed = 0;
    let cases = CASES.iter().filter(|case| has(patch, case));
    let after = cases.map(|case| {
        let plan = case.planned(&by_name(patch));
        let files: Vec<_> = plan.diffs().into_iter().map(|diff| diff.path).collect();
        let wanted = if changes(case) { vec![file.to_string()] } else { Vec::new() };
        assert_eq!(files, wanted, "{patch} on {}", case.name);
        changed += usize::from(!files.is_empty());
        (case, plan.after)
    });
    let after: Vec<_> = after.collect();
    println!("{patch}: changes {changed} of {} trees, each proved", after.len());
    after
}

/// Runs both trees of each case and tallies the faults that `check` finds. A setup.py that several releases share is
/// run once for all of them.
pub fn compare(
    what: &str,
    cases: &[(&Case, Sources)],
    matrix: &Matrix,
    check: impl Fn(&Case, &SetupRuns, &SetupRuns) -> Vec<String>,
) {
    let before = run_once_each(cases.iter().map(|(case, _)| (case.name.as_str(), &case.sources)), matrix);
    let after = run_once_each(cases.iter().map(|(case, after)| (case.name.as_str(), after)), matrix);
    let pairs = cases.iter().zip(before.iter().zip(&after));
    harness::tally(
        what,
        pairs.map(|((case, _), (had, has))| {
            let faults = check(case, had, has).into_iter().map(|fault| format!("{}: {fault}", case.name));
            (case.name.clone(), faults.collect())
        }),
    );
}

type Ran = BTreeMap<(String, Arc<[u8]>), Arc<SetupRuns>>;

/// What was run before, by matrix and setup.py.
static RAN: Mutex<Ran> = Mutex::new(BTreeMap::new());

/// The runs of each tree, in order.
fn run_once_each<'a>(
    trees: impl Iterator<Item = (&'a str, &'a Sources)>,
    matrix: &Matrix,
) -> Vec<Arc<SetupRuns>> {
    let trees = trees.map(|(name, sources)| {
        let setup = sources.get("setup.py").expect("setup.py").clone();
        ((format!("{matrix:?}"), setup), name)
    });
    let trees: Vec<_> = trees.collect();
    let mut missing: BTreeMap<_, _> = trees.iter().cloned().collect();
    missing.retain(|key, _| !RAN.lock().expect("no panic").contains_key(key));
    let setups: Vec<_> = missing
        .iter()
        .map(|((_, setup), name)| (name.to_string(), [("setup.py", setup.clone())].into_iter().collect()))
        .collect();
    let runs = runs::run(&setups, matrix).into_iter().map(Arc::new);
    let mut ran = RAN.lock().expect("no panic");
    ran.extend(missing.into_keys().zip(runs));
    trees.iter().map(|(key, _)| ran[key].clone()).collect()
}

/// Every run is what `wanted` makes of the run before (the line of an error apart).
pub fn runs_become(before: &SetupRuns, after: &SetupRuns, wanted: impl Fn(&Run) -> Run) -> Vec<String> {
    let pairs = before.runs.iter().zip(&after.runs);
    pairs.flat_map(|(had, has)| differs(&has.environment(), &wanted(had), has)).collect()
}

pub fn differs(what: &str, wanted: &Run, found: &Run) -> Option<String> {
    let plain = |run: &Run| Run { error_line: None, ..run.clone() };
    (plain(wanted) != plain(found)).then(|| format!("{what}: {wanted:#?} was wanted, not {found:#?}"))
}

pub fn same(before: &SetupRuns, after: &SetupRuns) -> Vec<String> {
    runs_become(before, after, Run::clone)
}

pub fn unless(holds: bool, fault: impl Into<String>) -> Option<String> {
    (!holds).then(|| fault.into())
}

/// The run with other flags.
pub fn with_flags(run: &Run, change: impl Fn(&[String]) -> Vec<String>) -> Run {
    let mut run = run.clone();
    (run.nvcc, run.cxx) = (change(&run.nvcc), change(&run.cxx));
    for extension in &mut run.ext_modules {
        (extension.nvcc, extension.cxx) = (change(&extension.nvcc), change(&extension.cxx));
    }
    run
}

pub fn one(toolkit: &str, options: &[&str]) -> Matrix {
    Matrix::of(&[toolkit]).with(&KEEP).with(options)
}
