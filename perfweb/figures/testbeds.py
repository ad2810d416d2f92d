# SPDX-License-Identifier: BSD-2-Clause
"""Noise and baseline of a testbed over its latest runs."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from perfweb.figures.timelines import MOST_SERIES, Change, changes_over_runs
from perfweb.lab.models import Testbed
from perfweb.runs.models import FINAL_STATES, Run, Summary, Variant
from perfweb.verdicts import names

FOLLOWED = 50
"""Number of newest finished runs over which noise and the baseline are shown."""


@dataclass(frozen=True)
class TestNoise:
    """The scatter of a test's samples within a variant: median and max relative deviation in percent."""

    test: str
    median: float
    max: float
    runs: int


@dataclass(frozen=True)
class History:
    """Noise and baseline over the latest runs, by test and run, and changes of the hosts.

    `deviations` are the relative deviations of the variants' samples, in percent. `drift` is the baseline's mean in
    percent of its median over these runs, of each test and plan.
    """

    runs: list[int]
    deviations: dict[str, dict[int, list[float]]]
    drift: dict[str, dict[int, float]]
    changes: list[Change]

    @property
    def noise(self) -> list[TestNoise]:
        found = ((test, [one for of_run in runs.values() for one in of_run]) for test, runs in self.deviations.items())
        return [
            TestNoise(test, statistics.median(every), max(every), len(self.deviations[test])) for test, every in found
        ]

    @property
    def noise_by_run(self) -> dict[str, dict[int, float]]:
        """The median over the variants, for as many tests as can be distinguished."""
        shown = list(self.deviations.items())[:MOST_SERIES]
        return {test: {run: statistics.median(values) for run, values in runs.items()} for test, runs in shown}

    @property
    def letters(self) -> dict[int, str]:
        return {change.run: change.letter for change in self.changes}


def history(testbed: Testbed) -> History:
    """Read noise and the baseline over the latest runs: four queries at most."""
    over = Run.objects.filter(testbed=testbed, state__in=FINAL_STATES).order_by("-number")
    numbers = list(over.values_list("pk", flat=True)[:FOLLOWED])
    # Not joined: for a join PostgreSQL would read all variants in the database.
    baselines = set(Variant.objects.filter(run__in=numbers, baseline=True).order_by().values_list("pk", flat=True))
    columns = ("run", "variant", "test", "series", "revision", "environment", "mean", "deviation")
    found = list(Summary.objects.filter(run__in=numbers).exclude(mean=0).order_by().only(*columns))
    deviations: dict[str, dict[int, list[float]]] = {}
    levels: dict[str, dict[int, float]] = {}
    for summary in found:
        if (relative := summary.relative_deviation) is not None:
            deviations.setdefault(summary.test, {}).setdefault(summary.run_id, []).append(relative)
        if summary.variant_id in baselines:
            plan = summary.series.split("/")[1]
            levels.setdefault(f"{summary.test}, {plan}", {})[summary.run_id] = summary.mean
    often = sorted(levels, key=lambda name: (-len(levels[name]), name))[:MOST_SERIES]
    medians = {name: statistics.median(levels[name].values()) for name in often}
    drift = {name: {run: 100 * mean / medians[name] for run, mean in levels[name].items()} for name in sorted(often)}
    ordered = {test: deviations[test] for test in names.in_order(deviations)}
    return History(sorted(numbers), ordered, drift, changes_over_runs(found))
