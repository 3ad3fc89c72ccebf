//! The command line as it is typed.

mod kernels;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::checkout::SourceChoice;
use crate::checkout::git::{GitError, is_branch_name};
use crate::engine::tag::Tag;
use crate::engine::toolkit::Toolkit;

pub use kernels::{BuildArgs, CompileArgs, DiagnoseArgs, DoctorArgs, InspectArgs, VerifyArgs};

fn branch_name(typed: &str) -> Result<String, GitError> {
    let branch = typed.to_string();
    if is_branch_name(typed) { Ok(branch) } else { Err(GitError::BadBranch { branch }) }
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Patches the sources of CUDA extensions so that they build for today's GPUs, toolkits and PyTorch.
///
/// A patch set says what must hold in a source tree; mambapatch works out the smallest edits, proves them, shows the
/// diff, and then writes a branch.
#[derive(Debug, Parser)]
#[command(name = "mambapatch", version, styles = STYLES, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  # mamba-ssm v2.2.4 for an RTX 50xx, in ./mamba-ssm-2.2.4
  mambapatch apply v2.2.4 --add-arch 120
  # a checkout of yours, only shown
  mambapatch diff ./mamba --add-arch 5090 --cuda 13.0
  # any extension, for what this machine has
  mambapatch apply ./some-extension --host
  # which releases need the patch
  mambapatch matrix causal-conv1d --add-arch 120")]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub everywhere: Everywhere,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Everywhere {
    /// How the answer is written: human, or json (one document)
    #[arg(long, global = true, value_name = "FORMAT", default_value = "human", hide_possible_values = true)]
    pub format: Format,
    /// When to colour: auto, always, never; NO_COLOR and CLICOLOR_FORCE are honoured
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", hide_possible_values = true)]
    pub color: Color,
    /// Use only what is on this machine
    #[arg(long, global = true)]
    pub offline: bool,
    /// A folder of private patch sets (SET/upstream.toml, SET/PATCH.toml); can be repeated
    #[arg(long, global = true, value_name = "DIR")]
    pub patchsets: Vec<PathBuf>,
    /// Only the answer and errors: no progress, no notes; of apply and diff, no tables
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// More: the places that each op speaks of
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

/// How the answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Human,
    /// One JSON document.
    Json,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Patch a checkout: show the diff, then make a branch with one commit per patch
    #[command(after_help = "\
Examples:
  # a new checkout in ./mamba-ssm-2.2.4
  mambapatch apply v2.2.4 --add-arch 120
  mambapatch apply causal-conv1d@v1.4.0 --add-arch B200
  # what this machine needs; a source tree of no known upstream
  mambapatch apply ./mamba --host
  mambapatch apply ./some-extension --cuda 13.0 --torch 2.11 --add-arch 120
  # into the files, no branch
  mambapatch apply ./mamba --add-arch 120 --no-commit")]
    Apply(ApplyArgs),
    /// Show the same plan, and write nothing
    #[command(after_help = "\
Examples:
  mambapatch diff v2.2.4 --add-arch 120 | git apply
  mambapatch diff ./mamba --cuda 13.0 --exit-code")]
    Diff(DiffArgs),
    /// Show what each op finds, without a diff; exit 1 if something would change
    Check(PlanArgs),
    /// Make a series of patches for upstream: mails for `git am`, the text of a pull request; and push it
    #[command(after_help = "\
Examples:
  # what of it is open upstream, in ./mamba-ssm-main-pr
  mambapatch pr mamba-ssm --torch 2.14 --patch no-nvcc --signoff
  # the same, pushed to your fork; never over what is there
  mambapatch pr mamba-ssm --torch 2.14 --patch no-nvcc --signoff --push git@github.com:you/mamba.git
  # from a clone of yours, to its remote `fork`
  mambapatch pr mamba-ssm --torch 2.14 --source ./mamba --push fork")]
    Pr(PrArgs),
    /// Keep a patched upstream in a folder of your own repository, with a record of what it is made of
    #[command(subcommand)]
    Vendor(VendorCommand),
    /// Show for every release whether the patches are needed, there already, or lost
    Matrix(MatrixArgs),
    /// List upstreams; of one upstream, its releases and patches
    List(ListArgs),
    /// Say what a patch or an op does, where, why, and since which release
    #[command(after_help = "\
Examples:
  mambapatch explain mamba-ssm/cuda-13
  mambapatch explain gpu-arch")]
    Explain(ExplainArgs),
    /// Patch and compile: show the diff, ask, compile in your Python, and prove what the wheel holds
    #[command(after_help = kernels::BUILD)]
    Build(BuildArgs),
    /// Import an extension and run the upstream's smoke test against its reference on the GPU; exit 1 if numbers are off, 2
    /// if it cannot be imported
    #[command(after_help = "\
Examples:
  # every upstream that is installed in the active environment
  mambapatch verify
  mambapatch verify mamba_ssm --python ./env/bin/python
  # a wheel, without installing it
  mambapatch verify dist/causal_conv1d-1.4.0-cp312-cp312-linux_x86_64.whl
  # a tree that was built in place, or whose upstream is installed; any other extension is only imported
  mambapatch verify ./mamba
  mambapatch verify knn_cuda")]
    Verify(VerifyArgs),
    /// Show which GPU architectures a compiled extension really holds; with --gpu, exit 1 if one cannot run it
    #[command(after_help = "\
Examples:
  # what an installed package holds, and whether an RTX 5090 can run it
  mambapatch inspect mamba-ssm --gpu 5090
  mambapatch inspect build/lib/selective_scan_cuda.so dist/*.whl
  mambapatch inspect ./build --gpu native --format json")]
    Inspect(InspectArgs),
    /// Say whether this machine can build and run kernels: GPUs, driver, every nvcc, PyTorch, compilers, extensions; exit 1
    /// if not
    #[command(after_help = "\
Examples:
  mambapatch doctor
  mambapatch doctor --python ./env/bin/python
  # for a log of this machine that is read elsewhere
  mambapatch doctor --format json > facts.json")]
    Doctor(DoctorArgs),
    /// Say why a build, an import or a run failed, from its log, and what to type; exit 1 if no cause is known
    #[command(after_help = "\
Examples:
  mambapatch diagnose build.log
  pip install -v . 2>&1 | mambapatch diagnose -
  # a log of another machine, with what doctor found there
  mambapatch diagnose build.log.gz --facts facts.json")]
    Diagnose(DiagnoseArgs),
}

/// `apply`
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The target and what to do with it.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Where the result goes.
    #[command(flatten)]
    pub place: PlaceArgs,
}

/// Where `apply` writes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where")]
pub struct PlaceArgs {
    /// The folder of a new checkout [default: ./<upstream>-<version>]
    #[arg(long, value_name = "DIR")]
    pub into: Option<PathBuf>,
    /// Show everything and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write into the files; the reverse patch is kept and named
    #[arg(long)]
    pub no_commit: bool,
    /// The name of the branch
    #[arg(long, value_name = "NAME", conflicts_with = "no_commit", value_parser = branch_name)]
    pub branch: Option<String>,
    /// Write files that have changes of yours too
    #[arg(long, requires = "no_commit")]
    pub allow_dirty: bool,
}

/// `diff`
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The target and what to do with it.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Exit 1 if anything would change
    #[arg(long)]
    pub exit_code: bool,
}

/// A target, what to do with it, and where its source comes from.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// A release (v2.2.4, causal-conv1d@v1.4.0), a branch (mamba-ssm@main) or a folder (./mamba)
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// What to do.
    #[command(flatten)]
    pub wish: WishArgs,
    /// Where sources come from.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// What to do.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "What to do")]
pub struct WishArgs {
    /// Compile for these GPU architectures too: 120, 12.0, sm_120, 120a, 100f, 12.0+PTX, compute_120 (PTX alone), a
    /// GPU's name (5090, B200), native
    #[arg(long, value_name = "ARCH", num_args = 1.., value_delimiter = ',')]
    pub add_arch: Vec<String>,
    /// Compile for these no longer
    #[arg(long, value_name = "ARCH", num_args = 1.., value_delimiter = ',')]
    pub drop_arch: Vec<String>,
    /// Compile for these and nothing else
    #[arg(long, value_name = "ARCH", num_args = 1.., value_delimiter = ',')]
    pub only_arch: Vec<String>,
    /// The CUDA toolkits that it must build with; patches that they need are chosen
    #[arg(long, value_name = "VERSION", num_args = 1.., value_delimiter = ',')]
    pub cuda: Vec<Toolkit>,
    /// The PyTorch that it must build with; patches that it needs are chosen
    #[arg(long, value_name = "VERSION", value_parser = super::typed::torch_release)]
    pub torch: Option<Tag>,
    /// Ask this machine for what is not given: GPUs, toolkit, PyTorch, packages
    #[arg(long)]
    pub host: bool,
    /// The Python whose packages count, with --host; build compiles in it [default: the active environment's]
    #[arg(long, value_name = "PYTHON")]
    pub python: Option<PathBuf>,
    /// Use these patches too; `mambapatch list UPSTREAM` shows them
    #[arg(long, value_name = "ID", num_args = 1.., value_delimiter = ',')]
    pub patch: Vec<String>,
    /// Do not use these patches
    #[arg(long, value_name = "ID", num_args = 1.., value_delimiter = ',')]
    pub skip_patch: Vec<String>,
    /// Go on although a known trap is in the way
    #[arg(long)]
    pub accept_advisory: bool,
}

/// Where sources come from.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Source")]
pub struct SourceArgs {
    /// auto (what is nearest), git, sdist, an address or a path
    #[arg(long, value_name = "SOURCE", default_value = "auto")]
    pub source: SourceChoice,
    /// The package index [default: pip's or uv's own]
    #[arg(long, value_name = "URL")]
    pub index: Option<String>,
}

/// `matrix`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mambapatch matrix mamba-ssm --add-arch 120
  mambapatch matrix mamba-ssm --cuda 13.0 --format json")]
pub struct MatrixArgs {
    /// The upstream: mamba-ssm, causal-conv1d
    #[arg(value_name = "UPSTREAM")]
    pub upstream: String,
    /// What to do.
    #[command(flatten)]
    pub wish: WishArgs,
    /// Where sources come from.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// `pr`
#[derive(Debug, Args)]
pub struct PrArgs {
    /// The upstream, or a branch, tag or commit of it that the series stands on: mamba-ssm, mamba-ssm@main
    #[arg(value_name = "UPSTREAM[@REF]")]
    pub upstream: String,
    /// What to do.
    #[command(flatten)]
    pub wish: WishArgs,
    /// How it is offered.
    #[command(flatten)]
    pub offer: OfferArgs,
    /// Where sources come from.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// How a series is offered.
#[derive(Debug, Args)]
#[command(next_help_heading = "Offer")]
pub struct OfferArgs {
    /// What upstream will merge into [default: REF, else the branch that upstream works on]
    #[arg(long, value_name = "REF")]
    pub base: Option<String>,
    /// The folder of the series [default: ./<upstream>-<base>-pr]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Add a Signed-off-by line to each commit
    #[arg(long)]
    pub signoff: bool,
    /// The name of the branch
    #[arg(long, value_name = "NAME", value_parser = branch_name)]
    pub branch: Option<String>,
    /// Push the branch to this address, path, or remote of the clone that --source names; nothing is overwritten there
    #[arg(long, value_name = "REMOTE")]
    pub push: Option<String>,
}

/// `vendor`
#[derive(Debug, Subcommand)]
pub enum VendorCommand {
    /// Write a patched tree without `.git` into a new folder, with mambapatch.lock and the patches
    #[command(after_help = "\
Examples:
  mambapatch vendor add v2.2.4 --add-arch 120 --into third_party/mamba
  git add third_party/mamba
  # as a branch of the repository ./fork, with upstream's history
  mambapatch vendor add v2.2.4 --add-arch 120 --as branch --into ./fork")]
    Add(VendorAddArgs),
    /// Say which file is not as recorded; exit 1 if one is not. Needs no network: made for CI
    #[command(after_help = "\
Example:
  mambapatch vendor check third_party/mamba")]
    Check(VendorPlaceArgs),
    /// Bring it to another release: plan the patches anew, and merge your own work into the result
    #[command(after_help = "\
Examples:
  # to the newest release, with the recorded flags
  mambapatch vendor update third_party/mamba
  # to that one, and for one more GPU: flags that are given stand in the place of the recorded ones
  mambapatch vendor update third_party/mamba v2.2.5 --add-arch 120 121")]
    Update(VendorUpdateArgs),
    /// Show your own work: what differs from the record, as a diff
    #[command(after_help = "\
Example:
  mambapatch vendor diff third_party/mamba")]
    Diff(VendorDiffArgs),
}

/// `vendor add`
#[derive(Debug, Args)]
pub struct VendorAddArgs {
    /// The target and what to do with it.
    #[command(flatten)]
    pub plan: PlanArgs,
    /// The new folder; with `--as branch`, the repository that gets the branch
    #[arg(long, value_name = "DIR", help_heading = "Where")]
    pub into: PathBuf,
    /// What it is kept as: folder, or branch (upstream's history, one commit per patch)
    #[arg(long = "as", value_name = "KIND", default_value = "folder", hide_possible_values = true)]
    #[arg(help_heading = "Where")]
    pub kind: VendorKind,
    /// The name of the branch [default: vendor/<upstream>]
    #[arg(long, value_name = "NAME", help_heading = "Where", value_parser = branch_name)]
    pub branch: Option<String>,
}

/// What a vendored tree is kept as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum VendorKind {
    /// Files in a folder.
    Folder,
    /// A branch with upstream's history.
    Branch,
}

/// Where a vendored tree lies.
#[derive(Debug, Args)]
pub struct VendorPlaceArgs {
    /// The vendored folder, or the repository that has the branch
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The name of the branch [default: the one that has a mambapatch.lock]
    #[arg(long, value_name = "NAME", value_parser = branch_name)]
    pub branch: Option<String>,
}

/// `vendor update`
#[derive(Debug, Args)]
pub struct VendorUpdateArgs {
    /// Where it lies.
    #[command(flatten)]
    pub place: VendorPlaceArgs,
    /// The release, branch or commit to go to [default: the newest release]
    #[arg(value_name = "REF")]
    pub reference: Option<String>,
    /// What to do.
    #[command(flatten)]
    pub wish: WishArgs,
    /// Where sources come from.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// `vendor diff`
#[derive(Debug, Args)]
pub struct VendorDiffArgs {
    /// Where it lies.
    #[command(flatten)]
    pub place: VendorPlaceArgs,
    /// Where sources come from.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// `list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// The upstream whose releases and patches to list
    #[arg(value_name = "UPSTREAM")]
    pub upstream: Option<String>,
    /// Where sources come from.
    #[command(flatten)]
    pub source: SourceArgs,
}

/// `explain`
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A patch (mamba-ssm/cuda-13, cuda-13) or an op (mamba-ssm/cuda-13/rewrite-2)
    #[arg(value_name = "PATCH|OP")]
    pub id: String,
}
