"""Compiles the units that `cargo test --test compile` wrote down, many at once.

    python3 elsewhere.py PLAN RESULTS [--only PROJECT,...] [--at-once N] [--seconds N] [--limit N]
    python3 elsewhere.py --keep RESULTS FOLDER

PLAN is what MAMBAPATCH_COMPILE_PLAN named. RESULTS gets one JSON object a line; what it holds already is not compiled
again. The second form puts results where MAMBAPATCH_COMPILED finds them. Needs nvcc, g++ and PyTorch, no GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List, Optional

LINES, LETTERS = 60, 500
Json = Dict[str, Any]


def places() -> Dict[str, str]:
    """What stands for {torch}, {cuda} and {python} in a step."""
    from torch.utils import cpp_extension

    torch_include = cpp_extension.include_paths()[0]
    python = sysconfig.get_paths()["include"]
    assert (Path(python) / "Python.h").is_file(), f"{python} has no Python.h"
    return {"{torch}": torch_include, "{cuda}": str(cpp_extension.CUDA_HOME), "{python}": python}


def errors_of(said: str, tree: Path) -> str:
    """The lines with an error, the tree's folder written {tree}; or the last one."""
    lines = [line for line in said.replace(str(tree), "{tree}").splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line or "fatal" in line]
    return "".join(line[:LETTERS] + "\n" for line in (errors or lines[-1:])[:LINES])


class Compiler:
    """What is common to all units."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.places = places()
        self.lock = threading.Lock()
        self.until = time.monotonic() + options.limit

    def compile(self, work: Json) -> None:
        """One unit; nothing new is begun in the last seconds."""
        if time.monotonic() > self.until - 20:
            return
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            failed = [self.step(work, step, f"{folder}/unit.o") for step in work["steps"]]
        seconds = round(time.monotonic() - began, 1)
        result = {"key": work["key"], "failed": [said for said in failed if said is not None], "seconds": seconds}
        with self.lock, self.options.results.open("a") as results:
            results.write(json.dumps(result) + "\n")

    def step(self, work: Json, step: Json, unit: str) -> Optional[str]:
        """What a step that fails says."""
        tree = (self.options.plan / work["tree"]).resolve()
        names = {**self.places, "{object}": unit}
        compiler = f"{self.places['{cuda}']}/bin/nvcc" if step["compiler"] == "nvcc" else step["compiler"]
        command = [compiler]
        for argument in step["arguments"]:
            for name, place in names.items():
                argument = argument.replace(name, place)
            command.append(argument)
        try:
            done = subprocess.run(
                command, cwd=tree / work["folder"], stdin=subprocess.DEVNULL, capture_output=True, timeout=self.options.seconds
            )
        except subprocess.TimeoutExpired:
            return f"error: not done after {self.options.seconds:.0f} s\n"
        said = (done.stderr + done.stdout).decode(errors="replace")
        return errors_of(said, tree) if done.returncode else None


def known(results: Path) -> Dict[str, Json]:
    """The results by their keys."""
    lines = results.read_text().splitlines() if results.exists() else []
    return {one["key"]: one for one in map(json.loads, lines)}


def missing(options: argparse.Namespace) -> List[Json]:
    """Each unit once, unless its result is known: a unit that no patch changed is the same before and after."""
    done = set(known(options.results))
    only = [text for text in options.only.split(",") if text]
    found = []
    for work in map(json.loads, (options.plan / "units.jsonl").read_text().splitlines()):
        asked = not only or any(text in work["project"] for text in only)
        if asked and work["key"] not in done:
            done.add(work["key"])
            found.append(work)
    return found


def keep(results: Path, folder: Path) -> None:
    """One file for each result."""
    folder.mkdir(parents=True, exist_ok=True)
    for key, result in known(results).items():
        kept = {"failed": result["failed"], "seconds": result["seconds"]}
        (folder / f"{key}.json").write_text(json.dumps(kept))


def main() -> None:
    if sys.argv[1:2] == ["--keep"]:
        return keep(Path(sys.argv[2]), Path(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", default="", help="texts in the names of projects, comma separated")
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=300, help="for one step")
    parser.add_argument("--limit", type=float, default=540, help="seconds for all")
    options = parser.parse_args()
    compiler, units = Compiler(options), missing(options)
    print(f"{len(units)} units to compile", flush=True)
    with ThreadPoolExecutor(options.at_once) as pool:
        list(pool.map(compiler.compile, units))
    print(f"{len(missing(options))} units left", flush=True)


if __name__ == "__main__":
    main()
