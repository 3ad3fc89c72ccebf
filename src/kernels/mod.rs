//! The machine that compiles and runs kernels.

pub mod host;
