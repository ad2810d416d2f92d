# SPDX-License-Identifier: BSD-2-Clause
"""The newest result of each topic on each testbed, and its recent history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import QuerySet

from perfweb.figures.timelines import comparable
from perfweb.lab.models import Testbed
from perfweb.runs.models import Run, RunState, Summary
from perfweb.stats.comparison import Verdict
from perfweb.verdicts import names
from perfweb.verdicts.numbers import scale_for
from perfweb.verdicts.run_verdicts import PairVerdicts, TestVerdict, verdicts

TESTBEDS = 12
"""Testbeds in the grid: those with the newest runs."""

RUNS = 6
"""Newest runs of a testbed that are searched for its topics."""

POINTS = 50
"""Newest runs in a sparkline."""

_WORST_FIRST = {verdict: place for place, verdict in enumerate(Verdict)}


class _Line(NamedTuple):
    """A line of a timeline."""

    test: str
    series: str


@dataclass(frozen=True)
class Cell:
    """The worst verdict of a topic in the newest run that measured it, and the history of that test on that variant.

    Without a verdict, the run has a single variant: the first test of the topic represents it, and `baseline` is empty.
    `series` is the line of the timeline; `values` are the means of its newest runs, the oldest first.
    """

    run: Run
    test: str
    variant: str
    baseline: str
    verdict: TestVerdict | None
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
    """The topics that were measured, in the order of the catalogue, and a row for each testbed."""

    topics: list[str]
    rows: list[Row]


@dataclass(frozen=True)
class _Choice:
    """What a cell is about, before its history is read: a variant with its baseline's name and verdict, if it has one.

    `summary` is the baseline's where the variant has no result.
    """

    run: Run
    summary: Summary
    variant: str
    baseline: str
    verdict: TestVerdict | None


def read_grid() -> Grid:
    """Read the grid: five queries."""
    newest = _newest_runs()
    kept: dict[int, dict[tuple[int, str], Summary]] = {run.pk: {} for run in newest}
    for summary in Summary.objects.filter(run__in=newest):
        kept[summary.run_id][summary.variant_id, summary.test] = summary
    chosen: dict[tuple[int, str], _Choice] = {}
    for run, pairs in verdicts(newest):
        for choice in _choices(run, kept[run.pk], pairs):
            chosen.setdefault((run.testbed_id, names.topic(choice.summary.test)), choice)
    lines = _histories({_Line(choice.summary.test, choice.summary.series) for choice in chosen.values()})
    cells = {key: _cell(choice, lines) for key, choice in chosen.items()}
    measured = {topic for _, topic in chosen}
    topics = [topic for topic in names.by_topic() if topic in measured]
    topics += sorted(measured.difference(topics))
    testbeds = {run.testbed_id: run.testbed for run in newest}
    return Grid(
        topics,
        [Row(testbed, [(topic, cells.get((key, topic))) for topic in topics]) for key, testbed in testbeds.items()],
    )


def _newest_runs() -> list[Run]:
    """Return the newest finished runs of each testbed, the newest first: two queries. Runs that measured two commits in
    turn for an alert are about that pair, and left out.
    """
    done = Run.objects.filter(state=RunState.DONE, check_of=None).order_by("-pk")
    testbeds = Testbed.objects.values_list("pk", flat=True)
    newest: list[QuerySet[Run, int]] = [
        done.filter(testbed=key).values_list("pk", flat=True)[:RUNS] for key in testbeds
    ]
    if not newest:
        return []
    keys = sorted(newest[0].union(*newest[1:], all=True), reverse=True)
    runs = Run.objects.select_related("testbed", "plan").prefetch_related("variants").in_bulk(keys)
    shown = list(dict.fromkeys(runs[key].testbed_id for key in keys))[:TESTBEDS]
    return [runs[key] for key in keys if runs[key].testbed_id in shown]


def _choices(run: Run, kept: dict[tuple[int, str], Summary], pairs: Sequence[PairVerdicts]) -> Iterable[_Choice]:
    """Return the results of a run that may stand for their topics, the best choice first: the worst verdict, and of
    equal ones the largest change.
    """
    judged = [(pair, verdict) for pair in pairs for verdict in pair.tests]
    for pair, verdict in sorted(judged, key=lambda one: (_WORST_FIRST[one[1].verdict], -_size(one[1]))):
        test = verdict.test
        if summary := kept.get((pair.b.pk, test)) or kept.get((pair.a.pk, test)):
            yield _Choice(run, summary, pair.b.name, pair.a.name, verdict)
    if not judged:
        alone = {summary.test: summary for summary in kept.values()}
        for test in names.in_order(alone):
            yield _Choice(run, alone[test], alone[test].series.rsplit("/", 1)[-1], "", None)


def _size(verdict: TestVerdict) -> float:
    return abs(verdict.change.percent) if verdict.change else 0.0


def _histories(lines: Iterable[_Line]) -> dict[_Line, list[float]]:
    """Return the means of the newest runs of each line, the oldest first: one query."""
    found: dict[_Line, list[float]] = {line: [] for line in lines}
    queries = [
        comparable(Summary.objects.filter(test=line.test, series=line.series))
        .order_by("-run_id")
        .values_list("run_id", "test", "series", "mean")[:POINTS]
        for line in found
    ]
    if queries:
        for _, test, series, mean in sorted(queries[0].union(*queries[1:], all=True)):
            found[_Line(test, series)].append(mean)
    return found


def _cell(choice: _Choice, lines: dict[_Line, list[float]]) -> Cell:
    summary = choice.summary
    scale = scale_for(summary.unit, summary.mean)
    return Cell(
        choice.run,
        summary.test,
        choice.variant,
        choice.baseline,
        choice.verdict,
        summary.series,
        f"{scale.text(summary.mean)} {scale.unit}",
        lines[_Line(summary.test, summary.series)],
    )
