//! What leaves this machine's checkouts: pull requests and vendored trees.

mod error;
mod habit;
pub mod links;
mod mail;
mod prose;
pub mod pull_request;
pub mod vendor;

pub use error::DeliverError;
pub use habit::Habit;
