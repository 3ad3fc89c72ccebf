//! Source text as syntax trees: languages, macro bodies, and the style of a neighbour.

pub mod census;
mod declared;
mod indentation;
pub mod language;
pub mod macros;
pub mod style;
pub mod reading;

pub use language::{Language, Parsed};
