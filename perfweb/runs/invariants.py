# SPDX-License-Identifier: BSD-2-Clause
"""Invariants of the database, after any crash: no result is lost or counted twice.

`violations` checks all and describes violations; tests call it after each fault, operators run `manage.py
check_invariants`. Invariants of a single row are constraints of its table and not checked here.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from django.db import connection, transaction
from django.db.models import Count, F, Q
from django.db.models.functions import Now

from perfweb.lab.models import Lease
from perfweb.runs.models import (
    FINAL_STATES,
    Boot,
    BootState,
    Measurement,
    MeasurementState,
    Run,
    RunState,
    RunTransition,
    Summary,
)
from perfweb.runs.states import ACTIVE, ALLOWED

Check = Callable[[], Iterator[str]]


def violations(checks: Sequence[Check] | None = None) -> list[str]:
    """Return the violations found by some checks or all, in words; in one snapshot, although runs continue
    meanwhile.
    """
    with transaction.atomic():
        if not connection.savepoint_ids:  # unless another caller has begun the transaction
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        return [problem for check in CHECKS if checks is None or check in checks for problem in check()]


def _leases_without_a_live_run() -> Iterator[str]:
    """A lease outlives its run only until recovery has cleaned the testbed: it has expired then, or has a problem."""
    held = Lease.objects.filter(released__isnull=True, problem="", expires__gte=Now())
    live = Run.objects.filter(state__in=ACTIVE, lease__isnull=False).values("lease")
    for lease in held.exclude(pk__in=live).select_related("testbed"):
        yield f"{lease} without a run that works there"


def _runs_without_their_lease() -> Iterator[str]:
    for run in Run.objects.filter(state__in=ACTIVE).filter(Q(lease=None) | Q(lease__released__isnull=False)):
        yield f"{run} is {run.state} and holds no testbed"


def _histories_with_gaps() -> Iterator[str]:
    """The history of a run has only allowed steps from its beginning to its state."""
    states: dict[int, str] = {}
    for step in RunTransition.objects.order_by("pk").iterator():
        before = states.get(step.run_id, "")
        allowed = ALLOWED[RunState(before)] if before else set(RunState)
        if step.from_state != before or step.to_state not in allowed:
            yield f"run {step.run_id} went from {before or 'nothing'} to {step}"
        states[step.run_id] = step.to_state
    for number, state in Run.objects.filter(imported=None).values_list("number", "state"):
        if states.get(number) != state:
            yield f"run {number} is {state}, and its history ends with {states.get(number, 'nothing')}"


def _ends_that_disagree() -> Iterator[str]:
    over = Q(state__in=FINAL_STATES)
    here = Run.objects.filter(imported=None)
    for run in here.filter(over & Q(ended=None) | ~over & Q(ended__isnull=False)):
        yield f"{run} is {run.state} and " + ("has ended" if run.ended else "has no end")


def _boots_without_a_live_run() -> Iterator[str]:
    for boot in Boot.objects.filter(state__in=[BootState.BOOTING, BootState.UP]).exclude(run__state__in=ACTIVE):
        yield f"{boot} is {boot.state}, and nothing works on its run"


def _measured_twice() -> Iterator[str]:
    """Attempts at a boot share its position; only one of them may count for a test."""
    good = Measurement.objects.filter(state=MeasurementState.OK).order_by()
    twice = good.values("boot__run", "boot__position", "test").annotate(times=Count("pk")).filter(times__gt=1)
    for row in twice:
        yield f"{row['test']} at boot {row['boot__position']} of run {row['boot__run']} counts {row['times']} times"


def _attempts_that_disagree() -> Iterator[str]:
    """Attempts at a position are attempts at the same boot."""
    same = ("variant", "topology", "server", "sentinel")
    kinds = Boot.objects.order_by().values_list("run", "position", *same).distinct()
    for (number, position), times in Counter(row[:2] for row in kinds.iterator()).items():
        if times > 1:
            yield f"attempts at boot {position} of run {number} are not at the same"


def _good_measurements_without_samples() -> Iterator[str]:
    good = Measurement.objects.filter(state=MeasurementState.OK)
    counted = Q(samples__metric=F("metric"), samples__discarded=False, samples__void="")
    for measurement in good.annotate(n=Count("pk", filter=counted)).filter(n=0).select_related("boot"):
        yield f"{measurement} is good and has no sample that counts"


def _summaries_that_miscount() -> Iterator[str]:
    """A summary counts each counted sample once."""
    counted = Q(
        variant__boots__sentinel=False,
        variant__boots__measurements__state=MeasurementState.OK,
        variant__boots__measurements__test=F("test"),
        variant__boots__measurements__samples__metric=F("variant__boots__measurements__metric"),
        variant__boots__measurements__samples__discarded=False,
        variant__boots__measurements__samples__void="",
    )
    samples = Count("variant__boots__measurements__samples", filter=counted)
    over = Summary.objects.filter(run__state__in=FINAL_STATES).annotate(samples=samples)
    for summary in over.exclude(samples=F("n")).order_by("pk"):
        yield f"the summary {summary} counts {summary.n} samples, and there are {summary.samples}"


def _artefacts_that_changed() -> Iterator[str]:
    """The output of a tool does not change."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT run_id, name FROM runs_artefact"
            " WHERE size <> length(content) OR sha256 <> encode(sha256(content), 'hex') ORDER BY run_id, name"
        )
        for number, name in cursor.fetchall():
            yield f"{name} of run {number} has changed since it was stored"


CHECKS: tuple[Check, ...] = (
    _leases_without_a_live_run,
    _runs_without_their_lease,
    _histories_with_gaps,
    _ends_that_disagree,
    _boots_without_a_live_run,
    _measured_twice,
    _attempts_that_disagree,
    _good_measurements_without_samples,
    _summaries_that_miscount,
    _artefacts_that_changed,
)

CHEAP: tuple[Check, ...] = (
    _leases_without_a_live_run,
    _runs_without_their_lease,
    _ends_that_disagree,
    _boots_without_a_live_run,
)
"""Checks of runs, leases and boots only, for every few minutes: the others read the samples and all raw outputs."""
