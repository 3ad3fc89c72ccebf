"""Stand-ins for what a setup.py asks of the machine: processes, files, the network, the platform."""

from __future__ import annotations

import builtins
import email.message
import io
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Dict, List, Optional, Union

from environment import Environment, hipcc_answer, nvcc_answer

Answer = Union[str, bytes]


class Commands:
    """Answers for the few programs that a setup.py starts; nothing is ever started."""

    def __init__(self, environment: Environment) -> None:
        self.answers = {"git": "", "rm": "", "pip": ""}
        if environment.cuda_home and environment.toolkit:
            self.answers["nvcc"] = nvcc_answer(environment.toolkit)
        if environment.hip:
            self.answers["hipcc"] = hipcc_answer()

    def answer(self, command: Any) -> str:
        """What the command prints; as if not installed when it is none of ours."""
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
        name = os.path.basename(words[0])
        if name not in self.answers:
            raise FileNotFoundError(2, "No such file or directory", words[0])
        return self.answers[name]

    def check_output(self, command: Any, *_: Any, **options: Any) -> Answer:
        """subprocess.check_output."""
        return _as_asked(self.answer(command), options)

    def run(self, command: Any, *_: Any, **options: Any) -> "subprocess.CompletedProcess[Answer]":
        """subprocess.run."""
        printed = _as_asked(self.answer(command), options)
        return subprocess.CompletedProcess(command, 0, printed, _as_asked("", options))

    def call(self, command: Any, *_: Any, **__: Any) -> int:
        """subprocess.call, check_call and os.system."""
        self.answer(command)
        return 0

    def start(self, command: Any, *_: Any, **options: Any) -> "Shell":
        """subprocess.Popen: a shell that finds nothing; any other program is answered or missing."""
        words = command.split() if isinstance(command, str) else [str(word) for word in command]
        if words[0] in ("bash", "sh") or options.get("shell"):
            return Shell()
        raise PermissionError(f"a process was started: {command}")

    def popen(self, command: Any, *_: Any, **__: Any) -> Any:
        """os.popen: too much to stand in for."""
        raise PermissionError(f"a process was started: {command}")

    def which(self, command: str, *_: Any, **__: Any) -> Optional[str]:
        """shutil.which."""
        name = os.path.basename(command)
        return f"/stand-in/bin/{name}" if name in self.answers else None

    def install(self) -> None:
        """Replaces the functions of the standard library."""
        subprocess.check_output = self.check_output  # type: ignore[assignment]
        subprocess.getoutput = lambda command, **_: self.answer(command)  # type: ignore[assignment]
        subprocess.run = self.run  # type: ignore[assignment]
        subprocess.call = subprocess.check_call = self.call  # type: ignore[assignment]
        subprocess.Popen = self.start  # type: ignore[assignment,misc]
        os.system = self.call
        os.popen = self.popen  # type: ignore[assignment]
        shutil.which = self.which  # type: ignore[assignment]


def _as_asked(text: str, options: Dict[str, Any]) -> Answer:
    as_text = any(options.get(name) for name in ("text", "universal_newlines", "encoding", "errors"))
    return text if as_text else text.encode()


class Shell:
    """A process that says that it knows no such command."""

    returncode = 127

    def communicate(self, *_: Any, **__: Any) -> Any:
        """Nothing on either stream."""
        return b"", b""

    def wait(self, *_: Any, **__: Any) -> int:
        """The exit status."""
        return self.returncode

    poll = wait


class Network:
    """urllib.request without a network: `mode` says what a download does, `requests` what was asked for."""

    MODES = ("ok", "http-error", "url-error")

    def __init__(self) -> None:
        self.mode = "url-error"
        self.requests: List[Dict[str, Optional[str]]] = []

    def _ask(self, request: Any, filename: Any) -> None:
        url = getattr(request, "full_url", str(request))
        self.requests.append({"url": url, "file": None if filename is None else os.path.basename(filename)})
        if self.mode == "http-error":
            raise urllib.error.HTTPError(url, 404, "Not Found", email.message.Message(), io.BytesIO())
        if self.mode == "url-error":
            raise urllib.error.URLError("Name or service not known")

    def urlretrieve(self, url: Any, filename: Any = None, *_: Any, **__: Any) -> Any:
        """urllib.request.urlretrieve."""
        self._ask(url, filename)
        target = filename or "download"
        Path(target).write_bytes(b"a downloaded wheel")
        return target, email.message.Message()

    def urlopen(self, url: Any, *_: Any, **__: Any) -> io.BytesIO:
        """urllib.request.urlopen."""
        self._ask(url, None)
        return io.BytesIO(b"a downloaded wheel")

    def install(self) -> None:
        """Replaces the functions of the standard library."""
        urllib.request.urlretrieve = self.urlretrieve  # type: ignore[assignment]
        urllib.request.urlopen = self.urlopen  # type: ignore[assignment]


class Files:
    """open() that reads stand-ins for files that are not there, and writes only under one folder."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder.resolve()
        self.version = version
        self.real_open = io.open

    def open(self, file: Any, mode: str = "r", *args: Any, **options: Any) -> Any:
        """The built-in open."""
        if isinstance(file, int):
            return self.real_open(file, mode, *args, **options)
        if set(mode) & set("wax+"):
            self._refuse_outside(Path(os.fspath(file)))
        try:
            return self.real_open(file, mode, *args, **options)
        except FileNotFoundError:
            text = self._stand_in(os.path.basename(os.fspath(file)))
            if text is None:
                raise
            return io.BytesIO(text.encode()) if "b" in mode else io.StringIO(text)

    def _refuse_outside(self, path: Path) -> None:
        if self.folder not in path.resolve().parents:
            raise PermissionError(f"setup.py writes outside its folder: {path}")

    def _stand_in(self, name: str) -> Optional[str]:
        versioned = ("__init__.py", "version.py", "_version.py", "__version__.py")
        return f'__version__ = "{self.version}"\n' if name in versioned else None

    def install(self) -> None:
        """Replaces the built-in and what pathlib uses."""
        builtins.open = self.open  # type: ignore[assignment]
        io.open = self.open  # type: ignore[assignment]


def pretend_platform(environment: Environment) -> None:
    """Makes sys, platform, os and sysconfig name the environment's platform and machine."""
    system = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}.get(environment.platform, "Unknown")
    names = (system, "stand-in", "6.0.0", "#1", environment.machine)
    sys.platform = environment.platform  # type: ignore[misc]
    platform.system = lambda: system  # type: ignore[assignment]
    platform.machine = lambda: environment.machine  # type: ignore[assignment]
    platform.processor = platform.machine
    platform.uname = lambda: platform.uname_result(*names)  # type: ignore[assignment,call-arg]
    if hasattr(os, "uname"):
        os.uname = lambda: os.uname_result(names)  # type: ignore[attr-defined,assignment]
    wheel_platform = "win-amd64" if environment.platform == "win32" else f"{environment.platform}-{environment.machine}"
    sysconfig.get_platform = lambda: wheel_platform


def pretend_variables(environment: Environment) -> None:
    """Leaves only what the environment gives, and what the standard library needs."""
    needed = ("PATH", "HOME", "TMPDIR", "TEMP", "SYSTEMROOT")
    kept = {name: os.environ[name] for name in needed if name in os.environ}
    os.environ.clear()
    os.environ.update({**kept, **environment.env})
