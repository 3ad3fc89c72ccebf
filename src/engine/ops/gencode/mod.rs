//! `gencode`: exactly the toolkits that know a wanted architecture compile it.

pub mod any;
pub(super) mod guard;
mod known;
mod place;
mod reach;
mod read;
mod render;
pub(super) mod settle;
mod strays;
mod tree;
pub(super) mod worlds;

use std::collections::BTreeMap;

use crate::engine::arch::{Code, Gencode};
use crate::engine::catalogue::Catalogue;
use crate::engine::edit::Edits;
use crate::engine::ops::choice::Choice;
use crate::engine::pattern::{Pattern, Template, Unbound};
use crate::engine::source::line_text;
use crate::engine::syntax::language::{Parsed, descendants};
use crate::engine::syntax::style;
use crate::engine::toolkit::Toolkit;
use guard::GuardForm;
use settle::Law;
use worlds::{Truth, World, Worlds};

/// How one shape of a source spells one architecture and its guards.
#[derive(Debug, Clone)]
pub struct GencodeOp {
    /// The build files, relative to the root of the tree.
    pub files: super::files::Files,
    entry: Pattern,
    /// The entry, and with the long name of `-gencode`.
    entries: Vec<Pattern>,
    /// The statements of an entry that hold no value.
    options: Vec<Pattern>,
    values: Vec<Pattern>,
    template: Template,
    from: Option<GuardForm>,
    until: Option<GuardForm>,
    forms: Vec<GuardForm>,
    /// Whether comparisons of the toolkit count that are written in any other way, and lists that other files read.
    any: bool,
    /// What is wanted and given to the same list elsewhere.
    elsewhere: Vec<Code>,
    /// Whether the same list keeps flags that stand elsewhere.
    others_stay: bool,
}

/// Patterns that do not make a `gencode` op.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GencodeOpError {
    /// The entry does not say where the flag stands.
    #[error("`entry` has no `$GENCODE`")]
    NoValue,
    /// A guard does not compare the toolkit with a version.
    #[error("`{key}` is no comparison with `$FIRST`, `$LAST` or `$GONE`: `{text}`")]
    NoComparison {
        /// `from` or `until`.
        key: &'static str,
        /// What stands there.
        text: String,
    },
}

/// The architectures that are wanted and not wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchWish {
    /// To compile as well.
    pub add: Vec<Code>,
    /// To compile no longer; a machine code takes its PTX along.
    pub drop: Vec<Code>,
    /// To compile and nothing else, unless empty.
    pub only: Vec<Code>,
}

impl ArchWish {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.add.is_empty() && self.drop.is_empty() && self.only.is_empty()
    }

    /// What must be compiled.
    pub fn wanted(&self) -> impl Iterator<Item = Code> + '_ {
        self.only.iter().chain(&self.add).copied()
    }

    /// Whether a result stays.
    pub fn keeps(&self, code: Code) -> bool {
        let dropped = self.drop.iter().any(|drop| match drop {
            Code::Sass(arch) => code.arch().serves(*arch),
            Code::Ptx(_) | Code::Lto(_) => code.serves(*drop),
        });
        !dropped && (self.only.is_empty() || self.wanted().any(|wanted| code.serves(wanted)))
    }
}

/// The environment that the law is settled in.
#[derive(Debug, Clone, Copy)]
pub struct Toolchain<'a> {
    /// Which toolkit knows which architecture.
    pub catalogue: &'a Catalogue,
    /// The oldest toolkit that the source accepts.
    pub floor: Toolkit,
    /// The toolkits that it must build with.
    pub cuda: &'a [Toolkit],
}

/// A file that cannot be settled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GencodeError {
    /// No entry is there to hang an edit on.
    #[error("no gencode flag is added as `{looked_for}`{}", if *.unused { " to a list that reaches nvcc" } else { "" })]
    NoAnchor {
        /// The entry that was looked for.
        looked_for: String,
        /// The line that comes nearest, and its text.
        nearest: Option<(usize, String)>,
        /// Entries are there, but nothing reads their list.
        unused: bool,
    },
    /// An entry that must change shares its line with other code.
    #[error("line {line} holds other code beside the flag")]
    SharedLine {
        /// From 1.
        line: usize,
    },
    /// A guard is needed and the patch set does not say how the source writes one.
    #[error("the op has no `{key}`, and a guard is needed")]
    NoGuardForm {
        /// `from` or `until`.
        key: &'static str,
    },
    /// No block can take the entry.
    #[error("no block of the file can take a gencode flag")]
    NoPlace,
    /// Everything would be dropped.
    #[error("no architecture would be left")]
    NothingLeft,
    /// What stands under a condition that cannot be read would be exchanged.
    #[error("{advice}")]
    Exchanged {
        /// What a person should do.
        advice: String,
    },
    /// A template speaks of something that has no value here.
    #[error(transparent)]
    Unbound(#[from] Unbound),
}

/// What the op does to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GencodePlan {
    /// Nothing where the law holds already.
    pub edits: Edits,
    /// What changes, in words.
    pub how: Vec<String>,
    /// What was seen and left.
    pub remarks: Vec<String>,
    /// What a person should look at.
    pub reported: Vec<String>,
    /// The line of the first entry.
    pub line: usize,
}

/// A flag that one toolkit is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiled {
    /// What it compiles.
    pub gencode: Gencode,
    /// Whether the toolkit takes it.
    pub accepted: bool,
}

/// What a list gives each of some toolkits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What it is called; empty where a file has no other.
    pub name: String,
    /// Where it begins, from 1.
    pub line: usize,
    /// Whether it is added to what others give the list of this name.
    pub adds: bool,
    /// By the toolkit.
    pub given: Vec<Vec<Compiled>>,
}

impl GencodeOp {
    /// An op for one shape; `from` and `until` say how it compares the toolkit.
    pub fn new(
        files: super::files::Files,
        entry: &Pattern,
        from: Option<&Pattern>,
        until: Option<&Pattern>,
    ) -> Result<Self, GencodeOpError> {
        Self::of_entries(files, std::slice::from_ref(entry), (from, until))
    }

    /// An op for several spellings of an entry, the first of which is written.
    fn of_entries(
        files: super::files::Files,
        spellings: &[Pattern],
        (from, until): (Option<&Pattern>, Option<&Pattern>),
    ) -> Result<Self, GencodeOpError> {
        let long = |entry: &Pattern| {
            Pattern::new(entry.language, &entry.text.replace("\"-gencode", "\"--generate-code")).ok()
        };
        let entry = spellings.first().ok_or(GencodeOpError::NoValue)?.clone();
        let entries: Vec<Pattern> =
            spellings.iter().cloned().chain(spellings.iter().filter_map(long)).collect();
        let parts =
            entries.iter().flat_map(|entry| (0..entry.length()).filter_map(|index| entry.part(index)));
        let (values, options): (Vec<_>, Vec<_>) = parts.partition(|part| part.has("GENCODE"));
        if values.is_empty() {
            return Err(GencodeOpError::NoValue);
        }
        let form = |key, pattern: Option<&Pattern>| {
            let none = |text: &str| GencodeOpError::NoComparison { key, text: text.to_string() };
            pattern.map(|pattern| GuardForm::new(pattern).ok_or_else(|| none(&pattern.text))).transpose()
        };
        let (from, until) = (form("from", from)?, form("until", until)?);
        let forms = from.iter().chain(&until).cloned().collect();
        let template = Template::new(&entry.text);
        let (any, elsewhere, others_stay) = (false, Vec::new(), false);
        Ok(Self {
            files,
            entry,
            entries,
            options,
            values,
            template,
            from,
            until,
            forms,
            any,
            elsewhere,
            others_stay,
        })
    }

    /// The code that it speaks of.
    pub(super) fn parts(&self) -> Vec<(&'static str, String)> {
        let guards = [("from", &self.from), ("until", &self.until)];
        let guards = guards.into_iter().filter_map(|(key, form)| Some((key, form.as_ref()?.text())));
        std::iter::once(("entry", self.entry.text.clone())).chain(guards).collect()
    }

    /// What to do so that the arch law holds.
    pub fn plan(
        &self,
        parsed: &Parsed,
        wish: &ArchWish,
        toolchain: Toolchain<'_>,
    ) -> Result<GencodePlan, GencodeError> {
        let worlds = self.worlds(wish, toolchain);
        let mut root = read::read(self, parsed, &worlds);
        let line = self.anchor(parsed, &root)?;
        let step = step(parsed);
        let Toolchain { catalogue, cuda, .. } = toolchain;
        let hip = guard::names_hip(&String::from_utf8_lossy(&parsed.bytes));
        let law = Law {
            op: self,
            wish,
            cuda,
            catalogue,
            worlds: &worlds,
            step: &step,
            hip,
            apart: None,
            adds: true,
        };
        if let Some(cleaned) = self.cleaned(parsed, &root, &law)? {
            return self.plan_cleaned(parsed, &cleaned, wish, toolchain);
        }
        // Of any list, flags that no statement adds are elements, which another op reads.
        let strays = if self.any { Vec::new() } else { strays::reports(self, parsed, &root) };
        let chosen = root.chosen();
        let settled = settle::settle(&mut root, &law)?;
        exchanged(&chosen, &root.chosen()).map_or(Ok(()), Err)?;
        let text = render::render(self, parsed, &root)?;
        let edits = Edits::between_lines(&parsed.bytes, &text);
        let reported = settled.reported.into_iter().chain(strays).collect();
        Ok(GencodePlan { edits, how: settled.how, remarks: settled.remarks, reported, line })
    }

    /// The circumstances that the law is settled for: where no guard can be written, the given toolkits, or those that
    /// take all that is wanted.
    fn worlds(&self, wish: &ArchWish, toolchain: Toolchain<'_>) -> Worlds {
        let Toolchain { catalogue, floor, cuda } = toolchain;
        if !self.any || self.from.is_some() {
            return Worlds::new(catalogue, floor, cuda);
        }
        let takes = |toolkit: Toolkit| wish.wanted().all(|code| catalogue.takes(toolkit, &Gencode::of(code)));
        let all = catalogue.toolkits().iter().map(|row| row.version).filter(|toolkit| takes(*toolkit));
        if cuda.is_empty() { Worlds::of(all) } else { Worlds::of(cuda.iter().copied()) }
    }

    /// The line of the first entry that something reaches.
    fn anchor(&self, parsed: &Parsed, root: &tree::Block) -> Result<usize, GencodeError> {
        let entries = root.entries();
        let reached = entries.iter().find(|(_, presence)| !presence.nowhere());
        let line = reached.map(|(entry, _)| entry.line()).filter(|_| self.is_used(parsed));
        line.ok_or_else(|| self.no_anchor(parsed, !entries.is_empty()))
    }

    /// The file without the hand edits that are repaired, where it can be read better then: a line at a wrong column
    /// makes the rest of the file look as if it stood elsewhere.
    fn cleaned(
        &self,
        parsed: &Parsed,
        root: &tree::Block,
        law: &Law<'_>,
    ) -> Result<Option<(Parsed, Vec<String>)>, GencodeError> {
        let errors = parsed.syntax_errors();
        if errors == 0 {
            return Ok(None);
        }
        let mut root = root.clone();
        let how = settle::clean(&mut root, law);
        let text = render::render(self, parsed, &root)?;
        let cleaned = Parsed::new(parsed.language, text.into()).ok();
        Ok(cleaned.filter(|cleaned| cleaned.syntax_errors() < errors).map(|cleaned| (cleaned, how)))
    }

    fn plan_cleaned(
        &self,
        parsed: &Parsed,
        (cleaned, how): &(Parsed, Vec<String>),
        wish: &ArchWish,
        toolchain: Toolchain<'_>,
    ) -> Result<GencodePlan, GencodeError> {
        let plan = self.plan(cleaned, wish, toolchain)?;
        let edits = Edits::between_lines(&parsed.bytes, &plan.edits.apply(&cleaned.bytes));
        let how = how.iter().cloned().chain(plan.how).collect();
        Ok(GencodePlan { edits, how, ..plan })
    }

    /// The flags that each toolkit is given, in order; what a second list of the file repeats is not said again.
    pub fn compiled(
        &self,
        parsed: &Parsed,
        toolkits: &[Toolkit],
        toolchain: Toolchain<'_>,
    ) -> Vec<Vec<Compiled>> {
        let worlds = Worlds::new(toolchain.catalogue, toolchain.floor, toolkits);
        let mut root = read::read(self, parsed, &worlds);
        let own = root.take_own_lists();
        let given = |toolkit: &Toolkit| {
            let at = worlds.position(World::Cuda(*toolkit));
            let lists = [&root].into_iter().chain(&own);
            lists.fold(Vec::new(), |mut compiled: Vec<Compiled>, list| {
                let flags = given_by(list, at, |gencode| toolchain.catalogue.takes(*toolkit, gencode));
                let new: Vec<Compiled> = flags.into_iter().filter(|flag| !compiled.contains(flag)).collect();
                compiled.extend(new);
                compiled
            })
        };
        toolkits.iter().map(given).collect()
    }

    fn no_anchor(&self, parsed: &Parsed, unused: bool) -> GencodeError {
        let nearest = nearest_line(&parsed.bytes);
        GencodeError::NoAnchor { looked_for: self.entry.text.clone(), nearest, unused }
    }
}

/// What stands under a condition that may choose an architecture, and would be exchanged.
fn exchanged(
    before: &BTreeMap<usize, (Choice, Vec<Code>)>,
    after: &BTreeMap<usize, (Choice, Vec<Code>)>,
) -> Option<GencodeError> {
    let mut exchanged =
        before.iter().filter_map(|(id, (choice, codes))| choice.exchanged(codes, &after.get(id)?.1));
    exchanged.next().map(|advice| GencodeError::Exchanged { advice })
}

/// The flags that a list gives in one world.
fn given_by(list: &tree::Block, world: Option<usize>, accepts: impl Fn(&Gencode) -> bool) -> Vec<Compiled> {
    let reached = |presence: &worlds::Presence| world.is_some_and(|at| presence.at(at) != Truth::No);
    let entries = list.entries().into_iter();
    entries
        .filter(|(entry, presence)| entry.defect.is_none() && reached(presence))
        .map(|(entry, _)| Compiled { gencode: entry.gencode.clone(), accepted: accepts(&entry.gencode) })
        .collect()
}

/// The value of a metavariable in an entry that is written.
fn written(gencode: &Gencode, name: &str) -> Option<String> {
    let code = gencode.codes.first()?;
    match name {
        "GENCODE" => Some(gencode.to_string()),
        "CODE" => Some(code.to_string()),
        "NN" => Some(code.arch().to_string()),
        "CC" => Some(code.arch().capability()),
        _ => None,
    }
}

/// The line that looks most like a gencode flag.
fn nearest_line(bytes: &[u8]) -> Option<(usize, String)> {
    ["gencode", "compute_", "sm_", "arch"].iter().find_map(|word| {
        let at = memchr::memmem::find(bytes, word.as_bytes())?;
        let line = crate::engine::source::line_of(bytes, at);
        Some((line, line_text(bytes, line).trim().to_string()))
    })
}

/// One step of indentation: what the first block of the file has more than its statement.
fn step(parsed: &Parsed) -> Vec<u8> {
    let blocks = descendants(parsed.root()).filter(|node| node.kind() == "block");
    let steps = blocks.filter_map(|block| {
        let inner = style::indent_at(&parsed.bytes, block.start_byte());
        let outer = style::indent_at(&parsed.bytes, block.parent()?.start_byte());
        inner.strip_prefix(outer).filter(|step| !step.is_empty()).map(<[u8]>::to_vec)
    });
    let mut steps = steps;
    steps.next().unwrap_or_else(|| b"    ".to_vec())
}

#[cfg(test)]
mod tests;
