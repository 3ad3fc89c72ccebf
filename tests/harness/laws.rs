//! What a patch may change in the flags, and the report when it changes something else.

use std::collections::BTreeMap;

use super::flags::{Flags, serves};
use super::runs::{Extension, Run, SetupRuns};

/// Says for a toolkit, and for what it compiled before, what it must compile after.
pub type Law<'a> = dyn Fn(&str, &[String]) -> Vec<String> + 'a;

/// Which toolkit accepts which architecture, as nvcc itself answered (facts apart from the product's catalogue).
pub struct Catalogue {
    /// Architecture, first toolkit, last toolkit.
    rows: Vec<(u32, Toolkit, Toolkit)>,
}

type Toolkit = (u32, u32);

impl Catalogue {
    /// The toolkits 11.6 to 13.5.
    pub fn measured() -> Self {
        let always = (0, 0);
        let open = (u32::MAX, 0);
        let spans: [(&[u32], Toolkit, Toolkit); 8] = [
            (&[35, 37], always, (11, 8)),
            (&[50, 52, 53, 60, 61, 62, 70, 72], always, (12, 9)),
            (&[75, 80, 86, 87], always, open),
            (&[89, 90], (11, 8), open),
            (&[100, 120], (12, 8), open),
            (&[101], (12, 8), (12, 9)),
            (&[103, 121], (12, 9), open),
            (&[88, 110], (13, 0), open),
        ];
        let rows =
            spans.iter().flat_map(|(arches, first, last)| arches.iter().map(|arch| (*arch, *first, *last)));
        Self { rows: rows.chain([(107, (13, 4), open)]).collect() }
    }

    /// Whether nvcc of that toolkit takes `arch` (`90`, `120a`, `90+PTX`).
    pub fn accepts(&self, toolkit: &str, arch: &str) -> bool {
        let arch = arch.trim_end_matches("+PTX");
        let number = arch.trim_end_matches(['a', 'f']).parse();
        let toolkit = release(toolkit);
        let known = |row: &(u32, Toolkit, Toolkit)| {
            number == Ok(row.0)
                && (row.1..=row.2).contains(&toolkit)
                && (!arch.ends_with('f') || toolkit >= (12, 9))
        };
        self.rows.iter().any(known)
    }
}

/// `12.8` as numbers.
fn release(toolkit: &str) -> Toolkit {
    let parts =
        toolkit.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    parts.unwrap_or_else(|| panic!("`{toolkit}` is not a toolkit"))
}

/// The law of `--add-arch`: exactly the toolkits from `since` on compile it, whatever they did before.
pub fn added(arch: &str, since: &str) -> impl Fn(&str, &[String]) -> Vec<String> + use<> {
    let (arch, since) = (arch.to_string(), release(since));
    move |toolkit, before| {
        let (served, mut wanted): (Vec<_>, Vec<_>) =
            before.iter().cloned().partition(|had| serves(had, &arch));
        if release(toolkit) >= since {
            wanted.push(served.first().unwrap_or(&arch).clone());
        }
        wanted
    }
}

/// The law of `--only-arch`: these, each from its toolkit on, and nothing else.
pub fn only(wanted: &[(&str, &str)]) -> impl Fn(&str, &[String]) -> Vec<String> + use<> {
    let wanted: Vec<_> = wanted.iter().map(|(arch, since)| (arch.to_string(), release(since))).collect();
    move |toolkit, before| {
        let known = wanted.iter().filter(|(_, since)| release(toolkit) >= *since);
        known.map(|(arch, _)| before.iter().find(|had| serves(had, arch)).unwrap_or(arch).clone()).collect()
    }
}

/// The law of `--cuda`: that toolkit is given nothing that it refuses, and no other toolkit loses what it takes.
pub fn accepted<'a>(toolkit: &str, catalogue: &'a Catalogue) -> impl Fn(&str, &[String]) -> Vec<String> + 'a {
    let asked = toolkit.to_string();
    move |toolkit, before| {
        let below = release(toolkit) < release(&asked);
        let taken = |arch: &str| catalogue.accepts(&asked, arch) || catalogue.accepts(toolkit, arch);
        before.iter().filter(|arch| below || taken(arch)).cloned().collect()
    }
}

/// One law on the result of another: `--cuda 13.0 --add-arch 120`.
pub fn both<'a>(first: &'a Law<'_>, second: &'a Law<'_>) -> impl Fn(&str, &[String]) -> Vec<String> + 'a {
    move |toolkit, before| second(toolkit, &first(toolkit, before))
}

/// `arch` stands once in every toolkit from `since` on and in none below; all else is as before, in the same
/// order; a ROCm machine sees no difference.
pub fn expect_added(before: &SetupRuns, after: &SetupRuns, arch: &str, since: &str) -> Vec<String> {
    expect(before, after, &added(arch, since))
}

/// Exactly these architectures, each from its toolkit on; all else is as before.
pub fn expect_only(before: &SetupRuns, after: &SetupRuns, wanted: &[(&str, &str)]) -> Vec<String> {
    expect(before, after, &only(wanted))
}

/// `toolkit` is given nothing that it refuses and loses nothing else; toolkits below lose nothing.
pub fn expect_accepted(
    before: &SetupRuns,
    after: &SetupRuns,
    toolkit: &str,
    catalogue: &Catalogue,
) -> Vec<String> {
    expect(before, after, &accepted(toolkit, catalogue))
}

/// Nothing at all differs (a line number in an error apart).
pub fn expect_same(before: &SetupRuns, after: &SetupRuns) -> Vec<String> {
    expect(before, after, &|_, had| had.to_vec())
}

/// Compares all runs by a law: every fault, as `NAME, CUDA 12.8: …`.
pub fn expect(before: &SetupRuns, after: &SetupRuns, law: &Law<'_>) -> Vec<String> {
    if before.runs.len() != after.runs.len() {
        return vec![format!("{}: {} runs became {}", after.name, before.runs.len(), after.runs.len())];
    }
    let pairs = before.runs.iter().zip(&after.runs);
    let faults = pairs.flat_map(|(had, has)| {
        let named = format!("{}, {}", after.name, has.environment());
        run_faults(had, has, law).into_iter().map(move |fault| format!("{named}: {fault}"))
    });
    faults.collect()
}

fn run_faults(before: &Run, after: &Run, law: &Law<'_>) -> Vec<String> {
    if before.environment() != after.environment() {
        return vec![format!("was compared with {}", before.environment())];
    }
    match &after.toolkit {
        None => surroundings(before, after, false),
        Some(_) if !(before.ok && after.ok) => vec![failure(before, after)],
        Some(toolkit) => {
            let mut faults = surroundings(before, after, true);
            for (had, has) in before.ext_modules.iter().zip(&after.ext_modules) {
                faults.extend(extension_faults(had, has, &|arches| law(toolkit, arches)));
            }
            faults
        }
    }
}

fn failure(before: &Run, after: &Run) -> String {
    let (run, when) = if after.ok { (before, "failed before the patch") } else { (after, "fails") };
    let line = run.error_line.map(|line| format!(" (line {line})")).unwrap_or_default();
    format!("setup.py {when}: {}{line}", run.error.as_deref().unwrap_or("unknown"))
}

/// Everything of a run that no arch patch may change; the flags for nvcc only when no law is left to judge them.
fn surroundings(before: &Run, after: &Run, flags_apart: bool) -> Vec<String> {
    if let Some(fault) = differs("the error", &before.error, &after.error) {
        return vec![fault];
    }
    let parts = [
        differs("the warnings", &before.warnings, &after.warnings),
        differs("name and version", &(&before.name, &before.version), &(&after.name, &after.version)),
        differs("the extensions", &names(before), &names(after)),
        differs("the command classes", &before.cmdclass, &after.cmdclass),
        differs("the requirements", &before.install_requires, &after.install_requires),
        differs("TORCH_CUDA_ARCH_LIST", &before.torch_cuda_arch_list, &after.torch_cuda_arch_list),
    ];
    let extensions = before.ext_modules.iter().zip(&after.ext_modules);
    let inside = extensions.flat_map(|(had, has)| outside(had, has, flags_apart && had.kind == "cuda"));
    parts.into_iter().flatten().chain(inside).collect()
}

fn names(run: &Run) -> Vec<(&str, &str)> {
    run.ext_modules.iter().map(|one| (one.name.as_str(), one.kind.as_str())).collect()
}

fn outside(before: &Extension, after: &Extension, flags_apart: bool) -> Vec<String> {
    let what = |part: &str| format!("{part} of {}", after.name);
    let nvcc = differs(&what("nvcc flags"), &before.nvcc, &after.nvcc).filter(|_| !flags_apart);
    let parts = [
        differs(&what("sources"), &before.sources, &after.sources),
        differs(&format!("{}'s include folders", after.name), &before.include_dirs, &after.include_dirs),
        differs(&what("cxx flags"), &before.cxx, &after.cxx),
        nvcc,
    ];
    parts.into_iter().flatten().collect()
}

fn differs<T: PartialEq + std::fmt::Debug>(what: &str, before: &T, after: &T) -> Option<String> {
    (before != after).then(|| format!("{what} changed: {before:?} became {after:?}"))
}

fn extension_faults(
    before: &Extension,
    after: &Extension,
    law: &dyn Fn(&[String]) -> Vec<String>,
) -> Vec<String> {
    if before.kind != "cuda" {
        return Vec::new();
    }
    let (before, after) = (Flags::of(&before.nvcc), Flags::of(&after.nvcc));
    let mut faults = after.faults.clone();
    faults.extend(differs("other flags", &before.others, &after.others));
    faults.extend(arch_faults(&law(&before.arches), &after.arches));
    faults.extend(order_fault(&before.arches, &after.arches));
    faults
}

fn arch_faults(wanted: &[String], found: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    let (wanted, counted) = (count(wanted), count(found));
    for arch in wanted.keys().filter(|arch| !counted.contains_key(*arch)) {
        faults.push(format!("{arch} is missing from {}", found.join(" ")));
    }
    for (arch, times) in counted {
        match wanted.get(arch) {
            None => faults.push(format!("{arch} must not be in {}", found.join(" "))),
            Some(wanted) if *wanted < times => faults.push(format!("{arch} stands {times} times")),
            Some(_) => {}
        }
    }
    faults
}

fn count(arches: &[String]) -> BTreeMap<&str, usize> {
    let mut counted = BTreeMap::new();
    for arch in arches {
        *counted.entry(arch.as_str()).or_default() += 1;
    }
    counted
}

fn order_fault(before: &[String], after: &[String]) -> Option<String> {
    let mut kept: Vec<_> = before.iter().filter(|arch| after.contains(arch)).collect();
    kept.dedup();
    let mut rest = after.iter();
    let ordered = kept.iter().all(|arch| rest.any(|found| found == *arch));
    (!ordered).then(|| format!("the order changed: {} became {}", before.join(" "), after.join(" ")))
}
