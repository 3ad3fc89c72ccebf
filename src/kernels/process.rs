//! Programs of this machine that are asked something.

use std::process::{Command, Stdio};

/// What a program prints that ends well; it gets no input, and its error output is not shown.
pub fn output(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
