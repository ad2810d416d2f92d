# SPDX-License-Identifier: BSD-2-Clause
"""Burdens for segments of TCP: changes of the stack with a nominal cost on the simulated machine.

The cost of an iteration of a loop there depends on the code around it, so a burden is computed for the very stack into
which it is planted.
"""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = "stack/netinet/tcp_input.c"
FUNCTION = "__hot void\ntcp_input(struct mbuf *m, unsigned hlen)\n{\n"
FIRST = "\taf_endpoints(af, m, &sg.sg_conn);\n\t/*"
SEEDS = range(1, 9)
"""Number of boots of a plan (runners/boots.py): eight."""
MEETS = 0.05
"""Max error of the mean of all seeds, in percent."""
AGREES = 0.35
"""Max spread of the seeds in percent, or as a share of the wanted change if that is more: near a jump one seed may move
by more than all others, which hides a small change and not a large one.
"""
MISSES = 0.2
"""Max error of the mean at the worst, in percent."""
STEP = 12
GRID = range(0, 601, STEP)
"""Numbers of iterations that are always measured."""
BEGINNINGS = range(264, 481, STEP)
"""Start values of iterations, from GRID, because the values after a jump may leave out the wanted one."""


class NoBurdenError(Exception):
    """No burden changes the stack by the wanted amount."""


@dataclass(frozen=True)
class Burden:
    """The burden of each segment: iterations of an empty loop, and a count on a cache line of each CPU."""

    turns: int
    crowd: bool = False

    def planted(self, original: str) -> str:
        """Return the text of FILE with the burden. Raises SystemExit if the file has changed too much."""
        if FUNCTION not in original or FIRST not in original:
            raise SystemExit(f"{FILE} has another tcp_input() now: tests/bench/burdens.py plants its changes there")
        body = f"\tfor (volatile unsigned n = 0; n < {self.turns}; n++)\n\t\tcontinue;\n" if self.turns else ""
        globals_ = ""
        if self.crowd:
            globals_ = "static struct {\n\t_Alignas(64) atomic_u32 seen;\n} crowd[128];\n\n"
            body += "\tfor (unsigned n = 0; n < mach_ncpus(); n++)\n\t\tatomic_count_u32(&crowd[n].seen, 1);\n"
        return original.replace(FUNCTION, globals_ + FUNCTION, 1).replace(FIRST, body + FIRST, 1)


class SimulatedStack:
    """Build the stack of a tree for the simulated machine with one burden after the other."""

    def __init__(self, tree: Path, meson: Path) -> None:
        self.file, self.build, self.meson = tree / FILE, tree / "build", meson
        self.original = self.file.read_text(encoding="utf-8")
        setup = [str(meson), "setup", str(self.build), str(tree / "stack"), "-Dsim=true", "-Dbuildtype=release"]
        subprocess.run(setup, check=True, capture_output=True)

    def rates(self, burden: Burden) -> list[float]:
        """Return kilobytes per virtual second of TCP with one stream, for each of SEEDS."""
        self.file.write_text(burden.planted(self.original), encoding="utf-8")
        subprocess.run([str(self.meson), "compile", "-C", str(self.build)], check=True, capture_output=True)
        return [self._rate(seed) for seed in SEEDS]

    def _rate(self, seed: int) -> float:
        argv = [str(self.build / "simstack"), "--json", "--workload", "tcp", "--cpus", "1", "--ms", "10"]
        output = subprocess.run([*argv, "--seed", str(seed)], check=True, capture_output=True, text=True).stdout
        return float(json.loads(output)["runs"][0]["rate"])


def shifts(before: Sequence[float], after: Sequence[float]) -> list[float]:
    """Return the change of each of the rates in percent."""
    return [100 * (new / old - 1) for old, new in zip(before, after, strict=True)]


def chained(rates: Callable[[int], Sequence[float]], percents: Sequence[float]) -> list[int]:
    """Return the iterations to begin with, and then for each change after the other, from one of BEGINNINGS that has
    them all.

    Raises SystemExit if none has.
    """
    missed = []
    for beginning in BEGINNINGS:
        turns = [beginning]
        try:
            for percent in percents:
                turns.append(fitting(rates, turns[-1], percent))
        except NoBurdenError as error:
            missed.append(str(error))
        else:
            return turns
    raise SystemExit("\n".join(missed))


def fitting(rates: Callable[[int], Sequence[float]], turns: int, percent: float) -> int:
    """Return the iterations, instead of `turns`, that change all rates by that percentage.

    More iterations are not always slower, because code moves to other addresses, and a segment to another burst. So
    rates are piecewise linear with equal slopes. From each number of GRID the line gives the position of the wanted
    rate on its piece; if that is within a step it is tried, the nearest first. Raises NoBurdenError if no value is near
    enough.
    """
    before = rates(turns)
    known = {number: statistics.fmean(shifts(before, rates(number))) for number in GRID}
    slope = statistics.median(b - a for a, b in itertools.pairwise(known.values())) / STEP
    ways = {number: round((percent - shift) / slope) for number, shift in known.items()} if slope else {}
    tried = {}
    for number, way in sorted(ways.items(), key=lambda item: abs(item[1])):
        if abs(way) <= STEP and number + way >= 0:
            tried[number + way] = shifts(before, rates(number + way))
            if _distance(tried[number + way], percent) == 0:
                return number + way
    near = [guess for guess, seen in tried.items() if _distance(seen, percent) <= MISSES - MEETS]
    if not near:
        raise NoBurdenError(f"no burden moves TCP by {percent:+} % from {turns} turns on: {len(tried)} were tried")
    return min(near, key=lambda guess: _distance(tried[guess], percent))


def _distance(shifts: Sequence[float], percent: float) -> float:
    """Return the distance of changed rates from the wanted change; 0 if it is near enough."""
    miss, apart = abs(statistics.fmean(shifts) - percent), max(shifts) - min(shifts)
    return max(0.0, miss - MEETS) + max(0.0, apart - AGREES * max(1, abs(percent)))
