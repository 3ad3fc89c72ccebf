//! For what a replacement is right, where a place is compiled for more than it.

use super::include;
use crate::engine::environment::toolkit_in;
use crate::engine::source::Sources;
use crate::engine::syntax::branches::directives;
use crate::engine::syntax::passes::speaks_of_hip;
use crate::engine::syntax::tokens::Kind;
use crate::engine::syntax::{DeadCode, Language, Passes};
use crate::engine::tag::TagRange;
use crate::engine::toolkit::Toolkit;

/// For what a replacement is right.
#[derive(Debug, Clone)]
pub struct RightFor {
    /// The toolkits that have what it speaks of; absent: all.
    pub cuda: Option<TagRange>,
    /// Whether ROCm has it.
    pub rocm: bool,
}

impl RightFor {
    /// In words, where it is not all.
    pub(super) fn parts(&self) -> Option<(&'static str, String)> {
        let cuda = self.cuda.iter().map(|range| format!("CUDA {range}"));
        let rocm = (!self.rocm).then(|| "not for ROCm".to_string());
        let told = cuda.chain(rocm).collect::<Vec<_>>().join(", ");
        (!told.is_empty()).then_some(("right-for", told))
    }
}

impl Default for RightFor {
    fn default() -> Self {
        Self { cuda: None, rocm: true }
    }
}

/// What stands at a place for which the replacement is not right.
#[derive(Debug, Clone)]
pub struct Otherwise<T> {
    /// The replacement that is right everywhere.
    pub text: T,
    /// What a file with such a place includes afterwards.
    pub include: Vec<String>,
}

/// What compiles code of a file besides that for which a replacement is right.
#[derive(Debug, Default)]
pub struct Others {
    /// Each with the code that it never takes.
    each: Vec<(String, DeadCode)>,
    /// One that would read a header that comes with the replacement.
    reader: Option<String>,
}

impl Others {
    /// Those of a file of a tree.
    pub fn of(right_for: &RightFor, bytes: &[u8], (sources, passes): (&Sources, &Passes)) -> Self {
        let is_wrong =
            |toolkit: &Toolkit| right_for.cuda.as_ref().is_some_and(|range| !toolkit_in(range, *toolkit));
        let of_toolkit = |toolkit: Toolkit| {
            let passes = passes.of_toolkits(|other| other == toolkit);
            (format!("CUDA {toolkit}"), DeadCode::of(bytes, &passes))
        };
        let toolkits = passes.toolkits().filter(is_wrong).map(of_toolkit);
        let rocm = (!right_for.rocm && is_for_rocm(bytes, sources))
            .then(|| ("ROCm".to_string(), DeadCode::of(bytes, &Passes::for_rocm())));
        Self { each: toolkits.chain(rocm).collect(), reader: None }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.each.is_empty()
    }

    /// Makes sure that none of them reads the headers that come with the replacement at some places. Where the headers
    /// cannot stand so, the replacement is right nowhere in the file.
    pub fn keep_from(&mut self, headers: &[String], places: &[usize], (bytes, dead): (&[u8], &DeadCode)) {
        let lines = headers.iter().filter_map(|header| include::line_for(bytes, header, (places, dead)));
        let reader = lines.filter_map(|at| self.compiling(at)).next().map(str::to_string);
        self.reader = reader.filter(|_| !places.is_empty());
    }

    /// The first that compiles a place.
    pub fn compiling(&self, at: usize) -> Option<&str> {
        let compiles = self.each.iter().find(|(_, dead)| !dead.holds(at)).map(|(name, _)| name);
        compiles.or(self.reader.as_ref()).map(String::as_str)
    }

    /// Why a place stays that another compiles too.
    pub fn reason(other: &str, replacement: &str) -> String {
        format!("{other} compiles this file too, for which `{replacement}` is not right")
    }
}

/// Whether a file is written for ROCm too: it asks for it, or its tree calls hipCUB by the name of CUB.
fn is_for_rocm(bytes: &[u8], sources: &Sources) -> bool {
    let asks = || {
        let conditions = directives(bytes);
        let words = conditions.iter().flat_map(|directive| &directive.tokens);
        words.filter(|token| token.kind == Kind::Word).any(|token| speaks_of_hip(token.text(bytes)))
    };
    let is_cpp = |path: &str| Language::of_path(path) == Some(Language::Cpp);
    asks() || sources.iter().any(|(path, bytes)| is_cpp(path) && names_hipcub(bytes))
}

/// `namespace cub = hipcub`
fn names_hipcub(bytes: &[u8]) -> bool {
    let is_alias = |at: usize| {
        let before = bytes[..at].trim_ascii_end();
        let before = before.strip_suffix(b"::").unwrap_or(before).trim_ascii_end();
        let name = before.strip_suffix(b"=").map(<[u8]>::trim_ascii_end);
        name.and_then(|before| before.strip_suffix(b"cub"))
            .is_some_and(|before| before.trim_ascii_end().ends_with(b"namespace") && before.ends_with(b" "))
    };
    memchr::memmem::find_iter(bytes, b"hipcub").any(is_alias)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others(right_for: &RightFor, text: &str, header: &str) -> Vec<Option<String>> {
        let sources: Sources = [("a.cu", text.as_bytes()), ("b.h", header.as_bytes())].into_iter().collect();
        let passes = Passes::of_texts(&["12.4", "12.8", "13.0"], None).in_tree(&sources);
        let others = Others::of(right_for, text.as_bytes(), (&sources, &passes));
        text.match_indices('x').map(|(at, _)| others.compiling(at).map(str::to_string)).collect()
    }

    #[test]
    fn a_place_is_right_where_only_toolkits_compile_it_that_have_the_replacement() {
        let right_for = RightFor { cuda: Some(">=12.5".parse().expect("range")), rocm: true };
        let text = "x\n#if CUDA_VERSION >= 12080\nx\n#else\nx\n#endif\n#ifdef USE_ROCM\nx\n#endif\n";
        let old = || Some("CUDA 12.4".to_string());
        assert_eq!(others(&right_for, text, ""), [old(), None, old(), None]);
        assert_eq!(others(&RightFor::default(), text, ""), [None, None, None, None]);
    }

    #[test]
    fn a_header_is_kept_from_those_that_lack_it() {
        let right_for = RightFor { cuda: None, rocm: false };
        let compiling = |text: &str| {
            let sources: Sources = [("a.cu", text.as_bytes())].into_iter().collect();
            let mut others = Others::of(&right_for, text.as_bytes(), (&sources, &Passes::unknown()));
            let at = text.find("x").expect("x");
            let headers = ["<cuda/ptx>".to_string()];
            others.keep_from(&headers, &[at], (text.as_bytes(), &DeadCode::default()));
            others.compiling(at).map(str::to_string)
        };
        let place = "#ifndef USE_ROCM\nx\n#endif\n";
        assert_eq!(compiling(&format!("#include <a.h>\n{place}")), Some("ROCm".to_string()));
        assert_eq!(compiling(place), Some("ROCm".to_string()));
        assert_eq!(compiling(&format!("#ifndef USE_ROCM\n#include <a.h>\n#endif\n{place}")), None);
    }

    #[test]
    fn rocm_compiles_what_a_file_or_a_header_of_its_tree_makes_for_it() {
        let right_for = RightFor { cuda: None, rocm: false };
        let rocm = || Some("ROCm".to_string());
        let asks = "x\n#ifndef USE_ROCM\nx\n#else\nx\n#endif\n#if CUDA_VERSION > 1\nx\n#endif\n";
        assert_eq!(others(&right_for, asks, ""), [rocm(), None, rocm(), None]);
        assert_eq!(others(&right_for, "x // USE_ROCM hipcub\n", "// namespace cub, hipcub\n"), [None]);
        assert_eq!(others(&right_for, "x\n", "#ifdef A\nnamespace cub = ::hipcub;\n#endif\n"), [rocm()]);
        assert_eq!(others(&right_for, "x\n", "using mycub = hipcub::Max;\n"), [None]);
    }
}
