//! The rules, as `patchsets/diagnose` has them.

use std::sync::LazyLock;

use serde::Deserialize;

use super::decide::{Condition, NotACondition};
use super::search::Patterns;

/// A rule: how an error looks, and what it means.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rule {
    /// `D01`.
    pub id: String,
    /// What happened, in a few words.
    pub title: String,
    /// 1: a cause by itself; 2: facts must decide; 3: a hint; 8: only tells that something else failed.
    pub rank: u8,
    /// Patterns, any of which must match. Named groups are facts of the case.
    pub find: Vec<String>,
    /// What the log must tell besides.
    #[serde(default)]
    pub requires: Vec<String>,
    /// Rules that say nothing where this one matched.
    #[serde(default)]
    pub refines: Vec<String>,
    /// Reports that it comes from.
    #[serde(default)]
    pub reports: Vec<String>,
    /// What it can be, the first that holds; the last has no `when`.
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
}

/// One thing that an error can mean.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// All of these must hold.
    #[serde(default)]
    pub when: Vec<Condition>,
    /// The cause, with `{facts}`.
    pub cause: String,
    /// What helps.
    #[serde(rename = "do")]
    pub remedy: String,
    /// Commands to type.
    #[serde(default, rename = "type")]
    pub commands: Vec<String>,
    /// The patches that cure it; which of them depends on the source.
    #[serde(default)]
    pub patches: Vec<String>,
}

/// A fact that a log tells of itself.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogFact {
    /// Its name.
    pub name: String,
    /// Patterns; the group `value` is the fact, without one it is `true`.
    pub find: Vec<String>,
    /// What it is where the log does not tell; without one it is not known.
    pub default: Option<String>,
    /// What it is where a pattern matches; else the group.
    pub value: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    rule: Vec<Rule>,
    #[serde(default)]
    fact: Vec<LogFact>,
}

/// All rules, and their patterns compiled: those of rule `n` are number `n`, those of the facts follow.
pub struct Rules {
    /// The rules.
    pub rules: Vec<Rule>,
    /// The facts that a log tells.
    pub facts: Vec<LogFact>,
    /// Their patterns.
    pub patterns: Patterns,
}

/// Why rules cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// A file says something that no file of rules says.
    #[error("diagnose/{file}: {cause}")]
    Syntax {
        /// Its name.
        file: String,
        /// What the TOML reader says.
        cause: Box<toml::de::Error>,
    },
    /// A pattern is none.
    #[error("a pattern cannot be used: {0}")]
    Pattern(#[from] regex::Error),
    /// A condition is none.
    #[error(transparent)]
    Condition(#[from] NotACondition),
}

const FILES: [(&str, &str); 7] = [
    ("log.toml", include_str!("../../../patchsets/diagnose/log.toml")),
    ("arches.toml", include_str!("../../../patchsets/diagnose/arches.toml")),
    ("toolkit.toml", include_str!("../../../patchsets/diagnose/toolkit.toml")),
    ("loading.toml", include_str!("../../../patchsets/diagnose/loading.toml")),
    ("sources.toml", include_str!("../../../patchsets/diagnose/sources.toml")),
    ("packages.toml", include_str!("../../../patchsets/diagnose/packages.toml")),
    ("running.toml", include_str!("../../../patchsets/diagnose/running.toml")),
];

static SHIPPED: LazyLock<Rules> = LazyLock::new(|| {
    Rules::parse(&FILES).unwrap_or_else(|error| panic!("the shipped rules are broken: {error}"))
});

impl Rules {
    /// The rules inside this program.
    pub fn shipped() -> &'static Rules {
        &SHIPPED
    }

    /// Reads rules from the texts of files, each with its name.
    pub fn parse(files: &[(&str, &str)]) -> Result<Self, RulesError> {
        let mut all = RuleFile::default();
        for (name, text) in files {
            let syntax = |cause| RulesError::Syntax { file: name.to_string(), cause: Box::new(cause) };
            let file: RuleFile = toml::from_str(text).map_err(syntax)?;
            all.rule.extend(file.rule);
            all.fact.extend(file.fact);
        }
        let patterns = all.rule.iter().map(|rule| rule.find.as_slice());
        let patterns = Patterns::compile(patterns.chain(all.fact.iter().map(|fact| fact.find.as_slice())))?;
        Ok(Self { rules: all.rule, facts: all.fact, patterns })
    }
}
