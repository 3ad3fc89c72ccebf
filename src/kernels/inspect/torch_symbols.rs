//! Which releases of torch offer a symbol, as far as `catalogue/torch-symbols.toml` tells.

use std::fmt;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::engine::toolkit::Toolkit;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SymbolFile {
    symbol: Vec<Symbol>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Symbol {
    name: Option<String>,
    part: Option<String>,
    since: Option<Minor>,
    last: Option<Minor>,
}

/// A minor release of torch: 2.11. (A toolkit's release is written and ordered in the same way.)
pub type Minor = Toolkit;

/// A range of minor releases of torch, open where nothing limits it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TorchRange {
    /// The first.
    pub since: Option<Minor>,
    /// The last.
    pub last: Option<Minor>,
}

impl TorchRange {
    /// What lies in both.
    pub fn and(self, other: Self) -> Self {
        let last = match (self.last, other.last) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        Self { since: self.since.max(other.since), last }
    }

    /// Whether a release lies in it.
    pub fn contains(&self, torch: Minor) -> bool {
        self.since.is_none_or(|since| since <= torch) && self.last.is_none_or(|last| torch <= last)
    }

    /// Whether nothing limits it.
    pub fn is_open(&self) -> bool {
        self.since.is_none() && self.last.is_none()
    }
}

impl fmt::Display for TorchRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.since, self.last) {
            (Some(since), Some(last)) if since == last => write!(f, "{since}"),
            (Some(since), Some(last)) => write!(f, "{since} to {last}"),
            (Some(since), None) => write!(f, "{since} or newer"),
            (None, Some(last)) => write!(f, "{last} or older"),
            (None, None) => write!(f, "any release"),
        }
    }
}

static SYMBOLS: LazyLock<Vec<Symbol>> = LazyLock::new(|| {
    let text = include_str!("../../../patchsets/catalogue/torch-symbols.toml");
    let file: Result<SymbolFile, _> = toml::from_str(text);
    file.unwrap_or_else(|error| panic!("the shipped torch-symbols.toml is broken: {error}")).symbol
});

/// The releases that offer a symbol of torch.
pub fn offered(name: &str) -> TorchRange {
    let fits = |symbol: &&Symbol| {
        symbol.name.as_deref() == Some(name) || symbol.part.as_ref().is_some_and(|part| name.contains(part))
    };
    let rows = SYMBOLS.iter().filter(fits);
    rows.fold(TorchRange::default(), |range, row| range.and(TorchRange { since: row.since, last: row.last }))
}

/// Whether a mangled name is one of torch's libraries.
pub fn is_of_torch(name: &str) -> bool {
    const BEGINNINGS: [&str; 8] =
        ["_ZN3c10", "_ZNK3c10", "_ZN2at", "_ZNK2at", "_ZN5torch", "_ZNK5torch", "_ZN6caffe2", "_Z16THP"];
    BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// The ABI of strings that a mangled name of torch speaks of: new (`__cxx11`), old (`Ss`), or neither.
pub fn cxx11_abi(name: &str) -> Option<bool> {
    if name.contains("__cxx11") || name.contains("B5cxx11") {
        return Some(true);
    }
    signature(name).contains("Ss").then_some(false)
}

/// A mangled name without the identifiers in it, so that no letters of theirs are taken for a type.
fn signature(name: &str) -> String {
    let (mut rest, mut kept) = (name, String::new());
    while let Some(first) = rest.chars().next() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let length = rest[..digits].parse::<usize>().ok();
        let skipped = length.and_then(|length| rest.get(digits + length..));
        let after = match (digits, skipped) {
            (0, _) | (_, None) => {
                kept.push(first);
                &rest[first.len_utf8()..]
            }
            (_, Some(after)) => after,
        };
        rest = after;
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_name_their_releases() {
        let range = |name| offered(name).to_string();
        assert_eq!(range("_ZN3c104cuda9SetDeviceEa"), "2.3 to 2.7");
        assert_eq!(range("_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb"), "2.10 to 2.13");
        assert_eq!(
            range("_ZN2at4_ops5zeros4callEN3c108ArrayRefIlEENS2_8optionalIbEEc108optional"),
            "2.1 or older"
        );
        assert_eq!(range("_ZN3c104cuda9SetDeviceEab"), "2.8 or newer");
        assert!(offered("_ZN3c105ErrorD2Ev").is_open());
        let both = offered("_ZN3c104cuda9SetDeviceEa").and(offered("_ZN3c1021throwNullDataPtrErrorEv"));
        assert_eq!(both.to_string(), "2.4 to 2.7");
        assert!(both.contains(Minor::new(2, 4)) && !both.contains(Minor::new(2, 10)));
        assert_eq!(TorchRange { since: None, last: None }.to_string(), "any release");
    }

    #[test]
    fn the_abi_of_strings_is_read_from_types_alone() {
        for (name, abi) in [
            ("_ZN3c106detail14torchCheckFailEPKcS2_jRKSs", Some(false)),
            ("_ZN3c105ErrorC2ENS_14SourceLocationESs", Some(false)),
            ("_ZN3c107WarningC1ESt7variantIJNS0_11UserWarningEEERKNS_14SourceLocationESsb", Some(false)),
            (
                "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
                Some(true),
            ),
            ("_ZNK3c106Device3strB5cxx11Ev", Some(true)),
            ("_ZN2at4_ops9LossSsIze4callERKNS_6TensorE", None),
            ("_ZN3c1099999999999999999999Ss", Some(false)),
            ("_ZN3c101äSs", Some(false)),
            ("", None),
        ] {
            assert_eq!(cxx11_abi(name), abi, "{name}");
        }
    }
}
