# SPDX-License-Identifier: BSD-2-Clause
"""The state of testbeds: leases, success rate, noise and drift."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from django.utils import timezone

from perfweb.figures.timelines import MOST_SERIES, Change, changes_over_runs
from perfweb.lab.models import HealthCheck, Lease, Outage, Testbed
from perfweb.runs.models import FINAL_STATES, Run, RunState, Summary, Variant
from perfweb.verdicts import names

LOOKED_AT = 10
"""Number of newest finished runs from which health is computed."""

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


@dataclass(frozen=True)
class Health:
    """The state of a testbed in words; `good` is False if it needs attention."""

    testbed: Testbed
    lease: Lease | None
    runs: list[Run]
    outages: list[Outage] = field(default_factory=list)
    check: HealthCheck | None = None

    @property
    def failed(self) -> int:
        return sum(run.state in {RunState.FAILED, RunState.INTERRUPTED} for run in self.runs)

    @property
    def expired(self) -> bool:
        """Whether the lease has expired."""
        return self.lease is not None and self.lease.expires < timezone.now()

    @property
    def problem(self) -> str:
        """The reason why it is out of service."""
        return self.lease.problem if self.lease else ""

    @property
    def good(self) -> bool:
        unfit = self.check is not None and self.check.problems
        return not (self.expired or self.problem or self.failed or self.outages or unfit)

    @property
    def words(self) -> str:
        held = "free" if self.testbed.inventory else "imported results only"
        if self.problem and self.lease:
            held = f"out of service, {self.lease.holder} left it unclean"
        elif self.lease:
            held = f"held by {self.lease.holder}" + (", which does not respond" if self.expired else "")
        held = "; ".join([held, *(f"in {outage.kind}" for outage in self.outages)])
        if self.check and self.check.problems:
            held += "; unfit at the last check"
        return f"{held}; {self.failed} of the last {len(self.runs)} runs failed" if self.failed else held


def health(testbeds: Sequence[Testbed]) -> list[Health]:
    """Read leases, outages, last health checks and latest runs of testbeds: four queries for any number of testbeds."""
    if not testbeds:
        return []
    leases = {lease.testbed_id: lease for lease in Lease.objects.filter(released__isnull=True, testbed__in=testbeds)}
    outages: dict[int, list[Outage]] = {testbed.pk: [] for testbed in testbeds}
    for outage in Outage.objects.filter(ended__isnull=True, testbed__in=testbeds):
        outages[outage.testbed_id].append(outage)
    looked = HealthCheck.objects.filter(testbed__in=testbeds).order_by("testbed_id", "-at").distinct("testbed_id")
    checks = {check.testbed_id: check for check in looked}
    newest = [
        Run.objects.filter(testbed=testbed, state__in=FINAL_STATES).order_by("-number")[:LOOKED_AT]
        for testbed in testbeds
    ]
    runs: dict[int, list[Run]] = {testbed.pk: [] for testbed in testbeds}
    for run in newest[0].union(*newest[1:], all=True):
        runs[run.testbed_id].append(run)
    return [
        Health(testbed, leases.get(testbed.pk), runs[testbed.pk], outages[testbed.pk], checks.get(testbed.pk))
        for testbed in testbeds
    ]


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
