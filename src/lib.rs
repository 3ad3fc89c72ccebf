//! A source patching engine with declarative patch sets for PyTorch CUDA extensions.
//!
//! The road from a target to a patched tree has one direction: `engine` (pure values) is used by
//! `checkout` (reads and writes source trees) and `deliver` (pull requests, vendored trees), and all by `cli` (arguments
//! in, text out).

pub mod checkout;
pub mod cli;
pub mod deliver;
pub mod engine;
pub mod kernels;
pub mod signals;
