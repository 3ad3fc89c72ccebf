//! Lists that are made of a variable: `set(CMAKE_CUDA_ARCHITECTURES ${ARCHS})`, `ENV TORCH_CUDA_ARCH_LIST=$ARCHES`.

use super::Names;
use super::called;
use super::items::{asked, is_printed, variable};
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

    /// These, the variables that stand for the value of one of them, and those of loops that flags are made in.
    pub fn with_variables(&self, outline: &Outline) -> Self {
        let mut names = self.clone();
        let loops =
            outline.sequences.iter().filter(|one| one.is_of_loop()).filter_map(|one| one.name.clone());
        let asked = [asked(outline), called::asked(outline)].concat();
        names.others.extend(loops.filter(|name| asked.iter().any(|(asked, _)| asked == name)));
        while let Some((of_torch, variable)) = names.missing(outline) {
            let known = if of_torch { &mut names.torch } else { &mut names.others };
            known.push(variable);
        }
        names
    }

    /// A variable that stands for the value of one of these and is none of them.
    fn missing(&self, outline: &Outline) -> Option<(bool, String)> {
        let mut taken = outline.sequences.iter().filter_map(|one| {
            let name = one.name.as_deref().filter(|name| self.hold(name))?;
            Some((self.are_of_torch(name), taken(one)?)).filter(|_| !is_printed(one, outline))
        });
        taken.find(|(_, variable)| !self.hold(variable))
    }
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
    let name = variable(&text)?;
    let whole = [format!("${name}"), format!("${{{name}}}"), format!("$({name})")];
    let has_default = text.starts_with(&format!("${{{name}")) && text.matches(['{', '}']).count() == 2;
    (whole.contains(&text) || (has_default && text.ends_with('}'))).then_some(name)
}
