# SPDX-License-Identifier: BSD-2-Clause
"""The functions of counted kernels that cost more or less on one side of a comparison than on the other, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from perfweb.counted.comparison import FunctionDifference, LoadComparison
from perfweb.counted.loads import unit
from perfweb.counted.rows import KINDS
from perfweb.counted.rows import in_words as counted_words
from perfweb.verdicts.comparisons import TestComparison

MOST_LINES = 40


def loads_of(compared: Iterable[TestComparison]) -> list[LoadComparison]:
    """Return the counted loads of a comparison, by function."""
    return [one.load for one in compared if one.load]


def in_words(loads: Sequence[LoadComparison]) -> str:
    """Return how many loads cost more or less, and the largest difference of a function; empty for no loads."""
    if not loads:
        return ""
    largest = largest_in_words(loads)
    return f"{counted_words(loads)} loads{'; ' if largest else ''}{largest}"


def largest_in_words(loads: Sequence[LoadComparison]) -> str:
    """Return the largest difference of a function: "tcp_v4_rcv +20.0000 instructions in …"; empty if none differs."""
    found = [(load, one) for load in loads for one in load.functions]
    if not found:
        return ""
    load, one = max(found, key=lambda pair: abs(pair[1].cost.instructions))
    return f"{one.name} {one.cost.instructions:+.4f} instructions in {load.name}"


def lines(loads: Sequence[LoadComparison]) -> list[str]:
    """Return each function that differs with its costs, load by load, and how many are left out."""
    every = list(_lines(loads))
    left = len(every) - MOST_LINES
    return every[:MOST_LINES] + ([f"and {left} more lines, see the page of the comparison"] if left > 0 else [])


def _lines(loads: Sequence[LoadComparison]) -> Iterator[str]:
    for load in loads:
        if load.functions:
            yield f"{load.name}, for each {unit(load.name)}:"
            yield from (f"  {one.name}  {_cost(one)}" for one in load.functions)


def _cost(one: FunctionDifference) -> str:
    return ", ".join(f"{value:+.4f} {KINDS[kind]}" for kind, value in one.cost._asdict().items() if value)
