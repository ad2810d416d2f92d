# SPDX-License-Identifier: BSD-2-Clause
"""Output of hosts on their serial consoles during a boot: only there are the last messages of a kernel that panics."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path

from perfweb.lab.inventory import InventoryHost

log = logging.getLogger(__name__)

MOST_BYTES = 1024 * 1024
"""Max bytes kept of a console, from its end."""


class Consoles:
    """The consoles that the inventory has as files on this machine, from now on."""

    def __init__(self, hosts: Iterable[InventoryHost]) -> None:
        self._begun = {host: _size(host.console_log) for host in hosts if host.console_log}

    def output(self) -> dict[str, str]:
        """Returns the new output of each console, by the role of its host; of a replaced file, all of it."""
        return {host.role: text for host, begun in self._begun.items() if (text := _since(host.console_log, begun))}


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _since(path: str, begun: int) -> str:
    """Returns the text of a file from an offset on; empty if it is unreadable, which must not fail a run."""
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            begun = begun if begun <= size else 0
            file.seek(max(begun, size - MOST_BYTES))
            return file.read(MOST_BYTES).decode("utf-8", "replace").replace("\r", "").replace("\0", "")
    except OSError as error:
        log.warning("the console of a host cannot be read: %s", error)
        return ""
