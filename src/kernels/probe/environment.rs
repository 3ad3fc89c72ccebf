//! What the installed packages of a Python say of themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::kernels::facts::{Extension, Shadow};
use crate::kernels::python;

/// Packages that patches and rules ask for.
pub const PACKAGES: [&str; 12] = [
    "torch",
    "transformers",
    "triton",
    "ninja",
    "setuptools",
    "packaging",
    "mamba-ssm",
    "causal-conv1d",
    "flash-attn",
    "xformers",
    "bitsandbytes",
    "numpy",
];

/// What a Python answers.
#[derive(Debug, Clone, Deserialize)]
pub struct Environment {
    /// The program.
    pub executable: PathBuf,
    /// `3.11.7`.
    pub python: String,
    /// The folders of packages.
    pub sites: Vec<PathBuf>,
    /// The packages asked for; those that are not installed have no release.
    pub packages: BTreeMap<String, Option<String>>,
    /// PyTorch's own file of versions.
    pub torch: Option<TorchVersion>,
    /// Compiled files, each with its package and release.
    #[serde(default)]
    pub binaries: Vec<(String, String, PathBuf)>,
    /// The modules of each package that has compiled files, or is a copy of one that has.
    #[serde(default)]
    pub modules: BTreeMap<String, Vec<String>>,
}

/// What `torch/version.py` says.
#[derive(Debug, Clone, Deserialize)]
pub struct TorchVersion {
    /// `2.11.0+cu130`.
    pub version: String,
    /// `13.0`.
    pub cuda: Option<String>,
    /// `6.4`.
    pub hip: Option<String>,
    /// Its folder.
    pub folder: PathBuf,
}

/// Reads metadata and torch/version.py; imports nothing of theirs. The first argument says whether files are listed.
const QUERY: &str = r#"
import importlib.metadata as m, importlib.util as u, json, pathlib, platform, re, site, sys
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return None
torch = None
spec = u.find_spec("torch")
if spec and spec.origin:
    path = pathlib.Path(spec.origin).with_name("version.py")
    text = path.read_text() if path.exists() else ""
    said = lambda name: (re.search(r"^%s\b.*= *'([^']+)'" % name, text, re.M) or [None, None])[1]
    torch = {"version": said("__version__") or version("torch") or "", "cuda": said("cuda"), "hip": said("hip"),
             "folder": str(path.parent)}
binaries, modules = [], {}
if sys.argv[1] == "files":
    for dist in m.distributions():
        name = (dist.metadata["Name"] or "").lower().replace("_", "-")
        if not name or name == "torch" or name.startswith(("nvidia-", "cuda-")): continue
        files = dist.files or []
        for file in files:
            if re.search(r"\.(so|pyd|dll)(\.[0-9.]+)?$", file.name): binaries.append((name, dist.version, str(file.locate())))
        for file in files:
            parts = file.parts
            top = parts[0].split(".")[0] if len(parts) == 1 and file.suffix in (".py", ".so", ".pyd") else parts[0]
            if (len(parts) == 2 and parts[1] == "__init__.py") or len(parts) == 1:
                if top.isidentifier() and name not in modules.setdefault(top, []): modules[top].append(name)
print(json.dumps({"executable": sys.executable, "python": platform.python_version(),
    "sites": site.getsitepackages() if hasattr(site, "getsitepackages") else [],
    "packages": {n: version(n) for n in sys.argv[2:]}, "torch": torch, "binaries": binaries, "modules": modules}))
"#;

impl Environment {
    /// Asks the given Python, else that of the active environment; its files are listed where that is wanted.
    pub fn ask(python: Option<&Path>, files: bool) -> Option<Self> {
        let mut arguments = vec![if files { "files" } else { "no-files" }];
        arguments.extend(PACKAGES);
        python::ask(python, QUERY, &arguments)
    }

    /// The packages that are installed.
    pub fn known_packages(&self) -> BTreeMap<String, String> {
        self.packages.iter().filter_map(|(name, version)| Some((name.clone(), version.clone()?))).collect()
    }

    /// Modules of extensions that several packages bring, or that lie in the current folder too.
    pub fn shadows(&self, extensions: &[Extension]) -> Vec<Shadow> {
        let owners: BTreeSet<&str> = extensions.iter().map(|extension| extension.package.as_str()).collect();
        let ours = self
            .modules
            .iter()
            .filter(|(_, packages)| packages.iter().any(|name| owners.contains(name.as_str())));
        let shadow = |(module, packages): (&String, &Vec<String>)| Shadow {
            module: module.clone(),
            packages: packages.clone(),
            folder: copy_here(module),
        };
        ours.map(shadow).filter(|shadow| shadow.packages.len() > 1 || shadow.folder.is_some()).collect()
    }
}

/// A copy of a module in the current folder, or one folder below: forks keep theirs so.
fn copy_here(module: &str) -> Option<PathBuf> {
    let holds = |folder: &Path| folder.join(module).join("__init__.py").is_file();
    if holds(Path::new(".")) {
        return Some(PathBuf::from(format!("./{module}")));
    }
    let mut folders: Vec<PathBuf> = std::fs::read_dir(".")
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders.into_iter().find(|folder| holds(folder)).map(|folder| folder.join(module))
}
