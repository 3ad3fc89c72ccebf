//! The pure engine: values in, values out. Nothing here reads a file, an environment or a flag.

pub mod arch;
pub mod catalogue;
pub mod source;
pub mod tag;
pub mod toolkit;
