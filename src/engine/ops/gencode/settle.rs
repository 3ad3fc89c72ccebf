//! The arch law: among the toolkits that the source accepts, exactly those that know a wanted architecture
//! compile it, and no given toolkit is asked for an architecture that it refuses.

use super::guard::Bounds;
use super::place::{Placement, apart_from_hip, home, part_alternatives, part_unknown, place};
use super::tree::{Block, Defect, Entry, Fate, Origin};
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
    /// One step of indentation, where no guard stands beside.
    pub step: &'a [u8],
    /// Whether a HIP build must not see what is wanted: the file tells them apart.
    pub hip: bool,
    /// Where the block is reached that hipcc does not reach.
    pub apart: Option<&'a Presence>,
    /// Whether what is wanted is added.
    pub adds: bool,
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

    /// Whether an entry gives something that is wanted.
    fn wants(&self, gencode: &Gencode) -> bool {
        self.wish.wanted().any(|wanted| gencode.codes.iter().any(|code| code.serves(wanted)))
    }

    /// Whether an entry that is reached in the worlds `beyond` its own is ours to settle: it is wanted, or a given
    /// toolkit is among them.
    pub fn concerns(&self, gencode: &Gencode, beyond: &[usize]) -> bool {
        self.wants(gencode) || self.given().any(|given| beyond.contains(&given))
    }

    /// The toolkits in question that take something which is wanted.
    fn needed(&self) -> Presence {
        let all = self.wish.wanted().fold(self.worlds.nowhere(), |all, code| {
            all.or(&self.worlds.takes(self.catalogue, &Gencode::of(code)))
        });
        let is_given = |world| match world {
            World::Cuda(toolkit) => self.cuda.is_empty() || self.cuda.contains(&toolkit),
            World::Hip => false,
        };
        all.and(&self.worlds.presence(|world| super::worlds::Truth::of(is_given(world))))
    }

    /// The places of the given toolkits among the worlds.
    fn given(&self) -> impl Iterator<Item = usize> + '_ {
        self.cuda.iter().filter_map(|toolkit| self.worlds.position(World::Cuda(*toolkit)))
    }
}

/// Settles a file: each of its lists by itself.
pub fn settle(root: &mut Block, law: &Law<'_>) -> Result<Settled, GencodeError> {
    let mut settled = Settled::default();
    if law.hip {
        part_alternatives(root);
    }
    if law.op.any {
        part_unknown(root, &law.needed());
    }
    settle_lists(root, law, &mut settled)?;
    for said in [&mut settled.how, &mut settled.remarks, &mut settled.reported] {
        let mut seen: Vec<String> = Vec::new();
        said.retain(|text| {
            !seen.contains(text) && {
                seen.push(text.clone());
                true
            }
        });
    }
    let left = root.entries().into_iter().any(|(entry, reached)| entry.counts() && !reached.nowhere());
    if left || law.op.others_stay { Ok(settled) } else { Err(GencodeError::NothingLeft) }
}

fn settle_lists(root: &mut Block, law: &Law<'_>, settled: &mut Settled) -> Result<(), GencodeError> {
    let mut own = root.take_own_lists();
    own.iter_mut().try_for_each(|list| settle_lists(list, law, settled))?;
    let entries = root.entries();
    let reached = match own.is_empty() {
        true => entries.iter().any(|(_, presence)| !presence.nowhere()),
        false => entries.iter().any(|(_, presence)| !presence.no_toolkit()),
    };
    if reached {
        // Where its branches are lists of their own, what is left may be for other toolkits alone.
        let asked = entries.iter().any(|(_, presence)| !presence.and(&law.needed()).no_toolkit());
        let adds = !law.op.any || own.is_empty() || asked;
        settle_list(root, &Law { adds, ..*law }, settled)?;
    }
    own.into_iter().for_each(|list| root.put_back(list));
    Ok(())
}

fn settle_list(root: &mut Block, law: &Law<'_>, settled: &mut Settled) -> Result<(), GencodeError> {
    drop_unwanted(root, law, settled);
    let apart = apart_from_hip(root);
    let law = &Law { hip: law.hip && apart.is_some(), apart: apart.as_ref(), ..*law };
    let mut homeless = repair(root, law, settled);
    homeless.extend(take_out_misplaced(root, law, settled));
    take_out_repetitions(root, law, settled);
    let mut homeless = unique(uncovered(root, homeless, law, settled));
    homeless.extend(missing(root, &homeless, law, settled));
    super::place::wrap(root, law, settled)?;
    for entry in unique(homeless) {
        place(root, entry, law)?;
    }
    remark_on_leaks(root, law, settled);
    match root.entries().iter().find(|(entry, _)| entry.is_frozen() && entry.fate != Fate::Stays) {
        Some((entry, _)) => Err(GencodeError::SharedLine { line: entry.line() }),
        None => Ok(()),
    }
}

/// Takes out hand edits that stand at a wrong place, and says so.
pub fn clean(root: &mut Block, law: &Law<'_>) -> Vec<String> {
    let mut settled = Settled::default();
    let apart = apart_from_hip(root);
    let law = &Law { hip: law.hip && apart.is_some(), apart: apart.as_ref(), ..*law };
    repair(root, law, &mut settled);
    let moved = take_out_misplaced(root, law, &mut settled);
    settled.how.extend(moved.iter().map(|placement| placement.moved()));
    settled.how
}

fn drop_unwanted(root: &mut Block, law: &Law<'_>, settled: &mut Settled) {
    let mut dropped = Vec::new();
    root.visit_mut(&mut |entry, presence| {
        if presence.nowhere() {
            return;
        }
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
    root.visit_mut(&mut |entry, presence| {
        let Some(defect) = entry.defect.filter(|_| entry.fate != Fate::Goes && !presence.nowhere()) else {
            return;
        };
        let (line, gencode) = (entry.line(), entry.settled().clone());
        let fault = match defect {
            Defect::ValueAlone => format!("line {line} adds `{gencode}` without `-gencode`"),
            Defect::OneString => format!("line {line} adds `-gencode {gencode}` as one word"),
        };
        if law.wants(&gencode) {
            entry.fate = Fate::Goes;
            settled.how.push(format!("repairs a hand edit: {fault}, which nvcc refuses"));
            homeless.push(Placement { gencode, origin: None, fate: Fate::Stays, line });
        } else {
            settled.reported.push(format!("{fault}; nvcc refuses that"));
        }
    });
    homeless
}

/// Takes out entries that come too early or reach hipcc, where they are wanted or a given toolkit refuses them.
fn take_out_misplaced(root: &mut Block, law: &Law<'_>, settled: &mut Settled) -> Vec<Placement> {
    let mut homeless: Vec<Placement> = Vec::new();
    root.visit_mut(&mut |entry, presence| {
        if !entry.counts() || presence.nowhere() {
            return;
        }
        let gencode = entry.settled().clone();
        if is_futile(&gencode, presence, law) && !law.wants(&gencode) {
            let names = labels(gencode.codes.clone());
            let why = "which no toolkit takes that gets there";
            settled.how.push(format!("removes {names} from line {}, {why}", entry.line()));
            entry.fate = Fate::Goes;
        } else if is_futile(&gencode, presence, law) || comes_too_early(&gencode, presence, law) {
            let fate = std::mem::replace(&mut entry.fate, Fate::Goes);
            homeless.push(Placement { gencode, origin: entry.origin.clone(), fate, line: entry.line() });
        }
    });
    homeless
}

/// Takes out wanted entries that others make superfluous: first those that need a guard, then the later ones.
fn take_out_repetitions(root: &mut Block, law: &Law<'_>, settled: &mut Settled) {
    struct Useful {
        gencode: Gencode,
        context: usize,
        presence: Presence,
        right: bool,
        place: usize,
    }
    let mut all: Vec<Useful> = Vec::new();
    root.visit_blocks(&mut |entry, block| {
        let gencode = entry.settled().clone();
        if entry.counts() && law.wants(&gencode) && !block.presence.nowhere() {
            let takes = law.worlds.takes(law.catalogue, &gencode);
            let right = block.presence.only_toolkits_of(&takes);
            let presence = block.presence.and(&takes);
            let place = entry.origin.as_ref().map_or(0, |origin| origin.span.start);
            all.push(Useful { gencode, context: block.context, presence, right, place });
        }
    });
    all.sort_by_key(|one| (one.right, std::cmp::Reverse(one.place)));
    let mut at = 0;
    let mut superfluous: Vec<usize> = Vec::new();
    while let Some(one) = all.get(at) {
        let others = all.iter().enumerate().filter(|(index, other)| {
            *index != at && other.gencode == one.gencode && other.context == one.context
        });
        let others = others.fold(law.worlds.nowhere(), |sum, (_, other)| sum.or(&other.presence));
        if one.presence.is_covered_by(&others) {
            superfluous.push(all.remove(at).place);
        } else {
            at += 1;
        }
    }
    root.visit_mut(&mut |entry, _| {
        if entry.origin.as_ref().is_some_and(|origin| superfluous.contains(&origin.span.start)) {
            settled.how.push(repetition(entry.line()));
            entry.fate = Fate::Goes;
        }
    });
}

fn repetition(line: usize) -> String {
    format!("removes the repetition in line {line}")
}

/// Entries that were taken out and are not there a second time, right placed. What they replace goes.
fn uncovered(
    root: &mut Block,
    homeless: Vec<Placement>,
    law: &Law<'_>,
    settled: &mut Settled,
) -> Vec<Placement> {
    let mut uncovered = Vec::new();
    for placement in homeless {
        let takes = law.worlds.takes(law.catalogue, &placement.gencode);
        let same = |entry: &Entry| entry.counts() && *entry.settled() == placement.gencode;
        let present = certainly(root, &takes, law, same);
        let repaired = placement.origin.is_none();
        if takes.beyond(&present).is_empty() {
            settled.how.extend((!repaired).then(|| repetition(placement.line)));
            continue;
        }
        root.visit_mut(&mut |entry, presence| {
            if same(entry) && !presence.nowhere() {
                entry.fate = Fate::Goes;
            }
        });
        settled.how.extend((!repaired).then(|| placement.moved()));
        uncovered.push(placement);
    }
    uncovered
}

/// Where some entry of a kind is reached as certainly as the block that new ones go to.
fn certainly(root: &Block, takes: &Presence, law: &Law<'_>, kind: impl Fn(&Entry) -> bool) -> Presence {
    let Some(home) = home(root, takes, law) else { return law.worlds.nowhere() };
    let within: Vec<&Entry> = home.entries().into_iter().map(|(entry, _)| entry).collect();
    let beside = |entry: &Entry| kind(entry) && !within.iter().any(|other| std::ptr::eq(*other, entry));
    let entries = root.entries().into_iter().filter(|(entry, _)| beside(entry));
    let sure = home.surely(&kind, &law.worlds.nowhere());
    entries.fold(sure, |all, (_, presence)| all.or(&presence.where_as_certain_as(&home.presence)))
}

/// Whether an entry that concerns us is reached by no toolkit that takes it.
fn is_futile(gencode: &Gencode, presence: &Presence, law: &Law<'_>) -> bool {
    let takes = law.worlds.takes(law.catalogue, gencode);
    presence.and(&takes).no_toolkit() && law.concerns(gencode, &presence.beyond(&takes))
}

/// Whether an entry that concerns us is reached with a toolkit that does not know it yet, or by hipcc.
fn comes_too_early(gencode: &Gencode, presence: &Presence, law: &Law<'_>) -> bool {
    let takes = law.worlds.takes(law.catalogue, gencode);
    let beyond = presence.beyond(&takes);
    if !law.concerns(gencode, &beyond) {
        return false;
    }
    let wanted = law.wants(gencode) && law.apart.is_some_and(|apart| takes.beyond(apart).is_empty());
    let first = law.bounds(gencode).first;
    let mut worlds = law.worlds.iter().enumerate().filter(|(at, _)| beyond.contains(at));
    worlds.any(|(_, world)| match world {
        World::Cuda(toolkit) => first.is_some_and(|first| toolkit < first),
        World::Hip => wanted && law.hip,
    })
}

/// Wanted results that no entry gives, or not for a given toolkit.
fn missing(root: &mut Block, placed: &[Placement], law: &Law<'_>, settled: &mut Settled) -> Vec<Placement> {
    let mut homeless = Vec::new();
    for code in law.wish.wanted().filter(|code| law.adds && !law.op.elsewhere.contains(code)) {
        let gencode = Gencode::of(code);
        let takes = law.worlds.takes(law.catalogue, &gencode);
        let serving = |gencode: &Gencode| gencode.codes.iter().any(|other| other.serves(code));
        let found = certainly(root, &takes, law, |entry| entry.counts() && serving(entry.settled()));
        let coming = placed.iter().filter(|placement| serving(&placement.gencode));
        let coming = coming.map(|placement| law.worlds.takes(law.catalogue, &placement.gencode));
        let in_time = coming.filter(|presence| takes.beyond(presence).is_empty());
        let present = in_time.fold(found, |all, presence| all.or(&presence));
        let late = takes.beyond(&present);
        if !takes.and(&present).nowhere() && !law.given().any(|given| late.contains(&given)) {
            settled.remarks.extend(late_remark(root, code, &late, law));
            continue;
        }
        let origin = take_late(root, &gencode);
        let line = origin.as_ref().map_or(0, |origin| origin.line);
        settled.how.push(format!("adds {}{}", code.label(), span(law.bounds(&gencode), law.worlds)));
        homeless.push(Placement { gencode, origin, fate: Fate::Stays, line });
    }
    homeless
}

/// Takes out the entries of a value that come too late; the lines of the first are worth keeping.
fn take_late(root: &mut Block, gencode: &Gencode) -> Option<Origin> {
    let mut first = None;
    root.visit_mut(&mut |entry, presence| {
        if entry.counts() && entry.settled() == gencode && !presence.nowhere() {
            first = first.take().or(entry.origin.clone().filter(|_| entry.fate == Fate::Stays));
            entry.fate = Fate::Goes;
        }
    });
    first
}

fn late_remark(root: &Block, code: Code, late: &[usize], law: &Law<'_>) -> Option<String> {
    let serves =
        |entry: &Entry| entry.counts() && entry.settled().codes.iter().any(|other| other.serves(code));
    let entries = root.entries();
    let (entry, _) = entries.into_iter().find(|(entry, presence)| serves(entry) && !presence.nowhere())?;
    let line = entry.line();
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
    if !law.hip {
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
            Some(other) if other.origin.is_none() => *other = placement,
            Some(_) => {}
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
