//! All releases of one upstream, opened one after the other: its repository or its page of the index is looked up once.

use std::path::PathBuf;
use std::rc::Rc;

use super::Progress;
use super::error::CheckoutError;
use super::git::{GitRepository, GitTag};
use super::index::{Index, ReleaseFile, choose};
use super::local::{self, Named, Sdist};
use super::opened::{Places, Store, Target};
use super::options::{CheckoutOptions, SourceChoice};
use super::search::Search;
use super::target::Wanted;
use super::upstream::UpstreamInfo;
use crate::engine::tag::Tag;

/// The releases of an upstream, and the source they come from.
#[derive(Debug)]
pub struct Releases {
    upstream: UpstreamInfo,
    places: Places,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Git { repository: Rc<GitRepository>, tags: Vec<GitTag> },
    Index { index: Box<Index>, files: Vec<ReleaseFile> },
}

impl Releases {
    /// Finds the source as [`super::resolve`] does: the first repository that answers, else the index.
    pub fn open(
        upstream: &UpstreamInfo,
        options: &CheckoutOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, CheckoutError> {
        let git = match options.source {
            SourceChoice::Sdist => None,
            _ => Self::in_git(upstream, options, progress)?,
        };
        let source = match git {
            Some(source) => source,
            None => {
                let index = Box::new(Index::open(options)?);
                let files = index.releases(&upstream.distribution, progress)?;
                Source::Index { index, files }
            }
        };
        let places = Places::new(options, upstream.git_url.as_deref());
        Ok(Self { upstream: upstream.clone(), places, source })
    }

    fn in_git(
        upstream: &UpstreamInfo,
        options: &CheckoutOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Option<Source>, CheckoutError> {
        let mut search = Search { upstream, wanted: &Wanted::Newest, options, progress, seen: Vec::new() };
        let target = match search.newest_in_git() {
            Err(error) if options.source == SourceChoice::Auto => {
                search.tell(&error, ", so source distributions are used");
                return Ok(None);
            }
            other => other?,
        };
        let Some(Store::Commit { repository, .. }) = target.map(|target| target.store) else {
            return Ok(None);
        };
        let tags = repository.tags()?;
        Ok(Some(Source::Git { repository, tags }))
    }

    /// All releases, the oldest first.
    pub fn tags(&self) -> Vec<Tag> {
        match &self.source {
            Source::Git { tags, .. } => tags.iter().map(|tag| tag.tag.clone()).collect(),
            Source::Index { files, .. } => files.iter().map(|file| file.tag.clone()).collect(),
        }
    }

    /// The repository on this machine; none where the releases come from the index.
    pub fn repository(&self) -> Option<PathBuf> {
        match &self.source {
            Source::Git { repository, .. } => Some(repository.path()),
            Source::Index { .. } => None,
        }
    }

    /// One release.
    pub fn release(&self, tag: &Tag, progress: &mut dyn FnMut(Progress)) -> Result<Target, CheckoutError> {
        let places = self.places.clone();
        match &self.source {
            Source::Git { repository, tags } => {
                let found = tags.iter().find(|known| known.tag == *tag);
                let found =
                    found.ok_or_else(|| CheckoutError::NoRelease { upstream: self.upstream.id.clone() })?;
                let (commit, reference) = (found.commit.clone(), found.name.clone());
                let named = Named { commit, reference, upstream: Some(&self.upstream), tags: Some(tags) };
                local::of_commit(repository.clone(), named, places)
            }
            Source::Index { index, files } => {
                let file = choose(files, Some(tag), &self.upstream.distribution)?;
                let bytes = index.fetch(file, progress)?;
                let (file_name, tag) = (file.file_name.clone(), Some(tag.clone()));
                let sdist = Sdist { file_name, bytes, upstream: Some(&self.upstream), tag };
                let mut target = local::of_archive(sdist, places)?;
                target.tags = self.tags();
                Ok(target)
            }
        }
    }
}

/// The source distributions of an upstream on the user's index, the oldest first.
pub fn releases_on_index(
    upstream: &UpstreamInfo,
    options: &CheckoutOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Vec<ReleaseFile>, CheckoutError> {
    Ok(Index::open(options)?.releases(&upstream.distribution, progress)?)
}

/// One release of an upstream. For many of them, [`Releases`] looks its source up only once.
pub fn open_release(
    upstream: &UpstreamInfo,
    tag: &Tag,
    options: &CheckoutOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Target, CheckoutError> {
    let wanted = Wanted::Ref(format!("{}{tag}", upstream.tag_prefix));
    Search { upstream, wanted: &wanted, options, progress, seen: Vec::new() }.run()
}
