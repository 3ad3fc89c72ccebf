//! The only place that prints. Answers go to standard output; progress, notes, errors and tables beside a diff to
//! standard error.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use indicatif::{ProgressBar, ProgressStyle};

use super::args::{Color, Everywhere, Format};
use super::failure::Report;
use super::style::{self, paint};
use crate::checkout::Progress;
use crate::engine::plan::prove::ProvedPlan;
use crate::kernels::build::Approval;
use crate::kernels::build::progress::Units;

/// A plan's diff was shown; only the terminal makes one.
#[derive(Debug)]
pub struct Shown(());

/// What a person said to a question.
#[derive(Debug)]
pub enum Reply {
    /// Go on.
    Yes(Approval),
    /// Leave it.
    No,
    /// There is no terminal to ask on.
    Nobody,
}

/// Where everything is printed.
#[derive(Debug)]
pub struct Terminal {
    /// How the answer is written.
    pub format: Format,
    /// More detail is wanted.
    pub verbose: bool,
    quiet: bool,
    bar: Option<ProgressBar>,
}

impl Terminal {
    /// The terminal of this process.
    pub fn new(everywhere: &Everywhere) -> Self {
        match everywhere.color {
            Color::Auto => {}
            Color::Always => ColorChoice::Always.write_global(),
            Color::Never => ColorChoice::Never.write_global(),
        }
        Self { format: everywhere.format, verbose: everywhere.verbose, quiet: everywhere.quiet, bar: None }
    }

    /// Whether the answer is one JSON document.
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Whether standard output shows colours.
    pub fn answers_in_colour(&self) -> bool {
        AutoStream::choice(&io::stdout()) != ColorChoice::Never
    }

    /// Writes an answer as it is, byte for byte.
    pub fn answer(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.end_progress();
        let mut out = io::stdout().lock();
        unless_closed(out.write_all(bytes).and_then(|()| out.flush()))
    }

    /// Writes an answer with colours where standard output shows them.
    pub fn show(&mut self, text: &str) -> io::Result<()> {
        self.end_progress();
        let mut out = anstream::stdout().lock();
        unless_closed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }

    /// Shows the diff of a plan as the answer; beside it, where the answer is a JSON document.
    pub fn show_plan(&mut self, proved: &ProvedPlan) -> io::Result<Shown> {
        if self.is_json() {
            self.err(&String::from_utf8_lossy(&proved.diff()));
        } else if self.answers_in_colour() {
            self.show_long(&proved.plan().diffs().iter().map(style::diff).collect::<String>())?;
        } else {
            self.answer(&proved.diff())?;
        }
        Ok(Shown(()))
    }

    /// Asks whether what was shown is to be compiled; `yes` was said on the command line.
    pub fn approve(&mut self, _: &Shown, question: &str, yes: bool) -> io::Result<Reply> {
        if yes {
            return Ok(Reply::Yes(Approval::given()));
        }
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Ok(Reply::Nobody);
        }
        self.err(&format!("{} [y/N] ", paint(style::STRONG, question)));
        let mut said = String::new();
        io::stdin().read_line(&mut said)?;
        let agreed = matches!(said.trim().to_lowercase().as_str(), "y" | "yes");
        Ok(if agreed { Reply::Yes(Approval::given()) } else { Reply::No })
    }

    /// Shows how many files are compiled: a bar on a terminal, a line for each elsewhere.
    pub fn units(&mut self, units: Units, began: Instant) {
        let of = units.total.map(|total| format!(" of {total}")).unwrap_or_default();
        if let Some(bar) = &self.bar {
            let template = match units {
                Units { total: Some(_), .. } => "{spinner} {msg} {elapsed} [{bar:30}] {pos}/{len}",
                Units { done: 0, .. } => "{spinner} {msg} {elapsed}",
                _ => "{spinner} {msg} {elapsed} {pos} files",
            };
            bar.set_length(units.total.unwrap_or(units.done) as u64);
            bar.set_position(units.done as u64);
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("=> "));
            }
        } else if !self.quiet && units.done > 0 {
            let seconds = began.elapsed().as_secs();
            let text = format!("compiled {}{of}, {seconds} s", units.done);
            self.err(&format!("{} {text}\n", paint(style::DIM, "....")));
        }
    }

    /// Shows what belongs to an error, with `--quiet` too.
    pub fn explain(&mut self, text: &str) {
        self.err(text);
    }

    /// Writes a long answer, through the user's pager where it is longer than the screen.
    pub fn show_long(&mut self, text: &str) -> io::Result<()> {
        let lines = text.lines().count();
        let (height, _) = console::Term::stdout().size();
        let pager = std::env::var("PAGER").ok().filter(|pager| !matches!(pager.trim(), "" | "cat"));
        match pager {
            Some(pager) if io::stdout().is_terminal() && lines >= usize::from(height) => {
                self.page(&pager, text)
            }
            _ => self.show(text),
        }
    }

    fn page(&mut self, pager: &str, text: &str) -> io::Result<()> {
        self.end_progress();
        let mut command = Command::new("sh");
        command.args(["-c", pager]).stdin(Stdio::piped());
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", "FRX");
        }
        let Ok(mut child) = command.spawn() else { return self.show(text) };
        let plain = if self.answers_in_colour() {
            text.to_string()
        } else {
            anstream::adapter::strip_str(text).to_string()
        };
        if let Some(mut input) = child.stdin.take() {
            unless_closed(input.write_all(plain.as_bytes()))?;
        }
        // The shell's own answers: there is no such pager, or it cannot be run.
        match child.wait()?.code() {
            Some(126 | 127) => self.show(text),
            _ => Ok(()),
        }
    }

    /// Tells something beside the answer; not with `--quiet`.
    pub fn tell(&mut self, text: &str) {
        if !self.quiet {
            self.err(text);
        }
    }

    /// Tells a fact that the person should know.
    pub fn note(&mut self, text: &str) {
        self.tell(&format!("{} {text}\n", paint(style::NOTE, "note:")));
    }

    /// Shows why a command stopped.
    pub fn report(&mut self, report: &Report) {
        self.err(&super::style::report(report));
    }

    /// Writes a document where no terminal was made yet.
    pub fn document(text: &str) {
        // Nothing is left to be done where it cannot be written; the exit code says the rest.
        let _ = io::stdout().write_all(text.as_bytes());
    }

    /// Shows what the reader of the command line has to say: help, the version, or what was typed wrong.
    pub fn usage(error: &clap::Error, hint: Option<&str>) {
        let hint = hint.map(|hint| format!("{} {hint}\n", paint(style::HINT, "hint:"))).unwrap_or_default();
        if error.use_stderr() {
            let text = format!("{}{hint}", error.render().ansi());
            let _ = anstream::stderr().write_all(text.as_bytes());
        } else {
            // A reader that has read enough is no error.
            let _ = error.print();
        }
    }

    fn err(&mut self, text: &str) {
        self.end_progress();
        let mut err = anstream::stderr().lock();
        // Nothing is left to be done where even errors cannot be written.
        let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
    }

    /// Shows what happens: a bar or a spinner on a terminal, plain lines elsewhere.
    pub fn progress(&mut self, progress: Progress) {
        match progress {
            Progress::Note(text) => self.note(&text),
            Progress::Detail(text) if self.verbose => self.note(&text),
            Progress::Detail(_) => {}
            _ if self.quiet => {}
            Progress::Step(text) if io::stderr().is_terminal() => self.spinner(text),
            Progress::Step(text) => self.err(&format!("{} {text}\n", paint(style::DIM, "...."))),
            Progress::Bytes { what, done, total } if io::stderr().is_terminal() => {
                self.bytes(what, done, total)
            }
            Progress::Bytes { .. } => {}
        }
    }

    /// Shows how much of a known number is done, on a terminal.
    pub fn count(&mut self, done: usize, total: usize) {
        if let Some(bar) = self.bar.as_ref().filter(|_| total > 0) {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{bar:30}] {pos}/{len}") {
                bar.set_style(style.progress_chars("=> "));
            }
        }
    }

    fn spinner(&mut self, text: String) {
        self.end_progress();
        let bar = ProgressBar::new_spinner().with_message(text);
        bar.enable_steady_tick(Duration::from_millis(100));
        self.bar = Some(bar);
    }

    fn bytes(&mut self, what: String, done: u64, total: Option<u64>) {
        let bar = self.bar.get_or_insert_with(|| ProgressBar::new_spinner().with_message(what));
        if let Some(total) = total.filter(|total| bar.length() != Some(*total)) {
            bar.set_length(total);
            if let Ok(style) = ProgressStyle::with_template("{msg} [{bar:30}] {bytes}/{total_bytes} {eta}") {
                bar.set_style(style.progress_chars("=> "));
            }
        }
        bar.set_position(done);
    }

    fn end_progress(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// A reader that has read enough is no error.
fn unless_closed(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
