# SPDX-License-Identifier: BSD-2-Clause
"""A run that loses its worker continues by itself, but not at a step that costs one worker after the other."""

from datetime import timedelta

import pytest
from django.utils import timezone

from perfweb.lab.models import Lease
from perfweb.measuring import record
from perfweb.measuring.planner import plan_boots
from perfweb.runs import services, states
from perfweb.runs.invariants import violations
from perfweb.runs.models import Boot, BootState, Measurement, Run, RunState
from perfweb.runs.planfile import read_plan
from perfweb.transitions import IllegalTransitionError
from runners import recovery, worker_losses
from runners.ansible.plays import Plays
from tests.factories import create_testbed

pytestmark = pytest.mark.django_db

PLAN = """\
name: two
baseline: old
variants: [{name: old, target: linux}, {name: new, target: linux}]
tests: [tcp.rr/host-host/ipv4, udp.rr/host-host/ipv4]
boots: 1
samples: 1
gates: off
"""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """A queued run on a testbed that can always be restored, because there are no hosts behind it."""
    monkeypatch.setattr(Plays, "restore", lambda _: None)
    create_testbed("bench")
    return services.submit(PLAN, "bench", seed=1)


def die(run: Run) -> None:
    """The worker's heartbeat stops, and beat notices."""
    Lease.objects.filter(released=None).update(expires=timezone.now() - timedelta(seconds=1))
    recovery.recover()
    run.refresh_from_db()
    assert violations() == []


def boot(run: Run, position: int) -> Boot:
    """The worker starts a boot, at any position."""
    planned = plan_boots(read_plan(PLAN), run.seed)[position]
    return record.boot_started(run, run.variants.get(name=planned.variant), planned)


STEPS = (states.lease, states.prepare, states.build, states.start)


def begin(run: Run) -> None:
    for step in STEPS:
        step(run.number)


def test_run_goes_on_when_it_has_lost_its_worker(run: Run) -> None:
    begin(run)
    boot(run, 0)
    die(run)
    assert run.state == RunState.QUEUED
    assert run.losses.get().step == "boot 0"
    assert Boot.objects.get().state == BootState.INTERRUPTED
    assert worker_losses.given_up(run) == set()
    begin(run)


@pytest.mark.parametrize("steps", range(1, len(STEPS) + 1))
def test_run_is_taken_again_and_can_be_resumed_whatever_step_cost_its_worker(run: Run, steps: int) -> None:
    """Also if the worker dies directly after it has taken the run."""
    for _ in range(worker_losses.MOST):
        assert run.state == RunState.QUEUED
        for step in STEPS[:steps]:
            step(run.number)
        die(run)
    assert run.state == RunState.INTERRUPTED
    following = services.submit(PLAN, "bench", seed=2)
    states.lease(following.number)
    services.cancel(following.number)
    assert services.resume(run.number).state == RunState.QUEUED


def test_boot_that_costs_two_workers_is_marked_and_the_run_goes_on_without_it(run: Run) -> None:
    for _ in range(worker_losses.MOST):
        begin(run)
        boot(run, 0)
        die(run)
    assert run.state == RunState.QUEUED
    assert worker_losses.given_up(run) == {0}
    marked = Measurement.objects.filter(boot__run=run)
    assert {measurement.test for measurement in marked} == {"tcp.rr/host-host/ipv4", "udp.rr/host-host/ipv4"}
    assert {(measurement.state, measurement.reason) for measurement in marked} == {
        ("failed", "given up: its boot has cost 2 workers")
    }


def test_losses_at_different_boots_do_not_add_up(run: Run) -> None:
    for position in (0, 1):
        begin(run)
        boot(run, position)
        die(run)
    assert run.state == RunState.QUEUED
    assert worker_losses.given_up(run) == set()


def test_run_that_loses_two_workers_at_another_step_stays_interrupted(run: Run) -> None:
    for _ in range(worker_losses.MOST):
        states.lease(run.number)
        states.prepare(run.number)
        die(run)
    assert run.state == RunState.INTERRUPTED
    assert run.reason == "the worker gave no sign of life at preparing, 2 times now"
    die(run)
    assert run.state == RunState.INTERRUPTED
    services.resume(run.number)


def test_worker_that_wakes_up_too_late_does_not_touch_the_run_that_goes_on(run: Run) -> None:
    slept = states.lease(run.number).lease
    states.prepare(run.number)
    die(run)
    begin(run)
    with states.held_by(slept):
        for change in (states.restore, states.interrupt):
            with pytest.raises(IllegalTransitionError, match="another lease"):
                change(run.number, "woke up")
    run.refresh_from_db()
    assert run.state == RunState.RUNNING
    assert violations() == []


def test_run_that_was_to_be_cancelled_is_when_its_worker_is_lost(run: Run) -> None:
    begin(run)
    services.cancel(run.number)
    die(run)
    assert run.state == RunState.CANCELLED


def test_run_that_a_user_has_taken_out_does_not_go_on(run: Run) -> None:
    begin(run)
    Lease.objects.update(expires=timezone.now() - timedelta(seconds=1))
    services.free("bench")
    die(run)
    assert run.state == RunState.INTERRUPTED
    assert not run.losses.exists()


def test_clock_that_was_put_back_keeps_no_run_from_its_end(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    begin(run)
    true = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: true() - timedelta(hours=1))
    states.interrupt(run.number, "the worker gave no sign of life")
    run.refresh_from_db()
    assert run.ended == run.started
