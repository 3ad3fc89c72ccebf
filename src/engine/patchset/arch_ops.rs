//! The ops that are about architectures, from what their files say.

use super::fault::{At, LoadError};
use super::schema::{GencodeSpec, ListSpec};
use crate::engine::ops::Op;
use crate::engine::ops::gencode::GencodeOp;
use crate::engine::ops::gencode::any::AnyGencodeOp;
use crate::engine::ops::list::{FoundLists, ListOp, Spelling, Which};
use crate::engine::pattern::Pattern;

impl At<'_> {
    /// `[[gencode]]`
    pub(super) fn gencode(self, spec: &GencodeSpec) -> Result<Op, LoadError> {
        let globs: Vec<String> = spec.file.iter().chain(&spec.paths).cloned().collect();
        let files = self.files(&globs)?;
        if spec.within.is_some() {
            return self.words_gencode(files, spec);
        }
        let language = self.language(&globs)?;
        match (&spec.entry, spec.entries.as_slice(), spec.elements.as_slice()) {
            (Some(entry), [], []) => {
                let entry = self.pattern("entry", language, entry)?;
                let guard = |key, text: &Option<String>| {
                    text.as_ref().map(|text| self.pattern(key, language, text)).transpose()
                };
                let (from, until) = (guard("from", &spec.from)?, guard("until", &spec.until)?);
                let op = GencodeOp::new(files, &entry, from.as_ref(), until.as_ref());
                op.map(|op| Op::Gencode(Box::new(op))).map_err(|error| self.wrong("entry", error))
            }
            (None, [_, ..], []) => {
                let entries = self.patterns("entries", language, &spec.entries)?;
                let lacks = |entry: &&Pattern| !(entry.has("LIST") && entry.has("GENCODE"));
                match entries.iter().find(lacks) {
                    Some(entry) => {
                        let message = format!("`{}` has no $LIST or no $GENCODE", entry.text);
                        Err(self.wrong_text("entries", &entry.text, message))
                    }
                    None => Ok(Op::AnyGencode(AnyGencodeOp { files, entries })),
                }
            }
            (None, [], [_, ..]) => {
                let spelling = |text: &String| {
                    Spelling::new(text).map_err(|error| self.wrong_text("elements", text, error))
                };
                let which = Which::Flags(spec.elements.iter().map(spelling).collect::<Result<_, _>>()?);
                Ok(Op::List(ListOp { files, which }))
            }
            _ => Err(self.wrong("entry", "exactly one of `entry`, `entries` and `elements` must be there")),
        }
    }

    /// `[[list]]`
    pub(super) fn list(self, spec: &ListSpec) -> Result<Op, LoadError> {
        let globs: Vec<String> = spec.file.iter().chain(&spec.paths).cloned().collect();
        let files = self.files(&globs)?;
        if spec.within.is_some() {
            return self.words_list(files, spec);
        }
        let by_structure = ![&spec.torch, &spec.each, &spec.find].into_iter().all(Vec::is_empty);
        let which = match &spec.name {
            Some(name) if !by_structure => Which::Named(name.clone()),
            None if by_structure => Which::Found(Box::new(self.found_lists(spec, &globs)?)),
            _ => return Err(self.wrong("name", "either `name` must be there, or `torch`, `each` or `find`")),
        };
        Ok(Op::List(ListOp { files, which }))
    }

    fn found_lists(self, spec: &ListSpec, globs: &[String]) -> Result<FoundLists, LoadError> {
        let language = self.language(globs)?;
        let around = |key, texts: &[String]| {
            let patterns = self.patterns(key, language, texts)?;
            match patterns.iter().find(|pattern| !pattern.has("ARCHES")) {
                Some(pattern) => {
                    let message = format!("`{}` has no $ARCHES", pattern.text);
                    Err(self.wrong_text(key, &pattern.text, message))
                }
                None => Ok(patterns),
            }
        };
        let conditions = spec.conditions.iter().map(|(name, spec)| self.condition(language, name, spec));
        Ok(FoundLists {
            torch: around("torch", &spec.torch)?,
            each: spec.each.clone(),
            find: around("find", &spec.find)?,
            conditions: conditions.collect::<Result<_, _>>()?,
            with: spec.with.clone(),
        })
    }
}
