//! Everything that stops a command, with what to type next.

use std::path::PathBuf;

use super::apply::written;
use super::request::UnknownArch;
use crate::checkout::CheckoutError;
use crate::checkout::target::{TargetError, nearest};
use crate::deliver::DeliverError;
use crate::engine::arch::Arch;
use crate::engine::ops::{OpError, Site};
use crate::engine::patchset::bind::BindError;
use crate::engine::patchset::load::LoadError;
use crate::engine::plan::PlanError;
use crate::engine::plan::prove::ProveError;
use crate::engine::toolkit::Toolkit;
use crate::kernels::build::BuildError;
use crate::kernels::inspect::InspectError;
use crate::kernels::inspect::places::PlaceError;
use crate::kernels::verify::VerifyError;

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The target was not found, read or written.
    #[error(transparent)]
    Checkout(#[from] CheckoutError),
    /// Something could not be delivered.
    #[error(transparent)]
    Deliver(#[from] DeliverError),
    /// A series for upstream without the upstream's repository.
    #[error("{label} lies in no git repository, and a series of commits needs one to stand on")]
    NoRepository {
        /// What was found.
        label: String,
    },
    /// A remote that is not there.
    #[error("{} has no remote `{name}`", repository.display())]
    NoRemote {
        /// What was typed.
        name: String,
        /// The repository.
        repository: PathBuf,
    },
    /// A folder was given where an upstream is wanted.
    #[error("{typed} is a path, and a series stands on a state of an upstream")]
    PathForUpstream {
        /// What was typed.
        typed: String,
    },
    /// A patch set cannot be used.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A folder of patch sets cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    PatchSets {
        /// Which.
        path: PathBuf,
        /// What the system said.
        cause: String,
    },
    /// The request cannot be met.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The target cannot be planned.
    #[error("{}", .0.error)]
    Plan(Box<Unplanned>),
    /// The plan does not hold what it promises.
    #[error(transparent)]
    Prove(#[from] ProveError),
    /// A word names no architecture.
    #[error("{}", unknown_arch(.0))]
    UnknownArch(UnknownArch),
    /// A toolkit that no release of the upstream takes.
    #[error("{upstream} refuses CUDA {cuda}: it needs {floor} or newer")]
    BelowFloor {
        /// The upstream.
        upstream: String,
        /// What was given.
        cuda: Toolkit,
        /// The oldest that it takes.
        floor: Toolkit,
    },
    /// A file that is no source that anyone wrote.
    #[error("{path} has {} MB and is not parsed: no source is that large", bytes / 1_000_000)]
    TooLarge {
        /// Which.
        path: String,
        /// Its size.
        bytes: usize,
    },
    /// `native` was asked for and no GPU is there.
    #[error("no NVIDIA GPU was found on this host")]
    NoGpu {
        /// By which option.
        option: &'static str,
    },
    /// `--host` found nothing.
    #[error("this host has no GPU, no toolkit and no PyTorch that could be asked")]
    EmptyHost,
    /// A tree that no patch set knows.
    #[error("{place} is not recognised as the source of an upstream")]
    NotRecognised {
        /// The folder or archive.
        place: String,
        /// Each upstream, and what would tell it.
        known: Vec<String>,
    },
    /// Releases of a set that knows none.
    #[error("{set} is for trees of no known upstream, and knows no releases")]
    NoReleases {
        /// The set.
        set: String,
    },
    /// A name that no upstream has.
    #[error("there is no upstream `{name}`")]
    UnknownUpstream {
        /// What was typed.
        name: String,
        /// The upstreams that are known.
        known: Vec<String>,
    },
    /// A name that no patch and no op has.
    #[error("there is no patch and no op `{id}`")]
    UnknownId {
        /// What was typed.
        id: String,
        /// Names that come near.
        nearest: Vec<String>,
    },
    /// `--python` without anything that asks it.
    #[error("--python has no effect without --host")]
    PythonWithoutHost,
    /// A tree without anything to compile.
    #[error("{label} carries no kernels (.cu), so it cannot be compiled")]
    NoKernels {
        /// What was found.
        label: String,
    },
    /// Nobody can be asked.
    #[error("nothing was compiled: there is no terminal to ask on")]
    NobodyToAsk,
    /// Nothing was built.
    #[error("{error}")]
    Build {
        /// Why.
        error: Box<BuildError>,
        /// What the log tells.
        causes: Vec<String>,
    },
    /// What is to be inspected is not there.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A file that cannot be inspected.
    #[error("cannot inspect {place}: {cause}")]
    Inspect {
        /// Which.
        place: String,
        /// Why.
        cause: InspectError,
    },
    /// Something is missing that verifying needs.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// No upstream that could be verified.
    #[error("none of {} is installed for {}", known.join(", "), python.display())]
    NothingInstalled {
        /// The modules of the upstreams.
        known: Vec<String>,
        /// The program that was asked.
        python: PathBuf,
        /// The upstream of the current folder.
        here: Option<String>,
    },
    /// A folder of no known upstream, without compiled files.
    #[error("{place} is the tree of no known upstream, and holds no compiled file")]
    NothingCompiled {
        /// The folder.
        place: String,
    },
    /// A file that is no extension.
    #[error("{place} is no compiled extension and no wheel")]
    NoExtension {
        /// The file.
        place: String,
    },
    /// A log or a file of facts that cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        cause: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// Standard input is a terminal.
    #[error("no log was named")]
    NoLog,
    /// A log without anything in it.
    #[error("{} is empty", if path.as_os_str() == "-" { "standard input".into() } else { path.display().to_string() })]
    EmptyLog {
        /// Which.
        path: PathBuf,
    },
    /// The answer could not be written.
    #[error("cannot write the answer: {0}")]
    Output(#[from] std::io::Error),
}

/// A target that cannot be planned, and what its patch set was tested on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unplanned {
    /// Why.
    pub error: PlanError,
    /// The patch set.
    pub set: String,
    /// The newest release that it was tested on; none where it knows no releases.
    pub through: Option<String>,
    /// What the target is.
    pub label: String,
    /// An architecture that all given toolkits take.
    pub stays: Option<Arch>,
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Self::Build { error: Box::new(error), causes: Vec::new() }
    }
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Self {
        Self::Checkout(error.into())
    }
}

/// A failure as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The fact.
    pub error: String,
    /// The place that it speaks of.
    pub site: Option<Site>,
    /// What is known besides.
    pub notes: Vec<String>,
    /// What to type next.
    pub hint: Option<String>,
}

impl Failure {
    /// The fact, the place, what is known besides and what to type next.
    pub fn report(&self) -> Report {
        match self {
            Failure::Bind(error) => bind_report(error),
            Failure::Plan(unplanned) => plan_report(unplanned),
            Failure::UnknownArch(unknown) => arch_report(self.to_string(), unknown),
            _ => Report { error: self.to_string(), site: None, notes: self.notes(), hint: self.hint() },
        }
    }

    fn notes(&self) -> Vec<String> {
        match self {
            Failure::Prove(_) => {
                vec!["nothing was written; this is a fault of the patch set or of mambapatch".to_string()]
            }
            Failure::NotRecognised { known, .. } => known.clone(),
            Failure::Build { causes, .. } => causes.clone(),
            _ => Vec::new(),
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Failure::Checkout(error) => return error.hint(),
            Failure::Deliver(error) => return error.hint(),
            Failure::NoRepository { .. } | Failure::NoKernels { .. } => "--source git",
            Failure::PythonWithoutHost => "--host",
            Failure::NobodyToAsk => "compile what was shown: --yes",
            Failure::Build { error, .. } => return error.hint(),
            Failure::NoRemote { name, .. } => {
                return Some(format!(
                    "name an address, or the path ./{name}; or the clone that has it: --source DIR"
                ));
            }
            Failure::PathForUpstream { typed } => {
                return Some(format!(
                    "name the upstream, and the clone as its source: mamba-ssm --source {typed}"
                ));
            }
            Failure::Load(_) => "correct it there; every key is in the book, chapter Patch sets",
            Failure::PatchSets { .. } => "--patchsets DIR names a folder that holds SET/upstream.toml",
            Failure::Prove(error) => {
                return Some(format!("leave that patch out: --skip-patch {}", patch_of(error)));
            }
            Failure::NoGpu { option } => return Some(native_hint(option)),
            Failure::EmptyHost => "say what it must build with: --add-arch 120 --cuda 13.0 --torch 2.11",
            Failure::NotRecognised { .. } => {
                "name the folder that its setup.py lies in; for a source of your own: --patchsets DIR"
            }
            Failure::NoReleases { .. } => "name a folder: mambapatch check ./some-extension --host",
            Failure::BelowFloor { floor, .. } => return Some(format!("--cuda {floor}")),
            Failure::TooLarge { path, .. } => {
                return Some(format!("see what {path} is, or name a release: v2.2.4"));
            }
            Failure::UnknownUpstream { name, known } => return Some(upstream_hint(name, known)),
            Failure::UnknownId { nearest, .. } => match nearest.first() {
                Some(nearest) => return Some(format!("mambapatch explain {nearest}")),
                None => "see the patches of an upstream: mambapatch list UPSTREAM",
            },
            Failure::Place(error) => return Some(place_hint(error)),
            Failure::Verify(error) => verify_hint(error),
            Failure::NothingInstalled { here: None, .. } => {
                "name what is: mambapatch verify MODULE --python PYTHON"
            }
            Failure::NothingInstalled { .. } => {
                "build and install what lies here: mambapatch build . --host --install"
            }
            Failure::NothingCompiled { .. } | Failure::NoExtension { .. } => {
                "name the module that it installs: mambapatch verify MODULE"
            }
            Failure::Unreadable { hint, .. } => hint,
            Failure::NoLog | Failure::EmptyLog { .. } => HOW_TO_LOG,
            Failure::Inspect { .. } => {
                "build or fetch it again: a whole .so, .pyd, .o, .a or wheel is needed"
            }
            Failure::Bind(_) | Failure::Plan(_) | Failure::UnknownArch(_) | Failure::Output(_) => {
                return None;
            }
        };
        Some(hint.to_string())
    }
}

/// What to type behind the option in place of `native`.
fn native_hint(option: &str) -> String {
    format!("name the architecture: {option} 120, or the GPU: {option} 5090")
}

/// How a log comes to be that tells what failed.
const HOW_TO_LOG: &str =
    "write both streams into it: pip install -v . 2>&1 | tee build.log | mambapatch diagnose -";

/// The upstream that was meant.
fn upstream_hint(name: &str, known: &[String]) -> String {
    let has = |upstream: &str| known.iter().any(|id| id == upstream);
    if name.contains(['/', '\\']) || name.starts_with(['.', '~']) {
        return format!("for a folder: mambapatch check {name} --host");
    }
    if let Some((upstream, _)) = name.split_once('@').filter(|(upstream, _)| has(upstream)) {
        return format!("all its releases are meant by its name alone: {upstream}");
    }
    match nearest(name, known.iter().map(String::as_str), 1).first() {
        Some(near) => format!("did you mean {near}?"),
        None => format!("there are {}", known.join(", ")),
    }
}

/// What to type where something could not be verified.
pub fn verify_hint(error: &VerifyError) -> &'static str {
    match error {
        VerifyError::NoPython | VerifyError::Start { .. } => "name one that runs: --python ./env/bin/python",
        VerifyError::Folder { .. } => "TMPDIR names the folder for temporary files",
        VerifyError::Wheel { .. } => "build or fetch it again",
        VerifyError::NotInstalled { .. } => {
            "a path has a slash: ./NAME; another environment: --python PYTHON"
        }
        VerifyError::Import { .. } => "mambapatch doctor",
    }
}

fn place_hint(error: &PlaceError) -> String {
    match error {
        PlaceError::Missing(_) => "name a file, a wheel or a folder that is there".to_string(),
        PlaceError::Unreadable { .. } => "see that it is whole and that you may read it".to_string(),
        PlaceError::Empty { .. } => "name the folder that the build writes to, or the wheel".to_string(),
        PlaceError::NoModule { name, is_here: true, .. } => {
            format!("for what lies here: mambapatch inspect ./{name}")
        }
        PlaceError::NoModule { .. } => {
            "a path has a slash: ./NAME; another environment: --python PYTHON".to_string()
        }
    }
}

/// The patch that a failed proof speaks of, as `--skip-patch` takes it.
fn patch_of(error: &ProveError) -> &str {
    let of_op = |op: &str| op.rfind('/').unwrap_or(op.len());
    match error {
        ProveError::SyntaxErrors { patch, .. } | ProveError::NotReversible { patch, .. } => patch,
        ProveError::NoFixedPoint { op: id, .. } | ProveError::Again(PlanError::Op { id, .. }) => {
            &id[..of_op(id)]
        }
        ProveError::Again(_) => "ID",
    }
}

fn unknown_arch(unknown: &UnknownArch) -> String {
    match (unknown.text.as_str(), unknown.ambiguous) {
        ("", _) => "an empty word is no GPU architecture".to_string(),
        (text, true) => format!("`{text}` is the name of several GPUs"),
        (text, false) => format!("`{text}` is no GPU architecture and no GPU that is known"),
    }
}

fn arch_report(error: String, unknown: &UnknownArch) -> Report {
    let hint = match unknown.nearest.as_slice() {
        [] => "an architecture is a number such as 120, a name such as B200, or native".to_string(),
        nearest => format!("did you mean {}?", nearest.join(", ")),
    };
    Report { error, hint: Some(hint), ..Report::default() }
}

fn bind_report(error: &BindError) -> Report {
    let mut report = Report { error: error.to_string(), ..Report::default() };
    report.hint = Some(match error {
        BindError::NothingAsked => {
            "say what to do: --add-arch 120, --cuda 13.0, --patch ID, or --host for what this machine needs"
                .to_string()
        }
        BindError::UnknownPatch(unknown) => format!("there are {}", unknown.known.join(", ")),
        BindError::Contradiction { .. } => "leave out one of the two".to_string(),
        BindError::NotAmongOnly { code, only } => {
            let all: Vec<String> = only.iter().chain([code]).copied().map(written).collect();
            format!("name all that is compiled: --only-arch {}", all.join(" "))
        }
        BindError::UnknownArch { .. } => "mambapatch explain gpu-arch".to_string(),
        BindError::Refused { since, last, renamed, .. } => refused_hint(*since, *last, *renamed),
        BindError::Advisory(advisory) => {
            report.notes = vec![advisory.why.clone(), format!("see {}", advisory.references.join(", "))];
            format!("{}, or go on all the same: --accept-advisory", advisory.instead)
        }
    });
    report
}

fn refused_hint(
    since: Option<Toolkit>,
    last: Option<Toolkit>,
    renamed: Option<crate::engine::arch::Arch>,
) -> String {
    let span = match (since, last) {
        (Some(since), None) => format!("CUDA {since} and later compile it"),
        (None, Some(last)) => format!("CUDA {last} and earlier compile it"),
        (Some(since), Some(last)) => format!("CUDA {since} to {last} compile it"),
        (None, None) => "every CUDA compiles it".to_string(),
    };
    match renamed {
        Some(arch) => format!("{span}; the same chip is {arch} in other toolkits: --add-arch {arch}"),
        None => match since.or(last) {
            Some(toolkit) => format!("{span}: --cuda {toolkit}"),
            None => span,
        },
    }
}

fn plan_report(unplanned: &Unplanned) -> Report {
    let Unplanned { error, set, through, label, stays } = unplanned;
    let mut report = Report { error: format!("{error}, at {label}"), ..Report::default() };
    let (PlanError::Op { id, .. } | PlanError::Overlap { id, .. } | PlanError::Unit { id, .. }) = error;
    report.hint = Some(format!("mambapatch explain {id}"));
    let PlanError::Op { cause, .. } = error else { return report };
    match cause {
        OpError::NoAnchor(missing) => {
            report.site = missing.nearest.clone();
            report.notes.push(format!("looked for\n{}", indented(&missing.looked_for)));
            let tested = through.iter().map(|through| format!("patch set {set} is tested through {through}"));
            report.notes.extend(tested);
        }
        OpError::CannotEdit { site, .. } => {
            report.site = Some(site.clone());
            report.hint =
                Some(format!("change that line by hand, then run this again; or --skip-patch {}", patch(id)));
        }
        OpError::NothingLeft { .. } => {
            report.hint = Some(match stays {
                Some(arch) => format!("drop fewer, or name those that stay: --only-arch {arch}"),
                None => "the given toolkits take no architecture together: give one --cuda".to_string(),
            });
        }
        _ => {}
    }
    report
}

/// The patch of an op.
fn patch(op: &str) -> &str {
    op.rsplit_once('/').map_or(op, |(patch, _)| patch)
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
