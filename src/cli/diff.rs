//! `diff` and `check`: a plan, only shown.

use super::args::{DiffArgs, Everywhere, PlanArgs};
use super::failure::Failure;
use super::planned::{Planned, asked, planned};
use super::standing::{Standing, of_each};
use super::terminal::{Shown, Terminal};
use super::{Answer, json, tables};
use crate::engine::patchset::bind::Bound;
use crate::engine::patchset::{Patch, UpstreamStatus};

/// Shows the plan and writes nothing.
pub fn diff(args: &DiffArgs, everywhere: &Everywhere, terminal: &mut Terminal) -> Result<Answer, Failure> {
    let asked = asked(&args.plan.wish, everywhere, terminal)?;
    let planned = planned(&args.plan, everywhere, &asked, terminal)?;
    let pending = !planned.proved.plan().is_empty();
    if terminal.is_json() {
        terminal.answer(json::text(&json::planned(&planned)).as_bytes())?;
    } else {
        show(&planned, terminal)?;
        if !pending {
            terminal.note(&format!("nothing to do: {}", planned.nothing()));
        }
    }
    Ok(if pending && args.exit_code { Answer::No } else { Answer::Yes })
}

/// Shows what each op finds, and which patches the release does without.
pub fn check(args: &PlanArgs, everywhere: &Everywhere, terminal: &mut Terminal) -> Result<Answer, Failure> {
    let asked = asked(&args.wish, everywhere, terminal)?;
    let planned = planned(args, everywhere, &asked, terminal)?;
    let (plan, settled) = (planned.proved.plan(), settled(&planned)?);
    if terminal.is_json() {
        let mut document = json::planned(&planned);
        document["droppable"] = settled.iter().map(|patch| patch.id.as_str()).collect();
        terminal.answer(json::text(&document).as_bytes())?;
    } else {
        planned.notes().iter().for_each(|note| terminal.note(note));
        let text = format!(
            "{}{}{}",
            tables::outcomes(plan, terminal.verbose),
            tables::effect(&plan.effect(&planned.bound)),
            tables::understood(&plan.understood())
        );
        terminal.show(&text)?;
        if !settled.is_empty() {
            let names: Vec<String> = settled.iter().map(|patch| droppable(patch)).collect();
            terminal.note(&format!("upstream does without, so drop: {}", names.join(", ")));
        }
    }
    Ok(if plan.is_empty() { Answer::Yes } else { Answer::No })
}

/// The chosen patches that the upstream's own state, without anything of ours, does without.
fn settled<'a>(planned: &Planned<'a>) -> Result<Vec<&'a Patch>, Failure> {
    let (upstream, plan) = (planned.bound.upstream, planned.proved.plan());
    if upstream.project.is_none() {
        return Ok(Vec::new());
    }
    let wanted = |path: &str| plan.before.get(path).is_some();
    let Some((version, sources)) = planned.target.pristine(&wanted)? else { return Ok(Vec::new()) };
    let bound = Bound::new(upstream, version, planned.bound.request, planned.bound.catalogue)?;
    let standings = match sources == plan.before && bound.version == planned.bound.version {
        true => plan.patches.iter().map(Standing::of).collect(),
        false => of_each(&bound, &sources),
    };
    let pairs = bound.patches.iter().map(|bound| bound.patch).zip(standings);
    Ok(pairs.filter(|(_, standing)| standing.is_settled()).map(|(patch, _)| patch).collect())
}

/// `mamba-ssm/cuda-13 (merged since v2.2.6)`
fn droppable(patch: &Patch) -> String {
    match &patch.upstream_status {
        status @ UpstreamStatus::MergedSince(_) => format!("{} ({status})", patch.id),
        _ => patch.id.clone(),
    }
}

/// The diff as the answer; outcomes, effect and notes beside it.
pub fn show(planned: &Planned<'_>, terminal: &mut Terminal) -> Result<Shown, Failure> {
    let plan = planned.proved.plan();
    let shown = terminal.show_plan(&planned.proved)?;
    if !plan.is_empty() {
        terminal.tell("\n");
    }
    terminal.tell(&tables::outcomes(plan, terminal.verbose));
    terminal.tell(&tables::effect(&plan.effect(&planned.bound)));
    planned.notes().iter().for_each(|note| terminal.note(note));
    Ok(shown)
}
