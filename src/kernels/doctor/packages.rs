//! Python, PyTorch, compiled extensions, and packages that stand before each other.

use super::{Case, Level, Verdict, version};
use crate::engine::arch::{Arch, Code};
use crate::engine::catalogue::Catalogue;
use crate::kernels::facts::{Extension, Torch, major};
use crate::kernels::inspect::fit::runs_on;

/// Upstreams whose releases can be patched by name.
const KNOWN: [&str; 2] = ["mamba-ssm", "causal-conv1d"];

impl Case<'_> {
    pub(super) fn python(&mut self) {
        let verdict = match &self.facts.python {
            Some(python) => Verdict::new(
                "Python",
                Level::Good,
                format!("{} in {}", python.version, python.path.display()),
            ),
            None => Verdict::new("Python", Level::Bad, "none was found")
                .remedy("Activate the environment that has PyTorch, or name its Python: --python"),
        };
        self.add(verdict);
    }

    pub(super) fn torch(&mut self) {
        let facts = self.facts;
        let Some(torch) = &facts.torch else {
            let verdict = Verdict::new("PyTorch", Level::Bad, "not installed in this Python");
            return self.add(verdict.command("pip install torch"));
        };
        let verdict = match (&torch.cuda, &torch.hip) {
            (Some(_), _) => self.torch_with_cuda(torch),
            (None, Some(hip)) => {
                let what =
                    format!("{} for ROCm {hip}; the patches here are for NVIDIA's GPUs", torch.version);
                Verdict::new("PyTorch", Level::Note, what)
            }
            (None, None) => {
                let what = format!("{} without CUDA: its extensions can have no GPU code", torch.version);
                Verdict::new("PyTorch", Level::Bad, what).command("pip install --upgrade torch")
            }
        };
        self.add(verdict);
    }

    fn torch_with_cuda(&self, torch: &Torch) -> Verdict {
        let shown = torch_shown(torch);
        let lacking =
            self.arches().into_iter().find(|gpu| !torch.codes.is_empty() && !runs(&torch.codes, *gpu));
        let Some(gpu) = lacking else { return Verdict::new("PyTorch", Level::Good, shown) };
        let what = format!("{shown}: no code for your GPU (sm_{gpu})");
        let verdict = Verdict::new("PyTorch", Level::Bad, what);
        let row = self.catalogue.arch(gpu);
        match row.and_then(|row| row.since) {
            Some(since) => verdict
                .remedy(format!("Install a PyTorch that was built with CUDA {since} or newer."))
                .command("pip install --upgrade torch"),
            None => verdict
                .remedy("New builds leave old GPUs out: install an older PyTorch, or one built with an older CUDA.")
                .command("pip install 'torch<2.8'"),
        }
    }

    pub(super) fn extensions(&mut self) {
        let facts = self.facts;
        for extension in &facts.extensions {
            let verdict = self.extension(extension);
            self.add(verdict);
        }
    }

    /// A compiled file: can it be loaded, and does it run.
    fn extension(&self, one: &Extension) -> Verdict {
        let subject = format!("{} {}", one.package, one.version);
        let file = one.file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let bad = |what: String| rebuilt(Verdict::new(&subject, Level::Bad, format!("{file}: {what}")), one);
        if let Some(broken) = &one.broken {
            return bad(broken.clone());
        }
        if let Some(symbol) = one.missing.first() {
            return bad(format!("cannot be imported: it takes {symbol}, which this PyTorch does not have"));
        }
        if let Some(needed) = &one.glibc
            && let (Some(here), Some(least)) =
                (self.facts.glibc.as_deref().and_then(version), version(needed))
            && here < least
        {
            return bad(format!("needs glibc {needed}"));
        }
        let torch = self.facts.torch.as_ref().and_then(|torch| torch.cuda.as_deref());
        let loads_torch = one.torch.is_some();
        if let (Some(cuda), Some(torch)) = (one.cuda, torch)
            && loads_torch
            && major(torch) != Some(cuda)
        {
            return bad(format!("loads CUDA {cuda}, PyTorch was built with CUDA {torch}"));
        }
        self.runs_here(one, &subject, &file)
    }

    fn runs_here(&self, one: &Extension, subject: &str, file: &str) -> Verdict {
        let what = if one.codes.is_empty() {
            format!("{file}: no GPU code")
        } else {
            format!("{file}: {}", short(&one.codes))
        };
        let lame = self.arches().into_iter().find(|gpu| !one.codes.is_empty() && !runs(&one.codes, *gpu));
        match lame {
            None => Verdict::new(subject, Level::Good, what),
            // One of several libraries of a package is loaded, by the CUDA of PyTorch.
            Some(gpu) if one.torch.is_none() => {
                Verdict::new(subject, Level::Note, format!("{what}: nothing for your GPU (sm_{gpu})"))
            }
            Some(gpu) => rebuilt(
                Verdict::new(subject, Level::Bad, format!("{what}: nothing for your GPU (sm_{gpu})")),
                one,
            ),
        }
    }

    pub(super) fn shadows(&mut self) {
        let facts = self.facts;
        for shadow in &facts.shadows {
            let verdict = match &shadow.folder {
                Some(folder) => {
                    let folder = folder.display();
                    let what = format!(
                        "`{}` is installed, and lies in {folder} too: which one is imported depends on where Python starts",
                        shadow.module
                    );
                    Verdict::new("shadow", Level::Warn, what)
                        .remedy("If the copy is a modified one, remove the installed package and install the copy.")
                        .command(format!("pip uninstall -y {}", shadow.packages.join(" ")))
                }
                None => {
                    let what = format!(
                        "`{}` comes from {}: the one that was installed last is imported",
                        shadow.module,
                        shadow.packages.join(" and ")
                    );
                    Verdict::new("shadow", Level::Warn, what).remedy("Remove the one that you do not mean.")
                }
            };
            self.add(verdict);
        }
    }
}

fn torch_shown(torch: &Torch) -> String {
    let abi = match torch.cxx11_abi {
        Some(true) => ", C++ strings of the new ABI",
        Some(false) => ", C++ strings of the old ABI",
        None => "",
    };
    let codes = if torch.codes.is_empty() { String::new() } else { format!(", {}", short(&torch.codes)) };
    format!("{}{abi}{codes}", torch.version)
}

/// `75 80 90, PTX 120` of `sm_75`, `sm_80`, `sm_90`, `compute_120`.
fn short(codes: &[String]) -> String {
    let names = |beginning: &str| {
        codes.iter().filter_map(|code| code.strip_prefix(beginning)).collect::<Vec<_>>().join(" ")
    };
    match (names("sm_"), names("compute_")) {
        (sass, ptx) if ptx.is_empty() => sass,
        (sass, ptx) if sass.is_empty() => format!("PTX {ptx}"),
        (sass, ptx) => format!("{sass}, PTX {ptx}"),
    }
}

fn runs(codes: &[String], gpu: Arch) -> bool {
    let codes = codes.iter().filter_map(|code| code.parse::<Code>().ok());
    codes.into_iter().any(|code| runs_on(code, gpu, Catalogue::shipped()))
}

/// How the package is built anew.
fn rebuilt(verdict: Verdict, one: &Extension) -> Verdict {
    if KNOWN.contains(&one.package.as_str()) {
        return verdict
            .remedy("Patch its source for this machine, and compile that source; the command ends in how.")
            .command(format!(
                "mambapatch apply {}@v{} --host",
                one.package,
                one.version.split('+').next().unwrap_or("")
            ));
    }
    verdict.remedy("Compile it against the installed PyTorch.").command(format!(
        "pip install --force-reinstall --no-deps --no-build-isolation --no-cache-dir --no-binary {0} {0}=={1}",
        one.package, one.version
    ))
}
