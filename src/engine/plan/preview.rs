//! The diff of a plan: what `git apply` takes.

use std::collections::BTreeSet;

use similar::TextDiff;

use super::Plan;
use super::prove::ProvedPlan;

/// One file of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Relative to the root of the tree.
    pub path: String,
    /// Before.
    pub before: Vec<u8>,
    /// After.
    pub after: Vec<u8>,
}

impl FileDiff {
    /// A unified diff with git's headers.
    pub fn unified(&self) -> Vec<u8> {
        let path = &self.path;
        let mut out = format!("diff --git a/{path} b/{path}\n").into_bytes();
        let diff = TextDiff::from_lines(self.before.as_slice(), self.after.as_slice());
        // As git writes it: behind the tab `patch` looks for no more of a name with blanks.
        let end = if path.contains(' ') { "\t" } else { "" };
        out.extend_from_slice(format!("--- a/{path}{end}\n+++ b/{path}{end}\n").as_bytes());
        // Hunk by hunk, since only hunks are written byte for byte. Writing into memory does not fail.
        for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
            let _ = hunk.to_writer(&mut out);
        }
        out
    }

    /// The diff that leads back.
    pub fn reversed(&self) -> FileDiff {
        FileDiff { path: self.path.clone(), before: self.after.clone(), after: self.before.clone() }
    }
}

impl Plan {
    /// First text against last, file by file.
    pub fn diffs(&self) -> Vec<FileDiff> {
        let changed: BTreeSet<&String> = self.patches.iter().flat_map(|patch| patch.changes.keys()).collect();
        let pairs = changed.into_iter().map(|path| (path, self.before.get(path), self.after.get(path)));
        pairs
            .filter_map(|(path, before, after)| Some((path, before?, after?)))
            .filter(|(_, before, after)| before != after)
            .map(|(path, before, after)| FileDiff {
                path: path.to_string(),
                before: before.to_vec(),
                after: after.to_vec(),
            })
            .collect()
    }
}

impl ProvedPlan {
    /// The whole diff.
    pub fn diff(&self) -> Vec<u8> {
        self.plan().diffs().iter().flat_map(FileDiff::unified).collect()
    }

    /// The diff that takes everything back.
    pub fn reverse_diff(&self) -> Vec<u8> {
        self.plan().diffs().iter().map(FileDiff::reversed).flat_map(|file| file.unified()).collect()
    }
}
