# SPDX-License-Identifier: BSD-2-Clause
"""Runs that lost their worker go on by themselves; but what has cost a run two workers is not tried a third time.

A worker dies with its machine, and what a run does may be what kills it: a boot that brings down the host on which it
and the worker are, a plan that needs more memory than there is.  So each loss is remembered with the step that the run
was at.  A boot that was lost twice is marked: its missing measurements are failed ones, and the run goes on with the
next boot.  A run that was lost twice at another step stays interrupted.
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
"""Losses at one step after which it is not tried again."""


def note(run: Run, lease: Lease) -> str:
    """Remembers what the run was at when the worker of its lease died; returns it in words."""
    boot = Boot.objects.filter(run=run, state__in=[BootState.BOOTING, BootState.UP]).last()
    step = _step(boot.position) if boot else run.state
    Loss.objects.create(run=run, lease=lease, step=step)
    times = _times(run, step)
    return f"the worker gave no sign of life at {step}" + (f", {times} times now" if times > 1 else "")


def go_on(run: Run, lease: Lease) -> None:
    """Once the testbed is clean: queues the run that lost the worker of `lease` again, unless a user decides otherwise.

    Call it in one transaction with giving the lease back.
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
    """Positions of the boots that are not tried again."""
    lost = Counter(run.losses.values_list("step", flat=True))
    positions = set(Boot.objects.filter(run=run).values_list("position", flat=True))
    return {position for position in positions if lost[_step(position)] >= MOST}


def _mark(run: Run, boot: Boot) -> None:
    """Has all that is missing of a boot failed, so that it is neither forgotten nor measured."""
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
