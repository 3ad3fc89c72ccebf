"""What would a setup.py give to nvcc? Runs it for several CUDA toolkits, without torch, nvcc or setuptools.

    python3 run_setup.py [--toolkits 12.8,13.0] [--hip] [--bdist-wheel] [...] SETUP_PY...

Prints one JSON object a line and file: {"path": ..., "runs": [...]}. Each run has its own interpreter state.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any, Deque, Dict, Iterator, List

import isolation
from environment import Environment

TOOLKITS = "11.8,12.3,12.8,12.9,13.0"
AT_ONCE = 4


def environments(options: argparse.Namespace) -> List[Environment]:
    """The matrix: each toolkit, then ROCm."""
    common = Environment(
        nvcc=not options.no_nvcc,
        torch=options.torch,
        torch_cuda=options.torch_cuda,
        cpu_torch=options.cpu_torch,
        gpu=not options.no_gpu,
        machine=options.machine,
        platform=options.platform,
        version=options.package_version,
        packaging=options.packaging,
        bdist_wheel=options.bdist_wheel,
        env=dict(options.env),
        in_place=options.in_place,
        path=options.path,
    )
    toolkits = [toolkit for toolkit in options.toolkits.split(",") if toolkit]
    matrix = [replace(common, toolkit=toolkit) for toolkit in toolkits]
    return matrix + [replace(common, toolkit=None, hip=True)] * options.hip


def runs(path: Path, matrix: List[Environment], folder: Path, kind: str) -> Iterator[Dict[str, Any]]:
    """Runs one file in each environment, a few at a time, in order."""
    started: Deque[Any] = deque()
    for number, environment in enumerate(matrix):
        started.append(isolation.start(isolation.Job(path, folder / str(number), environment), kind))
        if len(started) == AT_ONCE:
            yield started.popleft().result()
    while started:
        yield started.popleft().result()


def variable(text: str) -> List[str]:
    """Reads NAME=VALUE."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"`{text}` is not NAME=VALUE")
    return [name, value]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("files", nargs="+", type=Path, metavar="SETUP_PY")
    add("--toolkits", default=TOOLKITS, help="what nvcc is, comma separated (default %(default)s)")
    add("--hip", action="store_true", help="one more run, on a ROCm machine")
    add("--torch", default="2.6.0", metavar="VERSION", help="torch.__version__")
    add("--torch-cuda", metavar="VERSION", help="torch.version.cuda (default: the toolkit)")
    add("--cpu-torch", action="store_true", help="torch.version.cuda is None")
    add("--no-nvcc", action="store_true", help="CUDA_HOME is None")
    add("--no-gpu", action="store_true", help="torch.cuda sees no GPU")
    add("--machine", default="x86_64", help="platform.machine()")
    add("--platform", default="linux", help="sys.platform")
    add("--env", action="append", default=[], type=variable, metavar="NAME=VALUE", help="can be repeated")
    add("--in-place", action="store_true", help="run setup.py where it lies, which may be written to")
    add("--path", action="append", default=[], metavar="DIR", help="as by PYTHONPATH; can be repeated")
    add("--package-version", default="0.0.0", help="__version__ of a package that is not beside setup.py")
    add("--bdist-wheel", action="store_true", help="also run that command, with three kinds of download")
    add("--packaging", choices=("auto", "own"), default="auto", help="own: never the installed packaging")
    add("--isolation", choices=("auto", "process"), default="auto", help="process: never fork")
    return parser


def main() -> None:
    """Prints the runs of each file."""
    options = parser().parse_args()
    matrix = environments(options)
    for path in options.files:
        with tempfile.TemporaryDirectory() as folder:
            found = list(runs(path.absolute(), matrix, Path(folder), options.isolation))
        json.dump({"path": str(path), "runs": found}, sys.stdout)
        sys.stdout.write("\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
