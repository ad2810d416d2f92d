# SPDX-License-Identifier: BSD-2-Clause
"""A test over commits or runs, read from the summaries and never from the samples."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from django.contrib.postgres.aggregates import ArrayAgg, StringAgg
from django.db.models import Aggregate, Exists, FloatField, Max, QuerySet
from django.db.models.functions import Cast, Extract
from django.urls import reverse
from django.utils.dateparse import parse_date, parse_datetime

from perfweb.figures.plots import MOST_POINTS, Figure, drawn, lettered, thinned
from perfweb.runs.models import Run, Summary
from perfweb.runs.summaries import facts_of
from perfweb.verdicts.environment import TableRow, change_in_words, fact_changes
from perfweb.verdicts.numbers import Scale, scale_for

MOST_SERIES = 12
"""Max number of series, which colour and marker can distinguish."""

MOST_ROWS = 30_000
"""Max summaries that one graph reads, the newest: 2000 commits with twelve series, and some more."""

COMMIT, TIME, RUN = "commit", "time", "run"
_MOST_TICKS = 9
_LETTERS = string.ascii_uppercase
_WORDS = ("revisions", "environments")
_BETWEEN_WORDS = "\x1f"
"""The unit separator of ASCII, which no revision has."""
Numbers = npt.NDArray[np.float64]


class RangeError(ValueError):
    """An invalid bound of a timeline; the message describes the format."""


@dataclass(frozen=True)
class Window:
    """The window: by commit (bounds are times) or by run (bounds are run numbers), and the number of newest points.

    Commits are drawn equally far apart, because many are made on one day and few on others; `dated`: by their times.
    """

    by: str
    first: datetime | int | None = None
    last: datetime | int | None = None
    newest: int | None = None
    dated: bool = False

    @property
    def name(self) -> str:
        """What its points follow, as in the address of the page."""
        return TIME if self.dated else self.by


@dataclass(frozen=True)
class Line:
    """The points of one series from left to right, column by column, because there are tens of thousands.

    `x` is a time in milliseconds since 1970 or the number of a run, `mean` that of the runs of one commit, or of one
    run; the newest of these is `run`, with its revision and the digest of its environment.
    """

    x: Numbers
    mean: Numbers
    run: npt.NDArray[np.int64]
    revision: list[str]
    environment: list[str]

    def picked(self, places: Sequence[int]) -> Line:
        """Return the series with a part of its points."""
        chosen = np.asarray(places, dtype=np.int64)
        words = ([column[place] for place in places] for column in (self.revision, self.environment))
        return Line(self.x[chosen], self.mean[chosen], self.run[chosen], *words)


@dataclass(frozen=True)
class Change:
    """A property of a testbed's hosts that changed since the previous point."""

    letter: str
    x: float
    testbed: str
    run: int
    facts: list[TableRow]
    words: str


@dataclass(frozen=True)
class Timeline:
    """All series of a test in a window; `left_out` are names of series beyond the max number, `revisions` is the number
    of measured revisions.
    """

    test: str
    window: Window
    unit: str
    direction: str
    series: dict[str, Line]
    left_out: list[str]
    revisions: int
    changes: list[Change]

    @cached_property
    def scale(self) -> Scale:
        return scale_for(self.unit, max(float(abs(line.mean).max()) for line in self.series.values()))

    @cached_property
    def places(self) -> Numbers:
        """Every position of the axis with a point, in order."""
        return np.unique(np.concatenate([line.x for line in self.series.values()]))

    @cached_property
    def runs(self) -> dict[int, float]:
        """The position of each run that is the newest of a point."""
        return {
            run: x for line in self.series.values() for run, x in zip(line.run.tolist(), line.x.tolist(), strict=True)
        }

    @property
    def even(self) -> bool:
        """Whether points are drawn equally far apart."""
        return self.window.name == COMMIT

    def drawn_at(self, x: Numbers) -> Numbers:
        """Return where positions of the axis are drawn."""
        return np.searchsorted(self.places, x).astype(np.float64) if self.even else x

    @property
    def letters(self) -> dict[float, str]:
        """The letters of changes on the hosts, by position."""
        marks: dict[float, list[str]] = {}
        for change in self.changes:
            marks.setdefault(change.x, []).append(change.letter)
        return {x: " ".join(letters) for x, letters in marks.items()}

    def marked(self, labels: Mapping[float, str]) -> Figure:
        """Return what a layout needs for labelled lines, given by their positions."""
        ends = self.drawn_at(self.places[[0, -1]])
        spots = self.drawn_at(np.asarray(list(labels), dtype=np.float64)).tolist()
        return lettered(dict(zip(spots, labels.values(), strict=True)), float(ends[1] - ends[0]))


def read_window(by: str, first: str, last: str, newest: str) -> Window:
    """Read the window from the parameters of an address; empty ones count as missing. Raises RangeError."""
    if by not in {COMMIT, RUN}:
        raise RangeError(f"a timeline goes by {COMMIT} or by {RUN}, not by “{by}”")
    if newest and not (newest.isascii() and newest.isdigit() and len(newest) < 10 and int(newest) > 0):
        raise RangeError(f"“{newest[:40]}” is no number of points: take a whole number from 1 on")
    count = int(newest) if newest else None
    if by == COMMIT:
        return _ordered(by, moment(first) if first else None, moment(last) if last else None, count)
    return _ordered(by, _run_number(first) if first else None, _run_number(last) if last else None, count)


def _ordered(by: str, first: Any, last: Any, newest: int | None) -> Window:
    if first is not None and last is not None and first > last:
        raise RangeError(f"{first} is after {last}: write the earlier bound first")
    return Window(by, first, last, newest)


def _run_number(text: str) -> int:
    if not text.removeprefix("-").isdigit() or not text.isascii() or len(text) > 18:
        raise RangeError(f"“{text}” is no number of a run")
    return int(text)


def moment(text: str) -> datetime:
    """Read a date, which means its first moment, or a time; without a zone it is UTC. Raises RangeError."""
    try:
        # A browser's graph writes a space between date and time, and may leave out the seconds.
        day = parse_date(text[:10])
        time = parse_datetime(text.replace(" ", "T")) if len(text) > 10 else None
    except ValueError:
        day = time = None
    if day is None or (len(text) > 10 and time is None):
        raise RangeError(f"“{text}” is no date: write 2026-11-21 or 2026-11-21 09:30")
    found = time or datetime(day.year, day.month, day.day, tzinfo=UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def read_timeline(test: str, window: Window, wanted: Sequence[str] = ()) -> Timeline | None:
    """Read the newest summaries of a test in a window, of the selected series or of any. That takes two queries, one
    more to select series, and one more if environments changed. None if the test was never measured there.
    """
    rows = _grouped(test, window, wanted)
    if not rows:
        return None
    if window.by == COMMIT:
        _keep_apart(rows)
    lines = {row["series"]: _line(row) for row in rows}
    newest_first = sorted(lines, key=lambda name: (-lines[name].run.max(), name))
    series = {name: lines[name] for name in sorted(newest_first[:MOST_SERIES])}
    return Timeline(
        test,
        window,
        unit=max(row["units"] for row in rows),
        direction=max(row["directions"] for row in rows),
        series=series,
        left_out=sorted(newest_first[MOST_SERIES:]),
        revisions=len(set().union(*(row["revisions"] for row in rows))),
        changes=changes_of(series),
    )


def comparable(rows: QuerySet[Summary]) -> QuerySet[Summary]:
    """Leave out runs that measured two commits of a tracked branch in turn for an alert: they are about that pair.

    PostgreSQL lists these few runs once. With a join it would read all runs for each query.
    """
    return rows.exclude(run__in=Run.objects.filter(check_of__isnull=False).values("pk"))


def real_unless_none(rows: QuerySet[Summary], among: QuerySet[Summary]) -> QuerySet[Summary]:
    """Leave out the results of samples, if `among` has any other result. PostgreSQL lists the runs of samples once."""
    samples = Run.objects.exclude(testbed__sample="").values("pk")
    real = among.exclude(run__in=samples)
    return rows.exclude(run__in=samples.filter(Exists(real)))


def summaries_in(test: str, window: Window, wanted: Sequence[str] = ()) -> QuerySet[Summary]:
    """Return the summaries of a test in a window, of the selected series or of any, unordered: the newest MOST_ROWS.

    Without a selection, those of samples count only if there are no others.

    The ends are looked up in the index, so that only the needed rows are read.
    """
    axis = "at" if window.by == COMMIT else "run_id"
    of_test = Summary.objects.filter(test=test)
    rows = comparable(of_test if wanted else real_unless_none(of_test, of_test)).order_by(f"-{axis}")
    if window.first is not None:
        rows = rows.filter(**{f"{axis}__gte": window.first})
    if window.last is not None:
        rows = rows.filter(**{f"{axis}__lte": window.last})
    if wanted:
        rows = rows.filter(series__in=wanted)
    if window.newest:
        places = rows.values_list(axis, flat=True).distinct()
        if earliest := places[window.newest - 1 : window.newest]:
            rows = rows.filter(**{f"{axis}__gte": earliest[0]})
    if too_old := rows.values_list(axis, flat=True)[MOST_ROWS : MOST_ROWS + 1]:
        rows = rows.filter(**{f"{axis}__gt": too_old[0]})
    return rows.order_by()


def _grouped(test: str, window: Window, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """The summaries of each series column by column, unordered, because a sort would cost PostgreSQL time.

    Texts come as one joined text: quoting and reading an array of them takes as long as finding them.
    """
    columns: dict[str, Aggregate] = {"means": ArrayAgg("mean"), "runs": ArrayAgg("run_id")}
    if window.by == COMMIT:
        columns["x"] = ArrayAgg(Cast(Extract("at", "epoch"), FloatField()) * 1000)
    columns |= {name: StringAgg(name.removesuffix("s"), _BETWEEN_WORDS) for name in _WORDS}
    rows = summaries_in(test, window, wanted).values("series")
    grouped = rows.annotate(units=Max("unit"), directions=Max("direction"), **columns)
    return [_with_words(dict(row)) for row in grouped]


def _with_words(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: row[name].split(_BETWEEN_WORDS) for name in _WORDS}


def _keep_apart(rows: Iterable[dict[str, Any]]) -> None:
    """Give each revision one place of the axis, the time of its commit, and to no two the same.

    Commits can have the same time, and where none is known it is that of a run: of the first one of the revision. Runs
    without a revision have a place each. Places that would be the same are a millisecond apart.
    """
    first: dict[str | int, tuple[float, int]] = {}
    for row in rows:
        row["keys"] = [revision or run for revision, run in zip(row["revisions"], row["runs"], strict=True)]
        for key, x, run in zip(row["keys"], row["x"], row["runs"], strict=True):
            first[key] = min(first.get(key, (x, run)), (x, run))
    places: dict[str | int, float] = {}
    last = -math.inf
    for key in sorted(first, key=first.__getitem__):
        places[key] = last = max(first[key][0], last + 1)
    for row in rows:
        row["x"] = [places[key] for key in row["keys"]]


def _line(row: Mapping[str, Any]) -> Line:
    """The points of one series in the order of the axis; runs of one commit make one point, their mean."""
    run = np.asarray(row["runs"], dtype=np.int64)
    mean = np.asarray(row["means"], dtype=np.float64)
    x = np.asarray(row.get("x", run), dtype=np.float64)
    order = np.lexsort((run, x))
    spots, first, count = np.unique(x[order], return_index=True, return_counts=True)
    newest = order[first + count - 1]
    words = ([row[name][place] for place in newest.tolist()] for name in _WORDS)
    return Line(spots, np.add.reduceat(mean[order], first) / count, run[newest], *words)


def changes_of(series: Mapping[str, Line]) -> list[Change]:
    """Find where the digest of a testbed's hosts changes, the newest as far as there are letters: at most one query."""
    found: dict[tuple[str, float], tuple[int, int]] = {}
    for name, line in series.items():
        for place, (before, after) in enumerate(pairwise(line.environment)):
            if before != after and before and after:
                runs = int(line.run[place]), int(line.run[place + 1])
                found.setdefault((name.partition("/")[0], float(line.x[place + 1])), runs)
    newest = sorted(found.items(), key=lambda item: item[0][1])[-len(_LETTERS) :]
    facts = facts_of({run for _, runs in newest for run in runs})
    return [
        Change(
            letter, x, testbed, after,
            fact_changes(facts[before], facts[after]), change_in_words(facts[before], facts[after]),
        )
        for letter, ((testbed, x), (before, after)) in zip(_LETTERS, newest, strict=False)
    ]  # fmt: skip


def changes_over_runs(summaries: Iterable[Summary]) -> list[Change]:
    """Find the changes on the hosts between the runs of summaries; positions are numbers of runs."""
    testbeds: dict[str, dict[int, Summary]] = {}
    for summary in summaries:
        testbeds.setdefault(summary.series.partition("/")[0], {})[summary.run_id] = summary
    lines = {}
    for testbed, of_run in testbeds.items():
        runs = np.array(sorted(of_run), dtype=np.int64)
        rows = [of_run[run] for run in runs.tolist()]
        words = [row.revision for row in rows], [row.environment for row in rows]
        lines[testbed] = Line(runs.astype(np.float64), np.zeros(len(rows)), runs, *words)
    return changes_of(lines)


def timeline_figure(timeline: Timeline, commits: Mapping[int, str] | None = None) -> Figure:
    """Draw every series as a line of points; more points than a graph can show are thinned, and fetched on zoom.

    `commits` has the words about the commits of runs, with a blank before. The `ids` of points are sides that can be
    compared.
    """
    commits = commits or {}
    scale = timeline.scale
    pages = reverse("reports:run-list")
    labels = short_names(list(timeline.series))
    most = MOST_POINTS // max(1, len(timeline.series))
    traces = []
    variants = [name.rpartition("/")[2] for name in timeline.series]
    for number, line, look in drawn({labels[name]: line for name, line in timeline.series.items()}):
        kept = line.picked(thinned(line.mean.tolist(), most))
        runs = kept.run.tolist()
        traces.append(
            {
                **look,
                "type": "scatter",
                "mode": "lines+markers",
                "x": timeline.drawn_at(kept.x).tolist(),
                "y": (kept.mean / scale.factor).round(6).tolist(),
                "text": [
                    f"{revision or f'run {run}'}{commits.get(run, '')}: {scale.text(mean)} {scale.unit}"
                    for revision, run, mean in zip(kept.revision, runs, kept.mean.tolist(), strict=True)
                ],
                "ids": [f"{run}/{variants[number]}" for run in runs],
                "customdata": [f"{pages}{run}/" for run in runs],
                "hovertemplate": "%{text}",
                "line": {"dash": "dash"} if number >= MOST_SERIES // 2 else {},
            }
        )
    return {
        "data": [trace for trace in traces if trace["y"]],
        "layout": {
            "height": 420,
            "xaxis": _axis(timeline),
            "yaxis": {"title": {"text": scale.unit}},
            **timeline.marked(timeline.letters),
            "meta": {"zoom": timeline.window.name, "places": _places(timeline), "width": 1100},
        },
    }


def _axis(timeline: Timeline) -> Figure:
    if timeline.window.by == RUN:
        return _run_axis(timeline.places)
    if not timeline.even:
        return {"title": {"text": "time of the commit, or of its first run"}, "type": "date"}
    count = len(timeline.places)
    ticks = list(range(0, count, -(-count // _MOST_TICKS)))
    days = [datetime.fromtimestamp(timeline.places[place] / 1000, UTC).date().isoformat() for place in ticks]
    return {"title": {"text": "commits, each with its date"}, "tickvals": ticks, "ticktext": days, "showgrid": False}


def _places(timeline: Timeline) -> list[int]:
    """Return the time of each commit in milliseconds since 1970, if the axis does not show it: a zoom needs it."""
    return np.ceil(timeline.places).astype(np.int64).tolist() if timeline.even else []


def _run_axis(places: Numbers) -> Figure:
    """An axis of runs; a few runs have a tick each, so that no tick is between two runs."""
    few = {"tickvals": places.tolist(), "ticktext": [f"{place:.0f}" for place in places]}
    return {"title": {"text": "run"}, "tickformat": "d", **(few if len(places) <= MOST_SERIES else {})}


def short_names(series: Sequence[str]) -> dict[str, str]:
    """Leave out the common parts of series names: of testbed/plan/variant the parts that differ, or the variant."""
    parts = [name.split("/") for name in series]
    kept = [place for place in range(3) if len({part[place] for part in parts}) > 1] or [2]
    return {name: "/".join(part[place] for place in kept) for name, part in zip(series, parts, strict=True)}
