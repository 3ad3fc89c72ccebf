//! The variables of the process, captured once, and the user's folders that follow from them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Environment variables as they were when the program started. Tests make their own.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    values: BTreeMap<String, String>,
}

impl Variables {
    /// The variables of this process; `HOME` is filled in where the system knows it otherwise.
    pub fn of_process() -> Self {
        let readable = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let mut values: BTreeMap<String, String> = std::env::vars_os().filter_map(readable).collect();
        if let Some(home) = std::env::home_dir() {
            values.insert("HOME".into(), home.to_string_lossy().into_owned());
        }
        Self { values }
    }

    /// Variables from a list.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let own = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
        Self { values: pairs.into_iter().map(own).collect() }
    }

    /// The value of one variable; an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The value of one variable as a path.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// The user's home folder.
    pub fn home(&self) -> Option<PathBuf> {
        self.path("HOME").or_else(|| self.path("USERPROFILE"))
    }

    /// A path with a leading `~` replaced by the home folder.
    pub fn expand_home(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), self.home()) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.to_path_buf(),
        }
    }

    /// Where downloads and clones are kept: `MAMBAPATCH_CACHE`, else the user's cache folder.
    pub fn cache_folder(&self) -> Option<PathBuf> {
        self.path("MAMBAPATCH_CACHE").or_else(|| {
            self.user_folder(UserFolder {
                xdg: "XDG_CACHE_HOME",
                unix: ".cache/mambapatch",
                mac: "Library/Caches/mambapatch",
                windows: "cache",
            })
        })
    }

    /// Where reverse patches are kept: `MAMBAPATCH_STATE`, else the user's state folder.
    pub fn state_folder(&self) -> Option<PathBuf> {
        self.path("MAMBAPATCH_STATE").or_else(|| {
            self.user_folder(UserFolder {
                xdg: "XDG_STATE_HOME",
                unix: ".local/state/mambapatch",
                mac: "Library/Application Support/mambapatch",
                windows: "state",
            })
        })
    }

    /// Where private patch sets lie, in `patchsets`: `MAMBAPATCH_CONFIG`, else the user's configuration folder.
    pub fn config_folder(&self) -> Option<PathBuf> {
        self.path("MAMBAPATCH_CONFIG").or_else(|| {
            self.user_folder(UserFolder {
                xdg: "XDG_CONFIG_HOME",
                unix: ".config/mambapatch",
                mac: "Library/Application Support/mambapatch",
                windows: "config",
            })
        })
    }

    fn user_folder(&self, folder: UserFolder) -> Option<PathBuf> {
        if let Some(base) = self.path(folder.xdg) {
            return Some(base.join("mambapatch"));
        }
        if cfg!(windows) {
            return Some(self.path("LOCALAPPDATA")?.join("mambapatch").join(folder.windows));
        }
        let below = if cfg!(target_os = "macos") { folder.mac } else { folder.unix };
        Some(self.home()?.join(below))
    }
}

/// The names of one user folder on each system.
struct UserFolder {
    xdg: &'static str,
    unix: &'static str,
    mac: &'static str,
    windows: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_variable_then_xdg_then_home() {
        let all = [("HOME", "/h"), ("XDG_CACHE_HOME", "/x"), ("MAMBAPATCH_CACHE", "/m")];
        let folder = |pairs: &[(&str, &str)]| Variables::from_pairs(pairs.iter().copied()).cache_folder();
        assert_eq!(folder(&all), Some("/m".into()));
        assert_eq!(folder(&all[..2]), Some("/x/mambapatch".into()));
        if cfg!(target_os = "linux") {
            assert_eq!(folder(&all[..1]), Some("/h/.cache/mambapatch".into()));
        }
        assert_eq!(folder(&[]), None);
    }

    #[test]
    fn the_tilde_is_home() {
        let variables = Variables::from_pairs([("HOME", "/h")]);
        assert_eq!(variables.expand_home(Path::new("~/src")), Path::new("/h/src"));
        assert_eq!(variables.expand_home(Path::new("./~")), Path::new("./~"));
    }
}
