//! What a list must hold: what is wanted, and nothing that a given toolkit or PyTorch refuses. No guard is possible in
//! a list.

use pep440_rs::Version;

use super::element::{Element, Notation};
use crate::engine::arch::{Arch, Code, Gencode, Variant};
use crate::engine::catalogue::Catalogue;
use crate::engine::ops::gencode::ArchWish;
use crate::engine::ops::givers::Share;
use crate::engine::ops::one_chip;
use crate::engine::toolkit::Toolkit;

/// What a list is settled by.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// What is wanted.
    pub wish: &'a ArchWish,
    /// Who takes what.
    pub catalogue: &'a Catalogue,
    /// The given toolkits that read the list; every one must take it.
    pub cuda: &'a [Toolkit],
    /// The release of torch that checks the list.
    pub torch: Option<&'a Version>,
    /// Whether what is wanted is added.
    pub adds: bool,
    /// What others have to do with the list; `None`: nothing.
    pub share: Option<&'a Share>,
    /// Whether what is refused goes: not where the list only says what may be asked for.
    pub prunes: bool,
    /// All toolkits that read the list; empty: any may. What none of them takes is not added.
    pub readers: &'a [Toolkit],
}

/// An element of the settled list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Which element it was; `None`: it is new.
    pub was: Option<usize>,
    /// Its text.
    pub text: String,
    /// What it compiles.
    pub gencode: Option<Gencode>,
}

/// The settled list, and what is to be said of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// In order.
    pub slots: Vec<Slot>,
    /// What changed, in words.
    pub how: Vec<String>,
    /// What a person should look at.
    pub reported: Vec<String>,
    /// Everything would go.
    pub nothing_left: bool,
}

impl Rules<'_> {
    /// Who refuses a flag.
    fn refusal(&self, gencode: &Gencode) -> Option<String> {
        let toolkit = self.cuda.iter().find(|toolkit| !self.catalogue.takes(**toolkit, gencode));
        let checked =
            |version: &&Version| gencode.arches().any(|arch| !self.catalogue.torch_takes(version, arch));
        let torch = self.torch.filter(checked).map(|version| format!("torch {version}"));
        toolkit.map(|toolkit| format!("CUDA {toolkit}")).or(torch)
    }

    /// Whether some toolkit that reads the list takes a result.
    fn concerns(&self, code: Code) -> bool {
        let takes = |toolkit: &Toolkit| self.catalogue.takes(*toolkit, &Gencode::of(code));
        self.readers.is_empty() || self.readers.iter().any(takes)
    }

    /// Whether others give what serves a wish to all toolkits that the list is for.
    fn is_served_beside(&self, code: Code) -> bool {
        let takes = |toolkit: &&Toolkit| self.catalogue.takes(**toolkit, &Gencode::of(code));
        let readers: Vec<Toolkit> = self.readers.iter().filter(takes).copied().collect();
        let toolkits = if self.cuda.is_empty() { readers.as_slice() } else { self.cuda };
        self.share.is_some_and(|share| share.serves(code, toolkits))
    }

    /// Whether others give the list something that stays.
    fn is_one_left_beside(&self) -> bool {
        let leaves = |share: &Share, toolkit: Toolkit| share.leaves(self.wish, toolkit, self.catalogue);
        self.share.is_some_and(|share| match self.cuda {
            [] => self.readers.iter().any(|toolkit| leaves(share, *toolkit)),
            given => given.iter().all(|toolkit| leaves(share, *toolkit)),
        })
    }

    fn keeps(&self, from: Arch, code: Code) -> bool {
        let alone = Gencode { virtual_arch: from, codes: vec![code] };
        self.wish.keeps(code) && !(self.prunes && self.refusal(&alone).is_some())
    }
}

/// Settles a list.
pub fn settle(elements: &[Element], rules: &Rules<'_>) -> Settled {
    if let Some(why) = left_to_one_chip(elements, rules) {
        return Settled { slots: unchanged(elements), reported: vec![why], ..Settled::default() };
    }
    let mut settling = Settling { elements, rules, settled: Settled::default(), lost_ptx: None };
    settling.reduce();
    if elements.iter().any(|element| element.flag.as_ref().is_some_and(|flag| flag.shorthand)) {
        settling.replace_shorthand();
    } else {
        settling.extend();
    }
    settling.finish()
}

struct Settling<'a> {
    elements: &'a [Element],
    rules: &'a Rules<'a>,
    settled: Settled,
    /// The last element whose PTX a toolkit refuses.
    lost_ptx: Option<usize>,
}

impl Settling<'_> {
    /// Takes out what is not wanted or refused.
    fn reduce(&mut self) {
        let mut dropped = Vec::new();
        for (index, element) in self.elements.iter().enumerate() {
            let gencode = element.flag.as_ref().map(|flag| &flag.gencode);
            let kept = gencode.map(|gencode| self.kept(gencode));
            let stays = kept.as_ref() == gencode;
            if let Some(line) = element.held.filter(|_| !stays) {
                let why = format!("line {line} takes {} out again: take out both by hand", named(element));
                self.settled.reported.push(why);
            }
            if stays || element.held.is_some() {
                let kept = gencode.cloned();
                let text = element.text.clone();
                self.settled.slots.push(Slot { was: Some(index), text, gencode: kept });
                continue;
            }
            self.note_ptx(index);
            let shorthand = element.flag.as_ref().is_some_and(|flag| flag.shorthand);
            match kept.filter(|kept| !kept.codes.is_empty() && !shorthand) {
                Some(kept) => {
                    let text = element.spelt(&kept);
                    self.settled.how.push(format!("{} becomes {text}", element.text));
                    self.settled.slots.push(Slot { was: Some(index), text, gencode: Some(kept) });
                }
                None if shorthand => {}
                None => dropped.push(named(element)),
            }
        }
        if !dropped.is_empty() {
            dropped.dedup();
            self.settled.how.push(format!("drops {}", dropped.join(" ")));
        }
    }

    fn kept(&self, gencode: &Gencode) -> Gencode {
        let virtual_arch = gencode.virtual_arch;
        let codes = gencode.codes.iter().copied().filter(|code| self.rules.keeps(virtual_arch, *code));
        Gencode { virtual_arch, codes: codes.collect() }
    }

    /// Remembers an element that loses its PTX to a toolkit, not to a wish.
    fn note_ptx(&mut self, index: usize) {
        let is_lost = |code: &Code| matches!(code, Code::Ptx(_)) && self.rules.wish.keeps(*code);
        if self.elements[index].codes().iter().any(is_lost) {
            self.lost_ptx = Some(index);
        }
    }

    /// Adds what is wanted and not there, the PTX that was lost with it.
    fn extend(&mut self) {
        let Some(model) = self.model().filter(|_| self.rules.adds) else { return };
        let missing = self.rules.wish.wanted().filter(|code| {
            self.rules.concerns(*code) && !self.is_served(*code) && !self.rules.is_served_beside(*code)
        });
        let missing: Vec<Code> = missing.collect();
        if missing.is_empty() {
            return;
        }
        let (refused, missing): (Vec<Code>, Vec<Code>) =
            missing.into_iter().partition(|code| self.rules.refusal(&Gencode::of(*code)).is_some());
        for code in refused {
            let who = self.rules.refusal(&Gencode::of(code)).unwrap_or_default();
            let label = code.label();
            self.settled
                .reported
                .push(format!("{label} not added: {who} refuses it, and a list knows no guard"));
        }
        let mut added = Vec::new();
        missing.into_iter().for_each(|code| added.extend(self.add(code, model)));
        if !added.is_empty() {
            self.settled.how.push(format!("adds {}", added.join(" ")));
            self.carry_ptx();
        }
    }

    /// An element that shows how machine code is written, else any flag.
    fn model(&self) -> Option<usize> {
        let is_sass = |element: &Element| matches!(element.codes(), [Code::Sass(_)]);
        let last = |fits: &dyn Fn(&Element) -> bool| self.elements.iter().rposition(fits);
        last(&is_sass).or_else(|| last(&|element| !element.codes().is_empty()))
    }

    /// Whether the list gives code for a wish. PTX of the very architecture counts: the driver translates it there.
    fn is_served(&self, wanted: Code) -> bool {
        let flags = self.settled.slots.iter().filter_map(|slot| slot.gencode.as_ref());
        serves(flags.flat_map(|gencode| &gencode.codes), wanted)
    }

    /// PTX that a toolkit refuses was there for newer chips than the list names: the newest entry gets it, unless older
    /// PTX is left.
    fn carry_ptx(&mut self) {
        let Some(index) = self.lost_ptx.filter(|_| self.rules.wish.only.is_empty()) else { return };
        let codes = |slot: &Slot| slot.gencode.iter().flat_map(|have| have.codes.clone()).collect::<Vec<_>>();
        let is_ptx = |code: &Code| matches!(code, Code::Ptx(_));
        if self.settled.slots.iter().any(|slot| codes(slot).iter().any(is_ptx)) {
            return;
        }
        let arch = |slot: &Slot| codes(slot).iter().map(Code::arch).max();
        let newest = (0..self.settled.slots.len()).max_by_key(|at| arch(&self.settled.slots[*at]));
        let Some((at, newest)) = newest.and_then(|at| Some((at, arch(&self.settled.slots[at])?))) else {
            return;
        };
        let ptx = Gencode::of(Code::Ptx(newest));
        if self.rules.refusal(&ptx).is_some() {
            return;
        }
        self.settled.how.push(format!("moves PTX to {newest}"));
        let element = &self.elements[index];
        if element.codes().len() > 1 {
            let both = Gencode { codes: vec![Code::Sass(newest), Code::Ptx(newest)], ..ptx };
            let slot = &mut self.settled.slots[at];
            (slot.text, slot.gencode) = (element.spelt(&both), Some(both));
            return;
        }
        let slot = Slot { was: self.still_there(index, at), text: element.spelt(&ptx), gencode: Some(ptx) };
        self.settled.slots.insert(at + 1, slot);
    }

    /// The element whose place a slot behind another one can keep, so that elements stay in their order.
    fn still_there(&self, index: usize, behind: usize) -> Option<usize> {
        let (before, after) = self.settled.slots.split_at(behind + 1);
        let is =
            |slots: &[Slot], fits: &dyn Fn(usize) -> bool| slots.iter().filter_map(|slot| slot.was).all(fits);
        (is(before, &|was| was < index) && is(after, &|was| was > index)).then_some(index)
    }

    /// Where a flag belongs in ascending order.
    fn place_of(&self, gencode: &Gencode) -> usize {
        let slots = &self.settled.slots;
        let smaller = |slot: &Slot| slot.gencode.as_ref().is_some_and(|have| have.order() < gencode.order());
        let after = slots.iter().rposition(smaller).map(|index| index + 1);
        let named = || slots.iter().position(|slot| slot.gencode.is_some());
        after.or_else(named).unwrap_or(slots.len())
    }

    /// Adds one result; what it is called. In notations that know it, PTX is part of its architecture.
    fn add(&mut self, code: Code, model: usize) -> Option<String> {
        if self.is_served(code) {
            return None;
        }
        let model = &self.elements[model];
        let flag = model.flag.as_ref()?;
        let gencode = Gencode::of(code);
        if flag.number && code.arch().variant != Variant::Plain {
            let label = code.label();
            self.settled.reported.push(format!("{label} not added: it cannot be written as a number"));
            return None;
        }
        match (code, flag.notation) {
            (Code::Sass(_), _) | (Code::Ptx(_), Notation::Gencode) => {
                let text = model.spelt(&gencode);
                let at = self.place_of(&gencode);
                let name = if flag.notation == Notation::Gencode { code.label() } else { text.clone() };
                self.settled.slots.insert(at, Slot { was: None, text, gencode: Some(gencode) });
                Some(name)
            }
            (Code::Ptx(arch), Notation::Capability) => {
                let has = |slot: &&mut Slot| {
                    slot.gencode.as_ref().is_some_and(|have| have.codes.contains(&Code::Sass(arch)))
                };
                let Some(slot) = self.settled.slots.iter_mut().find(has) else {
                    let label = code.label();
                    self.settled
                        .reported
                        .push(format!("{label} not added: {arch} itself is not in the list"));
                    return None;
                };
                let both = Gencode { virtual_arch: arch, codes: vec![Code::Sass(arch), code] };
                slot.text = model.spelt(&both);
                slot.gencode = Some(both);
                Some(format!("PTX to {arch}"))
            }
            (Code::Ptx(_) | Code::Lto(_), _) => {
                let label = code.label();
                self.settled.reported.push(format!("{label} not added: the list names architectures alone"));
                None
            }
        }
    }

    /// nvcc takes one `-arch`: where it cannot stay, the one architecture that is wanted takes its place.
    fn replace_shorthand(&mut self) {
        let is_it = |element: &Element| element.flag.as_ref().is_some_and(|flag| flag.shorthand);
        let Some(index) = self.elements.iter().position(is_it) else { return };
        let element = &self.elements[index];
        let stays = self.settled.slots.iter().any(|slot| slot.was == Some(index));
        let wanted: Vec<Code> = self.rules.wish.wanted().filter(|code| !self.is_served(*code)).collect();
        if self.is_paired() && !(stays && wanted.is_empty()) {
            return self.leave(format!(
                "`-code` beside {} names what is compiled: change both by hand",
                element.text
            ));
        }
        match wanted.as_slice() {
            [] if stays => {}
            [] => self.settled.how.push(format!("drops {}", element.text)),
            [one] if !stays => {
                let gencode = Gencode::of(*one);
                if let Some(who) = self.rules.refusal(&gencode) {
                    let (text, label) = (&element.text, one.label());
                    return self.leave(format!("nvcc takes one {text}, and {who} refuses {label}"));
                }
                let text = element.spelt(&gencode);
                self.settled.how.push(format!("{} becomes {text}", element.text));
                let before = |slot: &Slot| slot.was.is_some_and(|other| other < index);
                let at = self.settled.slots.iter().rposition(before).map_or(0, |at| at + 1);
                self.settled.slots.insert(at, Slot { was: Some(index), text, gencode: Some(gencode) });
            }
            [first, ..] => {
                let instead = format!("to compile for another one instead: --only-arch {}", first.label());
                self.leave(format!("nvcc takes one {}; {instead}", element.text));
            }
        }
    }

    /// Whether `-code` stands beside `-arch`.
    fn is_paired(&self) -> bool {
        let starts = |text: &str| text.starts_with("-code") || text.starts_with("--gpu-code");
        self.elements.iter().any(|element| starts(element.text.trim_start_matches(['"', '\''])))
    }

    /// Leaves the list as it is, to a person.
    fn leave(&mut self, why: String) {
        self.settled.reported.push(why);
        self.settled.how.clear();
        self.settled.slots = unchanged(self.elements);
    }

    /// A list that would lose everything stays as it is; so does one that a person must look at.
    fn finish(mut self) -> Settled {
        let flags = |slots: &[Slot]| slots.iter().any(|slot| slot.gencode.is_some());
        let had = self.elements.iter().any(|element| element.flag.is_some());
        self.settled.nothing_left = had && !self.rules.is_one_left_beside() && !flags(&self.settled.slots);
        if self.settled.nothing_left {
            self.settled.how.clear();
            self.settled.slots = unchanged(self.elements);
        }
        self.settled
    }
}

/// Why a list is left of which every entry is for one chip alone.
fn left_to_one_chip(elements: &[Element], rules: &Rules<'_>) -> Option<String> {
    let have: Vec<Code> = elements.iter().flat_map(|element| element.codes()).copied().collect();
    let missing = rules.wish.wanted().filter(|code| rules.concerns(*code) && !serves(have.iter(), *code));
    one_chip::left(&have, &missing.collect::<Vec<_>>())
}

fn serves<'a>(mut codes: impl Iterator<Item = &'a Code>, wanted: Code) -> bool {
    codes.any(|code| {
        let as_ptx = matches!((code, wanted), (Code::Ptx(_), Code::Sass(_)));
        code.serves(wanted) || (as_ptx && code.arch().serves(wanted.arch()))
    })
}

/// The slots of a list that stays as it is.
fn unchanged(elements: &[Element]) -> Vec<Slot> {
    let slot = |(index, element): (usize, &Element)| Slot {
        was: Some(index),
        text: element.text.clone(),
        gencode: element.flag.as_ref().map(|flag| flag.gencode.clone()),
    };
    elements.iter().enumerate().map(slot).collect()
}

/// A flag's results, or the element as it is written.
fn named(element: &Element) -> String {
    match &element.flag {
        Some(flag) if flag.notation == Notation::Gencode => labels(&flag.gencode.codes),
        _ => element.text.clone(),
    }
}

fn labels(codes: &[Code]) -> String {
    codes.iter().map(Code::label).collect::<Vec<_>>().join(" ")
}
