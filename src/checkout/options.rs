//! How sources are looked for: the flags and variables that reading and writing depend on.

use std::path::PathBuf;

use super::archive;
use super::cache::Cache;
use super::variables::Variables;

/// The value of `--source`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SourceChoice {
    /// What is nearest: a local mirror, the cached clone, git, a cached source distribution, the index.
    #[default]
    Auto,
    /// Git only.
    Git,
    /// Source distributions only.
    Sdist,
    /// A git repository or an archive at an address.
    Url(String),
    /// A repository, folder or archive on this machine.
    Path(PathBuf),
}

impl std::str::FromStr for SourceChoice {
    type Err = std::convert::Infallible;

    /// `auto`, `git`, `sdist`; an address (`…://…`, `git@host:…`); all else is a path.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "auto" => Self::Auto,
            "git" => Self::Git,
            "sdist" => Self::Sdist,
            _ if text.contains("://") && !text.starts_with("file://") => Self::Url(text.into()),
            _ if is_ssh_address(text) => Self::Url(text.into()),
            _ => Self::Path(text.strip_prefix("file://").unwrap_or(text).into()),
        })
    }
}

/// `git@host:owner/name`, ssh's own notation.
fn is_ssh_address(text: &str) -> bool {
    let host = text.split(':').next().unwrap_or_default();
    text.contains(':') && host.contains('@') && !host.contains(['/', '\\'])
}

/// Whether an address is that of an archive, not of a git repository.
pub(super) fn is_archive_address(url: &str) -> bool {
    archive::is_archive(url.split(['?', '#']).next().unwrap_or(url))
}

/// Everything that choosing a source depends on, besides the target.
#[derive(Debug, Clone)]
pub struct CheckoutOptions {
    /// Where sources come from.
    pub source: SourceChoice,
    /// The package index, where one was given.
    pub index: Option<String>,
    /// Whether the network may not be used.
    pub offline: bool,
    /// The upstream of a bare REF: `mamba-ssm`.
    pub default_upstream: String,
    /// The variables of the process.
    pub variables: Variables,
    /// The folder that relative paths start from.
    pub current_dir: PathBuf,
}

impl CheckoutOptions {
    /// No flags given; variables and folder of this process.
    pub fn of_process() -> Self {
        let current_dir = std::env::current_dir().unwrap_or_else(|_| ".".into());
        Self::new(Variables::of_process(), current_dir)
    }

    /// No flags given.
    pub fn new(variables: Variables, current_dir: PathBuf) -> Self {
        Self {
            source: SourceChoice::Auto,
            index: None,
            offline: false,
            default_upstream: "mamba-ssm".into(),
            variables,
            current_dir,
        }
    }

    /// The user's cache.
    pub fn cache(&self) -> Cache {
        Cache::new(self.variables.cache_folder())
    }

    /// A path as it was typed, with `~` and the current folder filled in.
    pub fn full_path(&self, typed: &std::path::Path) -> PathBuf {
        self.current_dir.join(self.variables.expand_home(typed)).components().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources() {
        let source = |text: &str| text.parse::<SourceChoice>().expect("never fails");
        assert_eq!(source("sdist"), SourceChoice::Sdist);
        assert_eq!(source("git@host.test:a/b"), SourceChoice::Url("git@host.test:a/b".into()));
        assert_eq!(source("https://host.test/a"), SourceChoice::Url("https://host.test/a".into()));
        assert_eq!(source("file:///a/b"), SourceChoice::Path("/a/b".into()));
        assert_eq!(source(r"C:\a"), SourceChoice::Path(r"C:\a".into()));
        assert!(is_archive_address("https://host.test/a-1.tar.gz#sha256=00"));
    }
}
