//! The program from end to end, on handwritten sources and without any network: exit codes, what goes to which stream,
//! what is said, and that nothing is written when it must not be.

mod answers;
mod apply;
mod arches;
mod broken;
mod diff;
mod places;
mod private;
mod refused;
mod setups;
mod sources;
#[cfg(unix)]
mod stopped;
mod unknown;
mod world;
