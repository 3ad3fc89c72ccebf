//! `rename`: a name is gone from code and macro bodies.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::files::Files;
use super::{OpError, OpPlan, Outcome, Site, parse};
use crate::engine::edit::{Edit, Edits};
use crate::engine::source::Sources;
use crate::engine::syntax::language::{Parsed, ancestors};
use crate::engine::syntax::style;

/// A name that another replaces, in call, type and declaration positions.
#[derive(Debug, Clone)]
pub struct RenameOp {
    /// Where to look.
    pub files: Files,
    /// The old name, qualified or not: `AT_CHECK`, `cub::Sum`.
    pub from: String,
    /// What replaces it.
    pub to: String,
}

impl RenameOp {
    /// What the op does to these sources.
    pub fn plan(&self, sources: &Sources) -> Result<OpPlan, OpError> {
        let mut plan = OpPlan::of(Outcome::AlreadySatisfied { why: format!("no `{}` is left", self.from) });
        let mut edits: BTreeMap<String, Edits> = BTreeMap::new();
        for (path, bytes) in self.files.of(sources) {
            if memchr::memmem::find(bytes, self.last_word().as_bytes()).is_none() {
                continue;
            }
            let Some(parsed) = parse(sources, path)? else { continue };
            if let Some(node) = parsed.nodes().find(|node| self.defines(*node, parsed)) {
                return Ok(self.own_definition(Site::of(path, bytes, node.start_byte())));
            }
            for node in self.uses(parsed) {
                plan.sites.push(Site::of(path, bytes, node.start_byte()));
                let edit = Edit { range: node.byte_range(), text: self.to.clone().into() };
                let file = edits.entry(path.to_string()).or_default();
                file.insert(edit).map_err(|overlap| OpError::Overlap { path: path.to_string(), overlap })?;
            }
            if let Some(file) = edits.get_mut(path) {
                let kept = file.merge(continuations(file, bytes));
                kept.map_err(|overlap| OpError::Overlap { path: path.to_string(), overlap })?;
            }
        }
        if !edits.is_empty() {
            let how = format!("renames {} of `{}` to `{}`", places(plan.sites.len()), self.from, self.to);
            plan.outcome = Outcome::Changed { how: vec![how] };
            plan.edits = edits;
        }
        Ok(plan)
    }

    fn last_word(&self) -> &str {
        self.from.rsplit("::").next().unwrap_or(&self.from)
    }

    fn uses<'t>(&self, parsed: &'t Parsed) -> Vec<Node<'t>> {
        let mut found: Vec<Node<'t>> = Vec::new();
        for node in parsed.nodes().filter(|node| is_name(*node)) {
            let within = found.last().is_some_and(|outer| {
                outer.start_byte() <= node.start_byte() && node.end_byte() <= outer.end_byte()
            });
            if !within && self.is_name(&parsed.text(node)) && !self.is_shim(node, parsed) {
                found.push(node);
            }
        }
        found.sort_by_key(Node::start_byte);
        found
    }

    /// Whether a name stands in a definition of the new name by the old one (`#define TORCH_CHECK AT_CHECK`), or asks
    /// whether it is defined (`#ifdef AT_CHECK`).
    fn is_shim(&self, node: Node<'_>, parsed: &Parsed) -> bool {
        let asks = |outer: Node<'_>| match outer.kind() {
            "preproc_ifdef" => outer.child_by_field_name("name") == Some(node),
            "preproc_defined" => true,
            _ => false,
        };
        ancestors(node).any(asks) || parsed.definition(node).is_some_and(|name| name == self.to)
    }

    fn is_name(&self, text: &str) -> bool {
        text.split("::").map(str::trim).eq(self.from.split("::"))
    }

    /// Whether a node gives the name a meaning of its own: a macro or a function of that name.
    fn defines(&self, node: Node<'_>, parsed: &Parsed) -> bool {
        let field = match node.kind() {
            "preproc_def" | "preproc_function_def" => "name",
            "function_declarator"
                if node.parent().is_some_and(|parent| parent.kind() == "function_definition") =>
            {
                "declarator"
            }
            _ => return false,
        };
        node.child_by_field_name(field).is_some_and(|name| self.is_name(&parsed.text(name)))
    }

    fn own_definition(&self, site: Site) -> OpPlan {
        let why = format!("{} line {} defines `{}` itself", site.path, site.line, self.from);
        let mut plan = OpPlan::of(Outcome::AlreadySatisfied { why });
        plan.sites.push(site);
        plan
    }
}

/// Edits of the blanks before the `\` of edited lines, which keep it in its column where that is aligned.
fn continuations(edits: &Edits, bytes: &[u8]) -> Edits {
    let mut growth: BTreeMap<usize, isize> = BTreeMap::new();
    for edit in edits.iter() {
        let end = style::line_end(bytes, edit.range.end);
        *growth.entry(end).or_default() += edit.text.len() as isize - edit.range.len() as isize;
    }
    let mut kept = Edits::new();
    for (end, growth) in growth {
        let line = bytes[..end].trim_ascii_end();
        let Some(code) = line.strip_suffix(b"\\") else { continue };
        let blanks = code.len() - code.trim_ascii_end().len();
        let wanted = blanks.saturating_add_signed(-growth).max(1);
        if blanks > 1 && code.ends_with(b"  ") && wanted != blanks {
            let range = code.len() - blanks..code.len();
            // The ranges are the ends of different lines.
            let _ = kept.insert(Edit { range, text: vec![b' '; wanted] });
        }
    }
    kept
}

fn is_name(node: Node<'_>) -> bool {
    node.kind() == "qualified_identifier" || (node.child_count() == 0 && node.kind().ends_with("identifier"))
}

/// `1 place`, `2 places`.
pub(super) fn places(count: usize) -> String {
    if count == 1 { "1 place".to_string() } else { format!("{count} places") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(text: &str) -> (String, OpPlan) {
        let files = Files::new(&["*.cpp".to_string()]).expect("glob");
        let op = RenameOp { files, from: "AT_CHECK".into(), to: "TORCH_CHECK".into() };
        let sources: Sources = [("a.cpp", text.as_bytes())].into_iter().collect();
        let plan = op.plan(&sources).expect("plan");
        let new =
            plan.edits.get("a.cpp").map_or(text.as_bytes().to_vec(), |edits| edits.apply(text.as_bytes()));
        (String::from_utf8(new).expect("utf-8"), plan)
    }

    #[test]
    fn code_and_macro_bodies_are_renamed_and_strings_and_comments_are_not() {
        let text = "#define CHECK_CUDA(x) \\\n    AT_CHECK(x.is_cuda(), #x \" is no AT_CHECK\")\n// AT_CHECK\nvoid f() { AT_CHECK(a); }\n";
        let (new, plan) = renamed(text);
        assert_eq!(
            new,
            text.replace("    AT_CHECK", "    TORCH_CHECK").replace("{ AT_CHECK", "{ TORCH_CHECK")
        );
        assert_eq!(plan.sites.iter().map(|site| site.line).collect::<Vec<_>>(), [2, 4]);
    }

    #[test]
    fn the_backslash_of_a_macro_stays_in_its_column() {
        let narrow = "#define A(x)       \\\n    AT_CHECK(x);   \\\n    AT_CHECK(y); \\\n    f(x)\n";
        let wanted = "#define A(x)       \\\n    TORCH_CHECK(x); \\\n    TORCH_CHECK(y); \\\n    f(x)\n";
        assert_eq!(renamed(narrow).0, wanted);
        let wide = "#define A(x)           \\\n    AT_CHECK(x);       \\\n    f(x)\n";
        assert_eq!(renamed(wide).0, wide.replace("AT_CHECK(x);   ", "TORCH_CHECK(x);"));
    }

    #[test]
    fn a_name_that_the_tree_defines_itself_is_left_alone() {
        for text in ["#define AT_CHECK TORCH_CHECK\nvoid f() { AT_CHECK(a); }\n", "void AT_CHECK(int a) {}\n"]
        {
            let (new, plan) = renamed(text);
            assert_eq!(new, text);
            assert!(plan.outcome.detail().contains("itself"), "{:?}", plan.outcome);
        }
    }
}
