//! What translation units of a tree read, in order.
//!
//! A file that a compiler takes and no other one includes is a unit. What is included is a file of the tree by the end of
//! its path; in quotes, one beside the file that includes it comes first.
//!
//! A header that no unit comes to is read by nobody, as one for Objective-C is, unless the includes of the tree do not
//! tell: nothing in it is compiled, as in a tree of headers alone; an include names a macro; one that is no file of the
//! tree has the header's name, as where a build copies headers; or a Python file makes sources that include it. Then a
//! header that nobody includes is a unit too, if it includes something itself: an include too many harms no one, one too
//! few stops a build.
//!
//! A source that includes nothing, in a tree whose Python hands sources to NVRTC, may be text of these: NVRTC has no
//! headers of the host, so that there an include too many stops it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::include::conditions_around;
use crate::engine::source::Sources;
use crate::engine::syntax::branches::directives;
use crate::engine::syntax::includes::{Condition, Include, is_always_taken};
use crate::engine::syntax::passes::{Macro, Number};
use crate::engine::syntax::{DeadCode, Language, Passes};

/// Which files of a tree include which.
pub struct Reach<'s> {
    sources: &'s Sources,
    files: BTreeMap<&'s str, Vec<Line<'s>>>,
    unseen: OnceLock<Unseen<'s>>,
}

/// What may be read though no include shows it.
struct Unseen<'s> {
    /// Whether all may: nothing is compiled, or an include names a macro.
    all: bool,
    /// The names of what is included and is no file of the tree.
    names: BTreeSet<&'s str>,
    /// The Python files that make sources.
    makers: Vec<&'s [u8]>,
    /// Whether a Python file hands sources to NVRTC.
    nvrtc: bool,
}

/// How Python hands a source to NVRTC: by CuPy, by PyCUDA, by itself.
const NVRTC: [&str; 4] = ["RawModule", "RawKernel", "SourceModule", "nvrtc"];

impl Unseen<'_> {
    fn may_be(&self, name: &str) -> bool {
        let made = |text: &&[u8]| memchr::memmem::find(text, name.as_bytes()).is_some();
        self.names.contains(name) || self.makers.iter().any(made)
    }
}

/// An include that is taken.
struct Line<'s> {
    include: &'s Include,
    /// `thrust/sort.h`
    header: &'s str,
    /// The file of the tree that it is.
    to: Option<&'s str>,
    /// The conditions around it that may not hold.
    conditions: Vec<&'s Condition>,
}

/// The paths of a tree by their last part.
type ByName<'s> = BTreeMap<&'s str, Vec<&'s str>>;

impl<'s> Reach<'s> {
    /// Reads the includes of a tree; those that the preprocessor never takes are none.
    pub fn of(sources: &'s Sources, passes: &Passes) -> Self {
        let mut names = ByName::new();
        let paths = || sources.paths().filter(|path| Language::of_path(path) == Some(Language::Cpp));
        for path in paths() {
            names.entry(split(path).1).or_default().push(path);
        }
        let files = paths().map(|path| (path, lines(sources, path, (&names, passes)))).collect();
        Self { sources, files, unseen: OnceLock::new() }
    }

    /// The files that lack a header at one of these places: some unit comes to it before it has read the header, or one
    /// that brings it along. A file that lacks it will include it, and brings it to all that comes later.
    pub fn lacking(
        &self,
        places: &BTreeMap<&'s str, Vec<usize>>,
        (header, brings): (&str, impl Fn(&str) -> bool),
    ) -> BTreeSet<&'s str> {
        let needs = places.iter().map(|(path, places)| (*path, self.need(path, places))).collect();
        let search = Search { reach: self, needs, header, brings };
        let mut lacking = BTreeSet::new();
        let mut read = self.read_by(self.units());
        self.units().for_each(|unit| search.walk(unit, &mut lacking));
        // Files that include each other in a circle.
        let includes = |path: &&&str| !self.lines(path).is_empty();
        for path in places.keys().filter(includes) {
            if !read.contains(path) && self.is_read(path) {
                search.walk(path, &mut lacking);
                read.extend(self.read_by([*path].into_iter()));
            }
        }
        lacking
    }

    /// The files in whose units one of these headers is read: what all that come to an include of one read.
    pub fn reading_one(&self, is_it: impl Fn(&str) -> bool) -> BTreeSet<&'s str> {
        let mut including: BTreeMap<&str, Vec<&'s str>> = BTreeMap::new();
        let mut open = Vec::new();
        for (path, lines) in &self.files {
            lines
                .iter()
                .filter_map(|line| line.to)
                .for_each(|to| including.entry(to).or_default().push(path));
            open.extend(lines.iter().any(|line| is_it(line.header)).then_some(*path));
        }
        let mut coming: BTreeSet<&str> = open.iter().copied().collect();
        while let Some(path) = open.pop() {
            let from = including.get(path).into_iter().flatten().copied();
            open.extend(from.filter(|from| coming.insert(from)));
        }
        self.read_by(coming.into_iter())
    }

    /// All that some files read of the tree, and they themselves.
    fn read_by(&self, files: impl Iterator<Item = &'s str>) -> BTreeSet<&'s str> {
        let mut open: Vec<&str> = files.collect();
        let mut read: BTreeSet<&str> = open.iter().copied().collect();
        while let Some(path) = open.pop() {
            let to = self.lines(path).iter().filter_map(|line| line.to);
            open.extend(to.filter(|to| read.insert(to)));
        }
        read
    }

    /// The files that no other one includes. Of a header that includes nothing itself nobody knows what is read before it.
    pub fn units(&self) -> impl Iterator<Item = &'s str> {
        let included: BTreeSet<&str> = self.files.values().flatten().filter_map(|line| line.to).collect();
        let counts = move |(path, lines): &(&&str, &Vec<Line<'_>>)| {
            let alone = || is_compiled(path) && !self.unseen().nvrtc;
            !included.contains(**path) && if lines.is_empty() { alone() } else { self.is_read(path) }
        };
        self.files.iter().filter(counts).map(|(path, _)| *path)
    }

    /// Whether somebody may read a file that no unit comes to.
    fn is_read(&self, path: &str) -> bool {
        is_compiled(path) || self.unseen().all || self.unseen().may_be(split(path).1)
    }

    fn unseen(&self) -> &Unseen<'s> {
        self.unseen.get_or_init(|| self.look_for_the_unseen())
    }

    fn look_for_the_unseen(&self) -> Unseen<'s> {
        let bytes = |language| {
            let of = move |(path, _): &(&str, &Arc<[u8]>)| Language::of_path(path) == Some(language);
            self.sources.iter().filter(of).map(|(_, bytes)| &bytes[..])
        };
        let mut lines = bytes(Language::Cpp).flat_map(|bytes| bytes.split(|byte| *byte == b'\n'));
        let all = !self.files.keys().any(|path| is_compiled(path)) || lines.any(includes_a_macro);
        let elsewhere = self.files.values().flatten().filter(|line| line.to.is_none());
        let holds = |bytes: &[u8], name: &str| memchr::memmem::find(bytes, name.as_bytes()).is_some();
        let makes = |bytes: &&[u8]| holds(bytes, "#include");
        let compiles = |bytes: &[u8]| NVRTC.iter().any(|name| holds(bytes, name));
        Unseen {
            all,
            names: elsewhere.map(|line| split(line.header).1).collect(),
            makers: bytes(Language::Python).filter(makes).collect(),
            nvrtc: bytes(Language::Python).any(compiles),
        }
    }

    /// The first of some places that a unit comes to: the file and the offset.
    pub fn first(&self, unit: &'s str, places: &BTreeMap<&str, Vec<usize>>) -> Option<(&'s str, usize)> {
        self.reading(unit).find_map(|step| {
            let here = places.get(step.path)?.iter().filter(|place| step.part.contains(place));
            Some((step.path, *here.min()?))
        })
    }

    /// What a unit reads of the tree, in order; each file once.
    fn reading(&self, unit: &'s str) -> Reading<'_, 's> {
        Reading { reach: self, read: BTreeSet::from([unit]), open: vec![(unit, 0)] }
    }

    fn lines(&self, path: &str) -> &[Line<'s>] {
        self.files.get(path).map_or(&[], Vec::as_slice)
    }

    /// What a macro speaks of is needed where it is used, which is anywhere later.
    fn need(&self, path: &str, places: &[usize]) -> Need {
        let bytes: &[u8] = self.sources.get(path).map_or(&[], |bytes| bytes);
        let directives = directives(bytes);
        let in_code = |place: &&usize| !directives.iter().any(|one| one.range.contains(place));
        let first = places.iter().filter(in_code).min().copied();
        Need { first, around: conditions_around(bytes, places).unwrap_or_default() }
    }
}

/// A unit that is being read.
struct Reading<'r, 's> {
    reach: &'r Reach<'s>,
    read: BTreeSet<&'s str>,
    open: Vec<(&'s str, usize)>,
}

/// A part of a file, and the include that it ends with.
struct Step<'r, 's> {
    path: &'s str,
    part: Range<usize>,
    line: Option<&'r Line<'s>>,
}

impl<'r, 's> Iterator for Reading<'r, 's> {
    type Item = Step<'r, 's>;

    fn next(&mut self) -> Option<Self::Item> {
        let (path, next) = self.open.pop()?;
        let lines = self.reach.lines(path);
        let (before, line) = (next.checked_sub(1).and_then(|before| lines.get(before)), lines.get(next));
        let end = |line: &Line<'_>| line.include.end;
        if let Some(line) = line {
            self.open.push((path, next + 1));
            self.open.extend(line.to.filter(|to| self.read.insert(to)).map(|to| (to, 0)));
        }
        Some(Step { path, part: before.map_or(0, end)..line.map_or(usize::MAX, end), line })
    }
}

/// What a file needs a header for.
struct Need {
    /// The first place in its code; none where only macros need it.
    first: Option<usize>,
    /// The conditions around all places.
    around: Vec<Condition>,
}

impl Need {
    /// Whether an include of the same file is there wherever it is needed.
    fn is_covered(&self, line: &Line<'_>) -> bool {
        line.conditions.iter().all(|condition| self.around.contains(condition))
    }
}

struct Search<'r, 's, B> {
    reach: &'r Reach<'s>,
    needs: BTreeMap<&'s str, Need>,
    header: &'r str,
    brings: B,
}

impl<'s, B: Fn(&str) -> bool> Search<'_, 's, B> {
    /// Adds the file that lacks the header when a unit is compiled: it brings it to all that comes later.
    fn walk(&self, unit: &'s str, lacking: &mut BTreeSet<&'s str>) {
        let mut reading = self.reach.reading(unit);
        for Step { path, part, line } in reading.by_ref() {
            if self.includes(path) || lacking.contains(path) {
                return;
            }
            let first = self.needs.get(path).and_then(|need| need.first);
            if first.is_some_and(|first| first < part.end) {
                lacking.insert(path);
                return;
            }
            if line.is_some_and(|line| line.to.is_none() && self.brought(path, line)) {
                return;
            }
        }
        lacking.extend(reading.read.iter().find(|path| self.needs.contains_key(*path)));
    }

    /// Whether a file that needs the header includes it itself.
    fn includes(&self, path: &str) -> bool {
        let Some(need) = self.needs.get(path) else { return false };
        let mut lines = self.reach.lines(path).iter();
        lines.any(|line| line.header == self.header && need.is_covered(line))
    }

    fn brought(&self, path: &str, line: &Line<'_>) -> bool {
        let brings = line.header == self.header || (self.brings)(line.header);
        brings && self.needs.get(path).is_none_or(|need| need.is_covered(line))
    }
}

/// The includes of a file that are taken.
fn lines<'s>(sources: &'s Sources, path: &str, (names, passes): (&ByName<'s>, &Passes)) -> Vec<Line<'s>> {
    let includes = sources.includes(path);
    let bytes = sources.get(path).filter(|_| includes.iter().any(|include| !include.conditions.is_empty()));
    let dead = bytes.map(|bytes| DeadCode::of(bytes, passes)).unwrap_or_default();
    let taken = includes.iter().filter(|include| !dead.holds(include.start));
    let passes = unix(passes);
    let line = |include: &'s Include| {
        let header = std::str::from_utf8(&include.path).ok()?;
        let beside = || names.get(split(header).1)?.iter().find(|to| **to == joined(split(path).0, header));
        let to = if include.system { None } else { beside().copied() };
        let conditions = include.conditions.iter().filter(|one| !is_always_taken(one, &passes)).collect();
        Some(Line { include, header, to: to.or_else(|| nearest(names, path, header)), conditions })
    };
    taken.filter_map(line).collect()
}

/// What a compiler for C++ knows that is not Microsoft's.
fn unix(passes: &Passes) -> Passes {
    const OTHERS: [&str; 5] = ["_MSC_VER", "_WIN32", "WIN32", "_WIN64", "__APPLE__"];
    let known = passes.clone().assuming("__cplusplus", Macro::Defined(Number::ANY));
    OTHERS.iter().fold(known, |known, name| known.assuming(name, Macro::Undefined))
}

/// The file whose path ends with a name: of several, one that shares most folders with the file that includes it.
fn nearest<'s>(names: &ByName<'s>, path: &str, header: &str) -> Option<&'s str> {
    let end = joined("", header);
    let is_end = |to: &&&str| to.strip_suffix(end.as_str()).is_some_and(|b| b.is_empty() || b.ends_with('/'));
    let shared =
        |to: &&str| path.split('/').zip(to.split('/')).take_while(|(one, other)| one == other).count();
    let found = names.get(split(header).1)?.iter().filter(|to| **to != path).filter(is_end);
    found.copied().rev().max_by_key(shared)
}

/// `#include HEADER`
fn includes_a_macro(line: &[u8]) -> bool {
    let directive = line.trim_ascii_start().strip_prefix(b"#").map(<[u8]>::trim_ascii_start);
    let path = directive.and_then(|directive| directive.strip_prefix(b"include"));
    path.is_some_and(|path| {
        let named = path.trim_ascii_start();
        named.len() < path.len()
            && named.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
    })
}

fn is_compiled(path: &str) -> bool {
    matches!(path.rsplit('.').next(), Some("cu" | "cc" | "cpp" | "cxx"))
}

/// The folder of a path and its last part.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// `a/c.h` for `../c.h` in `a/b`.
fn joined(folder: &str, name: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(name.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests;
