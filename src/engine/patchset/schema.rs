//! Exactly what the TOML files say; unknown keys are refused.

use std::collections::BTreeMap;

use serde::Deserialize;

/// `upstream.toml`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UpstreamFile {
    /// The git repository.
    pub url: String,
    /// The name on a package index.
    pub distribution: String,
    /// The module that it installs.
    pub module: String,
    /// What tags begin with.
    #[serde(default)]
    pub tag_prefix: String,
    /// The oldest toolkit that the sources accept.
    pub floor: String,
    /// The newest release that the patch set was tested on.
    pub tested_through: String,
    /// Names of patch files, in the order in which they are planned.
    pub patches: Vec<String>,
    /// Names of other sets.
    #[serde(default)]
    pub uses: Vec<String>,
    /// Files that tell it from other trees.
    pub recognise: Vec<RecogniseSpec>,
    /// What to set when it is built.
    #[serde(default)]
    pub build: Vec<BuildSpec>,
    /// Releases of others that work together with it.
    #[serde(default)]
    pub works_with: Vec<WorksWithSpec>,
    /// Known traps.
    #[serde(default)]
    pub advisory: Vec<AdvisorySpec>,
}

/// Tells which of the two forms an `upstream.toml` has.
#[derive(Debug, Deserialize)]
pub struct FormSpec {
    /// Whether it is a [`FallbackFile`].
    #[serde(default)]
    pub fallback: bool,
}

/// `upstream.toml` of the set for trees of no known upstream.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FallbackFile {
    /// `true`.
    pub fallback: bool,
    /// The oldest toolkit that is reckoned with.
    pub floor: String,
    /// Names of patch files, in the order in which they are planned.
    pub patches: Vec<String>,
    /// Names of other sets.
    #[serde(default)]
    pub uses: Vec<String>,
}

/// `[[recognise]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RecogniseSpec {
    /// Relative to the root of the tree.
    pub file: String,
    /// A regular expression; `^` and `$` match at lines.
    pub pattern: String,
}

/// `[[build]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BuildSpec {
    /// Of which releases.
    #[serde(default)]
    pub tags: String,
    /// Environment variables.
    pub variables: BTreeMap<String, String>,
}

/// `[[works-with]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WorksWithSpec {
    /// Of this upstream.
    #[serde(default)]
    pub tags: String,
    /// The other's name on a package index.
    pub distribution: String,
    /// Its releases, as pip takes them.
    pub versions: String,
    /// The newest of them, by its tag; absent where the newest of all works.
    pub newest: Option<String>,
    /// Why.
    pub why: String,
}

/// `[[advisory]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AdvisorySpec {
    /// The architecture.
    pub arch: String,
    /// With these toolkits.
    pub cuda: String,
    /// What happens.
    pub title: String,
    /// What is known of it.
    pub why: String,
    /// What to do instead.
    pub instead: String,
    /// Where it was reported.
    pub references: Vec<String>,
}

/// A patch file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PatchFile {
    /// One line.
    pub title: String,
    /// Why it exists.
    pub why: String,
    /// Issues, pull requests and documents.
    pub references: Vec<String>,
    /// `pending`, `submitted`, `merged since TAG`, `rejected` or `inappropriate`.
    pub upstream_status: String,
    /// `arch`: chosen by a flag that speaks of architectures, or by a toolkit.
    pub when: Option<When>,
    /// For which environment it is wanted.
    pub needed: Option<NeededSpec>,
    /// Globs of the ops that name no files themselves.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Names that go.
    #[serde(default)]
    pub rename: Vec<RenameSpec>,
    /// Code that goes, or is reported.
    #[serde(default)]
    pub rewrite: Vec<RewriteSpec>,
    /// Lists of architectures.
    #[serde(default)]
    pub list: Vec<ListSpec>,
    /// Spellings of one architecture.
    #[serde(default)]
    pub gencode: Vec<GencodeSpec>,
    /// Snippets that must stand somewhere.
    #[serde(default)]
    pub insert: Vec<InsertSpec>,
}

/// `when`
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// By a flag that speaks of architectures, or by a toolkit.
    Arch,
}

/// `needed`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NeededSpec {
    /// Releases of the toolkit.
    pub cuda: Option<String>,
    /// Releases of PyTorch.
    pub torch: Option<String>,
    /// Releases of Python.
    pub python: Option<String>,
    /// As `uname -m` names it.
    pub machine: Option<String>,
    /// Releases of other packages.
    #[serde(default)]
    pub packages: BTreeMap<String, String>,
}

/// `in`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Within {
    /// As words with blanks between them: CMake, makefiles, shell scripts, Dockerfiles.
    Words,
}

/// `[[gencode]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GencodeSpec {
    /// For which releases; empty: all.
    #[serde(default)]
    pub tags: String,
    /// How the files are read.
    #[serde(rename = "in")]
    pub within: Option<Within>,
    /// The build file; or `paths`.
    pub file: Option<String>,
    /// Globs; or `file`.
    #[serde(default)]
    pub paths: Vec<String>,
    /// One architecture, in statements that add it to a list of a known name.
    pub entry: Option<String>,
    /// The same of any list, `$LIST`; several spellings.
    #[serde(default)]
    pub entries: Vec<String>,
    /// One architecture as elements of a list or words of a command line; several spellings.
    #[serde(default)]
    pub elements: Vec<String>,
    /// "From this toolkit on".
    pub from: Option<String>,
    /// "Up to this toolkit".
    pub until: Option<String>,
}

/// `[[list]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ListSpec {
    /// For which releases; empty: all.
    #[serde(default)]
    pub tags: String,
    /// How the files are read.
    #[serde(rename = "in")]
    pub within: Option<Within>,
    /// The file; or `paths`.
    pub file: Option<String>,
    /// The variable that holds it.
    pub name: Option<String>,
    /// Globs; or `file`.
    #[serde(default)]
    pub paths: Vec<String>,
    /// In words: several variables; `*` at the start stands for anything.
    #[serde(default)]
    pub names: Vec<String>,
    /// Code around a list, `$ARCHES`, that PyTorch reads and checks; in words: the variables that it reads.
    #[serde(default)]
    pub torch: Vec<String>,
    /// What stands before a value in a string that a loop fills with each of a list.
    #[serde(default)]
    pub each: Vec<String>,
    /// Code around a list, `$ARCHES`, of which nothing tells who reads it.
    #[serde(default)]
    pub find: Vec<String>,
    /// Conditions on the other metavariables of `find`.
    #[serde(default, rename = "where")]
    pub conditions: BTreeMap<String, WhereSpec>,
    /// `each` and `find` only in files that hold one of these texts.
    #[serde(default)]
    pub with: Vec<String>,
}

/// `[[rename]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RenameSpec {
    /// For which releases; empty: all.
    #[serde(default)]
    pub tags: String,
    /// For which environment.
    pub needed: Option<NeededSpec>,
    /// Globs; else those of the patch.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The old name.
    pub from: String,
    /// The new one.
    pub to: String,
    /// Lands together with the others of this name.
    pub unit: Option<String>,
    /// What each changed file includes afterwards.
    #[serde(default)]
    pub include: Vec<String>,
    /// For what `to` is right; else for all.
    pub right_for: Option<RightForSpec>,
    /// What stands at the other places.
    pub otherwise: Option<OtherwiseSpec>,
    /// A tree that has one of these brings the name from elsewhere.
    #[serde(default)]
    pub unless: Vec<String>,
    /// The headers that the old name comes from; else wherever it stands.
    #[serde(default)]
    pub brought_by: Vec<String>,
}

/// `right-for`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RightForSpec {
    /// Releases of the toolkit.
    pub cuda: Option<String>,
    /// Whether ROCm has it too.
    #[serde(default = "yes")]
    pub rocm: bool,
}

fn yes() -> bool {
    true
}

/// `otherwise`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OtherwiseSpec {
    /// The new name, or the code.
    #[serde(alias = "replace")]
    pub to: String,
    /// What each file with such a place includes afterwards.
    #[serde(default)]
    pub include: Vec<String>,
}

/// `[[rewrite]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RewriteSpec {
    /// For which releases; empty: all.
    #[serde(default)]
    pub tags: String,
    /// How the files are read.
    #[serde(rename = "in")]
    pub within: Option<Within>,
    /// For which environment.
    pub needed: Option<NeededSpec>,
    /// Lands together with the others of this name.
    pub unit: Option<String>,
    /// The file; or `paths`.
    pub file: Option<String>,
    /// Globs; or `file`; else those of the patch.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Patterns, any of which must go.
    pub find: Vec<String>,
    /// What stands there instead; absent: matches are reported.
    pub replace: Option<String>,
    /// Conditions on metavariables.
    #[serde(default, rename = "where")]
    pub conditions: BTreeMap<String, WhereSpec>,
    /// Only within one of these.
    #[serde(default)]
    pub inside: Vec<String>,
    /// Not within one of these.
    #[serde(default)]
    pub not_inside: Vec<String>,
    /// Only where some lanes of a warp may have left before.
    #[serde(default)]
    pub behind_exit: bool,
    /// Cures that count.
    #[serde(default)]
    pub unless: Vec<String>,
    /// Only files that hold one of these.
    #[serde(default)]
    pub beside: Vec<String>,
    /// Code that may stand there instead of `replace`; each counts as a place that is done.
    #[serde(default)]
    pub accept: Vec<String>,
    /// How many places: `2` or `1..=4`.
    pub expect: Option<String>,
    /// What each changed file includes afterwards; without `replace`, what files with a match do that lack it.
    #[serde(default)]
    pub include: Vec<String>,
    /// For what `replace` is right; else for all.
    pub right_for: Option<RightForSpec>,
    /// What stands at the other places.
    pub otherwise: Option<OtherwiseSpec>,
    /// Globs of other headers that bring `include` along; with `!`, of those that do not.
    #[serde(default)]
    pub brought_by: Vec<String>,
    /// Only the first place that each of these comes to when it is compiled.
    #[serde(default)]
    pub read_by: Vec<String>,
    /// What a person should do.
    pub advice: Option<String>,
}

/// `where.X`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WhereSpec {
    /// Its text matches.
    pub regex: Option<String>,
    /// It is none of these patterns.
    #[serde(default)]
    pub not: Vec<String>,
    /// One of these patterns stands in the function around and speaks of the same name.
    #[serde(default)]
    pub declared: Vec<String>,
    /// The type that a declaration in sight gives it matches.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// No other use is left around it.
    #[serde(default)]
    pub unused: bool,
    /// It is a path that can be seen to begin in no fixed folder.
    #[serde(default)]
    pub relative: bool,
    /// It is computed from the number of a thread.
    #[serde(default)]
    pub varies: bool,
    /// It is no name that is given literals alone.
    #[serde(default)]
    pub computed: bool,
}

/// `[[insert]]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct InsertSpec {
    /// For which releases; empty: all.
    #[serde(default)]
    pub tags: String,
    /// For which environment.
    pub needed: Option<NeededSpec>,
    /// Lands together with the others of this name.
    pub unit: Option<String>,
    /// The file.
    pub file: String,
    /// What it hangs on.
    pub anchor: String,
    /// On which side of it.
    pub position: PositionSpec,
    /// The snippet.
    pub text: String,
    /// Cures that count.
    #[serde(default)]
    pub unless: Vec<String>,
}

/// `position`
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PositionSpec {
    /// Before the anchor.
    Before,
    /// After it.
    After,
    /// At the start of its block.
    Start,
    /// At the end of its block.
    End,
}
