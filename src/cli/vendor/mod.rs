//! `vendor`: a patched upstream in a folder of somebody else's repository.

mod add;
mod update;

use std::path::Path;

use serde_json::json;

use super::args::{Everywhere, SourceArgs, VendorCommand, VendorDiffArgs, VendorPlaceArgs, WishArgs};
use super::failure::Failure;
use super::planned::{infos, options, patch_sets};
use super::style::{BAD, columns, paint};
use super::terminal::Terminal;
use super::{Answer, json as documents};
use crate::checkout::git::ignored;
use crate::checkout::{Progress, SourceChoice, TargetSpec, UpstreamInfo, Wanted, Whole, resolve};
use crate::deliver::DeliverError;
use crate::deliver::vendor::branch::Branch;
use crate::deliver::vendor::disk::Real;
use crate::deliver::vendor::lock::{Lock, Parameters};
use crate::deliver::vendor::state::{Deviation, State};
use crate::deliver::vendor::{Alone, local_work, recover, resolved, tree::LOCK};
use crate::engine::patchset::PatchSets;

/// Runs one of its commands.
pub fn vendor(
    command: &VendorCommand,
    everywhere: &Everywhere,
    terminal: &mut Terminal,
) -> Result<Answer, Failure> {
    match command {
        VendorCommand::Add(args) => add::add(args, everywhere, terminal),
        VendorCommand::Check(args) => check(args, terminal),
        VendorCommand::Update(args) => update::update(args, everywhere, terminal),
        VendorCommand::Diff(args) => diff(args, everywhere, terminal),
    }
}

/// A vendored tree, and the branch that it is, if it is one.
struct Opened {
    state: State,
    branch: Option<Branch>,
}

/// Reads a vendored tree.
fn open(place: &VendorPlaceArgs) -> Result<Opened, Failure> {
    let folder = resolved(&place.folder)?;
    if is_repository(&folder) || place.branch.is_some() {
        let branch = Branch::find(&folder, place.branch.as_deref())?;
        return Ok(Opened { state: branch.state()?, branch: Some(branch) });
    }
    if !folder.exists() {
        // A killed run may have left it between two names.
        let _alone = Alone::at(&folder)?;
        recover(&folder, &Real)?;
    }
    Ok(Opened { state: State::of_folder(&folder)?, branch: None })
}

/// Reads a vendored tree to write it: no other run does, and what a killed one left is completed or taken away.
fn open_alone(place: &VendorPlaceArgs) -> Result<(Opened, Alone), Failure> {
    let folder = resolved(&place.folder)?;
    let alone = Alone::at(&folder)?;
    if !is_repository(&folder) {
        recover(&folder, &Real)?;
    }
    Ok((open(place)?, alone))
}

/// Whether a folder is the root of a repository; a vendored folder lies in one, and is none.
fn is_repository(folder: &Path) -> bool {
    folder.join(".git").exists() || (folder.join("HEAD").is_file() && folder.join("objects").is_dir())
}

/// Says which file is not as recorded.
fn check(args: &VendorPlaceArgs, terminal: &mut Terminal) -> Result<Answer, Failure> {
    let Opened { state, .. } = open(args)?;
    let mut found = state.deviations();
    found.extend(state.additions(&is_ignored(&state)));
    let lock = &state.lock;
    if terminal.is_json() {
        let deviation = |found: &Deviation| json!({ "path": found.path, "what": found.what });
        let document = json!({
            "upstream": lock.upstream.id,
            "version": lock.upstream.reference,
            "files": lock.tree.files,
            "deviations": found.iter().map(deviation).collect::<Vec<_>>(),
        });
        terminal.answer(documents::text(&document).as_bytes())?;
    } else {
        let row = |found: &Deviation| vec![found.path.clone(), paint(BAD, found.what)];
        terminal.show(&columns(&found.iter().map(row).collect::<Vec<_>>(), ""))?;
        let (id, reference) = (&lock.upstream.id, &lock.upstream.reference);
        if found.is_empty() {
            let count = lock.tree.files;
            terminal.tell(&format!("as recorded: {id} {reference}, {count} files\n"));
        } else {
            let dir = super::next::quoted(&args.folder);
            terminal
                .note(&format!("it is {id} {reference}; mambapatch vendor diff {dir} shows what differs"));
        }
    }
    Ok(if found.is_empty() { Answer::Yes } else { Answer::No })
}

/// Whether git ignores an addition.
fn is_ignored(state: &State) -> impl Fn(&str) -> bool {
    let paths: Vec<&str> = state.extras.iter().map(String::as_str).collect();
    let ignored = ignored(&state.folder, &paths);
    move |path| ignored.contains(path)
}

/// Shows what a person did since the record.
fn diff(args: &VendorDiffArgs, everywhere: &Everywhere, terminal: &mut Terminal) -> Result<Answer, Failure> {
    let Opened { state, .. } = open(&args.place)?;
    let sets = patch_sets(everywhere)?;
    let source = recorded_source(&state, (&sets, &args.source, everywhere), terminal)?;
    let text = local_work(&state, source.as_ref(), &is_ignored(&state))?;
    if terminal.is_json() {
        let document = json!({ "diff": String::from_utf8_lossy(&text) });
        terminal.answer(documents::text(&document).as_bytes())?;
    } else if terminal.answers_in_colour() {
        terminal.show_long(&super::style::diff_text(&text))?;
    } else {
        terminal.answer(&text)?;
    }
    if text.is_empty() {
        terminal.note("nothing differs from the record");
    }
    Ok(Answer::Yes)
}

/// The upstream's files at the recorded state; none where nothing needs them.
fn recorded_source(
    state: &State,
    (sets, source, everywhere): (&PatchSets, &SourceArgs, &Everywhere),
    terminal: &mut Terminal,
) -> Result<Option<Whole>, Failure> {
    if !state.needs_source() {
        return Ok(None);
    }
    let origin = &state.lock.upstream;
    let mut options = options(source, everywhere);
    if origin.archive.is_some() && options.source == SourceChoice::Auto {
        options.source = SourceChoice::Sdist;
    }
    let upstreams: Vec<UpstreamInfo> = infos(sets).into_iter().chain(other(&state.lock, sets)).collect();
    let wanted = origin.commit.clone().unwrap_or_else(|| origin.reference.clone());
    let spec = TargetSpec::Upstream { id: origin.id.clone(), wanted: Wanted::Ref(wanted), by_default: false };
    let target = resolve(&spec, &upstreams, &options, &mut |progress: Progress| terminal.progress(progress))?;
    Ok(Some(target.whole()?))
}

/// A recorded upstream that no patch set is for: known by its address alone.
fn other(lock: &Lock, sets: &PatchSets) -> Option<UpstreamInfo> {
    let upstream = sets.upstream(&lock.upstream.id)?;
    if upstream.project.is_some() {
        return None;
    }
    Some(UpstreamInfo {
        id: upstream.id.clone(),
        distribution: String::new(),
        git_url: lock.upstream.url.clone(),
        recognise: Vec::new(),
        tag_prefix: "v".into(),
    })
}

/// The flags of a record, as they are typed.
fn typed(parameters: &Parameters, folder: &Path) -> Result<WishArgs, Failure> {
    let wrong = |message: String| DeliverError::BadLock { path: folder.join(LOCK), message };
    let cuda =
        parameters.cuda.iter().map(|cuda| cuda.parse().map_err(|_| wrong(format!("`{cuda}` is no CUDA"))));
    let torch = parameters
        .torch
        .as_ref()
        .map(|torch| torch.parse().map_err(|_| wrong(format!("`{torch}` is no version"))));
    Ok(WishArgs {
        add_arch: parameters.add_arch.clone(),
        drop_arch: parameters.drop_arch.clone(),
        only_arch: parameters.only_arch.clone(),
        cuda: cuda.collect::<Result<_, _>>()?,
        torch: torch.transpose()?,
        patch: parameters.patch.clone(),
        skip_patch: parameters.skip_patch.clone(),
        accept_advisory: parameters.accept_advisory,
        ..WishArgs::default()
    })
}
