# SPDX-License-Identifier: BSD-2-Clause
"""The order of queued runs on a testbed, and their estimated starts.

The order is priority, then the submitter with the shortest testbed time in the last day, over all testbeds, then age.
Testbed time is the time of leases, whatever the runs' results; a current lease counts until now.
"""

from __future__ import annotations

import statistics
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet, Sum, Value
from django.db.models.functions import Coalesce, Greatest
from django.utils import timezone

from perfweb.lab import outages
from perfweb.lab.models import Lease, Outage, Testbed
from perfweb.runs.models import Run, RunState, being_packed

FAIR = timedelta(days=1)
"""Period over which testbed time is compared."""

MEDIAN_OF, LOOKED_AT = 5, 500
"""Number of newest finished runs of one plan on one testbed whose median is the estimate; and the number of runs
searched for them.
"""


@dataclass(frozen=True)
class Place:
    """A queued run, and the estimated seconds until its start: 0 is at once, None is unknown; `out` if
    its testbed is out of service.
    """

    run: Run
    seconds: float | None
    out: bool

    @property
    def starts(self) -> datetime | None:
        """The estimated start, if it is not now."""
        return timezone.now() + timedelta(seconds=self.seconds) if self.seconds else None


def first(testbed: Testbed) -> Run | None:
    """The next run on a testbed whose sources are packed."""
    spent = machine_time(timezone.now())
    ready = _waiting().filter(testbed=testbed).exclude(being_packed())
    return min(ready, key=lambda run: _turn(run, spent), default=None)


def next_runs(lab: str | None = None) -> list[Run]:
    """The next run on each testbed, of one lab or of all, that is free."""
    wanted = Testbed.objects.filter(runs__state=RunState.QUEUED).exclude(outages.unavailable()).distinct()
    if lab is not None:
        wanted = wanted.filter(lab=lab)
    return [run for run in map(first, wanted) if run is not None]


def machine_time(now: datetime) -> dict[str, float]:
    """Seconds of testbed time of each submitter in the day before `now`."""
    since = now - FAIR
    held = Lease.objects.filter(Q(released__isnull=True) | Q(released__gt=since)).order_by()
    taken = Coalesce("released", Value(now)) - Greatest("taken", Value(since))
    return {
        account: max(time.total_seconds(), 0.0)  # a clock may have been put back meanwhile
        for account, time in held.values_list("account").annotate(time=Sum(taken)).values_list("account", "time")
    }


def forecast(testbed: Testbed | None = None) -> list[Place]:
    """The queue, by testbed and in order, with estimates: six queries for any length.

    Estimates come from runs of the same plan on the same testbed (`MEDIAN_OF`); after a run without any they are
    unknown. Later submissions, and runs that fail or are decided early, change them.
    """
    waiting = _waiting().select_related("plan", "testbed").order_by("testbed__name", "number")
    by_testbed: dict[int, list[Run]] = defaultdict(list)
    for run in waiting.filter(testbed=testbed) if testbed else waiting:
        by_testbed[run.testbed_id].append(run)
    if not by_testbed:
        return []
    now = timezone.now()
    active = dict(Run.objects.filter(lease__released__isnull=True, testbed__in=by_testbed).values_list("lease", "plan"))
    leases = {lease.testbed_id: lease for lease in Lease.objects.filter(released__isnull=True, testbed__in=by_testbed)}
    out = set(Outage.objects.filter(ended__isnull=True, testbed__in=by_testbed).values_list("testbed", flat=True))
    plans = {run.plan_id for runs in by_testbed.values() for run in runs} | set(active.values())
    expected = durations(plans, by_testbed)
    spent = machine_time(now)
    places: list[Place] = []
    for key, runs in by_testbed.items():
        free: float | None = None if key in out else 0.0
        if free is not None and (lease := leases.get(key)):
            seconds = None if lease.problem else expected.get((active.get(lease.pk, 0), key))
            free = max(1.0, seconds - (now - lease.taken).total_seconds()) if seconds is not None else None
        places += [Place(run, start, key in out) for run, start in _in_turn(runs, free, spent, expected)]
    return places


def durations(plans: Iterable[int], testbeds: Collection[int]) -> dict[tuple[int, int], float]:
    """Estimated seconds of runs, by the keys of plan and testbed: medians of the newest finished ones."""
    done = Run.objects.filter(state=RunState.DONE, plan__in=plans, testbed__in=testbeds, lease__released__isnull=False)
    newest = done.order_by("-number").values_list("plan", "testbed", "lease__taken", "lease__released")[:LOOKED_AT]
    found: dict[tuple[int, int], list[float]] = defaultdict(list)
    for plan, testbed, taken, released in newest:
        if released is not None:  # the query guarantees it
            found[plan, testbed].append((released - taken).total_seconds())
    return {key: statistics.median(seconds[:MEDIAN_OF]) for key, seconds in found.items()}


def _in_turn(
    runs: Iterable[Run],
    free: float | None,
    spent: Mapping[str, float],
    expected: Mapping[tuple[int, int], float],
) -> Iterator[tuple[Run, float | None]]:
    """The runs of one testbed, which is free in that many seconds, in order, with their estimated starts."""
    spent = dict(spent)
    lines: dict[tuple[int, str], deque[Run]] = defaultdict(deque)
    for run in runs:
        lines[run.priority, run.requested_by].append(run)
    while lines:
        line = min(lines.values(), key=lambda line: _turn(line[0], spent))
        run = line.popleft()
        if not line:
            del lines[run.priority, run.requested_by]
        yield run, free
        seconds = expected.get((run.plan_id, run.testbed_id))
        spent[run.requested_by] = spent.get(run.requested_by, 0.0) + (seconds or 0.0)
        free = free + seconds if free is not None and seconds is not None else None


def _turn(run: Run, spent: Mapping[str, float]) -> tuple[int, float, int]:
    """Sorts runs by the rule."""
    return -run.priority, spent.get(run.requested_by, 0.0), run.number


def _waiting() -> QuerySet[Run]:
    return Run.objects.filter(state=RunState.QUEUED).order_by("number")
