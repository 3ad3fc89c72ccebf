//! What reading and writing needs to know about an upstream.

use regex::Regex;

/// An upstream as the edge sees it: where its sources come from and how they are recognised.
#[derive(Debug, Clone)]
pub struct UpstreamInfo {
    /// Its name on the command line: `mamba-ssm`.
    pub id: String,
    /// Its name on the package index.
    pub distribution: String,
    /// Where it is cloned from; none where only source distributions are known.
    pub git_url: Option<String>,
    /// What an unknown folder must hold to count as this upstream; all of them must hold.
    pub recognise: Vec<Recognise>,
    /// What stands before the version in a tag's name, usually `v`.
    pub tag_prefix: String,
}

/// One file that tells which upstream a folder holds.
#[derive(Debug, Clone)]
pub struct Recognise {
    /// Path from the root of the tree.
    pub file: String,
    /// What its text must match somewhere.
    pub pattern: Regex,
}

impl UpstreamInfo {
    /// Whether all recognise rules hold; `read` gives the bytes of a file. No rules recognise nothing.
    pub fn is_recognised(&self, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> bool {
        let holds = |rule: &Recognise| {
            read(&rule.file).is_some_and(|bytes| rule.pattern.is_match(&String::from_utf8_lossy(&bytes)))
        };
        !self.recognise.is_empty() && self.recognise.iter().all(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_must_hold() {
        let rule =
            |file: &str, text: &str| Recognise { file: file.into(), pattern: Regex::new(text).expect(text) };
        let mut upstream = UpstreamInfo {
            id: "a".into(),
            distribution: "a".into(),
            git_url: None,
            recognise: vec![rule("setup.py", "name=.a")],
            tag_prefix: "v".into(),
        };
        let read = |path: &str| (path == "setup.py").then(|| b"name='a'".to_vec());
        assert!(upstream.is_recognised(&read));
        upstream.recognise.push(rule("csrc/a.cu", "."));
        assert!(!upstream.is_recognised(&read));
        upstream.recognise.clear();
        assert!(!upstream.is_recognised(&read));
    }
}
