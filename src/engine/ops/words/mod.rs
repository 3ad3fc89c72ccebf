//! Lists of architectures outside of Python: CMake, makefiles, shell scripts, Dockerfiles. They are read as words; what
//! stands beside an entry, its quotes and its place stay.

mod assignment;
mod called;
mod cmake;
mod condition;
mod file;
mod genex;
mod group;
mod items;
mod made;
mod outline;
mod pen;
pub mod rewrite;
mod script;
mod settle;
mod single;
mod taken;
mod undecided;
mod unread;

use super::gencode::worlds::Worlds;
use super::gencode::{Listed, Toolchain};
use super::{Aim, OpError, OpPlan, Outcome, parse};
use crate::engine::ops::files::Files;
use crate::engine::source::Sources;
use crate::engine::syntax::Language;
use crate::engine::toolkit::Toolkit;
use file::BuildFile;
use outline::Outline;
use settle::Law;

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
        for (path, bytes) in self.files.of(sources) {
            let Some(file) = self.read(sources, (path, bytes), &law)? else { continue };
            let overlap = |overlap| OpError::Overlap { path: path.to_string(), overlap };
            let plan = file.plan(&law).map_err(overlap)?;
            whole.sites.extend(plan.sites);
            how.extend(plan.how);
            reported.extend(plan.reported);
            reported.extend(file.strays(&self.what, &law));
            if !plan.edits.is_empty() {
                whole.edits.insert(path.to_string(), plan.edits);
            }
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

    fn read<'a>(
        &self,
        sources: &'a Sources,
        (path, bytes): (&'a str, &'a [u8]),
        law: &Law<'_>,
    ) -> Result<Option<BuildFile<'a>>, OpError> {
        if is_hidden(path) || !may_hold(bytes) {
            return Ok(None);
        }
        let outline = outline(sources, (path, bytes), law.worlds)?;
        Ok(outline.map(|outline| BuildFile::new((path, bytes), outline, &self.what, law.catalogue)))
    }

    /// What each list of a file gives each toolkit.
    pub fn compiled(
        &self,
        sources: &Sources,
        path: &str,
        (toolkits, aim): (&[Toolkit], Aim<'_>),
    ) -> Vec<Listed> {
        let Toolchain { catalogue, floor, .. } = aim.toolchain;
        let worlds = Worlds::new(catalogue, floor, toolkits);
        let law = Law { wish: aim.wish, cuda: toolkits, torch: None, catalogue, worlds: &worlds };
        let file = sources.get(path).and_then(|bytes| self.read(sources, (path, bytes), &law).ok()?);
        file.map(|file| file.given(toolkits, &law)).unwrap_or_default()
    }
}

/// What a file of words says; nothing for one of a language that is none.
fn outline(
    sources: &Sources,
    (path, bytes): (&str, &[u8]),
    worlds: &Worlds,
) -> Result<Option<Outline>, OpError> {
    Ok(match parse(sources, path)? {
        Some(parsed) if parsed.language == Language::Cmake => Some(cmake::read(parsed, worlds)),
        Some(_) => None,
        None => Some(script::read(path, bytes, worlds)),
    })
}

/// Whether a file lies in a folder of some service, such as `.github`: it builds elsewhere, for others.
fn is_hidden(path: &str) -> bool {
    path.rsplit_once('/').is_some_and(|(folders, _)| folders.split('/').any(|folder| folder.starts_with('.')))
}

/// Whether a file can hold a list at all, judged without reading it.
fn may_hold(bytes: &[u8]) -> bool {
    ["arch", "ARCH"].iter().any(|word| memchr::memmem::find(bytes, word.as_bytes()).is_some())
}

#[cfg(test)]
mod tests;
