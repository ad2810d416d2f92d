# SPDX-License-Identifier: BSD-2-Clause
"""The health of testbeds: leases, outages, checks, and the share of failed runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from django.db.models import Exists, Q
from django.utils import timezone

from perfweb.lab.models import HealthCheck, Lease, Outage, Testbed
from perfweb.runs.models import FINAL_STATES, Run, RunState

NEWEST_RUNS = 10
"""Number of newest finished runs from which health is computed."""


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
        unused = "holds samples" if self.testbed.sample else "imported results only"
        held = "free" if self.testbed.inventory else unused
        if self.problem and self.lease:
            held = f"out of service, {self.lease.holder} left it unclean"
        elif self.lease:
            held = f"held by {self.lease.holder}" + (", which does not respond" if self.expired else "")
        held = "; ".join([held, *(f"in {outage.kind}" for outage in self.outages)])
        if self.check and self.check.problems:
            held += "; unfit at the last check"
        return f"{held}; {self.failed} of the last {len(self.runs)} runs failed" if self.failed else held


def shown_testbeds() -> list[Testbed]:
    """Return the testbeds that an overview counts, no samples once another testbed has a finished run: one query."""
    real = Run.objects.filter(testbed__sample="", state=RunState.DONE)
    return list(Testbed.objects.filter(Q(sample="") | ~Exists(real)))


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
        Run.objects.filter(testbed=testbed, state__in=FINAL_STATES).order_by("-number")[:NEWEST_RUNS]
        for testbed in testbeds
    ]
    runs: dict[int, list[Run]] = {testbed.pk: [] for testbed in testbeds}
    for run in newest[0].union(*newest[1:], all=True):
        runs[run.testbed_id].append(run)
    return [
        Health(testbed, leases.get(testbed.pk), runs[testbed.pk], outages[testbed.pk], checks.get(testbed.pk))
        for testbed in testbeds
    ]
