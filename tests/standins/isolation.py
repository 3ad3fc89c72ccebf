"""A fresh interpreter state for every run: a fork where there is one, else a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict

import capture
from environment import Environment

SECONDS = 60


@dataclass(frozen=True)
class Job:
    """One setup.py in one environment, with a folder that is its own."""

    path: Path
    folder: Path
    environment: Environment

    def run(self) -> Dict[str, Any]:
        """Runs it here."""
        if self.environment.in_place:
            return capture.run(self.path, self.path.parent, self.environment)
        self.folder.mkdir()
        return capture.run(self.path, self.folder, self.environment)

    def failed(self, error: str) -> Dict[str, Any]:
        """The result when there is none."""
        about = {"toolkit": self.environment.toolkit, "hip": self.environment.hip}
        return {**about, "ok": False, "nvcc": [], "cxx": [], "error": error, "error_line": None}


class Forked:
    """A job that runs in a fork."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.reader, writer = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            self._run_and_leave(writer)
        os.close(writer)

    def _run_and_leave(self, writer: int) -> None:
        try:
            signal.alarm(SECONDS)
            os.close(self.reader)
            answer = json.dumps(self.job.run()).encode()
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(answer)
        except BaseException as error:
            os.write(2, f"{self.job.path}: {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(0)

    def result(self) -> Dict[str, Any]:
        """Waits for it."""
        with os.fdopen(self.reader, "rb") as pipe:
            answer = pipe.read()
        _, status = os.waitpid(self.child, 0)
        return json.loads(answer) if answer else self.job.failed(f"the run ended early (wait status {status})")


class Spawned:
    """A job that runs in a new interpreter, for systems without fork."""

    def __init__(self, job: Job) -> None:
        self.job = job
        described = {
            "path": str(job.path),
            "folder": str(job.folder),
            "environment": job.environment.to_json(),
        }
        command = [sys.executable, __file__, json.dumps(described)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)

    def result(self) -> Dict[str, Any]:
        """Waits for it."""
        answer, _ = self.process.communicate(timeout=SECONDS)
        status = self.process.returncode
        return json.loads(answer) if answer else self.job.failed(f"the run ended early (exit status {status})")


def start(job: Job, kind: str) -> Any:
    """Starts the job; `kind` is "auto" or "process"."""
    return Forked(job) if kind == "auto" and hasattr(os, "fork") else Spawned(job)


def _main(described: str) -> None:
    job = json.loads(described)
    environment = Environment(**job["environment"])
    result = Job(Path(job["path"]), Path(job["folder"]), environment).run()
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    _main(sys.argv[1])
