# SPDX-License-Identifier: BSD-2-Clause
"""The newest result of each topic on each testbed, and its recent history."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from django.core.cache import cache

from perfweb.figures.histories import Line, histories
from perfweb.lab.models import Testbed
from perfweb.runs.models import Run, RunState, Summary
from perfweb.stats.comparison import Verdict
from perfweb.verdicts import names
from perfweb.verdicts.doubts import doubted_runs
from perfweb.verdicts.numbers import scale_for
from perfweb.verdicts.run_verdicts import PairVerdicts, TestVerdict
from perfweb.verdicts.tags import database_state

TESTBEDS = 12
"""Testbeds in the grid: those with the newest runs."""

RUNS = 6
"""Newest runs of a testbed that are searched for its topics."""

POINTS = 50
"""Newest runs in a sparkline."""

KEPT_SECONDS = 600
"""Time for which a process keeps a grid; the database's state at its start is part of the key."""

_MOST_NOTABLE = {verdict: place for place, verdict in enumerate(Verdict)}
"""Failed, slower and faster come before what is not decided or has not changed."""


@dataclass(frozen=True)
class Cell:
    """The most notable verdict of a topic in the newest run that measured it, and the history of that test.

    Without a verdict, the run has a single variant: the first test of the topic represents it, and `baseline` is empty.
    The history is that of `shown`: the variant of the verdict, or the baseline where the variant has no result.
    `series` is its line of the timeline; `values` are the means of its newest runs, the oldest first.
    """

    run: int
    test: str
    variant: str
    baseline: str
    verdict: TestVerdict | None
    shown: str
    series: str
    value: str
    values: list[float]


@dataclass(frozen=True)
class Row:
    """A testbed with a cell for each topic, None where none of its newest runs measured the topic."""

    testbed: Testbed
    cells: list[tuple[str, Cell | None]]


@dataclass(frozen=True)
class Grid:
    """The topics that were measured, in the order of the catalogue, a row for each testbed, the newest run first, and
    the number of testbeds with results that have no row.
    """

    topics: list[str]
    rows: list[Row]
    left_out: int


@dataclass(frozen=True)
class _Choice:
    """What a cell is about, before its history is read. `summary` is the baseline's where the variant has no result."""

    run: Run
    summary: Summary
    variant: str
    baseline: str
    verdict: TestVerdict | None


def current_grid(shown: Sequence[Testbed]) -> Grid:
    """Return the grid of some testbeds, which is read again only after the database has changed."""
    state = database_state()
    if state is None:
        return read_grid(shown)
    return cast("Grid", cache.get_or_set(_key(state, shown), partial(read_grid, shown), KEPT_SECONDS))


def _key(state: str, shown: Sequence[Testbed]) -> str:
    """Testbeds are selected before the state is read, so one state can come with two selections."""
    selection = hashlib.sha256(repr(sorted(testbed.pk for testbed in shown)).encode()).hexdigest()
    return f"grid-{state}-{selection[:16]}"


def read_grid(shown: Sequence[Testbed]) -> Grid:
    """Read the grid of some testbeds: nine queries, and two more for each run with a sentinel."""
    testbeds = _testbeds_by_newest_run(shown)
    chosen: dict[tuple[int, str], _Choice] = {}
    topics_of = _newest_by_topic(testbeds[:TESTBEDS])
    for run, kept, pairs in _judged({run for run, _ in topics_of}):
        for choice in _choices(run, kept, pairs):
            topic = names.topic(choice.summary.test)
            if (run.pk, topic) in topics_of:
                chosen.setdefault((run.testbed_id, topic), choice)
    lines = histories({Line(choice.summary.test, choice.summary.series) for choice in chosen.values()}, POINTS)
    cells = {key: _cell(choice, lines) for key, choice in chosen.items()}
    measured = {topic for _, topic in chosen}
    topics = [topic for topic in names.by_topic() if topic in measured]
    topics += sorted(measured.difference(topics))
    with_cells, found = {key for key, _ in chosen}, {testbed.pk: testbed for testbed in shown}
    rows = [
        Row(found[key], [(topic, cells.get((key, topic))) for topic in topics]) for key in testbeds if key in with_cells
    ]
    return Grid(topics, rows, max(len(testbeds) - TESTBEDS, 0))


def _testbeds_by_newest_run(shown: Sequence[Testbed]) -> list[int]:
    """Return the testbeds with finished runs, the newest run first: one query that reads an index."""
    newest = {
        testbed.pk: Run.objects.filter(testbed=testbed, state=RunState.DONE)
        .order_by("-pk")
        .values_list("testbed", "pk")[:1]
        for testbed in shown
    }
    queries = list(newest.values())
    found = queries[0].union(*queries[1:], all=True) if queries else []
    return [testbed for testbed, _ in sorted(found, key=lambda one: -one[1])]


def _newest_by_topic(testbeds: Sequence[int]) -> set[tuple[int, str]]:
    """Return the newest run of each topic on each testbed, among the newest runs: two queries.

    Runs that measured two commits in turn for an alert are about that pair, and left out.
    """
    done = Run.objects.filter(state=RunState.DONE, check_of=None).order_by("-pk")
    queries = [done.filter(testbed=key).values_list("pk", "testbed")[:RUNS] for key in testbeds]
    testbed_of = dict(queries[0].union(*queries[1:], all=True)) if queries else {}
    tests = Summary.objects.filter(run__in=testbed_of).order_by().values_list("run_id", "test").distinct()
    newest: dict[tuple[int, str], int] = {}
    for run, test in tests:
        place = testbed_of[run], names.topic(test)
        newest[place] = max(run, newest.get(place, run))
    return {(run, topic) for (_, topic), run in newest.items()}


def _judged(keys: Iterable[int]) -> Iterable[tuple[Run, dict[tuple[int, str], Summary], list[PairVerdicts]]]:
    """Return runs, the newest first, with their summaries by variant and test, and their verdicts with all doubts."""
    runs = Run.objects.filter(pk__in=keys).select_related("testbed", "plan").prefetch_related("variants")
    newest = list(runs.order_by("-pk"))
    kept: dict[int, dict[tuple[int, str], Summary]] = {run.pk: {} for run in newest}
    needed = Summary.objects.filter(run__in=newest).only("run_id", "variant_id", "test", "series", "unit", "mean")
    for summary in needed:
        kept[summary.run_id][summary.variant_id, summary.test] = summary
    return [(run, kept[run.pk], pairs) for run, pairs in doubted_runs(newest)]


def _choices(run: Run, kept: dict[tuple[int, str], Summary], pairs: Sequence[PairVerdicts]) -> Iterable[_Choice]:
    """Return the results of a run that may represent their topics, the best choice first: the most notable verdict, and
    of equal ones the largest change.
    """
    judged = [(pair, verdict) for pair in pairs for verdict in pair.tests]
    for pair, verdict in sorted(judged, key=lambda one: (_MOST_NOTABLE[one[1].verdict], -_size(one[1]))):
        test = verdict.test
        if summary := kept.get((pair.b.pk, test)) or kept.get((pair.a.pk, test)):
            yield _Choice(run, summary, pair.b.name, pair.a.name, verdict)
    if not judged:
        alone = {summary.test: summary for summary in kept.values()}
        for test in names.in_order(alone):
            yield _Choice(run, alone[test], _variant(alone[test]), "", None)


def _size(verdict: TestVerdict) -> float:
    return abs(verdict.change.percent) if verdict.change else 0.0


def _variant(summary: Summary) -> str:
    return summary.series.rsplit("/", 1)[-1]


def _cell(choice: _Choice, lines: dict[Line, list[float]]) -> Cell:
    summary = choice.summary
    scale = scale_for(summary.unit, summary.mean)
    return Cell(
        choice.run.pk,
        summary.test,
        choice.variant,
        choice.baseline,
        choice.verdict,
        _variant(summary),
        summary.series,
        f"{scale.text(summary.mean)} {scale.unit}",
        lines[Line(summary.test, summary.series)],
    )
