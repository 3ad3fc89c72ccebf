//! The pure engine: values in, values out. Nothing here reads a file, an environment or a flag.

pub mod arch;
pub mod catalogue;
pub mod edit;
pub mod environment;
mod memo;
pub mod ops;
pub mod patchset;
pub mod pattern;
pub mod plan;
pub mod source;
pub mod syntax;
pub mod tag;
pub mod toolkit;
