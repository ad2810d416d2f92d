# SPDX-License-Identifier: BSD-2-Clause
"""How fast the CPUs are at a time: a fixed work on all of them at once, on which no change of a stack has an effect.

All CPUs of a virtual machine can be slower for seconds or hours, by a third where this was seen, as if they were
threads of cores that other guests use, too. Steal does not show it, so it is tried.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SECONDS = 0.05
BLOCK = bytes(1 << 20)  # hashing it takes some milliseconds, in which Python's lock is free


def speed(cpus: Collection[int]) -> float:
    """Blocks in a second that the slowest of these CPUs hashes while all of them do, for SECONDS.

    OSError if this process may not use one of them.
    """
    with ThreadPoolExecutor(len(cpus)) as threads:
        return min(threads.map(_work, cpus))


def _work(cpu: int) -> float:
    os.sched_setaffinity(0, {cpu})  # of this thread
    blocks, began = 0, time.perf_counter()
    while (now := time.perf_counter()) < began + SECONDS or not blocks:
        hashlib.blake2b(BLOCK).digest()
        blocks += 1
    return blocks / (now - began)


class Slowdown:
    """What CPUs lose of the best speed that they had since `path` was made, which keeps it for later processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.best = 0.0
        with contextlib.suppress(FileNotFoundError, ValueError):  # none yet, or the host crashed as it was written
            self.best = float(path.read_text(encoding="ascii"))

    def look(self, cpus: Collection[int]) -> float:
        """The share, from 0, now."""
        now = speed(cpus)
        if now > self.best:
            self.best = now
            self.path.write_text(f"{now}\n", encoding="ascii")
        return 1 - now / self.best
