//! One project's page of a package index: JSON (PEP 691) or HTML (PEP 503), read into files.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Value, json};

use super::super::archive;
use crate::engine::tag::Tag;

/// A source distribution that an index offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseFile {
    /// Its file name: `mamba_ssm-2.2.4.tar.gz`.
    pub file_name: String,
    /// Where it lies, without credentials.
    pub url: String,
    /// The release, read from the file name.
    pub tag: Tag,
    /// Its SHA-256 in lower case, where the index states one.
    pub sha256: Option<String>,
    /// Whether it was withdrawn.
    pub yanked: bool,
}

/// What PEP 503 makes of a project's name: `Mamba_SSM` is `mamba-ssm`.
pub fn normalised(name: &str) -> String {
    let mut normal = String::new();
    for letter in name.chars() {
        match letter {
            '-' | '_' | '.' if normal.ends_with('-') => {}
            '-' | '_' | '.' => normal.push('-'),
            other => normal.extend(other.to_lowercase()),
        }
    }
    normal
}

/// The release that a file name states, if it is a source distribution of this project.
pub fn sdist_tag(project: &str, file_name: &str) -> Option<Tag> {
    let lower = file_name.to_ascii_lowercase();
    let stem_length = [".tar.gz", ".tgz", ".zip"]
        .iter()
        .find_map(|suffix| Some(lower.strip_suffix(suffix)?.len()))
        .filter(|_| archive::is_archive(file_name))?;
    let stem = file_name.get(..stem_length)?;
    let project = normalised(project);
    let mut cuts = stem.match_indices('-').filter(|(at, _)| normalised(&stem[..*at]) == project);
    cuts.find_map(|(at, _)| stem[at + 1..].parse().ok())
}

/// The source distributions on a JSON page; `base` is the page's address. None where it is no such page.
pub fn from_json(project: &str, bytes: &[u8], base: &str) -> Option<Vec<ReleaseFile>> {
    let page: Value = serde_json::from_slice(bytes).ok()?;
    let file = |entry: &Value| {
        let file_name = entry["filename"].as_str()?.to_string();
        let yanked = &entry["yanked"];
        Some(ReleaseFile {
            tag: sdist_tag(project, &file_name)?,
            url: join(base, entry["url"].as_str()?),
            sha256: entry["hashes"]["sha256"].as_str().map(str::to_ascii_lowercase),
            yanked: yanked.as_bool().unwrap_or(yanked.is_string()),
            file_name,
        })
    };
    Some(page["files"].as_array()?.iter().filter_map(file).collect())
}

/// The same files as a JSON page, for the cache.
pub fn to_json(files: &[ReleaseFile]) -> Vec<u8> {
    let file = |file: &ReleaseFile| {
        let hashes = file.sha256.as_ref().map_or(json!({}), |sha256| json!({ "sha256": sha256 }));
        json!({ "filename": file.file_name, "url": file.url, "hashes": hashes, "yanked": file.yanked })
    };
    json!({ "files": files.iter().map(file).collect::<Vec<_>>() }).to_string().into_bytes()
}

/// The source distributions on an HTML page; `base` is the page's address.
pub fn from_html(project: &str, bytes: &[u8], base: &str) -> Vec<ReleaseFile> {
    let text = String::from_utf8_lossy(bytes);
    let text = COMMENT.replace_all(&text, "");
    let base = match BASE.captures(&text) {
        Some(found) => attribute(&found[1], "href").map_or_else(|| base.into(), |href| join(base, &href)),
        None => base.to_string(),
    };
    ANCHOR.captures_iter(&text).filter_map(|found| anchor(project, &found[1], &base)).collect()
}

fn anchor(project: &str, attributes: &str, base: &str) -> Option<ReleaseFile> {
    let href = attribute(attributes, "href")?;
    let (address, fragment) = href.split_once('#').unwrap_or((&href, ""));
    let url = join(base, address);
    let path = url.split('?').next()?;
    let file_name = percent_decoded(path.rsplit('/').next()?);
    let sha256 = fragment.split('&').find_map(|part| part.strip_prefix("sha256="));
    Some(ReleaseFile {
        tag: sdist_tag(project, &file_name)?,
        sha256: sha256.map(str::to_ascii_lowercase),
        yanked: attribute(attributes, "data-yanked").is_some(),
        file_name,
        url,
    })
}

/// The value of one attribute of a start tag; an attribute without a value is empty.
fn attribute(attributes: &str, name: &str) -> Option<String> {
    let found = ATTRIBUTE.captures_iter(attributes).find(|found| found[1].eq_ignore_ascii_case(name))?;
    let value = found.get(2).or(found.get(3)).or(found.get(4));
    Some(unescaped(value.map_or("", |value| value.as_str())))
}

fn unescaped(text: &str) -> String {
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'")];
    let text = named.iter().fold(text.to_string(), |text, (entity, letter)| text.replace(entity, letter));
    text.replace("&#43;", "+").replace("&amp;", "&")
}

static COMMENT: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?s)<!--.*?-->"));
static BASE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?is)<base\s([^>]*)>"));
static ANCHOR: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?is)<a\s([^>]*)>"));
static ATTRIBUTE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r#"(?s)([^\s=/]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?"#));

fn pattern(text: &'static str) -> Regex {
    Regex::new(text).expect("a fixed pattern")
}

/// The address that `reference` means on the page `base`.
pub fn join(base: &str, reference: &str) -> String {
    let scheme_end = base.find("://").map_or(0, |at| at + 3);
    let scheme = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    if reference.split_once("://").is_some_and(|(before, _)| scheme(before)) {
        return super::super::http::without_credentials(reference);
    }
    if let Some(rest) = reference.strip_prefix("//") {
        return format!("{}{rest}", &base[..scheme_end]);
    }
    let base = base.split(['?', '#']).next().unwrap_or(base);
    let host_end = base[scheme_end..].find('/').map_or(base.len(), |at| scheme_end + at);
    let (host, folder) = base.split_at(host_end);
    if reference.starts_with('/') {
        return format!("{host}{}", without_dots(reference));
    }
    let folder = folder.rfind('/').map_or("/", |at| &folder[..=at]);
    format!("{host}{}", without_dots(&format!("{folder}{reference}")))
}

fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    format!("/{}", parts.join("/"))
}

/// `%20` and the like decoded.
pub fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match code.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_versions() {
        assert_eq!(normalised("Mamba__SSM.x"), "mamba-ssm-x");
        let tag = |name: &str| sdist_tag("mamba-ssm", name).map(|tag| tag.to_string());
        assert_eq!(tag("mamba_ssm-2.2.3.post2.tar.gz"), Some("2.2.3.post2".into()));
        assert_eq!(tag("mamba-ssm-1.0.zip"), Some("1.0".into()));
        assert_eq!(tag("mamba_ssm-2.2.4-cp311-cp311-linux_x86_64.whl"), None);
        assert_eq!(tag("mamba_ssm_extra-2.2.4.tar.gz"), None);
    }

    #[test]
    fn addresses_are_joined() {
        let base = "https://host.test/simple/mamba-ssm/";
        assert_eq!(join(base, "../../f/a.zip"), "https://host.test/f/a.zip");
        assert_eq!(join(base, "/a.zip"), "https://host.test/a.zip");
        assert_eq!(join(base, "a.zip"), "https://host.test/simple/mamba-ssm/a.zip");
        assert_eq!(join(base, "a?u=b://c"), "https://host.test/simple/mamba-ssm/a?u=b://c");
        assert_eq!(join(base, "https://u:p@other.test/a"), "https://other.test/a");
        assert_eq!(join("file:///tmp/i/index.html", "a%20b"), "file:///tmp/i/a%20b");
        assert_eq!(percent_decoded("a%20b%2"), "a b%2");
    }

    #[test]
    fn html_and_json_say_the_same() {
        let html =
            br##"<!-- <a href="no-1.zip">x</a> --><a data-yanked href='b/p-1.0.tar.gz?x=1&amp;y=2#sha256=AB'>
            p-1.0.tar.gz</a><A HREF="p-2.0-py3-none-any.whl">wheel</A>"##;
        let files = from_html("p", html, "https://host.test/p/");
        let [file] = &files[..] else { panic!("{files:?}") };
        assert_eq!(file.url, "https://host.test/p/b/p-1.0.tar.gz?x=1&y=2");
        assert_eq!((file.sha256.as_deref(), file.yanked), (Some("ab"), true));
        assert_eq!(from_json("p", &to_json(&files), "x://y/").as_deref(), Some(&files[..]));
        assert_eq!(from_json("p", b"<html>", "x://y/"), None);
    }
}
