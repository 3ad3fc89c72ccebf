//! What `build` tells: what is chosen, the question, and the end.

use std::path::Path;

use serde_json::{Value, json};

use super::super::apply::{self, Done, line};
use super::super::failure::Failure;
use super::super::inspect::Held;
use super::super::planned::Planned;
use super::super::style::{DIM, STRONG, WARN, columns, paint};
use super::super::terminal::Terminal;
use super::super::{Answer, evidence, json as documents, next};
use super::chosen::Chosen;
use crate::checkout::Checkout;
use crate::engine::arch::Code;
use crate::kernels::build::Built;
use crate::kernels::build::environment::Installer;
use crate::kernels::build::wheel::codes;
use crate::kernels::diagnose::Cause;

/// What compiles, as a table.
pub fn choices(chosen: &Chosen, log: &Path) -> String {
    let (environment, room) = (&chosen.environment, &chosen.room);
    let files = if room.jobs == 1 { "1 file".to_string() } else { format!("{} files", room.jobs) };
    let threads =
        if room.threads == 1 { "1 thread".to_string() } else { format!("{} threads", room.threads) };
    let set: Vec<String> = chosen.variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let python = format!("{}, {} ({})", environment.version, environment.python.display(), installer(chosen));
    let mut rows = vec![
        ("Python", python),
        ("PyTorch", environment.torch.clone()),
        ("CUDA", format!("{}, CUDA_HOME={}", chosen.release, chosen.home.toolkit.display())),
        ("at once", format!("{files}, nvcc with {threads} ({})", room.why)),
    ];
    if !set.is_empty() {
        rows.push(("set", set.join(" ")));
    }
    rows.push(("log", log.display().to_string()));
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(name, text)| vec![paint(DIM, name), text]).collect();
    format!("{}\n{}", paint(STRONG, "build"), columns(&rows, "  "))
}

fn installer(chosen: &Chosen) -> &'static str {
    match chosen.environment.installer {
        Installer::Pip => "pip",
        Installer::Uv(_) => "uv",
    }
}

/// What is asked.
pub fn question(planned: &Planned<'_>, out: &Path) -> String {
    let wanted: Vec<String> = planned.bound.request.wish.wanted().map(|code| code.to_string()).collect();
    let codes = if wanted.is_empty() { String::new() } else { format!(" for {}", wanted.join(", ")) };
    let write = if planned.proved.plan().is_empty() { "" } else { "write this and " };
    format!("{write}compile {}{codes} into {}?", planned.target.label, out.display())
}

/// A cause in one line.
pub fn cause(cause: &Cause) -> String {
    let commands = cause.commands.iter().map(|command| format!(" $ {command}")).collect::<String>();
    let place = format!("line {}: {}", cause.hit.line, cause.hit.excerpt.trim());
    format!("{} ({}), {place}; {} {}{commands}", cause.title, cause.id, cause.cause, cause.remedy)
}

/// What the end of a build is told from.
pub struct Told<'a> {
    /// What was patched.
    pub planned: &'a Planned<'a>,
    /// What compiled it.
    pub chosen: &'a Chosen,
    /// The tree.
    pub checkout: &'a Checkout,
    /// All that was said.
    pub log: &'a Path,
}

impl Told<'_> {
    /// The wheel, what it holds, and what to type next.
    pub fn built(
        &self,
        done: &Done,
        built: Built,
        verified: Option<(Answer, Value, String)>,
        terminal: &mut Terminal,
    ) -> Result<Answer, Failure> {
        let (wheel, seconds) = (built.wheel, built.seconds);
        let codes: Vec<Code> = codes(&built.libraries).into_keys().collect();
        let held = Held::of(built.libraries);
        let answer = verified.as_ref().map_or(Answer::Yes, |(answer, ..)| *answer);
        let mut build = self.document(&wheel, seconds, &codes);
        build["files"] = held.document();
        evidence::keep(self.checkout.folder(), &build, verified.as_ref().map(|(_, verified, _)| verified));
        if terminal.is_json() {
            let mut document = documents::planned(self.planned);
            document["result"] = apply::result(done);
            document["build"] = build;
            document["verified"] = verified.map_or(Value::Null, |(_, verified, _)| verified);
            terminal.answer(documents::text(&document).as_bytes())?;
            return Ok(answer);
        }
        terminal.show(&held.text())?;
        terminal.tell(&line("done", &format!("{}, after {}", wheel.display(), time(seconds))));
        terminal.tell(&format!(
            "  log   {}\n  tree  {}\n",
            self.log.display(),
            self.checkout.folder().display()
        ));
        let installed = verified.is_some();
        if let Some((.., text)) = verified {
            terminal.tell(&line("installed", &format!("into {}", self.chosen.environment.python.display())));
            terminal.show(&text)?;
        }
        terminal.tell(&self.next(&wheel, installed));
        Ok(answer)
    }

    /// That it was stopped, what is left, and how to go on.
    pub fn stopped(
        &self,
        seconds: u64,
        wheel: Option<&Path>,
        terminal: &mut Terminal,
    ) -> Result<Answer, Failure> {
        let folder = self.checkout.folder().display();
        if terminal.is_json() {
            let build = json!({ "stopped": true, "seconds": seconds, "log": self.log, "tree": self.checkout.folder(), "wheel": wheel });
            terminal.answer(documents::text(&json!({ "build": build })).as_bytes())?;
            return Ok(Answer::Stopped);
        }
        let what = match wheel {
            Some(wheel) => format!("{} is there, and not installed", wheel.display()),
            None => "every compiler has ended, and there is no wheel".to_string(),
        };
        let again: Vec<String> = std::env::args_os().map(|word| next::quoted(Path::new(&word))).collect();
        terminal.explain(&format!(
            "{} after {}: {what}\n\
             \x20 left  the patched tree {folder}, the log {}\n  to go on, from the first file: {}\n",
            paint(WARN, "stopped:"),
            time(seconds),
            self.log.display(),
            again.join(" ")
        ));
        Ok(Answer::Stopped)
    }

    fn next(&self, wheel: &Path, installed: bool) -> String {
        let environment = &self.chosen.environment;
        let wheel = next::quoted(wheel);
        let partners = next::partners(self.planned, "build");
        if installed && partners.is_empty() {
            return String::new();
        }
        let mut text = format!("\n{}\n", paint(STRONG, "next"));
        let install = environment.install_command(&format!("--no-deps --force-reinstall {wheel}"));
        if !installed {
            text.push_str(&format!("  {install}\n"));
        }
        for (command, why) in partners {
            text.push_str(&format!("  {command}\n  {}\n", paint(DIM, &format!("    # {why}"))));
        }
        text
    }

    fn document(&self, wheel: &Path, seconds: u64, codes: &[Code]) -> Value {
        let (environment, room) = (&self.chosen.environment, &self.chosen.room);
        json!({
            "wheel": wheel,
            "log": self.log,
            "seconds": seconds,
            "codes": codes.iter().map(Code::to_string).collect::<Vec<_>>(),
            "tree": self.checkout.folder(),
            "environment": {
                "python": environment.python,
                "python-version": environment.version,
                "installer": installer(self.chosen),
                "torch": environment.torch,
                "cuda": self.chosen.release.to_string(),
                "cuda-home": self.chosen.home.toolkit,
                "max-jobs": room.jobs,
                "nvcc-threads": room.threads,
                "variables": self.chosen.variables,
            },
        })
    }
}

/// `5 min 12 s`.
fn time(seconds: u64) -> String {
    match seconds / 60 {
        0 => format!("{seconds} s"),
        minutes => format!("{minutes} min {} s", seconds % 60),
    }
}
