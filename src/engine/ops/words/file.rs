//! A build file and its lists of architectures.

use std::collections::BTreeMap;

use super::called;
use super::group::{self, Group};
use super::items::{self, Item};
use super::outline::{Outline, Sequence};
use super::pen::Pen;
use super::settle::{Law, Settled};
use super::taken::{Meant, SELECT, handed, taken};
use super::unread;
use super::{Lists, Names};
use crate::engine::arch::{Code, Gencode, parse_codes};
use crate::engine::catalogue::Catalogue;
use crate::engine::edit::{Edits, Overlap};
use crate::engine::ops::gencode::settle::labels;
use crate::engine::ops::gencode::worlds::{Truth, World};
use crate::engine::ops::gencode::{Compiled, Listed};
use crate::engine::ops::{Site, emptied};
use crate::engine::source::line_of;
use crate::engine::syntax::words::Word;
use crate::engine::toolkit::Toolkit;

/// A build file, read for an op.
pub struct BuildFile<'a> {
    path: &'a str,
    bytes: &'a [u8],
    outline: Outline,
    items: Vec<Item>,
    groups: Vec<Group>,
}

/// What is done to a build file.
pub struct FilePlan {
    /// Nothing where the law holds.
    pub edits: Edits,
    /// Where its lists begin.
    pub sites: Vec<Site>,
    /// What changes, in words.
    pub how: Vec<String>,
    /// What a person should look at.
    pub reported: Vec<String>,
}

/// The elements of all lists of these names; their words are split where commas stand between them.
fn elements(outline: &mut Outline, meant: &Meant, catalogue: &Catalogue) -> Vec<Item> {
    let known = |name: &str| catalogue.named(name).map(<[Code]>::to_vec);
    let held: Vec<(usize, usize)> = outline.sequences.iter().filter_map(|one| one.holder).collect();
    let lists = outline.sequences.iter().enumerate();
    let lists = lists.filter(|(_, one)| meant.hold(one) && !items::is_printed(one, outline));
    let mut items = Vec::new();
    for at in lists.map(|(at, _)| at).collect::<Vec<usize>>() {
        let sequence = &mut outline.sequences[at];
        sequence.words = items::split(&sequence.words);
        let own = items::elements(at, sequence, &known).into_iter();
        items.extend(own.filter(|item| !held.contains(&(at, item.words.start))));
    }
    items
}

/// What a person should do about flags that CMake's own function makes of architectures.
fn selected_instead(variable: &str, have: &[Code], law: &Law<'_>) -> Option<String> {
    let missing = law.wish.wanted().filter(|code| !have.iter().any(|own| own.serves(*code)));
    let flags: Vec<String> = missing.map(|code| format!("-gencode {}", Gencode::of(code))).collect();
    let takes = |code: &Code, cuda: &Toolkit| law.catalogue.takes(*cuda, &Gencode::of(*code));
    let refused = have.iter().filter(|code| law.cuda.iter().any(|cuda| !takes(code, cuda)));
    let refused: Vec<Code> = refused.copied().collect();
    let command = match law.wish.only.is_empty() {
        true => format!("behind it, list(APPEND {variable} {})", flags.join(" ")),
        false => format!("instead of it, set({variable} {})", flags.join(" ")),
    };
    let is_replaced = !flags.is_empty() && !law.wish.only.is_empty();
    let phrases = [
        (!flags.is_empty(), command),
        (
            !refused.is_empty() && !is_replaced,
            format!("the given CUDA refuses {}: take it out", labels(refused)),
        ),
    ];
    let said: Vec<String> =
        phrases.into_iter().filter(|(is_said, _)| *is_said).map(|(_, text)| text).collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// Whether a text names an architecture as flags do, or computes it: `-arch=$(or $(ARCH),sm_70)`.
fn names_one(text: &str) -> bool {
    let begins = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let behind = |mark: &str, is_one: &dyn Fn(&str) -> bool| text.split(mark).skip(1).any(is_one);
    ["arch=compute_", "arch=sm_"].iter().any(|mark| behind(mark, &begins))
        || ["arch=$", "compute_$", "sm_$"].iter().any(|mark| behind(mark, &computes_one))
}

/// Whether one of the words within an expression is an architecture: `$(or $(ARCHES),7.0;8.0)`.
fn computes_one(text: &str) -> bool {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_.+".contains(c)));
    let is_one = |word: &str| word.len() > 1 && parse_codes(word).is_ok();
    words.into_iter().any(is_one)
}

/// Whether a word is an architecture as PyTorch writes it.
fn is_dotted(word: &Word) -> bool {
    word.text.contains('.') && parse_codes(&word.text).is_ok()
}

/// What changes, in words.
fn told(settled: &Settled) -> Option<String> {
    let phrase = |verb: &str, codes: &[Code]| {
        (!codes.is_empty()).then(|| format!("{verb} {}", labels(codes.to_vec())))
    };
    let phrases = [phrase("drops", &settled.dropped), phrase("adds", &settled.added)];
    let told: Vec<String> = phrases.into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join(", "))
}

impl<'a> BuildFile<'a> {
    /// Reads the lists that are meant.
    pub fn new(
        (path, bytes): (&'a str, &'a [u8]),
        mut outline: Outline,
        what: &Lists,
        catalogue: &Catalogue,
    ) -> Self {
        let (items, names) = match what {
            Lists::Flags => (items::flags(&outline, bytes), Names::default()),
            Lists::Named(names) => {
                let meant = names.with_variables(&outline);
                (elements(&mut outline, &meant, catalogue), meant.names)
            }
        };
        let groups = group::groups(&outline, &items, &|name| names.are_of_torch(name));
        Self { path, bytes, outline, items, groups }
    }

    /// What makes the law hold for its lists.
    pub fn plan(&self, law: &Law<'_>) -> Result<FilePlan, Overlap> {
        let mut pen = Pen::new(self.bytes, &self.outline, &self.items, law.catalogue);
        let (mut sites, mut how, mut reported) = (Vec::new(), Vec::new(), Vec::new());
        let settled = group::settle(&self.groups, &self.outline, &self.items, law);
        for (group, settled) in self.groups.iter().zip(settled) {
            let place = self.place(group);
            sites.push(Site::of(self.path, self.bytes, self.start(group)));
            let Some(settled) = settled else {
                reported.push(emptied::told(&place, law.wish, (law.cuda, law.torch), law.catalogue));
                continue;
            };
            pen.write(group, &settled);
            how.extend(told(&settled).map(|told| format!("{place}: {told}")));
            reported.extend(settled.reported.iter().map(|fact| format!("{place}: {fact}")));
        }
        Ok(FilePlan { edits: pen.edits()?, sites, how, reported })
    }

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
    pub fn strays(&self, what: &Lists, law: &Law<'_>) -> Vec<String> {
        match what {
            Lists::Flags => {
                [self.stray_flags(), unread::unclosed(&self.outline, (self.path, self.bytes))].concat()
            }
            Lists::Named(names) => {
                let known = [self.called(law), self.lists_of_kernels()].concat();
                let unread = unread::told(&self.outline, &self.items, (self.path, self.bytes));
                let left = self.left_to(names);
                let is_new = |told: &String| {
                    let line = told.split(" makes ").next().unwrap_or_default();
                    !left.iter().any(|other| other.starts_with(&format!("{line} ")))
                };
                let unread: Vec<String> = unread.into_iter().filter(is_new).collect();
                [known, self.computed(names), left, self.ptx_alone(law), unread].concat()
            }
        }
    }

    /// What is given to functions that make flags of it, itself or by variables.
    fn called(&self, law: &Law<'_>) -> Vec<String> {
        let settled = group::settle(&self.groups, &self.outline, &self.items, law);
        let codes = |words: &[&Word]| -> Vec<Code> {
            let names = handed(&self.outline, words);
            let is_handed = |group: &Group| group.name.as_ref().is_some_and(|name| names.contains(name));
            let lists = self.groups.iter().zip(&settled).filter(|(group, _)| is_handed(group));
            let afterwards =
                lists.flat_map(|(group, settled)| group.afterwards(settled.as_ref(), &self.items));
            words
                .iter()
                .flat_map(|word| parse_codes(&word.text).unwrap_or_default())
                .chain(afterwards)
                .collect()
        };
        let told = called::told(&self.outline, (self.path, self.bytes), &codes, law);
        [self.selected(&codes, law), told].concat()
    }

    /// What is given to the function of CMake's FindCUDA that makes flags of architectures.
    fn selected(&self, codes: &dyn Fn(&[&Word]) -> Vec<Code>, law: &Law<'_>) -> Vec<String> {
        let calls = self
            .outline
            .sequences
            .iter()
            .filter(|one| one.name.is_none() && one.holder.is_none() && one.owner == SELECT);
        let told = |call: &Sequence| {
            let of_command = self.outline.sequences.iter().filter(|one| one.command == call.command);
            let words: Vec<&Word> = of_command.flat_map(|one| &one.words).collect();
            let advice = selected_instead(&call.words.first()?.text, &codes(&words), law)?;
            let line = line_of(self.bytes, call.command.start);
            let what = "cuda_select_nvcc_arch_flags of CMake knows no architecture after Ampere";
            Some(format!("{} line {line}: {what}: {advice}", self.path))
        };
        calls.filter_map(told).collect()
    }

    /// Lists that a variable stands for of which the file does not tell what it holds.
    fn left_to(&self, names: &Names) -> Vec<String> {
        let known = |variable: &str| {
            names.hold(variable)
                || variable.starts_with("CMAKE_")
                || self.groups.iter().any(|group| group.name.as_deref() == Some(variable))
        };
        let told = |one: &Sequence| {
            let variable = taken(one).filter(|variable| !known(variable))?;
            let line = line_of(self.bytes, one.command.start);
            let what = format!("{} line {line} takes its architectures from `{variable}`", self.path);
            Some(format!("{what}, for which the file has no list: see to it that it holds what is wanted"))
        };
        let all = names.with_variables(&self.outline);
        let meant = |one: &&Sequence| one.resets && one.name.is_some() && all.hold(one);
        let given = |one: &&Sequence| {
            let holds = |item: &Item| {
                !item.parts.is_empty() && self.outline.sequences[item.sequence].command == one.command
            };
            !items::is_printed(one, &self.outline) && !self.items.iter().any(holds)
        };
        let mut told: Vec<String> =
            self.outline.sequences.iter().filter(meant).filter(given).filter_map(told).collect();
        told.dedup();
        told
    }

    /// Words of lists that are put together: `$(or $(ARCHES),7.0;8.0)`.
    fn computed(&self, names: &Names) -> Vec<String> {
        let sequences = self.outline.sequences.iter().enumerate();
        let is_meant = |one: &Sequence| {
            one.names().any(|name| names.hold(name)) && !items::is_printed(one, &self.outline)
        };
        let words = sequences
            .filter(|(_, one)| is_meant(one))
            .flat_map(|(at, one)| one.words.iter().enumerate().map(move |word| (at, word)));
        let is_split = |at, word| {
            let mut inner = self.outline.sequences.iter().enumerate();
            let is_read = |inner: usize| self.items.iter().any(|item| item.sequence == inner);
            inner.any(|(own, one)| one.holder == Some((at, word)) && (one.default.is_none() || is_read(own)))
        };
        let left = words.filter(|(at, (word, read))| {
            read.text.contains('$') && computes_one(&read.text) && !is_split(*at, *word)
        });
        left.map(|(_, (_, word))| self.not_understood(word)).collect()
    }

    fn not_understood(&self, word: &Word) -> String {
        let line = line_of(self.bytes, word.range.start);
        format!("{} line {line} is not understood and left: {}", self.path, word.text)
    }

    /// Architectures of which only PTX is asked for, and that a given toolkit refuses.
    fn ptx_alone(&self, law: &Law<'_>) -> Vec<String> {
        let named = self.outline.sequences.iter().filter(|one| {
            let name = one.name.as_deref().unwrap_or_default();
            name.ends_with("CUDA_ARCH_PTX") && !items::is_printed(one, &self.outline)
        });
        let told = |one: &Sequence| {
            let codes = one.words.iter().flat_map(|word| parse_codes(&word.text).unwrap_or_default());
            let codes: Vec<Code> = codes.collect();
            let refuses =
                |cuda: &&Toolkit| codes.iter().any(|code| !law.catalogue.takes(**cuda, &Gencode::of(*code)));
            let cuda = law.cuda.iter().find(refuses)?;
            let refused = codes.into_iter().filter(|code| !law.catalogue.takes(*cuda, &Gencode::of(*code)));
            let (name, line) = (one.name.as_deref()?, line_of(self.bytes, one.command.start));
            let refused = labels(refused.collect());
            let advice = "name the newest architecture of the list beside it";
            Some(format!("{} line {line}: CUDA {cuda} refuses {refused} of `{name}`: {advice}", self.path))
        };
        let mut told: Vec<String> = named.filter_map(told).collect();
        told.dedup();
        told
    }

    /// Words that speak of an architecture and are no flag as nvcc takes it, such as those of generator expressions.
    fn stray_flags(&self) -> Vec<String> {
        let sequences = self.outline.sequences.iter().enumerate();
        let sequences = sequences.filter(|(_, one)| !items::is_printed(one, &self.outline));
        let words = sequences.flat_map(|(at, one)| one.words.iter().enumerate().map(move |word| (at, word)));
        let is_read = |at: usize, word: usize| {
            self.items.iter().any(|item| item.sequence == at && item.words.contains(&word))
                || self.outline.sequences.iter().any(|one| one.holder == Some((at, word)))
                || self.outline.sequences[at].holder.is_some_and(|(holder, word)| {
                    self.items.iter().any(|item| item.sequence == holder && item.words.contains(&word))
                })
        };
        let strays = words.filter(|(at, (word, read))| names_one(&read.text) && !is_read(*at, *word));
        strays.map(|(_, (_, word))| self.not_understood(word)).collect()
    }

    /// Lists of architectures that are handed to a function of the project itself.
    fn lists_of_kernels(&self) -> Vec<String> {
        let mut handed: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        let strings = self.outline.sequences.iter().filter(|one| one.name.is_none() && self.outline.is_cmake);
        for string in strings.filter(|one| one.words.iter().all(is_dotted)) {
            let Some((holder, _)) = string.holder else { continue };
            let first = self.outline.sequences[holder].words.first();
            if first.is_some_and(|word| word.text.contains("ARCH")) {
                let line = line_of(self.bytes, string.words[0].range.start);
                handed.entry(&string.owner).or_default().push(line.to_string());
            }
        }
        let told = |(function, lines): (&str, Vec<String>)| {
            let why = "they may say what a kernel can run on";
            format!("{}: lists given to {function} are left, {why}: line {}", self.path, lines.join(", "))
        };
        handed.into_iter().map(told).collect()
    }

    /// What toolkits are given by each list of the file.
    pub fn given(&self, toolkits: &[Toolkit], law: &Law<'_>) -> Vec<Listed> {
        let listed = |group: &Group| {
            let line = line_of(self.bytes, self.start(group));
            let name = group.name.as_ref().map_or(format!("line {line}"), |name| format!("`{name}`"));
            let given = toolkits.iter().map(|toolkit| self.given_by(group, *toolkit, law));
            Listed { name, line, adds: false, given: given.collect() }
        };
        self.groups.iter().map(listed).collect()
    }

    fn given_by(&self, group: &Group, toolkit: Toolkit, law: &Law<'_>) -> Vec<Compiled> {
        let world = law.worlds.position(World::Cuda(toolkit));
        let reached = group.items.iter().map(|at| &self.items[*at]).filter(|item| {
            let block = self.outline.sequences[item.sequence].block;
            world.is_some_and(|at| self.outline.blocks[block].presence.at(at) != Truth::No)
        });
        let mut seen = Vec::new();
        let parts = reached.flat_map(|item| item.parts.iter().cloned());
        let parts = parts.filter(|part| {
            !seen.contains(part) && {
                seen.push(part.clone());
                true
            }
        });
        parts.map(|gencode| Compiled { accepted: law.catalogue.takes(toolkit, &gencode), gencode }).collect()
    }
}
