//! What was typed and cannot be read: told as text or as JSON, with what to type instead.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::failure::Report;
use super::json;
use super::terminal::Terminal;
use crate::engine::tag::{NotAVersion, Tag};

/// A release of PyTorch, as `--torch` takes it: patches ask for its second number.
pub fn torch_release(text: &str) -> Result<Tag, String> {
    let tag: Tag = text.parse().map_err(|error: NotAVersion| error.to_string())?;
    match tag.version().release().len() {
        0 | 1 => Err(format!("`{text}` is not a PyTorch version such as 2.11")),
        _ => Ok(tag),
    }
}

/// The flags that take several words, and so take a TARGET behind them too.
const GREEDY: [&str; 6] = ["--add-arch", "--drop-arch", "--only-arch", "--cuda", "--patch", "--skip-patch"];

/// Shows help, the version, or why the command line cannot be read.
pub fn refuse(mut error: clap::Error, typed: &[OsString]) -> ExitCode {
    // No TARGET begins with a dash: to pass a flag as one, as is proposed, leads nowhere.
    if error.kind() == ErrorKind::UnknownArgument {
        error.remove(ContextKind::Suggested);
    }
    let error = &error;
    let words: Vec<String> = typed.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let hint = hint(error, &words);
    if error.use_stderr() && wants_json(&words) {
        Terminal::document(&json::text(&json::failure(&report(error, hint))));
    } else {
        Terminal::usage(error, hint.as_deref());
    }
    // Help and the version are answers; all else could not be done.
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

fn wants_json(words: &[String]) -> bool {
    let apart = words.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json");
    apart || words.iter().any(|word| word == "--format=json")
}

/// The fact, without usage and tips.
fn report(error: &clap::Error, hint: Option<String>) -> Report {
    let text = error.to_string();
    let fact = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let fact = fact.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    Report { error: fact, hint: hint.or(Some("mambapatch help".into())), ..Report::default() }
}

fn hint(error: &clap::Error, words: &[String]) -> Option<String> {
    match error.kind() {
        ErrorKind::ValueValidation => return without_minor(error),
        ErrorKind::UnknownArgument => return misplaced(error, words),
        ErrorKind::MissingRequiredArgument => {}
        _ => return None,
    }
    let missing = match error.get(ContextKind::InvalidArg)? {
        ContextValue::Strings(missing) => missing.join(" "),
        ContextValue::String(missing) => missing.clone(),
        _ => return None,
    };
    let place = ["TARGET", "UPSTREAM", "UPSTREAM[@REF]"]
        .into_iter()
        .find(|name| missing.contains(&format!("<{name}>")))?;
    swallowed(words, place)
}

/// A version without its second number: the flag with one.
fn without_minor(error: &clap::Error) -> Option<String> {
    let (ContextValue::String(flag), ContextValue::String(value)) =
        (error.get(ContextKind::InvalidArg)?, error.get(ContextKind::InvalidValue)?)
    else {
        return None;
    };
    let flag = flag.split(' ').next().filter(|flag| ["--cuda", "--torch"].contains(flag))?;
    let major = value.trim_end_matches('.');
    let is_number = !major.is_empty() && major.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| format!("{flag} {major}.0, or the second number that is meant"))
}

/// A flag that another command has: what this one does without it.
fn misplaced(error: &clap::Error, words: &[String]) -> Option<String> {
    let ContextValue::String(flag) = error.get(ContextKind::InvalidArg)? else { return None };
    match (words.first()?.as_str(), flag.as_str()) {
        ("check", "--exit-code") => {
            Some("leave it out: check exits with 1 wherever something would change".to_string())
        }
        _ => None,
    }
}

/// A flag that took a word too many: the line with that word in its place.
fn swallowed(words: &[String], place: &str) -> Option<String> {
    let depth = if words.first().is_some_and(|word| word == "vendor") { 2 } else { 1 };
    let (command, rest) = words.split_at_checked(depth)?;
    let command = &command.join(" ");
    let is_greedy = |at: &usize| GREEDY.contains(&rest[*at].as_str());
    let taken = |at: usize| rest[at + 1..].iter().take_while(|word| !word.starts_with('-')).count();
    let greedy: Vec<usize> = (0..rest.len()).filter(is_greedy).collect();
    let too_many = greedy.iter().rev().find(|at| taken(**at) > 1).map(|at| (*at, at + taken(*at)));
    let line = |target: &str, left_out: Option<usize>| {
        let rest =
            rest.iter().enumerate().filter(|(at, _)| Some(*at) != left_out).map(|(_, word)| word.as_str());
        ["mambapatch", command, target].into_iter().chain(rest).collect::<Vec<_>>().join(" ")
    };
    match too_many {
        Some((flag, last)) => {
            let (flag, target) = (&rest[flag], &rest[last]);
            Some(format!("{flag} took `{target}` too; put the {place} first: {}", line(target, Some(last))))
        }
        None => greedy.first().map(|_| format!("put the {place} first: {}", line(place, None))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<String> {
        swallowed(&line.split(' ').map(str::to_string).collect::<Vec<_>>(), "TARGET")
    }

    #[test]
    fn the_target_comes_first() {
        let hint = of("diff --cuda 13.0 --add-arch 90 120 v2.2.4").expect("hint");
        assert!(hint.ends_with(": mambapatch diff v2.2.4 --cuda 13.0 --add-arch 90 120"), "{hint}");
        let hint = of("diff --add-arch 120 v2.2.4 --format json").expect("hint");
        assert!(hint.ends_with(": mambapatch diff v2.2.4 --add-arch 120 --format json"), "{hint}");
        let hint = of("diff --add-arch 120").expect("hint");
        assert_eq!(hint, "put the TARGET first: mambapatch diff TARGET --add-arch 120");
        assert_eq!(of("diff --host"), None);
        let hint = of("vendor add --into x --add-arch 120 v2.2.4").expect("hint");
        assert!(hint.ends_with(": mambapatch vendor add v2.2.4 --into x --add-arch 120"), "{hint}");
    }

    #[test]
    fn a_release_of_pytorch_has_two_numbers() {
        assert_eq!(torch_release("2").expect_err("2"), "`2` is not a PyTorch version such as 2.11");
        assert!(torch_release("2.").is_err() && torch_release("new").is_err());
        assert_eq!(torch_release("2.11.0+cu130").expect("release").to_string(), "2.11.0+cu130");
    }

    #[test]
    fn json_is_wanted_before_it_is_parsed() {
        let words = |line: &str| line.split(' ').map(str::to_string).collect::<Vec<_>>();
        assert!(wants_json(&words("diff --format json")) && wants_json(&words("--format=json diff")));
        assert!(!wants_json(&words("diff json")));
    }
}
