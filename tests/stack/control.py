# SPDX-License-Identifier: BSD-2-Clause
"""Whether the CPUs of this machine are its own: a *control*, work on which no change of the stack has an effect.

All CPUs of a guest can be slower for seconds at a time, by a third where this was seen, as if they were threads of one
core of a busy host; steal does not show it. So a sample counts if the control was fast before it and after it; what the
sample itself said has no part in that.  What these CPUs can do is remembered until the machine is booted again: a bench
that begins while they are busy would take that for their best.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tests.stack.results import BOOT, keep, kept

SECONDS = 0.05  # of one look
LIMIT = 0.1  # what the control may lose of its best, in a sample that counts
PAUSE = 0.3  # seconds between two looks while waiting
BLOCK = bytes(1 << 20)  # hashing it takes about a millisecond, in which Python's lock is free

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
        cpus = os.sched_getaffinity(0)
        start = threading.Barrier(len(cpus))
        with ThreadPoolExecutor(len(cpus)) as threads:
            slowest = min(threads.map(lambda cpu: _work(cpu, start), cpus))
        self.best = max(self.best, slowest)
        return slowest

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


def _work(cpu: int, start: threading.Barrier) -> float:
    os.sched_setaffinity(0, {cpu})  # of this thread
    start.wait()
    blocks, began = 0, time.perf_counter()
    while (now := time.perf_counter()) < began + SECONDS or not blocks:
        hashlib.blake2b(BLOCK).digest()
        blocks += 1
    return blocks / (now - began)
