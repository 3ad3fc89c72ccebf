//! `vendor add`: a patched tree in a new folder, with its record.

use std::path::Path;

use serde_json::{Value, json};

use crate::checkout::git::ignored;
use crate::checkout::{CommitToMake, Origin, Target};
use crate::cli::apply::{commit, line, written};
use crate::cli::args::{Everywhere, VendorAddArgs, VendorKind};
use crate::cli::diff::show;
use crate::cli::failure::Failure;
use crate::cli::next::{build, quoted};
use crate::cli::planned::{Planned, asked, planned};
use crate::cli::style::{DIM, STRONG, paint};
use crate::cli::terminal::Terminal;
use crate::cli::{Answer, json as documents};
use crate::deliver::DeliverError;
use crate::deliver::vendor::branch;
use crate::deliver::vendor::disk::Real;
use crate::deliver::vendor::lock::Parameters;
use crate::deliver::vendor::record::{Making, Recorded, record};
use crate::deliver::vendor::{add as write, resolved};

/// Vendors a target.
pub fn add(
    args: &VendorAddArgs,
    everywhere: &Everywhere,
    terminal: &mut Terminal,
) -> Result<Answer, Failure> {
    let asked = asked(&args.plan.wish, everywhere, terminal)?;
    let planned = planned(&args.plan, everywhere, &asked, terminal)?;
    let recorded = recorded(&planned, args.kind == VendorKind::Folder)?;
    if !terminal.is_json() {
        show(&planned, terminal)?;
    }
    let folder = resolved(&args.into)?;
    let place = match args.kind {
        VendorKind::Folder => (write(&recorded, &folder, &Real)?, folder.display().to_string()),
        VendorKind::Branch => branch(args, &planned, (&recorded, &folder), terminal)?,
    };
    if terminal.is_json() {
        let mut document = documents::planned(&planned);
        document["result"] = result(args.kind, &recorded, &place);
        terminal.answer(documents::text(&document).as_bytes())?;
        return Ok(Answer::Yes);
    }
    recorded.notes.iter().for_each(|note| terminal.note(note));
    let label = &planned.target.label;
    terminal.tell(&match &place {
        (true, place) => line("done", &format!("{label} in {place}, {} files", recorded.lock.tree.files)),
        (false, place) => line("nothing to do", &format!("{place} holds {label} already")),
    });
    terminal.tell(&match args.kind {
        VendorKind::Folder => next(&planned, &recorded, (&args.into, &folder)),
        VendorKind::Branch => next_of_branch(args, &planned),
    });
    Ok(Answer::Yes)
}

fn result(kind: VendorKind, recorded: &Recorded, (is_new, place): &(bool, String)) -> Value {
    let what = if kind == VendorKind::Folder { "folder" } else { "branch" };
    json!({
        "done": if *is_new { what } else { "nothing" },
        "place": place,
        "files": recorded.lock.tree.files,
        "digest": recorded.lock.tree.digest,
    })
}

/// Makes the branch of a vendored tree: whether it is new, and what it is called.
fn branch(
    args: &VendorAddArgs,
    planned: &Planned<'_>,
    (recorded, folder): (&Recorded, &Path),
    terminal: &mut Terminal,
) -> Result<(bool, String), Failure> {
    let name = branch_name(args, planned);
    let patches = patches(planned);
    let source = source(planned, &patches)?;
    let (is_new, own_identity) = branch::add(folder, &name, (&source, recorded))?;
    if own_identity {
        terminal.note("git knows no name of yours, so the commits carry that of mambapatch");
    }
    Ok((is_new, format!("branch {name} of {}", folder.display())))
}

fn branch_name(args: &VendorAddArgs, planned: &Planned<'_>) -> String {
    args.branch.clone().unwrap_or_else(|| format!("vendor/{}", planned.bound.upstream.id))
}

/// The commits of the patches.
pub(super) fn patches(planned: &Planned<'_>) -> Vec<CommitToMake> {
    let changing = planned.proved.plan().patches.iter().filter(|patch| !patch.changes.is_empty());
    changing.map(|patch| commit(patch, planned)).collect()
}

/// The upstream's history, and the patches on it.
pub(super) fn source<'a>(
    planned: &'a Planned<'_>,
    patches: &'a [CommitToMake],
) -> Result<branch::Source<'a>, Failure> {
    let none = || DeliverError::NoHistory { label: planned.target.label.clone() };
    let repository = planned.target.repository().ok_or_else(none)?;
    let commit = planned.target.commit().ok_or_else(none)?;
    Ok(branch::Source { repository, commit, patches })
}

fn next_of_branch(args: &VendorAddArgs, planned: &Planned<'_>) -> String {
    let (dir, name) = (quoted(&args.into), branch_name(args, planned));
    let head = paint(STRONG, "next");
    format!("\n{head}\n  git -C {dir} switch {name}\n  mambapatch vendor check {dir}\n")
}

/// The tree and its record.
pub(super) fn recorded(planned: &Planned<'_>, in_folder: bool) -> Result<Recorded, Failure> {
    let making = Making {
        target: &planned.target,
        upstream: &planned.bound.upstream.id,
        url: url(planned),
        patches: planned.bound.patches.iter().map(|bound| bound.patch).collect(),
        plan: planned.proved.plan(),
        asked: parameters(planned),
        in_folder,
    };
    Ok(record(&making)?)
}

/// Where the upstream is cloned from: its own address; that of a tree of no known upstream is its clone's.
fn url(planned: &Planned<'_>) -> Option<String> {
    if let Some(project) = &planned.bound.upstream.project {
        return Some(project.url.clone());
    }
    origin_of(&planned.target)
}

fn origin_of(target: &Target) -> Option<String> {
    let repository = target.repository()?;
    let origin =
        repository.push_address("origin").map(|url| crate::checkout::http::without_credentials(&url));
    let folder = match &target.origin {
        Origin::WorkTree { folder, .. } => Some(folder.display().to_string()),
        Origin::Commit { repository, .. } => Some(repository.display().to_string()),
        Origin::Sdist { .. } | Origin::Folder { .. } => None,
    };
    origin.or(folder)
}

/// What was asked for, as flags give it.
fn parameters(planned: &Planned<'_>) -> Parameters {
    let request = planned.bound.request;
    let codes = |codes: &[crate::engine::arch::Code]| codes.iter().map(|code| written(*code)).collect();
    Parameters {
        add_arch: codes(&request.wish.add),
        drop_arch: codes(&request.wish.drop),
        only_arch: codes(&request.wish.only),
        cuda: request.environment.cuda.iter().map(ToString::to_string).collect(),
        torch: request.environment.torch.as_ref().map(ToString::to_string),
        patch: planned.bound.by_name(),
        skip_patch: request.skip.clone(),
        accept_advisory: request.accept_advisory,
    }
}

/// What to type next.
fn next(planned: &Planned<'_>, recorded: &Recorded, (typed, folder): (&Path, &Path)) -> String {
    let dir = quoted(typed);
    let paths: Vec<&str> = recorded.tree.keys().map(String::as_str).collect();
    // What git ignores there would be missing in every clone.
    let hidden = ignored(folder, &paths);
    let (force, why) = match hidden.len() {
        0 => ("", "the folder is complete in itself".to_string()),
        count => (
            "--force ",
            format!("{count} of the files are ignored by a .gitignore, and belong to it all the same"),
        ),
    };
    let mut steps = vec![
        (format!("git add {force}{dir}"), why),
        (format!("mambapatch vendor check {dir}"), "for CI: says which file deviates".to_string()),
    ];
    if planned.bound.upstream.project.is_some() && planned.target.carries_kernels() {
        let pip = build(planned.bound.upstream, &planned.bound.version)
            .replace("--no-deps .", &format!("--no-deps {}", dotted(&dir)));
        steps.push((pip, "compiles this tree".to_string()));
    }
    let step = |(command, why): &(String, String)| {
        format!("  {command}\n  {}\n", paint(DIM, &format!("    # {why}")))
    };
    format!("\n{}\n{}", paint(STRONG, "next"), steps.iter().map(step).collect::<String>())
}

/// A folder as pip knows it from the name of a package.
fn dotted(dir: &str) -> String {
    if dir.starts_with(['.', '/', '\'']) { dir.to_string() } else { format!("./{dir}") }
}
