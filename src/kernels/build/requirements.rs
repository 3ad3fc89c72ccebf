//! What a build imports: `build-system.requires` of pyproject.toml, and what setup.py imports.

use std::sync::LazyLock;

use pep440_rs::{Version, VersionSpecifiers};
use regex::Regex;

/// A package that a build needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// Its name, as packages are compared.
    pub name: String,
    /// `>=61`; empty where any release does.
    pub versions: String,
}

impl Requirement {
    /// `setuptools>=61.0.0 ; python_version < '3.13'`; none where it cannot be read, or holds only somewhere else.
    pub fn parse(text: &str) -> Option<Self> {
        static PARTS: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*([^;@]*)$")
                .unwrap_or_else(|error| panic!("{error}"))
        });
        let parts = PARTS.captures(text)?;
        let name = parts[1].to_lowercase().replace(['_', '.'], "-");
        let versions = parts[2].trim().trim_matches(['(', ')']).to_string();
        Some(Self { name, versions })
    }

    /// Whether this release does; one that cannot be read does.
    pub fn is_met(&self, version: Option<&str>) -> bool {
        let Some(version) = version else { return false };
        match (self.versions.parse::<VersionSpecifiers>(), version.parse::<Version>()) {
            (Ok(wanted), Ok(version)) => wanted.contains(&version),
            _ => true,
        }
    }

    /// As pip takes it.
    pub fn text(&self) -> String {
        format!("{}{}", self.name, self.versions)
    }
}

/// Packages that the setup.py of an extension may import, by their modules.
const IMPORTED: [(&str, &str); 7] = [
    ("wheel", "wheel"),
    ("packaging", "packaging"),
    ("numpy", "numpy"),
    ("psutil", "psutil"),
    ("pybind11", "pybind11"),
    ("Cython", "cython"),
    ("skbuild", "scikit-build"),
];

/// All that a build needs. ninja is not among it: without it one file is compiled at a time, and no build stops.
pub fn requirements(pyproject: Option<&str>, setup: Option<&str>) -> Vec<Requirement> {
    let any = |name: &str| Requirement { name: name.to_string(), versions: String::new() };
    let mut wanted: Vec<Requirement> = pyproject.map(required).unwrap_or_default();
    let imported = IMPORTED.iter().filter(|(module, _)| setup.is_some_and(|text| imports(text, module)));
    let setuptools = setup.map(|_| any("setuptools"));
    let more = setuptools.into_iter().chain([any("torch")]).chain(imported.map(|(_, name)| any(name)));
    for one in more {
        if !wanted.iter().any(|other| other.name == one.name) {
            wanted.push(one);
        }
    }
    wanted.retain(|one| one.name != "ninja");
    wanted
}

fn required(pyproject: &str) -> Vec<Requirement> {
    let document: Option<toml::Table> = toml::from_str(pyproject).ok();
    let list =
        document.as_ref().and_then(|document| document.get("build-system")?.get("requires")?.as_array());
    list.into_iter().flatten().filter_map(|one| Requirement::parse(one.as_str()?)).collect()
}

fn imports(setup: &str, module: &str) -> bool {
    setup.lines().map(str::trim_start).any(|line| {
        let rest = line.strip_prefix("import ").or_else(|| line.strip_prefix("from "));
        let rest = rest.and_then(|rest| rest.trim_start().strip_prefix(module));
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pyproject_and_imports_are_joined() {
        let pyproject = "[build-system]\nrequires = [\"setuptools>=61.0.0\", \"Torch\", \"ninja\", \"x; os_name == 'nt'\"]\n";
        let setup =
            "from packaging.version import parse\nimport torch\n# import numpy\nfrom wheelhouse import x\n";
        let all = requirements(Some(pyproject), Some(setup));
        let texts: Vec<String> = all.iter().map(Requirement::text).collect();
        assert_eq!(texts, ["setuptools>=61.0.0", "torch", "packaging"]);
        let bare = requirements(None, Some("import setuptools\n"));
        assert_eq!(bare.iter().map(Requirement::text).collect::<Vec<_>>(), ["setuptools", "torch"]);
    }

    #[test]
    fn releases_are_compared() {
        let one = Requirement::parse("setuptools[core] >=61, <82").expect("a requirement");
        assert_eq!(
            (one.is_met(Some("80.9.0")), one.is_met(Some("82.0.0")), one.is_met(None)),
            (true, false, false)
        );
        assert!(Requirement::parse("torch").expect("one").is_met(Some("2.11.0+cu130")));
    }
}
