# SPDX-License-Identifier: BSD-2-Clause
"""The newest means of lines of timelines, for small graphs in tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from perfweb.figures.lateral import of_each
from perfweb.figures.timelines import comparable
from perfweb.runs.models import Summary


class Line(NamedTuple):
    """A line of a timeline."""

    test: str
    series: str


def histories(lines: Iterable[Line], points: int) -> dict[Line, list[float]]:
    """Return the means of the newest runs of each line, `points` at most, the oldest first: one query."""
    found: dict[Line, list[float]] = {line: [] for line in lines}
    rows = of_each(
        found.keys(),
        lambda test, series: (
            comparable(Summary.objects.filter(test=test, series=series))
            .order_by("-run_id")
            .values_list("run_id", "test", "series", "mean")[:points]
        ),
    )
    for _, test, series, mean in sorted(rows):
        found[Line(test, series)].append(mean)
    return found
