//! Whether a machine can build and run kernels: a verdict on each fact, with a remedy. Facts in, verdicts out.

mod packages;
mod toolchain;

use crate::engine::catalogue::Catalogue;
use crate::engine::tag::Tag;
use crate::engine::toolkit::Toolkit;

use super::facts::Facts;

/// How a fact stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it must be.
    Good,
    /// Worth knowing; nothing is wrong.
    Note,
    /// It may go wrong.
    Warn,
    /// It will go wrong.
    Bad,
}

impl Level {
    /// As JSON has it.
    pub fn word(self) -> &'static str {
        match self {
            Level::Good => "good",
            Level::Note => "note",
            Level::Warn => "warn",
            Level::Bad => "bad",
        }
    }
}

/// A verdict on a fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What it is about: `nvcc`.
    pub subject: String,
    /// How it stands.
    pub level: Level,
    /// The fact, and what is wrong with it.
    pub what: String,
    /// What helps.
    pub remedy: Option<String>,
    /// What to type for that.
    pub command: Option<String>,
}

impl Verdict {
    fn new(subject: &str, level: Level, what: impl Into<String>) -> Self {
        Self { subject: subject.to_string(), level, what: what.into(), remedy: None, command: None }
    }

    fn remedy(mut self, text: impl Into<String>) -> Self {
        self.remedy = Some(text.into());
        self
    }

    fn command(mut self, text: impl Into<String>) -> Self {
        self.command = Some(text.into());
        self
    }
}

/// What the verdicts are made from.
struct Case<'a> {
    facts: &'a Facts,
    catalogue: &'a Catalogue,
    verdicts: Vec<Verdict>,
}

/// All verdicts, in the order in which things must be put right.
pub fn verdicts(facts: &Facts, catalogue: &Catalogue) -> Vec<Verdict> {
    let mut case = Case { facts, catalogue, verdicts: Vec::new() };
    case.gpus();
    case.driver();
    case.python();
    case.torch();
    case.toolkits();
    case.arch_list();
    case.compiler();
    case.libc();
    case.ninja();
    case.room();
    case.extensions();
    case.shadows();
    case.verdicts
}

/// Whether nothing is in the way.
pub fn is_fit(verdicts: &[Verdict]) -> bool {
    verdicts.iter().all(|verdict| verdict.level != Level::Bad)
}

/// The one line to type next.
pub fn next(verdicts: &[Verdict]) -> String {
    let worst = |level| verdicts.iter().find(|one| one.level == level && one.command.is_some());
    let command = worst(Level::Bad).and_then(|verdict| verdict.command.clone());
    command.unwrap_or_else(|| "mambapatch apply mamba-ssm --host".to_string())
}

impl Case<'_> {
    fn add(&mut self, verdict: Verdict) {
        self.verdicts.push(verdict);
    }

    /// The CUDA that PyTorch was built with.
    fn torch_cuda(&self) -> Option<Toolkit> {
        self.facts.torch.as_ref()?.cuda.as_deref()?.parse().ok()
    }
}

/// A release that can be compared, `580.65.06` too.
fn version(text: &str) -> Option<Tag> {
    text.split('+').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
