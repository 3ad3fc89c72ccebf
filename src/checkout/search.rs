//! Finds the source of an upstream's state: a local mirror, the cached clone, git, a cached source distribution, the
//! index; in this order, unless `--source` names one.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::Progress;
use super::cache::sha256;
use super::error::{CheckoutError, UnknownRef};
use super::git::{self, ClonePlace, GitRepository, RefKind, RemoteError, Resolved};
use super::http::{self, Http, Request, without_credentials};
use super::index::{Index, IndexError, choose, known_releases};
use super::local::{self, Named, Sdist};
use super::opened::{Places, Target};
use super::options::{CheckoutOptions, SourceChoice, is_archive_address};
use super::target::Wanted;
use super::upstream::UpstreamInfo;
use crate::engine::tag::Tag;

/// A search for one state of one upstream.
pub(super) struct Search<'a> {
    pub upstream: &'a UpstreamInfo,
    pub wanted: &'a Wanted,
    pub options: &'a CheckoutOptions,
    pub progress: &'a mut dyn FnMut(Progress),
    /// The tags seen in sources that do not have the wanted one.
    pub seen: Vec<String>,
}

type Found = Result<Option<Target>, CheckoutError>;

impl Search<'_> {
    /// Finds it, or says why not.
    pub fn run(&mut self) -> Result<Target, CheckoutError> {
        self.search().map_err(|error| match self.wanted {
            Wanted::Ref(name) if is_unasked(&error) && self.options.current_dir.join(name).is_dir() => {
                CheckoutError::PerhapsAFolder { cause: Box::new(error), name: name.clone() }
            }
            _ => error,
        })
    }

    fn search(&mut self) -> Result<Target, CheckoutError> {
        let found = match &self.options.source {
            SourceChoice::Auto => self.anywhere()?,
            SourceChoice::Git => self.in_git()?,
            SourceChoice::Sdist => {
                self.in_cached_sdists()?.map_or_else(|| self.in_index(), |it| Ok(Some(it)))?
            }
            SourceChoice::Url(url) if is_archive_address(url) => return self.at_archive_address(url),
            SourceChoice::Url(url) => self.in_clone(url)?,
            SourceChoice::Path(path) => return self.at_path(path),
        };
        found.ok_or_else(|| self.unknown())
    }

    fn note(&mut self, text: String) {
        (self.progress)(Progress::Note(text));
    }

    fn anywhere(&mut self) -> Found {
        let mut failures = Vec::new();
        for source in [Self::in_mirror, Self::in_cached_or_new_clone, Self::in_cached_sdists, Self::in_index]
        {
            match source(self) {
                Ok(Some(target)) => {
                    failures
                        .iter()
                        .for_each(|error| self.tell(error, ", so the source distribution is used"));
                    return Ok(Some(target));
                }
                Ok(None) => {}
                Err(error) => failures.push(error),
            }
        }
        // "Unknown" is only true of what answered, and of what it does not have.
        let last = if self.seen.is_empty() || self.has_seen_it() { failures.pop() } else { None };
        failures.iter().for_each(|error| self.tell(error, ""));
        last.map_or(Ok(None), Err)
    }

    /// Whether a source that failed later on listed the wanted release.
    fn has_seen_it(&self) -> bool {
        let version =
            |tag: &str| tag.strip_prefix(&self.upstream.tag_prefix).unwrap_or(tag).parse::<Tag>().ok();
        match self.wanted {
            Wanted::Newest | Wanted::DefaultBranch => true,
            Wanted::Ref(text) => {
                let wanted = version(text);
                wanted.is_some() && self.seen.iter().any(|tag| version(tag) == wanted)
            }
        }
    }

    /// Tells of a source that failed while another one may have the target: in one line, git's own words beside it.
    pub fn tell(&mut self, error: &CheckoutError, consequence: &str) {
        let CheckoutError::Remote(remote) = error else { return self.note(error.to_string()) };
        self.note(format!("no git repository could be reached ({}){consequence}", remote.reason()));
        (self.progress)(Progress::Detail(error.to_string()));
    }

    fn in_git(&mut self) -> Found {
        if let Some(target) = self.in_mirror()? {
            return Ok(Some(target));
        }
        self.in_cached_or_new_clone()
    }

    /// The newest release in the repository that `--source` allows; none where no repository is to be had.
    pub fn newest_in_git(&mut self) -> Found {
        match &self.options.source {
            SourceChoice::Auto | SourceChoice::Git => self.in_git(),
            SourceChoice::Url(url) if !is_archive_address(url) => self.in_clone(url),
            SourceChoice::Path(path) => self.at_path(path).map(Some),
            SourceChoice::Sdist | SourceChoice::Url(_) => Ok(None),
        }
    }

    fn in_mirror(&mut self) -> Found {
        let Some(path) = git::mirror(self.upstream, &self.options.variables) else { return Ok(None) };
        let repository = GitRepository::open(&path, &self.upstream.tag_prefix)?;
        let how = format!("the local mirror {}", path.display());
        self.in_repository(repository, &how)
    }

    fn in_cached_or_new_clone(&mut self) -> Found {
        match &self.upstream.git_url {
            Some(url) => self.in_clone(url),
            None if self.options.source == SourceChoice::Git => {
                Err(CheckoutError::NoGitUrl { upstream: self.upstream.id.clone() })
            }
            None => Ok(None),
        }
    }

    fn in_clone(&mut self, url: &str) -> Found {
        let cache = self.options.cache();
        let folder = git::cached_clone(cache.root().ok_or(RemoteError::NoCache)?, url);
        let place = ClonePlace {
            url,
            folder: &folder,
            variables: &self.options.variables,
            connect: Duration::from_secs(if self.options.source == SourceChoice::Auto { 5 } else { 20 }),
        };
        if folder.join("HEAD").is_file() {
            self.renew(place)?;
            let how = format!("the cached clone {}", folder.display());
            return self.in_repository(GitRepository::open(&folder, &self.upstream.tag_prefix)?, &how);
        }
        if self.options.offline {
            if self.options.source == SourceChoice::Auto {
                return Ok(None);
            }
            return Err(CheckoutError::Offline { what: format!("a clone of {}", without_credentials(url)) });
        }
        (self.progress)(Progress::Step(format!("cloning {}", without_credentials(url))));
        git::clone_bare(place)?;
        let how = format!("a new clone of {}", without_credentials(url));
        self.in_repository(GitRepository::open(&folder, &self.upstream.tag_prefix)?, &how)
    }

    /// Fetches where the cached clone lacks the REF, or where the REF may have moved.
    fn renew(&mut self, place: ClonePlace<'_>) -> Result<(), CheckoutError> {
        let repository = GitRepository::open(place.folder, &self.upstream.tag_prefix)?;
        let fixed = match self.wanted {
            Wanted::Newest | Wanted::DefaultBranch => false,
            Wanted::Ref(text) => repository.resolve(text)?.is_some_and(|found| found.kind != RefKind::Branch),
        };
        if fixed || self.options.offline {
            return Ok(());
        }
        (self.progress)(Progress::Step(format!("fetching {}", without_credentials(place.url))));
        if let Err(error) = git::fetch(place) {
            self.note(format!("the cached clone may be old: {error}"));
        }
        Ok(())
    }

    fn in_repository(&mut self, repository: GitRepository, how: &str) -> Found {
        let found = find_in(&repository, self.wanted)?;
        let Some(found) = found else {
            self.seen.extend(repository.tags()?.into_iter().map(|tag| tag.name));
            if let Wanted::Ref(text) = self.wanted {
                self.note(format!("{how} has no `{text}`"));
            }
            return Ok(None);
        };
        let named =
            Named { commit: found.commit, reference: found.name, upstream: Some(self.upstream), tags: None };
        let target = local::of_commit(Rc::new(repository), named, self.places())?;
        self.note(format!("{} from {how}", target.label));
        Ok(Some(target))
    }

    fn wanted_tag(&self) -> Option<Option<Tag>> {
        match self.wanted {
            Wanted::Newest => Some(None),
            Wanted::DefaultBranch => None,
            Wanted::Ref(text) => {
                let version = text.strip_prefix(&self.upstream.tag_prefix).unwrap_or(text);
                Some(Some(version.parse().ok()?))
            }
        }
    }

    /// A release whose file the cache holds, without any network. The newest one is only known to the index.
    fn in_cached_sdists(&mut self) -> Found {
        let Some(Some(tag)) = self.wanted_tag() else { return Ok(None) };
        let Ok(index) = Index::open(self.options) else { return Ok(None) };
        let project = &self.upstream.distribution;
        let Some(files) = index.cached_releases(project) else { return Ok(None) };
        let Some(file) = files.iter().find(|file| file.tag == tag) else { return Ok(None) };
        let Some(bytes) = index.cached(file) else { return Ok(None) };
        self.sdist(Sdist {
            file_name: file.file_name.clone(),
            bytes,
            upstream: Some(self.upstream),
            tag: Some(tag),
        })
        .map(|mut target| {
            target.tags = files.into_iter().map(|file| file.tag).collect();
            self.note(format!("{} from the cached {}", target.label, origin_name(&target)));
            Some(target)
        })
    }

    fn in_index(&mut self) -> Found {
        let Some(tag) = self.wanted_tag() else {
            if self.options.source == SourceChoice::Sdist {
                self.note("only git knows branches and commits: --source git".into());
            }
            return Ok(None);
        };
        let index = Index::open(self.options)?;
        let project = &self.upstream.distribution;
        let files = index.releases(project, self.progress)?;
        self.seen.extend(files.iter().map(|file| format!("v{}", file.tag)));
        let file = match choose(&files, tag.as_ref(), project) {
            Err(IndexError::NoRelease { .. }) => return Ok(None),
            other => other?,
        };
        if file.yanked {
            self.note(format!("{} was withdrawn from the index", file.file_name));
        }
        let bytes = index.fetch(file, self.progress)?;
        let (file_name, tag) = (file.file_name.clone(), Some(file.tag.clone()));
        let mut target = self.sdist(Sdist { file_name, bytes, upstream: Some(self.upstream), tag })?;
        target.tags = files.into_iter().map(|file| file.tag).collect();
        let place = index.location().shown();
        self.note(format!("{} from {} of {place}", target.label, origin_name(&target)));
        Ok(Some(target))
    }

    fn sdist(&mut self, sdist: Sdist<'_>) -> Result<Target, CheckoutError> {
        local::of_archive(sdist, self.places())
    }

    /// `--source` with the address of an archive; `#sha256=` proves it.
    fn at_archive_address(&mut self, url: &str) -> Result<Target, CheckoutError> {
        let shown = without_credentials(url);
        if self.options.offline {
            return Err(CheckoutError::Offline { what: shown });
        }
        let (address, fragment) = url.split_once('#').unwrap_or((url, ""));
        let request =
            Request { url: address, accept: "*/*", limit: 1 << 30, patience: Duration::from_secs(600) };
        let bytes = Http::new(&self.options.variables)?.get(request, self.progress)?.bytes;
        let found = sha256(&bytes);
        match fragment.strip_prefix("sha256=") {
            Some(promised) if !promised.eq_ignore_ascii_case(&found) => {
                return Err(CheckoutError::WrongHash { url: shown, found });
            }
            Some(_) => {}
            None => self.note(format!("{shown} cannot be proved; its SHA-256 is {found}")),
        }
        let path = http::path_of(address);
        let file_name = path.rsplit('/').next().unwrap_or_default().to_string();
        self.sdist(Sdist { file_name, bytes, upstream: Some(self.upstream), tag: None })
    }

    /// `--source` with something on this machine: a repository, an archive, a folder.
    fn at_path(&mut self, path: &Path) -> Result<Target, CheckoutError> {
        let full = self.options.full_path(path);
        if let Ok(repository) = GitRepository::open(&full, &self.upstream.tag_prefix) {
            let how = path.display().to_string();
            return self.in_repository(repository, &how)?.ok_or_else(|| self.unknown());
        }
        let upstreams = std::slice::from_ref(self.upstream);
        let target = local::open(path, upstreams, self.options, self.progress)?;
        self.note(format!("{} as it lies in {}", target.label, path.display()));
        Ok(target)
    }

    fn places(&self) -> Places {
        let given = match &self.options.source {
            SourceChoice::Url(url) => Some(without_credentials(url)),
            _ => self.upstream.git_url.clone(),
        };
        Places::new(self.options, given.as_deref())
    }

    /// The error for a state that no source has.
    fn unknown(&self) -> CheckoutError {
        let upstream = self.upstream.id.clone();
        let reference = match self.wanted {
            Wanted::Newest => return CheckoutError::NoRelease { upstream },
            Wanted::DefaultBranch => return CheckoutError::NoBranch { upstream },
            Wanted::Ref(reference) => reference,
        };
        let seen = self.seen.iter().rev().map(String::as_str);
        let mut once = std::collections::BTreeSet::new();
        let nearest = super::target::nearest(reference, seen.filter(|tag| once.insert(*tag)), 5);
        let is_folder = self.options.current_dir.join(reference).is_dir();
        let reference = reference.clone();
        CheckoutError::UnknownRef(Box::new(UnknownRef {
            upstream,
            reference,
            nearest,
            is_folder,
            ..UnknownRef::default()
        }))
    }
}

/// Whether no source answered.
fn is_unasked(error: &CheckoutError) -> bool {
    use CheckoutError::{Http, Index, Offline, Remote};
    matches!(error, Remote(_) | Index(_) | Http(_) | Offline { .. })
}

fn origin_name(target: &Target) -> String {
    match &target.origin {
        super::opened::Origin::Sdist { file_name } => file_name.clone(),
        _ => String::new(),
    }
}

fn find_in(repository: &GitRepository, wanted: &Wanted) -> Result<Option<Resolved>, CheckoutError> {
    match wanted {
        Wanted::Ref(text) => Ok(repository.resolve(text)?),
        Wanted::DefaultBranch => Ok(repository.default_branch()?),
        Wanted::Newest => {
            let newest = repository.tags()?.into_iter().rev().find(|tag| !tag.tag.is_prerelease());
            Ok(newest.map(|tag| Resolved { commit: tag.commit, kind: RefKind::Tag, name: tag.name }))
        }
    }
}

/// Which other upstreams have a release, as far as this machine knows; with `ask` also what the index says.
pub(super) fn upstreams_with(
    reference: &str,
    others: &[&UpstreamInfo],
    options: &CheckoutOptions,
    ask: bool,
) -> Vec<String> {
    let mut index = if ask { Index::open(options).ok() } else { None };
    let mut found = Vec::new();
    for upstream in others {
        let version = reference.strip_prefix(&upstream.tag_prefix).unwrap_or(reference);
        let Ok(tag) = version.parse::<Tag>() else { continue };
        let mut known = known_here(upstream, options);
        let project = &upstream.distribution;
        if let (false, Some(asked)) = (known.contains(&tag), &index) {
            match asked.releases(project, &mut |_| {}) {
                Ok(files) => known.extend(files.into_iter().map(|file| file.tag)),
                // One failure of the network is enough.
                Err(IndexError::Http(_)) => index = None,
                Err(_) => {}
            }
        }
        if known.contains(&tag) {
            found.push(upstream.id.clone());
        }
    }
    found
}

/// The releases in the local mirror, the cached clone and the cached lists of indexes.
fn known_here(upstream: &UpstreamInfo, options: &CheckoutOptions) -> Vec<Tag> {
    let cache = options.cache();
    let clone = || Some(git::cached_clone(cache.root()?, upstream.git_url.as_deref()?));
    let places = [git::mirror(upstream, &options.variables), clone()];
    let repositories = places
        .into_iter()
        .flatten()
        .filter_map(|place| GitRepository::open(&place, &upstream.tag_prefix).ok());
    let tags = repositories.filter_map(|repository| repository.tags().ok()).flatten();
    let listed = known_releases(&cache, &upstream.distribution).into_iter().map(|file| file.tag);
    tags.map(|tag| tag.tag).chain(listed).collect()
}
