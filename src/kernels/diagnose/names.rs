//! Facts by the names that rules use: those of the machine, those that the log tells, those that a pattern caught, and
//! what the catalogue knows of them.

use std::collections::BTreeMap;

use super::decide::Names;
use crate::engine::arch::{Arch, Code};
use crate::engine::catalogue::Catalogue;
use crate::engine::tag::Tag;
use crate::engine::toolkit::Toolkit;
use crate::kernels::facts::{Extension, Facts};
use crate::kernels::inspect::fit::runs_on;
use crate::kernels::inspect::torch_symbols::{cxx11_abi, offered};

/// The memory in GB that one nvcc of large kernels takes.
const MEMORY_OF_A_JOB: u64 = 5;

/// The facts of a machine.
pub fn of_machine(facts: &Facts) -> Names {
    let mut names = Named::default();
    names.put("system", facts.system.clone());
    names.put("machine", facts.machine.clone());
    names.put("glibc", facts.glibc.clone());
    names.put("ninja", facts.ninja.clone());
    names.put("memory", facts.memory.map(|memory| memory.to_string()));
    names.put("jobs", jobs(facts).map(|jobs| jobs.to_string()));
    names.put("python", facts.python.as_ref().map(|python| python.version.clone()));
    for (name, value) in &facts.variables {
        names.put(&format!("variable.{}", name.to_lowercase().replace('_', "-")), Some(value.clone()));
    }
    for (name, version) in &facts.packages {
        names.put(&format!("package.{name}"), Some(version.clone()));
    }
    names.toolkits(facts);
    names.gpus(facts);
    names.torch(facts);
    names.extensions(facts);
    for compiler in &facts.compilers {
        names.put_first(&compiler.kind, compiler.version.clone());
    }
    if let Some(compiler) = facts.compiler() {
        names.put("compiler.path", Some(compiler.path.display().to_string()));
    }
    let shadow = facts.shadows.iter().find_map(|shadow| shadow.folder.as_ref());
    let nothing = facts.python.as_ref().map(|_| String::new());
    names.put("shadow.folder", shadow.map(|folder| folder.display().to_string()).or(nothing));
    names.0
}

fn jobs(facts: &Facts) -> Option<u64> {
    let by_memory = facts.memory?.saturating_sub(2) / MEMORY_OF_A_JOB;
    Some(by_memory.min(facts.cores.unwrap_or(1) as u64).max(1))
}

#[derive(Default)]
struct Named(Names);

impl Named {
    fn put(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value {
            self.0.insert(name.to_string(), vec![value]);
        }
    }

    fn put_first(&mut self, name: &str, value: String) {
        self.0.entry(name.to_string()).or_insert_with(|| vec![value]);
    }

    fn toolkits(&mut self, facts: &Facts) {
        let home = |nvcc: &std::path::Path| {
            Some(nvcc.parent()?.parent()?.display().to_string()).filter(|home| !home.is_empty())
        };
        if let Some(toolkit) = facts.toolkit() {
            self.put("nvcc", Some(toolkit.version.clone()));
            self.put("nvcc.path", Some(toolkit.nvcc.display().to_string()));
        }
        if let Some(toolkit) = facts.fitting_toolkit() {
            self.put("fitting", Some(toolkit.version.clone()));
            self.put("fitting.home", home(&toolkit.nvcc));
        }
        if let Some(toolkit) = facts.toolkits.last() {
            self.put("newest", Some(toolkit.version.clone()));
            self.put("newest.home", home(&toolkit.nvcc));
        }
        if facts.system.is_some() {
            // Looked for, and not there.
            ["fitting", "newest"].into_iter().for_each(|name| self.put_first(name, "none".to_string()));
        }
    }

    fn gpus(&mut self, facts: &Facts) {
        let known: Vec<String> = facts.gpus.iter().filter_map(|gpu| gpu.arch.clone()).collect();
        if !known.is_empty() {
            self.0.insert("gpu".to_string(), known);
        }
        self.put("gpu.name", facts.gpus.iter().find_map(|gpu| gpu.name.clone()));
        if let Some(driver) = &facts.driver {
            self.put("driver", driver.version.clone());
            self.put("driver.cuda", driver.cuda.clone());
        }
    }

    fn torch(&mut self, facts: &Facts) {
        let Some(torch) = &facts.torch else { return };
        let public = torch.version.split('+').next().unwrap_or(&torch.version).to_string();
        self.put("torch", Some(public));
        self.put("torch.build", Some(torch.version.clone()));
        self.put("torch.cuda", Some(torch.cuda.clone().unwrap_or_else(|| "none".to_string())));
        self.put("torch.abi", torch.cxx11_abi.map(abi));
        self.put("torch.codes", Some(torch.codes.join(" ")).filter(|codes| !codes.is_empty()));
        let gpu = facts.gpus.iter().find_map(|gpu| gpu.arch.as_ref()?.parse().ok());
        if let (Some(gpu), false) = (gpu, torch.codes.is_empty()) {
            self.put("torch.runs", Some(run(&torch.codes, gpu).to_string()));
        }
    }

    /// The first extension that cannot run on the first GPU, that lacks symbols of torch, or another.
    fn extensions(&mut self, facts: &Facts) {
        let gpu: Option<Arch> = facts.gpus.iter().find_map(|gpu| gpu.arch.as_ref()?.parse().ok());
        let with_code: Vec<&Extension> =
            facts.extensions.iter().filter(|extension| !extension.codes.is_empty()).collect();
        if let (Some(gpu), false) = (gpu, with_code.is_empty()) {
            let lame = with_code.iter().find(|extension| !run(&extension.codes, gpu));
            self.put("extensions.run", Some(lame.is_none().to_string()));
            if let Some(extension) = lame {
                self.extension("lame", extension);
            }
        }
        if let Some(extension) = facts.extensions.iter().find(|extension| !extension.missing.is_empty()) {
            self.extension("lacking", extension);
            self.put("lacking.symbol", extension.missing.first().cloned());
        } else if facts.torch.is_some() {
            self.put("lacking.package", Some(String::new()));
        }
    }

    fn extension(&mut self, name: &str, extension: &Extension) {
        self.put(&format!("{name}.package"), Some(extension.package.clone()));
        self.put(&format!("{name}.file"), Some(extension.file.display().to_string()));
        self.put(&format!("{name}.codes"), Some(extension.codes.join(" ")));
    }
}

fn abi(new: bool) -> String {
    if new { "new" } else { "old" }.to_string()
}

fn run(codes: &[String], gpu: Arch) -> bool {
    let codes = codes.iter().filter_map(|code| code.parse::<Code>().ok());
    codes.into_iter().any(|code| runs_on(code, gpu, Catalogue::shipped()))
}

/// What follows from the facts of a case: of architectures, toolkits, torch, symbols, signatures and wheels.
pub fn derived(names: &mut Names) {
    let catalogue = Catalogue::shipped();
    for name in ["arch", "gpu"] {
        match first(names, name).map(|value| value.parse()) {
            Some(Ok(arch)) => of_arch(names, name, arch),
            Some(Err(_)) => put(names, &format!("{name}.fate"), Some("unknown".to_string())),
            None => {}
        }
    }
    if let Some(toolkit) = first(names, "cuda").and_then(|value| value.parse::<Toolkit>().ok()) {
        let row = catalogue.toolkit(toolkit);
        put(names, "cuda.gcc", row.and_then(|row| row.gcc).map(|gcc| gcc.to_string()));
    }
    if let Some(torch) = first(names, "torch").and_then(|value| value.parse::<Tag>().ok()) {
        put(names, "torch.std", catalogue.cxx_standard(torch.version()).map(|standard| standard.to_string()));
    }
    if let Some(symbol) = first(names, "sym") {
        let range = offered(&symbol);
        put(names, "sym.torch", Some(range.to_string()).filter(|_| !range.is_open()));
        put(names, "sym.abi", cxx11_abi(&symbol).map(abi));
    }
    if let Some(signature) = first(names, "signature") {
        put(names, "signature.count", Some(signature.matches("arg").count().to_string()));
    }
    if let Some(wheel) = first(names, "whl") {
        wheel_tags(names, &wheel);
    }
    let python = first(names, "python");
    let minor = python.map(|version| version.split('.').take(2).collect::<Vec<_>>().join("."));
    put(names, "python.minor", minor);
    majors(names);
    put(names, "link.cudart", cudart(names));
}

/// The number in the name of the runtime's library: of the CUDA that is linked, seen in the log, or installed.
fn cudart(names: &Names) -> Option<String> {
    let major = ["link.cuda", "seen.cuda", "nvcc.major"].into_iter().find_map(|name| first(names, name))?;
    match major.parse::<u16>() {
        Ok(11) => Some("11.0".to_string()),
        Ok(12..) => Some(major),
        // Each minor release had a name of its own.
        _ => None,
    }
}

/// What the catalogue knows of an architecture.
fn of_arch(names: &mut Names, name: &str, arch: Arch) {
    let catalogue = Catalogue::shipped();
    let row = catalogue.arch(arch);
    let mut add = |part: &str, value: Option<String>| put(names, &format!("{name}.{part}"), value);
    add("fate", Some(fate(arch, catalogue).to_string()));
    add("since", row.and_then(|row| row.since).map(|toolkit| toolkit.to_string()));
    let last = row.and_then(|row| row.last).map(|toolkit| toolkit.to_string());
    add("last", last.or_else(|| last_of_old(arch).map(String::from)));
    add("renamed", row.and_then(|row| row.renamed_to).map(|arch| arch.to_string()));
    add("capability", Some(arch.capability()));
    add("gpus", row.map(|row| row.gpus.iter().take(3).cloned().collect::<Vec<_>>().join(", ")));
}

/// What the name of a wheel says: the Python of `cp310`, the processor of `linux_x86_64`.
fn wheel_tags(names: &mut Names, wheel: &str) {
    let tags: Vec<&str> = wheel.trim_end_matches(".whl").rsplit('-').take(3).collect();
    let [platform, _, python] = tags.as_slice() else { return };
    let digits = python.strip_prefix("cp").filter(|digits| digits.len() > 1 && digits.is_ascii());
    put(names, "whl.python", digits.map(|digits| format!("{}.{}", &digits[..1], &digits[1..])));
    let machines = [("x86_64", "x86_64"), ("amd64", "x86_64"), ("aarch64", "aarch64"), ("arm64", "aarch64")];
    let machine = machines.iter().find(|(ending, _)| platform.ends_with(ending));
    put(names, "whl.machine", machine.map(|(_, machine)| machine.to_string()));
}

/// `nvcc.major` of `nvcc`, and so on.
fn majors(names: &mut Names) {
    for name in ["nvcc", "torch.cuda", "driver.cuda", "gcc", "clang", "want", "built", "have", "fitting"] {
        let major = first(names, name).and_then(|value| value.split('.').next().map(String::from));
        put(names, &format!("{name}.major"), major.filter(|major| major.parse::<u16>().is_ok()));
    }
}

/// The last toolkit that compiled for an architecture that is older than all in the catalogue.
fn last_of_old(arch: Arch) -> Option<&'static str> {
    match arch.number {
        20 | 21 => Some("8.0"),
        30 | 32 => Some("10.2"),
        _ => None,
    }
}

/// `new`: toolkits from some release on have it; `old`: up to some release; `between`; `always`; `unknown`.
fn fate(arch: Arch, catalogue: &Catalogue) -> &'static str {
    match catalogue.arch(arch).map(|row| (row.since, row.last)) {
        None if last_of_old(arch).is_some() => "old",
        None => "unknown",
        Some((Some(_), None)) => "new",
        Some((None, Some(_))) => "old",
        Some((Some(_), Some(_))) => "between",
        Some((None, None)) => "always",
    }
}

fn first(names: &Names, name: &str) -> Option<String> {
    names.get(name)?.first().cloned()
}

fn put(names: &mut Names, name: &str, value: Option<String>) {
    if let Some(value) = value {
        names.insert(name.to_string(), vec![value]);
    }
}

/// The command that tells a fact which is not known.
pub fn how_to_know(name: &str) -> Option<&'static str> {
    let commands = BTreeMap::from([
        ("nvcc", "nvcc --version"),
        ("gpu", "nvidia-smi --query-gpu=name,compute_cap --format=csv"),
        ("driver", "nvidia-smi"),
        ("torch", "python -c \"import torch; print(torch.__version__, torch.version.cuda)\""),
        ("glibc", "ldd --version"),
        ("gcc", "gcc --version"),
        ("python", "python --version"),
        ("extensions", "mambapatch doctor"),
        ("lame", "mambapatch doctor"),
        ("lacking", "mambapatch doctor"),
        ("shadow", "mambapatch doctor"),
        ("newest", "mambapatch doctor"),
        ("fitting", "mambapatch doctor"),
        ("package", "pip list"),
        ("variable", "env"),
        ("jobs", "nproc; free -g"),
        ("system", "uname -a"),
    ]);
    commands.get(name.split('.').next()?).copied()
}
