//! `diff` and `check`: a plan, only shown.

use super::args::{DiffArgs, Everywhere, PlanArgs};
use super::failure::Failure;
use super::planned::{Planned, asked, planned};
use super::terminal::Terminal;
use super::{Answer, json, style, tables};

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

/// Shows what each op finds.
pub fn check(args: &PlanArgs, everywhere: &Everywhere, terminal: &mut Terminal) -> Result<Answer, Failure> {
    let asked = asked(&args.wish, everywhere, terminal)?;
    let planned = planned(args, everywhere, &asked, terminal)?;
    let plan = planned.proved.plan();
    if terminal.is_json() {
        terminal.answer(json::text(&json::planned(&planned)).as_bytes())?;
    } else {
        planned.notes().iter().for_each(|note| terminal.note(note));
        let text = format!(
            "{}{}{}",
            tables::outcomes(plan, terminal.verbose),
            tables::effect(&plan.effect(&planned.bound)),
            tables::understood(&plan.understood())
        );
        terminal.show(&text)?;
    }
    Ok(if plan.is_empty() { Answer::Yes } else { Answer::No })
}

/// The diff as the answer; outcomes, effect and notes beside it.
pub fn show(planned: &Planned<'_>, terminal: &mut Terminal) -> Result<(), Failure> {
    let plan = planned.proved.plan();
    if terminal.answers_in_colour() {
        let text: String = plan.diffs().iter().map(style::diff).collect();
        terminal.show_long(&text)?;
    } else {
        terminal.answer(&planned.proved.diff())?;
    }
    if !plan.is_empty() {
        terminal.tell("\n");
    }
    terminal.tell(&tables::outcomes(plan, terminal.verbose));
    terminal.tell(&tables::effect(&plan.effect(&planned.bound)));
    planned.notes().iter().for_each(|note| terminal.note(note));
    Ok(())
}
