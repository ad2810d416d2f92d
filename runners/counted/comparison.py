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

from runners.counted.counts import Cost, Window

RESOLUTION = 0.5
"""The smallest difference per unit that is attributed: of code that every second unit executes."""

Boots = Sequence[Sequence[Window]]
"""The windows of one load by boot."""


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
        """Returns whether no value is in both."""
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


def compare(name: str, units: int, base: Boots, patched: Boots) -> LoadComparison:
    """Compares the windows of a load, each of `units`. Both sides have at least one boot with windows."""
    differences = []
    every = {name for boots in (base, patched) for boot in boots for window in boot for name in window.functions}
    for function in sorted(every):
        cost = Cost(*(_difference(function, index, units, base, patched) for index in range(len(Cost._fields))))
        if any(cost):
            differences.append(FunctionDifference(function, cost))
    differences.sort(key=lambda one: (-abs(one.cost.instructions), -abs(one.cost.locked), one.name))
    totals = [_span([[window.kernel().instructions for window in boot] for boot in side]) for side in (base, patched)]
    spread = max(span.width for span in totals) / units
    found = LoadComparison(name, _lowest(base, units), _lowest(patched, units), spread, tuple(differences))
    return replace(found, unexplained=_unexplained(base, patched, units, found.attributed.instructions))


def _unexplained(base: Boots, patched: Boots, units: int, attributed: float) -> float:
    """Returns the difference per unit between the means of all windows, without what is attributed; 0 if the means of
    some boots of both sides are in the same range.
    """
    before, after = (
        [statistics.fmean(window.kernel().instructions for window in boot) / units for boot in side]
        for side in (base, patched)
    )
    ranges = Span(min(before), max(before)), Span(min(after), max(after))
    rest = statistics.fmean(after) - statistics.fmean(before) - attributed
    wide = max(one.width for one in ranges)
    return rest if ranges[0].apart(ranges[1]) and abs(rest) > max(wide, RESOLUTION) else 0.0


def _difference(function: str, index: int, units: int, base: Boots, patched: Boots) -> float:
    """Returns the difference per unit of one kind of cost; 0 if it is not attributable."""
    before, after = (
        _span([[window.functions.get(function, _NOTHING)[index] for window in boot] for boot in side])
        for side in (base, patched)
    )
    difference = after.low - before.low
    wide = max(before.width, after.width)
    if not before.apart(after) or abs(difference) <= wide or abs(difference) < RESOLUTION * units:
        return 0.0
    return difference / units


_NOTHING = Cost()


def _span(boots: Sequence[Sequence[float]]) -> Span:
    return Span(min(map(min, boots)), max(map(statistics.median, boots)))


def _lowest(boots: Boots, units: int) -> Cost:
    """Returns the cost of one unit in the window with the fewest instructions."""
    return min(window.kernel() for boot in boots for window in boot).each(units)


def overall(loads: Sequence[LoadComparison]) -> Mapping[Verdict, list[LoadComparison]]:
    """Returns the loads by their verdict, in the order of Verdict."""
    return {verdict: [load for load in loads if load.verdict == verdict] for verdict in Verdict}
