//! What `verify` is typed with.

use std::path::PathBuf;

use clap::Args;

/// What is said below its flags.
pub const EXAMPLES: &str = "\
Examples:
  # every upstream that is installed in the active environment
  mambapatch verify
  mambapatch verify mamba_ssm --python ./env/bin/python
  # a wheel, without installing it
  mambapatch verify dist/causal_conv1d-1.4.0-cp312-cp312-linux_x86_64.whl
  # a tree that was built in place, or whose upstream is installed; any other extension is only imported
  mambapatch verify ./mamba
  mambapatch verify knn_cuda";

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
