//! Lists of architectures outside of Python: CMake, makefiles, shell scripts, Dockerfiles. They are read as words; what
//! stands beside an entry, its quotes and its place stay.

mod cmake;
mod condition;
mod group;
mod items;
mod outline;
mod pen;
pub mod rewrite;
mod script;
mod settle;

use super::gencode::worlds::{Truth, World, Worlds};
use std::collections::BTreeMap;

use super::gencode::settle::labels;
use super::gencode::{Compiled, Toolchain};
use super::{Aim, OpError, OpPlan, Outcome, Site, parse};
use crate::engine::arch::{Code, parse_codes};
use crate::engine::ops::files::Files;
use crate::engine::source::{Sources, line_of};
use crate::engine::syntax::Language;
use crate::engine::syntax::words::Word;
use crate::engine::toolkit::Toolkit;
use group::Group;
use items::Item;
use outline::{Outline, Sequence};
use pen::Pen;
use settle::{Law, Settled};

/// Lists of architectures that are written as words.
#[derive(Debug, Clone)]
pub struct WordsOp {
    /// Where to look.
    pub files: Files,
    /// Which lists.
    pub what: Lists,
}

/// Which lists are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lists {
    /// nvcc's flags, wherever they stand.
    Flags,
    /// The values of variables and properties.
    Named(Names),
}

/// Variables and properties; `*` at the start of a name stands for anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Those that PyTorch reads and checks.
    pub torch: Vec<String>,
    /// All others.
    pub others: Vec<String>,
}

/// A file, read for an op.
struct Read<'a> {
    path: &'a str,
    bytes: &'a [u8],
    outline: Outline,
    items: Vec<Item>,
    groups: Vec<Group>,
}

impl WordsOp {
    /// The kind of op that patch sets know it as.
    pub fn kind(&self) -> &'static str {
        match self.what {
            Lists::Flags => "gencode",
            Lists::Named(_) => "list",
        }
    }

    /// What it speaks of.
    pub fn parts(&self) -> Vec<(&'static str, String)> {
        let named = |key, names: &[String]| names.iter().map(|name| (key, name.clone())).collect::<Vec<_>>();
        let names = match &self.what {
            Lists::Flags => Vec::new(),
            Lists::Named(names) => [named("torch", &names.torch), named("names", &names.others)].concat(),
        };
        std::iter::once(("in", "words".to_string())).chain(names).collect()
    }

    /// What the op does to these sources.
    pub fn plan(&self, sources: &Sources, aim: Aim<'_>) -> Result<OpPlan, OpError> {
        let Toolchain { catalogue, floor, cuda } = aim.toolchain;
        let worlds = Worlds::new(catalogue, floor, cuda);
        let law = Law { wish: aim.wish, cuda, torch: aim.torch, catalogue, worlds: &worlds };
        let mut whole = OpPlan::of(Outcome::AlreadySatisfied { why: String::new() });
        let (mut how, mut reported) = (Vec::new(), Vec::new());
        for (path, bytes) in self.files.of(sources).filter(|(path, _)| !is_hidden(path)) {
            let Some(read) = self.read(sources, path, bytes, &law)? else { continue };
            reported.extend(read.strays(&self.what));
            self.plan_file(&read, &law, (&mut whole, &mut how, &mut reported))?;
        }
        if whole.sites.is_empty() && reported.is_empty() {
            let why = match self.what {
                Lists::Flags => "no file gives nvcc an architecture",
                Lists::Named(_) => "no file has such a list",
            };
            return Ok(OpPlan::of(Outcome::NotApplicable { why: why.to_string() }));
        }
        whole.outcome = Outcome::AlreadySatisfied { why: aim.satisfied() };
        whole.conclude(how, reported);
        Ok(whole)
    }

    fn plan_file(
        &self,
        read: &Read<'_>,
        law: &Law<'_>,
        (whole, how, reported): (&mut OpPlan, &mut Vec<String>, &mut Vec<String>),
    ) -> Result<(), OpError> {
        let mut pen = Pen::new(read.bytes, &read.outline, &read.items, law.catalogue);
        let settled = group::settle(&read.groups, &read.outline, &read.items, law);
        for (group, settled) in read.groups.iter().zip(settled) {
            let place = read.place(group);
            whole.sites.push(Site::of(read.path, read.bytes, read.start(group)));
            let Some(settled) = settled else {
                reported.push(emptied(&place, law));
                continue;
            };
            pen.write(group, &settled);
            how.extend(told(&settled).map(|told| format!("{place}: {told}")));
            reported.extend(settled.reported.iter().map(|fact| format!("{place}: {fact}")));
        }
        let overlap = |overlap| OpError::Overlap { path: read.path.to_string(), overlap };
        let edits = pen.edits().map_err(overlap)?;
        if !edits.is_empty() {
            whole.edits.insert(read.path.to_string(), edits);
        }
        Ok(())
    }

    fn read<'a>(
        &self,
        sources: &'a Sources,
        path: &'a str,
        bytes: &'a [u8],
        law: &Law<'_>,
    ) -> Result<Option<Read<'a>>, OpError> {
        if !may_hold(bytes) {
            return Ok(None);
        }
        let mut outline = match parse(sources, path)? {
            Some(parsed) if parsed.language == Language::Cmake => cmake::read(parsed, law.worlds),
            Some(_) => return Ok(None),
            None => script::read(path, bytes, law.worlds),
        };
        let items = match &self.what {
            Lists::Flags => items::flags(&outline, bytes),
            Lists::Named(names) => elements(&mut outline, names, law),
        };
        let by_torch = |name: &str| match &self.what {
            Lists::Flags => false,
            Lists::Named(names) => is_named(name, &names.torch),
        };
        let groups = group::groups(&outline, &items, &by_torch);
        Ok(Some(Read { path, bytes, outline, items, groups }))
    }

    /// What a file gives each toolkit.
    pub fn compiled(
        &self,
        sources: &Sources,
        path: &str,
        (toolkits, aim): (&[Toolkit], Aim<'_>),
    ) -> Vec<Vec<Compiled>> {
        let Toolchain { catalogue, floor, .. } = aim.toolchain;
        let worlds = Worlds::new(catalogue, floor, toolkits);
        let law = Law { wish: aim.wish, cuda: toolkits, torch: None, catalogue, worlds: &worlds };
        let bytes = sources.get(path).filter(|_| !is_hidden(path));
        let read = bytes.and_then(|bytes| self.read(sources, path, bytes, &law).ok()?);
        let given = |toolkit: &Toolkit| read.iter().flat_map(|read| read.given(*toolkit, &law)).collect();
        toolkits.iter().map(given).collect()
    }
}

/// Whether a file lies in a folder of some service, such as `.github`: it builds elsewhere, for others.
fn is_hidden(path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(folders, _)| folders.split('/').any(|folder| folder.starts_with('.')))
}

/// Whether a file can hold a list at all, judged without reading it.
fn may_hold(bytes: &[u8]) -> bool {
    ["arch", "ARCH"].iter().any(|word| memchr::memmem::find(bytes, word.as_bytes()).is_some())
}

/// The elements of all lists of these names; their words are split where commas stand between them.
fn elements(outline: &mut Outline, names: &Names, law: &Law<'_>) -> Vec<Item> {
    let known = |name: &str| law.catalogue.named(name).map(<[Code]>::to_vec);
    let held: Vec<(usize, usize)> = outline.sequences.iter().filter_map(|one| one.holder).collect();
    let is_meant = |one: &Sequence| {
        one.name.as_ref().is_some_and(|name| is_named(name, &names.torch) || is_named(name, &names.others))
    };
    let mut items = Vec::new();
    for (at, sequence) in outline.sequences.iter_mut().enumerate().filter(|(_, one)| is_meant(one)) {
        sequence.words = items::split(&sequence.words);
        let own = items::elements(at, sequence, &known).into_iter();
        items.extend(own.filter(|item| !held.contains(&(at, item.words.start))));
    }
    items
}

fn is_named(name: &str, names: &[String]) -> bool {
    names.iter().any(|wanted| wanted.strip_prefix('*').map_or(name == wanted, |end| name.ends_with(end)))
}

/// What is to be said of a list that would lose everything, and stays.
fn emptied(place: &str, law: &Law<'_>) -> String {
    let cuda: Vec<String> = law.cuda.iter().map(|cuda| format!("CUDA {cuda}")).collect();
    match cuda.is_empty() || !law.wish.is_empty() {
        true => format!("nothing would be left in {place}: name what stays, --only-arch 120"),
        false => {
            format!("{} refuses all of {place}: say what to compile for, --add-arch 120", cuda.join(" and "))
        }
    }
}

/// Whether a text names an architecture as flags do.
fn names_one(text: &str) -> bool {
    ["arch=compute_", "arch=sm_"].iter().any(|before| {
        let behind = text.split(before).skip(1);
        behind.into_iter().any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    })
}

fn told(settled: &Settled) -> Option<String> {
    let phrase = |verb: &str, codes: &[Code]| {
        (!codes.is_empty()).then(|| format!("{verb} {}", labels(codes.to_vec())))
    };
    let phrases = [phrase("drops", &settled.dropped), phrase("adds", &settled.added)];
    let told: Vec<String> = phrases.into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join(", "))
}

impl Read<'_> {
    /// Where a list begins.
    fn start(&self, group: &Group) -> usize {
        let item = &self.items[group.items[0]];
        self.outline.sequences[item.sequence].words[item.words.start].range.start
    }

    /// How messages name a list.
    fn place(&self, group: &Group) -> String {
        match &group.name {
            Some(name) => format!("`{name}` of {}", self.path),
            None => format!("{} line {}", self.path, line_of(self.bytes, self.start(group))),
        }
    }

    /// What was seen and is left.
    fn strays(&self, what: &Lists) -> Vec<String> {
        match what {
            Lists::Flags => self.stray_flags(),
            Lists::Named(_) => self.lists_of_kernels(),
        }
    }

    /// Words that speak of an architecture and are no flag as nvcc takes it, such as those of generator expressions.
    fn stray_flags(&self) -> Vec<String> {
        let sequences = self.outline.sequences.iter().enumerate();
        let words = sequences.flat_map(|(at, one)| one.words.iter().enumerate().map(move |word| (at, word)));
        let is_read = |at: usize, word: usize| {
            self.items.iter().any(|item| item.sequence == at && item.words.contains(&word))
                || self.outline.sequences.iter().any(|one| one.holder == Some((at, word)))
                || self.outline.sequences[at].holder.is_some_and(|(holder, word)| {
                    self.items.iter().any(|item| item.sequence == holder && item.words.contains(&word))
                })
        };
        let strays = words.filter(|(at, (word, read))| names_one(&read.text) && !is_read(*at, *word));
        let told = |(_, (_, word)): (usize, (usize, &Word))| {
            let line = line_of(self.bytes, word.range.start);
            format!("{} line {line} is not understood and left: {}", self.path, word.text)
        };
        strays.map(told).collect()
    }

    /// Lists of architectures that are handed to a function of the project itself.
    fn lists_of_kernels(&self) -> Vec<String> {
        let mut handed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for sequence in
            self.outline.sequences.iter().filter(|one| one.name.is_none() && self.outline.is_cmake)
        {
            let Some((holder, _)) = sequence.holder else { continue };
            let gives =
                self.outline.sequences[holder].words.first().is_some_and(|word| word.text.contains("ARCH"));
            let is_list =
                sequence.words.iter().all(|word| word.text.contains('.') && parse_codes(&word.text).is_ok());
            if gives && is_list {
                let line = line_of(self.bytes, sequence.words[0].range.start);
                handed.entry(&sequence.owner).or_default().push(line.to_string());
            }
        }
        let told = |(function, lines): (&str, Vec<String>)| {
            let why = "they may say what a kernel can run on";
            format!("{}: lists given to {function} are left, {why}: line {}", self.path, lines.join(", "))
        };
        handed.into_iter().map(told).collect()
    }

    /// What a toolkit is given by the lists of the file.
    fn given(&self, toolkit: Toolkit, law: &Law<'_>) -> Vec<Compiled> {
        let world = law.worlds.position(World::Cuda(toolkit));
        let items = self.groups.iter().flat_map(|group| group.items.iter().map(|at| &self.items[*at]));
        let reached = items.filter(|item| {
            let block = self.outline.sequences[item.sequence].block;
            world.is_some_and(|at| self.outline.blocks[block].presence.at(at) != Truth::No)
        });
        let parts = reached.flat_map(|item| item.parts.iter().cloned());
        parts.map(|gencode| Compiled { accepted: law.catalogue.takes(toolkit, &gencode), gencode }).collect()
    }
}

#[cfg(test)]
mod tests;
