"""The environments that a setup.py is run in: values only, no effects."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Optional

CUDA_ROOT = "/stand-in/cuda"
ROCM_ROOT = "/stand-in/rocm"
HIP_VERSION = "6.2.41133-dd7f95766"

# The last patch level of each toolkit, as `nvcc -V` prints it.
NVCC_BUILDS = {"11.8": "89", "12.3": "107", "12.8": "93", "12.9": "86", "13.0": "88"}


@dataclass(frozen=True)
class Environment:
    """One machine on which a setup.py is run."""

    toolkit: Optional[str] = "12.8"  # what nvcc says; None on a ROCm machine
    hip: bool = False
    nvcc: bool = True
    torch: str = "2.6.0"
    torch_cuda: Optional[str] = None  # torch.version.cuda; None: the toolkit's
    cpu_torch: bool = False
    gpu: bool = True
    machine: str = "x86_64"
    platform: str = "linux"
    version: str = "0.0.0"  # of a package whose __init__.py is not beside setup.py
    packaging: str = "auto"
    bdist_wheel: bool = False
    env: Dict[str, str] = field(default_factory=dict)
    in_place: bool = False  # run setup.py where it lies, and let it write there
    path: List[str] = field(default_factory=list)  # more folders of modules, as by PYTHONPATH

    @property
    def cuda_home(self) -> Optional[str]:
        """What torch.utils.cpp_extension finds: nothing on a ROCm machine."""
        return CUDA_ROOT if self.nvcc and not self.hip else None

    @property
    def rocm_home(self) -> Optional[str]:
        """The ROCm folder, on a ROCm machine only."""
        return ROCM_ROOT if self.hip else None

    @property
    def built_with_cuda(self) -> Optional[str]:
        """The CUDA version that torch was built with."""
        if self.hip or self.cpu_torch:
            return None
        return self.torch_cuda or self.toolkit

    def to_json(self) -> Dict[str, Any]:
        """The fields, for another process."""
        return asdict(self)


def nvcc_answer(toolkit: str) -> str:
    """What `nvcc -V` prints."""
    build = f"{toolkit}.{NVCC_BUILDS.get(toolkit, '0')}"
    return (
        "nvcc: NVIDIA (R) Cuda compiler driver\n"
        "Copyright (c) 2005-2025 NVIDIA Corporation\n"
        "Built on Fri_Feb_21_20:23:50_PST_2025\n"
        f"Cuda compilation tools, release {toolkit}, V{build}\n"
        f"Build cuda_{toolkit}.r{toolkit}/compiler.35583870_0\n"
    )


def hipcc_answer() -> str:
    """What `hipcc --version` prints."""
    return (
        f"HIP version: {HIP_VERSION}\n"
        "AMD clang version 18.0.0git (roc-6.2.0 24292)\n"
        "Target: x86_64-unknown-linux-gnu\n"
        "Thread model: posix\n"
        f"InstalledDir: {ROCM_ROOT}/lib/llvm/bin\n"
    )
