# SPDX-License-Identifier: BSD-2-Clause
"""What hosts say on their serial consoles during a boot: the last words of a kernel that panics are nowhere else."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path

from perfweb.lab.inventory import InventoryHost

log = logging.getLogger(__name__)

MOST_BYTES = 1024 * 1024
"""So much of a console is kept, its end."""


class Consoles:
    """The consoles with a file on this machine in the inventory, from now on."""

    def __init__(self, hosts: Iterable[InventoryHost]) -> None:
        self._begun = {host: _size(host.console_log) for host in hosts if host.console_log}

    def said(self) -> dict[str, str]:
        """The new output of each console, by the role of its host; of a replaced file, all of it."""
        return {host.role: text for host, begun in self._begun.items() if (text := _since(host.console_log, begun))}


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _since(path: str, begun: int) -> str:
    """The text of a file from a place on; empty if it cannot be read, which no run shall fail of."""
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            begun = begun if begun <= size else 0
            file.seek(max(begun, size - MOST_BYTES))
            return file.read(MOST_BYTES).decode("utf-8", "replace").replace("\r", "").replace("\0", "")
    except OSError as error:
        log.warning("the console of a host cannot be read: %s", error)
        return ""
