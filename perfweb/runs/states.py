# SPDX-License-Identifier: BSD-2-Clause
"""The life of a run: one function per transition, and nothing else changes a run's state.

    queued → leased → preparing → building → running → restoring → done | failed | cancelled | interrupted | paused

A run that holds a testbed always passes `restoring` before it ends, so that no end leaves the lab half configured. The
exception is a run whose worker died: recovery (runners.recovery) interrupts it, and its lease stays until the lab has
been restored. An end after `restoring` releases the lease, unless the lab could not be restored: then recovery
continues with that, too. An interrupted or failed run can be queued again and keeps its results. A run for which its
controller has no disk space passes `restoring` and is paused; recovery queues it again when there is space. A leased
run whose testbed is found unfit has changed nothing and is queued again at once.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import InterfaceError, OperationalError, transaction
from django.utils import timezone

from perfweb.faults import services as faults
from perfweb.lab import services as lab
from perfweb.lab.models import Lease
from perfweb.plaintext import plain
from perfweb.runs import calibration, progress, queue, summaries
from perfweb.runs.models import ACTIVE_STATES, Boot, BootState, Run, RunState, RunTransition
from perfweb.transitions import IllegalTransitionError, change

log = logging.getLogger(__name__)

S = RunState
ACTIVE = ACTIVE_STATES

SUMMARISE = faults.Task("summarise", "its pages compute from the samples; the log has the error: report it as a bug")
CALIBRATE = faults.Task("calibrate", "its testbed shows an older one: manage.py summarise NUMBER tries it again")

_HOLDER: ContextVar[Lease | None] = ContextVar("holder", default=None)

ALLOWED: dict[RunState, frozenset[RunState]] = {
    S.QUEUED: frozenset({S.LEASED, S.CANCELLED}),
    S.LEASED: frozenset({S.QUEUED, S.PREPARING, S.RESTORING, S.INTERRUPTED}),
    S.PREPARING: frozenset({S.BUILDING, S.RESTORING, S.INTERRUPTED}),
    S.BUILDING: frozenset({S.RUNNING, S.RESTORING, S.INTERRUPTED}),
    S.RUNNING: frozenset({S.RESTORING, S.INTERRUPTED}),
    S.RESTORING: frozenset({S.DONE, S.FAILED, S.CANCELLED, S.INTERRUPTED, S.PAUSED}),
    S.PAUSED: frozenset({S.QUEUED, S.CANCELLED}),
    S.DONE: frozenset(),
    S.FAILED: frozenset({S.QUEUED}),
    S.CANCELLED: frozenset(),
    S.INTERRUPTED: frozenset({S.QUEUED, S.CANCELLED}),
}


@contextmanager
def held_by(lease: Lease | None) -> Iterator[None]:
    """A context whose changes need this lease; a run with another lease must not be changed.

    A worker that was suspended for longer than its lease, for example with its machine, continues in the middle.
    """
    before = _HOLDER.set(lease)
    try:
        yield
    finally:
        _HOLDER.reset(before)


class TestbedBusyError(Exception):
    """Another run holds the testbed, or it is out of service; the run stays queued."""


def lease(number: int, worker: str = "") -> Run:
    """queued → leased. Raises TestbedBusyError while the testbed is held, if another run is next, or while the sources
    of the run are packed.
    """

    def take(run: Run) -> None:
        run.lease = lab.acquire(run.testbed, f"run {run.number}", worker, run.requested_by)
        if run.lease is None:
            raise TestbedBusyError(f"testbed {run.testbed} is in use or out of service; run {run.number} stays queued")
        before = queue.first(run.testbed)
        if before is None:
            raise TestbedBusyError(f"run {run.number} stays queued until its sources are packed")
        if before != run:
            raise TestbedBusyError(f"{before} goes before run {run.number}, which stays queued")
        run.started = run.started or timezone.now()

    return _change(number, S.LEASED, "", take)


def prepare(number: int) -> Run:
    """leased → preparing."""
    return _change(number, S.PREPARING)


def build(number: int) -> Run:
    """preparing → building."""
    return _change(number, S.BUILDING)


def start(number: int) -> Run:
    """building → running."""
    return _change(number, S.RUNNING)


def restore(number: int, reason: str = "") -> Run:
    """From every active state → restoring; `reason` is the reason of an early end."""
    return _change(number, S.RESTORING, reason)


def finish(number: int, reason: str = "") -> Run:
    """restoring → done; `reason` may count failures."""
    return _change(number, S.DONE, reason, _end)


def fail(number: int, reason: str, unrestored: str = "") -> Run:
    """restoring → failed; `unrestored` is the reason the lab could not be restored, and keeps its testbed out of
    service.
    """

    def end(run: Run) -> None:
        if unrestored and run.lease is not None:
            lab.quarantine(run.lease, plain(unrestored))
        _end(run)

    return _change(number, S.FAILED, reason, end)


def pause(number: int, reason: str, unrestored: str = "") -> Run:
    """restoring → paused; `unrestored` as for `fail`."""

    def leave(run: Run) -> None:
        if unrestored and run.lease is not None:
            lab.quarantine(run.lease, plain(unrestored))
        _leave_testbed(run)

    return _change(number, S.PAUSED, reason, leave)


def cancel(number: int, reason: str) -> Run:
    """queued, paused, interrupted or restoring → cancelled."""
    return _change(number, S.CANCELLED, reason, _end)


def interrupt(number: int, reason: str) -> Run:
    """From every active state → interrupted; unless it comes from `restoring`, the lab still has to be restored."""
    return _change(number, S.INTERRUPTED, reason, _end)


def requeue(number: int, reason: str) -> Run:
    """paused, interrupted or failed → queued, for the missing results; or leased → queued, for an unfit testbed."""

    def again(run: Run) -> None:
        run.ended = None
        if run.state == S.LEASED and run.lease is not None:
            lab.release(run.lease)
        else:
            run.cancel_requested = False

    return _change(number, S.QUEUED, reason, again)


def created(run: Run) -> None:
    """Store the first row of the history of a new run."""
    RunTransition.objects.create(run=run, to_state=run.state)
    transaction.on_commit(lambda: progress.begin(run.number))
    transaction.on_commit(lambda: progress.publish(run.number, "state", state=run.state, reason=""))


def _end(run: Run) -> None:
    now = timezone.now()
    run.ended = max(now, run.started or now)  # a clock may have been put back meanwhile
    _summarise(run)
    transaction.on_commit(lambda: _calibrate(run), robust=True)  # which takes seconds
    _leave_testbed(run)


def _leave_testbed(run: Run) -> None:
    """Ends the interrupted boots, and releases a restored testbed."""
    Boot.objects.filter(run=run, state__in=[BootState.BOOTING, BootState.UP]).update(
        state=BootState.INTERRUPTED, error="its run ended first", ended=timezone.now()
    )
    if run.state == S.RESTORING and run.lease is not None and not run.lease.problem:
        lab.release(run.lease)


def _summarise(run: Run) -> None:
    """Summaries are derived from samples: a run whose samples cannot be summarised must end nevertheless."""
    try:
        with transaction.atomic():
            summaries.summarise([run.number])
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        faults.note(SUMMARISE, str(run), error)


def _calibrate(run: Run) -> None:
    faults.attempt(CALIBRATE, str(run), lambda: calibration.calibrate(run.number))


def _nothing(run: Run) -> None:
    pass


def _change(number: int, to: RunState, reason: str = "", effect: Callable[[Run], None] = _nothing) -> Run:
    """One step of the run, with `effect` on it while it has its old state."""
    reason = plain(reason)

    def before(run: Run) -> None:
        if _HOLDER.get() not in {None, run.lease}:
            raise IllegalTransitionError(f"run {number} has another lease than the one of who wants it to become {to}")
        effect(run)
        run.reason = reason

    def after(run: Run, old: RunState) -> None:
        RunTransition.objects.create(run=run, from_state=old, to_state=to, reason=reason)
        transaction.on_commit(lambda: log.info("run %d is %s%s", number, to.value, reason and f": {reason}"))
        transaction.on_commit(lambda: progress.publish(number, "state", state=to.value, reason=reason))

    return change(Run.objects.select_related("testbed", "lease", "plan"), number, to, ALLOWED, before, after)
