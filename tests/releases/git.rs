//! The diffs in the hands of the system's git.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use mambapatch::engine::plan::prove::ProvedPlan;
use mambapatch::engine::source::Sources;

/// git takes the diff and gives the bytes of the plan; it takes it back, by `-R` and by the reverse diff.
pub fn faults(proved: &ProvedPlan) -> Vec<String> {
    let plan = proved.plan();
    let diff = proved.diff();
    if diff.is_empty() {
        let same = plan.before == plan.after;
        return if same { Vec::new() } else { vec!["an empty diff, but bytes that differ".to_string()] };
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tree = Tree { root: folder.path() };
    tree.fill(&plan.before, &diff, &proved.reverse_diff());
    let steps: [(&[&str], &Sources); 5] = [
        (&["apply", "--check", "--whitespace=error-all", ".git/forth.patch"], &plan.before),
        (&["apply", ".git/forth.patch"], &plan.after),
        (&["apply", "-R", ".git/forth.patch"], &plan.before),
        (&["apply", ".git/forth.patch"], &plan.after),
        (&["apply", ".git/back.patch"], &plan.before),
    ];
    steps.iter().find_map(|(arguments, wanted)| tree.fault(arguments, wanted)).into_iter().collect()
}

struct Tree<'a> {
    root: &'a Path,
}

impl Tree<'_> {
    fn fill(&self, sources: &Sources, forth: &[u8], back: &[u8]) {
        self.git(&["init", "--quiet"]).expect("git init");
        for (path, bytes) in sources.iter() {
            let path = self.root.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
            fs::write(path, bytes).expect("a file can be written");
        }
        fs::write(self.root.join(".git/forth.patch"), forth).expect("a file can be written");
        fs::write(self.root.join(".git/back.patch"), back).expect("a file can be written");
    }

    fn fault(&self, arguments: &[&str], wanted: &Sources) -> Option<String> {
        let command = format!("git {}", arguments.join(" "));
        if let Err(said) = self.git(arguments) {
            return Some(format!("{command}: {said}"));
        }
        let differs =
            |(path, bytes): &(&str, _)| fs::read(self.root.join(path)).ok() != Some(Vec::from(*bytes));
        let mut files = wanted.iter().map(|(path, bytes)| (path, bytes.as_ref()));
        files.find(differs).map(|(path, _)| format!("{command} gives other bytes in {path}"))
    }

    /// Runs git without the user's configuration.
    fn git(&self, arguments: &[&str]) -> Result<(), String> {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(self.root).stdin(Stdio::null());
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", self.root.join(".git/no-config"));
        let output = command.output().map_err(|error| format!("git cannot be run: {error}"))?;
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}
