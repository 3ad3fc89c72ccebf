//! Paths inside a source tree: relative, with `/`, and never out of it.

/// Why a path may not name a file of a source tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// It starts at the root of a file system or drive.
    #[error("it is absolute")]
    Absolute,
    /// It holds `..`.
    #[error("it leaves its folder with `..`")]
    Leaves,
    /// It lies in git's own folder.
    #[error("it lies in a `.git` folder")]
    InGit,
    /// It is empty or holds characters that not every system can write.
    #[error("it is no portable name")]
    NotPortable,
}

/// The path in its plain form (`./a//b/` is `a/b`), or why it is refused.
pub fn checked(raw: &str) -> Result<String, BadPath> {
    let drive = raw.as_bytes().get(1) == Some(&b':');
    if raw.starts_with(['/', '\\']) || drive {
        return Err(BadPath::Absolute);
    }
    if raw.split(['/', '\\']).any(|part| part == "..") {
        return Err(BadPath::Leaves);
    }
    if raw.contains(['\\', '\0', '\n', '\r']) {
        return Err(BadPath::NotPortable);
    }
    let parts: Vec<&str> = raw.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.iter().any(|part| is_git_folder(part)) {
        return Err(BadPath::InGit);
    }
    if parts.is_empty() { Err(BadPath::NotPortable) } else { Ok(parts.join("/")) }
}

/// `.git` in every spelling that some file system takes for it.
fn is_git_folder(part: &str) -> bool {
    let name = part.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    name == ".git" || name == "git~1" || name.starts_with(".git:")
}

/// Whether a relative link target, seen from the folder of `link`, stays in the tree.
pub fn link_stays(link: &str, target: &str) -> bool {
    if target.starts_with(['/', '\\']) || target.contains(['\\', ':']) {
        return false;
    }
    let mut depth = link.split('/').count() as i64 - 1;
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        if depth < 0 {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_form_or_refused() {
        assert_eq!(checked("./a//b/"), Ok("a/b".into()));
        assert_eq!(checked("/etc/passwd"), Err(BadPath::Absolute));
        assert_eq!(checked("C:/x"), Err(BadPath::Absolute));
        assert_eq!(checked("a/../../x"), Err(BadPath::Leaves));
        assert_eq!(checked(r"a\..\x"), Err(BadPath::Leaves));
        assert_eq!(checked("a/.GIT./hooks/x"), Err(BadPath::InGit));
        assert_eq!(checked("a/.gitignore"), Ok("a/.gitignore".into()));
        assert_eq!(checked("."), Err(BadPath::NotPortable));
    }

    #[test]
    fn links() {
        assert!(link_stays("a/b", "../c"));
        assert!(!link_stays("a/b", "../../c"));
        assert!(!link_stays("a", "/etc"));
        assert!(!link_stays("a/b", "../x/../../../y"));
    }
}
