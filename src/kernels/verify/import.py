"""Imports the modules of a name, and loads every compiled file of theirs. Prints one JSON object a line.

The argument is one JSON object: "name", a module or distribution; "alone", true where only the compiled files of "folder"
are meant; "folder", where compiled files were built in place, or null. What the modules print goes to standard error, which is the log. Nothing is written.
"""

import ctypes
import faulthandler
import importlib
import importlib.machinery
import importlib.metadata as metadata
import importlib.util
import json
import os
import platform
import re
import sys
import traceback

SUFFIXES = importlib.machinery.EXTENSION_SUFFIXES
COMPILED = re.compile(r"\.(so|pyd)$")
FOR_ANOTHER = re.compile(r"\.(cpython-(\d)(\d+)|cp(\d)(\d+)|pypy[^.]*)-[^.]*\.(so|pyd)$")
# One library for each release of CUDA, and what they are linked with.
RELEASE = re.compile(r"^lib.*cu(?:da)?[-_]?(\d\d)\.?\d[^/]*\.so$")
RUNTIME = re.compile(
    r"^(lib(?:cudart|cublas\w*|cudnn\w*|cufft\w*|curand|cusolver\w*|cusparse\w*|nvrtc|nvJitLink)\.so[\w.]*): cannot open"
)
toolkit = []  # the major of PyTorch's CUDA
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def say(**what):
    print(json.dumps(what), file=answers, flush=True)


def told(kind, name, work):
    """Does something that may end the process, and says how it went."""
    say(doing=name)
    try:
        say(kind=kind, name=name, **(work() or {}))
    except BaseException as raised:
        lacks = lacking(name, raised) if kind == "file" else None
        if lacks:
            say(kind="other", name=name, lacks=lacks)
            return
        traceback.print_exc()
        say(kind=kind, name=name, error=f"{type(raised).__name__}: {raised}")


def lacking(path, raised):
    """The runtime of another toolkit that a library is for, by its name; modules are for this one."""
    name, lacks = RELEASE.search(os.path.basename(path)), RUNTIME.search(str(raised))
    if not name or not lacks or name.group(1) in toolkit:
        return None
    with open(path, "rb") as file:
        return None if b"PyInit_" in file.read() else lacks.group(1)


def found(name):
    try:
        return importlib.util.find_spec(name)
    except Exception:
        # A parent of a dotted name that cannot be imported is told when the module itself is.
        return None


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def files_of(name):
    """The files of a distribution, or of the one that a module belongs to."""
    owners = getattr(metadata, "packages_distributions", dict)().get(name.partition(".")[0], [])
    for one in dict.fromkeys([name, *owners]):
        try:
            files = metadata.files(one)
        except (metadata.PackageNotFoundError, ValueError):
            continue
        if files:
            return metadata.version(one), files
    return None, []


def modules_of(name, files):
    """The name, if it is a module; else what its distribution puts at the top."""
    for one in (name, normal(name).replace("-", "_")):
        if found(one):
            return [one]
    tops = []
    for file in files:
        parts = file.parts
        is_package = len(parts) == 2 and parts[1] == "__init__.py"
        if is_package or (len(parts) == 1 and (file.suffix == ".py" or COMPILED.search(file.name))):
            tops.append(parts[0].partition(".")[0])
    return [top for top in dict.fromkeys(tops) if top.isidentifier() and found(top)]


def below(folder):
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in ("build", "dist", ".git", "node_modules"))
        for name in sorted(names):
            yield os.path.join(root, name)


def compiled(modules, files, folder):
    """The compiled files of a distribution, of its modules, and of a folder; a link and what it names count once."""
    paths = [str(file.locate()) for file in files]
    for module in modules:
        spec = found(module)
        paths += [spec.origin] if spec and spec.has_location and spec.origin else []
        for place in (spec.submodule_search_locations or []) if spec else []:
            paths += below(place)
    if folder:
        paths += [folder] if os.path.isfile(folder) else below(folder)
    kept = {}
    for path in paths:
        if COMPILED.search(path) and os.path.isfile(path):
            kept.setdefault(os.path.realpath(path), path)
    return list(kept.values())


def dotted(path):
    """The name by which a file would be imported: below the first folder of the search path that holds it."""
    bare = path
    for suffix in SUFFIXES:
        if path.endswith(suffix):
            bare = path[: -len(suffix)]
            break
    for root in sorted((entry for entry in sys.path if entry), key=len, reverse=True):
        if bare.startswith(root.rstrip(os.sep) + os.sep):
            return os.path.relpath(bare, root).replace(os.sep, ".")
    return os.path.basename(bare)


def load(path):
    """Loads a file as Python would, under its own name; a library that is no module only as a library."""
    is_loaded = any(getattr(module, "__file__", None) == path for module in list(sys.modules.values()))
    if is_loaded:
        return
    other = FOR_ANOTHER.search(path)
    if other and not any(path.endswith(suffix) for suffix in SUFFIXES if suffix.count(".") > 1):
        version = ".".join(part for part in other.groups()[1:5] if part) or "another"
        raise ImportError(
            f"{path} is for Python {version}, and this is Python {platform.python_version()}: "
            "name that Python (--python), or build it for this one"
        )
    name = dotted(path)
    spec = importlib.util.spec_from_file_location(name, path)
    try:
        module = importlib.util.module_from_spec(spec)
    except ImportError as raised:
        if "does not define module export function" not in str(raised):
            raise
        ctypes.CDLL(path)
        return
    spec.loader.exec_module(module)


def imported(name):
    module = importlib.import_module(name)
    version = getattr(module, "__version__", None)
    return {"file": getattr(module, "__file__", None), "version": version if isinstance(version, str) else None}


def pytorch():
    """PyTorch and its GPU. What belongs to PyTorch is loaded by this, as it is in every program that uses it."""
    import torch

    toolkit.append(str(getattr(getattr(torch, "version", None), "cuda", None)).partition(".")[0])
    answer = {"version": str(torch.__version__), "gpu": None}
    if torch.cuda.is_available():
        answer["gpu"] = torch.cuda.get_device_name()
    return answer


def main():
    faulthandler.enable()
    asked = json.loads(sys.argv[1])
    sys.path[0:1] = []  # the folder of this file
    version, files = (None, []) if asked["alone"] else files_of(asked["name"])
    modules = [] if asked["alone"] else modules_of(asked["name"], files)
    say(kind="python", name=asked["name"], version=platform.python_version(), modules=modules, release=version)
    if found("torch"):
        told("torch", "torch", pytorch)
    for module in modules:
        told("module", module, lambda: imported(module))
    for path in compiled(modules, files, asked["folder"]):
        told("file", path, lambda: load(path))
    say(kind="end", name=asked["name"])


main()
