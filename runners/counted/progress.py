# SPDX-License-Identifier: BSD-2-Clause
"""The progress of a command: a line for each step, which a terminal shows as it changes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_COLUMNS = 79
_PAUSE = 0.1
_BAR = 30
"""Characters of a whole bar."""


class Progress:
    """Writes to a terminal, or to a file without the changes."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._terminal = out.isatty()
        self._name = ""
        self._written = 0.0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """A step of the command: shows its name, and at its end the seconds that it took."""
        begun, self._name = time.monotonic(), name
        self.detail("")
        yield
        self._show(f"{name}: {time.monotonic() - begun:.0f} s", "\n")

    def detail(self, text: str) -> None:
        """Shows where the step is, at most ten times a second."""
        now = time.monotonic()
        if self._terminal and (not text or now - self._written > _PAUSE):
            self._written = now
            self._show(f"{self._name}: {text or '…'}", "")

    def share(self, done: int, total: int, what: str) -> None:
        """Shows a bar for the part of a step that is done; `total` may be a little less than all."""
        done = min(done, total)
        filled = _BAR * done // total
        self.detail(f"[{'#' * filled}{'.' * (_BAR - filled)}] {done} of {total} {what}")

    def _show(self, text: str, end: str) -> None:
        start = "\r\x1b[K" if self._terminal else ""
        self._out.write(f"{start}{text[:_COLUMNS] if self._terminal else text}{end}")
        self._out.flush()
