"""What the `sed` lines that circulate do to every release: a Markdown table.

    python3 sed_table.py [FOLDER_OF_MIRRORS] > sed-lines.md

The folder (default: $MAMBAPATCH_MIRRORS) holds `<owner>+<repo>/repo` or `<repo>.git`. Needs git and GNU sed.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List

UPSTREAMS = {"mamba": "state-spaces", "causal-conv1d": "Dao-AILab"}
_APPENDED = r"""a\    cc_flag.append("-gencode")\n    cc_flag.append("arch=compute_120,code=sm_120")"""
LINES = {
    "a": r"""s/\"90\"/\"90\",\"120\"/""",
    "b": "/arch=compute_90/" + _APPENDED,
    "c": "/compute_90/" + _APPENDED,
}
RUN_SETUP = Path(__file__).with_name("run_setup.py")
ADDED = "arch=compute_120,code=sm_120"
Runs = Dict[str, Dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """One sed line on one release."""

    ref: str
    matched: bool
    valid: bool
    before: Runs
    after: Runs

    def times(self, where: str) -> int:
        """How often nvcc (or hipcc) would get the added value, more than before."""
        return self.after[where]["nvcc"].count(ADDED) - self.before[where]["nvcc"].count(ADDED)

    def reaches(self) -> bool:
        """nvcc 12.8 would be given the architecture."""
        return self.matched and self.after["12.8"]["ok"] and self.times("12.8") > 0

    def guarded(self) -> bool:
        """... and older toolkits would not."""
        return self.reaches() and self.times("12.3") == 0

    def leaks(self) -> bool:
        """hipcc would be given it too."""
        return self.matched and self.times("hip") > 0


COLUMNS: Dict[str, Callable[[Case], bool]] = {
    "matched": lambda case: case.matched,
    "valid Python": lambda case: case.matched and case.valid,
    "flags reach nvcc 12.8": Case.reaches,
    "guarded by toolkit": Case.guarded,
    "leaks into HIP": Case.leaks,
}


def git(mirror: Path, *arguments: str) -> str:
    """Asks git."""
    command = ["git", "-C", str(mirror), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def mirror_of(folder: Path, repository: str) -> Path:
    """Where the mirror of an upstream lies."""
    for name in (f"{UPSTREAMS[repository]}+{repository}/repo", f"{repository}.git"):
        if (folder / name).is_dir():
            return folder / name
    raise SystemExit(f"no mirror of {repository} in {folder}")


def refs(mirror: Path) -> List[str]:
    """All tags in the order of their versions, then main."""
    return git(mirror, "tag", "--sort=version:refname").split() + ["main"]


def sed(line: str, text: str) -> str:
    """What sed makes of a text."""
    return subprocess.run(["sed", line], input=text, check=True, capture_output=True, text=True).stdout


def is_python(text: str) -> bool:
    """Whether it parses."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def run_all(texts: Dict[str, str]) -> Dict[str, Runs]:
    """Runs each text at 12.3, 12.8 and on a ROCm machine."""
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder, str(number)) for number, name in enumerate(texts)}
        for name, path in files.items():
            path.write_text(texts[name], encoding="utf-8")
        matrix = ["--toolkits", "12.3,12.8", "--hip", "--env", "MAMBA_KEEP_CUDA_BUILD=TRUE"]
        command = [sys.executable, "-B", str(RUN_SETUP), *matrix, *map(str, files.values())]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    answers = [json.loads(line)["runs"] for line in printed.splitlines()]
    return {name: {run["toolkit"] or "hip": run for run in runs} for name, runs in zip(files, answers)}


def cases(texts: Dict[str, str], line: str) -> List[Case]:
    """One sed line on every release of an upstream."""
    patched = {ref: sed(line, text) for ref, text in texts.items()}
    before, after = run_all(texts), run_all(patched)
    return [
        Case(ref, patched[ref] != text, is_python(patched[ref]), before[ref], after[ref])
        for ref, text in texts.items()
    ]


def span(found: List[Case], holds: Callable[[Case], bool]) -> str:
    """`26 (v1.0.0 - v2.2.4)`; every case is just `36 of 36`."""
    names = [case.ref for case in found if holds(case)]
    if len(names) in (0, len(found)):
        return f"{len(names)} of {len(found)}"
    return f"{len(names)} ({names[0]} - {names[-1]})"


def table(folder: Path) -> str:
    """The table, as Markdown."""
    rows = [["", *COLUMNS], ["---"] * (1 + len(COLUMNS))]
    for repository in UPSTREAMS:
        mirror = mirror_of(folder, repository)
        texts = {ref: git(mirror, "show", f"{ref}:setup.py") for ref in refs(mirror)}
        for name, line in LINES.items():
            found = cases(texts, line)
            rows.append([f"{name}, {repository}", *(span(found, holds) for holds in COLUMNS.values())])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def main() -> None:
    """Prints the lines and the table."""
    folder = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("MAMBAPATCH_MIRRORS")
    if not folder:
        raise SystemExit("which mirrors? give a folder, or set MAMBAPATCH_MIRRORS")
    for name, line in LINES.items():
        print(f"- {name}: `sed -i '{line}' setup.py`")
    print(f"\n{table(Path(folder))}")


if __name__ == "__main__":
    main()
