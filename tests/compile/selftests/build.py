"""Builds whole extensions before and after, and runs the check of each that was built.

    python3 build.py TREES RESULTS [--only NAME,...] [--side before,after] [--at-once N] [--jobs N] [--limit SECONDS]

TREES holds PROJECT/before and PROJECT/after; extensions.json beside this file says what is built of them. RESULTS gets
one JSON object a line as soon as it is known; what it holds already is not done again. Needs nvcc, PyTorch and a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Dict, List, Tuple

HERE = Path(__file__).resolve().parent
ARCHES = "9.0;12.0"
CHECK_SECONDS = 150
Json = Dict[str, Any]


def run(command: List[str], folder: Path, env: Dict[str, str], seconds: float) -> Tuple[bool, str]:
    """Whether it succeeded in time, and all that it said."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
        try:
            good = process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            good = False
            os.killpg(process.pid, 9)
            said.write(f"\nerror: not done after {seconds:.0f} s\n".encode())
        said.seek(0)
        return good, said.read().decode(errors="replace")


def first_errors(said: str) -> List[str]:
    """The first lines that name an error, each text once; else the last line."""
    lines = [line.strip()[:300] for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"\berror( #[\w-]+)?\s*:|\bfatal\b|Error: ", line)]
    errors = [line for line in errors if "CalledProcessError" not in line]
    return list(dict.fromkeys(errors))[:4] or lines[-1:]


class Builder:
    """What is common to all builds."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.work = Path(tempfile.mkdtemp(prefix="built-"))
        self.lock = threading.Lock()
        self.began = time.monotonic()

    def left(self) -> float:
        """Seconds until nothing new may be begun."""
        return self.options.limit - (time.monotonic() - self.began)

    def note(self, result: Json) -> None:
        """Keeps a result at once."""
        with self.lock:
            with self.options.results.open("a") as results:
                results.write(json.dumps(result) + "\n")
            word = "built" if result["built"] else "NOT BUILT"
            check = {None: "", True: ", check PASS", False: ", check FAIL"}[result.get("passed")]
            print(f"{result['name']} {result['side']}: {word} in {result['seconds']} s{check}", flush=True)

    def build(self, entry: Json, side: str) -> None:
        """One extension of one tree."""
        if self.left() < 30:
            return
        name = re.sub(r"\W+", "-", f"{entry['name']}-{side}")
        tree, out = self.work / name, self.work / f"{name}-out"
        shutil.copytree(self.options.trees / entry["project"] / side, tree, symlinks=True)
        folder = tree / entry["folder"]
        began = time.monotonic()
        result: Json = {"name": entry["name"], "side": side, "built": True, "errors": []}
        out.mkdir()
        env = self.environment(tree, entry)
        if not entry.get("jit"):
            command = [sys.executable, "setup.py", "build_ext", "--build-lib", str(out), "--build-temp", f"{out}-tmp"]
            good, said = run(command, folder, env, min(self.options.seconds, self.left()))
            result.update(built=good and any(out.rglob("*.so")), errors=[] if good else first_errors(said))
        if result["built"]:
            self.check(entry, (folder, out), env, result)
        result["seconds"] = round(time.monotonic() - began)
        self.note(result)
        shutil.rmtree(tree, ignore_errors=True)

    def check(self, entry: Json, places: Tuple[Path, Path], env: Dict[str, str], result: Json) -> None:
        """Runs its check; the build of an extension that is compiled at run time is part of it."""
        folder, out = places
        command = [sys.executable, str(HERE / "checks.py"), entry["check"], str(out), str(folder)]
        good, said = run(command, out, env, CHECK_SECONDS)
        last = said.strip().splitlines()[-1:] or [""]
        answer = json.loads(last[0]) if good and last[0].startswith("{") else {}
        result.update(passed=good, error=answer.get("error"), what=answer.get("what"))
        if not good:
            result["errors"] = [line.strip()[:300] for line in said.splitlines() if line.strip()][-3:]
            result["built"] = result["built"] and "Error building extension" not in said

    def environment(self, tree: Path, entry: Json) -> Dict[str, str]:
        """Architectures that the GPU here and the newest one have; torch takes them where nothing else is said."""
        paths = [str(tree / path) for path in entry.get("paths", [])]
        paths += [os.environ[name] for name in ("PYTHONPATH",) if name in os.environ]
        own = {"TORCH_CUDA_ARCH_LIST": ARCHES, "MAX_JOBS": str(self.options.jobs), "FORCE_CUDA": "1"}
        own["TORCH_EXTENSIONS_DIR"] = str(self.work / f"jit-{tree.name}")
        return {**os.environ, **own, **entry.get("env", {}), "PYTHONPATH": os.pathsep.join(paths)}


def wanted(options: argparse.Namespace) -> List[Tuple[Json, str]]:
    """What was asked for and is not known yet: what is expected to fail, and fails soon, first."""
    entries = json.loads((HERE / "extensions.json").read_text())
    known = set()
    if options.results.exists():
        known = {(one["name"], one["side"]) for one in map(json.loads, options.results.read_text().splitlines())}
    only = [text for text in options.only.split(",") if text]
    chosen = [entry for entry in entries if not only or any(text in entry["name"] for text in only)]
    pairs = [(entry, side) for side in options.side.split(",") for entry in chosen]
    there = lambda entry, side: (options.trees / entry["project"] / side).is_dir()
    return [(entry, side) for entry, side in pairs if there(entry, side) and (entry["name"], side) not in known]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", default="", help="texts in the names, comma separated")
    parser.add_argument("--side", default="after,before")
    parser.add_argument("--at-once", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=4, help="MAX_JOBS of each build")
    parser.add_argument("--seconds", type=float, default=300, help="for one build")
    parser.add_argument("--limit", type=float, default=540, help="for all of them")
    options = parser.parse_args()
    builder = Builder(options)
    with ThreadPoolExecutor(options.at_once) as pool:
        for future in [pool.submit(builder.build, entry, side) for entry, side in wanted(options)]:
            future.result()


if __name__ == "__main__":
    main()
