//! `list`: lists of architectures hold what is wanted; their notation is kept. Flags that are elements of a list are
//! settled in the same way.

mod added;
mod each;
mod element;
mod find;
mod flags;
pub mod resolve;
mod settle;
mod torch;
mod write;

use pep440_rs::Version;

use super::emptied;
use super::file_plan::{FilePlan, plan_files};
use super::files::Files;
use super::gencode::{Compiled, Listed};
use super::givers::{adding_statement, leaves_a_block};
use super::rewrite::Condition;
use super::{Aim, NoAnchor, OpError, OpPlan, Outcome, Site, parse};
use crate::engine::arch::Code;
use crate::engine::edit::{Edit, Edits};
use crate::engine::pattern::Pattern;
use crate::engine::source::{Sources, line_of, line_text};
use crate::engine::syntax::language::Parsed;
use crate::engine::syntax::style::{is_blank, line_end, line_start};
use crate::engine::toolkit::Toolkit;
pub use element::{NoSpelling, Spelling};
use find::{Holder, found, named};
pub(super) use find::{asks_for_arch, is_compared, name_of, taken_out_in};
use flags::with_flags;
use settle::{Rules, Settled, settle};
use write::{ContainerKind, Written};

/// Lists of architectures.
#[derive(Debug, Clone)]
pub struct ListOp {
    /// Where to look.
    pub files: Files,
    /// Which lists.
    pub which: Which,
}

/// Which lists an op is about.
#[derive(Debug, Clone)]
pub enum Which {
    /// The one that a name stands for, such as one that only validates; it must be there.
    Named(String),
    /// Those that code of some shape holds.
    Found(Box<FoundLists>),
    /// Those that hold nvcc flags, and command lines of nvcc.
    Flags(Vec<Spelling>),
}

/// Lists that code of some shape holds. One that is found in several ways counts by the first of them.
#[derive(Debug, Clone)]
pub struct FoundLists {
    /// Code around `$ARCHES` that PyTorch reads.
    pub torch: Vec<Pattern>,
    /// What stands before the value in a string that a loop fills with each of a list: `compute_`.
    pub each: Vec<String>,
    /// Code around `$ARCHES` of which nothing tells who reads it.
    pub find: Vec<Pattern>,
    /// Conditions on the other metavariables of `find`.
    pub conditions: Vec<Condition>,
    /// `each` and `find` only in files that hold one of these texts.
    pub with: Vec<String>,
}

impl FoundLists {
    /// Whether a file can hold lists of a loop, or such that are known by what stands around them.
    fn is_in_build_code(&self, bytes: &[u8]) -> bool {
        self.with.is_empty() || self.with.iter().any(|word| holds(bytes, word))
    }

    fn may_hold(&self, bytes: &[u8]) -> bool {
        let may_match = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.may_match(bytes));
        may_match(&self.torch)
            || (self.is_in_build_code(bytes)
                && (self.each.iter().any(|word| holds(bytes, word)) || may_match(&self.find)))
    }
}

fn holds(bytes: &[u8], word: &str) -> bool {
    memchr::memmem::find(bytes, word.as_bytes()).is_some()
}

/// Who reads a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// nvcc is asked for all of it.
    Nvcc,
    /// PyTorch, which checks it and hands it to nvcc.
    Torch,
    /// The source does not tell: it may only say what can be asked for.
    Unknown,
}

/// What an op found in one file.
#[derive(Debug, Default)]
struct InFile {
    holders: Vec<Holder>,
    remarks: Vec<String>,
    reported: Vec<String>,
}

impl ListOp {
    /// The code that it speaks of.
    pub(super) fn parts(&self) -> Vec<(&'static str, String)> {
        let each = |key, texts: &[String]| texts.iter().map(|text| (key, text.clone())).collect::<Vec<_>>();
        match &self.which {
            Which::Named(name) => vec![("name", name.clone())],
            Which::Flags(spellings) => {
                spellings.iter().map(|spelling| ("elements", spelling.text.clone())).collect()
            }
            Which::Found(lists) => {
                let texts = |patterns: &[Pattern]| -> Vec<String> {
                    patterns.iter().map(|pattern| pattern.text.clone()).collect()
                };
                let [torch, find] = [&lists.torch, &lists.find].map(|patterns| texts(patterns));
                [each("torch", &torch), each("each", &lists.each), each("find", &find)].concat()
            }
        }
    }

    /// The kind, as patch sets name it.
    pub fn kind(&self) -> &'static str {
        if matches!(self.which, Which::Flags(_)) { "gencode" } else { "list" }
    }

    /// What the op does to these sources.
    pub fn plan(&self, sources: &Sources, aim: Aim<'_>) -> Result<OpPlan, OpError> {
        let plan = |parsed: &Parsed, path: &str| self.plan_file(parsed, path, aim);
        let found = (&self.files, sources);
        let Which::Named(name) = &self.which else {
            return plan_files(found, |bytes| self.may_hold(bytes), plan, (self.nothing(), aim));
        };
        let mut whole = OpPlan::of(Outcome::AlreadySatisfied { why: format!("`{name}` holds them") });
        let mut how = Vec::new();
        for (path, bytes) in self.files.of(sources) {
            let Some(parsed) = parse(sources, path)? else { continue };
            let one = plan(parsed, path)?;
            whole.sites.extend(one.lines.iter().map(|line| Site {
                path: path.to_string(),
                line: *line,
                text: line_text(bytes, *line),
            }));
            how.extend(one.how);
            if !one.edits.is_empty() {
                whole.edits.insert(path.to_string(), one.edits);
            }
        }
        whole.conclude(how, Vec::new());
        Ok(whole)
    }

    fn plan_file(&self, parsed: &Parsed, path: &str, aim: Aim<'_>) -> Result<FilePlan, OpError> {
        let found = self.in_file(parsed, path, aim)?;
        let mut plan = FilePlan { remarks: found.remarks, reported: found.reported, ..FilePlan::default() };
        for holder in &found.holders {
            plan.lines.push(line_of(&parsed.bytes, holder.container.range.start));
            let Some(settled) = self.settled(holder, aim) else { continue };
            if settled.nothing_left {
                plan.reported.push(self.emptied(holder, path, aim)?);
                continue;
            }
            let name = &holder.name;
            if let Some(advice) = holder.exchanged(&settled).filter(|_| !self.is_named()) {
                plan.reported.push(format!("{name}: {advice}"));
                continue;
            }
            plan.reported.extend(settled.reported.iter().map(|text| format!("{name}: {text}")));
            let (container, elements) = (&holder.container, &holder.elements);
            let written = Written { bytes: &parsed.bytes, container, elements };
            let overlap = |overlap| OpError::Overlap { path: path.to_string(), overlap };
            let edits = match holder.emptied_statement(&settled, parsed) {
                Some(edit) => Edits::from(edit),
                None if container.kind == ContainerKind::Single && settled.slots.is_empty() => {
                    let line = line_of(&parsed.bytes, container.range.start);
                    plan.reported.push(format!("line {line} adds {name} alone: take it out by hand"));
                    continue;
                }
                None => written.edits(&settled.slots).map_err(overlap)?,
            };
            if !edits.is_empty() {
                plan.how.push(format!("{name}: {}", settled.how.join(", ")));
                plan.edits.merge(edits).map_err(overlap)?;
            }
        }
        Ok(plan)
    }

    /// What each toolkit is given by each list that is known to reach nvcc.
    pub fn compiled(&self, parsed: &Parsed, toolkits: &[Toolkit], aim: Aim<'_>) -> Vec<Listed> {
        let holders = self.in_file(parsed, "", aim).map(|found| found.holders).unwrap_or_default();
        let listed = |holder: &Holder| {
            let given = toolkits.iter().map(|toolkit| holder.given(*toolkit, aim));
            let line = line_of(&parsed.bytes, holder.container.range.start);
            let (name, adds) = (&holder.name, holder.share.part_of.is_some());
            let name = holder.share.part_of.as_ref().unwrap_or(name).clone();
            Listed { name, line, adds, given: given.collect() }
        };
        holders.iter().filter(|holder| holder.reader != Reader::Unknown).map(listed).collect()
    }

    fn is_named(&self) -> bool {
        matches!(self.which, Which::Named(_))
    }

    /// Whether a file can hold such a list at all, judged without parsing it.
    pub(super) fn may_hold(&self, bytes: &[u8]) -> bool {
        match &self.which {
            Which::Named(_) => true,
            Which::Flags(spellings) => spellings.iter().any(|spelling| holds(bytes, spelling.word())),
            Which::Found(lists) => lists.may_hold(bytes),
        }
    }

    fn in_file(&self, parsed: &Parsed, path: &str, aim: Aim<'_>) -> Result<InFile, OpError> {
        match &self.which {
            Which::Named(name) => {
                let holder = named(parsed, name, aim);
                let holder =
                    holder.ok_or_else(|| no_anchor(name, path, format!("no list named `{name}`")))?;
                let knows = holder.elements.iter().any(|element| element.flag.is_some());
                if !knows && aim.wish.wanted().next().is_some() {
                    return Err(no_anchor(name, path, format!("no architecture in `{name}`")));
                }
                Ok(InFile { holders: vec![holder], ..InFile::default() })
            }
            Which::Flags(spellings) => Ok(with_flags(parsed, spellings, aim)),
            Which::Found(lists) => Ok(found(parsed, lists, aim)),
        }
    }

    /// The settled list; `None` where none of the given toolkits reads it.
    fn settled(&self, holder: &Holder, aim: Aim<'_>) -> Option<Settled> {
        let given: Vec<Toolkit> =
            aim.toolchain.cuda.iter().copied().filter(|cuda| holder.toolkits.contains(cuda)).collect();
        let concerned =
            if aim.toolchain.cuda.is_empty() { !holder.toolkits.is_empty() } else { !given.is_empty() };
        if self.is_named() {
            return Some(settle(
                &holder.elements,
                &Rules { cuda: &[], torch: None, prunes: false, ..rules(aim) },
            ));
        }
        let torch = aim.torch.filter(|_| holder.reader == Reader::Torch);
        let (prunes, share, readers) = (holder.prunes, Some(&holder.share), holder.toolkits.as_slice());
        let rules = Rules { cuda: &given, torch, prunes, adds: holder.adds, share, readers, ..rules(aim) };
        concerned.then(|| settle(&holder.elements, &rules))
    }

    /// What is to be said of a list that would lose everything; of a named one it is an error.
    fn emptied(&self, holder: &Holder, path: &str, aim: Aim<'_>) -> Result<String, OpError> {
        let place = format!("{} of {path}", holder.name);
        if self.is_named() {
            return Err(OpError::NothingLeft { place });
        }
        let given = (aim.toolchain.cuda, aim.torch);
        Ok(emptied::told(&holder.name, aim.wish, given, aim.toolchain.catalogue))
    }

    /// What is said where no file holds such a list.
    fn nothing(&self) -> &'static str {
        match &self.which {
            Which::Flags(_) => "no list of nvcc flags names an architecture",
            Which::Named(_) | Which::Found(_) => "no such list",
        }
    }
}

impl Holder {
    /// What it gives a toolkit.
    fn given(&self, toolkit: Toolkit, aim: Aim<'_>) -> Vec<Compiled> {
        let catalogue = aim.toolchain.catalogue;
        let flags = self.elements.iter().filter_map(|element| Some(&element.flag.as_ref()?.gencode));
        let flags = flags.filter(|_| self.toolkits.contains(&toolkit));
        flags
            .map(|gencode| Compiled { gencode: gencode.clone(), accepted: catalogue.takes(toolkit, gencode) })
            .collect()
    }

    /// What becomes of a statement that would add nothing any more.
    fn emptied_statement(&self, settled: &Settled, parsed: &Parsed) -> Option<Edit> {
        let added = parsed.node_at(&self.container.range).filter(|_| settled.slots.is_empty())?;
        let statement = adding_statement(added, parsed)?;
        let (bytes, range) = (&parsed.bytes, statement.byte_range());
        if !leaves_a_block(statement) {
            return Some(Edit { range, text: b"pass".to_vec() });
        }
        let lines = line_start(bytes, range.start)..line_end(bytes, range.end - 1);
        let around = [&bytes[lines.start..range.start], &bytes[range.end..lines.end]].concat();
        is_blank(&around).then_some(Edit { range: lines, text: Vec::new() })
    }

    /// What is said where a condition that cannot be read stands around a list of which nothing would stay.
    fn exchanged(&self, settled: &Settled) -> Option<String> {
        let before: Vec<Code> = self.elements.iter().flat_map(|element| element.codes()).copied().collect();
        let gencodes = settled.slots.iter().filter_map(|slot| slot.gencode.as_ref());
        let after: Vec<Code> = gencodes.flat_map(|gencode| gencode.codes.clone()).collect();
        self.choice.as_ref()?.exchanged(&before, &after)
    }
}

fn rules(aim: Aim<'_>) -> Rules<'_> {
    let Aim { wish, toolchain, torch, .. } = aim;
    let torch: Option<&Version> = torch;
    Rules {
        wish,
        catalogue: toolchain.catalogue,
        cuda: &[],
        torch,
        adds: true,
        share: None,
        prunes: true,
        readers: &[],
    }
}

fn no_anchor(name: &str, path: &str, fact: String) -> OpError {
    OpError::NoAnchor(Box::new(NoAnchor {
        fact,
        path: path.to_string(),
        looked_for: format!("{name} = [...]"),
        nearest: None,
    }))
}

#[cfg(test)]
mod tests;
