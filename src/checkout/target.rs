//! TARGET as it is typed: a path, an upstream at a release, branch or commit.

use std::path::PathBuf;

use super::upstream::UpstreamInfo;

/// What a TARGET names; nothing was looked up yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetSpec {
    /// A folder or an archive, as it was typed (`~` included).
    Path(PathBuf),
    /// An upstream at some state.
    Upstream {
        /// The upstream's id.
        id: String,
        /// Which state of it.
        wanted: Wanted,
        /// The upstream was not named: the REF is one of the default upstream.
        by_default: bool,
    },
}

/// Which state of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// The newest release.
    Newest,
    /// The branch that upstream works on.
    DefaultBranch,
    /// A tag, branch or commit.
    Ref(String),
}

/// Why a text is no TARGET.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Nothing was typed.
    #[error("the target is empty")]
    Empty,
    /// The name before `@` is no upstream.
    #[error("`{name}` is not a known upstream; known are: {}", known.join(", "))]
    UnknownUpstream {
        /// What stood before `@`.
        name: String,
        /// What stood behind it.
        reference: String,
        /// All known upstreams.
        known: Vec<String>,
        /// The known upstream whose name is nearest, if one is near.
        nearest: Option<String>,
    },
    /// A requirement as pip takes it.
    #[error("`{name}=={version}` is written as pip takes it")]
    Requirement {
        /// What stands before `==`.
        name: String,
        /// What stands behind it.
        version: String,
    },
    /// Nothing stands behind the `@`.
    #[error("no tag, branch or commit stands behind `{upstream}@`")]
    EmptyRef {
        /// The upstream.
        upstream: String,
    },
}

impl TargetError {
    /// What to type instead.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Empty => Some("name a release, `v2.2.4`, or a folder, `./mamba`".into()),
            Self::UnknownUpstream { nearest: Some(near), reference, .. } => {
                Some(format!("{near}@{reference}"))
            }
            Self::UnknownUpstream { name, reference, .. } => {
                Some(format!("for a folder of that name type ./{name}@{reference}"))
            }
            Self::Requirement { name, version } => {
                Some(format!("{name}@v{}", version.trim_start_matches('v')))
            }
            Self::EmptyRef { upstream } => Some(format!("{upstream} alone is its newest release")),
        }
    }
}

impl TargetSpec {
    /// Reads a TARGET: a text with `/` or `\`, or that starts with `.` or `~`, is a path; `UPSTREAM@REF` a state of an
    /// upstream; an upstream's name alone its newest release; all else a REF of `default_upstream`.
    pub fn parse(
        text: &str,
        upstreams: &[UpstreamInfo],
        default_upstream: &str,
    ) -> Result<Self, TargetError> {
        if text.trim().is_empty() {
            return Err(TargetError::Empty);
        }
        if text.contains(['/', '\\']) || text.starts_with(['.', '~']) {
            return Ok(Self::Path(text.into()));
        }
        if let Some((name, reference)) = text.split_once('@') {
            return Self::of_upstream(name, reference, upstreams);
        }
        if let Some((name, version)) = text.split_once("==") {
            return Err(TargetError::Requirement {
                name: name.trim().into(),
                version: version.trim().into(),
            });
        }
        if upstreams.iter().any(|upstream| upstream.id == text) {
            return Ok(Self::Upstream { id: text.into(), wanted: Wanted::Newest, by_default: false });
        }
        let wanted = Wanted::Ref(text.into());
        Ok(Self::Upstream { id: default_upstream.into(), wanted, by_default: true })
    }

    fn of_upstream(name: &str, reference: &str, upstreams: &[UpstreamInfo]) -> Result<Self, TargetError> {
        let known: Vec<String> = upstreams.iter().map(|upstream| upstream.id.clone()).collect();
        if !known.iter().any(|id| id == name) {
            let nearest = nearest(name, known.iter().map(String::as_str), 1).pop();
            return Err(TargetError::UnknownUpstream {
                name: name.into(),
                reference: reference.into(),
                known,
                nearest,
            });
        }
        if reference.is_empty() {
            return Err(TargetError::EmptyRef { upstream: name.into() });
        }
        let wanted = Wanted::Ref(reference.into());
        Ok(Self::Upstream { id: name.into(), wanted, by_default: false })
    }
}

/// Up to `count` candidates that look like `wanted`: first those that begin with it, then the nearest.
pub fn nearest<'a>(wanted: &str, candidates: impl Iterator<Item = &'a str>, count: usize) -> Vec<String> {
    let enough = (wanted.chars().count() / 2).max(2);
    let mut near: Vec<(usize, &str)> = candidates
        .map(|candidate| (distance(wanted, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= enough || candidate.starts_with(wanted))
        .collect();
    near.sort_by_key(|(distance, candidate)| (!candidate.starts_with(wanted), *distance));
    near.into_iter().take(count).map(|(_, candidate)| candidate.to_string()).collect()
}

/// How many letters must be added, removed or replaced.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, letter) in left.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], line + 1);
        for (column, other) in right.iter().enumerate() {
            let kept = before + usize::from(letter != *other);
            before = row[column + 1];
            row[column + 1] = kept.min(before + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(id: &str) -> UpstreamInfo {
        UpstreamInfo {
            id: id.into(),
            distribution: id.into(),
            git_url: None,
            recognise: Vec::new(),
            tag_prefix: "v".into(),
        }
    }

    fn parse(text: &str) -> Result<TargetSpec, TargetError> {
        TargetSpec::parse(text, &[upstream("mamba-ssm"), upstream("causal-conv1d")], "mamba-ssm")
    }

    fn state(id: &str, reference: Option<&str>, by_default: bool) -> TargetSpec {
        let wanted = reference.map_or(Wanted::Newest, |text| Wanted::Ref(text.into()));
        TargetSpec::Upstream { id: id.into(), wanted, by_default }
    }

    #[test]
    fn paths_come_first() {
        for text in ["./mamba", "/src/mamba", "a/b", "..", "~", "~/mamba", r"C:\mamba", "x@y/z"] {
            assert_eq!(parse(text), Ok(TargetSpec::Path(text.into())), "{text}");
        }
    }

    #[test]
    fn upstream_and_ref() {
        assert_eq!(parse("causal-conv1d@v1.7.0"), Ok(state("causal-conv1d", Some("v1.7.0"), false)));
        assert_eq!(parse("causal-conv1d"), Ok(state("causal-conv1d", None, false)));
        assert_eq!(parse("v2.2.4"), Ok(state("mamba-ssm", Some("v2.2.4"), true)));
        assert_eq!(parse("main"), Ok(state("mamba-ssm", Some("main"), true)));
    }

    #[test]
    fn errors_end_in_something_to_type() {
        let error = parse("causal-conv@v1.7.0").expect_err("unknown");
        assert_eq!(error.hint().as_deref(), Some("causal-conv1d@v1.7.0"));
        assert!(error.to_string().contains("mamba-ssm, causal-conv1d"));
        assert!(parse("mamba-ssm@").is_err() && parse("").is_err());
    }

    #[test]
    fn nearest_first() {
        let tags = ["v2.2.4", "v2.2.5", "v2.3.0", "v1.0.0"];
        assert_eq!(nearest("v2.2.6", tags.into_iter(), 2), ["v2.2.4", "v2.2.5"]);
        assert_eq!(nearest("v2.2.3", ["v2.2.4", "v2.2.3.post2"].into_iter(), 1), ["v2.2.3.post2"]);
        assert!(nearest("entirely-different", tags.into_iter(), 2).is_empty());
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
