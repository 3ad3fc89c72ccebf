//! `verify`: imports an extension in the user's Python, and compares its kernels with their references.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::Answer;
use super::args::{Everywhere, VerifyArgs};
use super::diagnose::{block, cause_document};
use super::failure::{Failure, verify_hint};
use super::json as documents;
use super::planned::{infos, patch_sets};
use super::style::{BAD, DIM, GOOD, HINT, STRONG, WARN, columns, paint};
use super::terminal::Terminal;
use crate::checkout::Progress;
use crate::engine::patchset::{PatchSets, Project, Upstream};
use crate::kernels::diagnose::Cause;
use crate::kernels::inspect::places::{at_home, is_binary};
use crate::kernels::probe;
use crate::kernels::verify::wheel::{self, Unpacked};
use crate::kernels::verify::{self, Check, Smoke, Subject, Verified, VerifyError};

/// Verifies what was named, else every upstream that is installed.
pub fn verify(
    args: &VerifyArgs,
    everywhere: &Everywhere,
    terminal: &mut Terminal,
) -> Result<Answer, Failure> {
    let sets = patch_sets(everywhere)?;
    let python = verify::program(args.python.as_deref()).ok_or(VerifyError::NoPython)?;
    let asked = Asked { sets: &sets, python: &python };
    match &args.target {
        None => show(&asked.installed()?, terminal),
        Some(word) if word.ends_with(".whl") => {
            terminal.progress(Progress::Step(format!("unpacking {word}")));
            let unpacked = wheel::unpack(&at_home(word))?;
            show(&[asked.wheel(&unpacked)], terminal)
        }
        Some(word) => show(&[asked.named(word)?], terminal),
    }
}

/// What an upstream installs, as it is installed, with its smoke test.
pub fn subject(project: &Project, python: &Path) -> Subject {
    Subject { smoke: project.smoke.clone(), ..Subject::installed(python, &project.module) }
}

/// What became of one subject: the answer, a document, and a text.
pub fn verified(subject: &Subject, terminal: &mut Terminal) -> Result<(Answer, Value, String), Failure> {
    let step = &mut |text: &str| terminal.progress(Progress::Step(text.to_string()));
    let found = Found::of(subject, verify::verify(subject, step))?;
    Ok((found.answer(), found.document(), found.text(terminal.verbose)))
}

/// Verifies subjects and shows what became of each: `Yes` where all passed, `No` where numbers are off, `CouldNot` where
/// one cannot be imported.
pub fn show(subjects: &[Subject], terminal: &mut Terminal) -> Result<Answer, Failure> {
    let mut found = Vec::new();
    for subject in subjects {
        let step = &mut |text: &str| terminal.progress(Progress::Step(text.to_string()));
        found.push(Found::of(subject, verify::verify(subject, step))?);
    }
    if terminal.is_json() {
        let subjects: Vec<Value> = found.iter().map(Found::document).collect();
        terminal.answer(documents::text(&json!({ "subjects": subjects })).as_bytes())?;
    } else {
        let verbose = terminal.verbose;
        let texts: Vec<String> = found.iter().map(|found| found.text(verbose)).collect();
        terminal.show(&texts.join("\n"))?;
    }
    let answers = found.iter().map(Found::answer);
    Ok(answers.max_by_key(|answer| *answer as u8).unwrap_or(Answer::Yes))
}

/// What was asked, and by whom.
struct Asked<'a> {
    sets: &'a PatchSets,
    python: &'a Path,
}

impl Asked<'_> {
    fn projects(&self) -> impl Iterator<Item = (&Upstream, &Project)> {
        self.sets.upstreams.iter().filter_map(|upstream| Some((upstream, upstream.project.as_ref()?)))
    }

    /// The upstreams that are installed.
    fn installed(&self) -> Result<Vec<Subject>, Failure> {
        let modules: Vec<&str> = self.projects().map(|(_, project)| project.module.as_str()).collect();
        let found = verify::installed(self.python, &modules)?;
        let ours = self.projects().filter(|(_, project)| found.contains(&project.module));
        let subjects: Vec<Subject> = ours.map(|(_, project)| subject(project, self.python)).collect();
        if subjects.is_empty() {
            return Err(Failure::NothingInstalled {
                known: modules.iter().map(ToString::to_string).collect(),
                python: self.python.to_path_buf(),
                here: self.upstream_of(Path::new(".")).map(|project| project.module.clone()),
            });
        }
        Ok(subjects)
    }

    fn wheel(&self, wheel: &Unpacked) -> Subject {
        let known = self.project(&wheel.distribution);
        let subject = match known {
            Some(project) => subject(project, self.python),
            None => Subject::installed(self.python, &wheel.distribution),
        };
        Subject { first: wheel.roots().to_vec(), folder: Some(wheel.as_ref().to_path_buf()), ..subject }
    }

    fn named(&self, word: &str) -> Result<Subject, Failure> {
        let is_path = word.contains(['/', '\\']) || word.starts_with(['.', '~']) || is_binary(word);
        if !is_path {
            let known = self.project(word).map(|project| subject(project, self.python));
            return Ok(known.unwrap_or_else(|| Subject::installed(self.python, word)));
        }
        let path = std::path::absolute(at_home(word))?;
        match path.is_dir() {
            true => self.folder(&path, word),
            false => self.file(path, word),
        }
    }

    /// One compiled file.
    fn file(&self, path: PathBuf, word: &str) -> Result<Subject, Failure> {
        if !path.is_file() {
            return Err(crate::kernels::inspect::places::PlaceError::Missing(path).into());
        }
        if !is_binary(word) {
            return Err(Failure::NoExtension { place: word.to_string() });
        }
        let first = path.parent().map(Path::to_path_buf).into_iter().collect();
        Ok(Subject { first, folder: Some(path), alone: true, ..Subject::installed(self.python, word) })
    }

    /// The upstream whose tree it is: what was built there in place, else what is installed. Of another tree, what was built
    /// there.
    fn folder(&self, folder: &Path, word: &str) -> Result<Subject, Failure> {
        let project = self.upstream_of(folder);
        let built =
            has_binary(folder) || project.is_some_and(|project| has_binary(&folder.join(&project.module)));
        let place = |subject| Subject {
            first: vec![folder.to_path_buf()],
            folder: Some(folder.to_path_buf()),
            ..subject
        };
        match project {
            Some(project) if built => Ok(place(subject(project, self.python))),
            Some(project) => Ok(subject(project, self.python)),
            None if has_binary_below(folder) => {
                Ok(place(Subject { alone: true, ..Subject::installed(self.python, word) }))
            }
            None => Err(Failure::NothingCompiled { place: word.to_string() }),
        }
    }

    /// The upstream whose sources lie in a folder, or whose module was put there by `pip install --target`.
    fn upstream_of(&self, folder: &Path) -> Option<&Project> {
        let read = |path: &str| std::fs::read(folder.join(path)).ok();
        let infos = infos(self.sets);
        let recognised = infos.iter().find(|info| info.is_recognised(&read)).map(|info| info.id.as_str());
        let holds = |project: &Project| {
            folder.join(&project.module).join("__init__.py").is_file() && has_binary(folder)
        };
        self.projects()
            .find(|(upstream, project)| recognised == Some(upstream.id.as_str()) || holds(project))
            .map(|(_, project)| project)
    }

    /// The upstream of a name: its own, its distribution's or its module's.
    fn project(&self, name: &str) -> Option<&Project> {
        let same = |other: &str| other.replace('_', "-").eq_ignore_ascii_case(&name.replace('_', "-"));
        self.projects()
            .find(|(upstream, project)| {
                same(&upstream.id) || same(&project.distribution) || same(&project.module)
            })
            .map(|(_, project)| project)
    }
}

/// Whether a compiled file lies in a folder itself.
fn has_binary(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.path().is_file())
        .any(|entry| is_module(&entry.file_name().to_string_lossy()))
}

fn is_module(name: &str) -> bool {
    name.ends_with(".so") || name.ends_with(".pyd")
}

/// Whether one lies in a folder or below; not where compilers and packagers put theirs.
fn has_binary_below(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders = entries.filter(|entry| {
        let name = entry.file_name();
        entry.file_type().is_ok_and(|kind| kind.is_dir())
            && !["build", "dist", ".git", "node_modules"].iter().any(|other| name == *other)
    });
    has_binary(folder) || folders.any(|entry| has_binary_below(&entry.path()))
}

/// What became of a subject.
enum Found {
    /// It was imported.
    Imported {
        verified: Verified,
        /// What `diagnose` says of a smoke test that raised something.
        causes: Vec<Cause>,
    },
    /// It was not.
    Refused { name: String, error: VerifyError, causes: Vec<Cause> },
}

impl Found {
    fn of(subject: &Subject, result: Result<Verified, VerifyError>) -> Result<Self, Failure> {
        let causes = |log: &str| verify::causes(log, &probe::facts(Some(&subject.python)));
        match result {
            Ok(verified) => {
                let raised = match &verified.smoke {
                    Smoke::Ran { checks, log } if checks.iter().any(|check| check.raised.is_some()) => {
                        Some(log)
                    }
                    _ => None,
                };
                let causes = raised.map(|log| causes(log)).unwrap_or_default();
                Ok(Self::Imported { verified, causes })
            }
            Err(error @ VerifyError::NotInstalled { .. }) => {
                Ok(Self::Refused { name: subject.name.clone(), error, causes: Vec::new() })
            }
            Err(VerifyError::Import { what, is_file, error, log }) => {
                // The log also has what went wrong elsewhere; of a file, only its own error counts.
                let known = causes(&error);
                let causes = if known.is_empty() && !is_file { causes(&log) } else { known };
                let error = VerifyError::Import { what, is_file, error, log };
                Ok(Self::Refused { name: subject.name.clone(), error, causes })
            }
            Err(other) => Err(other.into()),
        }
    }

    fn answer(&self) -> Answer {
        match self {
            Self::Imported { verified, .. } if verified.passed() => Answer::Yes,
            Self::Imported { .. } => Answer::No,
            Self::Refused { .. } => Answer::CouldNot,
        }
    }

    fn text(&self, verbose: bool) -> String {
        match self {
            Self::Imported { verified, causes } => {
                let mut text = imported_text(verified, verbose);
                text.push_str(&causes_text(causes));
                text
            }
            Self::Refused { name, error, causes } => {
                let mut text = format!("{} {}\n", paint(BAD.bold(), "not imported:"), paint(STRONG, name));
                text.push_str(&format!("  {error}\n"));
                if causes.is_empty() {
                    text.push_str(&format!("{} {}\n", paint(HINT, "hint:"), verify_hint(error)));
                }
                text.push_str(&causes_text(causes));
                text
            }
        }
    }

    fn document(&self) -> Value {
        let causes = |causes: &[Cause]| causes.iter().map(cause_document).collect::<Vec<_>>();
        match self {
            Self::Imported { verified, causes: known } => {
                let mut document = imported_document(verified);
                document["causes"] = json!(causes(known));
                document
            }
            Self::Refused { name, error, causes: known } => json!({
                "name": name,
                "verdict": "not-imported",
                "error": error.to_string(),
                "log": match error {
                    VerifyError::Import { log, .. } => Some(log),
                    _ => None,
                },
                "causes": causes(known),
            }),
        }
    }
}

fn causes_text(causes: &[Cause]) -> String {
    causes.first().map(|cause| format!("\n{}", block(cause, "says"))).unwrap_or_default()
}

/// One word for it: `passed`, `wrong`, `not-run` (there is no GPU), `imported` (there is no smoke test).
fn verdict(verified: &Verified) -> &'static str {
    match &verified.smoke {
        Smoke::Ran { .. } if verified.passed() => "passed",
        Smoke::Ran { .. } => "wrong",
        Smoke::NoGpu(_) => "not-run",
        Smoke::None => "imported",
    }
}

/// How many compiled files are named.
const NAMED: usize = 6;

fn imported_text(verified: &Verified, verbose: bool) -> String {
    let mut text = format!("{}\n", paint(STRONG, &title(verified)));
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (name, file) in &verified.modules {
        let file = file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
        rows.push(vec![paint(DIM, "imported"), format!("{name} {}", paint(DIM, &file))]);
    }
    let named = if verbose { verified.files.len() } else { NAMED };
    for file in verified.files.iter().take(named) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        rows.push(vec![paint(DIM, "loaded"), name.into_owned()]);
    }
    if verified.files.len() > named {
        rows.push(vec![
            paint(DIM, "loaded"),
            format!("{} more compiled files", verified.files.len() - named),
        ]);
    }
    rows.extend(others(verified));
    text.push_str(&columns(&rows, "  "));
    match &verified.smoke {
        Smoke::Ran { checks, .. } => text.push_str(&checks_text(checks)),
        Smoke::NoGpu(why) => {
            text.push_str(&format!("{} no GPU ({why})\n", paint(WARN, "imported; not run:")))
        }
        Smoke::None => {
            let words = "imported; no smoke test is known for it";
            text.push_str(&format!("{}\n", paint(GOOD, words)));
        }
    }
    text
}

/// Libraries for other releases of CUDA, by the runtime that they lack.
fn others(verified: &Verified) -> Vec<Vec<String>> {
    let mut lacking: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (file, lacks) in &verified.others {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        lacking.entry(lacks).or_default().push(name);
    }
    let row = |(lacks, names): (&str, Vec<String>)| {
        let why = paint(DIM, &format!("for another CUDA: there is no {lacks}"));
        vec![paint(DIM, "not loaded"), format!("{} {why}", names.join(", "))]
    };
    lacking.into_iter().map(row).collect()
}

fn title(verified: &Verified) -> String {
    let release = verified.release.as_ref().map(|release| format!(" {release}")).unwrap_or_default();
    let torch = verified.torch.as_ref().map(|torch| format!("torch {torch}"));
    let parts = [Some(format!("Python {}", verified.python)), torch, verified.gpu.clone()];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{}{release}: {}", verified.name, parts.join(", "))
}

fn checks_text(checks: &[Check]) -> String {
    let head = ["", "check", "largest error", "tolerated"].map(|text| paint(DIM, text)).to_vec();
    let rows = checks.iter().map(|check| {
        let (style, sign) = if check.passed() { (GOOD, "+") } else { (BAD, "x") };
        let error = match (&check.raised, check.error) {
            (Some(raised), _) => raised.clone(),
            (None, Some(error)) => format!("{error:.1e}"),
            (None, None) => "not a number".to_string(),
        };
        vec![paint(style, sign), check.name.clone(), error, format!("{:.0e}", check.tolerance)]
    });
    let rows: Vec<Vec<String>> = [head].into_iter().chain(rows).collect();
    let failed = checks.iter().filter(|check| !check.passed()).count();
    let verdict = match failed {
        0 => paint(GOOD, &format!("verified: {} checks passed", checks.len())),
        _ => paint(BAD, &format!("wrong: {failed} of {} checks failed", checks.len())),
    };
    format!("{}{verdict}\n", columns(&rows, "  "))
}

fn imported_document(verified: &Verified) -> Value {
    let module = |(name, file): &(String, Option<PathBuf>)| json!({ "name": name, "file": file });
    let (why, checks) = match &verified.smoke {
        Smoke::None => (None, &[][..]),
        Smoke::NoGpu(why) => (Some(why), &[][..]),
        Smoke::Ran { checks, .. } => (None, checks.as_slice()),
    };
    json!({
        "name": verified.name,
        "verdict": verdict(verified),
        "release": verified.release,
        "python": verified.python,
        "torch": verified.torch,
        "gpu": verified.gpu,
        "modules": verified.modules.iter().map(module).collect::<Vec<_>>(),
        "files": verified.files,
        "other-toolkits": verified.others.iter().map(|(file, lacks)| json!({ "file": file, "lacks": lacks })).collect::<Vec<_>>(),
        "not-run": why,
        "checks": checks.iter().map(|check| json!({
            "check": check.name,
            "error": check.error,
            "tolerance": check.tolerance,
            "raised": check.raised,
            "passed": check.passed(),
        })).collect::<Vec<_>>(),
    })
}
