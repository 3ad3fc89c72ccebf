//! `vendor add`: a patched tree in a new folder, with its record.

use serde_json::json;

use crate::checkout::git::ignored;
use crate::checkout::{Origin, Target};
use crate::cli::apply::{line, written};
use crate::cli::args::{Everywhere, VendorAddArgs};
use crate::cli::diff::show;
use crate::cli::failure::Failure;
use crate::cli::next::{build, quoted};
use crate::cli::planned::{Planned, asked, planned};
use crate::cli::style::{DIM, STRONG, paint};
use crate::cli::terminal::Terminal;
use crate::cli::{Answer, json as documents};
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
    let recorded = recorded(&planned, true)?;
    if !terminal.is_json() {
        show(&planned, terminal)?;
    }
    let folder = resolved(&args.into)?;
    let is_new = write(&recorded, &folder, &Real)?;
    if terminal.is_json() {
        let mut document = documents::planned(&planned);
        document["result"] = json!({
            "done": if is_new { "folder" } else { "nothing" },
            "folder": folder,
            "files": recorded.lock.tree.files,
            "digest": recorded.lock.tree.digest,
        });
        terminal.answer(documents::text(&document).as_bytes())?;
        return Ok(Answer::Yes);
    }
    recorded.notes.iter().for_each(|note| terminal.note(note));
    let what =
        format!("{} in {}, {} files", planned.target.label, folder.display(), recorded.lock.tree.files);
    match is_new {
        true => terminal.tell(&line("done", &what)),
        false => terminal.tell(&line(
            "nothing to do",
            &format!("{} holds {} already", folder.display(), planned.target.label),
        )),
    }
    terminal.tell(&next(&planned, &recorded, (&args.into, &folder)));
    Ok(Answer::Yes)
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
fn next(
    planned: &Planned<'_>,
    recorded: &Recorded,
    (typed, folder): (&std::path::Path, &std::path::Path),
) -> String {
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
