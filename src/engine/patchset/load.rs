//! From the texts of TOML files to patch sets, with errors that point at the mistake.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use rayon::prelude::*;
use regex::{Regex, RegexBuilder};
use serde::de::DeserializeOwned;

use super::fault::At;
pub use super::fault::LoadError;
use super::schema::{FallbackFile, FormSpec, InsertSpec, NeededSpec, PatchFile, PositionSpec, UpstreamFile};
use super::{
    Advisory, BuildFacts, Needed, Patch, PatchOp, PatchSets, Project, Recognise, Upstream, UpstreamStatus,
    Wanted, WorksWith,
};
use crate::engine::ops::Op;
use crate::engine::ops::files::Files;
use crate::engine::ops::insert::{InsertOp, Position};
use crate::engine::ops::rewrite::HERE;
use crate::engine::pattern::{Pattern, Template};
use crate::engine::syntax::Language;
use crate::engine::tag::TagRange;

/// The file of a set that compares the kernels of its upstream with their references.
pub const SMOKE: &str = "smoke.py";

/// Whether a file of a set's folder belongs to the set.
pub fn is_part(path: &str) -> bool {
    path.ends_with(".toml") || path.rsplit(['/', '\\']).next() == Some(SMOKE)
}

/// The texts of patch-set files: `SET/FILE.toml` and what it says. Of the same path, the last counts.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    files: BTreeMap<String, Text>,
}

#[derive(Debug, Clone)]
struct Text {
    toml: String,
    /// Where it comes from, if it is not shipped.
    origin: Option<String>,
    /// Whether it stands in the place of another.
    replaces: bool,
}

impl Texts {
    /// Adds a file; `origin` says where a file comes from that is not shipped.
    pub fn insert(&mut self, path: &str, toml: &str, origin: Option<&str>) {
        let replaces = self.files.contains_key(path);
        let text = Text { toml: toml.to_string(), origin: origin.map(str::to_string), replaces };
        self.files.insert(path.to_string(), text);
    }

    /// Reads all patch sets.
    pub fn load(&self) -> Result<PatchSets, LoadError> {
        let names: BTreeSet<&str> = self.files.keys().filter_map(|path| path.split('/').next()).collect();
        let sets = names.into_iter().filter(|set| self.files.contains_key(&format!("{set}/upstream.toml")));
        let upstreams: Vec<Upstream> = sets.map(|set| self.upstream(set)).collect::<Result<_, _>>()?;
        let mut fallbacks = upstreams.iter().filter(|upstream| upstream.project.is_none()).skip(1);
        match fallbacks.next() {
            Some(second) => {
                let path = format!("{}/upstream.toml", second.id);
                let (file, text) = self.shown(&path);
                Err(At::new(&file, text).wrong("fallback", "another set is the fallback already"))
            }
            None => Ok(PatchSets { unused: self.unused(&upstreams)?, upstreams }),
        }
    }

    /// The folders of private sets that are of no upstream; a fault in one is a fault all the same.
    fn unused(&self, upstreams: &[Upstream]) -> Result<Vec<String>, LoadError> {
        let is_used = |set: &str| {
            upstreams.iter().any(|one| one.id == set || one.patches.iter().any(|patch| patch.is_of(set)))
        };
        let mut unused = BTreeMap::new();
        for (path, text) in &self.files {
            let (Some((set, name)), Some(origin)) = (path.split_once('/'), &text.origin) else { continue };
            let Some(name) = name.strip_suffix(".toml").filter(|_| !is_used(set)) else { continue };
            let (file, toml) = self.shown(path);
            self.patch(set, name, At::new(&file, toml))?;
            unused.insert(set, format!("{origin}/{set}"));
        }
        Ok(unused.into_values().collect())
    }

    fn upstream(&self, set: &str) -> Result<Upstream, LoadError> {
        let path = format!("{set}/upstream.toml");
        if self.read::<FormSpec>(&path)?.fallback {
            return self.fallback(set, &path);
        }
        let spec: UpstreamFile = self.read(&path)?;
        let (file, text) = self.shown(&path);
        let at = At::new(&file, text);
        Ok(Upstream {
            id: set.to_string(),
            floor: at.parse("floor", &spec.floor)?,
            patches: self.all_patches(set, at, (&spec.patches, &spec.uses))?,
            build: at.build(&spec)?,
            works_with: at.works_with(&spec)?,
            advisories: at.advisories(&spec)?,
            project: Some(Project {
                tested_through: at.parse("tested-through", &spec.tested_through)?,
                recognise: at.recognise(&spec)?,
                url: spec.url,
                distribution: spec.distribution,
                module: spec.module,
                tag_prefix: spec.tag_prefix,
                smoke: self.files.get(&format!("{set}/{SMOKE}")).map(|text| text.toml.clone()),
            }),
        })
    }

    /// The set for trees of no known upstream.
    fn fallback(&self, set: &str, path: &str) -> Result<Upstream, LoadError> {
        let spec: FallbackFile = self.read(path)?;
        let (file, text) = self.shown(path);
        let at = At::new(&file, text);
        Ok(Upstream {
            id: set.to_string(),
            project: None,
            floor: at.parse("floor", &spec.floor)?,
            patches: self.all_patches(set, at, (&spec.patches, &spec.uses))?,
            build: Vec::new(),
            works_with: Vec::new(),
            advisories: Vec::new(),
        })
    }

    /// The patches of a set, then those of the sets that it uses. Every file of the set must be named.
    fn all_patches(
        &self,
        set: &str,
        at: At<'_>,
        (own, uses): (&[String], &[String]),
    ) -> Result<Vec<Patch>, LoadError> {
        let mut patches = self.patches(set, own, at)?;
        for used in uses {
            patches.extend(self.set(used, at)?);
        }
        let unnamed = self.files.keys().find(|file| {
            let name = file.strip_prefix(&format!("{set}/")).and_then(|name| name.strip_suffix(".toml"));
            name.is_some_and(|name| name != "upstream" && !own.iter().any(|patch| patch == name))
        });
        match unnamed {
            Some(file) => Err(LoadError::Unnamed { file: file.clone(), place: at.mark("patches", None) }),
            None => Ok(patches),
        }
    }

    /// All patches of a set that others use, in the order of their names.
    fn set(&self, set: &str, user: At<'_>) -> Result<Vec<Patch>, LoadError> {
        let prefix = format!("{set}/");
        let names: Vec<String> = self
            .files
            .keys()
            .filter_map(|path| path.strip_prefix(&prefix)?.strip_suffix(".toml"))
            .map(str::to_string)
            .collect();
        if names.is_empty() {
            return Err(LoadError::Missing { place: user.mark("uses", Some(set)), missing: prefix });
        }
        self.patches(set, &names, user)
    }

    fn patches(&self, set: &str, names: &[String], user: At<'_>) -> Result<Vec<Patch>, LoadError> {
        let read: Vec<_> = names.par_iter().map(|name| self.patch(set, name, user)).collect();
        // Of several faults the first is told, whichever was found first.
        read.into_iter().collect()
    }

    fn patch(&self, set: &str, name: &str, user: At<'_>) -> Result<Patch, LoadError> {
        let path = format!("{set}/{name}.toml");
        let Some(text) = self.files.get(&path) else {
            return Err(LoadError::Missing { place: user.mark("patches", Some(name)), missing: path });
        };
        let spec: PatchFile = self.read(&path)?;
        let (file, toml) = self.shown(&path);
        let at = At::new(&file, toml);
        let id = format!("{set}/{name}");
        let wanted = match (spec.when, &spec.needed) {
            (Some(_), None) => Wanted::ByArch,
            (None, Some(needed)) => Wanted::ByEnvironment(at.needed(needed)?),
            (None, None) => Wanted::ByName,
            (Some(_), Some(_)) => return Err(at.wrong("needed", "a patch with `when` has no `needed`")),
        };
        let texts = [("title", &spec.title), ("why", &spec.why)];
        if let Some((key, _)) = texts.iter().find(|(_, text)| text.trim().is_empty()) {
            return Err(at.wrong(key, "it becomes the commit message and must not be empty"));
        }
        Ok(Patch {
            upstream_status: at.status(&spec.upstream_status)?,
            ops: at.ops(&id, &spec)?,
            id,
            title: spec.title,
            why: spec.why.trim().to_string(),
            references: spec.references,
            wanted,
            replaced_by: text.origin.clone().filter(|_| text.replaces),
            text: text.toml.clone(),
        })
    }

    fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, LoadError> {
        let (file, text) = self.shown(path);
        toml::from_str(text)
            .map_err(|error| LoadError::Toml { file, message: error.to_string().trim_end().to_string() })
    }

    /// A file by the name that is shown, and what it says; one that is not there says nothing.
    fn shown(&self, path: &str) -> (String, &str) {
        let text = self.files.get(path);
        let origin = text.and_then(|text| text.origin.as_ref());
        let file = origin.map_or_else(|| path.to_string(), |origin| format!("{origin}/{path}"));
        (file, text.map_or("", |text| &text.toml))
    }
}

impl At<'_> {
    fn parse<T: FromStr<Err: ToString>>(self, key: &str, text: &str) -> Result<T, LoadError> {
        text.parse().map_err(|error: T::Err| self.wrong_text(key, text, error.to_string()))
    }

    pub(super) fn range(self, key: &str, text: &Option<String>) -> Result<Option<TagRange>, LoadError> {
        text.as_ref().map(|text| self.parse(key, text)).transpose()
    }

    /// What the whole text of a metavariable must match; `(?m)` makes `^` and `$` those of its lines.
    pub(super) fn regex(self, key: &str, text: &str) -> Result<Regex, LoadError> {
        Regex::new(text).map_err(|error| self.wrong_text(key, text, error))
    }

    /// What a line of a file must match.
    fn line_regex(self, key: &str, text: &str) -> Result<Regex, LoadError> {
        RegexBuilder::new(text).multi_line(true).build().map_err(|error| self.wrong_text(key, text, error))
    }

    fn recognise(self, spec: &UpstreamFile) -> Result<Vec<Recognise>, LoadError> {
        let one = |spec: &super::schema::RecogniseSpec| {
            Ok(Recognise {
                file: spec.file.clone(),
                pattern: self.line_regex("recognise.pattern", &spec.pattern)?,
            })
        };
        spec.recognise.iter().map(one).collect()
    }

    fn build(self, spec: &UpstreamFile) -> Result<Vec<BuildFacts>, LoadError> {
        let one = |spec: &super::schema::BuildSpec| {
            Ok(BuildFacts { tags: self.parse("build.tags", &spec.tags)?, variables: spec.variables.clone() })
        };
        spec.build.iter().map(one).collect()
    }

    fn works_with(self, spec: &UpstreamFile) -> Result<Vec<WorksWith>, LoadError> {
        let one = |spec: &super::schema::WorksWithSpec| {
            Ok(WorksWith {
                tags: self.parse("works-with.tags", &spec.tags)?,
                distribution: spec.distribution.clone(),
                versions: spec.versions.clone(),
                newest: spec.newest.clone(),
                why: spec.why.clone(),
            })
        };
        spec.works_with.iter().map(one).collect()
    }

    fn advisories(self, spec: &UpstreamFile) -> Result<Vec<Advisory>, LoadError> {
        let one = |spec: &super::schema::AdvisorySpec| {
            Ok(Advisory {
                arch: self.parse("advisory.arch", &spec.arch)?,
                cuda: self.parse("advisory.cuda", &spec.cuda)?,
                title: spec.title.clone(),
                why: spec.why.trim().to_string(),
                instead: spec.instead.clone(),
                references: spec.references.clone(),
            })
        };
        spec.advisory.iter().map(one).collect()
    }

    fn status(self, text: &str) -> Result<UpstreamStatus, LoadError> {
        match text {
            "pending" => Ok(UpstreamStatus::Pending),
            "submitted" => Ok(UpstreamStatus::Submitted),
            "rejected" => Ok(UpstreamStatus::Rejected),
            "inappropriate" => Ok(UpstreamStatus::Inappropriate),
            _ => match text.strip_prefix("merged since ") {
                Some(tag) => {
                    let wrong = |error| self.wrong_text("upstream-status", text, format!("{error}"));
                    tag.parse().map(UpstreamStatus::MergedSince).map_err(wrong)
                }
                None => {
                    let known = "`pending`, `submitted`, `merged since TAG`, `rejected` or `inappropriate`";
                    Err(self.wrong_text("upstream-status", text, format!("`{text}` is none of {known}")))
                }
            },
        }
    }

    fn needed(self, spec: &NeededSpec) -> Result<Needed, LoadError> {
        let mut packages = BTreeMap::new();
        for (name, versions) in &spec.packages {
            packages.insert(name.clone(), self.parse("needed.packages", versions)?);
        }
        Ok(Needed {
            cuda: self.range("needed.cuda", &spec.cuda)?,
            torch: self.range("needed.torch", &spec.torch)?,
            python: self.range("needed.python", &spec.python)?,
            machine: spec.machine.clone(),
            packages,
        })
    }

    /// The ops in the order in which they are planned: rename, rewrite, list, gencode, insert.
    fn ops(self, patch: &str, spec: &PatchFile) -> Result<Vec<PatchOp>, LoadError> {
        let mut ops = Vec::new();
        let all = &spec.paths;
        for (index, spec) in spec.rename.iter().enumerate() {
            let at = self.of("rename", index);
            ops.push(at.op(&spec.tags, &spec.needed, &spec.unit, at.rename(spec, all)?)?);
        }
        for (index, spec) in spec.rewrite.iter().enumerate() {
            let at = self.of("rewrite", index);
            ops.push(at.op(&spec.tags, &spec.needed, &spec.unit, at.rewrite(spec, all)?)?);
        }
        for (index, spec) in spec.list.iter().enumerate() {
            let at = self.of("list", index);
            ops.push(at.op(&spec.tags, &None, &None, at.list(spec)?)?);
        }
        for (index, spec) in spec.gencode.iter().enumerate() {
            let at = self.of("gencode", index);
            ops.push(at.op(&spec.tags, &None, &None, at.gencode(spec)?)?);
        }
        for (index, spec) in spec.insert.iter().enumerate() {
            let at = self.of("insert", index);
            ops.push(at.op(&spec.tags, &spec.needed, &spec.unit, at.insert(spec)?)?);
        }
        if ops.is_empty() {
            return Err(self.wrong("ops", "the patch has none"));
        }
        let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
        for op in &mut ops {
            let count = counts.entry(op.op.kind()).or_default();
            *count += 1;
            let number = if *count == 1 { String::new() } else { format!("-{count}") };
            op.id = format!("{patch}/{}{number}", op.op.kind());
        }
        Ok(ops)
    }

    fn op(
        self,
        tags: &str,
        needed: &Option<NeededSpec>,
        unit: &Option<String>,
        op: Op,
    ) -> Result<PatchOp, LoadError> {
        let needed = needed.as_ref().map(|needed| self.needed(needed)).transpose()?;
        Ok(PatchOp { id: String::new(), tags: self.parse("tags", tags)?, needed, unit: unit.clone(), op })
    }

    pub(super) fn files(self, globs: &[String]) -> Result<Files, LoadError> {
        self.files_of("paths", globs)
    }

    pub(super) fn files_of(self, key: &str, globs: &[String]) -> Result<Files, LoadError> {
        Files::new(globs).map_err(|error| self.wrong_glob(key, &error))
    }

    pub(super) fn wrong_glob(self, key: &str, error: &globset::Error) -> LoadError {
        self.wrong_text(key, error.glob().unwrap_or_default(), error)
    }

    /// The language of the files, which the patterns are written in.
    pub(super) fn language(self, globs: &[String]) -> Result<Language, LoadError> {
        globs.iter().find_map(|glob| Language::of_path(&first_alternative(glob))).ok_or_else(|| {
            let first = globs.first().map_or("", String::as_str);
            self.wrong_text("paths", first, format!("no grammar reads {}", globs.join(", ")))
        })
    }

    pub(super) fn patterns(
        self,
        key: &str,
        language: Language,
        texts: &[String],
    ) -> Result<Vec<Pattern>, LoadError> {
        texts.iter().map(|text| self.pattern(key, language, text)).collect()
    }

    pub(super) fn pattern(self, key: &str, language: Language, text: &str) -> Result<Pattern, LoadError> {
        if let Some(fault) = fault_of_here(key, text) {
            return Err(self.wrong_text(key, text, fault));
        }
        Pattern::new(language, text).map_err(|error| self.wrong_text(key, text, error))
    }

    fn insert(self, spec: &InsertSpec) -> Result<Op, LoadError> {
        let globs = std::slice::from_ref(&spec.file);
        let language = self.language(globs)?;
        let position = match spec.position {
            PositionSpec::Before => Position::Before,
            PositionSpec::After => Position::After,
            PositionSpec::Start => Position::Start,
            PositionSpec::End => Position::End,
        };
        Ok(Op::Insert(InsertOp {
            files: self.files(globs)?,
            anchor: self.pattern("anchor", language, &spec.anchor)?,
            position,
            text: Template::new(&spec.text),
            written: self.pattern("text", language, &spec.text)?,
            unless: self.patterns("unless", language, &spec.unless)?,
        }))
    }
}

/// The first of the paths that a glob such as `**/*.{cu,cuh}` stands for.
fn first_alternative(glob: &str) -> String {
    match glob.split_once('{') {
        Some((before, rest)) => format!("{before}{}", rest.split([',', '}']).next().unwrap_or_default()),
        None => glob.to_string(),
    }
}

/// What is wrong with the use of `$HERE`: it says what of a surrounding match counts, which is one thing.
fn fault_of_here(key: &str, text: &str) -> Option<&'static str> {
    let mut names = text
        .split('$')
        .skip(1)
        .map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default());
    names.find(|name| *name == HERE)?;
    match (key, names.any(|name| name == HERE)) {
        ("inside" | "not-inside", false) => None,
        ("inside" | "not-inside", true) => {
            Some("`$HERE` may stand once only: it is what counts of the match")
        }
        _ => Some("`$HERE` has a meaning in `inside` and `not-inside` only"),
    }
}
