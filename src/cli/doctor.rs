//! `doctor`: what this machine has, whether it can build and run kernels, and what to type.

use serde_json::{Value, json};

use super::Answer;
use super::args::DoctorArgs;
use super::failure::Failure;
use super::json as documents;
use super::style::{BAD, GOOD, HINT, NOTE, STRONG, WARN, columns, paint, wrapped};
use super::terminal::Terminal;
use crate::checkout::Progress;
use crate::engine::catalogue::Catalogue;
use crate::kernels::doctor::{Level, Verdict, is_fit, next, verdicts};
use crate::kernels::facts::Facts;
use crate::kernels::probe;

/// Asks the machine, and judges.
pub fn doctor(args: &DoctorArgs, terminal: &mut Terminal) -> Result<Answer, Failure> {
    terminal.progress(Progress::Step("asking this machine".to_string()));
    let facts = probe::facts(args.python.as_deref());
    let verdicts = verdicts(&facts, Catalogue::shipped());
    if terminal.is_json() {
        terminal.answer(documents::text(&document(&facts, &verdicts)?).as_bytes())?;
    } else {
        terminal.show_long(&text(&verdicts))?;
    }
    Ok(if is_fit(&verdicts) { Answer::Yes } else { Answer::No })
}

fn text(verdicts: &[Verdict]) -> String {
    let rows: Vec<Vec<String>> = verdicts
        .iter()
        .map(|verdict| vec![sign(verdict.level), verdict.subject.clone(), verdict.what.clone()])
        .collect();
    let mut text = String::new();
    for (verdict, line) in verdicts.iter().zip(columns(&rows, "  ").lines()) {
        text.push_str(&format!("{line}\n"));
        text.push_str(&wrapped(verdict.remedy.as_deref().unwrap_or_default(), "       "));
        if let Some(command) = &verdict.command {
            text.push_str(&format!("       {} {command}\n", paint(HINT, "$")));
        }
    }
    let (style, words) = match is_fit(verdicts) {
        true => (GOOD, "this machine can build"),
        false => (BAD, "this machine cannot build or run as it is"),
    };
    text.push_str(&format!("\n{}; type next:\n  {}\n", paint(style, words), paint(STRONG, &next(verdicts))));
    text
}

fn sign(level: Level) -> String {
    match level {
        Level::Good => paint(GOOD, "+"),
        Level::Note => paint(NOTE, "-"),
        Level::Warn => paint(WARN, "!"),
        Level::Bad => paint(BAD, "x"),
    }
}

/// The facts as `diagnose --facts` reads them, the verdicts, and what to type.
fn document(facts: &Facts, verdicts: &[Verdict]) -> Result<Value, Failure> {
    let facts = serde_json::to_value(facts).map_err(std::io::Error::from)?;
    let verdict = |verdict: &Verdict| {
        json!({
            "subject": verdict.subject,
            "level": verdict.level.word(),
            "what": verdict.what,
            "remedy": verdict.remedy,
            "command": verdict.command,
        })
    };
    Ok(json!({
        "facts": facts,
        "verdicts": verdicts.iter().map(verdict).collect::<Vec<_>>(),
        "fit": is_fit(verdicts),
        "type": next(verdicts),
    }))
}
