//! Finding an architecture by what people type: a GPU's name, or a number that is none.

use crate::engine::arch::{Arch, Variant};

use super::Catalogue;

/// A GPU, named as the catalogue does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gpu<'a> {
    /// `RTX 5090`.
    pub name: &'a str,
    /// Its architecture.
    pub arch: Arch,
}

/// What a name may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuMatch<'a> {
    /// This GPU.
    One(Gpu<'a>),
    /// One of these, and they do not share an architecture.
    Several(Vec<Gpu<'a>>),
    /// None; these are spelled alike, the likeliest first.
    Unknown(Vec<Gpu<'a>>),
}

/// How many likely names are offered.
const OFFERED: usize = 3;

impl Catalogue {
    /// Finds a GPU by its name or by an end of it with a number: `RTX 5070 Ti`, `rtx5090`, `5090`, `NVIDIA GeForce RTX 5090`.
    /// Upper case, blanks and hyphens do not matter.
    pub fn find_gpu(&self, name: &str) -> GpuMatch<'_> {
        let wanted = squeezed(name);
        let ending: Vec<Gpu<'_>> =
            self.gpus().filter(|gpu| endings(gpu.name).any(|ending| ending == wanted)).collect();
        let exact: Vec<Gpu<'_>> = ending.iter().filter(|gpu| squeezed(gpu.name) == wanted).copied().collect();
        let best = if exact.is_empty() { &ending } else { &exact };
        match best.first() {
            None => GpuMatch::Unknown(self.spelled_like(&wanted)),
            Some(gpu) if best.iter().all(|other| other.arch == gpu.arch) => GpuMatch::One(*gpu),
            Some(_) => GpuMatch::Several(ending),
        }
    }

    /// The architectures that someone may have meant by a text that is none: 121 and 120 for `125`. Nearest first.
    pub fn nearest_arches(&self, text: &str) -> Vec<Arch> {
        let text = text.trim().to_lowercase();
        let text = text.trim_start_matches("sm_").trim_start_matches("compute_");
        let mut near: Vec<(usize, Arch)> = match text.parse::<Arch>() {
            Ok(meant) => self.same_kind(meant).map(|arch| (gap(meant, arch), arch)).collect(),
            Err(_) => Vec::new(),
        };
        near.retain(|(gap, _)| *gap <= 20);
        if near.is_empty() {
            near =
                self.same_kind(Arch::plain(0)).filter_map(|arch| Some((typos(text, arch)?, arch))).collect();
        }
        near.sort_by_key(|(gap, arch)| (*gap, std::cmp::Reverse(arch.number)));
        near.into_iter().map(|(_, arch)| arch).take(OFFERED).collect()
    }

    /// The architectures of the same variant, and the plain ones.
    fn same_kind(&self, meant: Arch) -> impl Iterator<Item = Arch> {
        self.arches()
            .map(|row| row.arch)
            .filter(move |arch| arch.variant == Variant::Plain || arch.variant == meant.variant)
    }

    fn gpus(&self) -> impl Iterator<Item = Gpu<'_>> {
        self.arches().flat_map(|row| row.gpus.iter().map(|name| Gpu { name, arch: row.arch }))
    }

    fn spelled_like(&self, wanted: &str) -> Vec<Gpu<'_>> {
        let limit = (wanted.len() / 3).clamp(1, 2);
        let mut near: Vec<(usize, Gpu<'_>)> = self
            .gpus()
            .filter_map(|gpu| {
                let gap = endings(gpu.name).map(|ending| strsim::osa_distance(&ending, wanted)).min()?;
                (gap <= limit && gap < wanted.len()).then_some((gap, gpu))
            })
            .collect();
        near.sort_by_key(|(gap, gpu)| (*gap, std::cmp::Reverse(gpu.arch)));
        near.into_iter().map(|(_, gpu)| gpu).take(OFFERED).collect()
    }
}

/// Small letters and digits alone, without the maker's names in front.
fn squeezed(name: &str) -> String {
    let letters: String = name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let mut rest = letters.as_str();
    for maker in ["nvidia", "geforce", "tesla"] {
        rest = rest.strip_prefix(maker).unwrap_or(rest);
    }
    rest.to_string()
}

/// A name and its ends that say which one it is: `rtx5070ti` and `5070ti`, not `ti`.
fn endings(name: &str) -> impl Iterator<Item = String> {
    let ends = name.match_indices(' ').map(|(at, _)| squeezed(&name[at..]));
    std::iter::once(squeezed(name)).chain(ends.filter(|end| end.contains(|c: char| c.is_ascii_digit())))
}

/// How far apart two numbers are; one without the wanted `a` or `f` is a little farther.
fn gap(meant: Arch, arch: Arch) -> usize {
    usize::from(meant.number.abs_diff(arch.number)) * 2 + usize::from(meant.variant != arch.variant)
}

/// The distance to a number that was begun (`12`) or mistyped in one place (`12O`).
fn typos(text: &str, arch: Arch) -> Option<usize> {
    let name = arch.to_string();
    match strsim::osa_distance(text, &name) {
        _ if text.len() == 2 && name.starts_with(text) => Some(0),
        1 if text.len() >= 3 => Some(1),
        _ => None,
    }
}
