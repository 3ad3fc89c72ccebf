//! The runs of the preprocessor that a source goes through in an environment, and what macros are in each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use super::condition::Number;
use super::condition::Truth;
use super::constants::Constants;
use crate::engine::catalogue::Catalogue;
use crate::engine::environment::Environment;
use crate::engine::source::Sources;
use crate::engine::tag::Tag;
use crate::engine::toolkit::Toolkit;

/// What is known of a macro.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Macro {
    /// It is not defined.
    Undefined,
    /// It is defined, with this value.
    Defined(Number),
    /// It has this value where it is defined.
    Perhaps(Number),
}

/// The macros that an environment decides in one run of the preprocessor.
pub type Known = BTreeMap<&'static str, Macro>;

/// The runs of the preprocessor that a source goes through in an environment: for each toolkit one for the host and
/// one for the device.
///
/// Whatever no toolkit, no torch and not the tree itself decides is unknown. HIP's macros are undefined: what is patched
/// is built for CUDA; but for [`Passes::for_rocm`].
#[derive(Debug, Clone)]
pub struct Passes {
    runs: Arc<[Run]>,
    /// Those of the runs that count, by their index.
    chosen: Vec<usize>,
    assumed: BTreeMap<String, Macro>,
    constants: Option<Arc<Constants>>,
}

/// A run before the first line of any file.
#[derive(Debug)]
struct Run {
    toolkit: Option<Toolkit>,
    known: Known,
    hip: bool,
}

/// No architecture has a higher `__CUDA_ARCH__`.
const ARCH_END: i64 = 99_999;

impl Passes {
    /// Those of an environment.
    pub fn of(environment: &Environment, catalogue: &Catalogue) -> Self {
        let torch = torch_macros(environment.torch.as_ref());
        let mut runs = Vec::new();
        for toolkit in some_or_none(&environment.cuda) {
            let mut host = torch.clone();
            host.extend(toolkit.into_iter().flat_map(|toolkit| toolkit_macros(toolkit, catalogue)));
            let mut device = host.clone();
            host.insert("__CUDA_ARCH__", Macro::Undefined);
            let low = toolkit.and_then(|toolkit| lowest_arch(toolkit, catalogue)).unwrap_or(0);
            device.insert("__CUDA_ARCH__", Macro::Defined(Number { low: low.max(1), high: ARCH_END }));
            device.insert("__CUDACC__", Macro::Defined(Number::exactly(1)));
            runs.extend([host, device].map(|known| Run { toolkit, known, hip: false }));
        }
        Self::with(runs)
    }

    fn with(runs: Vec<Run>) -> Self {
        let chosen = (0..runs.len()).collect();
        Self { runs: runs.into(), chosen, assumed: BTreeMap::new(), constants: None }
    }

    /// The same, for the files of a tree, which may define macros of its own.
    pub fn in_tree(mut self, sources: &Sources) -> Self {
        let known = self.runs.iter().map(|run| run.known.clone()).collect();
        self.constants = Some(Arc::new(Constants::new(sources.clone(), known)));
        self
    }

    /// Those of an environment of which nothing is known.
    pub fn unknown() -> Self {
        Self::with(vec![Run { toolkit: None, known: Known::new(), hip: false }])
    }

    /// The toolkits of all runs, in order.
    pub fn toolkits(&self) -> impl Iterator<Item = Toolkit> {
        let toolkits: BTreeSet<Toolkit> = self.runs.iter().filter_map(|run| run.toolkit).collect();
        toolkits.into_iter()
    }

    /// Of all runs, those with some toolkits; those of an unknown toolkit are left out.
    pub fn of_toolkits(&self, wanted: impl Fn(Toolkit) -> bool) -> Self {
        let is_wanted = |run: &usize| self.runs[*run].toolkit.is_some_and(&wanted);
        Self { chosen: (0..self.runs.len()).filter(is_wanted).collect(), ..self.clone() }
    }

    /// Whether no run is left.
    pub fn is_empty(&self) -> bool {
        self.chosen.is_empty()
    }

    /// The run of a build for ROCm, where HIP's macros are defined and those of a toolkit are not.
    pub fn for_rocm() -> Self {
        let known = ["CUDA_VERSION", "CUDART_VERSION"].map(|name| (name, Macro::Undefined)).into();
        Self::with(vec![Run { toolkit: None, known, hip: true }])
    }

    /// The same, with something known of one more macro.
    pub fn assuming(mut self, name: &str, what: Macro) -> Self {
        self.assumed.insert(name.to_string(), what);
        self
    }

    /// Each run, before the first line of a file.
    pub fn iter(&self) -> impl Iterator<Item = Pass<'_>> {
        self.chosen.iter().map(|run| Pass {
            assumed: Some(&self.assumed),
            constants: self.constants.as_deref().map(|constants| (constants, *run)),
            hip: self.runs[*run].hip,
            ..Pass::alone(&self.runs[*run].known)
        })
    }

    #[cfg(test)]
    pub(crate) fn of_texts(cuda: &[&str], torch: Option<&str>) -> Self {
        let cuda = cuda.iter().map(|text| text.parse().expect(text)).collect();
        let torch = torch.map(|text| text.parse().expect(text));
        Self::of(&Environment { cuda, torch, ..Environment::default() }, Catalogue::shipped())
    }
}

/// Each of them, or nothing known once.
fn some_or_none(cuda: &[Toolkit]) -> Vec<Option<Toolkit>> {
    if cuda.is_empty() { vec![None] } else { cuda.iter().copied().map(Some).collect() }
}

/// `__CUDA_ARCH__` of the oldest architecture that a toolkit knows.
fn lowest_arch(toolkit: Toolkit, catalogue: &Catalogue) -> Option<i64> {
    let known = catalogue.arches().filter(|row| catalogue.knows(toolkit, row.arch));
    known.map(|row| i64::from(row.arch.number) * 10).min()
}

fn toolkit_macros(toolkit: Toolkit, catalogue: &Catalogue) -> Known {
    let (major, minor) = (i64::from(toolkit.major), i64::from(toolkit.minor));
    let version = Macro::Defined(Number::exactly(major * 1000 + minor * 10));
    let mut known: Known = [
        ("CUDA_VERSION", version),
        ("CUDART_VERSION", version),
        // A compiler other than nvcc does not define these.
        ("__CUDACC_VER_MAJOR__", Macro::Perhaps(Number::exactly(major))),
        ("__CUDACC_VER_MINOR__", Macro::Perhaps(Number::exactly(minor))),
    ]
    .into();
    known.extend(cccl_macros(toolkit, catalogue));
    known
}

/// The macros of CUB, Thrust and libcu++. Of a toolkit whose release of CCCL the catalogue does not tell, they lie
/// between those of its neighbours.
fn cccl_macros(toolkit: Toolkit, catalogue: &Catalogue) -> Vec<(&'static str, Macro)> {
    let told =
        catalogue.toolkits().iter().filter_map(|row| Some((row.version, Release::read(row.cccl.as_ref()?)?)));
    let told: Vec<(Toolkit, Release)> = told.collect();
    let below = told.iter().rfind(|(version, _)| *version <= toolkit).map(|(_, release)| *release);
    let above = told.iter().find(|(version, _)| *version >= toolkit).map(|(_, release)| *release);
    let number = |of: fn(Release, i64) -> i64| {
        let low = below.map_or(0, |release| of(release, 0));
        let high = above.map_or(i64::from(u32::MAX), |release| of(release, 99));
        Macro::Defined(Number { low, high })
    };
    let version = number(|it, last| it.major * 100_000 + it.minor * 100 + it.patch.unwrap_or(last));
    let major = number(|it, _| it.major);
    let cccl = number(|it, last| it.major * 1_000_000 + it.minor * 1000 + it.patch.unwrap_or(last));
    let names =
        ["CUB_VERSION", "THRUST_VERSION", "CUB_MAJOR_VERSION", "THRUST_MAJOR_VERSION", "CCCL_MAJOR_VERSION"];
    let values = [version, version, major, major, major];
    names.into_iter().zip(values).chain([("CCCL_VERSION", cccl)]).collect()
}

/// A release of CCCL.
#[derive(Debug, Clone, Copy)]
struct Release {
    major: i64,
    minor: i64,
    patch: Option<i64>,
}

impl Release {
    /// `3.0.1`, or `3.5` where the patch is not known.
    fn read(text: &str) -> Option<Self> {
        let numbers: Option<Vec<i64>> = text.split('.').map(|part| part.parse().ok()).collect();
        match numbers?.as_slice() {
            [major, minor, rest @ ..] => {
                Some(Self { major: *major, minor: *minor, patch: rest.first().copied() })
            }
            _ => None,
        }
    }
}

fn torch_macros(torch: Option<&Tag>) -> Known {
    let Some(torch) = torch else { return Known::new() };
    let names = ["TORCH_VERSION_MAJOR", "TORCH_VERSION_MINOR", "TORCH_VERSION_PATCH"];
    let value = |number: &u64| Macro::Defined(Number::exactly(i64::try_from(*number).unwrap_or(i64::MAX)));
    let numbers = names.into_iter().zip(torch.version().release().iter().map(value));
    // c10/util/Exception.h has it since 1.2.
    numbers.chain([("TORCH_CHECK", Macro::Defined(Number::ANY))]).collect()
}

/// Whether a macro tells a build for HIP from one for CUDA.
pub fn speaks_of_hip(name: &[u8]) -> bool {
    is_of_hip(name) || is_flag_for_hip(name)
}

/// Macros that only HIP's compiler, or a build for it, defines.
fn is_of_hip(name: &[u8]) -> bool {
    let begins = [&b"__HIP_"[..], b"__AMDGCN_", b"HIP_VERSION", b"ROCM_VERSION", b"__gfx"];
    let whole = [&b"USE_ROCM"[..], b"__HIP__", b"__HIPCC__", b"__HCC__", b"__AMDGCN__", b"TORCH_HIP_VERSION"];
    begins.iter().any(|begin| name.starts_with(begin)) || whole.contains(&name)
}

/// Macros that a build for HIP gets by `-D`: `WITH_HIP`, `MMCV_WITH_HIP`.
fn is_flag_for_hip(name: &[u8]) -> bool {
    let ends =
        [&b"WITH_HIP"[..], b"WITH_ROCM", b"USE_HIP", b"BUILD_HIP", b"BUILD_ROCM", b"IS_ROCM", b"HIP_DIFF"];
    ends.iter().any(|end| name.strip_suffix(*end).is_some_and(|rest| rest.is_empty() || rest.ends_with(b"_")))
}

/// One run over one file: what the environment and the tree decide, and what the file does itself.
#[derive(Debug, Clone)]
pub struct Pass<'k> {
    known: &'k Known,
    assumed: Option<&'k BTreeMap<String, Macro>>,
    constants: Option<(&'k Constants, usize)>,
    hip: bool,
    own: BTreeMap<Vec<u8>, Option<i64>>,
}

impl<'k> Pass<'k> {
    /// Of which only this is known.
    pub fn alone(known: &'k Known) -> Self {
        Self { known, assumed: None, constants: None, hip: false, own: BTreeMap::new() }
    }

    /// From here on a name is what the file makes of it: a number, or nobody knows what.
    pub fn set(&mut self, name: &[u8], number: Option<i64>) {
        self.own.insert(name.to_vec(), number);
    }

    /// What is known of a macro.
    pub fn get(&self, name: &[u8]) -> Macro {
        match self.own.get(name) {
            Some(Some(number)) => Macro::Defined(Number::exactly(*number)),
            Some(None) => Macro::Perhaps(Number::ANY),
            None => self.decided(name).unwrap_or_else(|| self.of_tree(name)),
        }
    }

    fn decided(&self, name: &[u8]) -> Option<Macro> {
        let name = std::str::from_utf8(name).ok()?;
        let assumed = self.assumed.and_then(|assumed| assumed.get(name));
        assumed.or(self.known.get(name)).copied()
    }

    /// A header that a file does not include makes its macro zero.
    fn of_tree(&self, name: &[u8]) -> Macro {
        if self.hip && speaks_of_hip(name) {
            return Macro::Defined(Number::ANY);
        }
        if is_of_hip(name) {
            return Macro::Undefined;
        }
        match self.constants.and_then(|(constants, run)| constants.get(run, name)) {
            Some(Some(number)) => Macro::Perhaps(Number { low: number.min(0), high: number.max(0) }),
            None if is_flag_for_hip(name) => Macro::Undefined,
            Some(None) | None => Macro::Perhaps(Number::ANY),
        }
    }

    /// Whether a macro is defined.
    pub fn is_defined(&self, name: &[u8]) -> Truth {
        match self.get(name) {
            Macro::Undefined => Truth::No,
            Macro::Defined(_) => Truth::Yes,
            Macro::Perhaps(_) => Truth::Maybe,
        }
    }
}
