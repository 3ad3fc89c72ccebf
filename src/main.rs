//! The command line of mambapatch.

fn main() {}
