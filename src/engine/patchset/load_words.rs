//! Ops that read files as words, from what TOML says.

use super::fault::{At, LoadError};
use super::schema::{GencodeSpec, ListSpec, RewriteSpec, WhereSpec};
use crate::engine::ops::Op;
use crate::engine::ops::files::Files;
use crate::engine::ops::words::rewrite::{Phrase, WordsRewrite, variables};
use crate::engine::ops::words::{Lists, Names, WordsOp};

impl At<'_> {
    /// `[[list]]` with `in = "words"`
    pub(super) fn words_list(self, files: Files, spec: &ListSpec) -> Result<Op, LoadError> {
        let code = [&spec.each, &spec.find, &spec.with];
        if code.iter().any(|keys| !keys.is_empty()) || !spec.conditions.is_empty() {
            return Err(self.wrong("in", "of words only `name`, `names` and `torch` are known"));
        }
        let names = Names {
            torch: spec.torch.clone(),
            others: spec.name.iter().chain(&spec.names).cloned().collect(),
        };
        if names.torch.is_empty() && names.others.is_empty() {
            return Err(self.wrong("names", "a list in words has a name"));
        }
        Ok(Op::Words(WordsOp { files, what: Lists::Named(names) }))
    }

    /// `[[gencode]]` with `in = "words"`
    pub(super) fn words_gencode(self, files: Files, spec: &GencodeSpec) -> Result<Op, LoadError> {
        let code = [spec.entry.is_some(), spec.from.is_some(), spec.until.is_some()];
        if code.contains(&true) || !spec.entries.is_empty() || !spec.elements.is_empty() {
            return Err(self.wrong("in", "in words nvcc's flags and CMake's guards are known: only `paths`"));
        }
        Ok(Op::Words(WordsOp { files, what: Lists::Flags }))
    }

    /// `[[rewrite]]` with `in = "words"`
    pub(super) fn words_rewrite(self, globs: &[String], spec: &RewriteSpec) -> Result<Op, LoadError> {
        let patterns =
            [&spec.inside, &spec.not_inside, &spec.unless, &spec.accept, &spec.brought_by, &spec.read_by];
        let mut conditions = spec.conditions.values();
        let needs_grammar = patterns.iter().any(|patterns| !patterns.is_empty())
            || !spec.include.is_empty()
            || spec.right_for.is_some()
            || spec.otherwise.is_some()
            || spec.expect.is_some()
            || conditions.any(|one| {
                let of_code = one.unused || one.relative || one.computed || one.varies;
                one.regex.is_none() || !one.not.is_empty() || of_code
            });
        if needs_grammar {
            return Err(
                self.wrong("in", "of words only `find`, `replace`, `where.X.regex` and `advice` are known")
            );
        }
        let regex = |(name, one): (&String, &WhereSpec)| {
            let text = one.regex.as_deref().unwrap_or_default();
            self.regex(&format!("where.{name}.regex"), text).map(|regex| (name.clone(), regex))
        };
        let phrase = |text: &String| Phrase::new(text).map_err(|error| self.wrong_text("find", text, error));
        let find: Vec<Phrase> = spec.find.iter().map(phrase).collect::<Result<_, _>>()?;
        let filled =
            spec.replace.iter().flat_map(|text| variables(text)).map(|name| ("replace".to_string(), name));
        let mut used =
            spec.conditions.keys().map(|name| (format!("where.{name}"), name.as_str())).chain(filled);
        if let Some((key, name)) = used.find(|(_, name)| !find.iter().all(|phrase| phrase.has(name))) {
            return Err(self.wrong(&key, format!("`find` has no `${name}`")));
        }
        Ok(Op::WordsRewrite(Box::new(WordsRewrite {
            files: self.files(globs)?,
            find,
            replace: spec.replace.clone(),
            conditions: spec.conditions.iter().map(regex).collect::<Result<_, _>>()?,
            advice: spec.advice.clone(),
        })))
    }
}
