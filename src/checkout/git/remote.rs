//! Clones: local mirrors, the cache, and the system's `git` for everything that crosses the network.
//!
//! `git` runs with hooks off and without prompts; proxies and credentials are the user's own.
//!
//! `MAMBAPATCH_MIRRORS` names a folder of local mirrors. For `https://host/OWNER/REPO` and the distribution DIST these
//! places in it are tried in order: `OWNER+REPO/repo`, `OWNER+REPO`, `REPO.git`, `REPO`, `DIST.git`, `DIST`.

use std::fs;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::super::cache::sha256;
use super::super::http::without_credentials;
use super::super::temporary::Temporary;
use super::super::upstream::UpstreamInfo;
use super::super::variables::Variables;

/// Why a clone or fetch gave nothing.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The system has no `git`.
    #[error("`git` is not installed or cannot be run: {cause}")]
    NoGit {
        /// What the system said.
        cause: String,
    },
    /// The server gave no answer in time.
    #[error("{url} gave no answer within {seconds} s")]
    TooSlow {
        /// The address, without credentials.
        url: String,
        /// How long was waited.
        seconds: u64,
    },
    /// `git` failed.
    #[error("git {what} {url} failed: {message}")]
    Failed {
        /// The command.
        what: &'static str,
        /// The address, without credentials.
        url: String,
        /// What git said.
        message: String,
    },
    /// The branch is there with commits that a push would lose.
    #[error("{url} has a branch `{branch}` with other commits, and nothing was pushed")]
    Rejected {
        /// The address, without credentials.
        url: String,
        /// The branch.
        branch: String,
    },
    /// The cache cannot be written.
    #[error("cannot write {}: {cause}", path.display())]
    Cache {
        /// The place.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// No cache folder is known.
    #[error("no folder for clones: neither MAMBAPATCH_CACHE nor HOME is set")]
    NoCache,
}

impl RemoteError {
    /// Why, in a few words: what git said, without the address before it.
    pub fn reason(&self) -> String {
        match self {
            Self::NoGit { .. } => "git is not installed or cannot be run".into(),
            Self::TooSlow { seconds, .. } => format!("no answer within {seconds} s"),
            Self::Failed { message, .. } => {
                let message = message.strip_prefix("fatal: ").unwrap_or(message);
                message.rsplit("': ").next().unwrap_or(message).to_string()
            }
            Self::Rejected { .. } | Self::Cache { .. } | Self::NoCache => self.to_string(),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoGit { .. } => "install git, or use --source sdist".into(),
            Self::Failed { what: "push", url, .. } => format!("git ls-remote {url}"),
            Self::Rejected { .. } => "push under another name: --branch NAME".into(),
            Self::TooSlow { .. } | Self::Failed { .. } => "--source sdist".into(),
            Self::Cache { .. } | Self::NoCache => "MAMBAPATCH_CACHE=/some/folder".into(),
        })
    }
}

/// A clone to make or to renew.
#[derive(Debug, Clone, Copy)]
pub struct ClonePlace<'a> {
    /// The address.
    pub url: &'a str,
    /// The folder of the bare clone.
    pub folder: &'a Path,
    /// The variables of the process.
    pub variables: &'a Variables,
    /// How long the server may take for its first answer.
    pub connect: Duration,
}

/// The local mirror of an upstream below the folder of `MAMBAPATCH_MIRRORS`, if there is one.
pub fn mirror(upstream: &UpstreamInfo, variables: &Variables) -> Option<PathBuf> {
    let folder = variables.expand_home(&variables.path("MAMBAPATCH_MIRRORS")?);
    let mut names = Vec::new();
    if let Some((owner, repository)) = upstream.git_url.as_deref().and_then(owner_and_name) {
        names.extend([format!("{owner}+{repository}/repo"), format!("{owner}+{repository}")]);
        names.extend([format!("{repository}.git"), repository]);
    }
    names.extend([format!("{}.git", upstream.distribution), upstream.distribution.clone()]);
    let places = names.into_iter().map(|name| folder.join(name));
    places.into_iter().find(|place| place.join("HEAD").is_file() || place.join(".git").exists())
}

/// Where the clone of an address lies in the cache.
pub fn cached_clone(cache: &Path, url: &str) -> PathBuf {
    let name = owner_and_name(url).map_or_else(|| "repository".into(), |(_, name)| name);
    let safe =
        |letter: char| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '_' };
    let name: String = name.chars().map(safe).collect();
    cache.join("git").join(format!("{name}-{}.git", &sha256(without_credentials(url).as_bytes())[..12]))
}

/// The last two parts of an address: `https://host/a/b.git`, `git@host:a/b`.
pub fn owner_and_name(url: &str) -> Option<(String, String)> {
    let path = url.trim_end_matches('/');
    let path = path.strip_suffix(".git").unwrap_or(path);
    let mut parts = path.rsplit(['/', ':']);
    let (name, owner) = (parts.next()?, parts.next()?);
    (!name.is_empty() && !owner.is_empty()).then(|| (owner.into(), name.into()))
}

/// Clones into the cache: asks the server first, gives up if it does not answer in time; the clone is made beside its
/// place and renamed.
pub fn clone_bare(place: ClonePlace<'_>) -> Result<(), RemoteError> {
    ask(&place)?;
    let parent = place.folder.parent().ok_or(RemoteError::NoCache)?;
    let failed = |cause| RemoteError::Cache { path: parent.into(), cause };
    fs::create_dir_all(parent).map_err(failed)?;
    let temporary = Temporary::in_folder(parent).map_err(failed)?;
    let inside = temporary.path().join("repo");
    let mut command = git(place.variables);
    command.args(["clone", "--bare", "--quiet", "--no-local", "--template=", "--", place.url]).arg(&inside);
    run(command, Call { what: "clone", url: place.url, patience: WHOLE })?;
    match fs::rename(&inside, place.folder) {
        // Another process was quicker.
        Err(_) if place.folder.join("HEAD").is_file() => Ok(()),
        other => other.map_err(failed),
    }
}

/// Brings a cached clone up to date.
pub fn fetch(place: ClonePlace<'_>) -> Result<(), RemoteError> {
    ask(&place)?;
    let mut command = git(place.variables);
    command.arg("--git-dir").arg(place.folder);
    command.args(["fetch", "--quiet", "--force", "--no-write-fetch-head", "--", place.url]);
    command.args(["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]);
    run(command, Call { what: "fetch", url: place.url, patience: WHOLE })
}

/// A branch to push.
#[derive(Debug, Clone, Copy)]
pub struct Push<'a> {
    /// The repository that has it.
    pub folder: &'a Path,
    /// Where to: an address or a path.
    pub url: &'a str,
    /// Its name, without `refs/heads/`.
    pub branch: &'a str,
    /// The variables of the process.
    pub variables: &'a Variables,
    /// What a relative path is seen from.
    pub current_dir: &'a Path,
}

/// Pushes a branch, and nothing else. What is there is never overwritten.
pub fn push(push: Push<'_>) -> Result<(), RemoteError> {
    let mut command = git(push.variables);
    command.arg("--git-dir").arg(push.folder).current_dir(push.current_dir);
    command.args(["push", "--quiet", "--no-follow-tags", "--recurse-submodules=no", "--", push.url]);
    command.arg(format!("refs/heads/{0}:refs/heads/{0}", push.branch));
    let call = Call { what: "push", url: push.url, patience: WHOLE };
    let Err(text) = finish(command, call)? else { return Ok(()) };
    let url = without_credentials(push.url);
    let is_of_branch = |line: &&str| line.trim_start().starts_with("! [rejected]");
    if text.lines().any(|line| is_of_branch(&line)) {
        return Err(RemoteError::Rejected { url, branch: push.branch.into() });
    }
    let says = |line: &&str| ["! [", "fatal: ", "error: "].iter().any(|start| line.trim().starts_with(start));
    let message = text.lines().find(says).map_or_else(|| first_line(&text), |line| line.trim().to_string());
    Err(RemoteError::Failed { what: "push", url, message })
}

/// The longest that a clone or fetch may take.
const WHOLE: Duration = Duration::from_secs(1800);

/// Whether the server answers in time.
fn ask(place: &ClonePlace<'_>) -> Result<(), RemoteError> {
    let mut command = git(place.variables);
    command.args(["ls-remote", "--quiet", "--", place.url, "HEAD"]);
    run(command, Call { what: "ls-remote", url: place.url, patience: place.connect })
}

/// `git` without hooks, prompts, or a repository that the caller's variables name.
fn git(variables: &Variables) -> Command {
    let mut command = Command::new("git");
    let hooks = if cfg!(windows) { "core.hooksPath=NUL" } else { "core.hooksPath=/dev/null" };
    command.args(["-c", hooks, "-c", "http.lowSpeedLimit=500", "-c", "http.lowSpeedTime=30"]);
    command.args(["-c", "protocol.ext.allow=never", "-c", "gc.auto=0", "-c", "credential.interactive=false"]);
    command.env("GIT_TERMINAL_PROMPT", "0").env("GCM_INTERACTIVE", "never");
    command.env("GIT_ASKPASS", "").env("SSH_ASKPASS", "").env("LC_ALL", "C");
    let own_ssh = variables.get("GIT_SSH_COMMAND").or(variables.get("GIT_SSH")).is_some()
        || git2::Config::open_default().is_ok_and(|config| config.get_string("core.sshCommand").is_ok());
    if !own_ssh {
        command.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes -o ConnectTimeout=5");
    }
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// One run of `git`.
#[derive(Clone, Copy)]
struct Call<'a> {
    what: &'static str,
    url: &'a str,
    patience: Duration,
}

/// Runs it to its end.
fn run(command: Command, call: Call<'_>) -> Result<(), RemoteError> {
    finish(command, call)?.map_err(|text| RemoteError::Failed {
        what: call.what,
        url: without_credentials(call.url),
        message: first_line(&text),
    })
}

fn first_line(text: &str) -> String {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or("no message").to_string()
}

/// Runs it to its end, or ends it when its time is over; what it said where it fails. Output goes to a file: nobody
/// waits for a pipe that a grandchild keeps open.
fn finish(mut command: Command, call: Call<'_>) -> Result<Result<(), String>, RemoteError> {
    let broken = |cause: std::io::Error| RemoteError::NoGit { cause: cause.to_string() };
    let mut messages = tempfile::tempfile().map_err(broken)?;
    command.stdout(Stdio::null()).stderr(messages.try_clone().map_err(broken)?);
    let mut child = command.spawn().map_err(broken)?;
    let end = Instant::now() + call.patience;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(broken)? {
            break status;
        }
        if Instant::now() >= end {
            let _ = child.kill();
            let _ = child.wait();
            let seconds = call.patience.as_secs();
            return Err(RemoteError::TooSlow { url: without_credentials(call.url), seconds });
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    if status.success() {
        return Ok(Ok(()));
    }
    let mut text = Vec::new();
    let _ = messages.rewind().and_then(|()| messages.read_to_end(&mut text));
    Ok(Err(without_credentials(&String::from_utf8_lossy(&text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_and_repository() {
        let pair = |url| owner_and_name(url).map(|(owner, name)| format!("{owner} {name}"));
        assert_eq!(pair("https://host.test/state-spaces/mamba").as_deref(), Some("state-spaces mamba"));
        assert_eq!(pair("git@host.test:a/b.git").as_deref(), Some("a b"));
        assert_eq!(pair("mamba"), None);
    }

    #[test]
    fn a_reason_is_short() {
        let reason = |message: &str| {
            RemoteError::Failed { what: "ls-remote", url: "u".into(), message: message.into() }.reason()
        };
        let long = "fatal: unable to access 'https://host.test/a/b/': Could not resolve host: host.test";
        assert_eq!(reason(long), "Could not resolve host: host.test");
        assert_eq!(reason("fatal: transport 'https' not allowed"), "transport 'https' not allowed");
    }

    #[test]
    fn clones_of_two_addresses_lie_apart() {
        let place = |url| cached_clone(Path::new("/c"), url);
        assert_ne!(place("https://host.test/a/b"), place("https://other.test/a/b"));
        assert_eq!(place("https://me:pw@host.test/a/b"), place("https://host.test/a/b"));
    }
}
