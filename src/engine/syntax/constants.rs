//! Macros that a tree defines as numbers: `#define WITH_HIP 0`, for a build for CUDA, in whatever header.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::branches::{definitions, directives};
use super::language::Language;
use super::passes::{Known, Pass};
use super::tokens::{Kind, is_word, tokens};
use crate::engine::source::Sources;

/// The numbers that macros are wherever a tree defines them, for each run of the preprocessor. Most macros of a tree are
/// never asked for: only the files that may define one that is are read.
#[derive(Debug)]
pub struct Constants {
    sources: Sources,
    runs: Vec<Known>,
    tree: OnceLock<Tree>,
}

/// Which files may define which macros.
#[derive(Debug, Default)]
struct Tree {
    files: Vec<File>,
    macros: HashMap<Box<[u8]>, Named>,
}

/// A file that may define macros.
#[derive(Debug)]
struct File {
    bytes: Arc<[u8]>,
    /// What each run defines in it, in order.
    defined: OnceLock<Vec<Vec<Defined>>>,
}

/// A macro with its number, or with what nobody knows.
type Defined = (Vec<u8>, Option<i64>);

/// A macro that files may define.
#[derive(Debug, Default)]
struct Named {
    files: Vec<usize>,
    /// What it is in each run, where the run defines it; what the tree defines otherwise elsewhere is no number.
    numbers: OnceLock<Vec<Option<Option<i64>>>>,
}

impl Constants {
    /// Those of a tree, for runs of which this is known.
    pub fn new(sources: Sources, runs: Vec<Known>) -> Self {
        Self { sources, runs, tree: OnceLock::new() }
    }

    /// What a macro is in one of the runs, where the tree defines it: a number, or nobody knows what.
    pub fn get(&self, run: usize, name: &[u8]) -> Option<Option<i64>> {
        let tree = self.tree.get_or_init(|| Tree::new(&self.sources));
        let named = tree.macros.get(name)?;
        let number = |run: usize| {
            let defined = named.files.iter().flat_map(|file| &tree.files[*file].defined(&self.runs)[run]);
            let numbers = defined.filter(|(other, _)| other == name).map(|(_, number)| *number);
            numbers.reduce(|one, other| one.filter(|_| one == other))
        };
        let numbers = named.numbers.get_or_init(|| (0..self.runs.len()).map(number).collect());
        numbers.get(run).copied().flatten()
    }
}

impl Tree {
    fn new(sources: &Sources) -> Self {
        let mut tree = Self::default();
        for (path, bytes) in sources.iter().filter(|(path, _)| Language::of_path(path) == Some(Language::Cpp))
        {
            let file = tree.files.len();
            for name in sources.macros(path) {
                let named = tree.macros.entry(bytes[name.clone()].into()).or_default();
                if named.files.last() != Some(&file) {
                    named.files.push(file);
                }
            }
            tree.files.push(File { bytes: bytes.clone(), defined: OnceLock::new() });
        }
        tree
    }
}

impl File {
    fn defined(&self, runs: &[Known]) -> &[Vec<Defined>] {
        self.defined.get_or_init(|| {
            let directives = directives(&self.bytes);
            runs.iter().map(|known| definitions(&self.bytes, &directives, Pass::alone(known))).collect()
        })
    }
}

/// The words that a text may define as macros: what follows a `define` or an `undef`, wherever that stands.
pub fn perhaps_macros(bytes: &[u8]) -> Vec<Range<usize>> {
    let keywords = ["define", "undef"].into_iter();
    let ends = keywords.flat_map(|keyword| {
        memchr::memmem::find_iter(bytes, keyword).map(move |start| start + keyword.len())
    });
    let whole = ends.filter(|end| bytes.get(*end).is_some_and(|next| !is_word(*next)));
    let name = |end: usize| {
        let next = tokens(&bytes[end..]).find(|token| token.kind != Kind::Comment)?;
        (next.kind == Kind::Word).then_some(end + next.start..end + next.end)
    };
    whole.filter_map(name).collect()
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
        for flag in ["MMCV_WITH_HIP", "IS_ROCM", "HIP_DIFF"] {
            assert!(is_dead(&[], &format!("#ifdef {flag}\nx\n#endif\n")), "{flag}");
        }
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
