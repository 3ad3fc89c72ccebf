//! `vendor update`: the patches planned anew on another release, and local work merged into the result.

use serde_json::{Value, json};

use super::add::{patches, recorded, source};
use super::{Opened, open_alone, other, recorded_source, typed};
use crate::checkout::{TargetSpec, Wanted};
use crate::cli::apply::line;
use crate::cli::args::{Everywhere, VendorUpdateArgs, WishArgs};
use crate::cli::failure::Failure;
use crate::cli::next::quoted;
use crate::cli::planned::{Asked, Found, Place, Planned, asked, find_at};
use crate::cli::standing::{Standing, of_each};
use crate::cli::style::{BAD, DIM, GOOD, STRONG, WARN, columns, paint};
use crate::cli::terminal::Terminal;
use crate::cli::{Answer, json as documents};
use crate::deliver::vendor::disk::Real;
use crate::deliver::vendor::state::State;
use crate::deliver::vendor::{Update, Updated};
use crate::engine::patchset::{Patch, UpstreamStatus};

/// How a patch stands at the new release.
struct Row<'a> {
    patch: &'a Patch,
    standing: Standing,
    /// Whether it changed something at the recorded release.
    was_applied: bool,
}

/// Brings a vendored tree to another release.
pub fn update(
    args: &VendorUpdateArgs,
    everywhere: &Everywhere,
    terminal: &mut Terminal,
) -> Result<Answer, Failure> {
    let (opened, _alone) = open_alone(&args.place)?;
    let state = &opened.state;
    let asked = asked(&wish(args, state)?, everywhere, terminal)?;
    let other = other(&state.lock, &asked.sets);
    let spec = spec(args, state, &asked);
    let place = Place { spec: &spec, source: &args.source, everywhere, other: other.as_ref() };
    let found = find_at(place, &asked, terminal)?;
    let rows = rows(&found, state);
    let (from, to) = (&state.lock.upstream.reference, found.target.reference.clone());
    if !terminal.is_json() {
        terminal.show(&table(&rows, &format!("{} {from} -> {to}", state.lock.upstream.id)))?;
    }
    let planned = found.planned()?;
    planned.notes().iter().for_each(|note| terminal.note(note));
    let new = recorded(&planned, opened.branch.is_none())?;
    let source = recorded_source(state, (&asked.sets, &args.source, everywhere), terminal)?;
    let name = format!("{} {to}, patched", state.lock.upstream.id);
    let update = Update { source: source.as_ref(), new: &new, name: &name };
    let mut notes = new.notes.clone();
    if rows.iter().all(|row| row.standing.is_settled()) && rows.iter().any(|row| row.was_applied) {
        notes.push("no patch is needed any longer: the release can be used as it is".to_string());
    }
    let updated = written(&opened, (&update, &planned), (args, &mut notes))?;
    if terminal.is_json() {
        let document = document(&rows, &updated, (from, &to));
        terminal.answer(documents::text(&document).as_bytes())?;
    } else {
        terminal.show(&local(&updated))?;
        terminal.tell(&verdict(&updated, state, &to));
        notes.iter().for_each(|note| terminal.note(note));
    }
    Ok(if updated.conflicts.is_empty() { Answer::Yes } else { Answer::No })
}

/// How each patch stands at the new release.
fn rows<'a>(found: &Found<'a>, state: &State) -> Vec<Row<'a>> {
    let standings = of_each(&found.bound, &found.sources);
    let pairs = found.bound.patches.iter().map(|bound| bound.patch).zip(standings);
    let applied = &state.lock.patches.applied;
    pairs.map(|(patch, standing)| Row { patch, standing, was_applied: applied.contains(&patch.id) }).collect()
}

/// Writes the folder or the branch, and adds what there is to know.
fn written(
    opened: &Opened,
    (update, planned): (&Update<'_>, &Planned<'_>),
    (args, notes): (&VendorUpdateArgs, &mut Vec<String>),
) -> Result<Updated, Failure> {
    let dir = quoted(&args.place.folder);
    let Some(branch) = &opened.branch else {
        // Asked before the folder becomes another one.
        let inside = std::env::current_dir().is_ok_and(|here| here.starts_with(&opened.state.folder));
        let updated = update.of_folder(&opened.state, &Real)?;
        if inside && !updated.already {
            notes.push("your shell stands in the old folder: cd \"$PWD\"".to_string());
        }
        if updated.conflicts.is_empty() && !updated.already {
            notes.push(format!("see it: git diff {dir}"));
        }
        return Ok(updated);
    };
    let patches = patches(planned);
    let moved = branch.update(&source(planned, &patches)?, update)?;
    let name = &branch.name;
    match (&moved.beside, moved.updated.already) {
        (Some(beside), _) => notes.push(format!(
            "{name} stays as it is; merge by hand: git -C {dir} switch {name} && git -C {dir} merge {beside}"
        )),
        (None, false) => notes.push(format!("see it: git -C {dir} log {name}")),
        (None, true) => {}
    }
    Ok(moved.updated)
}

/// What was typed; where that asks for nothing, what is recorded.
fn wish(args: &VendorUpdateArgs, state: &State) -> Result<WishArgs, Failure> {
    let typed_now = &args.wish;
    let lists = [&typed_now.add_arch, &typed_now.drop_arch, &typed_now.only_arch, &typed_now.patch];
    let asks = lists.iter().any(|list| !list.is_empty())
        || !typed_now.cuda.is_empty()
        || typed_now.torch.is_some()
        || typed_now.host;
    if asks {
        return Ok(typed_now.clone());
    }
    let mut recorded = typed(&state.lock.asked, &state.folder)?;
    recorded.skip_patch.extend(typed_now.skip_patch.iter().cloned());
    recorded.patch.retain(|patch| !recorded.skip_patch.contains(patch));
    recorded.accept_advisory |= typed_now.accept_advisory;
    Ok(recorded)
}

/// The state to go to: REF, else the newest release; a tree of no known upstream has none, and follows its branch.
fn spec(args: &VendorUpdateArgs, state: &State, asked: &Asked) -> TargetSpec {
    let id = state.lock.upstream.id.clone();
    let has_releases = asked.sets.upstream(&id).is_none_or(|upstream| upstream.project.is_some());
    let wanted = match &args.reference {
        Some(reference) => Wanted::Ref(reference.clone()),
        None if has_releases => Wanted::Newest,
        None => Wanted::DefaultBranch,
    };
    TargetSpec::Upstream { id, wanted, by_default: false }
}

impl Row<'_> {
    fn word(&self) -> &'static str {
        match (self.standing, self.was_applied) {
            (Standing::Needed, _) => "fits",
            (Standing::Lost, _) => "lost",
            (Standing::Reported, _) => "reported",
            (Standing::There | Standing::NotApplicable, true) => "obsolete",
            (Standing::There | Standing::NotApplicable, false) => "not needed",
        }
    }

    fn painted(&self) -> String {
        let style = match self.standing {
            Standing::Needed => GOOD,
            Standing::Lost => BAD,
            Standing::Reported => WARN,
            Standing::There | Standing::NotApplicable => DIM,
        };
        paint(style, self.word())
    }

    fn why(&self) -> String {
        match (&self.patch.upstream_status, self.word()) {
            (UpstreamStatus::MergedSince(tag), "obsolete") => format!("merged since v{tag}"),
            (_, "obsolete") => "the release has it".to_string(),
            (_, "lost") => format!("mambapatch explain {}", self.patch.id),
            _ => String::new(),
        }
    }
}

fn table(rows: &[Row<'_>], title: &str) -> String {
    let row = |row: &Row<'_>| vec![row.painted(), row.patch.id.clone(), row.why()];
    format!("{}\n{}", paint(STRONG, title), columns(&rows.iter().map(row).collect::<Vec<_>>(), "  "))
}

/// What became of a person's own work.
fn local(updated: &Updated) -> String {
    let yours = updated.yours.iter();
    let yours = yours.map(|(path, what)| vec![paint(GOOD, "yours"), path.clone(), (*what).to_string()]);
    let conflicts = updated.conflicts.iter();
    let conflicts = conflicts.map(|one| vec![paint(BAD, "conflict"), one.path.clone(), one.what.clone()]);
    columns(&yours.chain(conflicts).collect::<Vec<_>>(), "  ")
}

fn verdict(updated: &Updated, state: &State, to: &str) -> String {
    let (folder, id) = (state.folder.display(), &state.lock.upstream.id);
    match updated.conflicts.len() {
        _ if updated.already => line("nothing to do", &format!("{folder} is {id} {to} as recorded")),
        0 => line("done", &format!("{folder} is {id} {to}, patched")),
        1 => {
            format!("{} 1 file waits for your decision; nothing of yours was lost\n", paint(BAD, "conflict:"))
        }
        count => {
            let word = paint(BAD, "conflicts:");
            format!("{word} {count} files wait for your decision; nothing of yours was lost\n")
        }
    }
}

fn document(rows: &[Row<'_>], updated: &Updated, (from, to): (&str, &str)) -> Value {
    let done = match (updated.already, updated.conflicts.is_empty()) {
        (true, _) => "nothing",
        (false, true) => "updated",
        (false, false) => "conflicts",
    };
    let yours = updated.yours.iter().map(|(path, what)| json!({ "path": path, "what": what }));
    let conflicts = updated.conflicts.iter().map(|one| json!({ "path": one.path, "what": one.what }));
    json!({
        "from": from,
        "to": to,
        "patches": rows.iter().map(|row| json!({ "id": row.patch.id, "standing": row.word() })).collect::<Vec<_>>(),
        "done": done,
        "yours": yours.collect::<Vec<_>>(),
        "conflicts": conflicts.collect::<Vec<_>>(),
    })
}
