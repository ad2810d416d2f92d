# SPDX-License-Identifier: BSD-2-Clause
"""A test over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from perfweb.figures.graphs import Graph, respond
from perfweb.figures.levels import Shift, draw_levels, shifts
from perfweb.figures.timelines import (
    COMMIT,
    RUN,
    TIME,
    RangeError,
    Timeline,
    Window,
    read_timeline,
    read_window,
    short_names,
    timeline_figure,
)
from perfweb.headers import revalidated
from perfweb.lab.models import Testbed
from perfweb.parameters import ParameterError, choice_in, possible, text_in, texts_in
from perfweb.runs.catalogue import TESTS
from perfweb.runs.models import Summary
from perfweb.stats.segmentation.noisemodels import SHORTEST
from perfweb.tracking.marks import alerts_at, commit_words
from perfweb.verdicts import names
from perfweb.verdicts.tags import tag_of_database

NEWEST = (50, 200, 1000)
LISTED = 25
WAYS = {COMMIT: "by commit", TIME: "by time", RUN: "by run"}
"""What the points of a timeline can follow."""

CHOICES = (("base", "Base"), ("with", "compared with it"))
LOG = "log"


@dataclass(frozen=True)
class SpotRow:
    """A commit or a run with the words about it, and the mean and the newest run of each series, None if it was not
    measured.
    """

    revision: str
    run: int
    commit: str
    means: list[float | None]
    runs: list[int | None]


@require_safe
@cache_control(no_cache=True)
@revalidated(tag_of_database)
def timeline(request: HttpRequest, test: str) -> HttpResponse:
    """Show a test over commits (`?by=time`: at their times, `?by=run`: over runs); `from`, `to`, `newest` and `series`
    choose a part, `axis=log` a logarithmic axis.
    """
    axis = choice_in(request, "axis", [LOG])
    window, found = selected_timeline(request, test)
    if found is None and test not in TESTS:
        raise Http404(f"There is no test “{test}”. The list of tests has all names.")
    moved = shifts(found) if found else []
    commits = commit_words(found.runs) if found else {}
    graph = timeline_graph(found, moved, commits, axis) if found else None
    labels = short_names(list(found.series)) if found else {}
    rows = _rows(found, commits) if found else []
    context = {
        "test": test,
        "sample": _origin(found) if found else "",
        "title": names.title(test),
        "measurable": test in TESTS,
        "timeline": found,
        "graph": graph,
        "by": (found.window if found else window).name,
        "ways": WAYS.items(),
        "axis": axis,
        "labels": labels.values(),
        "shifts": [(shift, labels[shift.series]) for shift in moved],
        "shortest": 2 * SHORTEST,
        "rows": rows,
        "choices": CHOICES,
        "selectable": _sides(rows, found) if found else {},
        "newest": NEWEST,
        "narrowed": any(texts_in(request, name) for name in ("from", "to", "newest", "series")),
    }
    return respond(request, "reports/timeline.html", context, [graph])


def selected_timeline(request: HttpRequest, test: str) -> tuple[Window, Timeline | None]:
    """Return the selected part of a timeline, None if the test was not measured. Raises ParameterError."""
    window, wanted = selected_window(request), selected_series(request, test)
    found = read_timeline(test, window, wanted)
    by_default = not text_in(request, "by")
    # One commit, or commits at one time, which a timeline keeps a millisecond apart, as in an import without dates.
    if found and by_default and max(found.places) - min(found.places) < len(found.places):
        found = read_timeline(test, Window(RUN, newest=window.newest), wanted)
    return window, found


def selected_window(request: HttpRequest) -> Window:
    """Return the selected window of a timeline. Raises ParameterError."""
    by = choice_in(request, "by", tuple(WAYS)) or COMMIT
    bounds = (text_in(request, name) for name in ("from", "to", "newest"))
    try:
        return replace(read_window(RUN if by == RUN else COMMIT, *bounds), dated=by == TIME)
    except RangeError as error:
        raise ParameterError("from, to, newest", f"{error}.") from None


def selected_series(request: HttpRequest, test: str) -> list[str]:
    """Return the selected series, none for all of them. Raises ParameterError, which lists the series of the test: one
    query if some are named.
    """
    wanted = texts_in(request, "series")
    if not wanted:
        return []
    known = sorted(set(Summary.objects.filter(test=test).order_by().values_list("series", flat=True).distinct()))
    if wrong := [name for name in wanted if name not in known]:
        raise ParameterError("series", f"“{wrong[0]}” is not possible. {possible(known)}")
    return wanted


def timeline_graph(
    found: Timeline, moved: Sequence[Shift], commits: Mapping[int, str] | None = None, axis: str = ""
) -> Graph:
    """Draw a timeline with the levels between its change points and with its alerts, on a logarithmic axis if all
    values have a logarithm. `commits` has the words about the commits of runs.
    """
    alerts = {
        found.runs[run]: f"alert {' '.join(map(str, numbers))}"
        for run, numbers in alerts_at(found.test, found.runs).items()
    }
    words = {run: f" {about}" for run, about in (commits or {}).items()}
    figure = draw_levels(timeline_figure(found, words), found, moved, alerts)
    if axis == LOG and all((line.mean > 0).all() for line in found.series.values()):
        figure["layout"]["yaxis"]["type"] = LOG
    return Graph("timeline", f"{found.test} over time", figure)


def _origin(found: Timeline) -> str:
    """Return where the values of samples in a timeline come from: one query."""
    names = {series.partition("/")[0] for series in found.series}
    origins = Testbed.objects.filter(name__in=names).exclude(sample="").values_list("sample", flat=True)
    return "; ".join(sorted(set(origins)))


def _sides(rows: Sequence[SpotRow], found: Timeline) -> dict[str, list[tuple[str, str]]]:
    """The sides that can be compared, by series, the one with the most first: each with its words."""
    sides: dict[str, list[tuple[str, str]]] = {}
    for place, (name, label) in enumerate(short_names(list(found.series)).items()):
        variant = name.rpartition("/")[2]
        sides[label] = [
            (
                f"{row.runs[place]}/{variant}",
                " ".join(filter(None, [row.revision, row.commit, f"run {row.runs[place]}"])),
            )
            for row in rows
            if row.runs[place] is not None
        ]
    return dict(sorted(sides.items(), key=lambda item: -len(item[1])))


def _rows(found: Timeline, commits: Mapping[int, str]) -> list[SpotRow]:
    """The newest positions of the axis, newest first, as a table."""
    at: dict[float, dict[str, tuple[int, str, float]]] = {}
    for name, line in found.series.items():
        newest = line.picked(range(max(0, len(line.x) - LISTED), len(line.x)))
        columns = (newest.x.tolist(), newest.run.tolist(), newest.revision, newest.mean.tolist())
        for x, *point in zip(*columns, strict=True):
            at.setdefault(x, {})[name] = (point[0], point[1], point[2])
    rows = []
    for _, members in sorted(at.items(), reverse=True)[:LISTED]:
        run, revision, _ = max(members.values())
        shown = [members.get(name) for name in found.series]
        means = [member[2] if member else None for member in shown]
        runs = [member[0] if member else None for member in shown]
        rows.append(SpotRow(revision, run, commits.get(run, ""), means, runs))
    return rows
