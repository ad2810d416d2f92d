# SPDX-License-Identifier: BSD-2-Clause
"""What one boot of a kernel costs under a load, by function, and how a document has it.

Of the windows of a boot the lowest and the median say what a function costs (comparison), so only these are kept.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LARGEST = 2**53
"""The largest count in a document: a float has it exactly."""
MOST_FUNCTIONS, MOST_WINDOWS, LONGEST_NAME = 20_000, 1000, 256


class CostError(ValueError):
    """A document has no such cost; the message completes "The load …"."""


class Cost(NamedTuple):
    """Executed instructions, those of them with a lock prefix, and memory accesses of all of them."""

    instructions: float = 0
    locked: float = 0
    accesses: float = 0

    def plus(self, other: Cost) -> Cost:
        """Return the sum."""
        return Cost(*(a + b for a, b in zip(self, other, strict=True)))

    def minus(self, other: Cost) -> Cost:
        """Return the difference."""
        return Cost(*(a - b for a, b in zip(self, other, strict=True)))

    def each(self, units: float) -> Cost:
        """Return the cost of one of `units`."""
        return Cost(*(value / units for value in self))


NOTHING = Cost()


@dataclass
class Window:
    """The cost of each function of the kernel in a window, and the instructions of user space."""

    user: int = 0
    functions: dict[str, Cost] = field(default_factory=dict)

    def kernel(self) -> Cost:
        """Return the cost of all functions."""
        total = Cost()
        for cost in self.functions.values():
            total = total.plus(cost)
        return total


class Level(NamedTuple):
    """The cost of a function in the lowest window of a boot, and in its median window, each kind by itself."""

    low: Cost = NOTHING
    median: Cost = NOTHING


@dataclass(frozen=True)
class BootCosts:
    """What a load costs on one boot: `units` of each window, the cost of the whole kernel in each window, and the
    levels of functions.
    """

    units: int
    windows: tuple[Cost, ...]
    functions: Mapping[str, Level]

    @property
    def lowest(self) -> Cost:
        """The cost of one unit in the window with the fewest instructions."""
        return min(self.windows).each(self.units)


def of_windows(units: int, windows: Sequence[Window]) -> BootCosts:
    """Return what the windows of a load on one boot cost; there is at least one."""
    names = sorted({name for window in windows for name in window.functions})
    return BootCosts(
        units,
        tuple(window.kernel() for window in windows),
        {name: _level([window.functions.get(name, NOTHING) for window in windows]) for name in names},
    )


def _level(costs: Sequence[Cost]) -> Level:
    kinds = list(zip(*costs, strict=True))
    return Level(Cost(*map(min, kinds)), Cost(*map(statistics.median, kinds)))


def written(costs: BootCosts) -> dict[str, Any]:
    """Return the costs as JSON has them."""
    return {
        "units": costs.units,
        "windows": [list(window) for window in costs.windows],
        "functions": {name: [*level.low, *level.median] for name, level in costs.functions.items()},
    }


def read(value: object) -> BootCosts:
    """Return the costs that JSON has. Raises CostError."""
    if not isinstance(value, dict):
        raise CostError("is no object")
    units, windows, functions = (value.get(name) for name in ("units", "windows", "functions"))
    if type(units) is not int or not 0 < units <= LARGEST:
        raise CostError("has no number of units above 0")
    if not isinstance(windows, list) or not 0 < len(windows) <= MOST_WINDOWS:
        raise CostError(f"has no list of 1 to {MOST_WINDOWS} windows")
    if not isinstance(functions, dict) or len(functions) > MOST_FUNCTIONS:
        raise CostError(f"has no object of up to {MOST_FUNCTIONS} functions")
    return BootCosts(
        units,
        tuple(Cost(*_counts(window, 3, "a window")) for window in windows),
        {
            _name(name): _read_level(_counts(level, 6, f"the function {name[:40]!r}"))
            for name, level in functions.items()
        },
    )


def _name(text: str) -> str:
    if not text or len(text) > LONGEST_NAME or not text.isprintable():
        raise CostError(f"has a function {text[:40]!r}: a name has 1 to {LONGEST_NAME} characters that can be printed")
    return text


def _read_level(counts: Sequence[float]) -> Level:
    return Level(Cost(*counts[:3]), Cost(*counts[3:]))


def _counts(value: object, length: int, what: str) -> Sequence[float]:
    """Return that many counts. Raises CostError."""
    if not isinstance(value, list) or len(value) != length or not all(map(_is_count, value)):
        raise CostError(f"has no list of {length} counts for {what}: whole or half numbers from 0")
    return value


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST


def merged(boots: Iterable[Mapping[str, BootCosts]]) -> dict[str, list[BootCosts]]:
    """Return the costs of each load boot by boot, of loads by boot."""
    found: dict[str, list[BootCosts]] = {}
    for boot in boots:
        for name, costs in boot.items():
            found.setdefault(name, []).append(costs)
    return found
