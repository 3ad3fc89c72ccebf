//! Ops on code, `rename` and `rewrite`, from TOML.

use super::fault::{At, LoadError};
use super::schema::{OtherwiseSpec, RenameSpec, RewriteSpec, RightForSpec, WhereSpec};
use crate::engine::ops::Op;
use crate::engine::ops::rename::RenameOp;
use crate::engine::ops::rewrite::{Condition, Headers, Replacement, RewriteOp};
use crate::engine::ops::right_for::{Otherwise, RightFor};
use crate::engine::pattern::{Pattern, Template, Unbound};
use crate::engine::syntax::Language;

impl At<'_> {
    pub(super) fn rename(self, spec: &RenameSpec, all: &[String]) -> Result<Op, LoadError> {
        let globs = if spec.paths.is_empty() { all } else { &spec.paths };
        if self.language(globs)? != Language::Cpp {
            return Err(self.wrong("paths", "names are renamed in C++ and CUDA only"));
        }
        let files = self.files(globs)?;
        let include = self.include(Language::Cpp, &spec.include)?;
        let unless = self.patterns("unless", Language::Cpp, &spec.unless)?;
        let brought_by =
            Headers::new(&spec.brought_by).map_err(|error| self.wrong_glob("brought-by", &error))?;
        let right_for = self.right_for(&spec.right_for, &spec.otherwise)?;
        let otherwise = spec.otherwise.as_ref().map(|spec| {
            let include = self.include(Language::Cpp, &spec.include)?;
            Ok(Otherwise { text: spec.to.clone(), include })
        });
        let otherwise = otherwise.transpose()?;
        let (from, to) = (spec.from.clone(), spec.to.clone());
        Ok(Op::Rename(RenameOp { files, from, to, include, right_for, otherwise, unless, brought_by }))
    }

    pub(super) fn rewrite(self, spec: &RewriteSpec, all: &[String]) -> Result<Op, LoadError> {
        let own: Vec<String> = spec.file.iter().chain(&spec.paths).cloned().collect();
        let globs = if own.is_empty() { all.to_vec() } else { own };
        if spec.within.is_some() {
            return self.words_rewrite(&globs, spec);
        }
        let language = self.language(&globs)?;
        let conditions = spec.conditions.iter().map(|(name, spec)| self.condition(language, name, spec));
        let find = self.patterns("find", language, &spec.find)?;
        let replace = spec.replace.as_ref().map(|text| self.replacement("replace", (language, &find), text));
        let otherwise = spec.otherwise.as_ref().map(|spec| {
            let include = self.include(language, &spec.include)?;
            Ok(Otherwise { text: self.replacement("otherwise", (language, &find), &spec.to)?, include })
        });
        let (replace, otherwise) = (replace.transpose()?, otherwise.transpose()?);
        let inside = self.patterns("inside", language, &spec.inside)?;
        let not_inside = self.patterns("not-inside", language, &spec.not_inside)?;
        let speaking = find.iter().chain(&inside).chain(&not_inside);
        if let Some(name) =
            spec.conditions.keys().find(|name| !speaking.clone().any(|pattern| pattern.has(name)))
        {
            let key = format!("where.{name}");
            return Err(self
                .wrong(&key, format!("no pattern of `find`, `inside` or `not-inside` speaks of `${name}`")));
        }
        if spec.behind_exit && language != Language::Cpp {
            return Err(self.wrong("behind-exit", "lanes leave in CUDA only"));
        }
        let (brought_by, read_by) = self.units(language, spec)?;
        Ok(Op::Rewrite(Box::new(RewriteOp {
            files: self.files(&globs)?,
            find,
            replace,
            conditions: conditions.collect::<Result<_, _>>()?,
            inside,
            not_inside,
            behind_exit: spec.behind_exit,
            unless: self.patterns("unless", language, &spec.unless)?,
            beside: self.patterns("beside", language, &spec.beside)?,
            accept: self.patterns("accept", language, &spec.accept)?,
            expect: spec.expect.as_ref().map(|text| self.expect(text)).transpose()?,
            include: self.include(language, &spec.include)?,
            right_for: self.right_for(&spec.right_for, &spec.otherwise)?,
            otherwise,
            brought_by,
            read_by,
            advice: spec.advice.clone(),
        })))
    }

    pub(super) fn condition(
        self,
        language: Language,
        name: &str,
        spec: &WhereSpec,
    ) -> Result<Condition, LoadError> {
        let key = |part: &str| format!("where.{name}.{part}");
        if spec.varies && language != Language::Cpp {
            return Err(self.wrong(&key("varies"), "the numbers of threads are followed in CUDA only"));
        }
        if spec.relative && language != Language::Python {
            return Err(self.wrong(&key("relative"), "paths are followed in Python only"));
        }
        if spec.computed && language != Language::Python {
            return Err(self.wrong(&key("computed"), "values are followed in Python only"));
        }
        Ok(Condition {
            name: name.to_string(),
            regex: spec.regex.as_ref().map(|text| self.regex(&key("regex"), text)).transpose()?,
            not: self.patterns(&key("not"), language, &spec.not)?,
            declared: self.patterns(&key("declared"), language, &spec.declared)?,
            kind: spec.kind.as_ref().map(|text| self.regex(&key("type"), text)).transpose()?,
            unused: spec.unused,
            relative: spec.relative,
            varies: spec.varies,
            computed: spec.computed,
        })
    }

    /// `2` is exactly two places, `1..=4` from one to four, `1..` at least one.
    fn expect(self, text: &str) -> Result<std::ops::RangeInclusive<usize>, LoadError> {
        let number = |text: &str| text.trim().parse::<usize>().ok();
        let range = match text.split_once("..") {
            None => number(text).map(|count| count..=count),
            Some((start, "")) => number(start).map(|start| start..=usize::MAX),
            Some((start, end)) => {
                number(start).and_then(|start| Some(start..=number(end.trim_start_matches('='))?))
            }
        };
        range.ok_or_else(|| self.wrong_text("expect", text, format!("`{text}` is not like `2` or `1..=4`")))
    }

    /// `right-for`; with `otherwise` it must say something.
    fn right_for(
        self,
        spec: &Option<RightForSpec>,
        otherwise: &Option<OtherwiseSpec>,
    ) -> Result<RightFor, LoadError> {
        match spec {
            Some(RightForSpec { cuda: None, rocm: true }) => {
                Err(self.wrong("right-for", "it names no toolkits and does not exclude ROCm"))
            }
            Some(spec) => Ok(RightFor { cuda: self.range("right-for.cuda", &spec.cuda)?, rocm: spec.rocm }),
            None if otherwise.is_some() => Err(self.wrong(
                "otherwise",
                "it belongs to `right-for`, which says for what else something is right",
            )),
            None => Ok(RightFor::default()),
        }
    }

    /// What stands in place of a match of any of `find`.
    fn replacement(
        self,
        key: &str,
        (language, find): (Language, &[Pattern]),
        text: &str,
    ) -> Result<Replacement, LoadError> {
        let template = Template::new(text);
        let bound = |name: &str| find.iter().all(|pattern| pattern.has(name)).then(String::new);
        if let Err(Unbound { name, .. }) = template.fill(bound) {
            return Err(self.wrong_text(key, text, format!("a pattern of `find` has no `${name}`")));
        }
        let pattern = (!text.trim().is_empty()).then(|| self.pattern(key, language, text)).transpose()?;
        Ok(Replacement { text: template, pattern })
    }
}
