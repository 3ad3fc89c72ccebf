//! The parts of a small setup.py, written for these tests.

/// Down to the list of flags; `@` is where HIP_HOME is imported.
pub const HEAD: &str = r#"import ast
import os
import platform
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import warnings
from pathlib import Path

import torch
from packaging.version import Version, parse
from setuptools import find_packages, setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension, CUDA_HOME@
from wheel.bdist_wheel import bdist_wheel as _bdist_wheel

with open("README.md", encoding="utf-8") as readme:
    description = readme.read()

here = os.path.dirname(os.path.abspath(__file__))
FORCE_BUILD = os.getenv("SMALL_FORCE_BUILD", "FALSE") == "TRUE"
NEW_ABI = os.getenv("SMALL_NEW_ABI", "FALSE") == "TRUE"
HIP_BUILD = bool(torch.version.hip)
ext_modules = []


def nvcc_version(root):
    words = subprocess.check_output([root + "/bin/nvcc", "-V"], universal_newlines=True).split()
    return parse(words[words.index("release") + 1].split(",")[0])


def threaded(flags):
    return flags + ["--threads", "4"]


if os.getenv("SMALL_SKIP_CUDA_BUILD", "FALSE") != "TRUE":
    cc_flag = []

"#;

/// The ROCm branch of the flags, and the `else` of the CUDA branch.
pub const ROCM: &str = r#"    if HIP_BUILD:
        said = subprocess.check_output([os.path.join(HIP_HOME, "bin", "hipcc"), "--version"], text=True)
        if "HIP version" not in said:
            raise RuntimeError("which ROCm?")
        cc_flag.append("-DBUILD_PYTHON_PACKAGE")

    else:
"#;

/// The toolkit is asked; `@` is the indentation of the CUDA branch.
pub const CUDA: &str = r#"@if CUDA_HOME is None:
@    warnings.warn("nvcc was not found")
@if CUDA_HOME is not None:
@    bare_metal_version = nvcc_version(CUDA_HOME)
@    if bare_metal_version < Version("11.6"):
@        raise RuntimeError("CUDA 11.6 or newer is needed")

"#;

/// What nvcc is given, without ROCm.
pub const ARGUMENTS: &str = r#"    # the flags are complete
    if NEW_ABI:
        torch._C._GLIBCXX_USE_CXX11_ABI = True
    arguments = {
        "cxx": ["-O3"],
        "nvcc": threaded(["-O3", "--use_fast_math", "-lineinfo"] + cc_flag),
    }
"#;

/// What nvcc or hipcc is given.
pub const ARGUMENTS_WITH_ROCM: &str = r#"    # the flags are complete
    if NEW_ABI:
        torch._C._GLIBCXX_USE_CXX11_ABI = True
    if HIP_BUILD:
        arguments = {
            "cxx": ["-O3", "-std=c++17"],
            "nvcc": [
                "-O3",
                f"--offload-arch={os.getenv('HIP_ARCHITECTURES', 'native')}",
            ]
            + cc_flag,
        }
    else:
        arguments = {
            "cxx": ["-O3"],
            "nvcc": threaded(["-O3", "--use_fast_math", "-lineinfo"] + cc_flag),
        }
"#;

/// The extension, the wheel command, the call of setup().
pub const TAIL: &str = r#"    ext_modules.append(
        CUDAExtension(
            name="small_cuda",
            sources=["csrc/small.cpp", "csrc/small.cu"],
            extra_compile_args=arguments,
            include_dirs=[Path(here) / "csrc"],
        )
    )


def package_version():
    with open(Path(here) / "small_ext" / "__init__.py") as file:
        found = re.search(r"^__version__\s*=\s*(.*)$", file.read(), re.MULTILINE)
    return ast.literal_eval(found.group(1))


def get_wheel_url():
    gpu = f"hip{torch.version.hip[:1]}" if HIP_BUILD else f"cu{parse(torch.version.cuda).major}"
    version = parse(torch.__version__)
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    abi = str(torch._C._GLIBCXX_USE_CXX11_ABI).upper()
    tags = f"{gpu}torch{version.major}.{version.minor}cxx11abi{abi}-{python}-{python}-linux_{platform.machine()}"
    name = f"small_ext-{package_version()}+{tags}.whl"
    return f"https://wheels.invalid/{name}", name


class PrebuiltWheel(_bdist_wheel):
    def run(self):
        if FORCE_BUILD:
            return super().run()
        url, name = get_wheel_url()
        try:
            urllib.request.urlretrieve(url, name)
            os.makedirs(self.dist_dir, exist_ok=True)
            target = f"{self.wheel_dist_name}-{'-'.join(self.get_tag())}.whl"
            shutil.move(name, os.path.join(self.dist_dir, target))
        except urllib.error.HTTPError:
            super().run()


setup(
    name="small_ext",
    version=package_version(),
    packages=find_packages(),
    long_description=description,
    ext_modules=ext_modules,
    cmdclass={"bdist_wheel": PrebuiltWheel, "build_ext": BuildExtension},
    install_requires=["torch", "packaging"],
)
"#;
