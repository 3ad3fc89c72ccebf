//! What was typed becomes what is meant: architectures, environment, patches.

use super::args::WishArgs;
use super::failure::Failure;
use crate::engine::arch::{Arch, Code, parse_codes};
use crate::engine::catalogue::{Catalogue, GpuMatch};
use crate::engine::environment::Environment;
use crate::engine::ops::gencode::ArchWish;
use crate::engine::patchset::select::Request;
use crate::kernels::host::Host;

/// A word that names no architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownArch {
    /// What was typed.
    pub text: String,
    /// What may be meant.
    pub nearest: Vec<String>,
    /// Several GPUs have that name.
    pub ambiguous: bool,
}

/// The request that was typed, filled up from the host where that is wanted.
pub fn request(args: &WishArgs, catalogue: &Catalogue) -> Result<(Request, Vec<String>), Failure> {
    if args.python.is_some() && !args.host {
        return Err(Failure::PythonWithoutHost);
    }
    let natives = [&args.add_arch, &args.drop_arch, &args.only_arch];
    let asks_native = natives.into_iter().flatten().any(|arch| arch.trim() == "native");
    let host = (args.host || asks_native).then(|| Host::ask(args.python.as_deref()));
    let native = host.as_ref().map_or(&[][..], |host| &host.gpus);
    let wish = ArchWish {
        add: codes("--add-arch", &args.add_arch, catalogue, native)?,
        drop: codes("--drop-arch", &args.drop_arch, catalogue, native)?,
        only: codes("--only-arch", &args.only_arch, catalogue, native)?,
    };
    let mut request = Request {
        wish,
        environment: Environment {
            cuda: args.cuda.clone(),
            torch: args.torch.clone(),
            ..Environment::default()
        },
        patches: args.patch.clone(),
        skip: args.skip_patch.clone(),
        accept_advisory: args.accept_advisory,
    };
    let notes = match host.filter(|_| args.host) {
        Some(host) => fill(&mut request, host)?,
        None => Vec::new(),
    };
    Ok((request, notes))
}

/// Takes from the host what was not given; says what is missing there.
fn fill(request: &mut Request, host: Host) -> Result<Vec<String>, Failure> {
    if host.is_empty() {
        return Err(Failure::EmptyHost);
    }
    let mut notes = vec![format!("this host: {}", host.summary())];
    let missing = host.missing();
    if !missing.is_empty() {
        notes.push(format!("not found on this host, so not known: {}", missing.join(", ")));
    }
    if request.wish.is_empty() {
        request.wish.add = host.gpus.iter().copied().map(Code::Sass).collect();
    }
    let environment = &mut request.environment;
    if environment.cuda.is_empty() {
        environment.cuda = host.toolkit.into_iter().collect();
    }
    environment.torch = environment.torch.take().or(host.torch);
    environment.python = host.python;
    environment.machine = Some(host.machine);
    environment.packages = host.packages;
    Ok(notes)
}

/// What was typed behind an option.
fn codes(
    option: &'static str,
    texts: &[String],
    catalogue: &Catalogue,
    native: &[Arch],
) -> Result<Vec<Code>, Failure> {
    let mut codes = Vec::new();
    // A value of TORCH_CUDA_ARCH_LIST can be pasted: 8.0;9.0+PTX.
    for text in texts.iter().flat_map(|text| text.split(';')) {
        match text.trim() {
            "native" if native.is_empty() => return Err(Failure::NoGpu { option }),
            "native" => codes.extend(native.iter().copied().map(Code::Sass)),
            text => codes.extend(one(text, catalogue)?),
        }
    }
    codes.sort();
    codes.dedup();
    Ok(codes)
}

/// The GPUs that were typed, each with its architecture; `native` is those of this host.
pub fn gpus(texts: &[String], catalogue: &Catalogue) -> Result<Vec<(String, Arch)>, Failure> {
    let mut gpus = Vec::new();
    for text in texts {
        let arches = match text.trim() {
            "native" => codes("--gpu", std::slice::from_ref(text), catalogue, &Host::ask(None).gpus)?,
            _ => codes("--gpu", std::slice::from_ref(text), catalogue, &[])?,
        };
        let named = |arch: Arch| match parse_codes(text) {
            Ok(_) => arch.to_string(),
            Err(_) => format!("{} ({arch})", text.trim()),
        };
        gpus.extend(arches.iter().map(|code| (named(code.arch()), code.arch())));
    }
    Ok(gpus)
}

/// An architecture that some toolkit knows, or the GPU of a name.
fn one(text: &str, catalogue: &Catalogue) -> Result<Vec<Code>, Failure> {
    let known = |codes: &Vec<Code>| codes.iter().all(|code| catalogue.arch(code.arch()).is_some());
    if let Some(codes) = parse_codes(text).ok().filter(known) {
        return Ok(codes);
    }
    let unknown = |nearest, ambiguous| UnknownArch { text: text.to_string(), nearest, ambiguous };
    let names = |gpus: Vec<crate::engine::catalogue::Gpu<'_>>| {
        gpus.iter().map(|gpu| format!("{} ({})", gpu.arch, gpu.name)).collect::<Vec<_>>()
    };
    match catalogue.find_gpu(text) {
        GpuMatch::One(gpu) => Ok(vec![Code::Sass(gpu.arch)]),
        GpuMatch::Several(gpus) => Err(Failure::UnknownArch(unknown(names(gpus), true))),
        GpuMatch::Unknown(gpus) => {
            let mut nearest: Vec<String> = catalogue
                .nearest_arches(text.trim_start_matches(['s', 'm']))
                .iter()
                .map(Arch::to_string)
                .collect();
            nearest.extend(names(gpus));
            Err(Failure::UnknownArch(unknown(nearest, false)))
        }
    }
}
