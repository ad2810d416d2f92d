# SPDX-License-Identifier: BSD-2-Clause
"""The list of tests: what was measured, its newest value, and what was never measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from perfweb.figures.histories import Line, histories
from perfweb.figures.lateral import of_each
from perfweb.figures.timelines import comparable, real_unless_none
from perfweb.headers import revalidated
from perfweb.parameters import choice_in, text_in
from perfweb.reports.topics import IMPORTS
from perfweb.runs.catalogue import TESTS
from perfweb.runs.models import Import, Run, Summary
from perfweb.verdicts import names
from perfweb.verdicts.numbers import scale_for
from perfweb.verdicts.tags import tag_of_database

POINTS = 20
"""Newest runs in a sparkline."""

MOST_IMPORTED = 200
"""Max tests of imports in the list; the search finds all."""

SORTS = {"topic": "topic", "run": "newest run", "change": "largest change"}
"""Orders of the list, and their names on the page."""


@dataclass(frozen=True)
class Row:
    """A measured test: its newest run, and the newest values of one line of its timeline, the oldest first."""

    test: str
    run: int
    sample: bool
    series: str
    unit: str
    values: list[float]

    @property
    def value(self) -> str:
        """The newest value with its unit."""
        scale = scale_for(self.unit, self.values[-1])
        return f"{scale.text(self.values[-1])} {scale.unit}"

    @property
    def change(self) -> float | None:
        """The newest value against the median of those before it, in percent of its size; None without any."""
        before = statistics.median(self.values[:-1]) if len(self.values) > 1 else 0.0
        return 100 * (self.values[-1] - before) / abs(before) if before else None


@require_safe
@cache_control(no_cache=True)
@revalidated(tag_of_database)
def test_list(request: HttpRequest) -> HttpResponse:
    """Show the measured tests of the catalogue and of the newest imports, and fold what was never measured.

    `q` selects tests by words of their names and meanings, `sort` is one of SORTS. Samples count only if there is
    nothing else: five queries.
    """
    words = text_in(request, "q").casefold().split()
    sort = choice_in(request, "sort", SORTS) or "topic"
    rows = {row.test: row for row in _measured()}
    shown = {test: row for test, row in rows.items() if _matches(test, words)}
    never = [test for test in TESTS if test not in rows and _matches(test, words)]
    context = {
        "sections": _sections(shown, sort),
        "shown": len(shown),
        "measured": len(rows),
        "never": _by_topic(never),
        "left": len(never),
        "full": len(rows.keys() - TESTS) >= MOST_IMPORTED,
        "most": MOST_IMPORTED,
        "words": text_in(request, "q"),  # q is the name of the site's search in base.html
        "sort": sort,
        "sorts": SORTS.items(),
        "samples": any(row.sample for row in rows.values()),
        "points": POINTS,
    }
    return render(request, "reports/test_list.html", context)


def _matches(test: str, words: Sequence[str]) -> bool:
    text = f"{test} {names.title(test)}".casefold()
    return all(word in text for word in words)


def _measured() -> list[Row]:
    counted = real_unless_none(Summary.objects.all(), Summary.objects.all())
    wanted = ("test", "run_id", "series", "unit")
    newest = of_each(
        [(test,) for test in TESTS],
        lambda test: comparable(counted.filter(test=test)).order_by("-run_id", "series").values_list(*wanted)[:1],
    )
    imported = counted.filter(run__in=Import.objects.newest_runs(IMPORTS)).exclude(test__in=TESTS)
    newest += list(imported.order_by("test", "-run_id", "series").distinct("test").values_list(*wanted)[:MOST_IMPORTED])
    runs = {run for _, run, _, _ in newest}
    samples = set(Run.objects.filter(pk__in=runs).exclude(testbed__sample="").values_list("pk", flat=True))
    lines = histories({Line(test, series) for test, _, series, _ in newest}, POINTS)
    return [
        Row(test, run, run in samples, series, unit, values)
        for test, run, series, unit in newest
        if (values := lines[Line(test, series)])  # none if the run was deleted in between
    ]


def _by_topic(tests: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Return topics with their tests, in the order of the catalogue; those of imports last, without a topic."""
    wanted = set(tests)
    grouped = {topic: [test for test in members if test in wanted] for topic, members in names.by_topic().items()}
    grouped[""] = names.in_order(wanted.difference(*names.by_topic().values()))
    return [(topic, members) for topic, members in grouped.items() if members]


def _sections(rows: Mapping[str, Row], sort: str) -> list[tuple[str | None, list[Row]]]:
    """Return the rows by topic, or in one part without a heading."""
    if sort == "topic":
        return [(topic, [rows[test] for test in tests]) for topic, tests in _by_topic(rows)]
    ordered = sorted(rows.values(), key=lambda row: (row.run, row.test), reverse=True)
    if sort == "change":
        ordered.sort(key=lambda row: -abs(row.change or 0.0))
    return [(None, ordered)] if ordered else []
