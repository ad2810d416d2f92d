# SPDX-License-Identifier: BSD-2-Clause
"""A test over commits or runs, read from the summaries and never from the samples."""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from django.urls import reverse
from django.utils.dateparse import parse_date, parse_datetime

from perfweb.reports.environment import TableRow, fact_changes
from perfweb.reports.figures import MOST_POINTS, Figure, series_style, thinned, upright
from perfweb.reports.numbers import Scale, scale_for
from perfweb.runs.models import HostFacts, Summary

MOST_SERIES = 12
"""As many as can be told apart by colour and marker."""

MOST_ROWS = 30_000
"""Summaries that one graph reads, the newest: 2000 commits with twelve series, and some more."""

COMMIT, RUN = "commit", "run"
_LETTERS = string.ascii_uppercase
_FIELDS = ("series", "at", "revision", "run_id", "environment", "unit", "direction", "mean")
Row = tuple[str, datetime, str, int, str, str, str, float]


class RangeError(ValueError):
    """A bound of a timeline that cannot be read; the message says how one is written."""


@dataclass(frozen=True)
class Window:
    """What is looked at: by commit (bounds are times) or by run (bounds are run numbers), and the last so many."""

    by: str
    first: datetime | int | None = None
    last: datetime | int | None = None
    newest: int | None = None


@dataclass(frozen=True)
class Spot:
    """A point of a timeline: the mean of a series over the runs of one commit, or of one run."""

    x: float
    mean: float
    run: int
    revision: str
    environment: str


@dataclass(frozen=True)
class Change:
    """Something about the hosts of a testbed that is not as it was at the spot before."""

    letter: str
    x: float
    testbed: str
    run: int
    facts: list[TableRow]


@dataclass
class Timeline:
    """All series of a test in a window; `left_out` are names of series that are not drawn for want of room."""

    test: str
    window: Window
    unit: str
    direction: str
    series: dict[str, list[Spot]]
    left_out: list[str]
    changes: list[Change]

    @property
    def scale(self) -> Scale:
        means = [abs(spot.mean) for spots in self.series.values() for spot in spots]
        return scale_for(self.unit, max(means, default=0.0))


def read_window(by: str, first: str, last: str, newest: str) -> Window:
    """Read the window from the words of an address; empty ones are not given. Raises RangeError."""
    if by not in {COMMIT, RUN}:
        raise RangeError(f"a timeline goes by {COMMIT} or by {RUN}, not by “{by}”")
    if newest and not (newest.isascii() and newest.isdigit() and 0 < int(newest[:9]) == int(newest)):
        raise RangeError(f"“{newest}” is no number of points: take a whole number from 1 on")
    bounds = [_bound(by, text) if text else None for text in (first, last)]
    return Window(by, bounds[0], bounds[1], int(newest) if newest else None)


def _bound(by: str, text: str) -> datetime | int:
    if by == RUN:
        if not text.removeprefix("-").isdigit() or not text.isascii() or len(text) > 18:
            raise RangeError(f"“{text}” is no number of a run")
        return int(text)
    try:
        # A browser's graph writes a blank between date and time, and maybe no seconds.
        day = parse_date(text[:10])
        time = parse_datetime(text.replace(" ", "T")) if len(text) > 10 else None
    except ValueError:
        day = time = None
    if day is None or (len(text) > 10 and time is None):
        raise RangeError(f"“{text}” is no date: write 2026-11-21 or 2026-11-21 09:30")
    moment = time or datetime(day.year, day.month, day.day, tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_timeline(test: str, window: Window, wanted: Sequence[str] = ()) -> Timeline | None:
    """Read the newest summaries of a test in a window, of the wanted series or of any: one query, and one for the
    environments that changed. None if the test was never measured there.
    """
    rows = _rows(test, window, wanted)
    if not rows:
        return None
    names = list(dict.fromkeys(row[0] for row in rows))  # the rows are newest first, and so are the names
    drawn = sorted(names[:MOST_SERIES])
    series = {name: _spots([row for row in rows if row[0] == name], window.by) for name in drawn}
    if window.newest:
        places = sorted({spot.x for spots in series.values() for spot in spots})
        earliest = places[-window.newest :][0]
        series = {name: [spot for spot in spots if spot.x >= earliest] for name, spots in series.items()}
    return Timeline(test, window, rows[0][5], rows[0][6], series, sorted(names[MOST_SERIES:]), _changes(series))


def _rows(test: str, window: Window, wanted: Sequence[str]) -> list[Row]:
    axis = "at" if window.by == COMMIT else "run"
    rows = Summary.objects.filter(test=test).order_by(f"-{axis}")
    if window.first is not None:
        rows = rows.filter(**{f"{axis}__gte": window.first})
    if window.last is not None:
        rows = rows.filter(**{f"{axis}__lte": window.last})
    if wanted:
        rows = rows.filter(series__in=wanted)
    return list(rows.values_list(*_FIELDS)[:MOST_ROWS])


def _spots(rows: Iterable[Row], by: str) -> list[Spot]:
    """The points of one series in the order of the axis; runs of one commit make one point, their mean."""
    if by == RUN:
        spots = [Spot(run, mean, run, revision, environment) for _, _, revision, run, environment, _, _, mean in rows]
        return spots[::-1]
    groups: dict[datetime, list[tuple[int, float, str, str]]] = {}
    for _, at, revision, run, environment, _, _, mean in rows:
        groups.setdefault(at, []).append((run, mean, revision, environment))
    spots = []
    for at, members in reversed(groups.items()):
        run, _, revision, environment = max(members)
        spots.append(Spot(at.timestamp() * 1000, sum(m[1] for m in members) / len(members), run, revision, environment))
    return spots


def _changes(series: dict[str, list[Spot]]) -> list[Change]:
    """Where the digest of a testbed's hosts changes, the newest as far as there are letters."""
    found: dict[tuple[str, float], tuple[Spot, Spot]] = {}
    for name, spots in series.items():
        for before, after in pairwise(spots):
            if before.environment and after.environment and before.environment != after.environment:
                found.setdefault((name.partition("/")[0], after.x), (before, after))
    newest = sorted(found.items(), key=lambda item: item[0][1])[-len(_LETTERS) :]
    runs = {spot.run for _, spots in newest for spot in spots}
    facts: dict[int, dict[str, object]] = {run: {} for run in runs}
    known = HostFacts.objects.filter(run__in=runs) if runs else HostFacts.objects.none()
    for run, role, told in known.values_list("run_id", "role", "facts"):
        facts[run][role] = told
    return [
        Change(letter, x, testbed, after.run, fact_changes(facts[before.run], facts[after.run]))
        for letter, ((testbed, x), (before, after)) in zip(_LETTERS, newest, strict=False)
    ]


def timeline_figure(timeline: Timeline) -> Figure:
    """Draw every series as a line of points; more points than a graph can show are thinned, and fetched on zoom."""
    scale, dated = timeline.scale, timeline.window.by == COMMIT
    labels = short_names(list(timeline.series))
    most = MOST_POINTS // max(1, len(timeline.series))
    traces = []
    for number, (name, spots) in enumerate(timeline.series.items()):
        meta, symbol = series_style(number)
        kept = [spots[place] for place in thinned([spot.mean for spot in spots], most)]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": labels[name],
                "x": [spot.x for spot in kept],
                "y": [round(spot.mean / scale.factor, 6) for spot in kept],
                "text": [spot.revision or f"run {spot.run}" for spot in kept],
                "customdata": [reverse("reports:run", args=[spot.run]) for spot in kept],
                "hovertemplate": f"%{{text}}: %{{y}} {scale.unit}",
                "line": {"dash": "dash"} if number >= MOST_SERIES // 2 else {},
                "marker": {"symbol": symbol, "size": 6},
                "meta": meta,
            }
        )
    return {
        "data": [trace for trace in traces if trace["y"]],
        "layout": {
            "height": 420,
            "xaxis": {
                "title": {"text": "time of the commit" if dated else "run"},
                **({"type": "date"} if dated else {"tickformat": "d"}),
            },
            "yaxis": {"title": {"text": scale.unit}},
            "shapes": [upright(change.x) for change in timeline.changes],
            "annotations": [
                {"x": change.x, "y": 1, "yref": "paper", "yanchor": "bottom", "text": change.letter}
                for change in timeline.changes
            ],
            "meta": {"zoom": timeline.window.by, "width": 1100},
        },
    }


def short_names(series: Sequence[str]) -> dict[str, str]:
    """Leave out what all series have in common: of testbed/plan/variant the parts that differ, or the variant."""
    parts = [name.split("/") for name in series]
    kept = [place for place in range(3) if len({part[place] for part in parts}) > 1] or [2]
    return {name: "/".join(part[place] for place in kept) for name, part in zip(series, parts, strict=True)}
