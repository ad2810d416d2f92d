# SPDX-License-Identifier: BSD-2-Clause
"""Runs that lost their worker continue by themselves, but not at a step that has cost a run two workers.

A worker dies with its machine, and the run may be the cause: a boot that crashes the host of the worker, or a plan that
needs more memory than there is. So each loss is stored with the run's step. A boot that was lost twice is skipped: its
missing measurements count as failed, and the run goes on with the next boot. A run that was lost twice at another step
stays interrupted.
"""

from collections import Counter

from perfweb.lab.models import Lease
from perfweb.measuring import record
from perfweb.measuring.planner import plan_boots
from perfweb.measuring.raw import RawMeasurement
from perfweb.runs import services, states
from perfweb.runs.models import Boot, BootState, Loss, Measurement, MeasurementState, Run
from perfweb.runs.planfile import read_plan

MOST = 2
"""Losses at one step after which the step is not tried again."""


def note(run: Run, lease: Lease) -> str:
    """Stores the step of the run when the worker of its lease died; returns it as text."""
    boot = Boot.objects.filter(run=run, state__in=[BootState.BOOTING, BootState.UP]).last()
    step = _step(boot.position) if boot else run.state
    Loss.objects.create(run=run, lease=lease, step=step)
    times = _times(run, step)
    return f"the worker gave no sign of life at {step}" + (f", {times} times now" if times > 1 else "")


def go_on(run: Run, lease: Lease) -> None:
    """Queues the run that lost the worker of `lease` again, once the testbed is clean, unless a user decided otherwise.

    The caller releases the lease in the same transaction.
    """
    run = services.get(run.number, lock=True)
    loss = Loss.objects.filter(lease=lease).first()
    if loss is None or run.state != states.S.INTERRUPTED:
        return
    if run.cancel_requested:
        states.cancel(run.number, f"cancelled; {run.reason}")
        return
    boot = Boot.objects.filter(run=run, state=BootState.INTERRUPTED).order_by("pk").last()
    if _times(run, loss.step) < MOST:
        services.resume(run.number)
    elif boot is not None and loss.step == _step(boot.position):
        _mark(run, boot)
        services.resume(run.number)


def given_up(run: Run) -> set[int]:
    """Returns positions of the boots that are not tried again."""
    lost = Counter(run.losses.values_list("step", flat=True))
    positions = set(Boot.objects.filter(run=run).values_list("position", flat=True))
    return {position for position in positions if lost[_step(position)] >= MOST}


def _mark(run: Run, boot: Boot) -> None:
    """Marks all missing measurements of a boot as failed, so that they are neither forgotten nor measured."""
    planned = plan_boots(read_plan(run.plan.text), run.seed)[boot.position]
    good = Measurement.objects.filter(
        boot__run=run, boot__position=boot.position, state=MeasurementState.OK
    ).values_list("test", flat=True)
    for test in {measurement.test.name for measurement in planned.measurements} - set(good):
        reason = f"given up: its boot has cost {MOST} workers"
        record.measurement(RawMeasurement(boot.pk, test, 0, [], {}, reason=reason))


def _step(position: int) -> str:
    return f"boot {position}"


def _times(run: Run, step: str) -> int:
    return Loss.objects.filter(run=run, step=step).count()
