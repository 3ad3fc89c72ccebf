//! `gencode`: exactly the toolkits that know a wanted architecture compile it.

mod guard;
mod place;
mod read;
mod render;
mod settle;
mod tree;
mod worlds;

use crate::engine::arch::{Code, Gencode};
use crate::engine::catalogue::Catalogue;
use crate::engine::edit::Edits;
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
    value: Pattern,
    template: Template,
    from: Option<GuardForm>,
    until: Option<GuardForm>,
    forms: Vec<GuardForm>,
    hip: bool,
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

    fn keeps(&self, code: Code) -> bool {
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

impl GencodeOp {
    /// An op for one shape; `from` and `until` say how it compares the toolkit.
    pub fn new(
        files: super::files::Files,
        entry: &Pattern,
        from: Option<&Pattern>,
        until: Option<&Pattern>,
    ) -> Result<Self, GencodeOpError> {
        let parts = (0..entry.length()).filter_map(|index| entry.part(index));
        let value = parts.into_iter().find(|part| part.has("GENCODE")).ok_or(GencodeOpError::NoValue)?;
        let form = |key, pattern: Option<&Pattern>| {
            let none = |text: &str| GencodeOpError::NoComparison { key, text: text.to_string() };
            pattern.map(|pattern| GuardForm::new(pattern).ok_or_else(|| none(&pattern.text))).transpose()
        };
        let (from, until) = (form("from", from)?, form("until", until)?);
        let forms = from.iter().chain(&until).cloned().collect();
        let template = Template::new(&entry.text);
        let (entry, hip) = (entry.clone(), false);
        Ok(Self { files, entry, value, template, from, until, forms, hip })
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
        let op = Self { hip: speaks_of_hip(parsed), ..self.clone() };
        let worlds = Worlds::new(toolchain.catalogue, toolchain.floor, toolchain.cuda);
        let mut root = read::read(&op, parsed, &worlds);
        let line = root.entries().first().map(|(entry, _)| entry.line());
        let line = line.filter(|_| op.is_used(parsed)).ok_or_else(|| op.no_anchor(parsed, line.is_some()))?;
        let step = step(parsed);
        let Toolchain { catalogue, cuda, .. } = toolchain;
        let law = Law { op: &op, wish, cuda, catalogue, worlds: &worlds, step: &step };
        let settled = settle::settle(&mut root, &law)?;
        let text = render::render(&op, parsed, &root)?;
        let edits = Edits::between_lines(&parsed.bytes, &text);
        Ok(GencodePlan {
            edits,
            how: settled.how,
            remarks: settled.remarks,
            reported: settled.reported,
            line,
        })
    }

    /// The flags that a toolkit is given, in order.
    pub fn compiled(&self, parsed: &Parsed, toolkit: Toolkit, toolchain: Toolchain<'_>) -> Vec<Compiled> {
        let worlds = Worlds::new(toolchain.catalogue, toolchain.floor, &[toolkit]);
        let root = read::read(self, parsed, &worlds);
        let Some(at) = worlds.position(World::Cuda(toolkit)) else { return Vec::new() };
        let reached = root
            .entries()
            .into_iter()
            .filter(|(entry, presence)| entry.defect.is_none() && presence.at(at) != Truth::No);
        reached
            .map(|(entry, _)| Compiled {
                gencode: entry.gencode.clone(),
                accepted: toolchain.catalogue.takes(toolkit, &entry.gencode),
            })
            .collect()
    }

    /// Whether the file builds for HIP too.
    fn has_hip(&self) -> bool {
        self.hip
    }

    /// Whether something reads the list that the entries are added to.
    fn is_used(&self, parsed: &Parsed) -> bool {
        let Some(list) = self.entry.text.split(['.', '[', ' ']).next().filter(|name| is_identifier(name))
        else {
            return true;
        };
        descendants(parsed.root())
            .filter(|node| node.kind() == "identifier" && parsed.text(*node) == list)
            .any(|node| {
                let parent = node.parent();
                let is = |kind, field| {
                    parent.is_some_and(|parent| {
                        parent.kind() == kind && parent.child_by_field_name(field) == Some(node)
                    })
                };
                !is("attribute", "object") && !is("assignment", "left") && !is("augmented_assignment", "left")
            })
    }

    fn no_anchor(&self, parsed: &Parsed, unused: bool) -> GencodeError {
        let nearest = nearest_line(&parsed.bytes);
        GencodeError::NoAnchor { looked_for: self.entry.text.clone(), nearest, unused }
    }
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
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

fn speaks_of_hip(parsed: &Parsed) -> bool {
    let text = parsed.bytes.to_ascii_lowercase();
    [b"hip".as_slice(), b"rocm"].iter().any(|word| memchr::memmem::find(&text, word).is_some())
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
