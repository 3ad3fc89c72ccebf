//! Real releases: from local git mirrors, and from the package index.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use git2::{ObjectType, Oid, Repository, Tree};
use mambapatch::checkout::http::HttpError;
use mambapatch::checkout::index::IndexError;
use mambapatch::checkout::{CheckoutError, CheckoutOptions, Progress, Releases, SourceChoice, UpstreamInfo};
use mambapatch::engine::source::Sources;
use mambapatch::engine::tag::Tag;

use super::{is_set, say};

/// The variable that names the folder of local mirrors.
pub const MIRRORS: &str = "MAMBAPATCH_MIRRORS";

/// The variable that says that tests without the package index are wanted.
pub const OFFLINE: &str = "MAMBAPATCH_OFFLINE_TESTS";

/// Fewer source distributions than this are not all of them.
const SDISTS_AT_LEAST: usize = 40;

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

impl Upstream {
    /// What looking for its source distributions needs.
    fn info(&self) -> UpstreamInfo {
        UpstreamInfo {
            id: self.name.to_string(),
            distribution: self.name.to_string(),
            git_url: None,
            recognise: Vec::new(),
            tag_prefix: "v".to_string(),
        }
    }
}

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

/// Every release that can be had: those of the mirrors, when there are any, and those of the index. Read once.
///
/// Nothing from the index is a failure, so that no test passes on nothing; `MAMBAPATCH_OFFLINE_TESTS=1` allows it.
pub fn releases() -> Vec<Release> {
    static ALL: LazyLock<Vec<Release>> = LazyLock::new(|| {
        let mut all = mirrors().map(|folder| from_mirrors(&folder)).unwrap_or_default();
        let sdists = from_index();
        assert!(
            sdists.len() >= SDISTS_AT_LEAST || offline_is_wanted(),
            "{} source distributions on the package index; {OFFLINE}=1 runs the tests without them",
            sdists.len()
        );
        all.extend(sdists);
        all
    });
    ALL.clone()
}

/// The folder that `MAMBAPATCH_MIRRORS` names.
pub fn mirrors() -> Option<PathBuf> {
    std::env::var_os(MIRRORS).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Whether `MAMBAPATCH_OFFLINE_TESTS=1` says that the index is not to be asked.
pub fn offline_is_wanted() -> bool {
    is_set(OFFLINE)
}

/// Every release that the user's package index offers as a source distribution, oldest first, versions as the index
/// writes them (`2.2.4`). They are kept in the user's cache folder. Only the paths for which [`is_wanted`] holds are
/// read.
///
/// A release that cannot be fetched or unpacked is a panic that names it. Where no index is reached the list is empty,
/// and that is said aloud.
pub fn from_index() -> Vec<Release> {
    UPSTREAMS.iter().flat_map(of_index).collect()
}

fn of_index(upstream: &Upstream) -> Vec<Release> {
    let mut options = CheckoutOptions::of_process();
    options.source = SourceChoice::Sdist;
    options.offline = offline_is_wanted();
    let progress = &mut |said: Progress| match said {
        Progress::Note(note) => say(&format!("{}: {note}", upstream.name)),
        Progress::Detail(_) | Progress::Step(_) | Progress::Bytes { .. } => {}
    };
    let found = match Releases::open(&upstream.info(), &options, progress) {
        Ok(found) => found,
        Err(error) if is_out_of_reach(&error) => {
            say(&format!("NO SOURCE DISTRIBUTION of {} is tested: {error}", upstream.name));
            return Vec::new();
        }
        Err(error) => panic!("{} on the package index: {error}", upstream.name),
    };
    found.tags().iter().filter_map(|tag| sdist(upstream, &found, tag, progress)).collect()
}

fn sdist(
    upstream: &Upstream,
    found: &Releases,
    tag: &Tag,
    progress: &mut dyn FnMut(Progress),
) -> Option<Release> {
    let name = format!("{} {tag}", upstream.name);
    let target = match found.release(tag, progress) {
        Ok(target) => target,
        Err(error) if offline_is_wanted() && is_out_of_reach(&error) => {
            say(&format!("{name} is NOT TESTED: {error}"));
            return None;
        }
        Err(error) => panic!("{name}: {error}"),
    };
    let files =
        target.read(&|path| is_wanted(upstream, path)).unwrap_or_else(|error| panic!("{name}: {error}"));
    Some(Release { upstream: upstream.name.to_string(), version: tag.to_string(), files })
}

/// Whether the machine is offline: no index is known or reached, or none may be asked.
fn is_out_of_reach(error: &CheckoutError) -> bool {
    matches!(
        error,
        CheckoutError::Index(
            IndexError::NoIndex | IndexError::Offline { .. } | IndexError::Http(HttpError::Unreached { .. })
        )
    )
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
