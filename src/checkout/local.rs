//! Opens what lies on this machine: a git checkout, a bare repository, a plain folder, an archive.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::Progress;
use super::archive;
use super::error::CheckoutError;
use super::folder::{self, Listing};
use super::git::{GitError, GitRepository, GitTag};
use super::index::sdist_tag;
use super::opened::{Origin, Places, Store, Target, label};
use super::options::CheckoutOptions;
use super::upstream::UpstreamInfo;
use crate::engine::tag::{SourceVersion, Tag};

/// Opens a path as it lies there.
pub(super) fn open(
    path: &Path,
    upstreams: &[UpstreamInfo],
    options: &CheckoutOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Target, CheckoutError> {
    let full = options.full_path(path);
    let places = Places::new(options, None);
    if full.is_file() {
        return open_archive(&full, upstreams, places);
    }
    if !full.is_dir() {
        return Err(CheckoutError::NoSuchPath { path: path.into() });
    }
    let read = |path: &str| folder::read_one(&full, path);
    let upstream = upstreams.iter().find(|upstream| upstream.is_recognised(&read));
    let tag_prefix = upstream.map_or("v", |upstream| &upstream.tag_prefix);
    if let Some((repository, below)) = GitRepository::of_checkout(&full, tag_prefix)? {
        match repository.head() {
            Ok(_) => return open_work_tree(Found { folder: full, repository, below }, upstreams, places),
            Err(GitError::NoCommit { .. }) => {
                progress(Progress::Note(
                    "the repository has no commit yet; files are changed in place".into(),
                ));
            }
            Err(error) => return Err(error.into()),
        }
    } else if let Ok(repository) = GitRepository::open(&full, tag_prefix) {
        let commit = repository.head()?;
        let reference = repository.head_branch().unwrap_or_else(|| commit[..12].to_string());
        let target =
            of_commit(Rc::new(repository), Named { commit, reference, upstream: None, tags: None }, places)?;
        return Ok(recognised(target, upstreams));
    }
    open_folder(full, upstreams, places)
}

/// A folder that is a git checkout.
struct Found {
    folder: PathBuf,
    repository: GitRepository,
    below: String,
}

fn open_work_tree(found: Found, upstreams: &[UpstreamInfo], places: Places) -> Result<Target, CheckoutError> {
    let Found { folder, repository, below } = found;
    let kind = |path: &String| folder.join(path).symlink_metadata().map(|found| found.file_type());
    let tracked = repository.tracked(&below)?;
    let links =
        tracked.iter().filter(|path| kind(path).is_ok_and(|kind| kind.is_symlink())).cloned().collect();
    let is_file = |path: &String| kind(path).is_ok_and(|kind| kind.is_file());
    let paths: Vec<String> = tracked.into_iter().filter(is_file).collect();
    let commit = repository.head()?;
    let mut tags = Vec::new();
    let mut version = SourceVersion::Unknown;
    // The tags of a repository that only contains the tree are not those of the upstream.
    if below.is_empty() {
        tags = repository.tags()?.into_iter().map(|tag| tag.tag).collect();
        version = repository.version_of(&commit)?;
    }
    if version == SourceVersion::Unknown {
        version = folder::version_of(&folder);
    }
    let unnamed = repository.unnamed_below(&below)?;
    let reference = repository.head_branch().unwrap_or_else(|| commit[..12].to_string());
    let origin = Origin::WorkTree { folder: folder.clone(), commit: commit.clone() };
    let store = Store::WorkTree { repository: Rc::new(repository), commit, folder, below, paths };
    let target = Target {
        upstream: None,
        version,
        label: String::new(),
        reference,
        origin,
        tags,
        unnamed,
        links,
        store,
        places,
    };
    Ok(recognised(target, upstreams))
}

fn open_folder(folder: PathBuf, upstreams: &[UpstreamInfo], places: Places) -> Result<Target, CheckoutError> {
    let Listing { paths, links, unnamed } = folder::listed(&folder)?;
    let version = folder::version_of(&folder);
    let reference = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let origin = Origin::Folder { folder: folder.clone() };
    let store = Store::Folder { folder, paths };
    let target = Target {
        upstream: None,
        version,
        label: String::new(),
        reference,
        origin,
        tags: Vec::new(),
        unnamed,
        links,
        store,
        places,
    };
    Ok(recognised(target, upstreams))
}

fn open_archive(path: &Path, upstreams: &[UpstreamInfo], places: Places) -> Result<Target, CheckoutError> {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !archive::is_archive(&file_name) {
        return Err(CheckoutError::NoSource { path: path.into() });
    }
    let bytes = fs::read(path).map_err(|cause| folder::FolderError::Read { path: path.into(), cause })?;
    let target = of_archive(Sdist { file_name, bytes, upstream: None, tag: None }, places)?;
    Ok(recognised(target, upstreams))
}

/// A source archive that was read.
pub(super) struct Sdist<'a> {
    pub file_name: String,
    pub bytes: Vec<u8>,
    pub upstream: Option<&'a UpstreamInfo>,
    /// The release, where something other than the archive states it.
    pub tag: Option<Tag>,
}

/// A target whose files lie in an archive in memory.
pub(super) fn of_archive(sdist: Sdist<'_>, places: Places) -> Result<Target, CheckoutError> {
    let archive = archive::unpack(&sdist.file_name, &sdist.bytes)?;
    let info = archive.files.iter().find(|file| file.path == "PKG-INFO");
    let stated = || info.and_then(|file| folder::pkg_info_version(&file.bytes));
    let named = || sdist_tag(&sdist.upstream?.distribution, &sdist.file_name);
    let tag = sdist.tag.clone().or_else(stated).or_else(named);
    let version = tag.map_or(SourceVersion::Unknown, SourceVersion::Release);
    let reference = match &version {
        SourceVersion::Release(tag) => format!("v{tag}"),
        _ => archive.top.clone(),
    };
    let upstream = sdist.upstream.map(|upstream| upstream.id.clone());
    Ok(Target {
        label: label(upstream.as_deref(), &version, &reference),
        upstream,
        version,
        reference,
        origin: Origin::Sdist { file_name: sdist.file_name.clone() },
        tags: Vec::new(),
        unnamed: Vec::new(),
        links: Vec::new(),
        store: Store::Archive { file_name: sdist.file_name, archive },
        places,
    })
}

/// A commit, and how it is called.
pub(super) struct Named<'a> {
    pub commit: String,
    pub reference: String,
    pub upstream: Option<&'a UpstreamInfo>,
    /// The tags of the repository, where they were listed before.
    pub tags: Option<&'a [GitTag]>,
}

/// A target whose files lie in a commit of a mirror or clone.
pub(super) fn of_commit(
    repository: Rc<GitRepository>,
    named: Named<'_>,
    places: Places,
) -> Result<Target, CheckoutError> {
    let tags = match named.tags {
        Some(tags) => tags.to_vec(),
        None => repository.tags()?,
    };
    // A tag that was asked for by name is that release, also where a newer one points at the same commit.
    let asked = tags.iter().find(|tag| tag.name == named.reference && tag.commit == named.commit);
    let version = match asked {
        Some(tag) => SourceVersion::Release(tag.tag.clone()),
        None => repository.version_of(&named.commit)?,
    };
    let upstream = named.upstream.map(|upstream| upstream.id.clone());
    let files = repository.files(&named.commit, "")?;
    let unnamed = repository.unnamed(&named.commit)?;
    Ok(Target {
        label: label(upstream.as_deref(), &version, &named.reference),
        upstream,
        version,
        reference: named.reference,
        origin: Origin::Commit { repository: repository.path(), commit: named.commit.clone() },
        tags: tags.into_iter().map(|tag| tag.tag).collect(),
        unnamed,
        links: Vec::new(),
        store: Store::Commit { repository, commit: named.commit, files },
        places,
    })
}

/// The target with the upstream that recognises it, and a label to suit.
fn recognised(mut target: Target, upstreams: &[UpstreamInfo]) -> Target {
    let read = |path: &str| target.file(path).ok().flatten();
    let found = upstreams.iter().find(|upstream| upstream.is_recognised(&read));
    let url = found.and_then(|upstream| upstream.git_url.clone());
    target.upstream = found.map(|upstream| upstream.id.clone());
    target.places.git_url = url;
    target.label = match &target.upstream {
        Some(id) => label(Some(id), &target.version, &target.reference),
        None => target.origin.name(),
    };
    target
}
