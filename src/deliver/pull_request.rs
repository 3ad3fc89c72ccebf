//! A series of patches for upstream: commits in the upstream's habit, mails that `git am` takes, and the texts beside
//! them. Nothing is said in them that was not measured.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::DeliverError;
use super::habit::Habit;
use super::mail::{self, Place};
use super::prose::{self, unwrapped, wrapped};
use crate::checkout::git::{CommitBranch, CommitPatch, CommitToMake, GitRepository, Identity};
use crate::checkout::temporary::Temporary;
use crate::signals::Held;

/// One patch as it is offered.
#[derive(Debug, Clone, Default)]
pub struct Offer {
    /// Its title, without the upstream's prefix.
    pub title: String,
    /// Why it exists.
    pub why: String,
    /// Issues, pull requests and documents.
    pub references: Vec<String>,
    /// What it does, one line an op.
    pub does: Vec<String>,
    /// What each toolkit compiles before and after; empty where that stays the same.
    pub effect: String,
    /// The files that it changes, whole.
    pub files: Vec<(String, Vec<u8>)>,
}

/// What the series stands on, and how it is made.
#[derive(Clone)]
pub struct Order<'a> {
    /// The repository that has the base.
    pub source: &'a GitRepository,
    /// The commit that upstream will merge into.
    pub base: &'a str,
    /// How the base is called: `main`.
    pub base_name: &'a str,
    /// What is patched: `mamba-ssm main (after v2.3.2.post1)`.
    pub label: &'a str,
    /// The branch that the commits make.
    pub branch: &'a str,
    /// The flags that give the same series again.
    pub parameters: &'a str,
    /// The patches.
    pub offers: &'a [Offer],
    /// What each toolkit compiles before and after all of them.
    pub effect: &'a str,
    /// What compiling and running a tree showed, by the id that git gives it; none where that was not done.
    pub built: &'a dyn Fn(&str) -> Option<String>,
    /// Whether each commit is signed off.
    pub signoff: bool,
}

/// A series that was made; its branch lives in a repository that goes with it.
#[derive(Debug)]
pub struct Series {
    /// The subject of the only commit, or of the first with the number of the others.
    pub title: String,
    /// The last commit.
    pub tip: String,
    /// Its files: mails, the joined diff, the texts.
    pub files: Vec<(String, Vec<u8>)>,
    /// The repository that has the branch.
    repository: tempfile::TempDir,
}

/// What became of the folder of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// Where it lies.
    pub path: PathBuf,
    /// Whether it was there already with this series.
    pub already: bool,
    /// Texts of it that a person has changed; they stay as they are.
    pub kept: Vec<String>,
}

/// The joined diff of a series.
pub const JOINED: &str = "series.diff";
/// The text of the pull request.
pub const TEXT: &str = "PULL_REQUEST.md";
const COVER: &str = "cover.md";

impl Order<'_> {
    /// Makes the commits in a repository of their own that borrows the source's objects; the source stays as it is.
    /// A series that lies in `folder` already lends its time, so that the same series has the same commits.
    pub fn make(&self, folder: &Path) -> Result<Series, DeliverError> {
        let who = self.source.identity().ok_or(DeliverError::NoIdentity)?;
        let place =
            tempfile::tempdir().map_err(|cause| DeliverError::Write { path: std::env::temp_dir(), cause })?;
        let repository = GitRepository::borrowing(place.path(), self.source, &who)?;
        let commits = self.commits(&who)?;
        let when = time_of(folder);
        let order =
            CommitBranch { base: self.base, branch: self.branch, commits: &commits, checkout: false, when };
        let made = repository.commit_branch(order)?;
        let patches =
            made.commits.iter().map(|commit| repository.patch(commit)).collect::<Result<Vec<_>, _>>()?;
        let (stat, diff) = repository.difference(self.base, &made.tip)?;
        let built = (self.built)(&repository.tree_id(&made.tip)?);
        let total = patches.len();
        let title = match patches.as_slice() {
            [only] => only.subject.clone(),
            [first, ..] => format!("{}, and {} more", first.subject, total - 1),
            [] => String::new(),
        };
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for (index, patch) in patches.iter().enumerate() {
            let place = Place { number: index + 1, total };
            files.push((mail::file_name(&patch.subject, place), mail::mail(patch, place, self.base)));
        }
        let names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
        files.push((JOINED.into(), diff));
        files.push((COVER.into(), self.cover(&title, &names, &stat).into_bytes()));
        files.push((TEXT.into(), self.text(&patches, built.as_deref()).into_bytes()));
        Ok(Series { title, tip: made.tip, files, repository: place })
    }

    fn commits(&self, who: &Identity) -> Result<Vec<CommitToMake>, DeliverError> {
        let one = |offer: &Offer| {
            let paths: Vec<String> = offer.files.iter().map(|(path, _)| path.clone()).collect();
            let habit = Habit::of(&self.source.subjects(self.base, &paths, 40)?);
            let mut message = format!("{}\n\n{}", habit.subject(&offer.title), offer.body());
            if self.signoff {
                message.push_str(&format!("\nSigned-off-by: {} <{}>\n", who.name, who.email));
            }
            Ok(CommitToMake { message, files: offer.files.clone() })
        };
        self.offers.iter().map(one).collect()
    }

    fn cover(&self, title: &str, mails: &[String], stat: &str) -> String {
        let short: String = self.base.chars().take(12).collect();
        let list: String = mails.iter().map(|name| format!("- `{name}`\n")).collect();
        let indented: String = stat.lines().map(|line| format!("    {line}\n")).collect();
        // git takes `[Build]` for a word of the mail, not of the subject, unless it is told otherwise.
        let flag = if title.starts_with('[') { "--keep-non-patch " } else { "" };
        format!(
            "# {title}\n\nFor {}, on `{}` ({short}):\n\n{list}\n{indented}\nEach is a mail: `git am {flag}*.patch` on the base. \
             `{JOINED}` is all of them as one diff, for\n`git apply` or `patch -p1`. `{TEXT}` is the text of the pull \
             request.\n\nMade by mambapatch {} with `{}`.\n",
            self.label,
            self.base_name,
            env!("CARGO_PKG_VERSION"),
            self.parameters,
        )
    }

    /// The text of the pull request. A paragraph is one line: where it is shown, each newline is one.
    fn text(&self, patches: &[CommitPatch], built: Option<&str>) -> String {
        let pairs = || patches.iter().zip(self.offers);
        let mut text = String::from("## What\n\n");
        for (patch, offer) in pairs() {
            let files: Vec<String> = offer.files.iter().map(|(path, _)| format!("`{path}`")).collect();
            text.push_str(&format!("- **{}** ({})\n", patch.subject, files.join(", ")));
        }
        text.push_str("\n## Why\n");
        for (patch, offer) in pairs() {
            let head = if patches.len() > 1 { format!("\n### {}\n", patch.subject) } else { String::new() };
            text.push_str(&format!("{head}\n{}", unwrapped(&offer.why)));
            if !offer.references.is_empty() {
                text.push_str(&format!("\nSee {}.\n", offer.references.join(", ")));
            }
        }
        text.push_str(&format!("\n## Evidence\n\nOn `{}` at {}:\n\n", self.base_name, self.base));
        for (patch, offer) in pairs() {
            text.push_str(&format!("- {}: {}\n", patch.subject, offer.does.join("; ")));
        }
        text + &self.evidence(built)
    }

    /// What was measured, and what was not.
    fn evidence(&self, built: Option<&str>) -> String {
        let same = self.offers.iter().all(|offer| offer.effect.is_empty());
        let how = if same { ", which stay the same" } else { ", before and after" };
        let effect = match self.effect {
            "" => String::new(),
            effect => format!("\n{EFFECT}{how}:\n\n```text\n{effect}```\n"),
        };
        let version = env!("CARGO_PKG_VERSION");
        let made = format!("Made by mambapatch {version} with `{}`.", self.parameters);
        let built = built.unwrap_or(NOT_TRIED);
        format!("\n{PROOF}\n{effect}\n{built}\n\n{made}\n")
    }
}

const EFFECT: &str = "The architectures that each CUDA toolkit is asked for, read from the source";

const PROOF: &str = "Checked on the sources: no changed file has more syntax errors than before; the edits taken back give the \
    old bytes; and looked at again, the result needs no further edit.";

const NOT_TRIED: &str = "Not done for this series: it was not compiled, and not run.";

impl Offer {
    /// The message of its commit below the subject.
    fn body(&self) -> String {
        let mut body = wrapped(&self.why);
        if !self.effect.is_empty() {
            body.push_str(&format!(
                "\n{}\n{}",
                wrapped(&format!("{EFFECT}, before and after:")),
                prose::indented(&self.effect)
            ));
        }
        if !self.references.is_empty() {
            body.push_str(&format!("\n{}", wrapped(&format!("References: {}", self.references.join(", ")))));
        }
        body
    }
}

/// The time of the series that lies in a folder.
fn time_of(folder: &Path) -> Option<(i64, i32)> {
    let names = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let mut mails: Vec<PathBuf> =
        names.filter(|path| path.extension().is_some_and(|ending| ending == "patch")).collect();
    mails.sort();
    mail::time_of(&fs::read(mails.first()?).ok()?)
}

impl Series {
    /// The repository that has the branch, as long as this lives.
    pub fn repository(&self) -> &Path {
        self.repository.path()
    }

    /// The mails, in order.
    pub fn mails(&self) -> Vec<&str> {
        let names = self.files.iter().map(|(name, _)| name.as_str());
        names.filter(|name| name.ends_with(".patch")).collect()
    }

    /// Writes its files beside their folder and renames it. A folder that holds the series already stays as it is,
    /// with the texts that a person has changed; one that holds another is refused.
    pub fn write(&self, folder: &Path) -> Result<Folder, DeliverError> {
        let failed = |cause| DeliverError::Write { path: folder.into(), cause };
        let path = folder.to_path_buf();
        if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
            return Ok(Folder { path, already: true, kept: self.compare(folder)? });
        }
        let parent =
            folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(failed)?;
        let _held = Held::signals();
        let temporary = Temporary::in_folder(parent).map_err(failed)?;
        let inside = temporary.path().join("series");
        fs::create_dir(&inside).map_err(failed)?;
        for (name, bytes) in &self.files {
            fs::write(inside.join(name), bytes).map_err(failed)?;
        }
        // An empty folder in its place is replaced on every system.
        let _ = fs::remove_dir(folder);
        fs::rename(&inside, folder).map_err(failed)?;
        Ok(Folder { path, already: false, kept: Vec::new() })
    }

    /// Compares the folder with the series; the texts that differ.
    fn compare(&self, folder: &Path) -> Result<Vec<String>, DeliverError> {
        let other = |what: String| DeliverError::OtherSeries { folder: folder.into(), what };
        let mut kept = Vec::new();
        for (name, bytes) in &self.files {
            match fs::read(folder.join(name)) {
                Ok(found) if found == *bytes => {}
                Ok(_) if name.ends_with(".md") => kept.push(name.clone()),
                Ok(_) => return Err(other(format!("another {name}"))),
                Err(_) => return Err(other(format!("something else; {name} is not in it"))),
            }
        }
        let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let mut names = names.map(|name| name.to_string_lossy().into_owned());
        let strange = names.find(|name| name.ends_with(".patch") && !self.mails().contains(&name.as_str()));
        strange.map_or(Ok(kept), |name| Err(other(format!("a patch that is not of this series, {name}"))))
    }
}
