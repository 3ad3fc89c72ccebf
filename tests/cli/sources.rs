//! Small sources in the shape of the upstreams' releases, written for these tests.

#[path = "../families/text.rs"]
mod text;

/// A guard (an empty one is none), and the architectures under it.
pub type Blocks = &'static [(&'static str, &'static [u32])];

const JETSON: &[u32] = &[53, 62, 70, 72, 80, 87];
const FROM_11_8: (&str, &[u32]) = (r#">= Version("11.8")"#, &[90]);
const FROM_12_8: (&str, &[u32]) = (r#">= Version("12.8")"#, &[100, 120]);
const FROM_13_0: (&str, &[u32]) = (r#">= Version("13.0")"#, &[103, 110, 121]);
const UNTIL_12_9: (&str, &[u32]) = (r#"<= Version("12.9")"#, &[53, 62, 70, 72]);

const A: Blocks = &[("", &[70, 80]), FROM_11_8];
const C: Blocks = &[("", JETSON), FROM_11_8];
const D: Blocks = &[("", JETSON), FROM_11_8, (FROM_12_8.0, &[100])];
const E: Blocks = &[UNTIL_12_9, ("", &[75, 80, 87]), FROM_11_8, FROM_12_8, FROM_13_0];
const F: Blocks = &[("", &[75, 80, 87]), FROM_11_8, FROM_12_8, FROM_13_0];

/// A release: its tag, its architectures, whether there is a branch for ROCm, and its CUDA source.
pub struct Release {
    /// Its name in git.
    pub tag: &'static str,
    blocks: Blocks,
    rocm: bool,
    scan: &'static str,
}

const fn release(tag: &'static str, blocks: Blocks, rocm: bool, scan: &'static str) -> Release {
    Release { tag, blocks, rocm, scan }
}

/// Releases of mamba-ssm, the oldest first.
pub const MAMBA: [Release; 6] = [
    release("v1.0.0", A, false, OLD_SCAN),
    release("v2.0.4", C, false, OLD_SCAN),
    release("v2.2.4", C, true, SCAN),
    release("v2.2.5", D, true, SCAN),
    release("v2.2.6", E, true, NEW_SCAN),
    release("v2.3.2.post1", F, true, NEW_SCAN),
];

/// Releases of causal-conv1d, the oldest first.
pub const CAUSAL: [Release; 4] = [
    release("v1.0.0", A, false, ""),
    release("v1.4.0", C, true, ""),
    release("v1.5.3", E, true, ""),
    release("v1.7.0", F, true, ""),
];

impl Release {
    /// The tree of this release of `package`.
    pub fn files(&self, package: &str) -> Vec<(String, Vec<u8>)> {
        let mut files = vec![
            ("setup.py".to_string(), setup(package, self.blocks, self.rocm).into_bytes()),
            ("README.md".to_string(), b"small\n".to_vec()),
            (format!("csrc/{package}.cu"), b"__global__ void kernel() {}\n".to_vec()),
        ];
        if !self.scan.is_empty() {
            files.push(("csrc/selective_scan/reverse_scan.cuh".to_string(), self.scan.into()));
        }
        files
    }
}

/// The setup.py of mamba-ssm v2.2.4.
pub fn mamba_setup() -> String {
    setup("mamba_ssm", C, true)
}

/// A setup.py in the shape of a family.
fn setup(package: &str, blocks: Blocks, rocm: bool) -> String {
    let depth = if rocm { "        " } else { "    " };
    let blocks: String = blocks.iter().map(|(guard, arches)| block(guard, arches, depth)).collect();
    let cuda = text::CUDA.replace('@', depth) + &blocks;
    let (home, flags, arguments) = match rocm {
        true => (", HIP_HOME", format!("{}{cuda}", text::ROCM), text::ARGUMENTS_WITH_ROCM),
        false => ("", cuda, text::ARGUMENTS),
    };
    let head = text::HEAD.replace('@', home);
    let head = head.replace("here = ", &format!("PACKAGE_NAME = \"{package}\"\n\nhere = "));
    let whole = format!("{head}{flags}\n{arguments}{}", text::TAIL);
    if rocm { whole } else { without_rocm(&whole) }
}

/// The oldest releases know nothing of ROCm.
fn without_rocm(text: &str) -> String {
    let text = text.replace("HIP_BUILD = bool(torch.version.hip)\n", "");
    text.replace("f\"hip{torch.version.hip[:1]}\" if HIP_BUILD else ", "")
}

fn block(guard: &str, arches: &[u32], depth: &str) -> String {
    let inner = if guard.is_empty() { "" } else { "    " };
    let append = |text: &str| format!("{depth}{inner}cc_flag.append(\"{text}\")\n");
    let pair = |arch: &u32| append("-gencode") + &append(&format!("arch=compute_{arch},code=sm_{arch}"));
    let pairs: String = arches.iter().map(pair).collect();
    if guard.is_empty() { pairs } else { format!("{depth}if bare_metal_version {guard}:\n{pairs}") }
}

const OLD_SCAN: &str = r#"#pragma once

#include <cub/util_ptx.cuh>

template <int THREADS, typename T>
struct LastOfBlock {
    T *values;
    unsigned lane;

    __device__ __forceinline__ explicit LastOfBlock(T *values) : values(values), lane(cub::LaneId()) {}

    __device__ __forceinline__ T operator()(T value) {
        values[threadIdx.x] = value;
        cub::CTA_SYNC();
        T found = values[THREADS - 1];
        cub::CTA_SYNC();
        return lane == 0 ? found : value;
    }
};
"#;

const SCAN: &str = r#"#pragma once

#ifdef USE_ROCM
    #include <hipcub/hipcub.hpp>
    namespace cub = hipcub;
    #define WARP_THREADS 64
#else
    #include <cub/util_ptx.cuh>
    #define WARP_THREADS 32
#endif

template <int THREADS, typename T>
struct LastOfBlock {
    T *values;
    unsigned lane;

    __device__ __forceinline__ explicit LastOfBlock(T *values) : values(values), lane(cub::LaneId()) {}

    __device__ __forceinline__ T operator()(T value) {
        values[threadIdx.x] = value;
        cub::CTA_SYNC();
        T found = values[THREADS - 1];
        cub::CTA_SYNC();
        return lane == 0 ? found : value;
    }
};
"#;

const NEW_SCAN: &str = r#"#pragma once

#define WARP_THREADS 32

template <int THREADS, typename T>
struct LastOfBlock {
    T *values;
    unsigned lane;

    __device__ __forceinline__ explicit LastOfBlock(T *values)
        : values(values), lane(threadIdx.x & (WARP_THREADS - 1)) {}

    __device__ __forceinline__ T operator()(T value) {
        values[threadIdx.x] = value;
        __syncthreads();
        T found = values[THREADS - 1];
        __syncthreads();
        return lane == 0 ? found : value;
    }
};
"#;
