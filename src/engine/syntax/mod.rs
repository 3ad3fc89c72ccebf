//! Source text as syntax trees: languages, macro bodies, and the style of a neighbour.

mod indentation;
pub mod language;
pub mod macros;
pub mod style;
pub mod words;

pub use language::{Language, Parsed};
