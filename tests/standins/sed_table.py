"""What the `sed` lines that circulate do to every release, and what mambapatch does: a Markdown table.

    python3 sed_table.py [FOLDER_OF_MIRRORS [MAMBAPATCH]] > sed-lines.md

The folder (default: $MAMBAPATCH_MIRRORS) holds `<owner>+<repo>/repo` or `<repo>.git`. With the path of the binary
`mambapatch` there is a row for it too. Needs git and GNU sed.
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
from typing import Any, Callable, Dict, List, Optional

UPSTREAMS = {"mamba": "state-spaces", "causal-conv1d": "Dao-AILab"}
DISTRIBUTIONS = {"mamba": "mamba-ssm", "causal-conv1d": "causal-conv1d"}
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
class Patched:
    """What became of one setup.py."""

    text: str
    changed: bool
    there: bool
    """Nothing changed, and the tool said that the architecture is there already; sed never says so."""
    again: str
    """The text after a second run."""


@dataclass(frozen=True)
class Case:
    """One way to patch, on one release."""

    ref: str
    patched: Patched
    before: Runs
    after: Runs

    def matched(self) -> bool:
        """The file changed, or the tool said that there is nothing to do."""
        return self.patched.changed or self.patched.there

    def valid(self) -> bool:
        """The result parses."""
        return self.matched() and is_python(self.patched.text)

    def times(self, where: str) -> int:
        """How often nvcc (or hipcc) gets the value: all in all where it was there already, else more than before."""
        had = 0 if self.patched.there else self.before[where]["nvcc"].count(ADDED)
        return self.after[where]["nvcc"].count(ADDED) - had

    def reaches(self) -> bool:
        """nvcc 12.8 would be given the architecture, once."""
        return self.matched() and self.after["12.8"]["ok"] and self.times("12.8") == 1

    def guarded(self) -> bool:
        """... and older toolkits would not."""
        return self.reaches() and self.times("12.3") == 0

    def leaks(self) -> bool:
        """hipcc would be given it too."""
        return self.matched() and self.times("hip") > 0

    def settles(self) -> bool:
        """A second run changes nothing."""
        return self.matched() and self.patched.again == self.patched.text


COLUMNS: Dict[str, Callable[[Case], bool]] = {
    "matched": Case.matched,
    "valid Python": Case.valid,
    "flags reach nvcc 12.8": Case.reaches,
    "guarded by toolkit": Case.guarded,
    "leaks into HIP": Case.leaks,
    "second run changes nothing": Case.settles,
}
Patch = Callable[[str, str], Patched]
"""From a ref and its setup.py to what becomes of it."""


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


def sed(line: str) -> Patch:
    """A sed line as a way to patch."""

    def once(text: str) -> str:
        return subprocess.run(["sed", line], input=text, check=True, capture_output=True, text=True).stdout

    def patch(_ref: str, text: str) -> Patched:
        new = once(text)
        return Patched(new, new != text, False, once(new))

    return patch


def mambapatch(binary: Path, mirrors: Path, upstream: str) -> Patch:
    """`mambapatch diff UPSTREAM@REF --add-arch 120`, its diff put in by git, as a way to patch."""

    def diff(target: str, folder: Path) -> Dict[str, Any]:
        own = {name: str(folder / "home") for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
        environment = {**os.environ, **own, "MAMBAPATCH_MIRRORS": str(mirrors)}
        command = [str(binary), "diff", target, "--add-arch", "120", "--format", "json", "--offline"]
        printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder, env=environment)
        document: Dict[str, Any] = json.loads(printed.stdout)
        return document

    def outcome(document: Dict[str, Any]) -> str:
        return str(document["patches"][0]["ops"][0]["outcome"])

    def put_in(document: Dict[str, Any], tree: Path) -> str:
        if document["diff"]:
            environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
            subprocess.run(["git", "apply"], input=document["diff"], check=True, text=True, cwd=tree, env=environment)
        return (tree / "setup.py").read_text(encoding="utf-8")

    def patch(ref: str, text: str) -> Patched:
        with tempfile.TemporaryDirectory() as name:
            folder, tree = Path(name), Path(name, "tree")
            tree.mkdir()
            (tree / "setup.py").write_text(text, encoding="utf-8")
            first = diff(f"{upstream}@{ref}", folder)
            new = put_in(first, tree)
            second = put_in(diff("./tree", folder), tree)
        return Patched(new, new != text, outcome(first) == "already-satisfied", second)

    return patch


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


def cases(texts: Dict[str, str], patch: Patch) -> List[Case]:
    """One way to patch, on every release of an upstream."""
    patched = {ref: patch(ref, text) for ref, text in texts.items()}
    before, after = run_all(texts), run_all({ref: one.text for ref, one in patched.items()})
    return [Case(ref, patched[ref], before[ref], after[ref]) for ref in texts]


def span(found: List[Case], holds: Callable[[Case], bool]) -> str:
    """`26 (v1.0.0 - v2.2.4)`; every case is just `36 of 36`."""
    names = [case.ref for case in found if holds(case)]
    if len(names) in (0, len(found)):
        return f"{len(names)} of {len(found)}"
    return f"{len(names)} ({names[0]} - {names[-1]})"


def ways(folder: Path, binary: Optional[Path], repository: str) -> Dict[str, Patch]:
    """The ways to patch an upstream, by the name of their row."""
    found = {f"{name}, {repository}": sed(line) for name, line in LINES.items()}
    if binary:
        found[f"mambapatch, {repository}"] = mambapatch(binary, folder, DISTRIBUTIONS[repository])
    return found


def table(folder: Path, binary: Optional[Path]) -> str:
    """The table, as Markdown."""
    rows = [["", *COLUMNS], ["---"] * (1 + len(COLUMNS))]
    remarks = []
    for repository in UPSTREAMS:
        mirror = mirror_of(folder, repository)
        texts = {ref: git(mirror, "show", f"{ref}:setup.py") for ref in refs(mirror)}
        for name, patch in ways(folder, binary, repository).items():
            found = cases(texts, patch)
            rows.append([name, *(span(found, holds) for holds in COLUMNS.values())])
            if any(case.patched.there for case in found):
                changed = span(found, lambda case: case.patched.changed)
                there = span(found, lambda case: case.patched.there)
                remarks.append(f"{name}: changes {changed}, says of {there} that it is there already.")
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines + [line for remark in remarks for line in ("", remark)])


def main() -> None:
    """Prints the lines and the table."""
    folder = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("MAMBAPATCH_MIRRORS")
    if not folder:
        raise SystemExit("which mirrors? give a folder, or set MAMBAPATCH_MIRRORS")
    binary = Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else None
    for name, line in LINES.items():
        print(f"- {name}: `sed -i '{line}' setup.py`")
    print(f"\n{table(Path(folder).resolve(), binary)}")


if __name__ == "__main__":
    main()
