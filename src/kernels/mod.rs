//! The machine that compiles and runs kernels.

pub mod build;
pub mod diagnose;
pub mod doctor;
pub mod facts;
pub mod host;
pub mod inspect;
pub mod probe;
mod process;
mod python;
pub mod verify;
