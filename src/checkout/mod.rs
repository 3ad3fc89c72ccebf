//! Reads and writes the source trees that are patched: git repositories, source distributions, plain folders.
//!
//! [`resolve`] finds what a TARGET names; [`Target::read`] reads its files without writing a checkout;
//! [`Target::prepare_checkout`] gives the tree to write to. [`Releases`] opens one release of an upstream after another.
//! Nothing here prints: what the user should know is told through [`Progress`].

pub mod archive;
pub mod cache;
mod error;
pub mod folder;
pub mod git;
pub mod http;
pub mod index;
mod local;
mod names;
mod opened;
mod options;
mod prepare;
mod releases;
mod search;
pub mod target;
pub mod temporary;
pub mod tree_path;
mod upstream;
mod variables;
pub(crate) mod whole;

pub use error::{CheckoutError, UnknownRef};
pub use folder::Written;
pub use git::{CommitToMake, Committed};
pub use opened::{Origin, Target};
pub use options::{CheckoutOptions, SourceChoice};
pub use prepare::{Checkout, CheckoutState, InPlace, is_free};
pub use releases::{Releases, open_release, releases_on_index};
pub use target::{TargetSpec, Wanted};
pub use upstream::{Recognise, UpstreamInfo};
pub use variables::Variables;
pub use whole::{Entry, Kind, Submodule, Whole};

use search::{Search, upstreams_with};

/// What happens while sources are looked for and fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// Something that the user should know: which source was taken and why.
    Note(String),
    /// More about a note, for who wants to know all.
    Detail(String),
    /// Something that may take a while begins.
    Step(String),
    /// Bytes that have come.
    Bytes {
        /// What is fetched, without credentials.
        what: String,
        /// So many so far.
        done: u64,
        /// So many in all, where that is known.
        total: Option<u64>,
    },
}

/// Finds what a TARGET names. Nothing is written but the cache.
pub fn resolve(
    spec: &TargetSpec,
    upstreams: &[UpstreamInfo],
    options: &CheckoutOptions,
    progress: &mut dyn FnMut(Progress),
) -> Result<Target, CheckoutError> {
    let (id, wanted, by_default) = match spec {
        TargetSpec::Path(path) => {
            if options.source != SourceChoice::Auto {
                progress(Progress::Note(
                    "a path is read as it lies there; --source has no effect on it".into(),
                ));
            }
            return local::open(path, upstreams, options, progress);
        }
        TargetSpec::Upstream { id, wanted, by_default } => (id, wanted, *by_default),
    };
    let upstream = upstreams.iter().find(|upstream| upstream.id == *id);
    let upstream = upstream.ok_or_else(|| CheckoutError::NoUpstream { upstream: id.clone() })?;
    let others: Vec<&UpstreamInfo> = upstreams.iter().filter(|other| other.id != *id).collect();
    let result = Search { upstream, wanted, options, progress, seen: Vec::new() }.run();
    match result {
        Err(CheckoutError::UnknownRef(mut unknown)) => {
            unknown.elsewhere = upstreams_with(&unknown.reference, &others, options, true);
            let ids = others.iter().map(|other| other.id.as_str());
            unknown.near_upstream = target::nearest(&unknown.reference, ids, 1).pop();
            Err(CheckoutError::UnknownRef(unknown))
        }
        Ok(target) if by_default => {
            for other in upstreams_with(&target.reference, &others, options, false) {
                let note = format!("{other} has that release too: {other}@{}", target.reference);
                progress(Progress::Note(note));
            }
            Ok(target)
        }
        other => other,
    }
}
