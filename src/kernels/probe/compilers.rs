//! The compilers that build the host's part: CXX and CC, those on the search path, MSVC.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::on_path;
use crate::kernels::facts::Compiler;
use crate::kernels::process::output;

/// The compilers, that of a build first: torch takes CXX, else what `c++` is.
pub fn compilers() -> Vec<Compiler> {
    let by_variable = |name: &str| {
        let program = std::env::var(name).ok().filter(|value| !value.trim().is_empty())?;
        let program = program.split_whitespace().next()?.to_string();
        let path = if program.contains(['/', '\\']) { PathBuf::from(program) } else { on_path(&program)? };
        compiler(&path, name)
    };
    let mut found: Vec<Compiler> = ["CXX", "CC"].into_iter().filter_map(by_variable).collect();
    let names = ["c++", "g++", "gcc", "clang++", "clang"];
    found.extend(names.into_iter().filter_map(|name| compiler(&on_path(name)?, "PATH")));
    found.extend(msvc());
    let mut kept: Vec<Compiler> = Vec::new();
    for one in found {
        let same = |other: &Compiler| other.kind == one.kind && other.version == one.version;
        if !kept.iter().any(same) {
            kept.push(one);
        }
    }
    kept
}

fn compiler(path: &Path, by: &str) -> Option<Compiler> {
    let text = output(Command::new(path).arg("--version"))?;
    let kind = if text.contains("clang") { "clang" } else { "gcc" };
    let version = version_in(&text)?;
    Some(Compiler { kind: kind.to_string(), version, path: path.to_path_buf(), by: by.to_string() })
}

/// `12.2.0` of `c++ (Debian 12.2.0-14) 12.2.0`, `19.1.7` of `clang version 19.1.7 (…)`.
fn version_in(text: &str) -> Option<String> {
    let line = text.lines().next()?;
    let bare = |word: &str| {
        let digits = word.split(|c: char| !(c.is_ascii_digit() || c == '.')).next()?;
        let numbers = digits.split('.').filter(|part| !part.is_empty()).count();
        (numbers >= 2 && word.starts_with(|c: char| c.is_ascii_digit())).then(|| digits.to_string())
    };
    let outside = line.split(')').next_back().filter(|rest| !rest.trim().is_empty()).unwrap_or(line);
    outside.split_whitespace().find_map(bare).or_else(|| line.split_whitespace().find_map(bare))
}

/// The MSVC of the open developer shell (`VCToolsVersion` 14.44 is compiler 19.44).
fn msvc() -> Option<Compiler> {
    let tools = std::env::var("VCToolsVersion").ok()?;
    let minor = tools.split('.').nth(1)?;
    let path = on_path("cl").unwrap_or_else(|| PathBuf::from("cl.exe"));
    Some(Compiler { kind: "msvc".into(), version: format!("19.{minor}"), path, by: "VCToolsVersion".into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        for (text, version) in [
            ("c++ (Debian 12.2.0-14+deb12u1) 12.2.0\nCopyright", "12.2.0"),
            ("g++ (GCC) 15.1.1 20250521", "15.1.1"),
            ("gcc-13 (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0", "13.3.0"),
            ("x86_64-conda-linux-gnu-c++ (conda-forge gcc 14.3.0-5) 14.3.0", "14.3.0"),
            ("Debian clang version 19.1.7 (3)", "19.1.7"),
            ("Apple clang version 16.0.0 (clang-1600.0.26.6)", "16.0.0"),
        ] {
            assert_eq!(version_in(text).as_deref(), Some(version), "{text}");
        }
        assert_eq!(version_in("nothing here"), None);
    }
}
