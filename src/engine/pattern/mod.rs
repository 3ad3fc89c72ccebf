//! Patterns: source code with metavariables, which is matched to read and filled in to write.
//!
//! The matcher is our own because no strictness of `ast-grep-core` 0.51 serves both needs (measured): `smart` does
//! not take `f(x.type())` for `f($$$A, $X.type(), $$$B)`, and the looser ones take `v <= 1` for `v >= 1`; nor does
//! any of them look into strings.

mod compile;
mod matching;
mod metavariable;
mod minimal;
mod qualified;
mod template;

pub use compile::{Pattern, PatternError};
pub use matching::{Bindings, Bound, Match};
pub use minimal::minimal_edits;
pub use template::{Template, Unbound};
