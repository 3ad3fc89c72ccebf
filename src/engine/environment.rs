//! What a source must build with, as far as it is known.

use std::collections::BTreeMap;

use super::tag::{Tag, TagRange};
use super::toolkit::Toolkit;

/// Toolkits, PyTorch, Python, machine and packages; what is absent is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The toolkits that it must build with; several mean all of them.
    pub cuda: Vec<Toolkit>,
    /// The release of PyTorch.
    pub torch: Option<Tag>,
    /// The release of Python.
    pub python: Option<Tag>,
    /// As `uname -m` names it.
    pub machine: Option<String>,
    /// Packages whose presence is known, with their releases; an absent package has none.
    pub packages: BTreeMap<String, Option<Tag>>,
}

/// Whether some releases of the toolkit are those of a range.
pub fn toolkit_in(range: &TagRange, toolkit: Toolkit) -> bool {
    toolkit.to_string().parse().is_ok_and(|tag| range.contains(&tag))
}
