//! Lists that are made of a variable: `set(CMAKE_CUDA_ARCHITECTURES ${ARCHS})`, `ENV TORCH_CUDA_ARCH_LIST=$ARCHES`.

use std::ops::Range;

use super::Names;
use super::called;
use super::items::{self, Asked, is_printed, variable};
use super::made::STEM;
use super::outline::{Outline, Sequence, without_index};
use crate::engine::syntax::words::Word;

impl Names {
    /// Whether a name is one of these.
    pub fn hold(&self, name: &str) -> bool {
        is_named(name, &self.torch) || is_named(name, &self.others)
    }

    /// Whether PyTorch reads what has a name.
    pub fn are_of_torch(&self, name: &str) -> bool {
        is_named(name, &self.torch)
    }

    /// These, the variables that stand for the value of one of them, and the loops that flags are made in.
    pub fn with_variables(&self, outline: &Outline) -> Meant {
        let asked = asked_for(outline);
        let makes = |one: &&Sequence| asked.iter().any(|asked| one.gives(&asked.variable, &asked.place));
        let loops = outline.sequences.iter().filter(makes).filter_map(|one| one.scope.clone()).collect();
        let mut meant = Meant { names: self.clone(), loops };
        // What a flag takes its one architecture from has no room for a list.
        let single: Vec<String> = items::asked(outline)
            .into_iter()
            .filter(|asked| !outline.sequences.iter().any(|one| one.gives(&asked.variable, &asked.place)))
            .map(|asked| asked.variable)
            .collect();
        while let Some((of_torch, variable)) = meant.missing(outline, &single) {
            let known = if of_torch { &mut meant.names.torch } else { &mut meant.names.others };
            known.push(variable);
        }
        meant
    }
}

/// The lists of a file that are meant.
pub struct Meant {
    /// By their names.
    pub names: Names,
    /// Loops, by where their variable has its values.
    loops: Vec<Range<usize>>,
}

impl Meant {
    /// Whether a sequence is one of the lists.
    pub fn hold(&self, one: &Sequence) -> bool {
        let is_loop = one.scope.as_ref().is_some_and(|scope| self.loops.contains(scope));
        is_loop || one.names().any(|name| self.names.hold(name))
    }

    /// A variable that stands for the value of one of these and is none of them.
    fn missing(&self, outline: &Outline, single: &[String]) -> Option<(bool, String)> {
        let mut taken = outline.sequences.iter().filter_map(|one| {
            let name = one.name.as_deref().filter(|_| self.hold(one))?;
            let variable = taken(one).filter(|name| !(one.is_of_loop() && single.contains(name)))?;
            Some((self.names.are_of_torch(name), variable)).filter(|_| !is_printed(one, outline))
        });
        taken.find(|(_, variable)| !self.names.hold(variable))
    }
}

/// The variables that flags are made of, by themselves or by others: `sm=${arch//./}` before `-arch=sm_$sm`.
fn asked_for(outline: &Outline) -> Vec<Asked> {
    let mut asked = [items::asked(outline), called::asked(outline)].concat();
    let mut at = 0;
    while let Some(Asked { variable, is_number, .. }) = asked.get(at).cloned() {
        let values = outline.sequences.iter().filter(|one| one.name.as_ref() == Some(&variable));
        let mentioned = values.flat_map(|one| &one.words).flat_map(|word| {
            let names = mentioned(&word.text).into_iter();
            names.map(|variable| Asked { variable, is_number, place: word.range.clone() })
        });
        let is_of_loop =
            |new: &Asked| outline.sequences.iter().any(|one| one.gives(&new.variable, &new.place));
        let new: Vec<Asked> = mentioned.filter(|new| is_of_loop(new) && !asked.contains(new)).collect();
        asked.extend(new);
        at += 1;
    }
    asked
}

/// The variables that a text expands.
fn mentioned(text: &str) -> Vec<String> {
    text.match_indices('$').filter_map(|(at, _)| variable(&text[at..])).collect()
}

fn is_named(name: &str, names: &[String]) -> bool {
    names.iter().any(|wanted| wanted.strip_prefix('*').map_or(name == wanted, |end| name.ends_with(end)))
}

/// The function of CMake's FindCUDA that makes flags of architectures. It reads `8.6` and names up to Ampere, and stops
/// at `12.0`.
pub const SELECT: &str = "cuda_select_nvcc_arch_flags";

/// The variables that are given to it, and those that they are made of.
pub fn selected(outline: &Outline) -> Vec<String> {
    let calls = outline.sequences.iter().filter(|one| one.name.is_none() && one.owner == SELECT);
    handed(outline, &calls.flat_map(|call| &call.words).collect::<Vec<_>>())
}

/// The variables among words of a call, and those that they are made of.
pub fn handed(outline: &Outline, words: &[&Word]) -> Vec<String> {
    let mut handed: Vec<String> = words.iter().filter_map(|word| variable(&word.text)).collect();
    let mut at = 0;
    while let Some(name) = handed.get(at).cloned() {
        let values = outline.sequences.iter().filter(|one| one.name.as_ref() == Some(&name));
        let new: Vec<String> = values.filter_map(taken).filter(|name| !handed.contains(name)).collect();
        handed.extend(new);
        at += 1;
    }
    handed
}

/// The variable that a value consists of, besides its own old value.
pub fn taken(sequence: &Sequence) -> Option<String> {
    let mut words = sequence.words.iter().filter(|word| !sequence.is_itself(word));
    let (only, None) = (words.next()?, words.next()) else { return None };
    let text = without_index(&only.text);
    let name = variable(&text).filter(|name| name != STEM)?;
    let text = text.strip_prefix('$').filter(|rest| rest.starts_with('$')).unwrap_or(&text).to_string();
    let whole = [format!("${name}"), format!("${{{name}}}"), format!("$({name})")];
    let has_default = text.starts_with(&format!("${{{name}")) && text.matches(['{', '}']).count() == 2;
    (whole.contains(&text) || (has_default && text.ends_with('}'))).then_some(name)
}
