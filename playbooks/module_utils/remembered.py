# SPDX-License-Identifier: BSD-2-Clause
"""Files in which modules save the old settings of a host; their contents are checked when they are read.

They are in directories where only root makes files. Nevertheless root applies and reports their contents. So each name
and value in them is checked as if a client had sent it, and no link may lead to them. They are complete or absent even
after a crash of the host, because tests crash kernels.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import beneath
from .linux import KINDS, Setting, SettingError, Sysctl

MOST_ENTRIES = 100_000
_PROC = "/proc/sys/"


def load(path: str | Path) -> Any:
    """Returns the contents of a file, None if there is none. Raises ValueError for a damaged one, and OSError."""
    try:
        content = beneath.read_text("/", beneath.absolute(path))
    except FileNotFoundError:
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise damaged(path) from None


def write_durably(path: Path, text: str) -> None:
    """Replaces a file, and waits until its text and its name are on the disk.

    Without syncing the text first, a name can be there without its text (fsync(2)). The path must have no links. Raises
    OSError.
    """
    above, _, name = beneath.absolute(path).rpartition("/")
    new = f"{name}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with beneath.directory("/", above) as directory, beneath.opened("/", f"{above}/{new}", flags) as descriptor:
        with open(descriptor, "w", encoding="utf-8", closefd=False) as file:
            file.write(text)
        os.fsync(descriptor)
        os.replace(new, name, src_dir_fd=directory, dst_dir_fd=directory)
    # A descriptor opened with O_PATH cannot be synchronised.
    whole = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(whole)
    finally:
        os.close(whole)


def damaged(path: str | Path) -> ValueError:
    """Raises ValueError with what to do about a file that no module has written like this."""
    return ValueError(f"{path} is no record: look whether the host is as it should be, and remove it")


def texts(path: str | Path) -> dict[str, str] | None:
    """Returns a file that is one object of names and texts; None if there is none. Raises ValueError and OSError."""
    found = load(path)
    if found is None:
        return None
    if type(found) is not dict or len(found) > MOST_ENTRIES or any(type(value) is not str for value in found.values()):
        raise damaged(path)
    kept: dict[str, str] = found
    return kept


def sysctl_of(path: str) -> Sysctl:
    """Returns the sysctl of a path below /proc/sys. Raises SettingError."""
    if not path.startswith(_PROC):
        raise SettingError(f"{path!r:.80} is no sysctl")
    parts = path[len(_PROC) :].split("/")
    return Sysctl(".".join(part.replace(".", "/") for part in parts))


@dataclass(frozen=True)
class Change:
    """A setting and its value before the first change."""

    setting: Setting
    before: str

    def __post_init__(self) -> None:
        self.setting.require(self.before)  # or the value could not be restored


class Memory:
    """The file of old values, oldest change first. Raises SettingError, ValueError and OSError."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        found = load(path)
        self.changes = [] if found is None else self._changes(found)

    def _changes(self, rows: object) -> list[Change]:
        if type(rows) is not list or len(rows) > MOST_ENTRIES:
            raise damaged(self.path)
        return [self._change(row) for row in rows]

    def _change(self, row: object) -> Change:
        if type(row) is not list or len(row) != 4 or any(type(word) is not str for word in row) or row[0] not in KINDS:
            raise damaged(self.path)
        kind, name, link, before = row
        return Change(KINDS[kind](name, link), before)

    def keep(self, changes: Sequence[Change]) -> None:
        """Writes the file; removes it if there is nothing to save."""
        self.changes = list(changes)
        rows = [[type(c.setting).__name__.lower(), c.setting.name, c.setting.link, c.before] for c in changes]
        if rows:
            write_durably(self.path, json.dumps(rows))
        else:
            forget(self.path)


def forget(path: str | Path) -> None:
    """Removes such a file if it exists. Raises OSError."""
    above, _, name = beneath.absolute(path).rpartition("/")
    with beneath.directory("/", above) as descriptor:
        try:
            os.unlink(name, dir_fd=descriptor)
        except FileNotFoundError:
            return
