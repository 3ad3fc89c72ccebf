//! `mambapatch.lock`: what a vendored tree is made of. People review it, so it is short and has no lines that change
//! without a reason.

use serde::{Deserialize, Serialize};

use crate::checkout::cache::sha256;

/// The newest form of the file that this program reads and writes.
const FORMAT: u32 = 1;

/// What a vendored tree is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Lock {
    /// The form of this file.
    pub format: u32,
    /// The program that wrote it.
    pub made_by: String,
    /// What was patched.
    pub upstream: Origin,
    /// What was asked for.
    #[serde(default)]
    pub asked: Parameters,
    /// What it was patched with.
    pub patches: Used,
    /// The result.
    pub tree: Record,
    /// Files that the patches changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<Changed>,
    /// Submodules, whose files are not in the tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub submodule: Vec<SubmoduleRecord>,
}

/// What was patched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Origin {
    /// Its upstream: `mamba-ssm`.
    pub id: String,
    /// The tag, the branch or the short commit.
    pub reference: String,
    /// The commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The file name of the source distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<String>,
    /// Where the upstream is cloned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What was asked for, as flags give it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Parameters {
    /// `--add-arch`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add_arch: Vec<String>,
    /// `--drop-arch`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drop_arch: Vec<String>,
    /// `--only-arch`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only_arch: Vec<String>,
    /// `--cuda`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cuda: Vec<String>,
    /// `--torch`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub torch: Option<String>,
    /// `--patch`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patch: Vec<String>,
    /// `--skip-patch`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skip_patch: Vec<String>,
    /// `--accept-advisory`
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub accept_advisory: bool,
}

/// What it was patched with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Used {
    /// The patches that changed something, in order.
    pub applied: Vec<String>,
    /// The digest of the texts of all patches that were asked for: another one is another version of them.
    pub content: String,
}

/// The result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Record {
    /// The digest of `patches/files`, which has the digest of every file.
    pub digest: String,
    /// How many files there are.
    pub files: usize,
    /// Those that hold the licence.
    pub licences: Vec<String>,
    /// Files of the upstream that are not here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Files that are pointers of git LFS, not what they point at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lfs_pointers: Vec<String>,
}

/// A file that patches changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Changed {
    /// Its path.
    pub path: String,
    /// The id of its content upstream, as git gives it.
    pub before: String,
    /// The id of its content here.
    pub after: String,
    /// The patches that changed it.
    pub by: Vec<String>,
}

/// A submodule, whose files are not in the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SubmoduleRecord {
    /// Its folder.
    pub path: String,
    /// The commit that belongs there.
    pub commit: String,
    /// Where it is cloned from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

const HEAD: &str = "\
# Written by `mambapatch vendor`. `mambapatch vendor check` compares this folder with it; `patches/files` has the
# digest of every file. Do not edit it.

";

impl Lock {
    /// The form and the program of a lock that is written now.
    pub fn made_now() -> (u32, String) {
        (FORMAT, format!("mambapatch {}", env!("CARGO_PKG_VERSION")))
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        // A value of these types always has a text.
        let toml = toml::to_string(self).unwrap_or_default();
        format!("{HEAD}{toml}")
    }

    /// Reads the file; or line, caret and what is wrong.
    pub fn read(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Form {
            format: u32,
        }
        let form: Form = toml::from_str(text).map_err(|error| error.to_string())?;
        if form.format > FORMAT {
            return Err(format!(
                "it has the form {}, and this program knows the forms up to {FORMAT}",
                form.format
            ));
        }
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// Whether the other one describes the same tree, made of the same; the program that wrote it does not count.
    pub fn is_same(&self, other: &Self) -> bool {
        Self { made_by: String::new(), ..self.clone() } == Self { made_by: String::new(), ..other.clone() }
    }
}

/// A digest as the file holds it.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let (format, made_by) = Lock::made_now();
        Lock {
            format,
            made_by,
            upstream: Origin {
                id: "mamba-ssm".into(),
                reference: "v2.2.4".into(),
                commit: Some("95d8".into()),
                archive: None,
                url: None,
            },
            asked: Parameters { add_arch: vec!["120".into()], ..Parameters::default() },
            patches: Used { applied: vec!["mamba-ssm/gpu-arch".into()], content: digest(b"") },
            tree: Record {
                digest: digest(b"x"),
                files: 1,
                licences: vec!["LICENSE".into()],
                left_out: Vec::new(),
                lfs_pointers: Vec::new(),
            },
            changed: vec![Changed {
                path: "a".into(),
                before: "1".into(),
                after: "2".into(),
                by: Vec::new(),
            }],
            submodule: Vec::new(),
        }
    }

    #[test]
    fn the_text_is_read_back() {
        let lock = lock();
        let text = lock.text();
        assert_eq!(Lock::read(&text), Ok(lock.clone()), "{text}");
        assert!(text.contains("\n[asked]\nadd-arch = [\"120\"]\n"), "{text}");
        let later = Lock { made_by: "mambapatch 9".into(), ..lock.clone() };
        assert!(lock.is_same(&later) && !lock.is_same(&Lock { changed: Vec::new(), ..lock.clone() }));
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        let text = lock().text().replace("add-arch", "add-arches");
        let error = Lock::read(&text).expect_err("unknown key");
        assert!(error.contains("add-arches") && error.contains('^') && error.contains("line 1"), "{error}");
        let newer = lock().text().replace("format = 1", "format = 2");
        assert!(Lock::read(&newer).expect_err("newer").contains("the form 2"));
    }
}
