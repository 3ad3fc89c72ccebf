//! The command line: arguments in, text out.

pub mod apply;
pub mod args;
pub mod build;
pub mod compiling;
pub mod diagnose;
pub mod diff;
pub mod doctor;
pub mod evidence;
pub mod explain;
pub mod failure;
pub mod inspect;
pub mod json;
pub mod list;
pub mod matrix;
pub mod next;
pub mod planned;
pub mod pr;
pub mod request;
pub mod standing;
pub mod style;
pub mod tables;
pub mod terminal;
pub mod typed;
pub mod unknown;
pub mod unread;
pub mod vendor;
pub mod verify;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use failure::Failure;
use terminal::Terminal;

/// What a command that ran has to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Done, or nothing to do.
    Yes,
    /// It ran, and the answer is no.
    No,
    /// It could not be done, and the answer says why.
    CouldNot,
    /// A signal stopped it.
    Stopped,
}

/// Runs what was typed: 0 done, 1 the answer is no, 2 it could not be done, 130 a signal stopped it.
pub fn run() -> ExitCode {
    let typed: Vec<_> = std::env::args_os().collect();
    let cli = match Cli::try_parse_from(&typed) {
        Ok(cli) => cli,
        Err(error) => return typed::refuse(error, &typed),
    };
    let mut terminal = Terminal::new(&cli.everywhere);
    match dispatch(&cli, &mut terminal) {
        Ok(Answer::Yes) => ExitCode::SUCCESS,
        Ok(Answer::No) => ExitCode::from(1),
        Ok(Answer::CouldNot) => ExitCode::from(2),
        Ok(Answer::Stopped) => ExitCode::from(130),
        Err(failure) => {
            let mut report = failure.report();
            report.hint = report.hint.map(|hint| next::with_patch_sets(hint, &cli.everywhere.patchsets));
            if terminal.is_json() {
                // The error itself cannot be told otherwise; the exit code says it.
                let _ = terminal.answer(json::text(&json::failure(&report)).as_bytes());
            } else {
                terminal.report(&report);
            }
            ExitCode::from(2)
        }
    }
}

fn dispatch(cli: &Cli, terminal: &mut Terminal) -> Result<Answer, Failure> {
    let everywhere = &cli.everywhere;
    match &cli.command {
        Command::Apply(args) => apply::apply(args, everywhere, terminal),
        Command::Diff(args) => diff::diff(args, everywhere, terminal),
        Command::Check(args) => diff::check(args, everywhere, terminal),
        Command::Pr(args) => pr::pr(args, everywhere, terminal),
        Command::Vendor(command) => vendor::vendor(command, everywhere, terminal),
        Command::Matrix(args) => matrix::matrix(args, everywhere, terminal),
        Command::List(args) => list::list(args, everywhere, terminal),
        Command::Explain(args) => explain::explain(args, everywhere, terminal),
        Command::Build(args) => build::build(args, everywhere, terminal),
        Command::Inspect(args) => inspect::inspect(args, terminal),
        Command::Doctor(args) => doctor::doctor(args, terminal),
        Command::Diagnose(args) => diagnose::diagnose(args, terminal),
        Command::Verify(args) => verify::verify(args, everywhere, terminal),
    }
}
