//! Every real release, patched in every way: what nvcc would be given afterwards is what the arch law says, git takes
//! the diff and takes it back, and nothing else changes.
//!
//! The source distributions come from the user's package index. With `MAMBAPATCH_MIRRORS` every tag and `main` of the
//! mirrors are checked too. A shape that many releases share is planned and run once.

#[path = "../harness/mod.rs"]
mod harness;

mod git;
mod shapes;

use std::sync::LazyLock;

use mambapatch::engine::ops::Outcome;
use mambapatch::engine::plan::prove::ProvedPlan;
use mambapatch::engine::source::Sources;
use mambapatch::engine::tag::SourceVersion;

use harness::flags::{Flags, serves};
use harness::laws::{self, Catalogue};
use harness::runs::{self, Matrix, SetupRuns};
use harness::wish::Wish;
use shapes::{SHAPES, Shape};

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(Catalogue::measured);

/// What a toolkit must compile, by what it compiled before.
type Law = Box<dyn Fn(&str, &[String]) -> Vec<String>>;

/// The architecture from its first toolkit on. Where the release has it already, but later, that is left alone.
fn added(before: &SetupRuns, arch: &'static str, first: &'static str) -> Law {
    let compiles = |run: &&runs::Run| Flags::of(&run.nvcc).arches.iter().any(|had| serves(had, arch));
    let had = before.runs.iter().filter(compiles).find_map(|run| run.toolkit.as_deref());
    let number = |toolkit: &str| toolkit.parse::<f32>().expect("a toolkit");
    let since = had.filter(|had| number(had) > number(first)).unwrap_or(first);
    Box::new(laws::added(arch, since))
}

fn accepted(toolkit: &'static str) -> Law {
    Box::new(laws::accepted(toolkit, &CATALOGUE))
}

fn then(first: Law, second: Law) -> Law {
    Box::new(move |toolkit, before| second(toolkit, &first(toolkit, before)))
}

/// A shape before and after one wish.
struct Patched {
    shape: &'static Shape,
    result: Result<ProvedPlan, String>,
}

impl Patched {
    fn after(&self) -> &Sources {
        self.result.as_ref().map_or(&self.shape.sources, |proved| &proved.plan().after)
    }

    fn setup_changed(&self) -> bool {
        self.after().get("setup.py") != self.shape.sources.get("setup.py")
    }
}

/// Every shape patched as the flags say.
fn patched(flags: &str) -> Vec<Patched> {
    let wish: Wish = flags.parse().expect("flags");
    SHAPES.iter().map(|shape| Patched { shape, result: shape.plan(&wish.request) }).collect()
}

/// What the patched setup.py files give to nvcc; an unchanged one is not run again.
fn run(patched: &[Patched]) -> Vec<SetupRuns> {
    let changed: Vec<_> = patched.iter().filter(|one| one.setup_changed()).collect();
    let setups: Vec<_> =
        changed.iter().map(|one| (one.shape.name(), shapes::setup_alone(one.after()))).collect();
    let mut runs = runs::run(&setups, &Matrix::default()).into_iter();
    let mut run =
        |one: &Patched| if one.setup_changed() { runs.next() } else { Some(one.shape.unpatched().clone()) };
    patched.iter().map(|one| run(one).expect("a run for each setup.py")).collect()
}

/// All that must hold after one wish.
fn faults(one: &Patched, runs: &SetupRuns, wish: &Wish, law: &laws::Law<'_>) -> Vec<String> {
    let proved = match &one.result {
        Ok(proved) => proved,
        Err(error) => return vec![format!("{}: {error}", one.shape.name())],
    };
    let mut faults = laws::expect(one.shape.unpatched(), runs, law);
    let again = one.shape.of(one.after().clone()).plan(&wish.request);
    if again.as_ref().map(|again| again.diff().is_empty()) != Ok(true) {
        faults.push(format!("planned again: {:?}", again.map(|again| again.diff())));
    }
    faults.extend(guard_faults(one));
    faults.extend(git::faults(proved));
    faults
}

/// No guard on the toolkit stands in another one, none is empty, and none says what another one beside it says.
fn guard_faults(one: &Patched) -> Vec<String> {
    let text =
        String::from_utf8_lossy(one.after().get("setup.py").map_or(&[][..], |bytes| bytes)).into_owned();
    let is_guard = |line: &&str| {
        ["if", "elif"].iter().any(|word| {
            let rest = line.trim_start().strip_prefix(word).unwrap_or_default();
            [" bare_metal_version >= ", " bare_metal_version <= "].iter().any(|guard| rest.starts_with(guard))
        })
    };
    let mut guards: Vec<&str> = text.lines().filter(is_guard).collect();
    let many = guards.len();
    guards.sort_unstable();
    guards.dedup();
    let depths: std::collections::BTreeSet<_> =
        guards.iter().map(|guard| guard.len() - guard.trim_start().len()).collect();
    let right = depths.len() <= 1 && guards.len() == many;
    (!right).then(|| format!("{}: guards {guards:#?}", one.shape.name())).into_iter().collect()
}

/// Patches every release as the flags say, and prints how many are right.
fn check(flags: &str, law: impl Fn(&SetupRuns) -> Law) {
    harness::tally(&format!("releases patched with {flags}"), cases(flags, law));
}

/// Every release by its name, with all that is wrong after it was patched.
fn cases(flags: &str, law: impl Fn(&SetupRuns) -> Law) -> Vec<(String, Vec<String>)> {
    let wish: Wish = flags.parse().expect("flags");
    let patched = patched(flags);
    let runs = run(&patched);
    let cases = patched.iter().zip(&runs).flat_map(|(one, runs)| {
        let faults = faults(one, runs, &wish, &law(one.shape.unpatched()));
        one.shape.releases.iter().map(move |name| (name.clone(), faults.clone()))
    });
    cases.collect()
}

#[test]
fn an_arch_is_compiled_from_its_first_toolkit_on() {
    check("--add-arch 120", |before| added(before, "120", "12.8"));
    check("--add-arch 89", |before| added(before, "89", "11.8"));
    check("--add-arch 75", |before| added(before, "75", "11.6"));
    check("--add-arch 89 --add-arch 75", |before| {
        then(added(before, "89", "11.8"), added(before, "75", "11.6"))
    });
}

/// The toolkits that know 101.
fn with_101(toolkit: &str, before: &[String]) -> Vec<String> {
    let known = ["12.8", "12.9"].contains(&toolkit);
    before.iter().cloned().chain(known.then(|| "101".to_string())).collect()
}

#[test]
fn an_arch_that_only_some_toolkits_know() {
    check("--add-arch 101", |_| Box::new(with_101));
}

#[test]
fn intermediate_code_alone() {
    check("--add-arch compute_120", |before| added(before, "120+PTX", "12.8"));
}

#[test]
fn several_arches() {
    check("--add-arch 90 --add-arch 100 --add-arch 120 --add-arch 121", |before| {
        let (old, new) = (added(before, "90", "11.8"), added(before, "100", "12.8"));
        then(then(old, new), then(added(before, "120", "12.8"), added(before, "121", "12.9")))
    });
    check("--add-arch 12.0+PTX", |before| {
        then(added(before, "120", "12.8"), added(before, "120+PTX", "12.8"))
    });
    check("--add-arch 101 --add-arch 120", |before| then(Box::new(with_101), added(before, "120", "12.8")));
    check("--cuda 13.0 --add-arch 121 --add-arch 120 --drop-arch 80", |before| {
        let added = then(added(before, "121", "12.9"), added(before, "120", "12.8"));
        let dropped = |_: &str, all: &[String]| all.iter().filter(|arch| *arch != "80").cloned().collect();
        then(then(accepted("13.0"), added), Box::new(dropped))
    });
}

#[test]
fn variants_of_a_chip() {
    check("--add-arch 120a", |before| added(before, "120a", "12.8"));
    check("--add-arch 120f", |before| added(before, "120f", "12.9"));
}

#[test]
fn exactly_the_wanted_arches() {
    check("--only-arch 120", |_| Box::new(laws::only(&[("120", "12.8")])));
    check("--only-arch 90 --only-arch 120", |_| Box::new(laws::only(&[("90", "11.8"), ("120", "12.8")])));
    check("--cuda 13.0 --only-arch 120", |_| Box::new(laws::only(&[("120", "12.8")])));
}

#[test]
fn dropped_arches() {
    let dropped = ["53", "62", "70", "72"];
    check("--drop-arch 53 --drop-arch 62 --drop-arch 70 --drop-arch 72", |_| {
        Box::new(move |_, before| {
            before.iter().filter(|arch| !dropped.contains(&arch.as_str())).cloned().collect()
        })
    });
}

#[test]
fn a_toolkit_is_given_nothing_that_it_refuses() {
    check("--cuda 13.0", |_| accepted("13.0"));
    check("--cuda 12.8", |_| accepted("12.8"));
    check("--cuda 13.0 --add-arch 120", |before| then(accepted("13.0"), added(before, "120", "12.8")));
    check("--cuda 12.8 --cuda 13.0 --add-arch 120", |before| {
        then(accepted("13.0"), added(before, "120", "12.8"))
    });
}

/// The shapes that do not say which release they are get the same patch.
#[test]
fn a_tree_of_an_unknown_release() {
    let wish: Wish = "--cuda 13.0 --add-arch 120".parse().expect("flags");
    let cases = SHAPES.iter().flat_map(|shape| {
        let unknown = Shape { version: SourceVersion::Unknown, ..shape.clone() };
        let plan = |shape: &Shape| shape.plan(&wish.request).map(|proved| proved.plan().after.clone());
        let (known, unknown) = (plan(shape), plan(&unknown));
        let differ =
            format!("{}: the patch differs where the release is unknown: {unknown:.200?}", shape.name());
        let faults: Vec<String> = (known != unknown).then_some(differ).into_iter().collect();
        shape.releases.iter().map(move |name| (name.clone(), faults.clone()))
    });
    harness::tally("releases patched with --cuda 13.0 --add-arch 120, the release unknown", cases);
}

const REVERSE_SCAN: &str = "csrc/selective_scan/reverse_scan.cuh";

/// The backward kernel's scan, without comments.
fn code(sources: &Sources) -> Option<String> {
    let text = String::from_utf8_lossy(sources.get(REVERSE_SCAN)?).into_owned();
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end());
    Some(code.collect::<Vec<_>>().join("\n"))
}

/// How often the names stand there that CCCL 3 removed.
fn removed_names(sources: &Sources) -> usize {
    let code = code(sources).unwrap_or_default();
    code.matches("cub::LaneId").count() + code.matches("cub::CTA_SYNC").count()
}

fn cub_faults(one: &Patched) -> Vec<String> {
    let Ok(proved) = &one.result else { return vec![format!("{}: not planned", one.shape.name())] };
    let patch = proved.plan().patches.iter().find(|patch| patch.id == "mamba-ssm/cuda-13");
    let outcomes: Vec<_> = patch.iter().flat_map(|patch| &patch.ops).map(|op| &op.outcome).collect();
    let is_not_applicable = |outcome: &&Outcome| matches!(outcome, Outcome::NotApplicable { .. });
    let carries = one.shape.sources.get(REVERSE_SCAN).is_some();
    let before = removed_names(&one.shape.sources);
    let expected = match (carries, before) {
        (false, _) => patch.is_some() && outcomes.iter().all(is_not_applicable),
        (true, 0) => patch.is_some_and(|patch| patch.changes.is_empty()),
        (true, _) => {
            before == 3 && removed_names(one.after()) == 0 && !outcomes.iter().any(is_not_applicable)
        }
    };
    let fault = || format!("{}: {before} removed names, {outcomes:?}", one.shape.name());
    (!expected).then(fault).into_iter().collect()
}

#[test]
fn kernels_use_no_name_that_cuda_13_removed() {
    let patched = patched("--cuda 13.0");
    let mamba = patched.iter().filter(|one| one.shape.upstream == "mamba-ssm");
    let cases = mamba.flat_map(|one| {
        let faults = cub_faults(one);
        one.shape.releases.iter().map(move |name| (name.clone(), faults.clone()))
    });
    harness::tally("releases of mamba-ssm without the CUB names, or without kernels", cases);
}

/// Upstream repaired its kernels in 2.2.6: the patched 2.2.5 is that, but for the width of a wave on ROCm.
#[test]
fn upstream_itself_repaired_the_kernels_as_the_patch_does() {
    let patched = patched("--cuda 13.0");
    let find = |name: &str| patched.iter().find(|one| one.shape.releases.iter().any(|known| known == name));
    let code = |name| code(find(name)?.after());
    let (Some(ours), Some(theirs)) = (code("mamba-ssm 2.2.5"), code("mamba-ssm 2.2.6.post3")) else {
        assert!(harness::releases::offline_is_wanted(), "2.2.5 and 2.2.6.post3 are on the index");
        return harness::say("NOT RUN: the kernels of 2.2.5 beside those of 2.2.6.post3");
    };
    assert!(ours.contains("threadIdx.x & (WARP_THREADS - 1)"));
    assert_eq!(ours.replace("(WARP_THREADS - 1)", "0x1f"), theirs);
}

/// Upstream added 100 in the releases after these: the patch gives the same flags.
#[test]
fn upstream_itself_added_100_as_the_patch_does() {
    let patched = patched("--add-arch 100");
    let runs = run(&patched);
    let find =
        |name: &str| patched.iter().position(|one| one.shape.releases.iter().any(|known| known == name));
    let pairs =
        [("mamba-ssm 2.2.4", "mamba-ssm 2.2.5"), ("causal-conv1d 1.5.0.post8", "causal-conv1d 1.5.1")];
    for (before, after) in pairs {
        let (Some(ours), Some(theirs)) = (find(before), find(after)) else {
            assert!(harness::releases::offline_is_wanted(), "{before} and {after} are on the index");
            harness::say(&format!("NOT RUN: {before} beside {after}"));
            continue;
        };
        for (ours, theirs) in runs[ours].runs.iter().zip(&patched[theirs].shape.unpatched().runs) {
            assert_eq!(ours.nvcc, theirs.nvcc, "{before} beside {after}, {}", ours.environment());
        }
    }
}
