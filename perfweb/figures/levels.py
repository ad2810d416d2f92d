# SPDX-License-Identifier: BSD-2-Clause
"""Change points of a timeline's series, as marks of its graph and as a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from perfweb.figures.plots import Figure, series_look
from perfweb.figures.timelines import Line, Timeline
from perfweb.stats.changepoint import ChangePoint, change_points
from perfweb.stats.comparison import Direction, Verdict
from perfweb.verdicts.numbers import Scale
from perfweb.verdicts.wording import change_words

REMEMBERED = 1000
"""Max number of cached series, some ten megabytes."""

MOST_PLACES = 20
"""Max number of marked places with a change, the newest."""


@dataclass(frozen=True)
class Spot:
    """A point of a series: its revision, maybe empty, and its newest run."""

    revision: str
    run: int


@dataclass(frozen=True)
class Shift:
    """A change point of a series, at `x` of the axis, where a line has the label.

    The series with that name has that number in its graph. The change is after `since`, at `until` or before.
    """

    label: str
    x: float
    number: int
    series: str
    since: Spot
    until: Spot
    found: ChangePoint
    direction: str
    cautions: tuple[str, ...] = ()
    """What else changed there, so that it may be no commit that moved the level: "the kernel changed"."""

    @property
    def verdict(self) -> Verdict:
        rises = self.found.after > self.found.before
        return Verdict.FASTER if rises == (self.direction == Direction.HIGHER) else Verdict.SLOWER

    @property
    def size(self) -> str:
        """The change in percent with its interval."""
        return change_words(self.found.change)


def shifts(timeline: Timeline) -> list[Shift]:
    """Find the change points of all series in the order of the axis; those at one place share a label."""
    found = [
        (float(line.x[change.place]), number, name, change)
        for number, (name, line) in enumerate(timeline.series.items())
        for change in _changes(line.mean.tobytes())
    ]
    labels = {x: str(label) for label, x in enumerate(sorted({x for x, *_ in found})[-MOST_PLACES:], start=1)}
    made = []
    for x, number, name, change in sorted(found, key=lambda entry: entry[:2]):
        if x in labels:
            line, places = timeline.series[name], (change.first - 1, change.last)
            since, until = (_spot(line, place) for place in places)
            others = _others(timeline, name, *(float(line.x[place]) for place in places))
            made.append(Shift(labels[x], x, number, name, since, until, change, timeline.direction, others))
    return made


def _others(timeline: Timeline, series: str, after: float, until: float) -> tuple[str, ...]:
    """What changed on the hosts of a series after one place and up to another, in words."""
    testbed = series.partition("/")[0]
    return tuple(
        dict.fromkeys(
            change.words for change in timeline.changes if change.testbed == testbed and after < change.x <= until
        )
    )


@lru_cache(maxsize=REMEMBERED)
def _changes(means: bytes) -> list[ChangePoint]:
    """They depend on the series only, so they can be cached: a run adds a point to few of them."""
    return change_points(np.frombuffer(means))


def _spot(line: Line, place: int) -> Spot:
    return Spot(line.revision[place], int(line.run[place]))


def draw_levels(
    figure: Figure, timeline: Timeline, found: Sequence[Shift], marks: Mapping[float, str] | None = None
) -> Figure:
    """Return the figure of a timeline with the levels of series that change, and a line with a label at each place;
    `marks` are further labels by their positions.
    """
    names = list(timeline.series)
    by_series: dict[str, list[Shift]] = {}
    for shift in found:
        by_series.setdefault(shift.series, []).append(shift)
    labels = timeline.letters
    for x, label in [*((shift.x, shift.label) for shift in found), *(marks or {}).items()]:
        if label not in labels.get(x, "").split(", "):
            labels[x] = f"{labels[x]}, {label}" if x in labels else label
    levels = (_levels(names.index(name), timeline, members) for name, members in by_series.items())
    return {"data": [*figure["data"], *levels], "layout": {**figure["layout"], **timeline.marked(labels)}}


def _levels(number: int, timeline: Timeline, members: Sequence[Shift]) -> Figure:
    """The levels of a series as steps."""
    line = timeline.series[members[0].series]
    places = timeline.drawn_at(np.array([line.x[0], *(shift.x for shift in members), line.x[-1]])).tolist()
    levels = [members[0].found.before, *(shift.found.after for shift in members)]
    return level_line(series_look(number, members[0].series), places, levels, timeline.scale)


def level_line(look: Figure, places: Sequence[float], levels: Sequence[float], scale: Scale) -> Figure:
    """Draw levels as steps: each from its place to the next, so that there is one place more."""
    return {
        **look,
        "type": "scatter",
        "mode": "lines",
        "x": [place for pair in pairwise(places) for place in pair],
        "y": [level / scale.factor for level in levels for _ in (0, 1)],
        "hoverinfo": "skip",
        "line": {"width": 3},
    }
