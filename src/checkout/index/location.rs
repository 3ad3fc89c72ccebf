//! Which package index is the user's own.
//!
//! Looked up in this order: `--index`; `PIP_INDEX_URL`; `UV_DEFAULT_INDEX`, `UV_INDEX_URL`; pip's configuration files;
//! uv's; what the installed pip has built in. No index is named in this program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::super::http::without_credentials;
use super::super::variables::Variables;
use super::page::percent_decoded;

/// Where an index lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexPlace {
    /// A server.
    Http {
        /// Its address with `/` at the end, without credentials.
        url: String,
        /// `user:password`, still encoded.
        credentials: Option<String>,
    },
    /// A folder with one folder a project, or with the archives themselves.
    Folder(PathBuf),
}

/// An index, and what named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexLocation {
    /// Where it lies.
    pub place: IndexPlace,
    /// What named it: `--index`, a variable, a file.
    pub named_by: String,
}

impl IndexLocation {
    /// Reads an address or the path of a folder.
    pub fn new(text: &str, named_by: &str) -> Self {
        Self { place: IndexPlace::new(text.trim()), named_by: named_by.into() }
    }

    /// The user's own index; `given` is the value of `--index`. None where nothing names one.
    pub fn find(given: Option<&str>, variables: &Variables) -> Option<Self> {
        if let Some(text) = given {
            return Some(Self::new(text, "--index"));
        }
        let by_variable = ["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"]
            .into_iter()
            .find_map(|name| Some(Self::new(without_index_name(variables.get(name)?), name)));
        by_variable
            .or_else(|| from_files(pip_files(variables), read_pip_conf))
            .or_else(|| from_files(uv_files(variables), read_uv_toml))
            .or_else(|| {
                // Asking Python takes a tenth of a second; its answer stays the same.
                static ANSWER: OnceLock<Option<String>> = OnceLock::new();
                let answer = ANSWER.get_or_init(|| built_into_pip(variables)).as_deref()?;
                Some(Self::new(answer, "the installed pip"))
            })
    }

    /// The address as it may be shown: without credentials.
    pub fn shown(&self) -> String {
        match &self.place {
            IndexPlace::Http { url, .. } => url.clone(),
            IndexPlace::Folder(path) => path.display().to_string(),
        }
    }
}

impl IndexPlace {
    fn new(text: &str) -> Self {
        if let Some(path) = text.strip_prefix("file://") {
            // On Windows the drive stands behind a third slash.
            let drive = path.as_bytes().get(2) == Some(&b':') && path.starts_with('/');
            return Self::Folder(percent_decoded(&path[usize::from(drive)..]).into());
        }
        if !text.contains("://") {
            return Self::Folder(text.into());
        }
        let url = format!("{}/", without_credentials(text).trim_end_matches('/'));
        let authority = text.split("://").nth(1).and_then(|rest| rest.split('/').next());
        let credentials = authority.and_then(|authority| authority.rsplit_once('@'));
        Self::Http { url, credentials: credentials.map(|(credentials, _)| credentials.to_string()) }
    }
}

/// uv allows `name=URL`.
fn without_index_name(text: &str) -> &str {
    match text.split_once('=') {
        Some((name, url)) if !name.contains([':', '/']) => url,
        _ => text,
    }
}

fn from_files(files: Vec<PathBuf>, read: fn(&str) -> Option<String>) -> Option<IndexLocation> {
    files.into_iter().find_map(|path| {
        let url = read(&fs::read_to_string(&path).ok()?)?;
        Some(IndexLocation::new(&url, &path.display().to_string()))
    })
}

/// pip's configuration files, the one that wins first.
fn pip_files(variables: &Variables) -> Vec<PathBuf> {
    if variables.get("PIP_CONFIG_FILE").is_some_and(|path| path == "/dev/null" || path == "nul") {
        return Vec::new();
    }
    let name = if cfg!(windows) { "pip.ini" } else { "pip.conf" };
    let below = |variable: &str, folder: &str| Some(variables.path(variable)?.join(folder).join(name));
    let home = |folder: &str| Some(variables.home()?.join(folder).join(name));
    let user = below("XDG_CONFIG_HOME", "pip").or_else(|| home(".config/pip"));
    [
        variables.path("PIP_CONFIG_FILE"),
        below("VIRTUAL_ENV", ""),
        below("CONDA_PREFIX", ""),
        user,
        cfg!(target_os = "macos").then(|| home("Library/Application Support/pip")).flatten(),
        below("APPDATA", "pip"),
        home(".pip"),
        below("PROGRAMDATA", "pip"),
        below("XDG_CONFIG_DIRS", "pip"),
        (!cfg!(windows)).then(|| "/etc/xdg/pip/pip.conf".into()),
        (!cfg!(windows)).then(|| "/etc/pip.conf".into()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// uv's configuration files, the one that wins first.
fn uv_files(variables: &Variables) -> Vec<PathBuf> {
    let user = variables.path("XDG_CONFIG_HOME").or_else(|| Some(variables.home()?.join(".config")));
    [
        variables.path("UV_CONFIG_FILE"),
        user.map(|folder| folder.join("uv/uv.toml")),
        variables.path("APPDATA").map(|folder| folder.join("uv/uv.toml")),
        (!cfg!(windows)).then(|| "/etc/uv/uv.toml".into()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `index-url` of a pip.conf; the section of a command wins over `[global]`.
fn read_pip_conf(text: &str) -> Option<String> {
    let mut found: [Option<String>; 3] = Default::default();
    let mut section = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = ["download", "install", "global"].iter().position(|known| *known == name.trim());
            continue;
        }
        let Some(at) = line.find(['=', ':']) else { continue };
        let key = line[..at].trim().to_ascii_lowercase().replace('_', "-");
        let value = line[at + 1..].trim();
        if let (Some(section), "index-url", false) = (section, key.as_str(), value.is_empty()) {
            found[section] = Some(value.to_string());
        }
    }
    found.into_iter().flatten().next()
}

/// The default index of a uv.toml.
fn read_uv_toml(text: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    let indexes = table.get("index").and_then(toml::Value::as_array).into_iter().flatten();
    let is_default = |index: &&toml::Value| index.get("default").and_then(toml::Value::as_bool) == Some(true);
    let default = indexes.clone().find(is_default).and_then(|index| index.get("url"));
    let legacy = table.get("index-url").or_else(|| table.get("pip")?.get("index-url"));
    default.or(legacy)?.as_str().map(str::to_string)
}

/// The index that the installed pip would ask if nothing were configured.
fn built_into_pip(variables: &Variables) -> Option<String> {
    let program = "from pip._internal.models.index import PyPI; print(PyPI.simple_url)";
    let environment = ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(|name| variables.path(name));
    let python = |folder: PathBuf| folder.join(if cfg!(windows) { "python.exe" } else { "bin/python" });
    let named = ["python3", "python"].map(PathBuf::from);
    environment.map(python).chain(named).find_map(|python| ask(&python, program))
}

fn ask(python: &Path, program: &str) -> Option<String> {
    let mut command = Command::new(python);
    command.args(["-I", "-c", program]).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_string();
    text.contains("://").then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pip_conf() {
        let text =
            "[global]\n# x\nindex_url = https://g.test/simple\n[install]\nindex-url: https://i.test/simple\n";
        assert_eq!(read_pip_conf(text).as_deref(), Some("https://i.test/simple"));
        assert_eq!(read_pip_conf("[list]\nindex-url=https://l.test\n[global]\ncert=/x"), None);
    }

    #[test]
    fn uv_toml() {
        let text = "[[index]]\nurl = 'https://a.test'\n[[index]]\nurl = 'https://b.test'\ndefault = true\n";
        assert_eq!(read_uv_toml(text).as_deref(), Some("https://b.test"));
        assert_eq!(read_uv_toml("[pip]\nindex-url = 'https://c.test'").as_deref(), Some("https://c.test"));
        assert_eq!(read_uv_toml("[[index]]\nurl = 'https://a.test'"), None);
    }

    #[test]
    fn the_order() {
        let folder = tempfile::tempdir().expect("folder");
        let conf = folder.path().join("pip.conf");
        fs::write(&conf, "[global]\nindex-url = https://f.test").expect("write");
        let mut pairs = vec![("PIP_CONFIG_FILE", conf.to_str().expect("path"))];
        let find = |given, pairs: &[(&str, &str)]| {
            let location = IndexLocation::find(given, &Variables::from_pairs(pairs.iter().copied()));
            location.map(|location| location.shown())
        };
        assert_eq!(find(None, &pairs).as_deref(), Some("https://f.test/"));
        pairs.push(("UV_DEFAULT_INDEX", "mine=https://u.test/simple/"));
        assert_eq!(find(None, &pairs).as_deref(), Some("https://u.test/simple/"));
        pairs.push(("PIP_INDEX_URL", "https://me:secret@p.test/simple"));
        assert_eq!(find(None, &pairs).as_deref(), Some("https://p.test/simple/"));
        assert_eq!(find(Some("/some/folder"), &pairs).as_deref(), Some("/some/folder"));
    }

    #[test]
    fn credentials_are_kept_apart() {
        let location = IndexLocation::new("https://me:secret@p.test/simple", "x");
        let credentials = Some("me:secret".to_string());
        assert_eq!(location.place, IndexPlace::Http { url: "https://p.test/simple/".into(), credentials });
        assert_eq!(IndexLocation::new("file:///a%20b", "x").place, IndexPlace::Folder("/a b".into()));
    }
}
