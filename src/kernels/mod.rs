//! The machine that compiles and runs kernels.

pub mod host;
pub mod inspect;
mod process;
mod python;
