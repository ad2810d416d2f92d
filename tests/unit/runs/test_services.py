# SPDX-License-Identifier: BSD-2-Clause
"""Submitting, cancelling, resuming, freeing."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from perfweb.lab import services as lab
from perfweb.lab.models import Lease, Testbed
from perfweb.lab.origins import Origin
from perfweb.runs import services, states
from perfweb.runs.models import Plan, Run, RunState
from perfweb.runs.planfile import PlanError
from perfweb.runs.services import RunError
from tests.factories import create_queued_run, create_testbed

pytestmark = pytest.mark.django_db

PLAN = """\
name: two
baseline: old
variants:
  - {name: old, target: stack, tunables: {net.isr.dispatch: deferred}}
  - {name: new, target: stack, build: [-Dbuildtype=debug]}
tests: [tcp.rr/host-host/ipv4]
"""


def test_submitted_run_has_its_variants_and_history() -> None:
    create_testbed("bench")
    run = services.submit(PLAN, "bench", requested_by="ann")
    assert (run.state, run.requested_by, run.plan.text) == (RunState.QUEUED, "ann", PLAN)
    old, new = run.variants.all()
    assert (old.name, old.baseline, old.tunables) == ("old", True, {"net.isr.dispatch": "deferred"})
    assert (new.name, new.baseline, new.build_options) == ("new", False, ["-Dbuildtype=debug"])
    assert list(run.transitions.values_list("to_state", flat=True)) == ["queued"]


BOOTED = """\
name: booted
baseline: a
variants:
  - {name: a, target: linux, tunables: {boot.command_line: WORDS}}
tests: [tcp.rr/host-host/ipv4]
"""


def test_words_for_the_command_line_are_allowed_by_the_testbed() -> None:
    testbed = create_testbed("bench")
    services.submit(BOOTED.replace("WORDS", "mitigations=off"), "bench")
    with pytest.raises(RunError, match=r"testbed bench does not allow .* 'debug-x' is not allowed"):
        services.submit(BOOTED.replace("WORDS", "debug-x=1"), "bench")
    testbed.command_line_words = ["debug_x"]
    testbed.save()
    services.submit(BOOTED.replace("WORDS", "debug-x=1"), "bench")
    with pytest.raises(RunError, match="'mitigations' is not allowed"):
        services.submit(BOOTED.replace("WORDS", "mitigations=off"), "bench")


def test_same_text_is_the_same_plan() -> None:
    create_testbed("bench")
    assert services.submit(PLAN, "bench").plan == services.submit(PLAN, "bench").plan
    assert services.submit(PLAN + "# other\n", "bench").plan != Plan.objects.first()


def test_bad_plan_or_testbed_makes_nothing() -> None:
    create_testbed("bench")
    with pytest.raises(PlanError, match="line 1"):
        services.submit("name: [", "bench")
    with pytest.raises(RunError, match="registered: bench"):
        services.submit(PLAN, "bank")
    assert not Plan.objects.exists()
    assert not Run.objects.exists()


def test_what_is_simulated_and_what_is_measured_have_testbeds_of_their_own() -> None:
    simulated = PLAN.replace("target: stack", "target: sim").replace("tcp.rr", "simulated.tcp.2")
    create_testbed("bench")
    with pytest.raises(RunError, match=r"testbed bench measures, .* testbeds that simulate: none; use manage.py"):
        services.submit(simulated, "bench")
    create_testbed("sim", origin=Origin.SIMULATED)
    with pytest.raises(RunError, match=r"testbed sim simulates, .*; testbeds that measure: bench$"):
        services.submit(PLAN, "sim")
    run = services.submit(simulated, "sim")
    assert {variant.target for variant in run.variants.all()} == {"sim"}
    assert run.variants.all()[0].build_options == ["-Dsim=true"]


def test_patch_needs_sources() -> None:
    create_testbed("bench")
    with pytest.raises(RunError, match="variant old is built from the source “patch”; the run has none"):
        services.submit(PLAN.replace("old, target: stack", "old, target: stack, source: patch"), "bench")
    assert not Run.objects.exists()


def test_waiting_run_is_cancelled_at_once() -> None:
    run = services.cancel(create_queued_run().number, by="ann")
    assert (run.state, run.reason) == (RunState.CANCELLED, "cancelled by ann")


def test_active_run_is_requested_to_end() -> None:
    run = states.lease(create_queued_run().number)
    run = services.cancel(run.number)
    assert (run.state, run.cancel_requested) == (RunState.LEASED, True)


@pytest.mark.parametrize("state", [RunState.DONE, RunState.FAILED, RunState.CANCELLED])
def test_run_that_is_over_cannot_be_cancelled(state: RunState) -> None:
    with pytest.raises(RunError, match=f"is {state} already"):
        services.cancel(create_queued_run(state=state).number)


@pytest.mark.parametrize("state", RunState)
def test_only_paused_interrupted_and_failed_runs_are_resumed(state: RunState) -> None:
    run = create_queued_run(state=state)
    if state in {RunState.PAUSED, RunState.INTERRUPTED, RunState.FAILED}:
        assert services.resume(run.number).state == RunState.QUEUED
    else:
        with pytest.raises(RunError, match="only a paused, interrupted or failed run"):
            services.resume(run.number)


def test_a_testbed_is_freed_once_its_worker_gives_no_sign_of_life() -> None:
    run = create_queued_run()
    lease = states.lease(run.number).lease
    assert lease is not None
    with pytest.raises(CommandError, match=r"demo held by run .*, whose worker lives: cancel the run"):
        call_command("free", "demo")
    Lease.objects.update(expires=timezone.now() - timedelta(seconds=1))
    call_command("free", "demo")
    run.refresh_from_db()
    assert run.state == RunState.INTERRUPTED
    assert lab.renew(lease.pk) is None
    assert states.lease(create_queued_run().number).state == RunState.LEASED


def test_a_testbed_that_could_not_be_restored_is_freed_at_once() -> None:
    run = create_queued_run()
    states.lease(run.number)
    states.restore(run.number)
    states.fail(run.number, "no dut", "no dut")
    call_command("free", "demo")
    assert states.lease(create_queued_run().number).state == RunState.LEASED
    run.refresh_from_db()
    assert run.state == RunState.FAILED


def test_oldest_run_of_each_free_testbed_is_dispatched(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, free = create_testbed("busy"), create_testbed("free")
    states.lease(create_queued_run(busy).number)
    create_queued_run(busy)
    first = create_queued_run(free)
    create_queued_run(free)
    enqueued: list[Run] = []
    monkeypatch.setattr(services, "enqueue", enqueued.append)
    services.dispatch()
    assert enqueued == [first]


def test_a_lab_gets_only_runs_of_its_own_testbeds(monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = create_queued_run(create_testbed("here")), create_queued_run(create_testbed("there"))
    Testbed.objects.filter(name="there").update(lab="rack")
    enqueued: list[Run] = []
    monkeypatch.setattr(services, "enqueue", enqueued.append)
    services.dispatch("rack")
    services.dispatch("")
    assert enqueued == [there, here]
    services.dispatch()
    assert sorted(run.number for run in enqueued[2:]) == [here.number, there.number]


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (["submit", "nothing-like-this"], "shipped plans: a-a-b, demo, demo-ipv6, dispatch-2005, "),
        (["submit", "demo", "--set", "variants=2"], "--set variants=2 is none of boots, samples"),
        (["submit", "demo", "--set", "boots=99"], "boots is '99'; allowed: a whole number from 1 to 50"),
        (["submit", "demo", "--testbed", "moon"], "there is no testbed 'moon'"),
        (["free", "moon"], "no run holds a testbed 'moon'"),
        (["cancel", "4711"], "there is no run 4711"),
        (["resume", "4711"], "there is no run 4711"),
        (["register_testbed", "moon", "--inventory", "/nowhere.yml"], "there is no such inventory"),
    ],
)
def test_errors_of_commands_state_what_to_do(command: list[str], problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        call_command(*command)
