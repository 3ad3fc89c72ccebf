//! Macros that a tree defines as numbers: `#define WITH_HIP 0`, for a build for CUDA, in whatever header.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::branches::{definitions, directives};
use super::language::Language;
use super::passes::{Known, Pass};
use crate::engine::source::Sources;

/// The numbers that macros are wherever a tree defines them, for each run of the preprocessor; looked for when the
/// first of them is asked for.
#[derive(Debug)]
pub struct Constants {
    sources: Sources,
    runs: Vec<Known>,
    found: OnceLock<Vec<Numbers>>,
}

/// A macro that the tree defines otherwise elsewhere, or under a condition that nobody knows, is none.
type Numbers = BTreeMap<Vec<u8>, Option<i64>>;

impl Constants {
    /// Those of a tree, for runs of which this is known.
    pub fn new(sources: Sources, runs: Vec<Known>) -> Self {
        Self { sources, runs, found: OnceLock::new() }
    }

    /// What a macro is in one of the runs, where the tree defines it: a number, or nobody knows what.
    pub fn get(&self, run: usize, name: &[u8]) -> Option<Option<i64>> {
        self.found.get_or_init(|| self.find()).get(run)?.get(name).copied()
    }

    fn find(&self) -> Vec<Numbers> {
        let mut runs = vec![Numbers::new(); self.runs.len()];
        let is_cpp = |path: &str| Language::of_path(path) == Some(Language::Cpp);
        for (_, bytes) in self.sources.iter().filter(|(path, _)| is_cpp(path)) {
            let directives = directives(bytes);
            for (known, numbers) in self.runs.iter().zip(&mut runs) {
                learn(numbers, definitions(bytes, &directives, Pass::alone(known)));
            }
        }
        runs
    }
}

/// Adds what one more file defines; what differs is no number.
fn learn(numbers: &mut Numbers, defined: Vec<(Vec<u8>, Option<i64>)>) {
    for (name, number) in defined {
        let known = numbers.entry(name).or_insert(number);
        *known = known.filter(|known| Some(*known) == number);
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::source::Sources;
    use crate::engine::syntax::branches::DeadCode;
    use crate::engine::syntax::passes::Passes;

    fn is_dead(headers: &[(&str, &str)], text: &str) -> bool {
        let sources: Sources = headers.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
        let passes = Passes::of_texts(&["12.8"], None).in_tree(&sources);
        DeadCode::of(text.as_bytes(), &passes).holds(text.find("x").expect("x"))
    }

    #[test]
    fn a_macro_that_the_tree_makes_zero_for_cuda_is_zero() {
        let shim = "#ifndef A_H\n#define A_H\n#ifdef __HIPCC__\n#define HIP 1\n#else\n#define HIP 0\n#endif\n#endif\n";
        assert!(is_dead(&[("a.h", shim)], "#if HIP && OTHER\nx\n#endif\n"));
        assert!(is_dead(
            &[("a.h", shim), ("b.h", "#define HIP (0)\n#undef OTHER\n")],
            "#if !HIP\n#else\nx\n#endif\n"
        ));
        assert!(!is_dead(&[("a.py", shim)], "#if HIP\nx\n#endif\n"));
    }

    #[test]
    fn a_macro_that_may_be_something_else_is_unknown() {
        for other in [
            "#define HIP 1\n",
            "#undef HIP\n",
            "#ifndef HIP\n#define HIP 0\n#endif\n",
            "#define HIP f()\n",
            "#if Y\n#define HIP 0\n#endif\n",
        ] {
            assert!(
                !is_dead(&[("a.h", "#define HIP 0\n"), ("b.h", other)], "#if HIP\nx\n#endif\n"),
                "{other}"
            );
        }
        assert!(!is_dead(&[("a.h", "#define HIP 0\n")], "#ifndef HIP\nx\n#endif\n"));
        assert!(
            !is_dead(&[("a.h", "#define CUDA 1\n")], "#if CUDA\n#else\nx\n#endif\n"),
            "it may lack the header"
        );
    }

    #[test]
    fn a_flag_for_hip_is_not_given_unless_the_tree_defines_it() {
        assert!(is_dead(&[], "#ifdef MMCV_WITH_HIP\nx\n#endif\n"));
        assert!(!is_dead(&[], "#ifdef NO_HIP\nx\n#endif\n"));
        let dead = "#ifdef __HIPCC__\n#define WITH_HIP\n#endif\n";
        assert!(is_dead(&[("a.h", dead)], "#ifdef WITH_HIP\nx\n#endif\n"));
        assert!(!is_dead(&[("a.h", "#define WITH_HIP 0\n")], "#ifdef WITH_HIP\nx\n#endif\n"));
    }

    #[test]
    fn a_number_that_the_file_gives_itself_is_known_from_there_on() {
        assert!(is_dead(&[], "#define CUDA 1\n#if CUDA\n#else\nx\n#endif\n"));
        assert!(!is_dead(&[], "#if !CUDA\nx\n#endif\n#define CUDA 1\n"));
        assert!(!is_dead(&[], "#ifdef Y\n#define CUDA 1\n#endif\n#if !CUDA\nx\n#endif\n"));
    }
}
