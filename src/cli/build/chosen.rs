//! What is chosen for a build, and by what: Python, toolkit, architectures, how much at once.

use std::collections::BTreeMap;

use super::super::args::{CompileArgs, Everywhere, WishArgs};
use super::super::compiling::is_chosen_by_torch;
use super::super::failure::Failure;
use super::super::planned::{Asked, Planned, patch_sets};
use super::super::request::request;
use super::super::{next, unknown};
use crate::engine::arch::{Arch, Code};
use crate::engine::catalogue::Catalogue;
use crate::engine::ops::gencode::Compiled;
use crate::engine::patchset::bind::BindError;
use crate::engine::toolkit::Toolkit;
use crate::kernels::build::BuildError;
use crate::kernels::build::environment::PythonEnvironment;
use crate::kernels::build::requirements::{Requirement, requirements};
use crate::kernels::build::room::{Machine as Processors, Room};
use crate::kernels::build::toolkit::{self, CudaHome, Wanted};
use crate::kernels::facts::FoundToolkit;
use crate::kernels::probe::gpus;

/// The Python and the toolkit that compile, and what is wanted of them.
pub struct Machine {
    environment: PythonEnvironment,
    toolkit: FoundToolkit,
    release: Toolkit,
    wish: WishArgs,
    /// No flag speaks of architectures.
    native: bool,
    /// No toolkit was named, or the one that compiles.
    named: bool,
}

/// All that is chosen.
pub struct Chosen {
    /// The Python.
    pub environment: PythonEnvironment,
    /// The release of the toolkit.
    pub release: Toolkit,
    /// CUDA_HOME.
    pub home: CudaHome,
    /// How much at once.
    pub room: Room,
    /// Variables of the upstream.
    pub variables: BTreeMap<String, String>,
    /// What must be in the wheel.
    pub wanted: Vec<Code>,
    /// What the person should know.
    pub notes: Vec<String>,
}

/// Asks the Python and the toolkits of this machine, once it is clear what for.
pub fn ask(typed: &WishArgs) -> Result<Machine, Failure> {
    let mut wish = typed.clone();
    let native = native(&mut wish)?;
    let alone = WishArgs { host: false, python: None, ..wish.clone() };
    let arches: Vec<Arch> =
        request(&alone, Catalogue::shipped())?.0.wish.wanted().map(|code| code.arch()).collect();
    let environment = PythonEnvironment::ask(wish.python.as_deref())?;
    let wanted = Wanted { torch: environment.cuda, named: &wish.cuda, arches };
    let (toolkit, release) =
        toolkit::choose(&environment.toolkits, &wanted).ok_or_else(|| no_toolkit(&environment))?;
    let toolkit = toolkit.clone();
    wish.host = true;
    let named = wish.cuda.is_empty() || wish.cuda.contains(&release);
    if !wish.cuda.contains(&release) {
        wish.cuda.push(release);
    }
    Ok(Machine { toolkit, release, environment, wish, native, named })
}

/// The GPUs of this machine, where no flag speaks of architectures.
fn native(wish: &mut WishArgs) -> Result<bool, Failure> {
    let speaks = [&wish.add_arch, &wish.drop_arch, &wish.only_arch].iter().any(|arches| !arches.is_empty());
    if speaks {
        return Ok(false);
    }
    if !gpus::arches(&gpus::gpus().0).is_empty() {
        wish.only_arch = vec!["native".to_string()];
        return Ok(true);
    }
    let asks = wish.host || !wish.cuda.is_empty() || wish.torch.is_some() || !wish.patch.is_empty();
    if asks { Ok(false) } else { Err(BindError::NothingAsked.into()) }
}

fn no_toolkit(environment: &PythonEnvironment) -> BuildError {
    let found = environment.toolkits.iter();
    BuildError::NoToolkit {
        torch: environment.torch.clone(),
        cuda: environment.cuda.to_string(),
        major: environment.cuda.major,
        found: found.map(|one| format!("{} ({})", one.version, one.nvcc.display())).collect(),
        install: toolkit::install(environment, environment.cuda),
    }
}

impl Machine {
    /// The patch sets, and what is to be done, filled up from the environment.
    pub fn asked(&self, everywhere: &Everywhere) -> Result<Asked, Failure> {
        let (request, _) = request(&self.wish, Catalogue::shipped())?;
        Ok(Asked { sets: patch_sets(everywhere)?, request })
    }

    /// All that is chosen for a target; refuses where the environment lacks something.
    pub fn chosen(self, planned: &Planned<'_>, args: &CompileArgs) -> Result<Chosen, Failure> {
        let needed = project(planned)?;
        self.environment.check(&needed)?;
        let home = CudaHome::of(&self.toolkit.nvcc)?;
        let lacks = toolkit::lacks(&home.toolkit);
        if !lacks.is_empty() {
            let install = toolkit::install(&self.environment, self.release);
            return Err(BuildError::Incomplete { home: home.toolkit.clone(), lacks, install }.into());
        }
        let (before, after) = counts(planned, self.release);
        let wish = &planned.bound.request.wish;
        let arches = if after > 0 { after } else { wish.wanted().count() };
        let jobs = args.jobs.map(usize::from);
        Ok(Chosen {
            room: Processors::here(jobs).room(arches),
            variables: variables(planned),
            wanted: wish.wanted().collect(),
            notes: self.notes(before, after),
            environment: self.environment,
            release: self.release,
            home,
        })
    }

    fn notes(&self, before: usize, after: usize) -> Vec<String> {
        let environment = &self.environment;
        let mut notes = Vec::new();
        if self.native {
            notes.push("no flag speaks of architectures: for the GPUs of this machine alone".to_string());
        }
        if (1..before).contains(&after) {
            let of = if after == 1 { "1 architecture".to_string() } else { format!("{after} architectures") };
            let saved = 100 - 100 * after / before;
            notes.push(format!("{of} instead of {before}: nvcc compiles for each anew, so this saves about {saved}% of its time"));
        }
        if !environment.has_ninja() {
            let install = environment.install_command("ninja");
            notes.push(format!("ninja is missing, so one file is compiled at a time: {install}"));
        }
        if !self.named {
            let release = self.release;
            notes.push(format!(
                "no nvcc of a toolkit that was named fits: CUDA {release} compiles, and is patched for too"
            ));
        }
        let home = std::env::var_os("CUDA_HOME").filter(|home| !home.is_empty());
        let ours = self.toolkit.by.as_deref() == Some("CUDA_HOME");
        if let Some(home) = home.filter(|_| !ours) {
            let home = home.to_string_lossy().into_owned();
            notes.push(format!(
                "CUDA_HOME is {home}; another toolkit fits PyTorch {} better",
                environment.torch
            ));
        }
        notes
    }
}

/// What the project at the root of the tree needs.
fn project(planned: &Planned<'_>) -> Result<Vec<Requirement>, Failure> {
    let after = &planned.proved.plan().after;
    let text = |path: &str| -> Result<Option<String>, Failure> {
        let bytes = match after.get(path) {
            Some(bytes) => Some(bytes.to_vec()),
            None => planned.target.file(path)?,
        };
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    };
    let (pyproject, setup) = (text("pyproject.toml")?, text("setup.py")?);
    if pyproject.is_none() && setup.is_none() {
        let paths = planned.target.paths();
        let below =
            paths.iter().filter_map(|path| path.strip_suffix("/setup.py")).map(String::from).collect();
        return Err(BuildError::NoProject { place: planned.target.label.clone(), below }.into());
    }
    Ok(requirements(pyproject.as_deref(), setup.as_deref()))
}

/// What makes the build compile: the upstream's variables; of an unknown tree where PyTorch chooses, its list.
fn variables(planned: &Planned<'_>) -> BTreeMap<String, String> {
    let mut variables = next::variables(planned.bound.upstream, &planned.bound.version);
    if planned.bound.upstream.project.is_none() && is_chosen_by_torch(planned) {
        variables.extend(unknown::arch_list(planned).map(|list| ("TORCH_CUDA_ARCH_LIST".to_string(), list)));
    }
    variables
}

/// How many codes a toolkit compiles, before and after: of the list that has the most.
fn counts(planned: &Planned<'_>, toolkit: Toolkit) -> (usize, usize) {
    let effect = planned.proved.plan().effect(&planned.bound);
    let accepted = |flags: &[Compiled]| {
        flags.iter().filter(|flag| flag.accepted).map(|flag| flag.gencode.codes.len()).sum::<usize>()
    };
    let rows = effect.iter().flat_map(|file| &file.rows).filter(|row| row.toolkit == toolkit);
    let pairs = rows.map(|row| (accepted(&row.before), accepted(&row.after)));
    pairs.max_by_key(|(_, after)| *after).unwrap_or_default()
}
