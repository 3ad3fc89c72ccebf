//! Small upstreams for the blocks: two git repositories and a package index, in the shape of the real ones.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the sources come from.
pub struct Upstreams {
    folder: tempfile::TempDir,
    /// Repository (`state-spaces/mamba`), and where it lies.
    repositories: Vec<(&'static str, PathBuf)>,
    mirrors: Option<PathBuf>,
}

/// Guards, and the architectures under them; an empty guard is none.
type Blocks = &'static [(&'static str, &'static [u32])];

const FROM_11_8: (&str, &[u32]) = (">= Version(\"11.8\")", &[90]);
const FROM_12_8: (&str, &[u32]) = (">= Version(\"12.8\")", &[100, 120]);
const FROM_13_0: (&str, &[u32]) = (">= Version(\"13.0\")", &[103, 110, 121]);
const JETSON: (&str, &[u32]) = ("", &[53, 62, 70, 72, 80, 87]);
const OLD: Blocks = &[("", &[70, 80]), FROM_11_8];
const UNTIL_90: Blocks = &[JETSON, FROM_11_8];
const UNTIL_100: Blocks = &[JETSON, FROM_11_8, (">= Version(\"12.8\")", &[100])];
const MAMBA_NEW: Blocks =
    &[("<= Version(\"12.9\")", &[53, 62, 70, 72]), ("", &[75, 80, 87]), FROM_11_8, FROM_12_8, FROM_13_0];
const CAUSAL_NEW: Blocks =
    &[("<= Version(\"12.9\")", &[62, 70, 72]), ("", &[75, 80, 87]), FROM_11_8, FROM_12_8, FROM_13_0];

const MAMBA: [(&str, Blocks); 6] = [
    ("v1.0.0", OLD),
    ("v2.1.0", UNTIL_90),
    ("v2.2.4", UNTIL_90),
    ("v2.2.5", UNTIL_100),
    ("v2.2.6", MAMBA_NEW),
    ("v2.3.1", MAMBA_NEW),
];
const CAUSAL: [(&str, Blocks); 4] =
    [("v1.0.0", OLD), ("v1.5.0.post8", UNTIL_90), ("v1.5.1", UNTIL_100), ("v1.5.3", CAUSAL_NEW)];

impl Upstreams {
    /// Small sources, made for this run.
    pub fn small() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        let repositories =
            vec![("state-spaces/mamba", place("mamba")), ("Dao-AILab/causal-conv1d", place("causal-conv1d"))];
        for (tag, blocks) in MAMBA {
            let scan = if blocks.len() > UNTIL_100.len() { cured(SCAN) } else { SCAN.to_string() };
            let files = [
                ("setup.py", setup("mamba_ssm", tag, blocks)),
                ("csrc/selective_scan/reverse_scan.cuh", scan),
            ];
            release(&repositories[0].1, tag, &files);
        }
        for (tag, blocks) in CAUSAL {
            let files = [
                ("setup.py", setup("causal_conv1d", tag, blocks)),
                ("csrc/causal_conv1d_fwd.cu", "\n".to_string()),
            ];
            release(&repositories[1].1, tag, &files);
        }
        index(&place("index"));
        Self { folder, repositories, mirrors: None }
    }

    /// The real ones, from a folder of mirrors; the index stays a small one.
    pub fn real(mirrors: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mirrors = mirrors.canonicalize().expect("MAMBAPATCH_MIRRORS");
        let names = ["state-spaces/mamba", "Dao-AILab/causal-conv1d"];
        let place = |name: &str| mirrors.join(name.replace('/', "+")).join("repo");
        let repositories = names.into_iter().map(|name| (name, place(name))).collect();
        index(&folder.path().join("index"));
        Self { folder, repositories, mirrors: Some(mirrors) }
    }

    /// A user's configuration of git: a name, and the repositories on this machine instead of those far away.
    pub fn git_config(&self) -> String {
        let user = "[user]\n\tname = You\n\temail = you@host.test\n[init]\n\tdefaultBranch = main\n\
                    [advice]\n\tdetachedHead = false\n[safe]\n\tdirectory = *\n";
        let instead = |(name, place): &(&str, PathBuf)| {
            format!("[url \"file://{}\"]\n\tinsteadOf = https://github.com/{name}\n", place.display())
        };
        std::iter::once(user.to_string()).chain(self.repositories.iter().map(instead)).collect()
    }

    /// The address of the package index.
    pub fn index_url(&self) -> String {
        format!("file://{}", self.folder.path().join("index").display())
    }

    /// The folder of mirrors, where the sources are the real ones.
    pub fn mirrors(&self) -> Option<&Path> {
        self.mirrors.as_deref()
    }
}

/// Writes a file and the folders above it.
pub fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, bytes).expect("a file");
}

fn release(folder: &Path, tag: &str, files: &[(&str, String)]) {
    if !folder.join(".git").exists() {
        std::fs::create_dir_all(folder).expect("a folder");
        git(folder, &["init", "-q"]);
    }
    files.iter().for_each(|(path, text)| write(&folder.join(path), text.as_bytes()));
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-q", "-m", &format!("Bump to {tag}")]);
    git(folder, &["tag", tag]);
}

fn git(folder: &Path, arguments: &[&str]) {
    let who =
        ["-c", "user.name=Upstream", "-c", "user.email=upstream@host.test", "-c", "core.autocrlf=false"];
    let mut command = Command::new("git");
    command.args(who).args(["-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false"]).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").current_dir(folder);
    let output = command.output().expect("git");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A package index in a folder, with a source distribution as old ones are: no kernels.
fn index(folder: &Path) {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    let mut tar = tar::Builder::new(gzip);
    let info = "Metadata-Version: 2.1\nName: mamba_ssm\nVersion: 2.2.4\n\n".to_string();
    for (path, text) in [("setup.py", setup("mamba_ssm", "v2.2.4", UNTIL_90)), ("PKG-INFO", info)] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append_data(&mut header, format!("mamba_ssm-2.2.4/{path}"), text.as_bytes()).expect("an entry");
    }
    let bytes = tar.into_inner().expect("tar").finish().expect("gzip");
    write(&folder.join("mamba-ssm/mamba_ssm-2.2.4.tar.gz"), &bytes);
}

/// A small setup.py in the shape of the upstreams'; old releases have no branch for ROCm.
fn setup(package: &str, tag: &str, blocks: Blocks) -> String {
    let (rocm, depth) = if tag == "v1.0.0" { ("", "    ") } else { (ROCM, "        ") };
    let flags: String = blocks.iter().map(|(guard, arches)| block(guard, arches, depth)).collect();
    let head = HEAD.replace("= \"PACKAGE\"", &format!("= \"{package}\""));
    let tail = TAIL.replace("VERSION", tag.trim_start_matches('v'));
    format!("{head}{rocm}{}{flags}{tail}", CUDA.replace('@', depth))
}

fn block(guard: &str, arches: &[u32], depth: &str) -> String {
    let inner = if guard.is_empty() { "" } else { "    " };
    let append = |text: &str| format!("{depth}{inner}cc_flag.append(\"{text}\")\n");
    let pair = |arch: &u32| append("-gencode") + &append(&format!("arch=compute_{arch},code=sm_{arch}"));
    let pairs: String = arches.iter().map(pair).collect();
    if guard.is_empty() { pairs } else { format!("{depth}if bare_metal_version {guard}:\n{pairs}") }
}

const HEAD: &str = r#"import os

import torch
from packaging.version import Version
from setuptools import setup
from torch.utils.cpp_extension import CUDA_HOME, BuildExtension, CUDAExtension

PACKAGE_NAME = "PACKAGE"
HIP_BUILD = bool(torch.version.hip)
ext_modules = []

if os.getenv("SKIP_CUDA_BUILD", "FALSE") != "TRUE":
    cc_flag = []
"#;

const ROCM: &str = r#"    if HIP_BUILD:
        cc_flag.append("-DBUILD_PYTHON_PACKAGE")
    else:
"#;

const CUDA: &str = r#"@bare_metal_version = nvcc_version(CUDA_HOME)
@if bare_metal_version < Version("11.6"):
@    raise RuntimeError("CUDA 11.6 or newer is needed")
"#;

const TAIL: &str = r#"


    # the flags are complete
    arguments = {"cxx": ["-O3"], "nvcc": ["-O3", "--threads", "4"] + cc_flag}
    ext_modules.append(CUDAExtension(PACKAGE_NAME, ["csrc/small.cu"], extra_compile_args=arguments))

setup(name=PACKAGE_NAME, version="VERSION", ext_modules=ext_modules, cmdclass={"build_ext": BuildExtension})
"#;

const SCAN: &str = r#"#pragma once

#include <cub/cub.cuh>

template <typename T, int LOGICAL_WARP_THREADS>
struct WarpReverseScan {
    enum { WARP_THREADS = CUB_WARP_THREADS(0) };

    unsigned int lane_id;
    unsigned int warp_id;

    explicit __device__ __forceinline__
    WarpReverseScan()
        : lane_id(cub::LaneId())
        , warp_id(lane_id / LOGICAL_WARP_THREADS)
    {}
};

template <typename T>
__device__ void exclusive_reverse_scan(T *shared, unsigned int linear_tid)
{
    shared[linear_tid] = T();
    cub::CTA_SYNC();
    if (linear_tid < 32) {
        shared[linear_tid] = shared[linear_tid + 32];
    }
    cub::CTA_SYNC();
}
"#;

/// As upstream wrote it for CUDA 13.
fn cured(scan: &str) -> String {
    scan.replace("cub::CTA_SYNC()", "__syncthreads()").replace("cub::LaneId()", "threadIdx.x & 0x1f")
}
