# SPDX-License-Identifier: BSD-2-Clause
"""The order of the queue: priority, then the min testbed time, then age; and the estimated starts."""

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from perfweb.lab.models import Lease, OutageKind, Testbed
from perfweb.lab.outages import begin
from perfweb.runs import queue, states
from perfweb.runs.models import Priority, Run, RunState
from tests.factories import create_queued_run, create_testbed

pytestmark = pytest.mark.django_db


def waiting(by: str = "ann", priority: Priority = Priority.NORMAL, testbed: str = "bench") -> Run:
    run = create_queued_run(create_testbed(testbed))
    run.requested_by, run.priority = by, priority
    run.save()
    return run


def held(by: str, seconds: float, ago: float = 7200, testbed: str = "elsewhere") -> Lease:
    """A lease that ended `ago` seconds ago."""
    released = timezone.now() - timedelta(seconds=ago)
    lease = Lease.objects.create(
        testbed=create_testbed(testbed), holder="run 0", account=by, expires=released, released=released
    )
    Lease.objects.filter(pk=lease.pk).update(taken=released - timedelta(seconds=seconds))
    return lease


def done(seconds: float, testbed: str = "bench") -> Run:
    """An earlier run of the plan that all runs here have."""
    run = create_queued_run(create_testbed(testbed), RunState.DONE)
    run.lease = held("carl", seconds, ago=100_000, testbed=testbed)
    run.save()
    return run


def order() -> list[Run]:
    return [place.run for place in queue.forecast()]


def starts() -> list[float | None]:
    return [place.seconds for place in queue.forecast()]


def bench() -> Testbed:
    return create_testbed("bench")


def test_oldest_first_where_nothing_else_differs() -> None:
    runs = [waiting() for _ in range(3)]
    assert queue.first(bench()) == runs[0]
    assert order() == runs


def test_priority_goes_before_everything() -> None:
    held("ann", 3600)
    low, normal, high = waiting("bob", Priority.LOW), waiting("bob"), waiting("ann", Priority.HIGH)
    assert order() == [high, normal, low]
    assert queue.first(bench()) == high


def test_shortest_testbed_time_of_the_last_day_first() -> None:
    held("ann", 3600)
    held("bob", 60)
    held("carl", 3600, ago=86_400)
    ann, bob, carl = waiting("ann"), waiting("bob"), waiting("carl")
    assert order() == [carl, bob, ann]
    assert queue.first(bench()) == carl


def test_only_the_part_of_a_lease_in_the_last_day_counts() -> None:
    held("ann", 10_000, ago=86_400 - 10)
    assert queue.machine_time(timezone.now())["ann"] == pytest.approx(10, abs=5)


def test_submitters_take_turns() -> None:
    done(100)
    ann = [waiting("ann") for _ in range(2)]
    bob = [waiting("bob") for _ in range(2)]
    assert order() == [ann[0], bob[0], ann[1], bob[1]]


def test_a_run_is_leased_in_its_turn_only() -> None:
    first, second = waiting(), waiting()
    with pytest.raises(states.TestbedBusyError, match=f"{first} goes before run {second.number}"):
        states.lease(second.number)
    lease = states.lease(first.number).lease
    assert lease is not None
    assert lease.account == "ann"


def test_start_is_reckoned_from_earlier_runs() -> None:
    for seconds in (80, 100, 5000):
        done(seconds)
    for _ in range(3):
        waiting()
    assert starts() == [0, pytest.approx(100), pytest.approx(200)]


def test_start_waits_for_the_run_that_works() -> None:
    done(10_000)
    lease = states.lease(waiting().number).lease
    assert lease is not None
    waiting()
    Lease.objects.filter(pk=lease.pk).update(taken=timezone.now() - timedelta(seconds=4000))
    assert starts() == [pytest.approx(6000, abs=120)]


def test_start_is_unknown_without_earlier_runs_and_out_of_service() -> None:
    run = waiting()
    waiting()
    assert starts() == [0, None]
    states.lease(run.number)
    assert starts() == [None]
    done(100)
    assert starts() != [None]
    begin(bench(), OutageKind.MAINTENANCE, "new cables", "ann")
    assert starts() == [None]


@pytest.mark.parametrize("number", [1, 6])
def test_queries_do_not_depend_on_what_waits(number: int, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    for place in range(number):
        waiting(f"user{place}", testbed=f"bench{place}")
    with django_assert_num_queries(6):
        queue.forecast()


def test_priority_is_given_when_submitting_and_changed_later(capsys: pytest.CaptureFixture[str]) -> None:
    bench()
    call_command("submit", "demo", testbed="bench", priority="low")
    run = Run.objects.get()
    assert run.priority == Priority.LOW
    call_command("prioritise", str(run.number), "high")
    assert capsys.readouterr().out.endswith(f"run {run.number} waits with high priority\n")
    run.refresh_from_db()
    assert run.priority == Priority.HIGH
