# SPDX-License-Identifier: BSD-2-Clause
"""The graphs of a tracked branch: each test over its commits, with a line at each alert."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.urls import reverse

from perfweb.figures.graphs import Graph
from perfweb.figures.plots import MOST_POINTS, Figure, drawn, lettered, thinned
from perfweb.tracking.models import Alert, TrackedCommit
from perfweb.tracking.series import Points, Series
from perfweb.verdicts import names
from perfweb.verdicts.numbers import Scale, scale_for

MOST_GRAPHS = 12


def graphs(series: Series, commits: Iterable[TrackedCommit], alerts: Sequence[Alert]) -> list[Graph]:
    """One graph for each test, up to a max number; environments of a test are separate lines."""
    known = {commit.position: commit for commit in commits if commit.position is not None}
    made = []
    for test in names.in_order({key.test for key in series})[:MOST_GRAPHS]:
        lines = _named({key: points for key, points in series.items() if key.test == test})
        marks = _marks(test, alerts)
        made.append(Graph(names.anchor(test), f"{test} over commits", _figure(lines, known, marks)))
    return made


def _named(series: Series) -> dict[str, Points]:
    """The series of one test by the variant, with a number if it was measured in several environments."""
    found: dict[str, Points] = {}
    variants = [key.variant for key in series]
    for key, points in series.items():
        number = 1 + sum(name.split(" ")[0] == key.variant for name in found)
        several = variants.count(key.variant) > 1
        found[f"{key.variant} environment {number}" if several else key.variant] = points
    return found


def _marks(test: str, alerts: Iterable[Alert]) -> dict[float, str]:
    """The numbers of the alerts about a test, between the commits of their range."""
    marks: dict[float, list[str]] = {}
    for alert in alerts:
        place = (alert.culprit or alert.until).position
        if place is not None and any(movement.test == test for movement in alert.movements.all()):
            marks.setdefault(place - 0.5, []).append(str(alert.number))
    return {x: " ".join(numbers) for x, numbers in marks.items()}


def _figure(lines: Mapping[str, Points], commits: Mapping[int, TrackedCommit], marks: Mapping[float, str]) -> Figure:
    scale = scale_for(next(iter(lines.values())).unit, max(max(map(abs, points.values)) for points in lines.values()))
    places = sorted({place for points in lines.values() for place in points.positions})
    return {
        "data": [_trace(look, points, commits, scale, len(lines)) for _, points, look in drawn(lines)],
        "layout": {
            "height": 300,
            "xaxis": {"title": {"text": "commit of the branch, by number"}, "tickformat": "d"},
            "yaxis": {"title": {"text": scale.unit}},
            **lettered(marks, float(places[-1] - places[0])),
            "meta": {"width": 1100},
        },
    }


def _trace(look: Figure, points: Points, commits: Mapping[int, TrackedCommit], scale: Scale, lines: int) -> Figure:
    kept = thinned(points.values, MOST_POINTS // lines)
    places = [points.positions[index] for index in kept]
    return {
        **look,
        "type": "scatter",
        "mode": "lines+markers",
        "x": places,
        "y": [round(points.values[index] / scale.factor, 6) for index in kept],
        "text": [str(commits[place]) for place in places],
        "customdata": [reverse("reports:run", args=[points.runs[index]]) for index in kept],
        "hovertemplate": f"%{{text}}: %{{y}} {scale.unit}",
    }
