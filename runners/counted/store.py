# SPDX-License-Identifier: BSD-2-Clause
"""Directories that are made once and named by the content that they are made of."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path


def key(*parts: str | bytes) -> str:
    """Returns a name for what is made of these parts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()[:24]


def made(folder: Path, make: Callable[[Path], None]) -> Path:
    """Returns `folder`. If it is missing, `make` fills a new directory, which then gets its name: it is never half."""
    if not folder.exists():
        new = folder.with_name(f"{folder.name}.{os.getpid()}.new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        try:
            make(new)
            try:
                new.rename(folder)
            except OSError:
                if not folder.exists():  # else another process has made the same
                    raise
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return folder


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Lets one process at a time use a directory; the others wait."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
