//! The circumstances that a guard decides by: each toolkit, and a HIP build.

use crate::engine::arch::Gencode;
use crate::engine::catalogue::Catalogue;
use crate::engine::toolkit::Toolkit;

/// What can be said of a condition in one world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truth {
    /// It does not hold.
    No,
    /// The source alone does not tell.
    Maybe,
    /// It holds.
    Yes,
}

impl Truth {
    /// From what is known for certain.
    pub fn of(known: bool) -> Self {
        if known { Truth::Yes } else { Truth::No }
    }
}

impl std::ops::Not for Truth {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Truth::No => Truth::Yes,
            Truth::Maybe => Truth::Maybe,
            Truth::Yes => Truth::No,
        }
    }
}

/// One set of circumstances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    /// A CUDA build with this toolkit.
    Cuda(Toolkit),
    /// A HIP build, which no nvcc flag must reach.
    Hip,
}

/// All circumstances, toolkits ascending and HIP last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worlds(Vec<World>);

impl Worlds {
    /// The toolkits of the catalogue from `floor` on, those given besides, and HIP.
    pub fn new(catalogue: &Catalogue, floor: Toolkit, given: &[Toolkit]) -> Self {
        let rows = catalogue.toolkits().iter().map(|row| row.version).filter(|toolkit| *toolkit >= floor);
        Self::of(rows.chain(given.iter().copied()))
    }

    /// These toolkits, and HIP.
    pub fn of(toolkits: impl Iterator<Item = Toolkit>) -> Self {
        let mut toolkits: Vec<Toolkit> = toolkits.collect();
        toolkits.sort();
        toolkits.dedup();
        Self(toolkits.into_iter().map(World::Cuda).chain([World::Hip]).collect())
    }

    /// All toolkits that a condition may tell apart, those of long ago and those to come too.
    pub fn ever(catalogue: &Catalogue) -> Self {
        let known = catalogue.toolkits().iter().map(|row| row.version);
        Self::of((1..=99).map(|major| Toolkit::new(major, 0)).chain(known))
    }

    /// The toolkits among them.
    pub fn toolkits(&self) -> Vec<Toolkit> {
        let toolkit = |world| if let World::Cuda(toolkit) = world { Some(toolkit) } else { None };
        self.iter().filter_map(toolkit).collect()
    }

    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = World> + '_ {
        self.0.iter().copied()
    }

    /// Where one stands among them.
    pub fn position(&self, world: World) -> Option<usize> {
        self.0.iter().position(|other| *other == world)
    }

    /// In which of them `holds`.
    pub fn presence(&self, holds: impl Fn(World) -> Truth) -> Presence {
        Presence(self.iter().map(holds).collect())
    }

    /// In all of them.
    pub fn everywhere(&self) -> Presence {
        self.presence(|_| Truth::Yes)
    }

    /// In none of them.
    pub fn nowhere(&self) -> Presence {
        self.presence(|_| Truth::No)
    }

    /// In a HIP build perhaps, with no toolkit: what a comparison of the toolkit says of it.
    pub fn hip_unknown(&self) -> Presence {
        self.presence(|world| if world == World::Hip { Truth::Maybe } else { Truth::No })
    }

    /// Where nvcc takes a flag; never in a HIP build.
    pub fn takes(&self, catalogue: &Catalogue, gencode: &Gencode) -> Presence {
        self.presence(|world| match world {
            World::Cuda(toolkit) => Truth::of(catalogue.takes(toolkit, gencode)),
            World::Hip => Truth::No,
        })
    }
}

/// What can be said of a condition, or of reaching a statement, in each world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Presence(Vec<Truth>);

impl Presence {
    /// Both hold.
    pub fn and(&self, other: &Presence) -> Presence {
        Presence(self.0.iter().zip(&other.0).map(|(one, two)| *one.min(two)).collect())
    }

    /// One of them holds.
    pub fn or(&self, other: &Presence) -> Presence {
        Presence(self.0.iter().zip(&other.0).map(|(one, two)| *one.max(two)).collect())
    }

    /// It does not hold.
    pub fn negated(&self) -> Presence {
        Presence(self.0.iter().map(|truth| !*truth).collect())
    }

    /// What can be said of the world at an index.
    pub fn at(&self, index: usize) -> Truth {
        self.0.get(index).copied().unwrap_or(Truth::No)
    }

    /// The CUDA worlds alone.
    fn cuda(&self) -> &[Truth] {
        &self.0[..self.0.len().saturating_sub(1)]
    }

    /// The same of every toolkit, and no HIP build.
    pub fn without_hip(&self) -> Presence {
        let last = self.0.len().saturating_sub(1);
        Presence(self.cuda().iter().copied().chain(self.0.get(last).map(|_| Truth::No)).collect())
    }

    /// Whether a HIP build gets there.
    pub fn reaches_hip(&self) -> bool {
        self.0.last().is_some_and(|truth| *truth != Truth::No)
    }

    /// Whether both say the same of every toolkit.
    pub fn same_toolkits(&self, other: &Presence) -> bool {
        self.cuda() == other.cuda()
    }

    /// Whether no toolkit gets there that does not get to `other`.
    pub fn only_toolkits_of(&self, other: &Presence) -> bool {
        self.cuda().iter().zip(other.cuda()).all(|(own, other)| *own == Truth::No || *other != Truth::No)
    }

    /// Whether every toolkit gets to `other` at least as certainly.
    pub fn is_covered_by(&self, other: &Presence) -> bool {
        self.cuda().iter().zip(other.cuda()).all(|(own, other)| own <= other)
    }

    /// Where it holds at least as certainly as another one.
    pub fn where_as_certain_as(&self, other: &Presence) -> Presence {
        let pairs = self.0.iter().zip(&other.0);
        Presence(pairs.map(|(own, other)| Truth::of(*own != Truth::No && own >= other)).collect())
    }

    /// Where it holds for certain.
    pub fn certain(&self) -> Presence {
        Presence(self.0.iter().map(|truth| Truth::of(*truth == Truth::Yes)).collect())
    }

    /// Whether the toolkit makes no difference.
    pub fn is_alike(&self) -> bool {
        self.cuda().windows(2).all(|pair| pair[0] == pair[1])
    }

    /// Whether the toolkit, or HIP, decides for certain.
    pub fn is_certain(&self) -> bool {
        !self.cuda().contains(&Truth::Maybe)
    }

    /// Whether every toolkit gets there for certain.
    pub fn every_toolkit(&self) -> bool {
        self.cuda().iter().all(|truth| *truth == Truth::Yes)
    }

    /// Whether nothing at all gets there.
    pub fn nowhere(&self) -> bool {
        self.0.iter().all(|truth| *truth == Truth::No)
    }

    /// Whether no toolkit gets there.
    pub fn no_toolkit(&self) -> bool {
        self.cuda().iter().all(|truth| *truth == Truth::No)
    }

    /// Whether none of the given toolkits gets there; where none is given, no toolkit at all.
    pub fn is_dead(&self, worlds: &Worlds, given: &[Toolkit]) -> bool {
        worlds.iter().zip(&self.0).all(|(world, truth)| match world {
            World::Cuda(toolkit) => *truth == Truth::No || !(given.is_empty() || given.contains(&toolkit)),
            World::Hip => true,
        })
    }

    /// Whether the toolkit decides, and nothing else.
    pub fn by_toolkit(&self) -> bool {
        !self.every_toolkit() && !self.cuda().contains(&Truth::Maybe)
    }

    /// The first toolkit that may get there, by its place among the worlds.
    pub fn first(&self) -> usize {
        self.cuda().iter().position(|truth| *truth != Truth::No).unwrap_or(self.0.len())
    }

    /// Where `self` may hold although `allowed` does not.
    pub fn beyond(&self, allowed: &Presence) -> Vec<usize> {
        let pairs = self.0.iter().zip(&allowed.0).enumerate();
        pairs.filter(|(_, (have, may))| **have != Truth::No && **may == Truth::No).map(|(at, _)| at).collect()
    }
}
