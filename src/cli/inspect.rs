//! `inspect`: which GPU code compiled files hold, what they were built for, and which GPUs run them.

use serde_json::{Map, Value, json};

use super::Answer;
use super::args::InspectArgs;
use super::failure::Failure;
use super::json as documents;
use super::request::gpus;
use super::style::{BAD, DIM, GOOD, STRONG, WARN, columns, paint};
use super::terminal::Terminal;
use crate::checkout::Progress;
use crate::engine::arch::{Arch, Code};
use crate::engine::catalogue::Catalogue;
use crate::kernels::inspect::fatbin::GpuCode;
use crate::kernels::inspect::fit::{Fit, Verdict, fit};
use crate::kernels::inspect::links::{BuiltFor, built_for};
use crate::kernels::inspect::places::{Place, places};
use crate::kernels::inspect::{Binary, InspectError};

/// One file, and what was found in it.
struct Inspected {
    label: String,
    built: BuiltFor,
    binary: Binary,
    fits: Vec<(String, Fit)>,
}

/// What was found in all files.
#[derive(Default)]
struct Findings {
    with_code: Vec<Inspected>,
    without: Vec<Inspected>,
    broken: Vec<(String, InspectError)>,
}

/// Inspects what was named. A file named by itself must be readable; one that is found in a folder or wheel and is not
/// is shown, and makes the answer no.
pub fn inspect(args: &InspectArgs, terminal: &mut Terminal) -> Result<Answer, Failure> {
    let gpus = gpus(&args.gpu, Catalogue::shipped())?;
    let mut findings = Findings::default();
    for target in &args.targets {
        let places = places(target, args.python.as_deref())?;
        if places.iter().any(Place::is_packed) {
            terminal.progress(Progress::Step(format!("reading {target}")));
        }
        for (at, place) in places.iter().enumerate() {
            terminal.count(at, places.len());
            match (place.read(), places.len()) {
                (Ok(binary), _) => findings.add(&place.label, binary, &gpus),
                (Err(cause), 1) => return Err(Failure::Inspect { place: place.label.clone(), cause }),
                (Err(cause), _) => findings.broken.push((place.label.clone(), cause)),
            }
        }
    }
    if terminal.is_json() {
        terminal.answer(documents::text(&document(&findings)).as_bytes())?;
    } else {
        let verbose = terminal.verbose;
        terminal.show_long(&text(&findings, verbose))?;
    }
    Ok(findings.answer())
}

impl Findings {
    fn add(&mut self, label: &str, binary: Binary, gpus: &[(String, Arch)]) {
        let fits =
            gpus.iter().map(|(name, gpu)| (name.clone(), fit(&binary, *gpu, Catalogue::shipped()))).collect();
        let built = built_for(&binary.object, label);
        let has_code = !binary.code.is_empty();
        let inspected = Inspected { label: label.to_string(), built, binary, fits };
        if has_code { self.with_code.push(inspected) } else { self.without.push(inspected) }
    }

    /// No, where a file with GPU code does not run on a GPU that was named, or none has any, or one is broken.
    fn answer(&self) -> Answer {
        let asked = self.with_code.iter().chain(&self.without).any(|one| !one.fits.is_empty());
        let all_run = self.with_code.iter().all(|one| one.fits.iter().all(|(_, fit)| fit.runs()));
        let nothing_runs = asked && self.with_code.is_empty();
        if all_run && !nothing_runs && self.broken.is_empty() { Answer::Yes } else { Answer::No }
    }
}

/// What the libraries of one wheel hold.
pub struct Held(Findings);

impl Held {
    /// Of libraries that were read.
    pub fn of(libraries: Vec<(String, Binary)>) -> Self {
        let mut findings = Findings::default();
        libraries.into_iter().for_each(|(label, binary)| findings.add(&label, binary, &[]));
        Self(findings)
    }

    /// As a table.
    pub fn text(&self) -> String {
        text(&self.0, false)
    }

    /// As a document.
    pub fn document(&self) -> Value {
        document(&self.0)["files"].take()
    }
}

/// How many names of libraries without GPU code are shown.
const NAMED: usize = 4;

fn text(findings: &Findings, verbose: bool) -> String {
    let alone = findings.with_code.is_empty() && findings.without.len() == 1;
    let shown: Vec<&Inspected> =
        findings.with_code.iter().chain(findings.without.iter().filter(|_| alone || verbose)).collect();
    let mut text = shown.iter().map(|one| block(one, verbose)).collect::<Vec<_>>().join("\n");
    if !alone && !verbose && !findings.without.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&paint(DIM, &without(&findings.without)));
        text.push('\n');
    }
    for (label, cause) in &findings.broken {
        text.push_str(&format!("{} {label}: {cause}\n", paint(BAD, "not read:")));
    }
    text
}

fn without(files: &[Inspected]) -> String {
    let names: Vec<&str> = files
        .iter()
        .take(NAMED)
        .map(|one| one.label.rsplit(['/', '\\']).next().unwrap_or(&one.label))
        .collect();
    let more = match files.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("no GPU code in {}{more}", names.join(", "))
}

fn block(one: &Inspected, verbose: bool) -> String {
    let code = &one.binary.code;
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut row = |name: &str, text: String| rows.push(vec![paint(DIM, name), text]);
    if code.is_empty() {
        let unknown = !one.binary.object.has_sections;
        let text = if unknown { "cannot be told: the file has no table of sections" } else { "none" };
        row("GPU code", text.to_string());
    } else {
        row("machine code", codes(code, |code| matches!(code, Code::Sass(_))));
        row("PTX", ptx(&one.binary));
        for (codes, count) in code.parts.iter().filter(|_| verbose) {
            row(
                &format!("{count} {}", if *count == 1 { "part" } else { "parts" }),
                codes.iter().map(Code::to_string).collect::<Vec<_>>().join(" "),
            );
        }
    }
    row("built for", built(&one.built));
    for (name, fit) in &one.fits {
        row(&format!("on {name}"), verdict(fit));
    }
    format!("{}\n{}", paint(STRONG, &one.label), columns(&rows, "  "))
}

/// The arches of one kind of code; how many parts have it, where not all do.
fn codes(code: &GpuCode, wanted: fn(&Code) -> bool) -> String {
    let whole = code.count();
    let name = |(code, count): (Code, usize)| match count {
        count if count < whole => format!("{} ({count} of {whole} parts)", code.arch()),
        _ => code.arch().to_string(),
    };
    let names: Vec<String> = code.pieces().into_iter().filter(|(code, _)| wanted(code)).map(name).collect();
    if names.is_empty() { "none".to_string() } else { names.join(" ") }
}

fn ptx(binary: &Binary) -> String {
    let is_ptx = |code: &Code| matches!(code, Code::Ptx(_));
    let own = codes(&binary.code, is_ptx);
    let linked = codes(&binary.relocatable, is_ptx);
    if own == "none" && linked != "none" {
        return format!("{linked}, in the parts that nvlink linked");
    }
    own
}

fn verdict(fit: &Fit) -> String {
    let (style, words) = match fit.verdict {
        Verdict::Native => (GOOD, "runs natively"),
        Verdict::Jit => (WARN, "runs by JIT"),
        Verdict::Partly => (WARN, "runs partly"),
        Verdict::No => (BAD, "does not run"),
    };
    format!("{}: {}", paint(style, words), fit.why)
}

fn built(built: &BuiltFor) -> String {
    let torch = built.torch.map(|range| match (built.stable, range.is_open()) {
        (true, _) => "torch by its stable interface".to_string(),
        (false, true) => "torch, release not known".to_string(),
        (false, false) => format!("torch {range}"),
    });
    let abi =
        built.cxx11_abi.map(|new| format!("C++ strings of the {} ABI", if new { "new" } else { "old" }));
    let parts = [
        torch,
        abi,
        built.cuda.map(|major| format!("CUDA {major}")),
        Some(built.machine.clone()).filter(|machine| !machine.is_empty()),
        built.glibc.as_ref().map(|glibc| format!("glibc {glibc}")),
        built.python.as_ref().map(|python| format!("Python {python}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "nothing that it tells".to_string() } else { parts.join(", ") }
}

fn document(findings: &Findings) -> Value {
    let files = findings.with_code.iter().chain(&findings.without);
    json!({
        "files": files.map(file).collect::<Vec<_>>(),
        "broken": findings.broken.iter().map(|(label, cause)| {
            json!({ "file": label, "cause": cause.to_string() })
        }).collect::<Vec<_>>(),
    })
}

fn file(one: &Inspected) -> Value {
    let version = one.binary.code.ptx_version.max(one.binary.relocatable.ptx_version);
    json!({
        "file": one.label,
        "codes": pieces(&one.binary.code),
        "parts": one.binary.code.parts.iter().map(|(codes, count)| {
            json!({ "codes": codes.iter().map(Code::to_string).collect::<Vec<_>>(), "count": count })
        }).collect::<Vec<_>>(),
        "relocatable": pieces(&one.binary.relocatable),
        "ptx-version": version.map(|(major, minor)| format!("{major}.{minor}")),
        "built-for": built_document(&one.built),
        "gpus": one.fits.iter().map(|(name, fit)| json!({
            "gpu": name,
            "arch": fit.gpu.to_string(),
            "verdict": match fit.verdict {
                Verdict::Native => "native",
                Verdict::Jit => "jit",
                Verdict::Partly => "partly",
                Verdict::No => "no",
            },
            "why": fit.why,
        })).collect::<Vec<_>>(),
    })
}

fn pieces(code: &GpuCode) -> Value {
    Value::Object(
        code.pieces().iter().map(|(code, count)| (code.to_string(), json!(count))).collect::<Map<_, _>>(),
    )
}

/// What a file was built for, as a document.
pub fn built_document(built: &BuiltFor) -> Value {
    json!({
        "torch": built.torch.map(|range| json!({
            "since": range.since.map(|minor| minor.to_string()),
            "last": range.last.map(|minor| minor.to_string()),
            "stable": built.stable,
        })),
        "cxx11-abi": built.cxx11_abi,
        "cuda": built.cuda,
        "machine": built.machine,
        "glibc": built.glibc.as_ref().map(ToString::to_string),
        "libstdcxx": built.libstdcxx.as_ref().map(ToString::to_string),
        "python": built.python,
    })
}
