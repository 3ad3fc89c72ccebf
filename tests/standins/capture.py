"""Runs one setup.py in this process and says what it would have built. Leaves the process unfit for anything else."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any, Dict, List, Optional

import machine
import modules
from environment import Environment

Json = Dict[str, Any]


def run(path: Path, folder: Path, environment: Environment) -> Json:
    """Runs the file in `folder`, which is empty (or its own, `in_place`) and stays under it with everything it writes."""
    source = path.read_bytes()
    if not environment.in_place:
        _furnish(path, folder, source)
    network = _install(folder, environment)
    calls = modules.install(environment)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            namespace, failure = _execute(source, path, folder)
        setup = calls[-1] if calls else {}
        result = _result(environment, setup, failure or _uncalled(calls))
        result["warnings"] = [str(warning.message) for warning in warned]
        if environment.bdist_wheel and result["ok"]:
            result["wheel_guess"] = _guess(namespace)
            result["bdist_wheel"] = [_build(setup, network, mode, folder) for mode in network.MODES]
    return _without(folder, result)


def _furnish(path: Path, folder: Path, source: bytes) -> None:
    """Copies setup.py, links what lies beside it, and adds a README.md when there is none."""
    (folder / "setup.py").write_bytes(source)
    beside = path.parent.iterdir() if path.name == "setup.py" else iter(())
    for entry in beside:
        with contextlib.suppress(OSError):
            os.symlink(entry.resolve(), folder / entry.name)
    if not (folder / "README.md").exists():
        (folder / "README.md").write_text("# A stand-in\n", encoding="utf-8")


def _install(folder: Path, environment: Environment) -> machine.Network:
    os.chdir(folder)
    sys.path[:] = [str(folder), *sys.path[1:], *environment.path]
    sys.argv = ["setup.py", "bdist_wheel"]
    machine.pretend_variables(environment)
    machine.pretend_platform(environment)
    machine.Commands(environment).install()
    machine.Files(folder, environment.version).install()
    network = machine.Network()
    network.install()
    return network


def _execute(source: bytes, path: Path, folder: Path) -> Any:
    """The namespace that the file leaves, and how it failed."""
    namespace: Json = {"__name__": "__main__", "__file__": str(folder / "setup.py")}
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), namespace)
    except (Exception, SystemExit) as error:
        return namespace, _failure(error, str(path))
    return namespace, None


def _failure(error: BaseException, path: str) -> Json:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    line = error.lineno if isinstance(error, SyntaxError) else (lines or [None])[-1]
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return {"error": f"{type(error).__name__}: {text}", "error_line": line}


def _uncalled(calls: List[Json]) -> Optional[Json]:
    return None if calls else {"error": "setup() was not called", "error_line": None}


def _result(environment: Environment, setup: Json, failure: Optional[Json]) -> Json:
    extensions = list(setup.get("ext_modules") or [])
    for_nvcc = [extension for extension in extensions if extension.kind == "cuda"][:1]
    return {
        "toolkit": environment.toolkit,
        "hip": environment.hip,
        "ok": failure is None,
        "nvcc": [flag for extension in for_nvcc for flag in extension.flags("nvcc")],
        "cxx": [flag for extension in for_nvcc for flag in extension.flags("cxx")],
        "error": failure and failure["error"],
        "error_line": failure and failure["error_line"],
        "name": setup.get("name"),
        "version": setup.get("version"),
        "ext_modules": [_extension(extension, setup) for extension in extensions],
        "cmdclass": sorted(setup.get("cmdclass") or {}),
        "install_requires": list(setup.get("install_requires") or []),
        "torch_cuda_arch_list": os.environ.get("TORCH_CUDA_ARCH_LIST"),
    }


def _without(folder: Path, result: Json) -> Json:
    """The result with "." for the folder, whose name is another one each time."""
    return json.loads(json.dumps(result).replace(str(folder), "."))


def _extension(extension: modules.Extension, setup: Json) -> Json:
    folders = [*extension.include_dirs, *map(str, setup.get("include_dirs") or [])]
    return {
        "name": extension.name,
        "kind": extension.kind,
        "sources": extension.sources,
        "include_dirs": [os.path.relpath(folder) for folder in folders],
        "define_macros": ["=".join(map(str, filter(None, macro))) for macro in extension.define_macros],
        "nvcc": extension.flags("nvcc"),
        "cxx": extension.flags("cxx"),
    }


def _guess(namespace: Json) -> Optional[Json]:
    """What the file's own get_wheel_url() says, whether or not the build asks it."""
    guess = namespace.get("get_wheel_url")
    if guess is None:
        return None
    try:
        url, name = guess()
    except Exception as error:
        return {"url": None, "file": None, "error": f"{type(error).__name__}: {error}"}
    return {"url": url, "file": name, "error": None}


def _build(setup: Json, network: machine.Network, mode: str, folder: Path) -> Json:
    """Runs the bdist_wheel command once, in a folder of its own."""
    attempt = folder / f"bdist-wheel-{mode}"
    attempt.mkdir()
    os.chdir(attempt)
    network.mode, network.requests = mode, []
    command = (setup.get("cmdclass") or {}).get("bdist_wheel", modules.BdistWheel)(setup)
    error = None
    try:
        command.run()
    except (Exception, SystemExit) as failure:
        error = f"{type(failure).__name__}: {failure}"
    moved = sorted(wheel.relative_to(attempt).as_posix() for wheel in attempt.glob("dist/*.whl"))
    return {
        "download": mode,
        "requests": network.requests,
        "built": command.built,
        "moved": moved[0] if moved else None,
        "error": error,
    }
