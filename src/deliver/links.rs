//! Where a pushed branch is offered: the page that compares it with the base, and what GitHub's own tool takes.

use crate::checkout::git::owner_and_name;

/// Where a branch is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    /// The page.
    pub compare: String,
    /// The upstream's repository: `state-spaces/mamba`.
    pub repository: String,
    /// The branch as the upstream sees it: `you:branch`.
    pub head: String,
}

/// The links for a branch that was pushed; none where the two addresses do not lie at one GitHub.
pub fn links(upstream: &str, pushed: &str, (base, branch): (&str, &str)) -> Option<Links> {
    let host = host(upstream).filter(|host| host.contains("github") && self::host(pushed) == Some(host))?;
    let ((owner, name), (fork, _)) = (owner_and_name(upstream)?, owner_and_name(pushed)?);
    let head = if fork == owner { branch.to_string() } else { format!("{fork}:{branch}") };
    let compare =
        format!("https://{host}/{owner}/{name}/compare/{}...{}?expand=1", encoded(base), encoded(&head));
    Some(Links { compare, repository: format!("{owner}/{name}"), head })
}

/// The host of `https://host/…`, `ssh://git@host/…` or `git@host:…`.
fn host(url: &str) -> Option<&str> {
    let rest = match url.split_once("://") {
        Some((_, rest)) => rest.split('/').next()?,
        None => url.split_once(':').filter(|(host, _)| host.contains('@'))?.0,
    };
    let host = rest.rsplit('@').next()?;
    host.split(':').next().filter(|host| !host.is_empty())
}

/// A name as a part of an address; `/` and `:` stay.
fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'/' | b':' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPSTREAM: &str = "https://github.com/state-spaces/mamba";

    fn of(pushed: &str) -> Option<String> {
        links(UPSTREAM, pushed, ("main", "mambapatch/e9+sm120")).map(|links| links.compare)
    }

    #[test]
    fn a_fork_is_compared_with_the_base() {
        let page = "https://github.com/state-spaces/mamba/compare/main...you:mambapatch/e9%2Bsm120?expand=1";
        let spellings = [
            "git@github.com:you/mamba.git",
            "https://me:pw@github.com/you/mamba",
            "ssh://git@github.com:22/you/mamba",
        ];
        for pushed in spellings {
            assert_eq!(of(pushed).as_deref(), Some(page), "{pushed}");
        }
        let own = of("git@github.com:state-spaces/mamba.git").expect("links");
        assert!(own.ends_with("/compare/main...mambapatch/e9%2Bsm120?expand=1"), "{own}");
    }

    #[test]
    fn elsewhere_there_is_no_page() {
        assert_eq!(of("/some/where/fork.git"), None);
        assert_eq!(of("git@gitlab.com:you/mamba.git"), None);
    }
}
