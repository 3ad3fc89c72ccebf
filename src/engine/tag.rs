//! Releases of an upstream, ordered by PEP 440, and ranges of them.

use std::fmt;
use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};

/// A release of an upstream: `v2.2.3.post2`. Equal and ordered by PEP 440; the leading `v` does not count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(Version);

/// A text that PEP 440 cannot read as a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a version")]
pub struct NotAVersion {
    /// What was read.
    pub text: String,
}

impl FromStr for Tag {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        Version::from_str(text).map(Self).map_err(|_| NotAVersion { text: text.to_string() })
    }
}

impl fmt::Display for Tag {
    /// Without the leading `v`: `2.2.3.post2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Tag {
    /// Whether this is an alpha, beta, candidate or development release.
    pub fn is_prerelease(&self) -> bool {
        self.0.any_prerelease()
    }

    /// The PEP 440 version.
    pub fn version(&self) -> &Version {
        &self.0
    }
}

/// What stands in a source tree: a release, something newer than all releases it contains, or something unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceVersion {
    /// Exactly this release.
    Release(Tag),
    /// A branch or commit that contains this release and is none itself.
    After(Tag),
    /// Nothing tells.
    Unknown,
}

/// A range of releases in PEP 440's notation: `>=2.1.0,<2.2.6`. The empty text is every release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagRange {
    specifiers: VersionSpecifiers,
    text: String,
}

impl FromStr for TagRange {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let specifiers =
            VersionSpecifiers::from_str(text).map_err(|_| NotAVersion { text: text.to_string() })?;
        Ok(Self { specifiers, text: text.to_string() })
    }
}

impl fmt::Display for TagRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl TagRange {
    /// Whether a release lies in the range.
    ///
    /// PEP 440's own `<2.2.6` leaves out `2.2.6.dev1` and `>2.2.3` leaves out `2.2.3.post1`; patch sets mean the
    /// plain order, so the operators compare by it.
    pub fn contains(&self, tag: &Tag) -> bool {
        use pep440_rs::Operator as Op;
        self.specifiers.iter().all(|specifier| match specifier.operator() {
            Op::LessThan => tag.0 < *specifier.version(),
            Op::LessThanEqual => tag.0 <= *specifier.version(),
            Op::GreaterThan => tag.0 > *specifier.version(),
            Op::GreaterThanEqual => tag.0 >= *specifier.version(),
            _ => specifier.contains(&tag.0),
        })
    }

    /// Whether a commit that comes after `tag` and is no release itself lies in the range.
    pub fn contains_after(&self, tag: &Tag) -> bool {
        use pep440_rs::Operator as Op;
        self.specifiers.iter().all(|specifier| match specifier.operator() {
            Op::LessThan | Op::LessThanEqual => tag.0 < *specifier.version(),
            Op::GreaterThan | Op::GreaterThanEqual => tag.0 >= *specifier.version(),
            Op::NotEqual | Op::NotEqualStar => true,
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(text: &str) -> Tag {
        text.parse().expect(text)
    }

    #[test]
    fn post_releases_are_newer_and_the_v_does_not_count() {
        assert!(tag("v2.2.3.post2") > tag("2.2.3"));
        assert!(tag("v2.2.3.post10") > tag("v2.2.3.post2"));
        assert_eq!(tag("v2.2.4"), tag("2.2.4"));
    }

    #[test]
    fn ranges_follow_the_plain_order() {
        let range: TagRange = ">=2.1.0,<2.2.6".parse().expect("range");
        assert!(range.contains(&tag("v2.2.5")) && !range.contains(&tag("v2.2.6")));
        assert!(!range.contains(&tag("v2.2.6.post1")));
        assert!(">2.2.3".parse::<TagRange>().expect("range").contains(&tag("2.2.3.post1")));
        assert!("".parse::<TagRange>().expect("range").contains(&tag("1.0")));
    }

    #[test]
    fn a_commit_lies_just_above_its_newest_tag() {
        let newest = tag("2.3.2.post1");
        let after = |range: &str, tag: &Tag| range.parse::<TagRange>().expect("range").contains_after(tag);
        assert!(after(">=2.1.0", &newest) && after("", &newest) && !after("<2.2.6", &newest));
        assert!(after("<2.2.6", &tag("2.2.5")) && !after("<=2.2.5", &tag("2.2.5")));
    }
}
