//! Source text as syntax trees: languages, macro bodies, branches of the preprocessor, and the style of a neighbour.

pub mod branches;
mod condition;
mod indentation;
pub mod language;
pub mod macros;
pub mod passes;
pub mod style;
pub mod tokens;

pub use branches::DeadCode;
pub use language::{Language, Parsed};
pub use passes::Passes;
