# SPDX-License-Identifier: BSD-2-Clause
"""Measures the present speed of the CPUs by a fixed work on all of them at once, which no change of a stack affects.

All CPUs of a virtual machine can be slower for seconds or hours, by a third in one case, for example because other
guests use the threads of the same cores. Steal time does not show it, so the speed is measured.
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
BLOCK = bytes(1 << 20)  # hashing it takes some milliseconds without Python's lock


def speed(cpus: Collection[int]) -> float:
    """Returns the blocks per second that the slowest CPU hashes while all of them do, for SECONDS.

    Raises OSError if this process may not use one of them.
    """
    with ThreadPoolExecutor(len(cpus)) as threads:
        return min(threads.map(_work, cpus))


def _work(cpu: int) -> float:
    os.sched_setaffinity(0, {cpu})  # affects this thread only
    blocks, began = 0, time.perf_counter()
    while (now := time.perf_counter()) < began + SECONDS or not blocks:
        hashlib.blake2b(BLOCK).digest()
        blocks += 1
    return blocks / (now - began)


class Slowdown:
    """The loss of speed relative to the best since `path` was made, a file that later processes share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.best = 0.0
        with contextlib.suppress(FileNotFoundError, ValueError):  # none yet, or the host crashed during the write
            self.best = float(path.read_text(encoding="ascii"))

    def look(self, cpus: Collection[int]) -> float:
        """Measures and returns the share that is lost, 0 for none."""
        now = speed(cpus)
        if now > self.best:
            self.best = now
            self.path.write_text(f"{now}\n", encoding="ascii")
        return 1 - now / self.best
