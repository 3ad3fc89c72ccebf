"""Stand-ins for torch, setuptools, wheel and packaging. Nothing is compiled, built or asked of a GPU."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, Dict, Iterable, List, Optional, Tuple

import versions
from environment import HIP_VERSION, Environment


class Extension:
    """setuptools.Extension: keeps what it was given."""

    kind = "plain"

    def __init__(self, name: str, sources: Iterable[Any] = (), *_: Any, **kwargs: Any) -> None:
        self.name = name
        self.sources = [str(source) for source in sources]
        self.extra_compile_args = kwargs.get("extra_compile_args")
        self.include_dirs = [str(folder) for folder in kwargs.get("include_dirs") or []]
        self.define_macros = [tuple(macro) for macro in kwargs.get("define_macros") or []]
        self.options = kwargs

    def flags(self, compiler: str) -> List[str]:
        """The flags for "nvcc" or "cxx"; torch gives a plain list to both."""
        given = self.extra_compile_args or []
        if isinstance(given, dict):
            given = given.get(compiler) or []
        return [str(flag) for flag in given]


class CUDAExtension(Extension):
    """torch.utils.cpp_extension.CUDAExtension."""

    kind = "cuda"


class CUDAExtensionNowhere(CUDAExtension):
    """The same where neither CUDA nor ROCm is found: torch asks for CUDA_HOME at once, not only to compile."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise OSError("CUDA_HOME environment variable is not set. Please set it to your CUDA install root.")


class CppExtension(Extension):
    """torch.utils.cpp_extension.CppExtension: nothing of it reaches nvcc."""

    kind = "cpp"

    def flags(self, compiler: str) -> List[str]:
        """The flags for "cxx"; none for "nvcc"."""
        return [] if compiler == "nvcc" else super().flags(compiler)


class Command:
    """setuptools.Command."""

    def __init__(self, dist: Any = None) -> None:
        self.distribution = dist
        self.initialize_options()

    def initialize_options(self) -> None:
        """Sets the defaults."""

    def finalize_options(self) -> None:
        """Checks the options."""

    def run(self) -> None:
        """Does the work."""


class BdistWheel(Command):
    """wheel.bdist_wheel.bdist_wheel: notes that the real build was reached."""

    def initialize_options(self) -> None:
        """Sets what a command that moves a downloaded wheel reads."""
        self.dist_dir = "dist"
        self.plat_name: Optional[str] = None
        self.built = False

    @property
    def wheel_dist_name(self) -> str:
        """NAME-VERSION, as in the name of the wheel."""
        setup = self.distribution or {}
        name = str(setup.get("name", "UNKNOWN")).replace("-", "_")
        return f"{name}-{setup.get('version', '0.0.0')}"

    def get_tag(self) -> Tuple[str, str, str]:
        """The tags of the interpreter and the platform."""
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        import sysconfig

        return python, python, sysconfig.get_platform().replace("-", "_").replace(".", "_")

    def run(self) -> None:
        """Where the real command would compile."""
        self.built = True


class BuildExtension(Command):
    """torch.utils.cpp_extension.BuildExtension."""

    @classmethod
    def with_options(cls, **_: Any) -> type:
        """The class itself: options change nothing here."""
        return cls


def install(environment: Environment) -> List[Dict[str, Any]]:
    """Puts the stand-ins into sys.modules; the result collects the arguments of each call of setup()."""
    calls: List[Dict[str, Any]] = []
    for name, contents in _modules(environment, calls).items():
        sys.modules[name] = _module(name, contents)
    for name in list(sys.modules):
        parent, _, child = name.rpartition(".")
        if parent.split(".")[0] in ("torch", "setuptools", "wheel", "packaging", "Cython", "numpy"):
            setattr(sys.modules[parent], child, sys.modules[name])
    return calls


def _module(name: str, contents: Dict[str, Any]) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(contents, __path__=[f"/stand-in/{name}"])
    return module


def _modules(environment: Environment, calls: List[Dict[str, Any]]) -> Dict[str, Dict[str, Any]]:
    modules = {"packaging": {}, "packaging.version": _packaging_version(environment.packaging)}
    modules.update(_torch(environment))
    modules.update(_setuptools(calls))
    modules.update({"wheel": {}, "wheel.bdist_wheel": {"bdist_wheel": BdistWheel}})
    modules.update(_for_sources())
    return modules


def _for_sources() -> Dict[str, Dict[str, Any]]:
    """Packages of which a setup.py asks nothing but where headers are, and what to make of Cython's sources."""
    return {
        "numpy": {"__version__": "2.0.0", "get_include": lambda: "/stand-in/numpy/include"},
        "numpy.distutils": {},
        "numpy.distutils.system_info": {"get_info": lambda library: {"libraries": [library]}},
        "Cython": {},
        "Cython.Build": {"cythonize": lambda extensions, **_: _listed(extensions)},
        "pybind11": {"get_include": lambda *_, **__: "/stand-in/pybind11/include"},
    }


def _listed(extensions: Any) -> List[Any]:
    return list(extensions) if isinstance(extensions, (list, tuple)) else [extensions]


def _packaging_version(which: str) -> Dict[str, Any]:
    """The names of the real packaging.version where there is one (pip brings a copy), else of ours."""
    names = ("Version", "parse", "InvalidVersion")
    candidates = ("packaging.version", "pip._vendor.packaging.version") if which == "auto" else ()
    for candidate in candidates:
        try:
            real = importlib.import_module(candidate)
        except ImportError:
            continue
        return {name: getattr(real, name) for name in names}
    return {name: getattr(versions, name) for name in names}


def _torch(environment: Environment) -> Dict[str, Dict[str, Any]]:
    hip = HIP_VERSION if environment.hip else None
    return {
        "torch": {
            "__version__": environment.torch,
            "device": lambda name="cpu", *_: name,
            "has_cuda": environment.built_with_cuda is not None,
        },
        "torch._C": {"_GLIBCXX_USE_CXX11_ABI": True},
        "torch.version": {
            "__version__": environment.torch,
            "cuda": environment.built_with_cuda,
            "hip": hip,
        },
        "torch.cuda": _torch_cuda(environment),
        "torch.cuda.nccl": {"version": lambda: (2, 27, 5)},
        "torch.utils": {},
        "torch.utils.cpp_extension": _cpp_extension(environment),
    }


def _torch_cuda(environment: Environment) -> Dict[str, Any]:
    seen = environment.gpu and not environment.cpu_torch
    return {
        "is_available": lambda: seen,
        "device_count": lambda: int(seen),
        "get_device_capability": lambda device=None: (9, 0),
        "get_device_name": lambda device=None: "Stand-in GPU",
        "get_device_properties": lambda device=None: SimpleNamespace(major=9, minor=0, name="Stand-in GPU"),
        "get_arch_list": lambda: ["sm_80", "sm_90"] if seen else [],
    }


def _cpp_extension(environment: Environment) -> Dict[str, Any]:
    found = environment.hip or environment.cuda_home is not None
    return {
        "BuildExtension": BuildExtension,
        "CUDAExtension": CUDAExtension if found else CUDAExtensionNowhere,
        "CppExtension": CppExtension,
        "CUDA_HOME": environment.cuda_home,
        "HIP_HOME": environment.rocm_home,
        "ROCM_HOME": environment.rocm_home,
        "IS_HIP_EXTENSION": environment.hip,
        "include_paths": lambda *_, **__: ["/stand-in/torch/include"],
        "library_paths": lambda *_, **__: ["/stand-in/torch/lib"],
        "is_ninja_available": lambda: True,
        "load": _compiles_at_once,
        "load_inline": _compiles_at_once,
    }


def _compiles_at_once(*_: Any, **__: Any) -> None:
    raise RuntimeError("a compiler was started")


class Distribution:
    """setuptools.dist.Distribution: fetches nothing."""

    def fetch_build_eggs(self, _: Any) -> List[Any]:
        """What setup_requires would install."""
        return []


def _setuptools(calls: List[Dict[str, Any]]) -> Dict[str, Dict[str, Any]]:
    basis = {
        "setup": lambda **kwargs: calls.append(kwargs),
        "find_packages": lambda *_, **__: ["stand_in"],
        "find_namespace_packages": lambda *_, **__: ["stand_in"],
        "Extension": Extension,
        "Command": Command,
        "Distribution": Distribution,
    }
    modules: Dict[str, Dict[str, Any]] = {"setuptools": basis, "setuptools.command": {}}
    modules["setuptools.dist"] = {"Distribution": Distribution}
    modules["setuptools.extension"] = {"Extension": Extension}
    for name in ("build_ext", "build_py", "develop", "egg_info", "install", "sdist"):
        modules[f"setuptools.command.{name}"] = {name: type(name, (Command,), {})}
    modules["setuptools.command.bdist_wheel"] = {"bdist_wheel": BdistWheel}
    return modules
