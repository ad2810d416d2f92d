# SPDX-License-Identifier: BSD-2-Clause
"""The tests of a topic over the newest runs: a column for each run, and every sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q

from perfweb.figures.lateral import of_each
from perfweb.figures.plots import Figure, history_figure
from perfweb.figures.timelines import MOST_SERIES, Change, changes_over_runs, comparable, real_unless_none, short_names
from perfweb.runs.catalogue import TESTS
from perfweb.runs.judging import SampleSet, sample_sets
from perfweb.runs.models import Direction, Import, Run, Summary
from perfweb.verdicts import names
from perfweb.verdicts.numbers import Scale, scale_for
from perfweb.verdicts.results import NOISY_PERCENT

IMPORTS = 100
"""Imports whose tests are listed, the newest."""

MOST_RUNS = 7
"""Runs of a test in a row: as many as fit a screen."""


@dataclass(frozen=True)
class Cell:
    """The result of a test on one variant in one run."""

    summary: Summary

    @property
    def noisy(self) -> bool:
        relative = self.summary.relative_deviation
        return relative is not None and relative >= NOISY_PERCENT


@dataclass(frozen=True)
class Column:
    """A run, its revision, and the letter of the changes on its hosts."""

    run: Run
    revision: str
    letter: str


@dataclass(frozen=True)
class History:
    """One test: its newest runs, the newest first, and a row for each series (testbed/plan/variant, abbreviated) with a
    cell for each run, None if it has no result.
    """

    test: str
    scale: Scale
    lower_is_better: bool
    columns: list[Column]
    rows: list[tuple[str, list[Cell | None]]]
    left_out: int
    figure: Figure


@dataclass(frozen=True)
class Topic:
    """All tests of a topic; `older` is the run before which there are more, None if there are none."""

    tests: list[History]
    changes: list[Change]
    older: int | None


def known_topics() -> dict[str, list[str]]:
    """Return the tests of the catalogue and those of the newest imports by topic: one query."""
    imported = Summary.objects.filter(run__in=Import.objects.newest_runs(IMPORTS))
    tests = imported.order_by().values_list("test", flat=True).distinct()
    return names.by_topic(names.in_order([*TESTS, *tests]))


def read_topic(tests: Sequence[str], before: int | None = None) -> Topic:
    """Read the newest runs of each of some tests, with a lower number than `before`: five queries at most."""
    newest = _newest_runs(tests, before)
    chosen = {test: sorted(runs)[-MOST_RUNS:] for test, runs in newest.items()}
    every = sorted({run for runs in chosen.values() for run in runs})
    runs = Run.objects.select_related("plan", "testbed").in_bulk(every)
    summaries = list(Summary.objects.filter(run__in=every, test__in=tests))
    where = Q(measurement__boot__run__in=every, measurement__test__in=tests)
    samples = {(variant, test): found for _, variant, test, found in sample_sets(where)}
    changes = changes_over_runs(summaries)
    letters = {change.run: change.letter for change in changes}
    revisions = {summary.run_id: summary.revision for summary in summaries}
    columns = {key: Column(run, revisions.get(key, ""), letters.get(key, "")) for key, run in runs.items()}
    measured = [
        [row for row in summaries if row.test == test and row.run_id in chosen[test]] for test in names.in_order(chosen)
    ]
    histories = [_history(rows, samples, [columns[run] for run in chosen[rows[0].test]]) for rows in measured]
    more = [chosen[test][0] for test, found in newest.items() if len(found) > MOST_RUNS]
    return Topic(histories, changes, max(more, default=None))


def _newest_runs(tests: Sequence[str], before: int | None) -> dict[str, list[int]]:
    """Return the newest runs of each test, and one more than are shown. Each test's runs are read from the end of its
    index.
    """
    chosen = Summary.objects.filter(run__lt=before) if before else Summary.objects.all()
    summaries = real_unless_none(comparable(chosen), Summary.objects.all())
    newest = of_each(
        [(test,) for test in tests],
        lambda test: (
            summaries.filter(test=test).order_by("-run_id").values_list("test", "run_id").distinct()[: MOST_RUNS + 1]
        ),
    )
    found: dict[str, list[int]] = {}
    for test, run in newest:
        found.setdefault(test, []).append(run)
    return found


def _history(
    summaries: Sequence[Summary], samples: Mapping[tuple[int, str], SampleSet], columns: Sequence[Column]
) -> History:
    """The history of one test; `columns` are its runs, the oldest first."""
    by_series: dict[str, dict[int, Summary]] = {}
    for summary in summaries:
        by_series.setdefault(summary.series, {})[summary.run_id] = summary
    # The series of the newest runs, in the order of their names.
    newest = sorted(by_series, key=lambda name: (-max(by_series[name]), name))
    shown = sorted(newest[:MOST_SERIES])
    scale = scale_for(summaries[0].unit, max(abs(summary.mean) for summary in summaries))
    labels = short_names(shown)
    runs = [column.run.pk for column in columns]
    lines = {}
    for name in shown:
        found = (by_series[name].get(run) for run in runs)
        sets = (samples.get((row.variant_id, row.test)) if row else None for row in found)
        lines[labels[name]] = [one.values if one else [] for one in sets]
    rows = [
        (labels[name], [Cell(row) if (row := by_series[name].get(run)) else None for run in reversed(runs)])
        for name in shown
    ]
    letters = {column.run.pk: column.letter for column in columns if column.letter}
    return History(
        summaries[0].test,
        scale,
        summaries[0].direction == Direction.LOWER,
        list(reversed(columns)),
        rows,
        len(by_series) - len(shown),
        history_figure(lines, runs, scale, letters),
    )
