# SPDX-License-Identifier: BSD-2-Clause
"""The state machine: every legal transition is in the history, and no illegal one is."""

from collections.abc import Callable

import pytest

from perfweb.lab import services as lab
from perfweb.lab.models import Lease
from perfweb.runs import states
from perfweb.runs.models import Run, RunState, RunTransition
from perfweb.transitions import IllegalTransitionError
from tests.factories import create_queued_run, create_testbed

pytestmark = pytest.mark.django_db

TRANSITIONS: dict[RunState, tuple[Callable[[int], Run], set[RunState]]] = {
    # to: (function, possible states before), written independently of the table in states.py
    RunState.LEASED: (states.lease, {RunState.QUEUED}),
    RunState.PREPARING: (states.prepare, {RunState.LEASED}),
    RunState.BUILDING: (states.build, {RunState.PREPARING}),
    RunState.RUNNING: (states.start, {RunState.BUILDING}),
    RunState.RESTORING: (
        lambda number: states.restore(number, "why"),
        {RunState.LEASED, RunState.PREPARING, RunState.BUILDING, RunState.RUNNING},
    ),
    RunState.DONE: (states.finish, {RunState.RESTORING}),
    RunState.FAILED: (lambda number: states.fail(number, "why"), {RunState.RESTORING}),
    RunState.CANCELLED: (
        lambda number: states.cancel(number, "why"),
        {RunState.QUEUED, RunState.PAUSED, RunState.INTERRUPTED, RunState.RESTORING},
    ),
    RunState.PAUSED: (lambda number: states.pause(number, "why"), {RunState.RESTORING}),
    RunState.INTERRUPTED: (lambda number: states.interrupt(number, "why"), set(states.ACTIVE)),
    RunState.QUEUED: (
        lambda number: states.requeue(number, "why"),
        {RunState.LEASED, RunState.PAUSED, RunState.INTERRUPTED, RunState.FAILED},
    ),
}
PAIRS = [(before, after) for before in RunState for after in RunState]


def run_in(state: RunState) -> Run:
    run = create_queued_run(state=state)
    if state in states.ACTIVE:
        run.lease = lab.acquire(run.testbed, str(run))
        run.save()
    return run


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=str)
def test_every_pair_of_states(before: RunState, after: RunState) -> None:
    run = run_in(before)
    go, allowed = TRANSITIONS[after]
    if before in allowed:
        assert go(run.number).state == after
        last = RunTransition.objects.filter(run=run).last()
        assert last is not None
        assert (last.from_state, last.to_state) == (before, after)
    else:
        with pytest.raises(IllegalTransitionError, match=f"is {before} and cannot become {after}"):
            go(run.number)
        assert RunTransition.objects.filter(run=run).count() == 1
    run.refresh_from_db()
    assert run.state == (after if before in allowed else before)


def test_a_whole_life_is_in_the_history() -> None:
    run = create_queued_run()
    for step in (states.lease, states.prepare, states.build, states.start, states.restore, states.finish):
        step(run.number)
    history = list(run.transitions.values_list("to_state", flat=True))
    assert history == ["queued", "leased", "preparing", "building", "running", "restoring", "done"]
    run.refresh_from_db()
    assert run.started is not None
    assert run.ended is not None
    assert run.ended >= run.started


def test_busy_testbed_leaves_the_run_queued() -> None:
    first, second = create_queued_run(), create_queued_run()
    states.lease(first.number)
    with pytest.raises(states.TestbedBusyError, match="stays queued"):
        states.lease(second.number)
    second.refresh_from_db()
    assert (second.state, second.lease, second.transitions.count()) == (RunState.QUEUED, None, 1)


@pytest.mark.parametrize("end", [states.finish, lambda number: states.fail(number, "why")])
def test_the_end_gives_the_testbed_back(end: Callable[[int], Run]) -> None:
    run = create_queued_run()
    states.lease(run.number)
    states.restore(run.number)
    end(run.number)
    assert not Lease.objects.filter(released__isnull=True).exists()
    states.lease(create_queued_run().number)


def test_a_testbed_that_could_not_be_restored_is_out_of_service() -> None:
    run = create_queued_run()
    states.lease(run.number)
    states.restore(run.number)
    run = states.fail(run.number, "no dut; not restored", "not restored")
    assert run.lease is not None
    assert (run.lease.problem, run.lease.released) == ("not restored", None)
    with pytest.raises(states.TestbedBusyError):
        states.lease(create_queued_run().number)


def test_a_run_that_was_interrupted_keeps_its_testbed_until_it_is_restored() -> None:
    run = create_queued_run()
    states.lease(run.number)
    states.prepare(run.number)
    states.interrupt(run.number, "the worker died")
    assert lab.acquire(create_testbed(), "somebody else") is None


def test_a_reason_is_storable_for_any_output_of_a_host() -> None:
    run = create_queued_run()
    states.lease(run.number)
    run = states.restore(run.number, "a\0b\udc80" + "x" * 10_000)
    assert run.reason.startswith("a?b?xxx")
    assert len(run.reason) == 4000


def test_requeued_run_forgets_its_end_and_that_it_was_to_be_cancelled() -> None:
    run = run_in(RunState.INTERRUPTED)
    Run.objects.filter(pk=run.pk).update(cancel_requested=True)
    run = states.requeue(run.number, "resumed")
    assert (run.ended, run.cancel_requested) == (None, False)
