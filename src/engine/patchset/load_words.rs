//! Ops that read files as words, from what TOML says.

use super::load::{At, LoadError};
use super::schema::{GencodeSpec, ListSpec, RewriteSpec, WhereSpec};
use crate::engine::ops::Op;
use crate::engine::ops::files::Files;
use crate::engine::ops::words::rewrite::{Phrase, WordsRewrite, variables};
use crate::engine::ops::words::{Lists, WordsOp};

impl At<'_> {
    pub(super) fn words_list(self, files: Files, spec: &ListSpec) -> Result<Op, LoadError> {
        let names: Vec<String> = spec.name.iter().chain(&spec.names).cloned().collect();
        if names.is_empty() {
            return Err(self.wrong("names", "a list in words has a name"));
        }
        Ok(Op::Words(WordsOp { files, what: Lists::Named(names) }))
    }

    pub(super) fn words_gencode(self, files: Files, spec: &GencodeSpec) -> Result<Op, LoadError> {
        match (&spec.entry, &spec.from, &spec.until) {
            (None, None, None) => Ok(Op::Words(WordsOp { files, what: Lists::Flags })),
            _ => Err(self.wrong("entry", "in words nvcc's flags and CMake's guards are known: leave it out")),
        }
    }

    pub(super) fn words_rewrite(self, globs: &[String], spec: &RewriteSpec) -> Result<Op, LoadError> {
        let patterns = [&spec.inside, &spec.not_inside, &spec.unless, &spec.accept];
        let mut conditions = spec.conditions.values();
        let needs_grammar = patterns.iter().any(|patterns| !patterns.is_empty())
            || !spec.include.is_empty()
            || spec.expect.is_some()
            || conditions.any(|one| one.regex.is_none() || !one.not.is_empty() || one.unused);
        if needs_grammar {
            return Err(
                self.wrong("in", "of words only `find`, `replace`, `where.X.regex` and `advice` are known")
            );
        }
        let regex = |(name, one): (&String, &WhereSpec)| {
            let text = one.regex.as_deref().unwrap_or_default();
            self.regex("where.regex", text).map(|regex| (name.clone(), regex))
        };
        let phrase = |text: &String| Phrase::new(text).map_err(|error| self.wrong("find", error));
        let find: Vec<Phrase> = spec.find.iter().map(phrase).collect::<Result<_, _>>()?;
        let filled = spec.replace.iter().flat_map(|text| variables(text)).map(|name| ("replace", name));
        let mut used = spec.conditions.keys().map(|name| ("where", name.as_str())).chain(filled);
        if let Some((key, name)) = used.find(|(_, name)| !find.iter().all(|phrase| phrase.has(name))) {
            return Err(self.wrong(key, format!("`find` has no `${name}`")));
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
