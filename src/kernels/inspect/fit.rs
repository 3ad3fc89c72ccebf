//! Whether GPU code runs on a GPU, and why.

use std::collections::BTreeSet;

use super::Binary;
use crate::engine::arch::{Arch, Code, Variant};
use crate::engine::catalogue::Catalogue;
use crate::engine::toolkit::Toolkit;

/// How a file's GPU code runs on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Machine code for it is there.
    Native,
    /// The driver translates PTX at the first start.
    Jit,
    /// Some parts have code for it, others have none.
    Partly,
    /// Nothing in it runs there.
    No,
}

/// A verdict, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fit {
    /// The GPU.
    pub gpu: Arch,
    /// How it runs.
    pub verdict: Verdict,
    /// Why.
    pub why: String,
}

impl Fit {
    /// Whether all that is meant for such GPUs runs.
    pub fn runs(&self) -> bool {
        matches!(self.verdict, Verdict::Native | Verdict::Jit)
    }
}

/// How one code runs on a GPU; nothing where it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Run {
    Jit,
    Native,
}

/// How the parts of a file run on a GPU.
struct Count {
    native: BTreeSet<Code>,
    jit: BTreeSet<Code>,
    by_jit: usize,
    none: usize,
    counted: usize,
}

/// Whether a file's GPU code runs on a GPU.
pub fn fit(binary: &Binary, gpu: Arch, catalogue: &Catalogue) -> Fit {
    let mut count = count(binary, gpu, catalogue);
    let linked_ptx = binary.relocatable.pieces().into_keys();
    let linked_ptx = linked_ptx.filter(|code| run(*code, gpu, catalogue) == Some(Run::Jit));
    if count.none > 0 {
        // The loader links PTX of parts again where the finished code has none.
        count.jit.extend(linked_ptx);
        if !count.jit.is_empty() && count.none == count.counted {
            (count.by_jit, count.none) = (count.counted, 0);
        }
    }
    let verdict = match () {
        () if count.counted == 0 || count.none == count.counted => Verdict::No,
        () if count.none > 0 => Verdict::Partly,
        () if count.by_jit > 0 => Verdict::Jit,
        () => Verdict::Native,
    };
    Fit { gpu, verdict, why: why(verdict, &count, (binary, gpu, catalogue)) }
}

/// Goes through the parts. One that holds nothing but code for single chips or families is meant for those alone: it
/// does not count against other GPUs.
fn count(binary: &Binary, gpu: Arch, catalogue: &Catalogue) -> Count {
    let mut count = Count { native: BTreeSet::new(), jit: BTreeSet::new(), by_jit: 0, none: 0, counted: 0 };
    for (codes, parts) in &binary.code.parts {
        let runs = codes.iter().filter_map(|code| Some((run(*code, gpu, catalogue)?, *code)));
        match runs.max_by_key(|(how, code)| (*how, code.arch().number, code.arch().variant)) {
            Some((Run::Native, code)) => drop(count.native.insert(code)),
            Some((Run::Jit, code)) => {
                count.jit.insert(code);
                count.by_jit += parts;
            }
            None if codes.iter().all(|code| code.arch().variant != Variant::Plain) => continue,
            None => count.none += parts,
        }
        count.counted += parts;
    }
    count
}

/// Whether one code runs on a GPU, natively or by JIT.
pub fn runs_on(code: Code, gpu: Arch, catalogue: &Catalogue) -> bool {
    run(code, gpu, catalogue).is_some()
}

fn run(code: Code, gpu: Arch, catalogue: &Catalogue) -> Option<Run> {
    let (arch, how) = match code {
        Code::Sass(arch) => (arch, Run::Native),
        Code::Ptx(arch) => (arch, Run::Jit),
        Code::Lto(_) => return None,
    };
    let later = arch.number <= gpu.number;
    let runs = match (arch.variant, how) {
        (Variant::Specific, _) => arch.number == gpu.number,
        (Variant::Family, _) => in_family(arch, gpu, catalogue),
        (Variant::Plain, Run::Native) => later && arch.number / 10 == gpu.number / 10,
        (Variant::Plain, Run::Jit) => later,
    };
    runs.then_some(how)
}

fn in_family(arch: Arch, gpu: Arch, catalogue: &Catalogue) -> bool {
    arch.number == gpu.number
        || catalogue.arch(arch).is_some_and(|row| row.family.iter().any(|chip| chip.number == gpu.number))
}

fn why(verdict: Verdict, count: &Count, (binary, gpu, catalogue): (&Binary, Arch, &Catalogue)) -> String {
    let words = |codes: &BTreeSet<Code>| codes.iter().map(Code::to_string).collect::<Vec<_>>().join(", ");
    match verdict {
        Verdict::Native => {
            let borrowed = count.native.iter().all(|code| code.arch().number != gpu.number);
            let jetson = catalogue.arch(Arch::plain(gpu.number)).is_some_and(|row| row.jetson);
            let promise = "; NVIDIA does not promise that code of another chip runs on a Jetson";
            format!("{} code{}", words(&count.native), if borrowed && jetson { promise } else { "" })
        }
        Verdict::Jit => {
            let driver = needed_driver(binary, catalogue);
            format!("the driver translates {} at the first start{driver}", words(&count.jit))
        }
        Verdict::Partly => format!("{} of {} parts have nothing for it", count.none, count.counted),
        Verdict::No => nothing(binary, gpu),
    }
}

fn needed_driver(binary: &Binary, catalogue: &Catalogue) -> String {
    let version = binary.code.ptx_version.max(binary.relocatable.ptx_version);
    let Some(version) = version.map(|(major, minor)| Toolkit::new(major, minor)) else {
        return String::new();
    };
    match catalogue.toolkit_of_ptx(version) {
        Some(toolkit) => format!("; it must know CUDA {toolkit} (PTX {version})"),
        None => format!("; it must know PTX {version}"),
    }
}

fn nothing(binary: &Binary, gpu: Arch) -> String {
    let codes: BTreeSet<Code> =
        binary.code.pieces().into_keys().chain(binary.relocatable.pieces().into_keys()).collect();
    let names = |wanted: fn(&Code) -> bool| {
        codes
            .iter()
            .filter(|code| wanted(code))
            .map(|code| code.arch().to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (sass, ptx) =
        (names(|code| matches!(code, Code::Sass(_))), names(|code| matches!(code, Code::Ptx(_))));
    let ptx = match ptx.as_str() {
        "" => "there is no PTX".to_string(),
        ptx => format!("its PTX is for {ptx} and later"),
    };
    match sass.as_str() {
        "" if codes.is_empty() => "it holds no GPU code".to_string(),
        "" => ptx,
        sass => format!("its machine code is for {sass}, none of which runs on {gpu}, and {ptx}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts separated by `|`; codes after `;` are those of the relocatable part.
    fn verdict(parts: &str, gpu: &str) -> (Verdict, String) {
        let mut binary = Binary::default();
        let (linked, relocatable) = parts.split_once(';').unwrap_or((parts, ""));
        for (text, code) in [(linked, &mut binary.code), (relocatable, &mut binary.relocatable)] {
            for part in text.split('|').filter(|part| !part.trim().is_empty()) {
                let mut codes: Vec<Code> =
                    part.split_whitespace().map(|word| word.parse().expect(word)).collect();
                codes.sort();
                *code.parts.entry(codes).or_insert(0) += 1;
            }
            code.ptx_version = Some((8, 7));
        }
        let fit = fit(&binary, gpu.parse().expect(gpu), Catalogue::shipped());
        (fit.verdict, fit.why)
    }

    #[test]
    fn machine_code_runs_within_its_major_and_ptx_from_its_number_on() {
        for (parts, gpu, wanted) in [
            ("sm_80 sm_90", "90", Verdict::Native),
            ("sm_80", "86", Verdict::Native),
            ("sm_86", "80", Verdict::No),
            ("sm_80 sm_90", "120", Verdict::No),
            ("sm_120", "121", Verdict::Native),
            ("sm_100", "110", Verdict::No),
            ("sm_90 compute_90", "120", Verdict::Jit),
            ("compute_120", "90", Verdict::No),
            ("sm_90a", "90", Verdict::Native),
            ("compute_90a", "120", Verdict::No),
            ("sm_120a", "121", Verdict::No),
            ("sm_120f", "121", Verdict::Native),
            ("sm_100f", "103", Verdict::Native),
            ("sm_100f", "120", Verdict::No),
            ("compute_120f", "121", Verdict::Jit),
            ("lto_90", "90", Verdict::No),
        ] {
            assert_eq!(verdict(parts, gpu).0, wanted, "{parts} on {gpu}");
        }
    }

    #[test]
    fn parts_for_single_chips_do_not_count_against_others() {
        assert_eq!(verdict("sm_80 sm_120 | sm_90a", "120").0, Verdict::Native);
        assert_eq!(
            verdict("sm_80 sm_120 | sm_80", "120"),
            (Verdict::Partly, "1 of 2 parts have nothing for it".into())
        );
        assert_eq!(verdict("sm_90a", "120").0, Verdict::No);
        assert_eq!(verdict("sm_80 | sm_80 compute_80", "86").0, Verdict::Native);
        assert_eq!(verdict("sm_120 | compute_80", "120").0, Verdict::Jit);
    }

    #[test]
    fn ptx_of_linked_parts_is_linked_again() {
        assert_eq!(verdict("sm_80; sm_80 compute_90", "120").0, Verdict::Jit);
        assert_eq!(verdict("sm_80; sm_80 sm_120", "120").0, Verdict::No);
    }

    #[test]
    fn the_reason_names_what_is_there() {
        assert_eq!(
            verdict("sm_75 sm_90", "120").1,
            "its machine code is for 75 90, none of which runs on 120, and there is no PTX"
        );
        assert_eq!(
            verdict("compute_90", "120").1,
            "the driver translates compute_90 at the first start; it must know CUDA 12.8 (PTX 8.7)"
        );
        assert_eq!(verdict("", "120").1, "it holds no GPU code");
        assert!(verdict("sm_80", "87").1.ends_with("runs on a Jetson"));
        assert_eq!(verdict("sm_80", "86").1, "sm_80 code");
    }
}
