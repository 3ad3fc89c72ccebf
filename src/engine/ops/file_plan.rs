//! Ops that search a tree for lists of architectures, file by file. No odd file stops the others.

use super::{Aim, OpError, OpPlan, Outcome, Site, parse};
use crate::engine::edit::Edits;
use crate::engine::ops::files::Files;
use crate::engine::source::{Sources, line_of, line_text};
use crate::engine::syntax::language::Parsed;

/// What is done to one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilePlan {
    /// The edits.
    pub edits: Edits,
    /// What changes, in words.
    pub how: Vec<String>,
    /// What was seen and left.
    pub remarks: Vec<String>,
    /// What a person should look at.
    pub reported: Vec<String>,
    /// The lines that it speaks of.
    pub lines: Vec<usize>,
}

impl FilePlan {
    /// The plan, unless the file is broken and would be worse for it: then a person must look.
    fn checked(self, parsed: &Parsed, again: impl Fn(&Parsed) -> Result<FilePlan, OpError>) -> Self {
        let Some(error) = parsed.first_error().filter(|_| !self.edits.is_empty()) else { return self };
        let after = Parsed::new(parsed.language, self.edits.apply(&parsed.bytes).into());
        let holds = |after: &Parsed| {
            after.syntax_errors() <= parsed.syntax_errors()
                && again(after).is_ok_and(|again| again.edits.is_empty())
        };
        if after.is_ok_and(|after| holds(&after)) {
            return self;
        }
        let line = line_of(&parsed.bytes, error);
        let why =
            format!("line {line} is no valid {:?}, so nothing in this file was changed", parsed.language);
        let (remarks, lines) = (self.remarks, self.lines);
        Self { remarks, lines, reported: vec![why], ..Self::default() }
    }
}

/// Plans each file of a tree that may hold something; `nothing` says what was not found if none does.
pub fn plan_files(
    (files, sources): (&Files, &Sources),
    may_hold: impl Fn(&[u8]) -> bool,
    plan: impl Fn(&Parsed, &str) -> Result<FilePlan, OpError>,
    (nothing, aim): (&str, Aim<'_>),
) -> Result<OpPlan, OpError> {
    let mut whole = OpPlan::of(Outcome::NotApplicable { why: nothing.to_string() });
    let (mut how, mut reported) = (Vec::new(), Vec::new());
    for (path, bytes) in files.of(sources).filter(|(_, bytes)| may_hold(bytes)) {
        let Some(parsed) = parse(sources, path)? else { continue };
        let one = plan(parsed, path)?.checked(parsed, |again| plan(again, path));
        let of_file = |text: String| format!("{path} {text}");
        let site = |line| Site { path: path.to_string(), line, text: line_text(bytes, line) };
        whole.sites.extend(one.lines.into_iter().map(site));
        whole.remarks.extend(one.remarks.into_iter().map(of_file));
        how.extend(one.how.into_iter().map(of_file));
        reported.extend(one.reported.into_iter().map(of_file));
        if !one.edits.is_empty() {
            whole.edits.insert(path.to_string(), one.edits);
        }
    }
    if !whole.sites.is_empty() {
        whole.outcome = Outcome::AlreadySatisfied { why: aim.satisfied() };
    }
    whole.conclude(how, reported);
    Ok(whole)
}
