# SPDX-License-Identifier: BSD-2-Clause
"""Files in which modules remember what a host was like.  What they say is checked again when it is read back.

They lie where root alone makes files.  Nevertheless root sets what they say, and reports it; so each name and value in
them is checked as if a client had sent it, and they are reached through no link.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import beneath
from .durable import write_durably
from .linux import KINDS, Setting, SettingError, Sysctl

MOST_ENTRIES = 100_000
_PROC = "/proc/sys/"


def load(path: str | Path) -> Any:
    """What a file says, None if there is none.  Raises ValueError for one that is damaged, and OSError."""
    try:
        content = beneath.read_text("/", beneath.absolute(path))
    except FileNotFoundError:
        return None
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise damaged(path) from None


def damaged(path: str | Path) -> ValueError:
    """Says what to do with a file that no module has written so."""
    return ValueError(f"{path} is no record: look whether the host is as it should be, and remove it")


def texts(path: str | Path) -> dict[str, str] | None:
    """A file that is one object of names and texts; None if there is none.  Raises ValueError and OSError."""
    found = load(path)
    if found is None:
        return None
    if type(found) is not dict or len(found) > MOST_ENTRIES or any(type(value) is not str for value in found.values()):
        raise damaged(path)
    kept: dict[str, str] = found
    return kept


def sysctl_of(path: str) -> Sysctl:
    """The sysctl that a path below /proc/sys is.  Raises SettingError."""
    if not path.startswith(_PROC):
        raise SettingError(f"{path!r:.80} is no sysctl")
    parts = path[len(_PROC) :].split("/")
    return Sysctl(".".join(part.replace(".", "/") for part in parts))


@dataclass(frozen=True)
class Change:
    """A setting and what it was before it was changed for the first time."""

    setting: Setting
    before: str

    def __post_init__(self) -> None:
        self.setting.require(self.before)  # or it could not be put back


class Memory:
    """The file of what was before, oldest change first.  Raises SettingError, ValueError and OSError."""

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
        """Writes it, and removes it when there is nothing to remember."""
        self.changes = list(changes)
        rows = [[type(c.setting).__name__.lower(), c.setting.name, c.setting.link, c.before] for c in changes]
        if rows:
            write_durably(self.path, json.dumps(rows))
        else:
            forget(self.path)


def forget(path: str | Path) -> None:
    """Removes such a file, if it is there.  Raises OSError."""
    above, _, name = beneath.absolute(path).rpartition("/")
    with beneath.directory("/", above) as descriptor:
        try:
            os.unlink(name, dir_fd=descriptor)
        except FileNotFoundError:
            return
