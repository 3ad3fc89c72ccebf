//! Real releases: from local git mirrors, and from the package index.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use git2::{ObjectType, Oid, Repository, Tree};
use mambapatch::engine::source::Sources;
use mambapatch::engine::tag::Tag;

/// The variable that names the folder of local mirrors.
pub const MIRRORS: &str = "MAMBAPATCH_MIRRORS";

/// An upstream, and how its git repository and its Python package are called.
pub struct Upstream {
    /// The distribution's name: `mamba-ssm`.
    pub name: &'static str,
    owner: &'static str,
    repository: &'static str,
    package: &'static str,
}

/// The upstreams whose releases are collected.
pub const UPSTREAMS: [Upstream; 2] = [
    Upstream { name: "mamba-ssm", owner: "state-spaces", repository: "mamba", package: "mamba_ssm" },
    Upstream {
        name: "causal-conv1d",
        owner: "Dao-AILab",
        repository: "causal-conv1d",
        package: "causal_conv1d",
    },
];

/// One release, with the files that patches touch: setup.py, pyproject.toml, `csrc/`, the package's `__init__.py` and
/// `utils/generation.py`.
#[derive(Debug, Clone)]
pub struct Release {
    /// The distribution's name: `mamba-ssm`.
    pub upstream: String,
    /// The git tag (`v2.2.4`), `main`, or the version of a source distribution (`2.2.4`).
    pub version: String,
    /// The files, by their path in the source tree.
    pub files: Sources,
}

impl Release {
    /// How reports name it: `mamba-ssm v2.2.4`.
    pub fn name(&self) -> String {
        format!("{} {}", self.upstream, self.version)
    }

    /// Its version, unless it is a branch.
    pub fn tag(&self) -> Option<Tag> {
        self.version.parse().ok()
    }

    /// The text of its setup.py.
    pub fn setup(&self) -> String {
        let bytes = self.files.get("setup.py").unwrap_or_else(|| panic!("{} has no setup.py", self.name()));
        String::from_utf8(bytes.to_vec()).expect("setup.py is UTF-8")
    }
}

/// Every release that can be had: those of the mirrors, when there are any, and those of the index.
pub fn releases() -> Vec<Release> {
    let mut all = mirrors().map(|folder| from_mirrors(&folder)).unwrap_or_default();
    all.extend(from_index());
    if all.is_empty() {
        eprintln!("no real release is at hand: {MIRRORS} is not set");
    }
    all
}

/// The folder that `MAMBAPATCH_MIRRORS` names.
pub fn mirrors() -> Option<PathBuf> {
    std::env::var_os(MIRRORS).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Every release that the package index offers as a source distribution, oldest first, versions as the index
/// writes them (`2.2.4`).
///
/// Not wired yet. Whoever wires it to `mambapatch::checkout` keeps the signature: no argument (the index is the
/// user's own), and a panic that names the release when one cannot be fetched or unpacked; no index at all (an
/// offline machine) is an empty list and a line on stderr. Only the paths for which [`is_wanted`] holds are kept.
pub fn from_index() -> Vec<Release> {
    Vec::new()
}

/// Every tag of every mirror in a folder, in the order of their versions, then `main`.
///
/// A mirror is `<owner>+<repository>/repo` or `<repository>.git`; at least one must be there.
pub fn from_mirrors(folder: &Path) -> Vec<Release> {
    let all: Vec<_> = UPSTREAMS.iter().flat_map(|upstream| from_mirror(folder, upstream)).collect();
    assert!(!all.is_empty(), "{MIRRORS}={} holds no mirror of ours", folder.display());
    all
}

fn from_mirror(folder: &Path, upstream: &Upstream) -> Vec<Release> {
    let names =
        [format!("{}+{}/repo", upstream.owner, upstream.repository), format!("{}.git", upstream.repository)];
    let Some(path) = names.iter().map(|name| folder.join(name)).find(|path| path.is_dir()) else {
        return Vec::new();
    };
    let repo = Repository::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut reader = Reader { repo: &repo, upstream, blobs: HashMap::new() };
    refs(&repo).iter().map(|name| reader.release(name)).collect()
}

fn refs(repo: &Repository) -> Vec<String> {
    let names = repo.tag_names(None).expect("tags can be listed");
    let names = names.iter().filter_map(|name| name.ok().flatten());
    let mut tags: Vec<(Tag, String)> =
        names.filter_map(|name| Some((name.parse().ok()?, name.to_string()))).collect();
    tags.sort();
    tags.into_iter().map(|(_, name)| name).chain(["main".to_string()]).collect()
}

/// Whether a path belongs into [`Release::files`].
pub fn is_wanted(upstream: &Upstream, path: &str) -> bool {
    ["setup.py", "pyproject.toml"].contains(&path)
        || path.starts_with("csrc/")
        || ["__init__.py", "utils/generation.py"]
            .map(|file| format!("{}/{file}", upstream.package))
            .contains(&path.to_string())
}

/// Reads releases of one mirror; a blob that many of them have is held once.
struct Reader<'a> {
    repo: &'a Repository,
    upstream: &'a Upstream,
    blobs: HashMap<Oid, Arc<[u8]>>,
}

impl Reader<'_> {
    fn release(&mut self, name: &str) -> Release {
        let commit = self.repo.revparse_single(name).and_then(|object| object.peel_to_commit());
        let tree = commit.and_then(|commit| commit.tree());
        let tree = tree.unwrap_or_else(|error| panic!("{} {name}: {error}", self.upstream.name));
        let mut files = Sources::new();
        self.read(&tree, "", &mut files);
        Release { upstream: self.upstream.name.to_string(), version: name.to_string(), files }
    }

    fn read(&mut self, tree: &Tree<'_>, folder: &str, files: &mut Sources) {
        for entry in tree {
            let path = format!("{folder}{}", String::from_utf8_lossy(entry.name_bytes()));
            let upstream = self.upstream;
            match entry.kind() {
                Some(ObjectType::Tree)
                    if path == "csrc" || path == upstream.package || !folder.is_empty() =>
                {
                    let inner = self.repo.find_tree(entry.id()).expect("a tree of the mirror");
                    self.read(&inner, &format!("{path}/"), files);
                }
                Some(ObjectType::Blob) if is_wanted(upstream, &path) => {
                    files.insert(path, self.blob(entry.id()));
                }
                _ => {}
            }
        }
    }

    fn blob(&mut self, id: Oid) -> Arc<[u8]> {
        let repo = self.repo;
        let read = || repo.find_blob(id).expect("a blob of the mirror").content().into();
        self.blobs.entry(id).or_insert_with(read).clone()
    }
}
