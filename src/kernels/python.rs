//! The Python whose packages count: the given one, else that of the active environment.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::de::DeserializeOwned;

use super::process::output;

/// What a script prints, read as JSON, from the first Python that runs it.
pub fn ask<T: DeserializeOwned>(given: Option<&Path>, script: &str, arguments: &[&str]) -> Option<T> {
    candidates(given).iter().find_map(|python| {
        let text = output(Command::new(python).args(["-I", "-c", script]).args(arguments))?;
        serde_json::from_str(&text).ok()
    })
}

fn candidates(given: Option<&Path>) -> Vec<PathBuf> {
    if let Some(python) = given {
        return vec![python.to_path_buf()];
    }
    let variables = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(std::env::var_os);
    let below =
        if cfg!(windows) { ["Scripts/python.exe", "python.exe"] } else { ["bin/python", "bin/python3"] };
    let active = variables.flat_map(|folder| below.map(|python| Path::new(&folder).join(python)));
    active.chain(["python3", "python"].map(PathBuf::from)).collect()
}
