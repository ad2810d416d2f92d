# SPDX-License-Identifier: BSD-2-Clause
"""When to measure: while the CPUs of this machine are its own and near each other, as far as a *control* shows.

A sample counts if the control was good before it and after it; what the sample itself said has no part in that.  How
fast the CPUs are says module_utils/cpuspeed.py.  How near they are to each other says how long a word takes from one to
the other and back: the host of a virtual machine moves its CPUs about, and two in other parts of its cache take four
times as long as two in the same one.  What these CPUs can do is remembered until the machine is booted again: a bench
that begins while they are busy would take that for their best.
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

SLOWER = 0.1  # what the control may lose of its best speed, in a sample that counts
FARTHER = 0.4  # and what an exchange may take longer, most of which is the interpreter's, wherever the CPUs are
EXCHANGES = 2000  # of a look: a millisecond
SPINS = 50_000_000  # until somebody is taken for gone: some seconds
LIMITS = f"slower by {SLOWER:.0%} or farther apart by {FARTHER:.0%}"  # than at their best
PAUSE = 0.3  # seconds between two looks while waiting
NAME = "control"  # of what is remembered

T = TypeVar("T")


class Look(NamedTuple):
    """Blocks in a second of the slowest CPU while all worked at once, and nanoseconds of an exchange between two."""

    speed: float
    distance: float

    def worse(self, other: Look) -> Look:
        """What both can do at least."""
        return Look(min(self.speed, other.speed), max(self.distance, other.distance))


NOTHING = Look(0.0, math.inf)  # has been seen yet


class Control:
    """The best that the CPUs could do, and how long to wait for it to come back."""

    def __init__(self, patience: float, best: Look = NOTHING) -> None:
        """`patience` is in seconds from now."""
        self.until = time.monotonic() + patience
        self.best = best

    @classmethod
    def remembering(cls, patience: float) -> Control:
        """One that knows the best of the controls before it, since this machine was booted."""
        control = cls(patience)
        control.learn(_remembered())
        return control

    def remember(self) -> None:
        """Tells later ones of its best."""
        self.learn(_remembered())
        keep(NAME, {"boot": BOOT, "best": self.best})

    def learn(self, look: Look) -> None:
        """Takes a look into account, but not how near slow CPUs are: threads of one core are nearest."""
        fastest = max(self.best.speed, look.speed)
        fast = [known for known in (self.best, look) if known.speed >= (1 - SLOWER) * fastest]
        self.best = Look(fastest, min(known.distance for known in fast))

    def look(self) -> Look:
        """A look at the CPUs that this process may use."""
        cpus = sorted(os.sched_getaffinity(0))
        now = Look(speed(cpus), distance(cpus[0], cpus[-1]))
        self.learn(now)
        return now

    def is_quiet(self, look: Look) -> bool:
        """Whether a look is near the best one, as known by now."""
        return look.speed >= (1 - SLOWER) * self.best.speed and look.distance <= (1 + FARTHER) * self.best.distance

    def waits(self) -> bool:
        """Whether there is time left to wait."""
        return time.monotonic() < self.until

    def quiet(self) -> Look:
        """Waits for a good look, if there is time; the look."""
        while not self.is_quiet(look := self.look()) and self.waits():
            time.sleep(PAUSE)
        return look

    def around(self, measure: Callable[[], T]) -> tuple[T, Look]:
        """What `measure` gives, begun after a good look if there is time, and the worse of the looks around it."""
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
    """Nanoseconds until a byte that one CPU writes has been answered by another; a quarter of the exchanges are faster.

    0 from a CPU to itself, infinity if the other does not answer.  OSError if this process may not use one of them.
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
        asked, answered = _words(turn)
        start = time.perf_counter_ns()
        byte[0] = asked
        if not _is_said(byte, answered):
            break
        taken.append(time.perf_counter_ns() - start)
    return taken


def _answer(byte: memoryview) -> NoReturn:
    """What the child does, which must not go on with what its parent was at."""
    try:
        for turn in range(EXCHANGES):
            asked, answered = _words(turn)
            if not _is_said(byte, asked):
                break
            byte[0] = answered
    finally:
        os._exit(0)


def _is_said(byte: memoryview, word: int) -> bool:
    """Waits for some seconds at most."""
    for _ in repeat(None, SPINS):  # noqa: SIM110 - any() takes longer than the way that is measured
        if byte[0] == word:
            return True
    return False


def _words(turn: int) -> tuple[int, int]:
    return turn % 100 + 1, turn % 100 + 101
