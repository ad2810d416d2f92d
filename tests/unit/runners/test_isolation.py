# SPDX-License-Identifier: BSD-2-Clause
"""An exception of one boot, run, or testbed affects no other."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from perfweb.faults.models import Fault
from perfweb.lab.models import Lease
from perfweb.measuring import record, spool_replay
from perfweb.measuring.planner import plan_boots
from perfweb.runs import planfile, services, states, summaries
from perfweb.runs.invariants import violations
from perfweb.runs.models import Boot, BootState, Measurement, Run, RunState, RunTransition
from runners import tasks, worker_losses
from runners.ansible.plays import Plays
from runners.boots import Bench, run_boot
from runners.db_retry import DatabaseGoneError
from tests.factories import create_testbed

pytestmark = pytest.mark.django_db

PLAN = """\
name: one
baseline: old
variants: [{name: old, target: linux}]
tests: [tcp.rr/host-host/ipv4]
boots: 1
samples: 1
gates: off
"""
ERRORS = [RecursionError, MemoryError, KeyError, UnicodeError, OverflowError, AssertionError]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Three active runs on separate testbeds, whose worker died in the middle of a boot."""
    monkeypatch.setattr(Plays, "restore", lambda _: None)
    begun = []
    for name in ("first", "bad", "last"):
        create_testbed(name)
        run = services.submit(PLAN, name, seed=1)
        for step in (states.lease, states.prepare, states.build, states.start):
            step(run.number)
        record.boot_started(run, run.variants.get(), plan_boots(planfile.read_plan(PLAN), 1)[0])
        begun.append(run)
    Lease.objects.update(expires=timezone.now() - timedelta(seconds=1))
    return begun


def raising(true: Callable[..., object], concerns: Callable[..., bool]) -> Callable[..., object]:
    def function(*arguments: Any, **named: Any) -> object:
        if concerns(*arguments):
            raise RecursionError("planted")
        return true(*arguments, **named)

    return function


STEPS: dict[str, tuple[Any, str, Callable[..., bool]]] = {
    "interrupting it": (worker_losses, "note", lambda run, _: run.testbed.name == "bad"),
    "ending its boot": (record, "boot_ended", lambda boot, *_: boot.run.testbed.name == "bad"),
    "its spool": (spool_replay, "replay", lambda run: run.testbed.name == "bad"),
    "restoring its testbed": (Plays, "restore", lambda plays: plays.run_id.startswith("bad")),
    "queueing it again": (worker_losses, "go_on", lambda run, _: run.testbed.name == "bad"),
    "its summaries": (summaries, "summarise", lambda numbers: Run.objects.get(pk=numbers[0]).testbed.name == "bad"),
}


@pytest.mark.parametrize("step", STEPS)
def test_recovery_of_one_run_that_raises_leaves_the_others_alone(
    runs: list[Run], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, concerns = STEPS[step]
    with monkeypatch.context() as broken:
        broken.setattr(owner, name, raising(getattr(owner, name), concerns))
        tasks.recover()
    states_now = dict(Run.objects.values_list("testbed__name", "state"))
    assert states_now["first"] == states_now["last"] == RunState.QUEUED
    assert not Lease.objects.filter(released=None).exclude(testbed__name="bad").exists()
    fault = Fault.objects.get()
    assert "RecursionError" in fault.error
    assert fault.advice
    tasks.recover()
    assert not Lease.objects.filter(released=None).exists()
    assert violations() == []


def test_run_ends_although_its_samples_cannot_be_summarised(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summaries, "summarise", raising(summaries.summarise, lambda _: True))
    states.restore(runs[0].number)
    run = states.finish(runs[0].number)
    assert run.state == RunState.DONE
    assert Fault.objects.get().item == str(run)
    assert Boot.objects.get(run=run).state == BootState.INTERRUPTED
    assert RunTransition.objects.filter(run=run).last().to_state == RunState.DONE  # type: ignore[union-attr]


class Host:
    """Plays of one boot; `raised` is the exception that the host's response causes."""

    def __init__(self, raised: BaseException | None, *, stops: bool = True) -> None:
        self.raised, self.stops, self.stopped = raised, stops, 0

    def replicate(self, *_: object) -> None:
        if self.raised:
            raise self.raised

    def stop(self, _: object) -> dict[str, object]:
        self.stopped += 1
        if not self.stops:
            raise KeyError("log")
        return {"exit_status": 0, "crashed": False, "log": "the log"}


@pytest.fixture
def boot_of(runs: list[Run]) -> Callable[[Host], Boot]:
    run, plan = runs[0], planfile.read_plan(PLAN)
    Boot.objects.all().delete()

    def boot(host: Host) -> Boot:
        planned = plan_boots(plan, 1)[0]
        try:
            run_boot(Bench(run, plan, host, _Hosts()), run.variants.get(), planned, planned.measurements)  # type: ignore[arg-type]
        finally:
            made = Boot.objects.get(run=run)
        return made

    return boot


class _Hosts(dict[str, Any]):
    """Hosts of any role."""

    def __missing__(self, role: str) -> Any:
        return type("Host", (), {"cpus": "0", "cpus_alone": "0", "data_address": lambda *_: "10.0.0.1"})()


@pytest.mark.parametrize("error", ERRORS)
def test_boot_ends_and_its_measurements_fail_whatever_its_host_makes_this_program_raise(
    boot_of: Callable[[Host], Boot], error: type[Exception]
) -> None:
    host = Host(error("planted"))
    boot = boot_of(host)
    assert host.stopped == 1
    assert boot.state == BootState.FAILED
    assert error.__name__ in boot.error
    assert error.__name__ in Measurement.objects.get(boot=boot).reason


def test_boot_that_cannot_be_stopped_in_order_ends_nevertheless(boot_of: Callable[[Host], Boot]) -> None:
    boot = boot_of(Host(RecursionError("planted"), stops=False))
    assert boot.state == BootState.FAILED
    assert Measurement.objects.get(boot=boot).state == "failed"


def test_boot_without_a_database_is_left_to_recovery(boot_of: Callable[[Host], Boot]) -> None:
    with pytest.raises(DatabaseGoneError):
        boot_of(Host(DatabaseGoneError("planted")))
    assert Boot.objects.get(run__testbed__name="first").state == BootState.BOOTING
