//! The pure engine: values in, values out. Nothing here reads a file, an environment or a flag.

pub mod arch;
pub mod edit;
pub mod pattern;
pub mod source;
pub mod syntax;
pub mod tag;
