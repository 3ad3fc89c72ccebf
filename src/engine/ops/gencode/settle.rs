//! The arch law: among the toolkits that the source accepts, exactly those that know a wanted architecture
//! compile it, and no given toolkit is asked for an architecture that it refuses.

use super::guard::Bounds;
use super::place::{Placement, place};
use super::tree::{Block, Defect, Entry, Fate};
use super::worlds::{Presence, World, Worlds};
use super::{ArchWish, GencodeError, GencodeOp};
use crate::engine::arch::{Code, Gencode};
use crate::engine::catalogue::Catalogue;
use crate::engine::toolkit::Toolkit;

/// What the law is settled for.
#[derive(Debug, Clone, Copy)]
pub struct Law<'a> {
    /// How the source writes entries and guards.
    pub op: &'a GencodeOp,
    /// What is wanted.
    pub wish: &'a ArchWish,
    /// The toolkits that it must build with.
    pub cuda: &'a [Toolkit],
    /// Which toolkit knows which architecture.
    pub catalogue: &'a Catalogue,
    /// The toolkits that the source accepts, and HIP.
    pub worlds: &'a Worlds,
    /// One step of indentation.
    pub step: &'a [u8],
}

/// What was done to a file, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// What changed.
    pub how: Vec<String>,
    /// What was seen and left.
    pub remarks: Vec<String>,
    /// Half-done hand edits that nobody asked about: a person should look.
    pub reported: Vec<String>,
}

impl Law<'_> {
    /// Between which toolkits nvcc takes a flag.
    pub fn bounds(&self, gencode: &Gencode) -> Bounds {
        let rows: Vec<_> = gencode.arches().filter_map(|arch| self.catalogue.arch(arch)).collect();
        let last = rows.iter().filter_map(|row| row.last.map(|last| (last, row.arch))).min();
        Bounds {
            first: rows.iter().filter_map(|row| row.since).max(),
            last: last.map(|(last, _)| last),
            gone: last.and_then(|(_, arch)| self.catalogue.first_refusing(arch)),
        }
    }

    fn wants(&self, gencode: &Gencode) -> bool {
        self.wish.wanted().any(|wanted| gencode.codes.iter().any(|code| code.serves(wanted)))
    }

    /// Whether an entry that is reached in the worlds `beyond` its own is ours to settle: it is wanted, or a given
    /// toolkit is among them.
    pub fn concerns(&self, gencode: &Gencode, beyond: &[usize]) -> bool {
        self.wants(gencode) || self.given().any(|given| beyond.contains(&given))
    }

    /// The places of the given toolkits among the worlds.
    fn given(&self) -> impl Iterator<Item = usize> + '_ {
        self.cuda.iter().filter_map(|toolkit| self.worlds.position(World::Cuda(*toolkit)))
    }
}

/// Settles a file.
pub fn settle(root: &mut Block, law: &Law<'_>) -> Result<Settled, GencodeError> {
    let mut settled = Settled::default();
    drop_unwanted(root, law, &mut settled);
    let mut homeless = repair(root, law, &mut settled);
    homeless.extend(take_out_misplaced(root, law, &mut settled));
    homeless.extend(missing(root, law, &mut settled));
    super::place::wrap(root, law, &mut settled)?;
    for entry in unique(homeless) {
        place(root, entry, law)?;
    }
    remark_on_leaks(root, law, &mut settled);
    match root.entries().iter().find(|(entry, _)| entry.is_frozen() && entry.fate != Fate::Stays) {
        Some((entry, _)) => Err(GencodeError::SharedLine { line: entry.line() }),
        None => Ok(settled),
    }
}

fn drop_unwanted(root: &mut Block, law: &Law<'_>, settled: &mut Settled) {
    let mut dropped = Vec::new();
    root.visit_mut(&mut |entry, _| {
        let kept: Vec<Code> =
            entry.gencode.codes.iter().copied().filter(|code| law.wish.keeps(*code)).collect();
        if kept.len() == entry.gencode.codes.len() {
            return;
        }
        dropped.extend(entry.gencode.codes.iter().copied().filter(|code| !law.wish.keeps(*code)));
        let virtual_arch = entry.gencode.virtual_arch;
        entry.fate =
            if kept.is_empty() { Fate::Goes } else { Fate::Becomes(Gencode { virtual_arch, codes: kept }) };
    });
    if !dropped.is_empty() {
        settled.how.push(format!("drops {}", labels(dropped)));
    }
}

/// Takes out half-done entries of wanted architectures; reports the others.
fn repair(root: &mut Block, law: &Law<'_>, settled: &mut Settled) -> Vec<Placement> {
    let mut homeless = Vec::new();
    root.visit_mut(&mut |entry, _| {
        let Some(defect) = entry.defect.filter(|_| entry.fate == Fate::Stays) else { return };
        let (line, gencode) = (entry.line(), entry.gencode.clone());
        let fault = match defect {
            Defect::ValueAlone => format!("line {line} adds `{gencode}` without `-gencode`"),
            Defect::OneString => format!("line {line} adds `-gencode {gencode}` as one word"),
        };
        if law.wants(&gencode) {
            entry.fate = Fate::Goes;
            settled.how.push(format!("repairs a hand edit: {fault}, which nvcc refuses"));
            homeless.push(Placement { gencode, origin: None });
        } else {
            settled.reported.push(format!("{fault}; nvcc refuses that"));
        }
    });
    homeless
}

/// Takes out entries that come too early or reach hipcc, where they are wanted or a given toolkit refuses them;
/// and repetitions of wanted ones.
fn take_out_misplaced(root: &mut Block, law: &Law<'_>, settled: &mut Settled) -> Vec<Placement> {
    let mut homeless: Vec<Placement> = Vec::new();
    let mut seen: Vec<(Gencode, Presence)> = Vec::new();
    root.visit_mut(&mut |entry, presence| {
        if !entry.counts() {
            return;
        }
        let gencode = entry.settled().clone();
        let wanted = law.wants(&gencode);
        if comes_too_early(&gencode, presence, law) {
            let note =
                format!("moves {} from line {} under its guard", labels(gencode.codes.clone()), entry.line());
            settled.how.push(note);
            homeless.push(Placement { gencode, origin: entry.origin.clone() });
            entry.fate = Fate::Goes;
        } else if let Some((_, first)) = seen.iter().find(|(other, _)| *other == gencode) {
            if wanted && first.same_toolkits(presence) {
                settled.how.push(format!("removes the repetition in line {}", entry.line()));
                entry.fate = Fate::Goes;
            }
        } else {
            seen.push((gencode, presence.clone()));
        }
    });
    homeless
}

/// Whether an entry that concerns us is reached with a toolkit that does not know it yet, or by hipcc.
fn comes_too_early(gencode: &Gencode, presence: &Presence, law: &Law<'_>) -> bool {
    let beyond = presence.beyond(&law.worlds.takes(law.catalogue, gencode));
    if !law.concerns(gencode, &beyond) {
        return false;
    }
    let wanted = law.wants(gencode);
    let first = law.bounds(gencode).first;
    let mut worlds = law.worlds.iter().enumerate().filter(|(at, _)| beyond.contains(at));
    worlds.any(|(_, world)| match world {
        World::Cuda(toolkit) => first.is_some_and(|first| toolkit < first),
        World::Hip => wanted && law.op.has_hip(),
    })
}

/// Wanted results that no entry gives, or not for a given toolkit.
fn missing(root: &mut Block, law: &Law<'_>, settled: &mut Settled) -> Vec<Placement> {
    let mut homeless = Vec::new();
    for code in law.wish.wanted() {
        let gencode = Gencode::of(code);
        let takes = law.worlds.takes(law.catalogue, &gencode);
        let none = takes.and(&takes.negated());
        let serving = root.entries().into_iter().filter(|(entry, _)| serves(entry, code)).collect::<Vec<_>>();
        let present = serving.iter().fold(none, |all, (_, presence)| all.or(presence));
        let late = takes.beyond(&present);
        let line = serving.first().map_or(0, |(entry, _)| entry.line());
        if !serving.is_empty() && !law.given().any(|given| late.contains(&given)) {
            settled.remarks.extend(late_remark(code, &late, line, law));
            continue;
        }
        root.visit_mut(&mut |entry, _| {
            if entry.counts() && *entry.settled() == gencode {
                entry.fate = Fate::Goes;
            }
        });
        settled.how.push(format!("adds {}{}", code.label(), span(law.bounds(&gencode), law.worlds)));
        homeless.push(Placement { gencode, origin: None });
    }
    homeless
}

fn serves(entry: &Entry, wanted: Code) -> bool {
    entry.counts() && entry.settled().codes.iter().any(|code| code.serves(wanted))
}

fn late_remark(code: Code, late: &[usize], line: usize, law: &Law<'_>) -> Option<String> {
    let toolkits: Vec<String> = law
        .worlds
        .iter()
        .enumerate()
        .filter_map(|(at, world)| match world {
            World::Cuda(toolkit) if late.contains(&at) => Some(toolkit.to_string()),
            _ => None,
        })
        .collect();
    (!toolkits.is_empty()).then(|| {
        format!(
            "line {line} compiles {} later than it could: CUDA {} knows it too",
            code.label(),
            toolkits.join(", ")
        )
    })
}

fn remark_on_leaks(root: &Block, law: &Law<'_>, settled: &mut Settled) {
    if !law.op.has_hip() {
        return;
    }
    root.visit(&mut |entry, presence| {
        if entry.counts() && entry.origin.is_some() && presence.reaches_hip() {
            settled.reported.push(format!("line {} gives `-gencode` to hipcc too", entry.line()));
        }
    });
}

fn unique(placements: Vec<Placement>) -> Vec<Placement> {
    let mut unique: Vec<Placement> = Vec::new();
    for placement in placements {
        match unique.iter_mut().find(|other| other.gencode == placement.gencode) {
            Some(other) => other.origin = other.origin.take().or(placement.origin),
            None => unique.push(placement),
        }
    }
    unique.sort_by_key(|placement| placement.gencode.order());
    unique
}

/// Names of results, ascending, each once.
pub fn labels(mut codes: Vec<Code>) -> String {
    codes.sort();
    codes.dedup();
    codes.iter().map(Code::label).collect::<Vec<_>>().join(" ")
}

/// ` from CUDA 12.8 on`, ` up to CUDA 12.9`; nothing where every toolkit that the source accepts knows it.
pub fn span(bounds: Bounds, worlds: &Worlds) -> String {
    let floor = worlds.iter().next();
    let first = bounds.first.filter(|first| matches!(floor, Some(World::Cuda(floor)) if *first > floor));
    match (first, bounds.last) {
        (None, None) => String::new(),
        (Some(first), None) => format!(" from CUDA {first} on"),
        (None, Some(last)) => format!(" up to CUDA {last}"),
        (Some(first), Some(last)) => format!(" from CUDA {first} to {last}"),
    }
}
