//! Which files of a tree an op looks at.

use std::fmt;
use std::sync::Arc;

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::engine::source::Sources;

/// Files by name or by pattern: `setup.py`, `csrc/**/*.cuh`. A pattern that begins with `**` leaves out the code of
/// others, and what is made for HIP; one that says where to look does not.
#[derive(Debug, Clone)]
pub struct Files {
    globs: Vec<String>,
    placed: GlobSet,
    anywhere: GlobSet,
}

/// How a path stands to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing<'p> {
    /// It is among them.
    Within,
    /// A glob matches it, and it is left out for this folder, or for what it is itself.
    LeftOut(&'p str),
    /// No glob matches it.
    Without,
}

/// Folders in which projects keep the code of others.
const THIRD_PARTY: [&str; 12] = [
    "third_party",
    "third-party",
    "thirdparty",
    "3rdparty",
    "3rd_party",
    "3rd-party",
    "vendor",
    "vendored",
    "external",
    "externals",
    "submodules",
    "_deps",
];

/// Libraries that are found in the trees of others: by the name of their folder, with or without a version.
const LIBRARIES: [&str; 15] = [
    "cutlass",
    "composable_kernel",
    "cub",
    "thrust",
    "libcudacxx",
    "cccl",
    "moderngpu",
    "boost",
    "eigen",
    "eigen3",
    "ceres",
    "glm",
    "pybind11",
    "googletest",
    "nlohmann",
];

/// Words in the names of folders of code for HIP alone: `hip_fmha`, `amd_detail`.
const HIP: [&str; 3] = ["hip", "rocm", "amd"];

impl Files {
    /// Files whose whole path one of the globs matches; `*` does not match `/`.
    pub fn new(globs: &[String]) -> Result<Self, globset::Error> {
        let set = |anywhere: bool| {
            let mut set = GlobSetBuilder::new();
            for glob in globs.iter().filter(|glob| glob.starts_with("**") == anywhere) {
                // By the endings alone no pattern has to be compiled, nor tried on each path.
                let each = if anywhere { alternatives(glob) } else { vec![glob.clone()] };
                for glob in each {
                    set.add(GlobBuilder::new(&glob).literal_separator(true).build()?);
                }
            }
            set.build()
        };
        Ok(Self { globs: globs.to_vec(), placed: set(false)?, anywhere: set(true)? })
    }

    /// Whether a path is among them.
    pub fn contains(&self, path: &str) -> bool {
        self.standing(path) == Standing::Within
    }

    /// The folder, or the file, for which a path is left out that a glob matches.
    pub fn skipped<'p>(&self, path: &'p str) -> Option<&'p str> {
        match self.standing(path) {
            Standing::LeftOut(folder) => Some(folder),
            Standing::Within | Standing::Without => None,
        }
    }

    /// How a path stands to them.
    pub fn standing<'p>(&self, path: &'p str) -> Standing<'p> {
        let candidate = Candidate::new(path);
        if self.placed.is_match_candidate(&candidate) {
            return Standing::Within;
        }
        if !self.anywhere.is_match_candidate(&candidate) {
            return Standing::Without;
        }
        foreign(path).map_or(Standing::Within, Standing::LeftOut)
    }

    /// Those of a tree.
    pub fn of<'a>(&'a self, sources: &'a Sources) -> impl Iterator<Item = (&'a str, &'a Arc<[u8]>)> {
        sources.iter().filter(|(path, _)| self.contains(path))
    }

    /// As they were written.
    pub fn globs(&self) -> &[String] {
        &self.globs
    }
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.globs.join(", ").fmt(f)
    }
}

/// The globs without braces that one stands for: `**/*.{cu,cuh}` is `**/*.cu` and `**/*.cuh`. Braces in braces stay.
fn alternatives(glob: &str) -> Vec<String> {
    let braces = glob.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    match braces {
        Some((before, (inner, after)))
            if !inner.contains(['{', '[', '\\']) && !before.contains(['[', '\\']) =>
        {
            let each = inner.split(',').map(|one| format!("{before}{one}{after}"));
            each.flat_map(|glob| alternatives(&glob)).collect()
        }
        _ => vec![glob.to_string()],
    }
}

/// The part of a path down to the outermost folder that is no code of the project for CUDA, or all of it for a file that
/// hipify made.
fn foreign(path: &str) -> Option<&str> {
    let ends = path.match_indices('/').map(|(at, _)| at);
    let mut folders = ends.map(|end| &path[..end]);
    let folder = folders.find(|folder| is_foreign(folder.rsplit('/').next().unwrap_or(folder)));
    folder.or_else(|| is_hipified(path).then_some(path))
}

/// Whether a folder of this name holds the code of others, or code for HIP.
pub fn is_foreign(folder: &str) -> bool {
    let is = |name: &&str| folder.eq_ignore_ascii_case(name);
    let version = |rest: &str| {
        let number = rest.trim_start_matches(['-', '_', 'v', 'V']);
        rest.is_empty() || (number.len() < rest.len() && number.starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_library = |library: &&str| {
        let name = folder.get(..library.len()).filter(|name| name.eq_ignore_ascii_case(library));
        name.is_some_and(|name| version(&folder[name.len()..]))
    };
    let mut words = folder.split(['_', '-']);
    let is_hip = words.any(|word| HIP.iter().any(|hip| word.eq_ignore_ascii_case(hip)));
    THIRD_PARTY.iter().any(is) || is_hip || LIBRARIES.iter().any(is_library)
}

/// `scan.hip`, `scan_hip.cpp`: what torch's hipify writes beside `scan.cu` and `scan.cpp`.
fn is_hipified(path: &str) -> bool {
    let (stem, ending) = path.rsplit_once('.').unwrap_or((path, ""));
    ending == "hip" || stem.ends_with("_hip")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(globs: &[&str]) -> Files {
        Files::new(&globs.iter().map(|glob| glob.to_string()).collect::<Vec<_>>()).expect("globs")
    }

    #[test]
    fn a_glob_without_a_place_leaves_out_the_code_of_others() {
        let everywhere = files(&["**/*.cu", "**/*.h"]);
        for own in [
            "a.cu",
            "csrc/scan.cu",
            "csrc/hip_compat.h",
            "csrc/cutlass_ops/a.cu",
            "apex/contrib/csrc/a.cu",
            "src/cubic/a.h",
        ] {
            assert!(everywhere.contains(own) && everywhere.skipped(own).is_none(), "{own}");
        }
        for (foreign, folder) in [
            ("csrc/flash_attn/cutlass/include/cutlass/array.h", "csrc/flash_attn/cutlass"),
            ("src/3rdparty/robin_hood.h", "src/3rdparty"),
            ("third_party/glm/glm.h", "third_party"),
            ("include/eigen3/Eigen/a.h", "include/eigen3"),
            ("lib/Eigen-3.4.0/Core/a.h", "lib/Eigen-3.4.0"),
            ("cub-1.8.0/cub/a.h", "cub-1.8.0"),
            ("csrc/rocm/a.cu", "csrc/rocm"),
            ("csrc/attention/hip_fmha/a.h", "csrc/attention/hip_fmha"),
            ("csrc/amd/hip_float8.h", "csrc/amd"),
            ("csrc/scan_hip.h", "csrc/scan_hip.h"),
        ] {
            assert!(!everywhere.contains(foreign), "{foreign}");
            assert_eq!(everywhere.skipped(foreign), Some(folder));
        }
        assert_eq!(everywhere.skipped("third_party/glm/glm.py"), None);
    }

    #[test]
    fn braces_are_alternatives_wherever_they_stand() {
        let all = files(&["**/*.{cu,cuh}", "**/{a,b{c,d}}.{h,hpp}", "csrc/{x,y}.cpp", "**/[{]*.{c,d}"]);
        for within in ["a.cu", "x/b.cuh", "x/a.h", "bd.hpp", "csrc/y.cpp", "{x.c", "{.d"] {
            assert!(all.contains(within), "{within}");
        }
        for without in ["a.cux", "cu", "x/b.h", "x/csrc/y.cpp", "csrc/z.cpp", "x.c"] {
            assert!(!all.contains(without), "{without}");
        }
    }

    #[test]
    fn a_place_that_is_named_is_never_left_out() {
        let named = files(&["third_party/**/*.h", "**/*.cu"]);
        assert!(named.contains("third_party/glm/glm.h") && !named.contains("third_party/a.cu"));
        assert_eq!(named.skipped("third_party/glm/glm.h"), None);
        assert!(files(&["csrc/hip/a.cu"]).contains("csrc/hip/a.cu"));
    }
}
