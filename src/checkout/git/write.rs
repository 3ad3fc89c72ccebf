//! Writing to a repository: blobs, trees and commits first, then the branch, the work tree last.
//!
//! git2 runs no hooks. Its `apply` is never used: it follows symbolic links out of the tree.

use std::collections::BTreeMap;

use git2::build::{CheckoutBuilder, TreeUpdateBuilder};
use git2::{BranchType, Commit, FileMode, Oid, Repository, RepositoryState, Signature, Tree};

use super::{GitError, GitRepository};
use crate::checkout::tree_path;

/// One commit to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitToMake {
    /// Its whole message.
    pub message: String,
    /// The files it changes, whole: path from the root of the tree, and bytes.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A branch to make.
#[derive(Debug, Clone, Copy)]
pub struct CommitBranch<'a> {
    /// The commit it starts from.
    pub base: &'a str,
    /// Its name, without `refs/heads/`.
    pub branch: &'a str,
    /// Its commits, the first one first.
    pub commits: &'a [CommitToMake],
    /// Whether the work tree changes to it.
    pub checkout: bool,
    /// When its commits are made, in seconds since 1970 with the minutes that the clock is ahead of UTC; else now.
    pub when: Option<(i64, i32)>,
}

/// What was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The branch.
    pub branch: String,
    /// Its last commit.
    pub tip: String,
    /// The commits that were made; none where the branch was there already with this content.
    pub commits: Vec<String>,
    /// Whether the branch was there already with this content.
    pub already: bool,
    /// Whether the work tree is on the branch now.
    pub checked_out: bool,
    /// Whether the user has no identity in git, so that the tool's own was written.
    pub own_identity: bool,
}

impl GitRepository {
    /// Makes a branch with one commit after the other. Nobody's work is overwritten: a file that would change and has
    /// changes of its own is refused, as is a branch of that name with other content.
    pub fn commit_branch(&self, order: CommitBranch<'_>) -> Result<Committed, GitError> {
        let name = format!("refs/heads/{}", order.branch);
        if !super::is_branch_name(order.branch) {
            return Err(GitError::BadBranch { branch: order.branch.into() });
        }
        let checkout = order.checkout && !self.is_bare();
        if checkout {
            self.refuse_busy()?;
        }
        let (who, own_identity) = self.signature(order.when)?;
        let trees = self.write_trees(&order)?;
        let base = self.commit(order.base)?;
        let last = trees.last().copied().unwrap_or(base.tree_id());
        if checkout {
            self.refuse_dirty(last)?;
        }
        let existing = self.repository.find_branch(order.branch, BranchType::Local).ok();
        let existing = existing.map(|branch| self.same_branch(&branch, last)).transpose()?;
        let already = existing.is_some();
        let commits = if already { Vec::new() } else { self.write_commits(&order, &trees, &who)? };
        let tip = existing.or(commits.last().copied()).unwrap_or(base.id());
        if !already {
            let made = self.repository.reference(&name, tip, false, "mambapatch");
            made.map_err(|error| self.unwritable(&error))?;
        }
        if checkout {
            self.switch(&name, tip, already)?;
        }
        Ok(Committed {
            branch: order.branch.into(),
            tip: tip.to_string(),
            commits: commits.iter().map(Oid::to_string).collect(),
            already,
            checked_out: checkout,
            own_identity,
        })
    }

    /// How git stores a file whose form in the work tree is `now`: where a checkout turned LF into CRLF, turned back.
    /// `stored` and `lies` are the old content in the repository and in the work tree.
    pub fn stored_form(path: &str, stored: &[u8], lies: &[u8], now: &[u8]) -> Result<Vec<u8>, GitError> {
        if stored == lies {
            return Ok(now.to_vec());
        }
        if stored == without_carriage_returns(lies) {
            return Ok(without_carriage_returns(now));
        }
        Err(GitError::Filtered { path: path.into() })
    }

    fn refuse_busy(&self) -> Result<(), GitError> {
        let what = match self.repository.state() {
            RepositoryState::Clean => return Ok(()),
            other => format!("{other:?}").to_lowercase(),
        };
        Err(GitError::Busy { path: self.path(), what })
    }

    /// The user's identity, or the tool's own.
    pub(super) fn signature(&self, when: Option<(i64, i32)>) -> Result<(Signature<'static>, bool), GitError> {
        let user = self.repository.signature();
        let own_identity = user.is_err();
        let signed = user.or_else(|_| Signature::now("mambapatch", "mambapatch@localhost"));
        let timed = signed.and_then(|who| match when {
            Some((seconds, offset)) => {
                Signature::new(who.name()?, who.email()?, &git2::Time::new(seconds, offset))
            }
            None => Ok(who),
        });
        timed.map(|who| (who, own_identity)).map_err(|error| self.unwritable(&error))
    }

    /// The tree after each commit.
    pub(super) fn write_trees(&self, order: &CommitBranch<'_>) -> Result<Vec<Oid>, GitError> {
        let mut tree = self.tree(order.base)?;
        let mut made = Vec::new();
        for commit in order.commits {
            let mut update = TreeUpdateBuilder::new();
            for (path, bytes) in &commit.files {
                let mode = mode_in(&tree, path)?;
                let blob = self.repository.blob(bytes).map_err(|error| self.unwritable(&error))?;
                update.upsert(path.as_str(), blob, mode);
            }
            let id =
                update.create_updated(&self.repository, &tree).map_err(|error| self.unwritable(&error))?;
            tree = self.repository.find_tree(id).map_err(|error| self.unreadable("the new tree", &error))?;
            made.push(id);
        }
        Ok(made)
    }

    /// The commits, which nothing points at yet.
    pub(super) fn write_commits(
        &self,
        order: &CommitBranch<'_>,
        trees: &[Oid],
        who: &Signature<'_>,
    ) -> Result<Vec<Oid>, GitError> {
        let mut parent = self.commit(order.base)?;
        let mut made = Vec::new();
        for (commit, tree) in order.commits.iter().zip(trees) {
            let written = self
                .repository
                .find_tree(*tree)
                .and_then(|tree| self.repository.commit(None, who, who, &commit.message, &tree, &[&parent]))
                .map_err(|error| self.unwritable(&error))?;
            made.push(written);
            parent = self.commit(&written.to_string())?;
        }
        Ok(made)
    }

    /// The tip of a branch that exists, if it holds just this tree.
    fn same_branch(&self, branch: &git2::Branch<'_>, tree: Oid) -> Result<Oid, GitError> {
        let name = branch.name().ok().flatten().unwrap_or_default().to_string();
        let tip = branch.get().peel_to_commit().map_err(|error| self.unreadable(&name, &error))?;
        if tip.tree_id() != tree {
            return Err(GitError::BranchExists { branch: name });
        }
        if !branch.is_head() && self.is_checked_out_elsewhere(branch.get()) {
            return Err(GitError::CheckedOutElsewhere { branch: name });
        }
        Ok(tip.id())
    }

    /// Whether HEAD of another work tree of this repository is this branch.
    pub(super) fn is_checked_out_elsewhere(&self, branch: &git2::Reference<'_>) -> bool {
        let linked = self.repository.worktrees().ok();
        let linked = linked.iter().flat_map(|names| names.iter().flatten().flatten());
        let linked = linked.filter_map(|name| {
            let worktree = self.repository.find_worktree(name).ok()?;
            Repository::open_from_worktree(&worktree).ok()
        });
        let main = Repository::open(self.repository.commondir()).ok();
        linked.chain(main).any(|other| {
            let head = other.find_reference("HEAD").ok();
            let target = head.as_ref().and_then(|head| head.symbolic_target().ok().flatten());
            !other.is_bare() && target.is_some() && target == branch.name().ok()
        })
    }

    pub(super) fn commit(&self, id: &str) -> Result<Commit<'_>, GitError> {
        self.repository.find_commit(self.oid(id)?).map_err(|error| self.unreadable(id, &error))
    }

    /// Refuses files that differ between HEAD and the new tree and are not as HEAD has them.
    fn refuse_dirty(&self, tree: Oid) -> Result<(), GitError> {
        let files = self.dirty(&self.changed_since_head(tree)?);
        if files.is_empty() { Ok(()) } else { Err(GitError::Dirty { files }) }
    }

    fn changed_since_head(&self, tree: Oid) -> Result<Vec<String>, GitError> {
        let head = self.tree(&self.head()?)?;
        let new = self.repository.find_tree(tree).map_err(|error| self.unreadable("the new tree", &error))?;
        let diff = self.repository.diff_tree_to_tree(Some(&head), Some(&new), None);
        let diff = diff.map_err(|error| self.unreadable("the difference to HEAD", &error))?;
        let path = |delta: git2::DiffDelta<'_>| {
            let path = delta.new_file().path().or(delta.old_file().path())?;
            path.to_str().map(|path| path.replace('\\', "/"))
        };
        Ok(diff.deltas().filter_map(path).collect())
    }

    /// Brings the work tree to the branch; takes a new branch back if that fails.
    fn switch(&self, name: &str, tip: Oid, already: bool) -> Result<(), GitError> {
        let tree = self.commit(&tip.to_string())?.tree_id();
        let changed = self.changed_since_head(tree)?;
        let switched = self.check_out(tree, &changed).and_then(|()| self.repository.set_head(name));
        switched.map_err(|error| {
            let _ = self.put_back(&changed);
            if !already {
                let _ = self.repository.find_reference(name).and_then(|mut branch| branch.delete());
            }
            self.unwritable(&error)
        })
    }

    /// Writes just the changed files; what git would lose by that stops it.
    fn check_out(&self, tree: Oid, changed: &[String]) -> Result<(), git2::Error> {
        if changed.is_empty() {
            return Ok(());
        }
        let tree = self.repository.find_tree(tree)?;
        let mut checkout = only(changed);
        self.repository.checkout_tree(tree.as_object(), Some(checkout.safe()))
    }

    /// Brings files back to HEAD; all of them were as HEAD has them before.
    fn put_back(&self, changed: &[String]) -> Result<(), git2::Error> {
        if changed.is_empty() {
            return Ok(());
        }
        self.repository.checkout_head(Some(only(changed).force().remove_untracked(true)))
    }

    pub(super) fn unwritable(&self, error: &git2::Error) -> GitError {
        GitError::Write { path: self.path(), cause: error.message().into() }
    }
}

/// A checkout of these paths and no others.
fn only(paths: &[String]) -> CheckoutBuilder<'static> {
    let mut checkout = CheckoutBuilder::new();
    checkout.disable_pathspec_match(true);
    for path in paths {
        checkout.path(path.as_str());
    }
    checkout
}

/// The mode that a path keeps, or gets as a new file; a link, submodule or folder in its place is refused.
fn mode_in(tree: &Tree<'_>, path: &str) -> Result<FileMode, GitError> {
    let refused = |what: &str| GitError::NotAFile { path: path.into(), what: what.into() };
    if tree_path::checked(path).map_err(|why| refused(&why.to_string()))? != path {
        return Err(refused("it is not in its plain form"));
    }
    for (at, _) in path.match_indices('/') {
        match tree.get_path(std::path::Path::new(&path[..at])) {
            Err(_) => return Ok(FileMode::Blob),
            Ok(entry) if entry.filemode() == 0o040_000 => {}
            Ok(_) => return Err(refused("something that is no folder stands above it")),
        }
    }
    match tree.get_path(std::path::Path::new(path)).map(|entry| entry.filemode()) {
        Err(_) => Ok(FileMode::Blob),
        Ok(0o100_755) => Ok(FileMode::BlobExecutable),
        Ok(0o100_644 | 0o100_664) => Ok(FileMode::Blob),
        Ok(0o120_000) => Err(refused("it is a symbolic link")),
        Ok(0o160_000) => Err(refused("it is a submodule")),
        Ok(_) => Err(refused("it is no regular file")),
    }
}

fn without_carriage_returns(bytes: &[u8]) -> Vec<u8> {
    let pairs = bytes.iter().zip(bytes.iter().skip(1).chain([&0]));
    pairs.filter(|pair| *pair != (&b'\r', &b'\n')).map(|(byte, _)| *byte).collect()
}

/// A new repository that holds just these files in one commit, tagged.
pub(in crate::checkout) struct Import<'a> {
    /// The commit's message.
    pub message: &'a str,
    /// The tag at it, if the version is known.
    pub tag: Option<&'a str>,
    /// Path to bytes and whether it may be executed.
    pub files: BTreeMap<&'a str, (&'a [u8], bool)>,
}

impl Import<'_> {
    /// Writes the files and the repository into an empty folder.
    pub(in crate::checkout) fn write(&self, folder: &std::path::Path) -> Result<(), GitError> {
        let failed = |cause: String| GitError::Write { path: folder.into(), cause };
        self.write_files(folder).map_err(|error| failed(error.to_string()))?;
        let mut options = git2::RepositoryInitOptions::new();
        options.initial_head("main").external_template(false);
        let repository = Repository::init_opts(folder, &options);
        let repository = repository.map_err(|error| failed(error.message().into()))?;
        // The bytes of the archive are the bytes of the commit, whatever its .gitattributes or the user's settings say.
        let info = repository.path().join("info");
        let attributes = std::fs::create_dir_all(&info)
            .and_then(|()| std::fs::write(info.join("attributes"), "* -text -filter -ident\n"));
        attributes.map_err(|error| failed(error.to_string()))?;
        self.commit(&repository).map_err(|error| failed(error.message().into()))
    }

    fn write_files(&self, folder: &std::path::Path) -> std::io::Result<()> {
        for (path, (bytes, executable)) in &self.files {
            let full = folder.join(path);
            std::fs::create_dir_all(full.parent().unwrap_or(folder))?;
            std::fs::write(&full, bytes)?;
            #[cfg(unix)]
            if *executable {
                use std::os::unix::fs::PermissionsExt;
                std::fs::set_permissions(&full, std::fs::Permissions::from_mode(0o755))?;
            }
            #[cfg(not(unix))]
            let _ = executable;
        }
        Ok(())
    }

    fn commit(&self, repository: &Repository) -> Result<(), git2::Error> {
        repository.config()?.set_bool("core.autocrlf", false)?;
        let mut index = repository.index()?;
        for path in self.files.keys() {
            index.add_path(std::path::Path::new(path))?;
        }
        index.write()?;
        let tree = repository.find_tree(index.write_tree()?)?;
        let who = repository.signature().or_else(|_| Signature::now("mambapatch", "mambapatch@localhost"))?;
        let commit = repository.commit(Some("HEAD"), &who, &who, self.message, &tree, &[])?;
        if let Some(tag) = self.tag {
            repository.reference(&format!("refs/tags/{tag}"), commit, false, "mambapatch")?;
        }
        Ok(())
    }
}
