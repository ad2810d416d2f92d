# SPDX-License-Identifier: BSD-2-Clause
"""When to measure: while the CPUs of this machine are its own, as far as a *control* shows (module_utils/cpuspeed.py).

A sample counts if the control was fast before it and after it; what the sample itself said has no part in that.  What
these CPUs can do is remembered until the machine is booted again: a bench that begins while they are busy would take
that for their best.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from playbooks.module_utils.cpuspeed import speed
from tests.stack.results import BOOT, keep, kept

LIMIT = 0.1  # what the control may lose of its best, in a sample that counts
PAUSE = 0.3  # seconds between two looks while waiting
NAME = "control"  # of what is remembered

T = TypeVar("T")


class Control:
    """The best speed that the slowest CPU had while all worked at once, and how long to wait for it to come back."""

    def __init__(self, patience: float, best: float = 0.0) -> None:
        """`patience` is in seconds from now."""
        self.until = time.monotonic() + patience
        self.best = best

    @classmethod
    def remembering(cls, patience: float) -> Control:
        """One that knows the best of the controls before it, since this machine was booted."""
        return cls(patience, _remembered())

    def remember(self) -> None:
        """Tells later ones of its best."""
        keep(NAME, {"boot": BOOT, "best": max(self.best, _remembered())})

    def speed(self) -> float:
        """A look: blocks in a second, of the slowest CPU."""
        now = speed(os.sched_getaffinity(0))
        self.best = max(self.best, now)
        return now

    def is_quiet(self, speed: float) -> bool:
        """Whether a speed is near the best one, as known by now."""
        return speed >= (1 - LIMIT) * self.best

    def waits(self) -> bool:
        """Whether there is time left to wait."""
        return time.monotonic() < self.until

    def quiet(self) -> float:
        """Waits for a fast look, if there is time; its speed."""
        while not self.is_quiet(speed := self.speed()) and self.waits():
            time.sleep(PAUSE)
        return speed

    def around(self, measure: Callable[[], T]) -> tuple[T, float]:
        """What `measure` gives, begun after a fast look if there is time, and the slower of the looks around it."""
        before = self.quiet()
        measured = measure()
        return measured, min(before, self.speed())


def _remembered() -> float:
    try:
        before = kept(NAME)
    except FileNotFoundError:
        return 0.0
    return float(before["best"]) if before["boot"] == BOOT else 0.0
