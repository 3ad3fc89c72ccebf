//! `build`: patches, shows the diff, asks, compiles in the user's Python, and proves what the wheel holds.

mod chosen;
mod said;

use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use super::apply::{self, Done};
use super::args::{BuildArgs, Everywhere};
use super::failure::Failure;
use super::planned::{Planned, asked, planned};
use super::terminal::{Reply, Shown, Terminal};
use super::{Answer, diagnose as diagnosis, diff, verify};
use crate::checkout::{Checkout, Progress, Variables};
use crate::kernels::build::progress::Units;
use crate::kernels::build::wheel;
use crate::kernels::build::{Approval, BuildError, Built, Order, compile, install};
use crate::kernels::verify::Subject;
use crate::kernels::{diagnose, probe};
use crate::signals::Stop;
use chosen::Chosen;
use said::Told;

/// Patches and compiles a target.
pub fn build(args: &BuildArgs, everywhere: &Everywhere, terminal: &mut Terminal) -> Result<Answer, Failure> {
    terminal.progress(Progress::Step("asking this machine".to_string()));
    let machine = match chosen::ask(&args.plan.wish) {
        Err(Failure::Build { error, .. }) if is_plan_alone(args) => {
            let asked = asked(&args.plan.wish, everywhere, terminal)?;
            let planned = planned(&args.plan, everywhere, &asked, terminal)?;
            apply::refuse_into_of_local(&planned, &args.place)?;
            return show_alone(&planned, &error, terminal);
        }
        machine => machine?,
    };
    let asked = machine.asked(everywhere)?;
    let planned = planned(&args.plan, everywhere, &asked, terminal)?;
    apply::refuse_into_of_local(&planned, &args.place)?;
    if planned.bound.upstream.project.is_some() && !planned.target.carries_kernels() {
        return Err(Failure::NoKernels { label: planned.target.label.clone() });
    }
    let chosen = match machine.chosen(&planned, &args.compile) {
        Err(Failure::Build { error, .. }) if is_plan_alone(args) => {
            return show_alone(&planned, &error, terminal);
        }
        chosen => chosen?,
    };
    let shown = diff::show(&planned, terminal)?;
    if planned.proved.plan().is_empty() {
        terminal.note(&format!("nothing is patched: {}", planned.nothing()));
    }
    let log = log_file(&planned);
    chosen.notes.iter().for_each(|note| terminal.note(note));
    terminal.tell(&said::choices(&chosen, &log));
    if args.place.dry_run {
        terminal.note("nothing was written and nothing compiled (--dry-run)");
        return Ok(Answer::Yes);
    }
    match approve(&shown, &planned, args, terminal)? {
        Some(approval) => {
            Work { args, planned: &planned, chosen: &chosen, log: &log }.run(&approval, terminal)
        }
        None => Ok(Answer::No),
    }
}

/// Whether only the plan is to be shown, and all that it depends on was typed.
fn is_plan_alone(args: &BuildArgs) -> bool {
    let wish = &args.plan.wish;
    let speaks = [&wish.add_arch, &wish.drop_arch, &wish.only_arch].iter().any(|arches| !arches.is_empty());
    args.place.dry_run && speaks && !wish.cuda.is_empty() && wish.torch.is_some()
}

/// Shows the plan on a machine that cannot compile it.
fn show_alone(planned: &Planned<'_>, lacks: &BuildError, terminal: &mut Terminal) -> Result<Answer, Failure> {
    diff::show(planned, terminal)?;
    terminal.note(&format!("it cannot be compiled here: {lacks}"));
    terminal.note("nothing was written and nothing compiled (--dry-run)");
    Ok(Answer::Yes)
}

fn approve(
    shown: &Shown,
    planned: &Planned<'_>,
    args: &BuildArgs,
    terminal: &mut Terminal,
) -> Result<Option<Approval>, Failure> {
    let question = said::question(planned, &args.compile.out);
    match terminal.approve(shown, &question, args.compile.yes)? {
        Reply::Yes(approval) => Ok(Some(approval)),
        Reply::Nobody => Err(Failure::NobodyToAsk),
        Reply::No => {
            terminal.note("nothing was written and nothing compiled");
            Ok(None)
        }
    }
}

/// In the state folder: a log outlives the terminal, and no build folder is left lying about.
fn log_file(planned: &Planned<'_>) -> PathBuf {
    let state = Variables::of_process().state_folder().unwrap_or_else(std::env::temp_dir);
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    state.join("logs").join(format!("{}-{seconds}.log", planned.target.default_folder_name()))
}

/// What was agreed to.
struct Work<'a> {
    args: &'a BuildArgs,
    planned: &'a Planned<'a>,
    chosen: &'a Chosen,
    log: &'a Path,
}

impl Work<'_> {
    fn run(&self, approval: &Approval, terminal: &mut Terminal) -> Result<Answer, Failure> {
        wheel::check(&self.args.compile.out)?;
        let done = apply::write(self.planned, &self.args.place)?;
        if !matches!(done, Done::Nothing) && !terminal.is_json() {
            apply::tell(&done, self.planned, terminal);
        }
        let checkout = self.checkout(&done)?;
        self.refuse_changed(&checkout)?;
        let told = Told { planned: self.planned, chosen: self.chosen, checkout: &checkout, log: self.log };
        let stop = self.listen()?;
        let built = match self.compile(approval, (&checkout, &stop), terminal) {
            Ok(built) => built,
            Err(BuildError::Stopped { seconds, .. }) => return told.stopped(seconds, None, terminal),
            Err(error @ BuildError::Failed { .. }) => return Err(self.failed(error, terminal)?),
            Err(error) => return Err(error.into()),
        };
        if !self.args.compile.install {
            return told.built(&done, built, None, terminal);
        }
        terminal.progress(Progress::Step("installing the wheel".to_string()));
        match install(&self.chosen.environment, &built.wheel, self.log, &stop) {
            Err(BuildError::Stopped { .. }) => {
                return told.stopped(built.seconds, Some(&built.wheel), terminal);
            }
            other => other?,
        }
        drop(stop);
        let verified = verify::verified(&self.subject(&built.wheel), terminal)?;
        told.built(&done, built, Some(verified), terminal)
    }

    fn listen(&self) -> Result<Stop, BuildError> {
        let path = std::env::current_exe().unwrap_or_default();
        Stop::listen().map_err(|cause| BuildError::System { what: "listen for signals in", path, cause })
    }

    /// What the wheel installed, by the module of its upstream; else by the name that the wheel has.
    fn subject(&self, wheel: &Path) -> Subject {
        let python = &self.chosen.environment.python;
        let name = wheel.file_name().unwrap_or_default().to_string_lossy();
        match &self.planned.bound.upstream.project {
            Some(project) => verify::subject(project, python),
            None => Subject::installed(python, name.split('-').next().unwrap_or_default()),
        }
    }

    /// The tree that was written to; where nothing was to be written, one is made all the same.
    fn checkout(&self, done: &Done) -> Result<Checkout, Failure> {
        let into = self.args.place.into.as_deref();
        let folder = match done {
            Done::Branch { checkout, .. } | Done::Files { checkout, .. }
                if !self.planned.target.is_local() =>
            {
                Some(checkout.folder())
            }
            _ => into,
        };
        Ok(self.planned.target.prepare_checkout(folder)?)
    }

    /// Compiles nothing but what was shown: a checkout of an earlier run may be on another branch.
    fn refuse_changed(&self, checkout: &Checkout) -> Result<(), Failure> {
        let is_line_end = |byte: &&u8| **byte == b'\r';
        let plain =
            |bytes: &[u8]| bytes.iter().filter(|byte| !is_line_end(byte)).copied().collect::<Vec<u8>>();
        for (path, bytes) in self.planned.proved.plan().after.iter() {
            let path = checkout.folder().join(path);
            let lies = std::fs::read(&path).unwrap_or_default();
            if lies[..] != bytes[..] && plain(&lies) != plain(bytes) {
                return Err(BuildError::Changed { path }.into());
            }
        }
        Ok(())
    }

    fn compile(
        &self,
        approval: &Approval,
        (checkout, stop): (&Checkout, &Stop),
        terminal: &mut Terminal,
    ) -> Result<Built, BuildError> {
        let order = Order {
            tree: checkout.folder(),
            environment: &self.chosen.environment,
            home: &self.chosen.home,
            room: &self.chosen.room,
            variables: &self.chosen.variables,
            wanted: &self.chosen.wanted,
            log: self.log,
            out: &self.args.compile.out,
        };
        terminal.progress(Progress::Step(format!("compiling {}", self.planned.target.label)));
        let began = Instant::now();
        terminal.units(Units::default(), began);
        compile(&order, approval, stop, &mut |units| terminal.units(units, began))
    }

    /// Why the build failed, as far as its log and this machine tell.
    fn failed(&self, error: BuildError, terminal: &mut Terminal) -> Result<Failure, Failure> {
        terminal.progress(Progress::Step("reading the log".to_string()));
        let facts = probe::facts(Some(&self.chosen.environment.python));
        let found = std::fs::File::open(self.log).ok().and_then(|log| diagnose::diagnose(log, &facts).ok());
        let Some(found) = found else { return Ok(error.into()) };
        if !terminal.is_json() {
            terminal.explain(&format!("\n{}\n", diagnosis::text(&found, self.log)));
            return Ok(error.into());
        }
        Ok(Failure::Build { error: Box::new(error), causes: found.known().map(said::cause).collect() })
    }
}
