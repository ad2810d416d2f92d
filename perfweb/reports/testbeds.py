# SPDX-License-Identifier: BSD-2-Clause
"""How testbeds are: who holds them, whether their runs end well, and how noisy they are."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import timezone

from perfweb.lab.models import Lease, Testbed
from perfweb.reports import names
from perfweb.runs.models import FINAL_STATES, Run, RunState, Summary

LOOKED_AT = 10
"""Runs that health and noise are taken from, the newest that are over."""


@dataclass(frozen=True)
class TestNoise:
    """How much samples of a test scatter within a variant: median and greatest relative deviation in percent."""

    test: str
    median: float
    greatest: float
    runs: int


@dataclass(frozen=True)
class Health:
    """The state of a testbed in words; `good` is False when somebody should look at it."""

    testbed: Testbed
    lease: Lease | None
    runs: list[Run]

    @property
    def failed(self) -> int:
        return sum(run.state in {RunState.FAILED, RunState.INTERRUPTED} for run in self.runs)

    @property
    def silent(self) -> bool:
        """Whether the holder of the lease has given no sign of life in time."""
        return self.lease is not None and self.lease.expires < timezone.now()

    @property
    def good(self) -> bool:
        return not self.silent and not self.failed

    @property
    def words(self) -> str:
        held = "free"
        if self.lease:
            held = f"held by {self.lease.holder}" + (", which is silent" if self.silent else "")
        return f"{held}; {self.failed} of the last {len(self.runs)} runs failed" if self.failed else held


def health(testbeds: Sequence[Testbed]) -> list[Health]:
    """Read the leases and the latest runs of testbeds: two queries, however many testbeds."""
    if not testbeds:
        return []
    leases = {lease.testbed_id: lease for lease in Lease.objects.filter(released__isnull=True, testbed__in=testbeds)}
    newest = [
        Run.objects.filter(testbed=testbed, state__in=FINAL_STATES).order_by("-number")[:LOOKED_AT]
        for testbed in testbeds
    ]
    runs: dict[int, list[Run]] = {testbed.pk: [] for testbed in testbeds}
    for run in newest[0].union(*newest[1:], all=True):
        runs[run.testbed_id].append(run)
    return [Health(testbed, leases.get(testbed.pk), runs[testbed.pk]) for testbed in testbeds]


def noise(runs: list[Run]) -> list[TestNoise]:
    """Tell how noisy each test was in some runs: one query."""
    deviations: dict[str, list[tuple[float, int]]] = {}
    found = Summary.objects.filter(run__in=[run.pk for run in runs]).exclude(mean=0)
    for test, run, mean, deviation in found.values_list("test", "run_id", "mean", "deviation"):
        if deviation is not None:
            deviations.setdefault(test, []).append((100 * deviation / abs(mean), run))
    return [
        TestNoise(
            test,
            statistics.median(percent for percent, _ in deviations[test]),
            max(percent for percent, _ in deviations[test]),
            len({run for _, run in deviations[test]}),
        )
        for test in names.in_order(deviations)
    ]
