//! The package index: which releases have a source distribution, and their bytes.

mod location;
mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use location::{IndexLocation, IndexPlace};
pub use page::{ReleaseFile, normalised, sdist_tag};

use super::Progress;
use super::archive;
use super::cache::{Cache, sha256};
use super::http::{Http, HttpError, Request};
use super::options::CheckoutOptions;
use super::target::nearest;
use crate::engine::tag::Tag;

const PAGE_TYPES: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";
const PAGE_LIMIT: u64 = 64 << 20;
const FILE_LIMIT: u64 = 1 << 30;

/// Why the index gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// Nothing names an index.
    #[error("no package index is configured, and no pip is installed that has one built in")]
    NoIndex,
    /// The server failed.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The index does not know the project.
    #[error("{index} has no project `{project}`")]
    NoProject {
        /// The index, without credentials.
        index: String,
        /// The project.
        project: String,
    },
    /// The page cannot be read.
    #[error("{url} is no page of a package index")]
    BadPage {
        /// Its address.
        url: String,
    },
    /// The project has no source distribution of this release.
    #[error("{project} has no source distribution of {}", wanted.as_deref().unwrap_or("any release"))]
    NoRelease {
        /// The project.
        project: String,
        /// The release, if one was named.
        wanted: Option<String>,
        /// Releases that look like it.
        nearest: Vec<String>,
    },
    /// The bytes are not those that the index promises.
    #[error("{file} is not what the index promises: SHA-256 {found} instead of {promised}; nothing was kept")]
    WrongHash {
        /// The file's name.
        file: String,
        /// What the index states.
        promised: String,
        /// What came.
        found: String,
    },
    /// A file of a folder index cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Not in the cache, and the network may not be used.
    #[error("{what} is not in the cache, and --offline forbids to fetch it")]
    Offline {
        /// What was wanted.
        what: String,
    },
}

impl IndexError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoIndex => Some("--index URL".into()),
            Self::Http(error) => error.hint(),
            Self::NoProject { .. } | Self::BadPage { .. } => Some("name another index: --index URL".into()),
            Self::NoRelease { nearest, .. } if !nearest.is_empty() => {
                Some(format!("there are {}", nearest.join(", ")))
            }
            Self::NoRelease { .. } => Some("use the git repository: --source git".into()),
            Self::WrongHash { .. } => {
                Some("try again; if it stays so, do not trust this index: --index URL".into())
            }
            Self::Read { .. } => Some("name another index: --index URL".into()),
            Self::Offline { .. } => Some("run it once without --offline".into()),
        }
    }
}

/// The user's package index.
#[derive(Debug)]
pub struct Index {
    location: IndexLocation,
    http: Http,
    cache: Cache,
    offline: bool,
}

impl Index {
    /// The index that the options and the user's configuration name.
    pub fn open(options: &CheckoutOptions) -> Result<Self, IndexError> {
        let location = IndexLocation::find(options.index.as_deref(), &options.variables);
        Ok(Self {
            location: location.ok_or(IndexError::NoIndex)?,
            http: Http::new(&options.variables)?,
            cache: options.cache(),
            offline: options.offline,
        })
    }

    /// Where the index lies.
    pub fn location(&self) -> &IndexLocation {
        &self.location
    }

    /// All source distributions of a project, the oldest release first; one file a release.
    ///
    /// Where the network fails or may not be used, the list of last time is taken, and a note says so.
    pub fn releases(
        &self,
        project: &str,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<ReleaseFile>, IndexError> {
        let files = match &self.location.place {
            IndexPlace::Folder(folder) => folder_files(folder, project)?,
            IndexPlace::Http { url, .. } => self.page_files(url, project, progress)?,
        };
        Ok(one_a_release(files))
    }

    /// The list of last time, without any network.
    pub fn cached_releases(&self, project: &str) -> Option<Vec<ReleaseFile>> {
        let bytes = self.cache.get(&self.list_name(project))?;
        page::from_json(project, &bytes, "").map(one_a_release)
    }

    /// The bytes of one source distribution, from the cache or the index, proved by its SHA-256.
    pub fn fetch(
        &self,
        file: &ReleaseFile,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<u8>, IndexError> {
        if let Some(path) = file.url.strip_prefix("file://") {
            let path = PathBuf::from(page::percent_decoded(path));
            let bytes = fs::read(&path).map_err(|cause| IndexError::Read { path, cause })?;
            return proved(file, bytes);
        }
        let name = cache_name(file);
        if let Some(bytes) = self.cached(file) {
            return Ok(bytes);
        }
        let broken = self.cache.holds(&name);
        if self.offline {
            let what = if broken { format!("an intact {}", file.file_name) } else { file.file_name.clone() };
            return Err(IndexError::Offline { what });
        }
        if broken {
            let note =
                format!("{} in the cache is not what was kept there; fetching it again", file.file_name);
            progress(Progress::Note(note));
        }
        let bytes = proved(file, self.download(file, progress)?)?;
        if let Err(error) = self.cache.put(&name, &bytes) {
            progress(Progress::Note(format!("{} is not kept in the cache: {error}", file.file_name)));
        }
        Ok(bytes)
    }

    /// The bytes of one source distribution if the cache holds them intact.
    pub fn cached(&self, file: &ReleaseFile) -> Option<Vec<u8>> {
        let bytes = self.cache.get(&cache_name(file))?;
        proved(file, bytes).ok()
    }

    fn download(
        &self,
        file: &ReleaseFile,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<u8>, IndexError> {
        progress(Progress::Step(format!("fetching {}", file.file_name)));
        if file.sha256.is_none() {
            let note = format!("the index states no SHA-256 of {}; it cannot be proved", file.file_name);
            progress(Progress::Note(note));
        }
        let url = self.with_credentials(&file.url);
        let patience = Duration::from_secs(600);
        let request = Request { url: &url, accept: "*/*", limit: FILE_LIMIT, patience };
        Ok(self.http.get(request, progress)?.bytes)
    }

    fn page_files(
        &self,
        url: &str,
        project: &str,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Vec<ReleaseFile>, IndexError> {
        let from_cache = |error: IndexError, progress: &mut dyn FnMut(Progress)| {
            let files = self.cached_releases(project).ok_or(error)?;
            progress(Progress::Note(format!("the list of releases of {project} is that of last time")));
            Ok(files)
        };
        if self.offline {
            let what = format!("the list of releases of {project}");
            return self.cached_releases(project).ok_or(IndexError::Offline { what });
        }
        match self.fetch_page(url, project) {
            Ok(files) => {
                let _ = self.cache.put(&self.list_name(project), &page::to_json(&files));
                Ok(files)
            }
            Err(error @ IndexError::Http(HttpError::Unreached { .. })) => from_cache(error, progress),
            Err(error) => Err(error),
        }
    }

    fn fetch_page(&self, url: &str, project: &str) -> Result<Vec<ReleaseFile>, IndexError> {
        let address = self.with_credentials(&format!("{url}{}/", normalised(project)));
        let patience = Duration::from_secs(60);
        let request = Request { url: &address, accept: PAGE_TYPES, limit: PAGE_LIMIT, patience };
        let answer = self.http.get(request, &mut |_| {}).map_err(|error| match error {
            HttpError::Status { status: 404, .. } => {
                IndexError::NoProject { index: self.location.shown(), project: project.into() }
            }
            other => other.into(),
        })?;
        if answer.media_type.ends_with("json") {
            let files = page::from_json(project, &answer.bytes, &answer.url);
            return files.ok_or(IndexError::BadPage { url: answer.url });
        }
        if answer.media_type.ends_with("html") {
            return Ok(page::from_html(project, &answer.bytes, &answer.url));
        }
        Err(IndexError::BadPage { url: answer.url })
    }

    /// The address with the index's credentials, if it lies on the index's own server.
    fn with_credentials(&self, url: &str) -> String {
        let IndexPlace::Http { url: index, credentials: Some(credentials) } = &self.location.place else {
            return url.to_string();
        };
        let server = |url: &str| url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        if server(url) != server(index) {
            return url.to_string();
        }
        url.replacen("://", &format!("://{credentials}@"), 1)
    }

    fn list_name(&self, project: &str) -> String {
        let key = sha256(self.location.shown().as_bytes());
        format!("index/{}/{}.json", &key[..16], normalised(project))
    }
}

/// The releases of a project in any list that the cache holds, whichever index it came from.
pub fn known_releases(cache: &Cache, project: &str) -> Vec<ReleaseFile> {
    let name = format!("{}.json", normalised(project));
    let folders = cache.root().and_then(|root| fs::read_dir(root.join("index")).ok());
    let lists = folders.into_iter().flatten().filter_map(|folder| {
        let key = folder.ok()?.file_name().into_string().ok()?;
        page::from_json(project, &cache.get(&format!("index/{key}/{name}"))?, "")
    });
    one_a_release(lists.flatten().collect())
}

/// The file of one release, or of the newest: no pre-release, not withdrawn.
pub fn choose<'a>(
    files: &'a [ReleaseFile],
    wanted: Option<&Tag>,
    project: &str,
) -> Result<&'a ReleaseFile, IndexError> {
    let found = match wanted {
        Some(tag) => files.iter().find(|file| file.tag == *tag),
        None => files.iter().rev().find(|file| !file.yanked && !file.tag.is_prerelease()),
    };
    found.ok_or_else(|| {
        let wanted = wanted.map(ToString::to_string);
        let names: Vec<String> = files.iter().rev().map(|file| file.tag.to_string()).collect();
        let near = wanted.as_ref().map(|wanted| nearest(wanted, names.iter().map(String::as_str), 4));
        IndexError::NoRelease { project: project.into(), wanted, nearest: near.unwrap_or_default() }
    })
}

fn proved(file: &ReleaseFile, bytes: Vec<u8>) -> Result<Vec<u8>, IndexError> {
    let Some(promised) = &file.sha256 else { return Ok(bytes) };
    let found = sha256(&bytes);
    if found == *promised {
        return Ok(bytes);
    }
    Err(IndexError::WrongHash { file: file.file_name.clone(), promised: promised.clone(), found })
}

/// The place in the cache: the file's name, and its hash where two indexes differ.
fn cache_name(file: &ReleaseFile) -> String {
    let key = file.sha256.clone().unwrap_or_else(|| sha256(file.url.as_bytes()));
    let key = key.get(..16).unwrap_or(&key);
    let safe =
        |letter: char| if letter.is_ascii_alphanumeric() || ".-_+!".contains(letter) { letter } else { '_' };
    let name: String = file.file_name.chars().map(safe).collect();
    let key: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("sdist/{key}/{name}")
}

/// Ordered by release; of two files of one release `.tar.gz` stays.
fn one_a_release(mut files: Vec<ReleaseFile>) -> Vec<ReleaseFile> {
    files.sort_by(|left, right| {
        let zip = |file: &ReleaseFile| file.file_name.to_ascii_lowercase().ends_with(".zip");
        left.tag.cmp(&right.tag).then(zip(left).cmp(&zip(right)))
    });
    files.dedup_by(|later, earlier| later.tag == earlier.tag);
    files
}

/// The files of a folder index: a project's folder with an `index.html` or archives, or archives in the folder itself.
fn folder_files(folder: &Path, project: &str) -> Result<Vec<ReleaseFile>, IndexError> {
    let failed = |path: &Path, cause| IndexError::Read { path: path.into(), cause };
    let names = |path: &Path| -> Result<Vec<String>, IndexError> {
        let entries = fs::read_dir(path).map_err(|cause| failed(path, cause))?;
        let name = |entry: std::io::Result<fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
        Ok(entries.filter_map(name).collect())
    };
    let folder = fs::canonicalize(folder).map_err(|cause| failed(folder, cause))?;
    let all = names(&folder)?;
    let own = all.iter().find(|name| normalised(name) == normalised(project) && folder.join(name).is_dir());
    let folder = own.map_or_else(|| folder.clone(), |name| folder.join(name));
    let base = file_url(&folder);
    if let Ok(html) = fs::read(folder.join("index.html")) {
        return Ok(page::from_html(project, &html, &format!("{base}/")));
    }
    let file = |file_name: String| {
        let url = format!("{base}/{}", encoded(&file_name));
        let tag = sdist_tag(project, &file_name).filter(|_| archive::is_archive(&file_name))?;
        Some(ReleaseFile { file_name, url, tag, sha256: None, yanked: false })
    };
    let files: Vec<ReleaseFile> = names(&folder)?.into_iter().filter_map(file).collect();
    if files.is_empty() && own.is_none() {
        return Err(IndexError::NoProject { index: folder.display().to_string(), project: project.into() });
    }
    Ok(files)
}

fn file_url(path: &Path) -> String {
    format!("file://{}", encoded(&path.display().to_string()))
}

fn encoded(text: &str) -> String {
    ["%", "?", "#", " "]
        .iter()
        .fold(text.to_string(), |text, sign| text.replace(sign, &format!("%{:02X}", sign.as_bytes()[0])))
}
