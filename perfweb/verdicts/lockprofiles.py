# SPDX-License-Identifier: BSD-2-Clause
"""The cost of locks on each side of a comparison, from the profiles of booted stacks at shutdown.

The texts are those of `stackctl lockprof` and `stackctl mutexprof`, whose columns are FreeBSD's since 2007 and of 2006
(LOCK_PROFILING(9), MUTEX_PROFILING(9)): a line of names, then a line of numbers for each place that acquires a lock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

TITLES = {
    "lockprof": "Locks: cost of each place that acquires one",
    "mutexprof": "Mutexes: cost of each place that acquires one, counted as in 2006",
}
"""The views of a booted stack with such profiles."""

MOST_PLACES = 20

COLUMNS = {
    "count": "acquired",
    "cnt_lock": "waits",
    "cnt_hold": "others failed",
    "wait_total": "waited, µs",
    "total": "held, µs",
}
"""The compared columns of a profile, in words. A profile of 2006 has no waiting times. Only it has the failed attempts
of others during a hold, each attempt counted.
"""

_HEAVY = ("wait_total", "cnt_hold", "cnt_lock", "count")
"""The order of places by importance."""

_NUMBER = re.compile(r"\d{1,20}", re.ASCII)
# A compiler names a file relative to its build directory.
_UPWARDS = re.compile(r"^(?:\.\./)+(?:source/)?(?:stack/)?")

Costs = dict[str, dict[str, float]]
"""The numbers of each place in the compared columns, by column name."""


@dataclass(frozen=True)
class LockRow:
    """A place that acquires a lock: for each side its numbers, mean per boot, each with its increase over the first
    side; None without a profile.
    """

    place: str
    sides: list[list[tuple[float | None, float | None]]]


@dataclass(frozen=True)
class LockTable:
    """One kind of profile: the most expensive places, after the sum of all; `left_out` is the number of further
    places.
    """

    title: str
    columns: list[str]
    rows: list[LockRow]
    left_out: int


def read_profile(text: str) -> Costs:
    """Read a profile. Lines of one place are added up; other lines are skipped."""
    names: list[str] = []
    found: Costs = {}
    for line in text.splitlines():
        if not names:
            words = line.split()
            names = words[:-1] if words[-1:] == ["name"] and {"count", "cnt_lock"} <= set(words) else []
            continue
        *numbers, place = line.split(maxsplit=len(names)) if line.strip() else [""]
        if len(numbers) == len(names) and all(map(_NUMBER.fullmatch, numbers)):
            costs = found.setdefault(_UPWARDS.sub("", place.strip()), {})
            for name, number in zip(names, numbers, strict=True):
                if name in COLUMNS:
                    costs[name] = costs.get(name, 0.0) + float(number)
    return found


def lock_tables(reports: Mapping[str, Sequence[Sequence[str]]]) -> list[LockTable]:
    """Return a table for each view in the boots of any side; a view has the texts of each side's boots."""
    profiles = (
        (view, [[read_profile(text) for text in boots] for boots in reports[view]])
        for view in TITLES
        if view in reports
    )
    return [_table(TITLES[view], sides) for view, sides in profiles if any(any(boots) for boots in sides)]


def _table(title: str, sides: Sequence[Sequence[Costs]]) -> LockTable:
    means = [_means([boot for boot in boots if boot]) for boots in sides]
    known = {name for costs in means if costs for numbers in costs.values() for name in numbers}
    columns = [name for name in COLUMNS if name in known and not (name == "cnt_hold" and "wait_total" in known)]
    everything = [{"all places": _sum(costs.values())} if costs is not None else None for costs in means]
    places = {place for costs in means for place in costs or ()}
    ordered = sorted(places, key=lambda place: (*(-_most(means, place, name) for name in _HEAVY), place))
    rows = [_row(place, means, columns) for place in ordered[:MOST_PLACES]]
    first = _row("all places", everything, columns)
    words = [COLUMNS[name] for name in columns]
    return LockTable(title, words, [first, *rows], max(0, len(ordered) - MOST_PLACES))


def _row(place: str, means: Sequence[Costs | None], columns: Sequence[str]) -> LockRow:
    """A place that is missing on a side was not acquired there."""
    numbers = [None if costs is None else costs.get(place, {}) for costs in means]
    sides = [[None if one is None else one.get(name, 0.0) for name in columns] for one in numbers]
    return LockRow(place, [[(b, _more(a, b)) for a, b in zip(sides[0], side, strict=True)] for side in sides])


def _more(base: float | None, number: float | None) -> float | None:
    return None if base is None or number is None else number - base


def _most(means: Iterable[Costs | None], place: str, column: str) -> float:
    return max(costs.get(place, {}).get(column, 0.0) for costs in means if costs is not None)


def _means(boots: Sequence[Costs]) -> Costs | None:
    """The mean per boot; None without boots."""
    if not boots:
        return None
    places = {place for boot in boots for place in boot}
    sums = {place: _sum(boot[place] for boot in boots if place in boot) for place in places}
    return {place: {name: value / len(boots) for name, value in numbers.items()} for place, numbers in sums.items()}


def _sum(found: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for numbers in found:
        for name, value in numbers.items():
            total[name] = total.get(name, 0.0) + value
    return total
