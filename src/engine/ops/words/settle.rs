//! The law of lists that cannot hold a guard: wanted architectures are there, given toolkits are asked for none that
//! they refuse, and what stays keeps its order. Guards that stand around a part of a list count by evaluating them.

use pep440_rs::Version;

use crate::engine::arch::{Arch, Code, Gencode};
use crate::engine::catalogue::Catalogue;
use crate::engine::ops::gencode::ArchWish;
use crate::engine::ops::gencode::worlds::{Presence, Truth, World, Worlds};
use crate::engine::ops::one_chip;
use crate::engine::toolkit::Toolkit;

/// What a list is settled for.
#[derive(Debug, Clone, Copy)]
pub struct Law<'a> {
    /// What is wanted.
    pub wish: &'a ArchWish,
    /// The toolkits that it must build with.
    pub cuda: &'a [Toolkit],
    /// The release of PyTorch, which checks some lists.
    pub torch: Option<&'a Version>,
    /// Which toolkit knows which architecture.
    pub catalogue: &'a Catalogue,
    /// All toolkits, as guards tell them apart.
    pub worlds: &'a Worlds,
}

/// One entry of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What it compiles, one result each.
    pub parts: Vec<Gencode>,
    /// Which block holds it.
    pub block: usize,
}

/// How a list says PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ptx {
    /// By an entry of its own: `code=compute_90`, `90-virtual`.
    Apart,
    /// With the machine code: `9.0+PTX`.
    Joined,
    /// Every entry gives it: CMake's `90`.
    Implied,
    /// Not at all: `90`.
    Unsaid,
}

/// A list of architectures.
#[derive(Debug, Clone)]
pub struct List<'a> {
    /// In the order of the file.
    pub entries: Vec<Entry>,
    /// Where each block of the file is reached.
    pub blocks: &'a [Presence],
    /// The block around each.
    pub parents: Vec<usize>,
    /// The block that all of it lies in.
    pub home: usize,
    /// Blocks that the same condition for another toolkit can stand beside, and what is around each.
    pub guards: Vec<(usize, usize)>,
    /// How it says PTX.
    pub ptx: Ptx,
    /// Whether it has room for one entry only: `-arch=sm_90`.
    pub single: bool,
    /// Whether nothing else can stand there: the value of a variable.
    pub is_one: bool,
    /// Whether `-code` stands beside it, which names what is compiled.
    pub is_paired: bool,
    /// Whether PyTorch checks it.
    pub by_torch: bool,
    /// Whether CMake's own function makes flags of it, which stops at what it does not know.
    pub is_selected: bool,
    /// Whether it is a whole value, which must not become empty.
    pub is_value: bool,
    /// Its variable, where that is named for its one architecture: `GENCODE_SM60`.
    pub named_for: Option<&'a str>,
}

/// What becomes of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It is right.
    Stays,
    /// It compiles this instead.
    Becomes(Vec<Gencode>),
    /// It goes.
    Goes,
}

/// A new entry, after another one or before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    /// The neighbour, by its place among the entries.
    pub neighbour: usize,
    /// Whether it stands before the neighbour.
    pub before: bool,
    /// What it compiles.
    pub parts: Vec<Gencode>,
    /// The toolkit from which on it holds, where it gets a condition of its own beside the one of its neighbour.
    pub since: Option<Toolkit>,
}

/// A settled list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// One for each entry.
    pub fates: Vec<Fate>,
    /// In the order in which they stand in the file.
    pub additions: Vec<Addition>,
    /// What is gone, and what is new.
    pub dropped: Vec<Code>,
    /// What is new.
    pub added: Vec<Code>,
    /// What a person should look at.
    pub reported: Vec<String>,
}

/// Why an entry is refused by a given toolkit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// It knows the architecture no more.
    Gone(Toolkit),
    /// It does not know it yet.
    Early(Toolkit),
}

impl Law<'_> {
    /// Where a given toolkit gets to that refuses a part.
    fn refusal(&self, part: &Gencode, presence: &Presence) -> Option<Refusal> {
        let given = self.cuda.iter().copied().filter(|toolkit| self.reaches(presence, *toolkit));
        let refusing = given.filter(|toolkit| !self.catalogue.takes(*toolkit, part));
        let is_early = |toolkit: &Toolkit| {
            let mut since = part.arches().filter_map(|arch| self.catalogue.arch(arch)?.since);
            since.any(|since| *toolkit < since)
        };
        let (early, gone): (Vec<Toolkit>, Vec<Toolkit>) = refusing.partition(is_early);
        let gone = gone.first().map(|toolkit| Refusal::Gone(*toolkit));
        gone.or(early.first().map(|toolkit| Refusal::Early(*toolkit)))
    }

    fn is_wanted(&self, part: &Gencode) -> bool {
        self.wish.wanted().any(|wanted| part.codes.iter().any(|code| code.serves(wanted)))
    }

    /// The given toolkits that know a result, or all that do where none is given.
    fn asking(&self, code: Code) -> Presence {
        let takes = self.worlds.takes(self.catalogue, &Gencode::of(code));
        let given = self.worlds.presence(|world| match world {
            World::Cuda(toolkit) => Truth::of(self.cuda.is_empty() || self.cuda.contains(&toolkit)),
            World::Hip => Truth::No,
        });
        takes.and(&given)
    }
}

impl Entry {
    /// What it compiles.
    fn codes(&self) -> impl Iterator<Item = Code> + '_ {
        self.parts.iter().flat_map(|part| part.codes.iter().copied())
    }

    /// Where it stands in an ascending list.
    fn order(&self) -> Option<(Arch, bool)> {
        self.parts.iter().map(Gencode::order).min()
    }
}

impl List<'_> {
    /// What makes the law hold; `None` where nothing would be left. What other lists of the same name give
    /// certainly, they need not give twice.
    pub fn settle(&self, law: &Law<'_>, elsewhere: &dyn Fn(Code) -> Presence) -> Option<Settled> {
        let mut settling =
            Settling { list: self, law, settled: Settled::default(), kept: Vec::new(), lost_ptx: Vec::new() };
        if let Some(why) = self.left_to_one_chip(law) {
            let fates = vec![Fate::Stays; self.entries.len()];
            return Some(Settled { fates, reported: vec![why], ..Settled::default() });
        }
        self.entries.iter().for_each(|entry| settling.judge(entry));
        if self.single {
            settling.settle_single();
        } else if self.is_selected {
            settling.settle_selected();
        } else {
            let mut wanted: Vec<Code> = law.wish.wanted().collect();
            wanted.sort_by_key(|code| Gencode::of(*code).order());
            wanted.dedup();
            wanted.into_iter().for_each(|code| settling.want(code, &elsewhere(code)));
            settling.keep_ptx();
        }
        let settled = self.keeping_its_name(settling.settled);
        let is_dead = |entry: &Entry| self.presence(entry).is_dead(law.worlds, law.cuda);
        let mut alive =
            self.entries.iter().zip(&settled.fates).filter(|(entry, _)| !is_dead(entry)).peekable();
        let left = !settled.additions.is_empty()
            || alive.peek().is_none()
            || alive.any(|(_, fate)| *fate != Fate::Goes);
        let may_vanish = !self.is_value && !self.blocks[self.home].every_toolkit();
        let is_left = (left && !self.empties_for_one(&settled, law)) || may_vanish || self.entries.is_empty();
        is_left.then_some(settled)
    }

    /// A variable that is named for its architecture holds no other.
    fn keeping_its_name(&self, settled: Settled) -> Settled {
        let changes = settled.fates.iter().any(|fate| *fate != Fate::Stays) || !settled.additions.is_empty();
        match self.named_for.filter(|_| changes) {
            Some(name) => {
                let why = format!(
                    "`{name}` is named for its architecture: change it, and what it is used in, by hand"
                );
                Settled {
                    fates: vec![Fate::Stays; self.entries.len()],
                    reported: vec![why],
                    ..Settled::default()
                }
            }
            None => settled,
        }
    }

    /// Whether a given toolkit that compiled something would compile nothing.
    fn empties_for_one(&self, settled: &Settled, law: &Law<'_>) -> bool {
        law.cuda.iter().any(|toolkit| {
            let takes = |parts: &[Gencode]| parts.iter().any(|part| law.catalogue.takes(*toolkit, part));
            let reached = |entry: &Entry| law.reaches(self.presence(entry), *toolkit);
            let mut fates = self.entries.iter().zip(&settled.fates).filter(|(entry, _)| reached(entry));
            let had = self.entries.iter().any(|entry| reached(entry) && takes(&entry.parts));
            let added = |one: &Addition| law.reaches(&self.reach(one, law), *toolkit);
            had && !fates.any(|(_, fate)| *fate != Fate::Goes) && !settled.additions.iter().any(added)
        })
    }

    /// Why a list is left of which every entry is for one chip alone.
    fn left_to_one_chip(&self, law: &Law<'_>) -> Option<String> {
        let have: Vec<Code> = self.entries.iter().flat_map(Entry::codes).collect();
        let given = |code: Code| {
            let serving = self.entries.iter().filter(|entry| entry.codes().any(|own| own.serves(code)));
            serving.fold(law.worlds.nowhere(), |all, entry| all.or(self.presence(entry)))
        };
        let asking = |code: Code| law.asking(code).and(&self.blocks[self.home]);
        let missing = law.wish.wanted().filter(|code| !asking(*code).beyond(&given(*code)).is_empty());
        one_chip::left(&have, &missing.collect::<Vec<_>>())
    }

    fn presence(&self, entry: &Entry) -> &Presence {
        &self.blocks[entry.block]
    }

    /// Where an addition is reached.
    pub fn reach(&self, addition: &Addition, law: &Law<'_>) -> Presence {
        let block = self.entries[addition.neighbour].block;
        let Some(since) = addition.since else { return self.blocks[block].clone() };
        let around =
            self.guards.iter().find(|(guard, _)| *guard == block).map_or(block, |(_, around)| *around);
        let holds = law.worlds.presence(|world| match world {
            World::Cuda(toolkit) => Truth::of(toolkit >= since),
            World::Hip => Truth::Maybe,
        });
        self.blocks[around].and(&holds)
    }
}

pub(super) struct Settling<'a> {
    pub(super) list: &'a List<'a>,
    pub(super) law: &'a Law<'a>,
    pub(super) settled: Settled,
    /// What each entry compiles afterwards.
    pub(super) kept: Vec<Vec<Gencode>>,
    /// Entries that gave PTX which a given toolkit refuses.
    lost_ptx: Vec<usize>,
}

impl Settling<'_> {
    /// Decides what becomes of an entry.
    fn judge(&mut self, entry: &Entry) {
        let is_dead = self.list.presence(entry).is_dead(self.law.worlds, self.law.cuda);
        let parts = entry.parts.iter();
        let kept: Vec<Gencode> = match is_dead {
            true => entry.parts.clone(),
            false => parts.filter_map(|part| self.judge_part(part, entry)).collect(),
        };
        let fate = match kept.as_slice() {
            [] if !entry.parts.is_empty() => Fate::Goes,
            kept if *kept == entry.parts => Fate::Stays,
            kept => Fate::Becomes(kept.to_vec()),
        };
        self.settled.fates.push(fate);
        self.kept.push(kept);
    }

    fn judge_part(&mut self, part: &Gencode, entry: &Entry) -> Option<Gencode> {
        if part.codes.iter().any(|code| !self.law.wish.keeps(*code)) {
            self.settled.dropped.extend(&part.codes);
            return None;
        }
        let presence = self.list.presence(entry);
        match self.law.refusal(part, presence) {
            None if !self.torch_refuses(part) => return Some(part.clone()),
            Some(Refusal::Early(toolkit)) if self.law.is_wanted(part) || !presence.every_toolkit() => {
                let names = part.codes.iter().map(Code::label).collect::<Vec<_>>().join(" ");
                let fact = format!("{names} is compiled with CUDA {toolkit} too, which does not know it yet");
                self.settled.reported.push(fact);
                return Some(part.clone());
            }
            Some(_) | None => {}
        }
        // `arch=compute_52,code=sm_75`: the result is known, only its intermediate code is not.
        let direct = part.codes.first().map(|code| Gencode::of(*code)).filter(|direct| direct != part);
        if let Some(direct) = direct.filter(|direct| self.law.refusal(direct, presence).is_none()) {
            return Some(direct);
        }
        self.settled.dropped.extend(&part.codes);
        if part.codes.iter().any(|code| matches!(code, Code::Ptx(_))) {
            self.lost_ptx.push(self.kept.len());
        }
        None
    }

    /// Whether PyTorch would stop at a part of the list.
    fn torch_refuses(&self, part: &Gencode) -> bool {
        let torch = self.law.torch.filter(|_| self.list.by_torch);
        torch.is_some_and(|torch| part.arches().any(|arch| !self.law.catalogue.torch_takes(torch, arch)))
    }

    /// Whether parts give a result. PTX of the very architecture counts as its machine code: the driver translates it.
    pub(super) fn serves(&self, parts: &[Gencode], wanted: Code) -> bool {
        let implied = self.list.ptx == Ptx::Implied;
        parts.iter().flat_map(|part| &part.codes).any(|code| match (code, wanted) {
            (Code::Sass(arch), Code::Ptx(wanted)) if implied => arch.serves(wanted),
            (Code::Ptx(arch), Code::Sass(wanted)) => arch.serves(wanted),
            _ => code.serves(wanted),
        })
    }

    /// Where the list gives a result.
    fn given(&self, code: Code) -> Presence {
        let serving = self.kept.iter().zip(&self.list.entries).filter(|(parts, _)| self.serves(parts, code));
        let given = serving.map(|(_, entry)| self.list.presence(entry));
        let added = self.settled.additions.iter().filter(|addition| self.serves(&addition.parts, code));
        let added = added.map(|addition| self.list.reach(addition, self.law));
        given.cloned().chain(added).fold(self.law.worlds.nowhere(), |all, presence| all.or(&presence))
    }

    /// Sees to it that a result is given wherever it is asked for.
    fn want(&mut self, code: Code, elsewhere: &Presence) {
        let home = &self.list.blocks[self.list.home];
        let asking = self.law.asking(code).and(home);
        for _ in 0..=self.list.blocks.len() {
            let given = self.given(code).or(elsewhere);
            let satisfied = match self.law.cuda.is_empty() {
                true => !asking.and(&given).no_toolkit() || asking.no_toolkit(),
                false => asking.beyond(&given).is_empty(),
            };
            let block = if satisfied { None } else { self.block_for(code, &asking, &given) };
            if !block.is_some_and(|block| self.add_to(code, block)) {
                break;
            }
        }
        if elsewhere.no_toolkit() {
            self.want_in_each(code);
        }
    }

    /// Adds a result to a block; `false` where nothing could be done.
    pub(super) fn add_to(&mut self, code: Code, block: usize) -> bool {
        let joins = matches!((code, self.list.ptx), (Code::Ptx(_), Ptx::Joined));
        let guarded = self.guarded(code, block).filter(|_| !joins);
        if let Some(obstacle) = self.obstacle(code, block, guarded.is_some()) {
            self.settled.reported.push(format!("{} is not added: {obstacle}", code.label()));
            return false;
        }
        match guarded {
            Some(addition) => self.settled.additions.push(addition),
            None if joins => self.join_ptx(code.arch(), block),
            None => self.place(vec![Gencode::of(code)], block),
        }
        self.settled.added.push(code);
        true
    }

    /// Why a result cannot be added to a block.
    fn obstacle(&self, code: Code, block: usize, is_guarded: bool) -> Option<String> {
        let gencode = Gencode::of(code);
        if self.torch_refuses(&gencode) {
            return self.law.torch.map(|torch| format!("torch {torch} refuses it"));
        }
        let presence = &self.list.blocks[block];
        let mut given = self.law.cuda.iter().filter(|toolkit| self.law.reaches(presence, **toolkit));
        let refusing = given.find(|toolkit| !self.law.catalogue.takes(**toolkit, &gencode));
        match (refusing.filter(|_| !is_guarded), code, self.list.ptx) {
            (Some(toolkit), ..) => {
                Some(format!("CUDA {toolkit} refuses it, and the list is the same for every toolkit"))
            }
            (None, Code::Ptx(_), Ptx::Unsaid) => Some("the list cannot say it".to_string()),
            (None, ..) => None,
        }
    }

    /// A result under a condition of its own, where the file has one to go by and some toolkit that gets to the block
    /// would refuse it.
    fn guarded(&self, code: Code, block: usize) -> Option<Addition> {
        let takes = self.law.worlds.takes(self.law.catalogue, &Gencode::of(code));
        let presence = self.list.blocks[block].without_hip();
        let row = self.law.catalogue.arch(code.arch()).filter(|row| row.last.is_none())?;
        let own = self.list.guards.iter().find(|(guard, _)| *guard == block);
        let (guard, around) = own.or(self.list.guards.last())?;
        let reaches = self.list.blocks[*around].and(&takes);
        let is_needed = !presence.beyond(&takes).is_empty();
        let is_enough = presence.and(&takes).is_covered_by(&reaches);
        let neighbour = self.list.entries.iter().rposition(|entry| entry.block == *guard)?;
        let addition =
            Addition { neighbour, before: false, parts: vec![Gencode::of(code)], since: row.since };
        (row.since.is_some() && is_needed && is_enough).then_some(addition)
    }

    /// The block that the most of those who ask get to most certainly, and the fewest others.
    fn block_for(&self, code: Code, asking: &Presence, given: &Presence) -> Option<usize> {
        let takes = self.law.worlds.takes(self.law.catalogue, &Gencode::of(code));
        let score = |block: usize| {
            let presence = &self.list.blocks[block];
            let open = asking.beyond(given);
            let reached = open.iter().filter(|at| presence.at(**at) != Truth::No).count();
            let certain = open.iter().filter(|at| presence.at(**at) == Truth::Yes).count();
            let others = presence.without_hip().beyond(&takes).len();
            (reached > 0).then_some((reached, certain, std::cmp::Reverse(others)))
        };
        let blocks = self.list.entries.iter().map(|entry| entry.block);
        let scored = blocks.filter_map(|block| Some((score(block)?, block)));
        scored.max_by_key(|(score, _)| *score).map(|(_, block)| block)
    }

    /// Places an entry in a block, in ascending order.
    fn place(&mut self, parts: Vec<Gencode>, block: usize) {
        let order = parts.iter().map(Gencode::order).min();
        let within = || self.list.entries.iter().enumerate().filter(|(_, entry)| entry.block == block);
        let smaller = within().rfind(|(_, entry)| entry.order().is_some() && entry.order() < order);
        let named = || within().find(|(_, entry)| entry.order().is_some());
        let Some((neighbour, _)) = smaller.or_else(named).or_else(|| within().next_back()) else { return };
        let before = smaller.is_none();
        self.settled.additions.push(Addition { neighbour, before, parts, since: None });
        // Those after the same neighbour are in their order: wanted results come ascending.
        self.settled.additions.sort_by_key(|addition| (addition.neighbour, !addition.before));
    }

    /// Gives an architecture of the list its PTX.
    fn join_ptx(&mut self, arch: Arch, block: usize) {
        let has = |parts: &[Gencode]| parts.iter().any(|part| part.codes.contains(&Code::Sass(arch)));
        let ptx = Gencode::of(Code::Ptx(arch));
        if let Some(addition) = self.settled.additions.iter_mut().find(|addition| has(&addition.parts)) {
            addition.parts.push(ptx);
        } else if let Some(at) = self.kept.iter().position(|parts| has(parts)) {
            self.kept[at].push(ptx);
            self.settled.fates[at] = Fate::Becomes(self.kept[at].clone());
        } else {
            self.place(vec![Gencode::of(Code::Sass(arch)), ptx], block);
        }
    }

    /// Gives PTX an entry of its own, under the condition that its machine code came under.
    fn place_ptx(&mut self, arch: Arch, block: usize) {
        let parts = vec![Gencode::of(Code::Ptx(arch))];
        let is_sass = |addition: &&Addition| addition.parts == [Gencode::of(Code::Sass(arch))];
        match self.settled.additions.iter().find(is_sass).filter(|addition| addition.since.is_some()) {
            Some(sass) => self.settled.additions.push(Addition { parts, ..sass.clone() }),
            None => self.place(parts, block),
        }
    }

    /// A list whose PTX a given toolkit refuses keeps PTX: of its newest architecture.
    pub(super) fn keep_ptx(&mut self) {
        let additions = self.settled.additions.iter().map(|addition| &addition.parts);
        let all: Vec<Code> =
            self.kept.iter().chain(additions).flatten().flat_map(|part| part.codes.clone()).collect();
        let has_ptx = all.iter().any(|code| matches!(code, Code::Ptx(_)));
        let plain = |code: &Code| {
            let arch = code.arch();
            (arch == Arch::plain(arch.number)).then_some(arch)
        };
        let newest = all.iter().filter_map(plain).max();
        let (Some(at), Some(newest), false) = (self.lost_ptx.last().copied(), newest, has_ptx) else {
            return;
        };
        if !self.law.wish.keeps(Code::Ptx(newest)) {
            return;
        }
        let alone = self.list.entries[at].codes().all(|code| matches!(code, Code::Ptx(_)));
        if alone {
            self.place_ptx(newest, self.list.entries[at].block);
        } else {
            self.join_ptx(newest, self.list.entries[at].block);
        }
        self.settled.added.push(Code::Ptx(newest));
    }
}
