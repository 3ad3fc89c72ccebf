//! Units that compile fast enough to be tried before every change.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;

use super::compiler::Compiler;
use super::harness::say;
use super::harness::toolchain::Toolchain;
use super::measured::{Fate, measure};
use super::trees::Trees;
use super::units::Unit;

/// The name and version of a source distribution.
type Sdist = (&'static str, &'static str);

const DISPATCH: &str = "no suitable conversion function from \"const at::DeprecatedTypeProperties\"";
const NO_THC: &str = "THC/THC.h: No such file";
const CORRELATION: Sdist = ("spatial-correlation-sampler", "0.0.8");
const DCN: Sdist = ("DCNv2", "0.4");
const FAST: Sdist = ("pytorch-fast-transformers", "0.4.0");
const GPTQ: Sdist = ("auto-gptq", "0.7.1");
const RENDERER: Sdist = ("neural-renderer-pytorch", "1.1.3");
const VLLM: Sdist = ("vllm", "0.4.2");

/// Each stops, with this text, until the program has patched its source distribution.
const CHOSEN: [(Sdist, &str, &str); 9] = [
    (CORRELATION, "Correlation_Module/correlation_sampler.cpp", "AT_CHECK"),
    (DCN, "src/cuda/dcn_v2_im2col_cuda.cu", NO_THC),
    (DCN, "src/cuda/dcn_v2_psroi_pooling_cuda.cu", NO_THC),
    (FAST, "fast_transformers/causal_product/causal_product_cuda.cu", "'compute_50'"),
    (GPTQ, "autogptq_extension/cuda_64/autogptq_cuda_kernel_64.cu", DISPATCH),
    (RENDERER, "neural_renderer/cuda/load_textures_cuda.cpp", "AT_CHECK"),
    (RENDERER, "neural_renderer/cuda/create_texture_image_cuda_kernel.cu", DISPATCH),
    (RENDERER, "neural_renderer/cuda/rasterize_cuda_kernel.cu", DISPATCH),
    (VLLM, "csrc/moe/topk_softmax_kernels.cu", "namespace \"cub\" has no member"),
];

/// Measures the chosen units of one source distribution; what is wrong with them.
fn faults(sdist: Sdist, compiler: &Compiler) -> Vec<String> {
    let chosen: Vec<_> = CHOSEN.iter().filter(|(of, ..)| *of == sdist).collect();
    let wanted = |unit: &Unit| chosen.iter().any(|(_, path, _)| *path == unit.path);
    let measured = measure(sdist.0, &Trees::of_sdist(sdist.0, sdist.1), compiler, &wanted);
    let fault = |path: &str, text: &str| {
        let row = measured.rows.iter().find(|row| row.unit.path == path);
        let Some(row) = row else { return Some(format!("{path} is no unit: {:?}", measured.notes)) };
        let stops = row.before.errors.iter().any(|said| said.message.contains(text));
        let said = format!("{path}: {:?} before, {:?} after", row.before.errors, row.after.errors);
        (!stops || row.fate != Fate::Repaired).then_some(said)
    };
    chosen.iter().filter_map(|(_, path, text)| fault(path, text)).collect()
}

#[test]
#[ignore = "needs nvcc 13.0, 3.7 GB of the package index"]
fn chosen_units_stop_before_and_compile_after() {
    let toolchain = Toolchain::get();
    let compiler = Compiler::new(toolchain);
    let left: Mutex<BTreeSet<Sdist>> = Mutex::new(CHOSEN.iter().map(|(sdist, ..)| *sdist).collect());
    let next = || left.lock().expect("no panic").pop_first();
    let work = || std::iter::from_fn(next).flat_map(|sdist| faults(sdist, &compiler)).collect::<Vec<_>>();
    let workers = thread::available_parallelism().map_or(1, usize::from).min(4);
    let faults: Vec<String> = thread::scope(|scope| {
        let started: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        started.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    say(&format!("{} units stop before and compile after", CHOSEN.len()));
}
