//! Trees of no known upstream: a plain folder, a checkout, a folder of a repository, an archive.

use crate::sources::mamba_setup;
use crate::world::{World, tar_gz};

const SETUP: &[u8] = b"from setuptools import setup\nfrom torch.utils.cpp_extension import CUDAExtension\n\
    setup(ext_modules=[CUDAExtension('ops', ['ops.cpp', 'ops.cu'])])\n";
const OPS: &[u8] = b"void f(bool x) { AT_CHECK(x, \"no\"); }\n";
const PATCHED: &str = "void f(bool x) { TORCH_CHECK(x, \"no\"); }\n";
const APPLY: [&str; 4] = ["apply", "./ext", "--torch", "2.11"];

/// A folder with one extension.
fn plain(world: &World, folder: &str) {
    world.write(&format!("{folder}/setup.py"), SETUP);
    world.write(&format!("{folder}/ops.cpp"), OPS);
    world.write(&format!("{folder}/ops.cu"), "__global__ void k() {}\n");
}

#[test]
fn a_plain_folder_is_patched_in_place_and_can_be_taken_back() {
    let world = World::bare();
    plain(&world, "work/ext");
    let run = world.run(&APPLY).exits(0);
    run.shows(&["+++ b/ops.cpp"])
        .says(&[
            "note: no known upstream: patched as any-extension",
            "done: files in ",
            "to take it back: patch -p1",
        ])
        .says(&["\nnext\n  cd ", "pip install --no-build-isolation --no-cache-dir --no-deps .\n"])
        .omits(&["is CUDA"]);
    assert_eq!(world.text("work/ext/ops.cpp"), PATCHED);
    world.run_without_trace(&APPLY).exits(0).says(&["nothing to do: ext is as it should be"]);
    let reverse =
        std::fs::read_dir(world.path("state/reverse")).expect("state").flatten().next().expect("kept");
    let patch = reverse.path().display().to_string();
    world.git("work/ext", &["apply", &patch]);
    assert_eq!(world.read("work/ext/ops.cpp"), OPS);
}

#[test]
fn a_checkout_gets_a_branch_with_a_commit_a_patch() {
    let world = World::bare();
    plain(&world, "work/ext");
    world.checkout("work/ext", &[]);
    world.run(&APPLY).exits(0).says(&["done: branch mambapatch/", "+torch2.11 in ", ", 1 commit\n"]);
    assert_eq!(world.text("work/ext/ops.cpp"), PATCHED);
    assert_eq!(
        world.git("work/ext", &["log", "--format=%s", "main.."]),
        "Use TORCH_CHECK instead of AT_CHECK"
    );
    let trailers = world.git("work/ext", &["log", "-1", "--format=%(trailers:only,unfold)"]);
    assert!(trailers.starts_with("Patch-Set: torch-api/at-check\n"), "{trailers}");
}

#[test]
fn links_and_utf_16_are_not_looked_at_and_named() {
    let world = World::bare();
    plain(&world, "work/ext");
    std::os::unix::fs::symlink("../elsewhere/setup.py", world.path("work/ext/setup_cuda.py")).expect("link");
    let wide: Vec<u8> = "\u{feff}x = 1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    world.write("work/ext/wide.py", &wide);
    world.run(&["apply", "./ext", "--torch", "2.11", "--dry-run"]).exits(0).says(&[
        "left out, as they are symbolic links: setup_cuda.py\n",
        "wide.py is written in UTF-16 and was not looked at\n",
    ]);
}

#[test]
fn submodules_that_may_be_extensions_are_named() {
    let world = World::bare();
    for one in ["ext", "pybind11"] {
        plain(&world, &format!("work/{one}"));
        world.checkout(&format!("work/{one}"), &[]);
    }
    world.checkout("work/paper", &[("train.py", b"import ext\n")]);
    for one in ["ext", "pybind11"] {
        let folder = format!("submodules/{one}");
        let add =
            ["-c", "protocol.file.allow=always", "submodule", "add", "-q", &format!("../{one}"), &folder];
        world.git("work/paper", &add);
    }
    world.git("work/paper", &["commit", "-qam", "submodules"]);
    let apply = ["apply", "./paper", "--torch", "2.11"];
    let note = "submodules/ext is a git submodule, which is patched by itself: give mambapatch its folder";
    world.run(&apply).exits(0).says(&[note, "there is no CUDA extension"]).omits(&["pybind11"]);
    world.run(&["apply", "./paper/submodules/ext", "--torch", "2.11", "--dry-run"]).says(&["TORCH_CHECK"]);
}

#[test]
fn a_folder_of_a_repository_is_patched_alone() {
    let world = World::bare();
    plain(&world, "work/research/lib/ext");
    plain(&world, "work/research/other");
    world.checkout("work/research", &[("README.md", b"")]);
    world
        .run(&["apply", "./research/lib/ext", "--torch", "2.11"])
        .exits(0)
        .says(&["done: branch mambapatch/"]);
    assert_eq!(world.git("work/research", &["diff", "--name-only", "main", "HEAD"]), "lib/ext/ops.cpp");
    assert_eq!(world.git("work/research", &["status", "--short"]), "");
}

#[test]
fn an_unpacked_folder_inside_a_repository_is_plain() {
    let world = World::bare();
    world.checkout("work", &[("README.md", b"")]);
    plain(&world, "work/ext");
    world.run(&APPLY).exits(0).says(&["done: files in "]);
    assert_eq!(world.text("work/ext/ops.cpp"), PATCHED);
}

#[test]
fn an_archive_becomes_a_checkout() {
    let world = World::bare();
    let files = vec![("setup.py".to_string(), SETUP.to_vec()), ("ops.cpp".to_string(), OPS.to_vec())];
    world.write("work/ext-1.0.tar.gz", tar_gz("ext-1.0", &files));
    let run = world.run(&["apply", "./ext-1.0.tar.gz", "--torch", "2.11", "--into", "new"]).exits(0);
    run.says(&["no known upstream", "done: branch mambapatch/"]);
    assert_eq!(world.text("work/new/ops.cpp"), PATCHED);
}

#[test]
fn every_folder_that_builds_an_extension_gets_its_command() {
    let world = World::bare();
    plain(&world, "work/ext/lib/a b");
    plain(&world, "work/ext/lib/two");
    world.write("work/ext/setup.py", "from setuptools import setup\nsetup(name='plain')\n");
    world.write("work/ext/lib/nn/setup.py", "import os\nos.system('nvcc -c a.cu')\n");
    world.run(&APPLY).exits(0).says(&[
        "--no-deps './lib/a b'\n",
        "--no-deps ./lib/two\n",
        "(cd ./lib/nn && python setup.py)\n",
        "each compiles one folder",
    ]);
}

const NOTE: &str = "PyTorch compiles for TORCH_CUDA_ARCH_LIST=\"12.0\" if it is set";
const PIP: &str = "pip install --no-build-isolation --no-cache-dir --no-deps";

#[test]
fn each_setup_py_is_asked_who_chooses_its_architectures() {
    let world = World::bare();
    plain(&world, "work/ext/open");
    let own = |flags: &str| {
        format!(
            "from flags import *\nfrom torch.utils.cpp_extension import CUDAExtension\n\
             setup(ext_modules=[CUDAExtension('a', ['a.cu'], extra_compile_args={flags})])\n"
        )
    };
    world.write("work/ext/gpu/setup.py", own("[f'-arch=sm_{here()}']"));
    world.write("work/ext/lib/far/setup.py", own("nvcc"));
    world.write("work/ext/lib/flags.py", "nvcc = ['-gencode', chosen]\n");
    let host = "from setuptools import setup, Extension\nsetup(ext_modules=[Extension('a', ['a.cpp'])])\n";
    world.write("work/ext/host/setup.py", host);
    world.write("work/ext/Dockerfile", "ENV TORCH_CUDA_ARCH_LIST=\"7.0\"\n");
    world.write("work/ext/Makefile", "ARCH := -gencode arch=compute_70,code=sm_70\n");
    let run = world.run(&["apply", "./ext", "--add-arch", "120", "--torch", "2.11"]).exits(0);
    run.says(&["note: open/setup.py names no architecture, and none was inserted: ", NOTE])
        .says(&[&format!("  TORCH_CUDA_ARCH_LIST=\"12.0\" {PIP} ./open\n")])
        .says(
            &["gpu", "lib/far", "host"]
                .map(|folder| format!("\n  {PIP} ./{folder}\n"))
                .each_ref()
                .map(String::as_str),
        );
}

#[test]
fn a_list_in_what_setup_py_reads_needs_no_variable() {
    let world = World::bare();
    plain(&world, "work/ext");
    world.write(
        "work/ext/setup.py",
        [b"import os\nos.environ['TORCH_CUDA_ARCH_LIST'] = '7.0'\n", SETUP].concat(),
    );
    let run = world.run(&["apply", "./ext", "--add-arch", "120", "--torch", "2.11"]).exits(0);
    run.says(&[&format!("\n  {PIP} .\n")]).omits(&["names no architecture"]);
}

#[test]
fn what_is_compiled_on_import_or_by_cmake_is_asked_too() {
    let world = World::bare();
    let load = "from torch.utils.cpp_extension import load\nops = load('ops', ['ops.cpp', 'ops.cu']";
    for (file, text, is_open) in [
        ("ops.py", format!("{load})\n"), true),
        ("ops.py", format!("{load}, extra_cuda_cflags=['-gencode=' + mine()])\n"), false),
        ("CMakeLists.txt", "find_package(Torch REQUIRED)\n".to_string(), true),
        ("CMakeLists.txt", "enable_language(CUDA)\n".to_string(), false),
    ] {
        let _ = std::fs::remove_dir_all(world.path("work/ext"));
        plain(&world, "work/ext");
        std::fs::remove_file(world.path("work/ext/setup.py")).expect("setup.py");
        world.write(&format!("work/ext/{file}"), &text);
        let run = world.run(&["apply", "./ext", "--add-arch", "120", "--torch", "2.11"]).exits(0);
        let variable = "  export TORCH_CUDA_ARCH_LIST=\"12.0\"\n";
        let run = if is_open { run.says(&[NOTE, variable]) } else { run.omits(&[NOTE, variable]) };
        run.says(&["no setup.py here builds an extension"]);
    }
}

#[test]
fn advice_is_right_for_every_given_toolkit() {
    let world = World::bare();
    plain(&world, "work/ext");
    let flags = "from torch.utils.cpp_extension import *\n\
        CUDAExtension('a', ['a.cu'], extra_compile_args=['-gencode', 'arch=compute_60,code=sm_60'])\n";
    world.write("work/ext/setup.py", flags);
    let run = world.run(&["check", "./ext", "--cuda", "11.8", "13.0"]).exits(0);
    run.shows(&[
        "CUDA 11.8 and CUDA 13.0 together refuse all of it; say what to compile for: --add-arch 90\n",
    ]);
    let run = world.run(&["check", "./ext", "--cuda", "12.0", "13.0", "--add-arch", "121f"]).exits(0);
    run.says(&["note: CUDA 12.0 does not compile for 121f; only lists with guards get it\n"])
        .shows(&["nothing would be left; name what stays: --only-arch 90\n"]);
    let run = world.run(&["check", "./ext", "--cuda", "11.8", "13.0", "--only-arch", "90"]).exits(1);
    run.shows(&["drops 60, adds 90"]).omits(&["does not compile"]);
}

#[test]
fn what_holds_a_known_upstream_says_so() {
    let world = World::bare();
    plain(&world, "work/ext");
    world.write("work/ext/third/mamba/setup.py", mamba_setup());
    world.run(&APPLY).exits(0).says(&["note: third/mamba is mamba-ssm: given by itself"]);
}

#[test]
fn a_folder_without_cuda_says_so() {
    let world = World::bare();
    world.write("work/ext/README.md", "nothing\n");
    let run = world.run_without_trace(&APPLY).exits(0);
    run.says(&["nothing in ext is CUDA", "nothing to do: there is no CUDA extension in ext"]);
    world.write("work/ext/setup.py", "flags = ['-std=c++11']\n");
    let run = world.run_without_trace(&APPLY).exits(0);
    run.says(&["nothing to do: there is no CUDA extension in ext"]).omits(&["c++17"]);
    std::fs::remove_file(world.path("work/ext/setup.py")).expect("there");
    world.write("work/ext/native/ops.cu", "");
    world.run_without_trace(&APPLY).exits(0).omits(&["is CUDA"]);
}

#[test]
fn a_file_that_is_far_too_large_is_left_out() {
    let world = World::bare();
    plain(&world, "work/ext");
    world.write("work/ext/table.h", "0, 1, 2, 3,\n".repeat(500_000));
    world.run(&APPLY).exits(0).says(&["note: table.h has 6 MB and was not looked at", "done: files in "]);
}

#[test]
fn the_fallback_is_listed_and_explained_and_has_no_releases() {
    let world = World::bare();
    world.run(&["list"]).exits(0).shows(&["any-extension  -  "]);
    world.run(&["list", "any-extension"]).exits(0).shows(&["no known upstream's", "torch-api/at-check"]);
    let document = world.run(&["list", "any-extension", "--format", "json"]).exits(0).json();
    assert!(document["url"].is_null() && document["tested-through"].is_null(), "{document}");
    let explained = world.run(&["explain", "torch-api/at-check"]).exits(0);
    assert!(!explained.out.contains("tested through"), "{explained}");
    let no_releases = ["any-extension is for trees of no known upstream", "hint: name a folder: "];
    world.run(&["matrix", "any-extension", "--torch", "2.11"]).fails(&no_releases);
    world.run(&["apply", "any-extension", "--torch", "2.11"]).fails(&no_releases);
    world.run(&["apply", "any-extension@v1", "--torch", "2.11"]).fails(&["is not a known upstream"]);
}

#[test]
fn json_names_the_set() {
    let world = World::bare();
    plain(&world, "work/ext");
    let document = world.run(&["check", "./ext", "--torch", "2.11", "--format", "json"]).exits(1).json();
    assert_eq!(document["target"]["upstream"], "any-extension");
    assert_eq!(document["target"]["label"], "ext");
}

#[test]
fn the_code_of_others_is_left_out_and_said_so() {
    let world = World::bare();
    plain(&world, "work/ext");
    world.write("work/ext/third_party/glm/a.h", OPS);
    world.write("work/ext/csrc/cutlass/b.h", OPS);
    let note = "note: left out as code of others or for HIP: csrc/cutlass, third_party\n";
    let run = world.run(&["check", "./ext", "--torch", "2.11"]).exits(1);
    run.says(&[note]).shows(&["renames 1 place", "understood\n  ops.cpp "]);
    world.run(&APPLY).exits(0).says(&[note]);
    assert_eq!(world.read("work/ext/third_party/glm/a.h"), OPS);
}

#[test]
fn what_rocm_compiles_too_is_reported_where_it_lacks_what_would_stand_there() {
    let world = World::bare();
    plain(&world, "work/ext");
    let scan = "#ifndef USE_ROCM\n#include <cub/cub.cuh>\n#else\n#include <hipcub/hipcub.hpp>\nnamespace cub = hipcub;\n\
                #endif\n__device__ int f() { cub::CTA_SYNC(); return cub::WarpId(); }\n";
    world.write("work/ext/scan.cuh", scan);
    let run = world.run(&["diff", "./ext", "--cuda", "13.0", "--torch", "2.11"]).exits(0);
    let run = run.shows(&["+__device__ int f() { __syncthreads(); return cub::WarpId(); }"]);
    run.says(&[
        "ROCm compiles this file too, for which `::cuda::ptx::get_sreg_warpid()` is not right",
        "scan.cuh",
    ]);
}
