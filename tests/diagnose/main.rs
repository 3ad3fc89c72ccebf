//! `diagnose`: each rule on a failing log of its own, harmless lines, public reports, and logs in every wrapping.

mod advice;
mod cases;
mod hostile;
mod program;

use mambapatch::kernels::diagnose::{Diagnosis, diagnose};
use mambapatch::kernels::facts::Facts;

/// What a log tells, with these facts as JSON; none where nothing is known.
fn told(log: &str, facts: Option<&str>) -> Diagnosis {
    let facts: Facts = facts.map_or_else(Facts::default, |facts| serde_json::from_str(facts).expect(facts));
    diagnose(log.as_bytes(), &facts).expect("a log")
}

/// The id of the first cause.
fn first(diagnosis: &Diagnosis) -> &str {
    diagnosis.causes.first().map_or("none", |cause| &cause.id)
}
