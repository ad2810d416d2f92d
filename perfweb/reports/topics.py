# SPDX-License-Identifier: BSD-2-Clause
"""The tests of a topic over the newest runs: a column for each run, and every sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from perfweb.reports import names
from perfweb.reports.comparisons import SampleSet, sample_sets
from perfweb.reports.figures import Figure, history_figure
from perfweb.reports.numbers import Scale, scale_for
from perfweb.reports.results import NOISY_PERCENT
from perfweb.reports.timelines import MOST_SERIES, Change, changes_over_runs, short_names
from perfweb.runs.catalogue import TESTS
from perfweb.runs.models import Direction, Run, Summary

MOST_RUNS = 10
"""Runs that stand side by side."""


@dataclass(frozen=True)
class Cell:
    """What a test gave on one variant in one run."""

    summary: Summary

    @property
    def noisy(self) -> bool:
        relative = self.summary.relative_deviation
        return relative is not None and relative >= NOISY_PERCENT


@dataclass(frozen=True)
class History:
    """One test: a row for each series (testbed/plan/variant, in short) with a cell for each run, None where it has
    none.
    """

    test: str
    scale: Scale
    lower_is_better: bool
    rows: list[tuple[str, list[Cell | None]]]
    left_out: int
    figure: Figure


@dataclass(frozen=True)
class Column:
    """A run, what it built, and the letter of what had changed on its hosts."""

    run: Run
    revision: str
    letter: str


@dataclass(frozen=True)
class Topic:
    """All tests of a topic over some runs, the newest run first; `older` tells whether there are more."""

    columns: list[Column]
    tests: list[History]
    changes: list[Change]
    older: bool


def topics() -> dict[str, list[str]]:
    """Return the tests of the catalogue by topic."""
    found: dict[str, list[str]] = {}
    for test in TESTS:
        found.setdefault(names.topic(test), []).append(test)
    return found


def read_topic(tests: Sequence[str], before: int | None = None) -> Topic:
    """Read the newest runs of some tests, of those with a lower number than `before`: five queries at most."""
    numbers = _newest_runs(tests, before)
    chosen = sorted(numbers[:MOST_RUNS])
    runs = Run.objects.select_related("plan", "testbed").in_bulk(chosen)
    summaries = list(Summary.objects.filter(run__in=chosen, test__in=tests))
    samples = {
        (variant, test): found
        for _, variant, test, found in sample_sets(Q(measurement__boot__run__in=chosen, measurement__test__in=tests))
    }
    changes = changes_over_runs(summaries)
    letters = {change.run: change.letter for change in changes}
    revisions = {summary.run_id: summary.revision for summary in summaries}
    measured = names.in_order(summary.test for summary in summaries)
    return Topic(
        [Column(runs[run], revisions.get(run, ""), letters.get(run, "")) for run in reversed(chosen)],
        [_history([row for row in summaries if row.test == test], samples, chosen, letters) for test in measured],
        changes,
        len(numbers) > MOST_RUNS,
    )


def _newest_runs(tests: Sequence[str], before: int | None) -> list[int]:
    """The newest runs with any of the tests, newest first, and one more than can be shown. Each test's are read from
    the end of its index.
    """
    summaries = Summary.objects.filter(run__lt=before) if before else Summary.objects.all()
    newest = [
        summaries.filter(test=test).order_by("-run_id").values_list("run_id").distinct()[: MOST_RUNS + 1]
        for test in tests
    ]
    return sorted({run for (run,) in newest[0].union(*newest[1:])}, reverse=True)[: MOST_RUNS + 1]


def _history(
    summaries: Sequence[Summary],
    samples: dict[tuple[int, str], SampleSet],
    runs: Sequence[int],
    letters: dict[int, str],
) -> History:
    by_series: dict[str, dict[int, Summary]] = {}
    for summary in summaries:
        by_series.setdefault(summary.series, {})[summary.run_id] = summary
    # The series of the newest runs, in the order of their names.
    newest = sorted(by_series, key=lambda name: (-max(by_series[name]), name))
    shown = sorted(newest[:MOST_SERIES])
    scale = scale_for(summaries[0].unit, max(abs(summary.mean) for summary in summaries))
    labels = short_names(shown)
    lines = {}
    for name in shown:
        found = (by_series[name].get(run) for run in runs)
        sets = (samples.get((row.variant_id, row.test)) if row else None for row in found)
        lines[labels[name]] = [one.values if one else [] for one in sets]
    rows = [
        (labels[name], [Cell(row) if (row := by_series[name].get(run)) else None for run in reversed(runs)])
        for name in shown
    ]
    return History(
        summaries[0].test,
        scale,
        summaries[0].direction == Direction.LOWER,
        rows,
        len(by_series) - len(shown),
        history_figure(lines, runs, scale, letters),
    )
