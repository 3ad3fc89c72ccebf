//! What the three files of the catalogue say, row by row.

use pep440_rs::Version;
use serde::{Deserialize, Deserializer, de};

use crate::engine::arch::{Arch, Code, parse_codes};
use crate::engine::toolkit::Toolkit;

/// `arches.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ArchFile {
    pub arch: Vec<ArchRow>,
}

/// `toolkits.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct ToolkitFile {
    pub toolkit: Vec<ToolkitRow>,
    #[serde(default)]
    pub driver_floor: Vec<DriverFloor>,
    #[serde(default)]
    pub advisory: Vec<ToolkitAdvisory>,
}

/// `torch.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct TorchFile {
    #[serde(default)]
    pub cxx_standard: Vec<CxxStandard>,
    #[serde(default)]
    pub arch_list: Vec<TorchArches>,
    #[serde(default)]
    pub gcc: Vec<TorchGcc>,
    #[serde(default)]
    pub wheel: Vec<TorchWheel>,
    #[serde(default)]
    pub arch_name: Vec<ArchName>,
}

/// An architecture, and the toolkits that know it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ArchRow {
    /// The architecture.
    #[serde(rename = "name")]
    pub arch: Arch,
    /// The first toolkit that knows it; none where it is older than the catalogue.
    pub since: Option<Toolkit>,
    /// The last toolkit that knows it; none where the newest does.
    pub last: Option<Toolkit>,
    /// The GPUs that have it, named as people type them.
    #[serde(default)]
    pub gpus: Vec<String>,
    /// Of an `f` architecture: the chips that its intermediate code compiles for.
    #[serde(default)]
    pub family: Vec<Arch>,
    /// The number that the same chip has in later toolkits.
    pub renamed_to: Option<Arch>,
    /// The number that the same chip had in earlier toolkits.
    pub renamed_from: Option<Arch>,
    /// Whether it is a chip of Jetson boards, for which no other chip's machine code is promised to run.
    #[serde(default)]
    pub jetson: bool,
    /// Where this was read or measured.
    pub source: String,
}

/// A release of the toolkit, and what goes with it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ToolkitRow {
    /// The release.
    pub version: Toolkit,
    /// The version of PTX that it writes: 8.7 of 12.8.
    pub ptx: Option<Toolkit>,
    /// The newest major version of gcc that its headers take.
    pub gcc: Option<u16>,
    /// The newest major version of clang that its headers take.
    pub clang: Option<u16>,
    /// The versions of MSVC that its headers take.
    pub msvc: Option<MsvcRange>,
    /// The driver that its first release shipped with, which is newer than what it needs.
    pub driver: Option<Drivers>,
    /// The oldest C++ standard that its headers take: `17`.
    pub cxx: Option<u16>,
    /// The release of CCCL inside.
    pub cccl: Option<String>,
    /// The release of the compiler packages that was measured; none where the row rests on documents.
    pub package: Option<String>,
    /// What else is worth knowing.
    pub note: Option<String>,
    /// Where this was read or measured.
    pub source: String,
}

/// A range of `_MSC_VER`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MsvcRange {
    /// The lowest that is taken.
    pub from: u16,
    /// The lowest that is refused again.
    pub below: u16,
}

/// Driver releases of the two systems.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Drivers {
    /// `570.26`.
    pub linux: Option<String>,
    /// `570.65`.
    pub windows: Option<String>,
}

/// The oldest driver that runs machine code of a major release of the toolkit.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DriverFloor {
    /// `12` for 12.0 and all that follow it.
    pub major: u16,
    /// The driver on Linux.
    pub linux: Option<String>,
    /// The driver on Windows.
    pub windows: Option<String>,
    /// Where this was read or measured.
    pub source: String,
}

/// A known trap of a toolkit that no single upstream is to blame for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ToolkitAdvisory {
    /// Its short name.
    pub id: String,
    /// The first toolkit that has it; none where every older one does.
    pub since: Option<Toolkit>,
    /// The last toolkit that has it; none where the newest does.
    pub last: Option<Toolkit>,
    /// The architectures that it is about; none for all.
    #[serde(default)]
    pub arches: Vec<Arch>,
    /// The glibc from which on it shows.
    pub glibc: Option<String>,
    /// What goes wrong.
    pub what: String,
    /// What helps.
    pub cure: Option<String>,
    /// Where this was read or measured.
    pub source: String,
}

impl ToolkitAdvisory {
    /// Whether it is about this architecture (or its `a` or `f` variant) with this toolkit.
    pub fn concerns(&self, toolkit: Toolkit, arch: Arch) -> bool {
        spans(self.since, self.last, toolkit)
            && (self.arches.is_empty() || self.arches.iter().any(|wanted| arch.serves(*wanted)))
    }
}

/// The C++ standard that torch's headers demand from a release on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CxxStandard {
    /// The release of torch.
    #[serde(deserialize_with = "version")]
    pub since: Version,
    /// `17` for C++17.
    pub standard: u16,
    /// What else is worth knowing.
    pub note: Option<String>,
    /// Where this was read or measured.
    pub source: String,
}

/// What torch lets `TORCH_CUDA_ARCH_LIST` name, from a release on.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TorchArches {
    /// The release of torch.
    #[serde(deserialize_with = "version")]
    pub since: Version,
    /// The architectures.
    pub arches: Vec<Arch>,
    /// Where this was read or measured.
    pub source: String,
}

/// The gcc that torch refuses for a range of toolkits.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TorchGcc {
    /// The first toolkit of the range.
    pub since: Toolkit,
    /// The last toolkit of the range.
    pub last: Toolkit,
    /// The first major version of gcc that torch refuses.
    pub below: u16,
    /// What else is worth knowing.
    pub note: Option<String>,
    /// Where this was read or measured.
    pub source: String,
}

/// A name that `TORCH_CUDA_ARCH_LIST` takes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ArchName {
    /// `Pascal`
    pub name: String,
    /// What torch makes of it: `6.1+PTX` is both results.
    #[serde(deserialize_with = "codes")]
    pub arches: Vec<Code>,
    /// Where this was read or measured.
    pub source: String,
}

/// The architectures inside official wheels of torch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TorchWheel {
    /// The first release of torch.
    #[serde(deserialize_with = "version")]
    pub since: Version,
    /// The last release of torch; none where no later one was seen to differ.
    #[serde(default, deserialize_with = "optional_version")]
    pub last: Option<Version>,
    /// The toolkits that the wheels were built with; empty where the source does not say.
    #[serde(default)]
    pub cuda: Vec<Toolkit>,
    /// The platform of the wheels.
    pub platform: Platform,
    /// The architectures with machine code.
    pub arches: Vec<Arch>,
    /// The architectures with PTX.
    #[serde(default)]
    pub ptx: Vec<Arch>,
    /// What else is worth knowing.
    pub note: Option<String>,
    /// Where this was read or measured.
    pub source: String,
}

/// The platform of a wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Platform {
    /// Linux on x86-64.
    #[serde(rename = "linux-x86-64")]
    LinuxX86,
    /// Linux on aarch64.
    #[serde(rename = "linux-aarch64")]
    LinuxAarch64,
    /// Windows on x86-64.
    #[serde(rename = "windows-x86-64")]
    WindowsX86,
    /// x86-64; the source does not say which system.
    #[serde(rename = "any-x86-64")]
    AnyX86,
}

/// Whether a toolkit lies between two, each of which may be open.
pub(super) fn spans(since: Option<Toolkit>, last: Option<Toolkit>, toolkit: Toolkit) -> bool {
    since.is_none_or(|since| since <= toolkit) && last.is_none_or(|last| toolkit <= last)
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Version, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}

fn optional_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Version>, D::Error> {
    version(deserializer).map(Some)
}

fn codes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Code>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let codes: Result<Vec<Vec<Code>>, _> = texts.iter().map(|text| parse_codes(text)).collect();
    codes.map(|codes| codes.concat()).map_err(de::Error::custom)
}
