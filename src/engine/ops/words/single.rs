//! Flags with room for one architecture: `-arch=sm_90`, and the value of a variable behind it.

use super::settle::{Fate, Settling};
use crate::engine::arch::{Code, Gencode};
use crate::engine::toolkit::Toolkit;

impl Settling<'_> {
    /// A flag with room for one: what stays and what is wanted must be one and the same.
    pub(super) fn settle_single(&mut self) {
        let mut parts: Vec<Gencode> = self.kept.concat();
        let wanted: Vec<Code> = self.law.wish.wanted().collect();
        let missing = wanted.iter().filter(|code| !self.serves(&parts, **code)).copied();
        let missing: Vec<Code> = missing.collect();
        let stays = self.settled.fates.iter().all(|fate| *fate == Fate::Stays);
        if self.list.is_paired && !(stays && missing.is_empty()) {
            return self.leave("`-code` beside it names what is compiled: change both by hand".to_string());
        }
        if missing.is_empty() {
            return;
        }
        let names = missing.iter().map(Code::label).collect::<Vec<_>>().join(" ");
        if !parts.is_empty() || (self.list.is_one && missing.len() > 1) {
            let what = "the flag has room for one architecture";
            return self.leave(format!("{what}: `--only-arch {names}` replaces it"));
        }
        if let Some(toolkit) = self.refusing(&missing) {
            return self.leave(format!(
                "the flag has room for one architecture, and CUDA {toolkit} refuses {names}: compile for each toolkit \
                 by a flag of its own"
            ));
        }
        parts.extend(missing.iter().map(|code| Gencode::of(*code)));
        self.settled.added.extend(missing);
        self.settled.fates = vec![Fate::Becomes(parts)];
    }

    /// A list that CMake's own function reads gets nothing new; what is wanted is told where the function is called.
    pub(super) fn settle_selected(&mut self) {
        let kept: Vec<Gencode> = self.kept.concat();
        let is_missing = self.law.wish.wanted().any(|code| !self.serves(&kept, code));
        if kept.is_empty() || (is_missing && !self.law.wish.only.is_empty()) {
            self.settled.fates.fill(Fate::Stays);
            self.settled.dropped.clear();
        } else {
            self.keep_ptx();
        }
    }

    /// The given toolkit that gets to the list and refuses one of some results.
    fn refusing(&self, codes: &[Code]) -> Option<Toolkit> {
        let presence = &self.list.blocks[self.list.home];
        let mut given = self.law.cuda.iter().copied().filter(|toolkit| self.law.reaches(presence, *toolkit));
        given
            .find(|toolkit| codes.iter().any(|code| !self.law.catalogue.takes(*toolkit, &Gencode::of(*code))))
    }

    /// Leaves the list as it is, to a person.
    fn leave(&mut self, why: String) {
        self.settled.fates.fill(Fate::Stays);
        self.settled.dropped.clear();
        self.settled.reported.push(why);
    }
}
