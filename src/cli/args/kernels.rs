//! What the commands that compile and look at kernels are typed with.

use std::path::PathBuf;

use clap::Args;

use super::{PlaceArgs, PlanArgs};

/// What is said below the flags of `build`.
pub const BUILD: &str = "\
Without a flag that speaks of architectures it is compiled for the GPUs of this machine alone. Toolkit, PyTorch, Python \
and packages are those of the environment: --python, an active virtual environment or conda, else python3. --host is \
always on.

Exit 0: the wheel is there. 1: you declined. 2: no wheel; the log is named and its cause. 130: stopped by Ctrl-C.

Examples:
  # for the GPU of this machine, into ./dist
  mambapatch build mamba-ssm
  # an old release for an RTX 50xx, on a machine without a GPU; no question is asked
  mambapatch build v2.2.4 --only-arch 120 --yes
  mambapatch build causal-conv1d@v1.4.0 --only-arch 90 120 --python ./env/bin/python --out wheels
  # into the active environment, and tried there
  mambapatch build mamba-ssm --install
  # a tree of yours, four files at once
  mambapatch build ./some-extension --jobs 4";

/// `build`
#[derive(Debug, Args)]
pub struct BuildArgs {
    /// The target and what to do with it.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// How it is compiled.
    #[command(flatten)]
    pub compile: CompileArgs,
    /// Where the patched tree goes.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// How a tree is compiled.
#[derive(Debug, Args)]
#[command(next_help_heading = "Build")]
pub struct CompileArgs {
    /// The folder of the wheel
    #[arg(long, value_name = "DIR", default_value = "dist")]
    pub out: PathBuf,
    /// How many files are compiled at once [default: MAX_JOBS, else what cores and free memory allow]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Compile without asking, once the diff was shown
    #[arg(short, long)]
    pub yes: bool,
    /// Put the wheel into the same Python, and verify it there
    #[arg(long)]
    pub install: bool,
}

/// `inspect`
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// Libraries and objects (.so, .pyd, .dll, .o, .a), wheels, folders, or names of installed packages and modules
    #[arg(value_name = "FILE|WHEEL|DIR|MODULE", required = true)]
    pub targets: Vec<String>,
    /// Say whether it runs on this GPU: 120, 5090, B200, native; can be repeated
    #[arg(long, value_name = "GPU", value_delimiter = ',')]
    pub gpu: Vec<String>,
    /// The Python whose packages are meant [default: the active environment's]
    #[arg(long, value_name = "PYTHON")]
    pub python: Option<PathBuf>,
}

/// `verify`
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// A source tree, a wheel, or the name of an installed module or package [default: the upstreams that are installed]
    #[arg(value_name = "DIR|WHEEL|MODULE")]
    pub target: Option<String>,
    /// The Python that imports it [default: the active environment's]
    #[arg(long, value_name = "PYTHON")]
    pub python: Option<PathBuf>,
}

/// `diagnose`
#[derive(Debug, Args)]
pub struct DiagnoseArgs {
    /// The log, packed with gzip or not; - is standard input
    #[arg(value_name = "LOG", default_value = "-")]
    pub log: PathBuf,
    /// What `mambapatch doctor --format json` wrote on the machine of the log [default: this machine is asked]
    #[arg(long, value_name = "FILE")]
    pub facts: Option<PathBuf>,
    /// The Python whose packages count [default: the active environment's]
    #[arg(long, value_name = "PYTHON", conflicts_with = "facts")]
    pub python: Option<PathBuf>,
}

/// `doctor`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The Python whose packages count [default: the active environment's]
    #[arg(long, value_name = "PYTHON")]
    pub python: Option<PathBuf>,
}
