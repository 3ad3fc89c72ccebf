"""PEP 440 versions for a Python without `packaging`: the part of packaging.version that a setup.py uses."""

from __future__ import annotations

import functools
import re
from typing import Any, Optional, Tuple

_PATTERN = re.compile(
    r"""\s*v?
    (?:(?P<epoch>\d+)!)?
    (?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre_name>alpha|beta|preview|pre|a|b|c|rc)[-_.]?(?P<pre_number>\d+)?)?
    (?P<post>-(?P<post_short>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_number>\d+)?)?
    (?P<dev>[-_.]?dev[-_.]?(?P<dev_number>\d+)?)?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?
    \s*""",
    re.VERBOSE | re.IGNORECASE,
)
_PRE_NAMES = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}


class InvalidVersion(ValueError):
    """A text that PEP 440 cannot read."""


@functools.total_ordering
class Version:
    """A version, compared and printed as packaging.version.Version does."""

    def __init__(self, version: str) -> None:
        match = _PATTERN.fullmatch(version)
        if match is None:
            raise InvalidVersion(f"Invalid version: {version!r}")
        self.epoch = int(match["epoch"] or 0)
        self.release = tuple(int(part) for part in match["release"].split("."))
        self.pre = _pre(match)
        self.post = _post(match)
        self.dev = int(match["dev_number"] or 0) if match["dev"] else None
        self.local = _normal_local(match["local"])

    major = property(lambda self: self.release[0])
    minor = property(lambda self: (self.release + (0,))[1])
    micro = property(lambda self: (self.release + (0, 0))[2])
    public = property(lambda self: str(self).split("+")[0])
    is_devrelease = property(lambda self: self.dev is not None)
    is_postrelease = property(lambda self: self.post is not None)
    is_prerelease = property(lambda self: self.dev is not None or self.pre is not None)

    @property
    def base_version(self) -> str:
        """Epoch and release alone."""
        epoch = f"{self.epoch}!" if self.epoch else ""
        return epoch + ".".join(map(str, self.release))

    def __str__(self) -> str:
        pre = "" if self.pre is None else f"{self.pre[0]}{self.pre[1]}"
        post = "" if self.post is None else f".post{self.post}"
        dev = "" if self.dev is None else f".dev{self.dev}"
        local = "" if self.local is None else f"+{self.local}"
        return self.base_version + pre + post + dev + local

    def __repr__(self) -> str:
        return f"<Version('{self}')>"

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Version) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._key() < other._key() if isinstance(other, Version) else NotImplemented

    def _key(self) -> Tuple[Any, ...]:
        """PEP 440's order: dev < pre < final < post, a local part on top."""
        release = self.release
        while len(release) > 1 and release[-1] == 0:
            release = release[:-1]
        post = -1 if self.post is None else self.post
        dev = (1, 0) if self.dev is None else (0, self.dev)
        return (self.epoch, release, self._pre_key(), post, dev, _local_key(self.local))

    def _pre_key(self) -> Tuple[Any, ...]:
        if self.pre is not None:
            return (0, *self.pre)
        only_dev = self.post is None and self.dev is not None
        return (-1,) if only_dev else (1,)


def parse(version: str) -> Version:
    """Reads a version."""
    return Version(version)


def _pre(match: "re.Match[str]") -> Optional[Tuple[str, int]]:
    if match["pre_name"] is None:
        return None
    name = match["pre_name"].lower()
    return (_PRE_NAMES.get(name, name), int(match["pre_number"] or 0))


def _post(match: "re.Match[str]") -> Optional[int]:
    if match["post"] is None:
        return None
    return int(match["post_short"] or match["post_number"] or 0)


def _local_parts(local: str) -> Tuple[Any, ...]:
    parts = re.split(r"[-_.]", local.lower())
    return tuple(int(part) if part.isdigit() else part for part in parts)


def _normal_local(local: Optional[str]) -> Optional[str]:
    return None if local is None else ".".join(map(str, _local_parts(local)))


def _local_key(local: Optional[str]) -> Tuple[Any, ...]:
    if local is None:
        return ()
    numbers_last = (((1, part, "") if isinstance(part, int) else (0, 0, part)) for part in _local_parts(local))
    return ((1, tuple(numbers_last)),)
