//! `diagnose`: why a build, an import or a run failed, and what to type.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;

use serde_json::{Value, json};

use super::Answer;
use super::args::DiagnoseArgs;
use super::failure::Failure;
use super::json as documents;
use super::style::{BAD, DIM, HINT, NOTE, STRONG, WARN, paint, wrapped};
use super::terminal::Terminal;
use crate::checkout::Progress;
use crate::kernels::diagnose::text::TextError;
use crate::kernels::diagnose::{self, Cause, Diagnosis, Hit, how_to_know};
use crate::kernels::facts::Facts;
use crate::kernels::probe;

/// Reads the log, and decides by the facts of this machine or of a file.
pub fn diagnose(args: &DiagnoseArgs, terminal: &mut Terminal) -> Result<Answer, Failure> {
    let log = open(&args.log)?;
    let facts = match &args.facts {
        Some(path) => read_facts(path)?,
        None => {
            terminal.progress(Progress::Step("asking this machine".to_string()));
            probe::facts(args.python.as_deref())
        }
    };
    let unreadable = |error: TextError| Failure::Unreadable {
        path: args.log.clone(),
        cause: error.to_string(),
        hint: "name a log that is whole: text, or text packed with gzip",
    };
    let diagnosis = diagnose::diagnose(log, &facts).map_err(unreadable)?;
    if diagnosis.lines == 0 {
        return Err(Failure::EmptyLog { path: args.log.clone() });
    }
    if diagnosis.cut {
        terminal.note("the log is larger than 1 GiB; what lies behind that was not read");
    }
    if terminal.is_json() {
        terminal.answer(documents::text(&document(&diagnosis)).as_bytes())?;
    } else {
        terminal.show_long(&text(&diagnosis, &args.log))?;
    }
    let known = diagnosis.known().next().is_some();
    Ok(if known { Answer::Yes } else { Answer::No })
}

fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path.as_os_str() != "-" {
        let hint = "name a log that is there, or - for standard input";
        let unreadable = |error: io::Error| Failure::Unreadable {
            path: path.to_path_buf(),
            cause: error.to_string(),
            hint,
        };
        return Ok(Box::new(File::open(path).map_err(unreadable)?));
    }
    if io::stdin().is_terminal() {
        return Err(Failure::NoLog);
    }
    Ok(Box::new(io::stdin().lock()))
}

/// The document of `doctor`, or its `facts` alone.
fn read_facts(path: &Path) -> Result<Facts, Failure> {
    let unreadable = |cause: String| Failure::Unreadable {
        path: path.to_path_buf(),
        cause,
        hint: "mambapatch doctor --format json > facts.json, on the machine of the log, writes it",
    };
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    let mut document: Value = serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    let facts = document.get_mut("facts").map(Value::take).unwrap_or(document);
    serde_json::from_value(facts).map_err(|error| unreadable(error.to_string()))
}

/// What a log tells, for people.
pub fn text(diagnosis: &Diagnosis, log: &Path) -> String {
    let place = |hit: &Hit| match log.as_os_str() == "-" {
        true => format!("line {}", hit.line),
        false => format!("{}:{}", log.display(), hit.line),
    };
    let known: Vec<&Cause> = diagnosis.known().collect();
    let Some((first, rest)) = known.split_first() else { return unknown(diagnosis, place) };
    let mut text = block(first, &place(&first.hit));
    if !rest.is_empty() {
        text.push_str(&format!("\n{}\n", paint(STRONG, "also in the log")));
    }
    for cause in rest {
        let place = paint(DIM, &place(&cause.hit));
        text.push_str(&format!("  {place}  {} ({})\n", cause.title, cause.id));
        text.push_str(&wrapped(&cause.cause, "    "));
        text.push_str(&commands(cause, "    "));
    }
    text
}

fn commands(cause: &Cause, indent: &str) -> String {
    cause.commands.iter().map(|command| format!("{indent}{} {command}\n", paint(HINT, "$"))).collect()
}

/// The cause to act on first, as it is shown.
pub fn block(cause: &Cause, place: &str) -> String {
    let title = paint(STRONG, &format!("{} ({})", cause.title, cause.id));
    let mut text = format!("{} {title}\n", paint(BAD.bold(), "cause:"));
    text.push_str(&format!("  {}  {}\n\n", paint(DIM, place), cause.hit.excerpt.trim()));
    text.push_str(&wrapped(&cause.cause, "  "));
    text.push('\n');
    text.push_str(&wrapped(&cause.remedy, "  "));
    if !cause.patches.is_empty() {
        let patches = cause.patches.join(", ");
        text.push_str(&format!("  {}\n", paint(DIM, &format!("what cures it: {patches}"))));
    }
    text.push_str(&commands(cause, "  "));
    for (command, names) in to_know(cause) {
        let note = paint(NOTE, "note:");
        text.push_str(&format!(
            "{note} {} would decide, and is not known here: {command}\n",
            names.join(", ")
        ));
    }
    text
}

/// The commands that tell what would decide, each with what it tells.
fn to_know(cause: &Cause) -> BTreeMap<&'static str, Vec<&str>> {
    let mut commands: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in &cause.missing {
        if let Some(command) = how_to_know(name) {
            let names = commands.entry(command).or_default();
            let name = name.trim_end_matches(".major");
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    commands
}

/// No rule matched, or none but those that only wrap an error.
fn unknown(diagnosis: &Diagnosis, place: impl Fn(&Hit) -> String) -> String {
    let mut text = format!("{} no known cause in {} lines\n", paint(WARN, "not known:"), diagnosis.lines);
    if let Some(hit) = &diagnosis.first_error {
        text.push_str("  the first line that speaks of an error:\n");
        text.push_str(&format!("  {}  {}\n", paint(DIM, &place(hit)), hit.excerpt.trim()));
    }
    for cause in &diagnosis.causes {
        text.push_str(&format!("\n  {}  {}\n", paint(DIM, &place(&cause.hit)), cause.title));
        text.push_str(&wrapped(&cause.cause, "  "));
        text.push_str(&wrapped(&cause.remedy, "  "));
        text.push_str(&commands(cause, "  "));
    }
    text
}

fn document(diagnosis: &Diagnosis) -> Value {
    json!({
        "lines": diagnosis.lines,
        "causes": diagnosis.causes.iter().map(cause_document).collect::<Vec<_>>(),
        "first-error": diagnosis.first_error.as_ref().map(site),
    })
}

fn site(hit: &Hit) -> Value {
    json!({ "line": hit.line, "text": hit.excerpt })
}

/// A cause as a document.
pub fn cause_document(cause: &Cause) -> Value {
    let missing = |name: &String| json!({ "fact": name, "command": how_to_know(name) });
    json!({
        "id": cause.id,
        "title": cause.title,
        "rank": cause.rank,
        "site": site(&cause.hit),
        "cause": cause.cause,
        "do": cause.remedy,
        "type": cause.commands,
        "patches": cause.patches,
        "not-known": cause.missing.iter().map(missing).collect::<Vec<_>>(),
    })
}
