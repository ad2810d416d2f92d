# SPDX-License-Identifier: BSD-2-Clause
"""The graphs of a tracked branch: each test over its commits, with its levels and a line at each alert."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from django.urls import reverse

from perfweb.figures.graphs import Graph
from perfweb.figures.levels import level_line
from perfweb.figures.plots import MOST_POINTS, Figure, drawn, lettered, thinned
from perfweb.tracking.models import Alert, Shift, TrackedBranch, TrackedCommit
from perfweb.tracking.series import Key, Points, Series
from perfweb.verdicts import names
from perfweb.verdicts.numbers import Scale, scale_for

MOST_GRAPHS = 12

NEAR = 20
"""Commits before and after a change that the graphs of its alert show."""

Shifts = Mapping[Key, Sequence[Shift]]


def graphs_near(alert: Alert, branch: Series) -> list[Graph]:
    """Draw the tests of an alert over the commits near its change: three queries."""
    place = (alert.culprit or alert.until).position
    if place is None:  # the branch was rewritten without the commit
        return []
    moved = {(movement.variant, movement.test) for movement in alert.movements.all()}
    found = {key: _near(points, place) for key, points in branch.items() if (key.variant, key.test) in moved}
    series = {key: points for key, points in found.items() if points.positions}
    commits = alert.branch.commits.filter(position__range=(place - NEAR, place + NEAR))
    return graphs(series, commits, [alert], newest_shifts(alert.branch))


def _near(points: Points, place: int) -> Points:
    kept = [index for index, position in enumerate(points.positions) if abs(position - place) <= NEAR]
    return replace(
        points,
        positions=[points.positions[index] for index in kept],
        values=[points.values[index] for index in kept],
        runs=[points.runs[index] for index in kept],
    )


def newest_shifts(branch: TrackedBranch) -> Shifts:
    """Return the change points of each series of a branch by its newest analysis, in order: two queries."""
    found: dict[Key, list[Shift]] = {}
    if newest := branch.analyses.first():
        for shift in newest.shifts.select_related("place"):
            found.setdefault(Key(shift.variant, shift.test, shift.environment), []).append(shift)
    return found


def graphs(series: Series, commits: Iterable[TrackedCommit], alerts: Sequence[Alert], shifts: Shifts) -> list[Graph]:
    """One graph for each test, up to a max number; environments of a test are separate lines."""
    known = {commit.position: commit for commit in commits if commit.position is not None}
    made = []
    for test in names.in_order({key.test for key in series})[:MOST_GRAPHS]:
        lines = _named({key: points for key, points in series.items() if key.test == test})
        marks = _marks(test, alerts)
        made.append(Graph(names.anchor(test), f"{test} over commits", _figure(lines, known, marks, shifts)))
    return made


def _named(series: Series) -> dict[str, tuple[Key, Points]]:
    """The series of one test by the variant, with a number if it was measured in several environments."""
    found: dict[str, tuple[Key, Points]] = {}
    variants = [key.variant for key in series]
    for key, points in series.items():
        number = 1 + sum(other.variant == key.variant for other, _ in found.values())
        several = variants.count(key.variant) > 1
        found[f"{key.variant} environment {number}" if several else key.variant] = key, points
    return found


def _marks(test: str, alerts: Iterable[Alert]) -> dict[float, str]:
    """The numbers of the alerts about a test, between the commits of their range."""
    marks: dict[float, list[str]] = {}
    for alert in alerts:
        place = (alert.culprit or alert.until).position
        if place is not None and any(movement.test == test for movement in alert.movements.all()):
            marks.setdefault(place - 0.5, []).append(str(alert.number))
    return {x: f"alert {' '.join(numbers)}" for x, numbers in marks.items()}


def _figure(
    lines: Mapping[str, tuple[Key, Points]],
    commits: Mapping[int, TrackedCommit],
    marks: Mapping[float, str],
    shifts: Shifts,
) -> Figure:
    every = [points for _, points in lines.values()]
    scale = scale_for(every[0].unit, max(max(map(abs, points.values)) for points in every))
    places = sorted({place for points in every for place in points.positions})
    shown = list(drawn(lines))
    levels = (_levels(look, points, shifts.get(key, ()), scale) for _, (key, points), look in shown)
    return {
        "data": [
            *(_trace(look, key.variant, points, commits, scale, len(lines)) for _, (key, points), look in shown),
            *filter(None, levels),
        ],
        "layout": {
            "height": 300,
            "xaxis": {"title": {"text": "commit of the branch, by number"}, "tickformat": "d"},
            "yaxis": {"title": {"text": scale.unit}},
            **lettered(marks, float(places[-1] - places[0])),
            "meta": {"width": 1100},
        },
    }


def _trace(
    look: Figure, variant: str, points: Points, commits: Mapping[int, TrackedCommit], scale: Scale, lines: int
) -> Figure:
    kept = thinned(points.values, MOST_POINTS // lines)
    places = [points.positions[index] for index in kept]
    values = [scale.text(points.values[index]) for index in kept]
    return {
        **look,
        "type": "scatter",
        "mode": "lines+markers",
        "x": places,
        "y": [round(points.values[index] / scale.factor, 6) for index in kept],
        "text": [
            f"{commits[place]}, {commits[place].author}: {value} {scale.unit}"
            for place, value in zip(places, values, strict=True)
        ],
        "ids": [f"{points.runs[index]}/{variant}" for index in kept],
        "customdata": [reverse("reports:run", args=[points.runs[index]]) for index in kept],
        "hovertemplate": "%{text}",
    }


def _levels(look: Figure, points: Points, shifts: Sequence[Shift], scale: Scale) -> Figure | None:
    """The levels of a series between its change points, None without any where it is drawn."""
    first, last = points.positions[0], points.positions[-1]
    placed = [(shift.place.position, shift) for shift in shifts if shift.place.position is not None]
    inside = [(place, shift) for place, shift in placed if first < place <= last]
    if not inside:
        return None
    levels = [inside[0][1].before, *(shift.after for _, shift in inside)]
    return level_line(look, [first, *(place - 0.5 for place, _ in inside), last], levels, scale)
