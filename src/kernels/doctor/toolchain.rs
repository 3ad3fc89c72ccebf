//! GPUs, driver, toolkits, compilers, C library.

use super::{Case, Level, Verdict, version};
use crate::engine::arch::{Arch, parse_codes};
use crate::engine::toolkit::Toolkit;
use crate::kernels::facts::{Compiler, FoundToolkit, major};

/// Commands that put a compiler on a machine.
const INSTALL_COMPILER: &str = "sudo apt-get install g++";

impl Case<'_> {
    pub(super) fn gpus(&mut self) {
        let facts = self.facts;
        for gpu in &facts.gpus {
            let name = gpu.name.as_deref().unwrap_or("a GPU");
            match &gpu.arch {
                Some(arch) => self.add(Verdict::new("GPU", Level::Good, format!("{name} (sm_{arch})"))),
                None => self.add(
                    Verdict::new("GPU", Level::Note, format!("{name}, of an architecture that is not known"))
                        .remedy("name it: --add-arch"),
                ),
            }
        }
        if facts.gpus.is_empty() {
            let text = "no NVIDIA GPU was found: kernels can be built here, and not run";
            self.add(Verdict::new("GPU", Level::Note, text).remedy("name the architecture: --add-arch 120"));
        }
    }

    pub(super) fn driver(&mut self) {
        let Some(driver) = &self.facts.driver else { return };
        let number = driver.version.as_deref().unwrap_or("of an unknown release");
        let cuda =
            driver.cuda.as_ref().map(|cuda| format!(", runs CUDA {cuda} and older")).unwrap_or_default();
        let floor = self.torch_cuda().and_then(|cuda| self.catalogue.driver_floor(cuda));
        let floor =
            floor.and_then(|floor| if cfg!(windows) { floor.windows.clone() } else { floor.linux.clone() });
        let below = floor.filter(|floor| version(floor).zip(version(number)).is_some_and(|(a, b)| b < a));
        let verdict = match below {
            None => Verdict::new("driver", Level::Good, format!("{number}{cuda}")),
            Some(floor) => {
                Verdict::new("driver", Level::Bad, format!("{number}: PyTorch's CUDA needs {floor}"))
                    .remedy("Update the driver, or install a PyTorch of an older CUDA major.")
            }
        };
        self.add(verdict);
    }

    /// Every nvcc; the one that a build uses must fit PyTorch and know the GPUs.
    pub(super) fn toolkits(&mut self) {
        let facts = self.facts;
        for name in ["CUDA_HOME", "CUDA_PATH"] {
            let set = facts.variables.get(name).filter(|value| !value.is_empty());
            let found =
                facts.toolkits.iter().any(|toolkit| toolkit.nvcc.starts_with(set.map_or("", String::as_str)));
            if let Some(value) = set.filter(|_| !found) {
                let what = format!("{name} is {value}, where no nvcc is");
                let unset = if cfg!(windows) { format!("set {name}=") } else { format!("unset {name}") };
                self.add(Verdict::new("nvcc", Level::Bad, what).command(unset));
            }
        }
        let Some(used) = facts.toolkit() else { return self.no_toolkit() };
        for toolkit in &facts.toolkits {
            let verdict = if toolkit == used { self.used(toolkit) } else { Self::other(toolkit) };
            self.add(verdict);
        }
    }

    fn no_toolkit(&mut self) {
        let verdict = Verdict::new("nvcc", Level::Bad, "no CUDA toolkit was found");
        let exact = self.torch_cuda().filter(|cuda| cuda.major >= 13);
        self.add(match (exact, self.torch_cuda()) {
            (Some(cuda), _) => verdict
                .remedy("Packages of Python are enough; all parts must be of one release.")
                .command(format!("pip install 'cuda-toolkit[nvcc,nvvm,crt,cccl]=={cuda}.*'")),
            (None, Some(cuda)) => verdict
                .remedy(format!("Install a toolkit of CUDA {}, which PyTorch was built with.", cuda.major))
                .command(format!(
                    "conda install -c conda-forge cuda-nvcc cuda-cudart-dev cuda-cccl cuda-version={cuda}"
                )),
            (None, None) => verdict.remedy("Install a toolkit of the major that PyTorch was built with."),
        });
    }

    fn other(toolkit: &FoundToolkit) -> Verdict {
        Verdict::new("nvcc", Level::Note, format!("{}, not used", shown(toolkit)))
    }

    /// The toolkit that a build uses.
    fn used(&self, toolkit: &FoundToolkit) -> Verdict {
        let bad = |what: String| Verdict::new("nvcc", Level::Bad, format!("{}: {what}", shown(toolkit)));
        if let Some(ptxas) = toolkit.ptxas.as_ref().filter(|ptxas| **ptxas != toolkit.version) {
            return bad(format!("its ptxas is of {ptxas}, and every compile will stop there"))
                .remedy("Install nvcc, nvvm and crt of one release.")
                .command(format!(
                    "pip install --force-reinstall 'cuda-toolkit[nvcc,nvvm,crt,cccl]=={}.*'",
                    toolkit.version
                ));
        }
        let release: Option<Toolkit> = toolkit.version.parse().ok();
        let torch = self.torch_cuda();
        if let (Some(release), Some(torch)) = (release, torch)
            && release.major != torch.major
        {
            return self
                .other_major(bad(format!("PyTorch was built with CUDA {torch}, another major")), torch);
        }
        let unknown = |arch: &Arch| release.is_some_and(|release| !self.catalogue.knows(release, *arch));
        match self.arches().into_iter().find(unknown) {
            Some(arch) => self.cannot_compile(&bad, arch),
            None => Verdict::new("nvcc", Level::Good, shown(toolkit)),
        }
    }

    fn other_major(&self, verdict: Verdict, torch: Toolkit) -> Verdict {
        let fitting = self.facts.fitting_toolkit().filter(|found| major(&found.version) == Some(torch.major));
        match fitting.and_then(|found| found.nvcc.parent()?.parent()) {
            Some(home) => {
                let home = home.display();
                verdict
                    .remedy("A toolkit of that major is there: let CUDA_HOME point to it.")
                    .command(format!("export CUDA_HOME={home} PATH={home}/bin:$PATH"))
            }
            None => verdict.remedy(format!(
                "Install a toolkit of CUDA {}, and let CUDA_HOME point to it; or install a PyTorch of this toolkit's major.",
                torch.major
            )),
        }
    }

    fn cannot_compile(&self, bad: &dyn Fn(String) -> Verdict, arch: Arch) -> Verdict {
        let row = self.catalogue.arch(arch);
        let (since, last) = (row.and_then(|row| row.since), row.and_then(|row| row.last));
        let verdict = bad(format!("it does not compile for your GPU (sm_{arch})"));
        match (since, last) {
            (_, Some(last)) => verdict.remedy(format!("CUDA {last} is the last that does.")),
            (Some(since), None) => verdict.remedy(format!("Install CUDA {since} or newer.")),
            (None, None) => verdict,
        }
    }

    pub(super) fn arches(&self) -> Vec<Arch> {
        crate::kernels::probe::gpus::arches(&self.facts.gpus)
    }

    /// Words of TORCH_CUDA_ARCH_LIST that nobody knows.
    pub(super) fn arch_list(&mut self) {
        let Some(list) = self.facts.variables.get("TORCH_CUDA_ARCH_LIST") else { return };
        let known = |word: &str| {
            let named = ["Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Ada", "Hopper", "Blackwell"];
            let codes = parse_codes(word).unwrap_or_default();
            named.iter().any(|name| word.starts_with(name))
                || (!codes.is_empty() && codes.iter().all(|code| self.catalogue.arch(code.arch()).is_some()))
        };
        let words = list.split([' ', ';']).filter(|word| !word.is_empty());
        let strange: Vec<&str> = words.filter(|word| !known(word)).collect();
        if !strange.is_empty() {
            let what = format!("TORCH_CUDA_ARCH_LIST is `{list}`; unknown: {}", strange.join(", "));
            self.add(Verdict::new("variable", Level::Bad, what).command("unset TORCH_CUDA_ARCH_LIST"));
        }
    }

    /// The compiler that a build uses, against the toolkit's headers and PyTorch's own table.
    pub(super) fn compiler(&mut self) {
        let Some(compiler) = self.facts.compiler() else {
            let verdict = Verdict::new("compiler", Level::Bad, "no gcc, clang or MSVC was found");
            return self.add(verdict.command(INSTALL_COMPILER));
        };
        let release: Option<Toolkit> = self.facts.toolkit().and_then(|toolkit| toolkit.version.parse().ok());
        let verdict = release.and_then(|release| self.too_new(compiler, release));
        let shown = shown_compiler(compiler);
        self.add(verdict.unwrap_or_else(|| Verdict::new("compiler", Level::Good, shown)));
    }

    fn too_new(&self, compiler: &Compiler, release: Toolkit) -> Option<Verdict> {
        let have = major(&compiler.version)?;
        let row = self.catalogue.toolkit(release)?;
        let bad = |what: String| {
            Verdict::new("compiler", Level::Bad, format!("{}: {what}", shown_compiler(compiler)))
        };
        let most = match compiler.kind.as_str() {
            "gcc" => row.gcc,
            "clang" => row.clang,
            _ => return self.msvc(compiler, release),
        };
        if let Some(most) = most.filter(|most| have > *most) {
            let (kind, cxx) = (&compiler.kind, if compiler.kind == "gcc" { "g++" } else { "clang++" });
            return Some(
                bad(format!("CUDA {release} takes {kind} {most} at most"))
                    .remedy(format!("Install {kind} {most} or older beside it, and name it."))
                    .command(format!("export CC={kind}-{most} CXX={cxx}-{most}")),
            );
        }
        let torch = self.catalogue.torch_gcc(release).filter(|_| compiler.kind == "gcc");
        let refused = torch.filter(|row| have >= row.below)?;
        Some(
            bad(format!(
                "PyTorch takes gcc below {} for CUDA {release}, though the toolkit takes it",
                refused.below
            ))
            .remedy("PyTorch's table is stricter than the toolkit; its check can be skipped.")
            .command("export TORCH_DONT_CHECK_COMPILER_ABI=1"),
        )
    }

    fn msvc(&self, compiler: &Compiler, release: Toolkit) -> Option<Verdict> {
        let range = self.catalogue.toolkit(release)?.msvc?;
        let mut parts = compiler.version.split('.').map(|part| part.parse::<u16>().ok());
        let have = parts.next()??.checked_mul(100)?.checked_add(parts.next()??)?;
        if (range.from..range.below).contains(&have) {
            return None;
        }
        let limit = format!("{}.{}", range.below / 100, range.below % 100);
        let what = format!("{}: CUDA {release} takes MSVC below {limit}", shown_compiler(compiler));
        let remedy =
            "Use CUDA 12.4 or newer for Visual Studio 2022, 13.2 or newer for 2026; or an older toolset.";
        Some(Verdict::new("compiler", Level::Bad, what).remedy(remedy))
    }

    /// The C library, against the headers of the toolkit.
    pub(super) fn libc(&mut self) {
        let Some(glibc) = &self.facts.glibc else { return };
        let release: Option<Toolkit> = self.facts.toolkit().and_then(|toolkit| toolkit.version.parse().ok());
        let concerns =
            |since: &str| version(since).zip(version(glibc)).is_some_and(|(since, here)| here >= since);
        let trap = self.catalogue.advisories().iter().find(|advisory| {
            let spans = |release| {
                advisory.since.is_none_or(|since| since <= release)
                    && advisory.last.is_none_or(|last| release <= last)
            };
            advisory.glibc.as_deref().is_some_and(concerns) && release.is_some_and(spans)
        });
        let verdict = match trap {
            None => Verdict::new("glibc", Level::Good, glibc.clone()),
            Some(trap) => {
                let verdict = Verdict::new("glibc", Level::Bad, format!("{glibc}: {}", trap.what.trim()));
                match &trap.cure {
                    Some(cure) => verdict.remedy(cure.trim()),
                    None => verdict,
                }
            }
        };
        self.add(verdict);
    }

    pub(super) fn ninja(&mut self) {
        let verdict = match &self.facts.ninja {
            Some(ninja) => Verdict::new("ninja", Level::Good, ninja.clone()),
            None => Verdict::new("ninja", Level::Warn, "not found: one file is compiled after the other")
                .command("pip install ninja"),
        };
        self.add(verdict);
    }

    /// How many jobs there is room for.
    pub(super) fn room(&mut self) {
        let (Some(memory), Some(cores)) = (self.facts.memory, self.facts.cores) else { return };
        let room = (memory.saturating_sub(2) / 5).max(1);
        let what =
            format!("{cores} cores, {memory} GB: room for {} jobs of large kernels", room.min(cores as u64));
        let level = if room < cores as u64 { Level::Note } else { Level::Good };
        let verdict = Verdict::new("room", level, what);
        self.add(if level == Level::Note {
            verdict.remedy(format!("export MAX_JOBS={room}"))
        } else {
            verdict
        });
    }
}

fn shown(toolkit: &FoundToolkit) -> String {
    let by = toolkit.by.as_ref().map(|by| format!(" ({by})")).unwrap_or_default();
    format!("{} in {}{by}", toolkit.version, toolkit.nvcc.display())
}

fn shown_compiler(compiler: &Compiler) -> String {
    format!("{} {} in {} ({})", compiler.kind, compiler.version, compiler.path.display(), compiler.by)
}
