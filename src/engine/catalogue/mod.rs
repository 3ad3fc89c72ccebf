//! What NVIDIA and PyTorch decide: which toolkit knows which architecture, which GPU has it, and what compilers,
//! drivers and C++ standards go together. All of it is data (`patchsets/catalogue`); this reads it and answers.

mod faults;
mod gpus;
mod rows;

use std::sync::LazyLock;

use pep440_rs::Version;
use serde::de::DeserializeOwned;

use crate::engine::arch::{Arch, Code, Gencode, Variant};
use crate::engine::toolkit::Toolkit;

pub use gpus::{Gpu, GpuMatch};
use rows::{ArchFile, ToolkitFile, TorchFile, spans};
pub use rows::{
    ArchName, ArchRow, CxxStandard, DriverFloor, Drivers, MsvcRange, Platform, ToolkitAdvisory, ToolkitRow,
    TorchArches, TorchGcc, TorchWheel,
};

/// The facts of NVIDIA and PyTorch.
#[derive(Debug, Clone)]
pub struct Catalogue {
    arches: Vec<ArchRow>,
    toolkits: Vec<ToolkitRow>,
    newest: Toolkit,
    driver_floors: Vec<DriverFloor>,
    advisories: Vec<ToolkitAdvisory>,
    cxx_standards: Vec<CxxStandard>,
    torch_arches: Vec<TorchArches>,
    torch_gccs: Vec<TorchGcc>,
    torch_wheels: Vec<TorchWheel>,
    arch_names: Vec<ArchName>,
}

/// Why a catalogue cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CatalogueError {
    /// A file says something that no catalogue says: line, caret and the valid keys are in `cause`.
    #[error("catalogue/{file}: {cause}")]
    Syntax {
        /// The name of the file.
        file: &'static str,
        /// What the TOML reader says.
        cause: Box<toml::de::Error>,
    },
    /// Rows that contradict each other.
    #[error("catalogue/{file}: {what}")]
    Contradiction {
        /// The name of the file.
        file: &'static str,
        /// The row, and what is wrong with it.
        what: String,
    },
}

static SHIPPED: LazyLock<Catalogue> = LazyLock::new(|| {
    Catalogue::parse(
        include_str!("../../../patchsets/catalogue/arches.toml"),
        include_str!("../../../patchsets/catalogue/toolkits.toml"),
        include_str!("../../../patchsets/catalogue/torch.toml"),
    )
    .unwrap_or_else(|error| panic!("the shipped catalogue is broken: {error}"))
});

impl Catalogue {
    /// The catalogue inside this program.
    pub fn shipped() -> &'static Catalogue {
        &SHIPPED
    }

    /// Reads a catalogue from the text of its three files.
    pub fn parse(arches: &str, toolkits: &str, torch: &str) -> Result<Self, CatalogueError> {
        let arches: ArchFile = read("arches.toml", arches)?;
        let toolkits: ToolkitFile = read("toolkits.toml", toolkits)?;
        let torch: TorchFile = read("torch.toml", torch)?;
        let newest = faults::newest(&toolkits)?;
        faults::check(&arches, &toolkits, &torch)?;
        Ok(Self {
            arches: arches.arch,
            toolkits: toolkits.toolkit,
            newest,
            driver_floors: toolkits.driver_floor,
            advisories: toolkits.advisory,
            cxx_standards: torch.cxx_standard,
            torch_arches: torch.arch_list,
            torch_gccs: torch.gcc,
            torch_wheels: torch.wheel,
            arch_names: torch.arch_name,
        })
    }

    /// The toolkits, ascending.
    pub fn toolkits(&self) -> &[ToolkitRow] {
        &self.toolkits
    }

    /// The newest toolkit.
    pub fn newest(&self) -> Toolkit {
        self.newest
    }

    /// The release that a toolkit is taken for: itself, or the newest where it is newer than the catalogue.
    pub fn acts_as(&self, toolkit: Toolkit) -> Toolkit {
        toolkit.min(self.newest)
    }

    /// The facts about a toolkit: its own row, or the newest row where it is newer than the catalogue.
    pub fn toolkit(&self, toolkit: Toolkit) -> Option<&ToolkitRow> {
        let toolkit = self.acts_as(toolkit);
        self.toolkits.iter().find(|row| row.version == toolkit)
    }

    /// The facts about an architecture.
    pub fn arch(&self, arch: Arch) -> Option<&ArchRow> {
        self.arches.iter().find(|row| row.arch == arch)
    }

    /// The architectures, ascending; `a` and `f` variants are rows of their own.
    pub fn arches(&self) -> impl Iterator<Item = &ArchRow> {
        self.arches.iter()
    }

    /// An architecture to offer for these toolkits, all of which take it, and for a release of torch: 120, else the
    /// newest; none where they take none together.
    pub fn best_for(&self, cuda: &[Toolkit], torch: Option<&Version>) -> Option<Arch> {
        let is_taken = |arch: &Arch| {
            let by_torch = torch.is_none_or(|torch| self.torch_takes(torch, *arch));
            by_torch && cuda.iter().all(|toolkit| self.knows(*toolkit, *arch))
        };
        let plain = self.arches.iter().map(|row| row.arch).filter(|arch| arch.variant == Variant::Plain);
        let taken: Vec<Arch> = plain.filter(is_taken).collect();
        taken.iter().copied().find(|arch| arch.number == 120).or(taken.last().copied())
    }

    /// Whether a toolkit knows an architecture. A toolkit newer than the catalogue acts as its newest.
    pub fn knows(&self, toolkit: Toolkit, arch: Arch) -> bool {
        self.arch(arch).is_some_and(|row| spans(row.since, row.last, self.acts_as(toolkit)))
    }

    /// Whether nvcc of a toolkit takes a `-gencode` value and makes what it asks for.
    pub fn takes(&self, toolkit: Toolkit, gencode: &Gencode) -> bool {
        gencode.arches().all(|arch| self.knows(toolkit, arch))
            && gencode.codes.iter().all(|code| self.compiles(gencode.virtual_arch, *code))
    }

    /// Whether intermediate code of one architecture becomes the code asked for.
    ///
    /// PTX is kept only as it is. Of a plain architecture comes machine code for it and all later ones, of an `f`
    /// for its family, of an `a` for itself alone. (nvcc 13 lets `compute_90a` with `sm_100a` pass; ptxas then
    /// refuses it.)
    fn compiles(&self, from: Arch, code: Code) -> bool {
        let to = code.arch();
        match (code, from.variant) {
            (Code::Ptx(_), _) | (_, Variant::Specific) => to == from,
            (_, Variant::Plain) => to.number >= from.number,
            (_, Variant::Family) => {
                self.arch(from).is_some_and(|row| row.family.iter().any(|chip| chip.number == to.number))
            }
        }
    }

    /// The first toolkit that knows an architecture no more; none where the newest does, or never did.
    pub fn first_refusing(&self, arch: Arch) -> Option<Toolkit> {
        let last = self.arch(arch)?.last?;
        self.toolkits.iter().map(|row| row.version).find(|version| *version > last)
    }

    /// The first toolkit that writes, and whose driver reads, a version of PTX: CUDA 12.8 for 8.7.
    pub fn toolkit_of_ptx(&self, version: Toolkit) -> Option<Toolkit> {
        self.toolkits.iter().find(|row| row.ptx.is_some_and(|ptx| ptx >= version)).map(|row| row.version)
    }

    /// The driver that machine code of a toolkit needs at least.
    pub fn driver_floor(&self, toolkit: Toolkit) -> Option<&DriverFloor> {
        self.driver_floors.iter().find(|row| row.major == self.acts_as(toolkit).major)
    }

    /// The known traps of toolkits.
    pub fn advisories(&self) -> &[ToolkitAdvisory] {
        &self.advisories
    }

    /// The C++ standard that a release of torch demands (`17`); none where it demands nothing known.
    ///
    /// A development build of 2.14 counts as 2.14.
    pub fn cxx_standard(&self, torch: &Version) -> Option<u16> {
        let torch = torch.only_release();
        self.cxx_standards.iter().rfind(|row| row.since <= torch).map(|row| row.standard)
    }

    /// Whether a release of torch lets `TORCH_CUDA_ARCH_LIST` name an architecture; of older releases nothing is known,
    /// and they are taken to.
    pub fn torch_takes(&self, torch: &Version, arch: Arch) -> bool {
        let torch = torch.only_release();
        let row = self.torch_arches.iter().rfind(|row| row.since <= torch);
        row.is_none_or(|row| row.arches.contains(&arch))
    }

    /// The newest release of torch of which anything is known.
    pub fn newest_torch(&self) -> Option<&Version> {
        let listed = self.torch_arches.iter().map(|row| &row.since);
        let known = listed.chain(self.cxx_standards.iter().map(|row| &row.since));
        let wheels = self.torch_wheels.iter().map(|row| row.last.as_ref().unwrap_or(&row.since));
        known.chain(wheels).max()
    }

    /// The first release of torch that is known to; `None`: none is.
    pub fn torch_since(&self, arch: Arch) -> Option<&Version> {
        self.torch_arches.iter().find(|row| row.arches.contains(&arch)).map(|row| &row.since)
    }

    /// The gcc that torch refuses with a toolkit; none where torch has no row for it.
    pub fn torch_gcc(&self, toolkit: Toolkit) -> Option<&TorchGcc> {
        self.torch_gccs.iter().find(|row| spans(Some(row.since), Some(row.last), toolkit))
    }

    /// What torch makes of a name such as `Pascal`; none where it knows no such name.
    pub fn named(&self, name: &str) -> Option<&[Code]> {
        self.arch_names.iter().find(|row| row.name == name).map(|row| row.arches.as_slice())
    }

    /// What official wheels of torch hold.
    pub fn torch_wheels(&self) -> &[TorchWheel] {
        &self.torch_wheels
    }
}

fn read<T: DeserializeOwned>(file: &'static str, text: &str) -> Result<T, CatalogueError> {
    toml::from_str(text).map_err(|cause| CatalogueError::Syntax { file, cause: Box::new(cause) })
}

#[cfg(test)]
mod tests;
