//! Ops: statements of what must hold in a source tree.
//!
//! A new op is one file here, one variant of [`Op`], one field in `patchset/schema.rs` and a fixture.

mod choice;
pub mod continuation;
mod emptied;
mod file_plan;
pub mod files;
mod flow;
pub mod gencode;
mod givers;
pub mod import;
pub mod include;
pub mod insert;
pub mod list;
mod one_chip;
pub mod own;
pub mod reach;
pub mod rename;
pub mod rewrite;
pub mod right_for;
pub mod words;

use std::collections::BTreeMap;

use pep440_rs::Version;

use super::arch::Code;
use super::edit::{Edits, Overlap};
use super::pattern::Unbound;
use super::source::{Sources, line_of, line_text};
use super::syntax::Passes;
use super::syntax::language::{ParseFailed, Parsed};
use super::toolkit::Toolkit;
use files::Files;
use gencode::any::AnyGencodeOp;
use gencode::{ArchWish, GencodeError, GencodeOp, Listed, Toolchain};
use include::Wanted;
use rewrite::Ground;

/// One statement of what must hold.
#[derive(Debug, Clone)]
pub enum Op {
    /// A name is gone from code and macro bodies.
    Rename(rename::RenameOp),
    /// No match of a pattern is left, or its matches are reported.
    Rewrite(Box<rewrite::RewriteOp>),
    /// A named list holds the wanted values.
    List(list::ListOp),
    /// Exactly the toolkits that know a wanted architecture compile it.
    Gencode(Box<GencodeOp>),
    /// The same, of any list that statements add flags to.
    AnyGencode(AnyGencodeOp),
    /// Lists of architectures outside of Python hold the wanted values.
    Words(words::WordsOp),
    /// Words that follow each other are gone, or reported.
    WordsRewrite(Box<words::rewrite::WordsRewrite>),
    /// A snippet stands beside an anchor, once.
    Insert(insert::InsertOp),
}

/// A place in the sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Relative to the root of the tree.
    pub path: String,
    /// From 1.
    pub line: usize,
    /// The text of the line.
    pub text: String,
}

impl Site {
    /// The place of a byte.
    pub fn of(path: &str, bytes: &[u8], offset: usize) -> Self {
        let line = line_of(bytes, offset);
        Self { path: path.to_string(), line, text: line_text(bytes, line) }
    }
}

/// A place that an op saw and left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// Where.
    pub site: Site,
    /// Why, in a few words: `comment`.
    pub why: String,
    /// Whether a person should look at it.
    pub open: bool,
}

/// What an op found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Edits make it hold.
    Changed {
        /// In words, a phrase each.
        how: Vec<String>,
    },
    /// It holds already.
    AlreadySatisfied {
        /// Why, where there is more to say.
        why: String,
    },
    /// It does not concern this tree.
    NotApplicable {
        /// Why not.
        why: String,
    },
    /// It was seen and needs a person.
    Reported {
        /// What the person should do.
        advice: String,
    },
}

impl Outcome {
    /// The word that tables and JSON use.
    pub fn word(&self) -> &'static str {
        match self {
            Outcome::Changed { .. } => "changed",
            Outcome::AlreadySatisfied { .. } => "already-satisfied",
            Outcome::NotApplicable { .. } => "not-applicable",
            Outcome::Reported { .. } => "reported",
        }
    }

    /// The details in words.
    pub fn detail(&self) -> String {
        match self {
            Outcome::Changed { how } => how.join("; "),
            Outcome::AlreadySatisfied { why } | Outcome::NotApplicable { why } => why.clone(),
            Outcome::Reported { advice } => advice.clone(),
        }
    }
}

/// What an op does to a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpPlan {
    /// What it found.
    pub outcome: Outcome,
    /// The edits of each file that changes.
    pub edits: BTreeMap<String, Edits>,
    /// What each file that changes includes afterwards.
    pub includes: BTreeMap<String, Vec<Wanted>>,
    /// The places that it speaks of.
    pub sites: Vec<Site>,
    /// The places that it saw and left.
    pub left: Vec<Left>,
    /// What was seen besides and left.
    pub remarks: Vec<String>,
}

impl OpPlan {
    fn of(outcome: Outcome) -> Self {
        let (edits, includes) = (BTreeMap::new(), BTreeMap::new());
        let (sites, left, remarks) = (Vec::new(), Vec::new(), Vec::new());
        Self { outcome, edits, includes, sites, left, remarks }
    }

    /// Has a file include headers for the sake of a place.
    fn want(&mut self, path: &str, headers: &[String], place: usize) {
        if !headers.is_empty() {
            let wanted = self.includes.entry(path.to_string()).or_default();
            include::want(
                wanted,
                headers.iter().map(|header| Wanted { header: header.clone(), places: vec![place] }),
            );
        }
    }

    /// Adds what becomes of other files.
    fn add(&mut self, other: Self) {
        self.edits.extend(other.edits);
        self.includes.extend(other.includes);
        self.sites.extend(other.sites);
        self.left.extend(other.left);
        self.remarks.extend(other.remarks);
    }

    /// The places that a person should look at.
    pub fn open(&self) -> impl Iterator<Item = &Left> {
        self.left.iter().filter(|left| left.open)
    }

    /// Why places were left, each reason with its number: `comment (2), string (1)`.
    fn reasons(&self) -> String {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for left in &self.left {
            match counts.iter_mut().find(|(why, _)| *why == left.why) {
                Some((_, count)) => *count += 1,
                None => counts.push((&left.why, 1)),
            }
        }
        counts.iter().map(|(why, count)| format!("{why} ({count})")).collect::<Vec<_>>().join(", ")
    }

    /// Says what changes; else what a person must look at. Beside a change that is a remark.
    fn conclude(&mut self, how: Vec<String>, reported: Vec<String>) {
        if !how.is_empty() {
            self.remarks.extend(reported);
            self.outcome = Outcome::Changed { how };
        } else if !reported.is_empty() {
            self.outcome = Outcome::Reported { advice: reported.join("; ") };
        }
    }

    fn not_applicable(files: &Files) -> Self {
        Self::of(Outcome::NotApplicable { why: format!("no {files} in this tree") })
    }
}

/// An op that cannot do its work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpError {
    /// Nothing is there to hang an edit on, where there must be something.
    #[error("{} in {}", .0.fact, .0.path)]
    NoAnchor(Box<NoAnchor>),
    /// A place that must change cannot be changed.
    #[error("{why} in {}, line {}", site.path, site.line)]
    CannotEdit {
        /// Why not.
        why: String,
        /// Where.
        site: Site,
    },
    /// The patch set says too little for this source.
    #[error("{why} (for {path})")]
    Incomplete {
        /// What is missing.
        why: String,
        /// The file.
        path: String,
    },
    /// Everything that a list of architectures holds would be dropped.
    #[error("no architecture would be left in {place}")]
    NothingLeft {
        /// The file, or the list.
        place: String,
    },
    /// A file that the parser gave up on.
    #[error("{path}: {cause}")]
    Parse {
        /// The file.
        path: String,
        /// Why.
        cause: ParseFailed,
    },
    /// Two edits of the op touch the same bytes.
    #[error("{path}: {overlap}")]
    Overlap {
        /// The file.
        path: String,
        /// Where.
        overlap: Overlap,
    },
    /// A template speaks of something that nothing stands for.
    #[error(transparent)]
    Unbound(#[from] Unbound),
}

/// Code that must be there and is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoAnchor {
    /// What was expected and is not so.
    pub fact: String,
    /// Where it was looked for.
    pub path: String,
    /// The code that was looked for.
    pub looked_for: String,
    /// The line that comes nearest.
    pub nearest: Option<Site>,
}

/// What an op is planned for.
#[derive(Debug, Clone, Copy)]
pub struct Aim<'a> {
    /// The architectures that are wanted and not wanted.
    pub wish: &'a ArchWish,
    /// The toolkits in question.
    pub toolchain: Toolchain<'a>,
    /// What the preprocessor knows of the toolkits for which it is wanted; code that it never takes is left alone.
    pub passes: &'a Passes,
    /// What earlier ops of the patch change in the same text.
    pub earlier: &'a BTreeMap<String, Edits>,
    /// The release of PyTorch, if it is known.
    pub torch: Option<&'a Version>,
}

impl Aim<'_> {
    /// Why nothing is to be done where architectures are named.
    fn satisfied(&self) -> String {
        let labels = |codes: &[Code]| codes.iter().map(Code::label).collect::<Vec<_>>().join(" ");
        let wanted: Vec<Code> = self.wish.wanted().collect();
        match () {
            () if !wanted.is_empty() => format!("{} compiled already", labels(&wanted)),
            () if !self.wish.drop.is_empty() => format!("{} not compiled", labels(&self.wish.drop)),
            () => "every given toolkit takes the flags".to_string(),
        }
    }
}

impl Op {
    /// The files that it looks at.
    pub fn files(&self) -> &Files {
        match self {
            Op::Rename(op) => &op.files,
            Op::Rewrite(op) => &op.files,
            Op::List(op) => &op.files,
            Op::Gencode(op) => &op.files,
            Op::AnyGencode(op) => &op.files,
            Op::Words(op) => &op.files,
            Op::WordsRewrite(op) => &op.files,
            Op::Insert(op) => &op.files,
        }
    }

    /// The kind, as patch sets name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Op::Rename(_) => "rename",
            Op::Rewrite(_) | Op::WordsRewrite(_) => "rewrite",
            Op::List(op) => op.kind(),
            Op::Gencode(_) | Op::AnyGencode(_) => "gencode",
            Op::Words(op) => op.kind(),
            Op::Insert(_) => "insert",
        }
    }

    /// The code that it speaks of, with the keys that patch sets use.
    pub fn parts(&self) -> Vec<(&'static str, String)> {
        match self {
            Op::Rename(op) => op.parts(),
            Op::Rewrite(op) => op.parts(),
            Op::List(op) => op.parts(),
            Op::Gencode(op) => op.parts(),
            Op::AnyGencode(op) => op.entries.iter().map(|entry| ("entries", entry.text.clone())).collect(),
            Op::Words(op) => op.parts(),
            Op::WordsRewrite(op) => op.parts(),
            Op::Insert(op) => vec![("anchor", op.anchor.text.clone()), ("text", op.text.to_string())],
        }
    }

    /// Whether it speaks of architectures, and so can tell which a file compiles for.
    pub fn reads_arches(&self) -> bool {
        match self {
            Op::Gencode(_) | Op::AnyGencode(_) | Op::List(_) | Op::Words(_) => true,
            Op::Rename(_) | Op::Rewrite(_) | Op::WordsRewrite(_) | Op::Insert(_) => false,
        }
    }

    /// Says anew what a plan of it comes to, after places were left that it would edit.
    pub fn settle(&self, plan: &mut OpPlan) {
        match self {
            Op::Rename(op) => plan.outcome = op.outcome(plan),
            Op::Rewrite(op) => plan.outcome = op.outcome(plan),
            Op::List(_) | Op::Gencode(_) | Op::AnyGencode(_) => {}
            Op::Words(_) | Op::WordsRewrite(_) | Op::Insert(_) => {}
        }
    }

    /// What it does to these sources.
    pub fn plan(&self, sources: &Sources, aim: Aim<'_>) -> Result<OpPlan, OpError> {
        if self.files().of(sources).next().is_none() {
            return Ok(OpPlan::not_applicable(self.files()));
        }
        match self {
            Op::Rename(op) => op.plan(sources, aim.passes),
            Op::Rewrite(op) => op.plan(sources, Ground { passes: aim.passes, earlier: aim.earlier }),
            Op::List(op) => op.plan(sources, aim),
            Op::Gencode(op) => plan_gencode(op, sources, aim),
            Op::AnyGencode(op) => op.plan(sources, aim),
            Op::Words(op) => op.plan(sources, aim),
            Op::WordsRewrite(op) => op.plan(sources, aim),
            Op::Insert(op) => op.plan(sources),
        }
    }
}

impl Op {
    /// The flags that each list of a file gives each toolkit, as far as the op reads them; nothing for an op of another kind.
    pub fn compiled(
        &self,
        sources: &Sources,
        path: &str,
        (toolkits, aim): (&[Toolkit], Aim<'_>),
    ) -> Vec<Listed> {
        let may_hold = |bytes: &[u8]| match self {
            Op::AnyGencode(op) => op.may_hold(bytes),
            Op::List(op) => op.may_hold(bytes),
            _ => self.reads_arches(),
        };
        if !sources.get(path).is_some_and(|bytes| may_hold(bytes)) {
            return Vec::new();
        }
        if let Op::Words(op) = self {
            return op.compiled(sources, path, (toolkits, aim));
        }
        match (self, sources.parsed(path)) {
            (Op::Gencode(op), Some(Ok(parsed))) => {
                let given = op.compiled(parsed, toolkits, aim.toolchain);
                vec![Listed { name: String::new(), line: 0, adds: false, given }]
            }
            (Op::AnyGencode(op), Some(Ok(parsed))) => op.compiled(parsed, toolkits, aim.toolchain),
            (Op::List(op), Some(Ok(parsed))) => op.compiled(parsed, toolkits, aim),
            _ => Vec::new(),
        }
    }
}

/// A file of a tree, parsed; `None` for a file that no grammar reads.
fn parse<'s>(sources: &'s Sources, path: &str) -> Result<Option<&'s Parsed>, OpError> {
    let failed = |cause| OpError::Parse { path: path.to_string(), cause };
    sources.parsed(path).transpose().map_err(failed)
}

fn plan_gencode(op: &GencodeOp, sources: &Sources, aim: Aim<'_>) -> Result<OpPlan, OpError> {
    let mut whole = OpPlan::of(Outcome::AlreadySatisfied { why: aim.satisfied() });
    let mut how = Vec::new();
    let mut reported = Vec::new();
    for (path, bytes) in op.files.of(sources) {
        let Some(parsed) = parse(sources, path)? else { continue };
        let plan = op.plan(parsed, aim.wish, aim.toolchain).map_err(|error| in_file(error, path, bytes))?;
        whole.sites.push(Site { path: path.to_string(), line: plan.line, text: line_text(bytes, plan.line) });
        how.extend(plan.how);
        whole.remarks.extend(plan.remarks);
        reported.extend(plan.reported);
        if !plan.edits.is_empty() {
            whole.edits.insert(path.to_string(), plan.edits);
        }
    }
    whole.conclude(how, reported);
    Ok(whole)
}

fn in_file(error: GencodeError, path: &str, bytes: &[u8]) -> OpError {
    let path = path.to_string();
    let site = |line| Site { path: path.clone(), line, text: line_text(bytes, line) };
    match error {
        GencodeError::NoAnchor { looked_for, nearest, unused } => {
            let fact =
                if unused { "no gencode flag reaches nvcc" } else { "no gencode flag is added as expected" };
            let nearest = nearest.map(|(line, _)| site(line));
            OpError::NoAnchor(Box::new(NoAnchor { fact: fact.to_string(), path, looked_for, nearest }))
        }
        GencodeError::SharedLine { line } => OpError::CannotEdit {
            why: "the flag shares its line with other code".to_string(),
            site: site(line),
        },
        GencodeError::NothingLeft => OpError::NothingLeft { place: path },
        GencodeError::Unbound(unbound) => OpError::Unbound(unbound),
        other => OpError::Incomplete { why: other.to_string(), path },
    }
}
