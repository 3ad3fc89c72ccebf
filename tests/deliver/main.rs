//! What leaves a checkout: pull requests and vendored trees, from end to end. No network.

#[path = "../harness/mod.rs"]
mod harness;
#[path = "../cli/sources.rs"]
#[allow(dead_code, reason = "the sources of tests/cli, of which these tests use a part")]
mod sources;
#[path = "../cli/world.rs"]
#[allow(dead_code, reason = "the machine of tests/cli, of which these tests use a part")]
mod world;

mod branches;
mod deaths;
mod law;
mod mirrors;
mod moving;
mod pushes;
mod series;
mod shapes;
mod updates;
mod vendored;
