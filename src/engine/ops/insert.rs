//! `insert`: a snippet stands beside an anchor, once.

use std::collections::BTreeMap;

use super::files::Files;
use super::rename::places;
use super::{NoAnchor, OpError, OpPlan, Outcome, Site, parse};
use crate::engine::edit::{Edit, Edits};
use crate::engine::pattern::{Match, Pattern, Template};
use crate::engine::source::Sources;
use crate::engine::syntax::language::{Parsed, descendants};
use crate::engine::syntax::style;

/// Where a snippet goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// On lines of its own before the anchor's.
    Before,
    /// On lines of its own after the anchor's.
    After,
    /// At the start of the anchor's first block.
    Start,
    /// At the end of the anchor's first block.
    End,
}

/// A snippet that must stand beside an anchor.
#[derive(Debug, Clone)]
pub struct InsertOp {
    /// Where to look.
    pub files: Files,
    /// What it hangs on; every match gets the snippet.
    pub anchor: Pattern,
    /// On which side.
    pub position: Position,
    /// The snippet.
    pub text: Template,
    /// The snippet as a pattern, to see that it stands there already.
    pub written: Pattern,
    /// A file with a match of one of these is cured already.
    pub unless: Vec<Pattern>,
}

impl InsertOp {
    /// What the op does to these sources.
    pub fn plan(&self, sources: &Sources) -> Result<OpPlan, OpError> {
        let mut plan = OpPlan::of(Outcome::AlreadySatisfied { why: "it stands there".to_string() });
        let mut edits: BTreeMap<String, Edits> = BTreeMap::new();
        for (path, bytes) in self.files.of(sources) {
            let Some(parsed) = parse(sources, path)? else { continue };
            let cures = std::iter::once(&self.written).chain(&self.unless);
            if let Some(found) = cures.flat_map(|pattern| pattern.find_all(parsed)).next() {
                plan.sites.push(Site::of(path, bytes, found.range.start));
                continue;
            }
            let anchors = self.anchor.find_all(parsed);
            if anchors.is_empty() {
                return Err(self.no_anchor(path));
            }
            for found in &anchors {
                plan.sites.push(Site::of(path, bytes, found.range.start));
                let edit = self.edit(found, parsed)?;
                let file = edits.entry(path.to_string()).or_default();
                file.insert(edit).map_err(|overlap| OpError::Overlap { path: path.to_string(), overlap })?;
            }
        }
        if !edits.is_empty() {
            let count = edits.values().map(Edits::len).sum();
            plan.outcome = Outcome::Changed { how: vec![format!("inserts a snippet at {}", places(count))] };
            plan.edits = edits;
        }
        Ok(plan)
    }

    fn no_anchor(&self, path: &str) -> OpError {
        OpError::NoAnchor(Box::new(NoAnchor {
            fact: "the place to insert at is not there".to_string(),
            path: path.to_string(),
            looked_for: self.anchor.text.clone(),
            nearest: None,
        }))
    }

    fn edit(&self, found: &Match, parsed: &Parsed) -> Result<Edit, OpError> {
        let bytes = &parsed.bytes;
        let matched = String::from_utf8_lossy(&bytes[found.range.clone()]);
        let snippet = self.text.fill_match(&found.bindings, &matched)?;
        let anchor = match self.position {
            Position::Before | Position::After => found.range.clone(),
            Position::Start | Position::End => block_of(found, parsed).unwrap_or(found.range.clone()),
        };
        let indent = style::indent_at(bytes, anchor.start);
        let lines = style::whole_lines(bytes, anchor.clone());
        let at = match self.position {
            Position::Before | Position::Start => lines.start,
            Position::After | Position::End => lines.end,
        };
        let newline = style::newline(bytes).as_bytes();
        let mut text = Vec::new();
        for line in snippet.lines() {
            text.extend_from_slice(if line.is_empty() { b"" } else { indent });
            text.extend_from_slice(line.as_bytes());
            text.extend_from_slice(newline);
        }
        if at == bytes.len() && !bytes.ends_with(b"\n") {
            text.truncate(text.len() - newline.len());
            text.splice(0..0, newline.iter().copied());
        }
        Ok(Edit { range: at..at, text })
    }
}

/// The first block within a match.
fn block_of(found: &Match, parsed: &Parsed) -> Option<std::ops::Range<usize>> {
    let node = parsed.root().named_descendant_for_byte_range(found.range.start, found.range.end)?;
    descendants(node).find(|inner| inner.kind() == "block").map(|block| block.byte_range())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::syntax::Language;

    fn op(position: Position) -> InsertOp {
        let pattern = |text| Pattern::new(Language::Python, text).expect(text);
        InsertOp {
            files: Files::new(&["setup.py".to_string()]).expect("glob"),
            anchor: pattern("if CUDA_HOME is not None:\n    _, v = get($$$A)\n    $$$REST"),
            position,
            text: Template::new("v = Version(\"0\")"),
            written: pattern("v = Version(\"0\")"),
            unless: vec![pattern("v = None")],
        }
    }

    fn inserted(position: Position, text: &str) -> Result<String, OpError> {
        let sources: Sources = [("setup.py", text.as_bytes())].into_iter().collect();
        let plan = op(position).plan(&sources)?;
        let new =
            plan.edits.get("setup.py").map_or(text.as_bytes().to_vec(), |edits| edits.apply(text.as_bytes()));
        Ok(String::from_utf8(new).expect("utf-8"))
    }

    #[test]
    fn the_snippet_stands_once_with_the_indentation_of_its_anchor() {
        let text = "if x:\n\tif CUDA_HOME is not None:\n\t\t_, v = get('a')\n\t\tf()";
        let before = inserted(Position::Before, text).expect("plan");
        assert_eq!(before, text.replace("\tif CUDA", "\tv = Version('0')\n\tif CUDA"));
        assert_eq!(inserted(Position::Before, &before).expect("plan"), before);
        assert_eq!(
            inserted(Position::Start, text).expect("plan"),
            text.replace("\t\t_,", "\t\tv = Version('0')\n\t\t_,")
        );
        assert_eq!(inserted(Position::End, text).expect("plan"), format!("{text}\n\t\tv = Version('0')"));
    }

    #[test]
    fn another_cure_counts_and_a_missing_anchor_is_an_error() {
        let cured = "v = None\nif CUDA_HOME is not None:\n    _, v = get()\n";
        assert_eq!(inserted(Position::Before, cured).expect("plan"), cured);
        assert!(matches!(inserted(Position::Before, "x = 1\n"), Err(OpError::NoAnchor(_))));
    }
}
