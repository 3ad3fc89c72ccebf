//! Source text as syntax trees and as tokens: languages, macro bodies, branches of the preprocessor, the census of a
//! name, and the style of a neighbour.

pub mod alike;
mod assigned;
pub mod branches;
pub mod census;
mod choices;
mod condition;
pub mod constants;
pub mod cuda;
mod declared;
pub mod includes;
mod indentation;
pub mod language;
pub mod lexed;
pub mod macros;
pub mod namespaces;
pub mod passes;
mod reading;
pub mod script;
pub mod style;
pub mod tokens;
pub mod types;
pub mod versions;
pub mod words;

pub use branches::DeadCode;
pub use language::{Language, Parsed};
pub use passes::Passes;
