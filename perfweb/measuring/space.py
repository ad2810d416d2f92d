# SPDX-License-Identifier: BSD-2-Clause
"""Disk space of this machine: whether there is enough to measure, and which errors mean that there is not."""

import errno
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from perfweb.builds.services import source_store

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class DiskFullError(Exception):
    """There is too little space on a disk of this machine; the message names where, and how much is needed."""


@dataclass(frozen=True)
class Shortage:
    """A directory whose disk has less space than is needed, in megabytes of 1048576 bytes."""

    path: Path
    free: int
    needed: int

    def __str__(self) -> str:
        return f"{self.path} has {self.free} MB free and {self.needed} MB are needed"


def is_full(error: BaseException) -> bool:
    """Return whether an exception, or its cause, means a full disk or quota (errno(3))."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in FULL:
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def require() -> None:
    """Raises DiskFullError if a disk that runs write to has too little space."""
    if found := shortages():
        raise DiskFullError("; ".join(map(str, found)))


def shortages() -> list[Shortage]:
    """Return the directories that runs write to on this machine and whose disks have less than RESERVE_MB free."""
    needed = settings.RESERVE_MB
    found = ((path, shutil.disk_usage(path).free >> 20) for path in _places())
    return [Shortage(path, free, needed) for path, free in found if free < needed]


def _places() -> Iterator[Path]:
    """Return one existing directory of each disk."""
    seen = set()
    for wanted in (Path(settings.PERFWEB_VAR), source_store()):
        path = next(place for place in (wanted, *wanted.parents) if place.exists())
        device = path.stat().st_dev
        if device not in seen:
            seen.add(device)
            yield path
