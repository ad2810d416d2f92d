# SPDX-License-Identifier: BSD-2-Clause
"""Which functions of a kernel cost more or less than those of another, under each load.

A window's count is exact, but not every window executes the same: a timer's tick adds to one, an estimator of
round-trip times takes another branch, a hash table has other collisions with another seed. Both sides have such causes.
So each function has a *level* on a side, and a *span* that such causes give it:

- In a boot, its lowest window and its median window. Ticks and workers only add, so the lowest is free of them.
- On a side, from the lowest of all boots to the highest median.

The difference of a function is attributed to the patch only if the spans of both sides are apart, and if the levels
differ by more than the wider span. Anything else is *not attributable*. Straight-line code has spans of width zero, and
then a difference of one instruction is seen.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from perfweb.counted.costs import BootCosts, Cost, Level

RESOLUTION = 0.5
"""The smallest difference per unit that is attributed: of code that every second unit executes."""

Boots = Sequence[BootCosts]
"""What one load costs on each boot of a side."""


class Verdict(Enum):
    """What a patch does to a load, or to one kind of cost of it."""

    MORE = "more"
    FEWER = "fewer"
    EQUAL = "equal"


@dataclass(frozen=True)
class Span:
    """The lowest count per unit, and the highest that chance explains."""

    low: float
    high: float

    def apart(self, other: Span) -> bool:
        """Return whether no value is in both."""
        return self.high < other.low or other.high < self.low

    @property
    def width(self) -> float:
        return self.high - self.low


@dataclass(frozen=True)
class FunctionDifference:
    """A function with the cost of one unit in the patched kernel, less that in the base; 0 where not attributable."""

    name: str
    cost: Cost


@dataclass(frozen=True)
class LoadComparison:
    """A load: the lowest cost of one unit on both sides, and the functions that differ.

    `spread` is the wider span of the whole path's instructions: a smaller difference of these is no evidence.
    `unexplained` is the difference of the mean instructions of all windows for one unit that is attributed to no
    function, 0 where chance explains it: the cost of code that only some windows execute, such as a flush of a batch.
    """

    name: str
    base: Cost
    patched: Cost
    spread: float
    functions: tuple[FunctionDifference, ...]
    unexplained: float = 0.0

    @property
    def attributed(self) -> Cost:
        """The sum of the functions that differ."""
        total = Cost()
        for one in self.functions:
            total = total.plus(one.cost)
        return total

    @property
    def verdict(self) -> Verdict:
        """More or fewer instructions; if these are equal, locked ones; if these are equal, memory accesses."""
        for value in self.attributed:
            if abs(value) >= RESOLUTION:
                return Verdict.MORE if value > 0 else Verdict.FEWER
        return Verdict.EQUAL


def compare(name: str, base: Boots, patched: Boots) -> LoadComparison:
    """Compare the boots of a load. Both sides have at least one."""
    differences = []
    for function in sorted({name for boot in (*base, *patched) for name in boot.functions}):
        cost = Cost(*(_difference(function, kind, base, patched) for kind in range(len(Cost._fields))))
        if any(cost):
            differences.append(FunctionDifference(function, cost))
    differences.sort(key=lambda one: (-abs(one.cost.instructions), -abs(one.cost.locked), one.name))
    spread = max(_whole(side).width for side in (base, patched))
    lowest = [min(boot.lowest for boot in side) for side in (base, patched)]
    found = LoadComparison(name, lowest[0], lowest[1], spread, tuple(differences))
    return replace(found, unexplained=_unexplained(base, patched, found.attributed.instructions))


def _unexplained(base: Boots, patched: Boots, attributed: float) -> float:
    """Return the difference per unit between the means of all windows, without what is attributed; 0 if the means of
    some boots of both sides are in the same range.
    """
    before, after = (
        [statistics.fmean(window.instructions for window in boot.windows) / boot.units for boot in side]
        for side in (base, patched)
    )
    ranges = Span(min(before), max(before)), Span(min(after), max(after))
    rest = statistics.fmean(after) - statistics.fmean(before) - attributed
    wide = max(one.width for one in ranges)
    return rest if ranges[0].apart(ranges[1]) and abs(rest) > max(wide, RESOLUTION) else 0.0


def _difference(function: str, kind: int, base: Boots, patched: Boots) -> float:
    """Return the difference per unit of one kind of cost; 0 if it is not attributable."""
    before, after = (_of_function(function, kind, side) for side in (base, patched))
    difference = after.low - before.low
    wide = max(before.width, after.width)
    if not before.apart(after) or abs(difference) <= wide or abs(difference) < RESOLUTION:
        return 0.0
    return difference


def _of_function(function: str, kind: int, boots: Boots) -> Span:
    levels = [(boot.units, boot.functions.get(function, _NOTHING)) for boot in boots]
    return Span(
        min(level.low[kind] / units for units, level in levels),
        max(level.median[kind] / units for units, level in levels),
    )


_NOTHING = Level()


def _whole(boots: Boots) -> Span:
    """Return the span of the instructions of the whole path, per unit."""
    of_boots = [(boot.units, [window.instructions for window in boot.windows]) for boot in boots]
    return Span(
        min(min(windows) / units for units, windows in of_boots),
        max(statistics.median(windows) / units for units, windows in of_boots),
    )


def overall(loads: Sequence[LoadComparison]) -> Mapping[Verdict, list[LoadComparison]]:
    """Return the loads by their verdict, in the order of Verdict."""
    return {verdict: [load for load in loads if load.verdict == verdict] for verdict in Verdict}
