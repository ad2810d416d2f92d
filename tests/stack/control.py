# SPDX-License-Identifier: BSD-2-Clause
"""When to measure: while a *control* shows that the CPUs have no other load and are near each other.

A sample counts if the control was good before it and after it; the sample's own result is not considered.
module_utils/cpuspeed.py measures the speed of the CPUs. The round-trip time of a word between two CPUs shows their
distance: the host of a virtual machine migrates its CPUs, and two in different parts of its cache take four times as
long as two in the same one. The best values are stored until the machine is booted again, because a bench that begins
on a busy machine would take its speed for the best.
"""

from __future__ import annotations

import math
import mmap
import os
import signal
import statistics
import time
from collections.abc import Callable
from itertools import repeat
from typing import NamedTuple, NoReturn, TypeVar

from playbooks.module_utils.cpuspeed import speed
from tests.stack.results import BOOT, keep, kept

SLOWER = 0.1  # max loss of the control's speed in a sample that counts
FARTHER = 0.4  # max growth of an exchange's time, most of which is the interpreter's, wherever the CPUs are
EXCHANGES = 2000  # duration of a check: a millisecond
SPINS = 50_000_000  # time-out of the other CPU: some seconds
LIMITS = f"slower by {SLOWER:.0%} or farther apart by {FARTHER:.0%}"  # relative to their best
PAUSE = 0.3  # seconds between two checks while waiting
NAME = "control"  # of the stored best values

T = TypeVar("T")


class Look(NamedTuple):
    """Blocks per second of the slowest CPU while all worked at once, and nanoseconds of an exchange between two."""

    speed: float
    distance: float

    def worse(self, other: Look) -> Look:
        """Return the better values of both."""
        return Look(min(self.speed, other.speed), max(self.distance, other.distance))


NOTHING = Look(0.0, math.inf)  # not measured yet


class Control:
    """The best control so far, and how long to wait for it to come back."""

    def __init__(self, patience: float, best: Look = NOTHING) -> None:
        """`patience` is in seconds from now."""
        self.until = time.monotonic() + patience
        self.best = best

    @classmethod
    def remembering(cls, patience: float) -> Control:
        """Load the best of the controls before it, since this machine was booted."""
        control = cls(patience)
        control.learn(_remembered())
        return control

    def remember(self) -> None:
        """Store its best for later ones."""
        self.learn(_remembered())
        keep(NAME, {"boot": BOOT, "best": self.best})

    def learn(self, look: Look) -> None:
        """Take a check into account, but not the distance of slow CPUs, because threads of one core are nearest."""
        fastest = max(self.best.speed, look.speed)
        fast = [known for known in (self.best, look) if known.speed >= (1 - SLOWER) * fastest]
        self.best = Look(fastest, min(known.distance for known in fast))

    def look(self) -> Look:
        """Check the CPUs that this process may use."""
        cpus = sorted(os.sched_getaffinity(0))
        now = Look(speed(cpus), distance(cpus[0], cpus[-1]))
        self.learn(now)
        return now

    def is_quiet(self, look: Look) -> bool:
        """Return whether a check is near the best one so far."""
        return look.speed >= (1 - SLOWER) * self.best.speed and look.distance <= (1 + FARTHER) * self.best.distance

    def waits(self) -> bool:
        """Return whether there is time left to wait."""
        return time.monotonic() < self.until

    def quiet(self) -> Look:
        """Wait for a good check, if there is time; return the check."""
        while not self.is_quiet(look := self.look()) and self.waits():
            time.sleep(PAUSE)
        return look

    def around(self, measure: Callable[[], T]) -> tuple[T, Look]:
        """Return the result of `measure`, started after a good check if there is time, and the worse of the checks
        around it.
        """
        before = self.quiet()
        measured = measure()
        return measured, before.worse(self.look())


def _remembered() -> Look:
    try:
        before = kept(NAME)
    except FileNotFoundError:
        return NOTHING
    return Look(*before["best"]) if before["boot"] == BOOT else NOTHING


def distance(first: int, last: int) -> float:
    """Return nanoseconds until another CPU has answered a byte of this one; a quarter of the exchanges are faster.

    0 from a CPU to itself, infinity without an answer. OSError if this process may not use one of them.
    """
    if first == last:
        return 0.0
    before = os.sched_getaffinity(0)
    byte = memoryview(mmap.mmap(-1, mmap.PAGESIZE))
    os.sched_setaffinity(0, {last})
    child = os.fork()
    if child == 0:
        _answer(byte)
    try:
        os.sched_setaffinity(0, {first})
        taken = _ask(byte)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.sched_setaffinity(0, before)
    return statistics.quantiles(taken)[0] if len(taken) == EXCHANGES else math.inf


def _ask(byte: memoryview) -> list[int]:
    taken: list[int] = []
    for turn in range(EXCHANGES):
        request, answered = _words(turn)
        start = time.perf_counter_ns()
        byte[0] = request
        if not _waits(byte, answered):
            break
        taken.append(time.perf_counter_ns() - start)
    return taken


def _answer(byte: memoryview) -> NoReturn:
    """Run the child, which must not continue the parent's code."""
    try:
        for turn in range(EXCHANGES):
            request, answered = _words(turn)
            if not _waits(byte, request):
                break
            byte[0] = answered
    finally:
        os._exit(0)


def _waits(byte: memoryview, word: int) -> bool:
    """Wait, for some seconds at most."""
    for _ in repeat(None, SPINS):  # noqa: SIM110 - any() takes longer than the way that is measured
        if byte[0] == word:
            return True
    return False


def _words(turn: int) -> tuple[int, int]:
    return turn % 100 + 1, turn % 100 + 101
