//! The harness for real releases: where they come from, what their setup.py would give to nvcc, and what a patch
//! may change in that.
//!
//! ```text
//! let releases = harness::releases::releases();
//! let before = harness::runs::run(&setups, &Matrix::default());
//! let after = harness::runs::run(&patched, &Matrix::default());
//! let faults = before.iter().zip(&after).map(|(b, a)| (b.name.clone(), laws::expect_added(b, a, "120", "12.8")));
//! harness::tally("120 is compiled from CUDA 12.8 on", faults);
//! ```

#![allow(dead_code, reason = "each test file uses its own part of the harness")]

use std::io::Write;

pub mod environment;
pub mod flags;
pub mod laws;
pub mod releases;
pub mod runs;
pub mod toolchain;
pub mod wish;

/// Prints a line that the test runner does not hold back, as it does with the output of tests that pass.
pub fn say(line: &str) {
    // One write a line: the tests of a file run side by side.
    let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
}

/// Whether a variable of the environment is `1`.
pub fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

/// Prints `N of M` and fails with every fault that was found, one a line.
pub fn tally(what: &str, cases: impl IntoIterator<Item = (String, Vec<String>)>) {
    let cases: Vec<_> = cases.into_iter().collect();
    let faults: Vec<&str> = cases.iter().flat_map(|(_, faults)| faults).map(String::as_str).collect();
    let good = cases.iter().filter(|(_, faults)| faults.is_empty()).count();
    say(&format!("{what}: {good} of {}", cases.len()));
    assert!(faults.is_empty(), "{what}: {good} of {}\n{}", cases.len(), faults.join("\n"));
}
