//! Which files of a tree an op looks at.

use std::fmt;
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::engine::source::Sources;

/// Files by name or by pattern: `setup.py`, `csrc/**/*.cuh`.
#[derive(Debug, Clone)]
pub struct Files {
    globs: Vec<String>,
    set: GlobSet,
}

impl Files {
    /// Files whose whole path one of the globs matches; `*` does not match `/`.
    pub fn new(globs: &[String]) -> Result<Self, globset::Error> {
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            set.add(GlobBuilder::new(glob).literal_separator(true).build()?);
        }
        Ok(Self { globs: globs.to_vec(), set: set.build()? })
    }

    /// Whether a path is among them.
    pub fn contains(&self, path: &str) -> bool {
        self.set.is_match(path)
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
