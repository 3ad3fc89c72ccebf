//! Ops: statements of what must hold in a source tree.

pub mod gencode;
