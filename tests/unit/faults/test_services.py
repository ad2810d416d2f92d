# SPDX-License-Identifier: BSD-2-Clause
"""A loop over many items continues after a failing one, whose fault is stored and cleared."""

from datetime import timedelta

import pytest
from django.db import DataError, connection
from django.utils import timezone

from perfweb.faults.models import Fault
from perfweb.faults.services import FORGOTTEN, Task, clear, current, for_each, forget, note

pytestmark = pytest.mark.django_db
TASK = Task("count", "look at the log")
LASTING = Task("store", "store it by hand", lasting=True)


def work(bad: set[int]) -> list[int]:
    done: list[int] = []

    def step(number: int) -> None:
        if number in bad:
            raise RecursionError("planted")
        done.append(number)

    for_each(TASK, range(4), step)
    return done


def test_item_that_fails_is_counted_and_the_others_are_done(caplog: pytest.LogCaptureFixture) -> None:
    assert work({1}) == work({1}) == [0, 2, 3]
    fault = Fault.objects.get()
    assert (fault.task, fault.item, fault.times, fault.advice) == ("count", "1", 2, "look at the log")
    assert fault.error == "RecursionError('planted')"
    assert "Traceback" in caplog.text
    assert str(fault).startswith("count: 1, 2 times since ")


def test_fault_is_cleared_when_its_item_is_done() -> None:
    work({1, 2})
    work({2})
    assert Fault.objects.get().item == "2"


def test_fault_that_does_not_repeat_is_forgotten_and_a_lasting_one_is_not() -> None:
    note(TASK, "gone", KeyError("planted"))
    note(LASTING, "kept", "a text")
    Fault.objects.update(last=timezone.now() - FORGOTTEN - timedelta(seconds=1))
    assert [fault.item for fault in current()] == ["kept"]
    forget()
    assert Fault.objects.get().error == "a text"
    clear(LASTING, "kept")
    assert not Fault.objects.exists()


def test_names_and_errors_that_the_database_cannot_store_are_kept_as_far_as_possible() -> None:
    name = "\0\ud800" * 300
    for_each(TASK, [name], lambda _: 1 / 0)
    assert len(Fault.objects.get().item) == 200
    for_each(TASK, [name], lambda _: None)
    assert not Fault.objects.exists()


def test_fault_of_the_database_is_a_fault_of_its_item_too() -> None:
    def step(text: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT %s::text", [text])

    with pytest.raises(DataError):
        step("\0")
    for_each(TASK, ["a\0", "b"], step)
    assert "DataError" in Fault.objects.get().error


@pytest.mark.django_db(transaction=True)
def test_without_a_database_a_fault_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE faults_fault RENAME TO elsewhere")
    try:
        note(TASK, "item", KeyError("planted"))
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE elsewhere RENAME TO faults_fault")
    assert "planted" in caplog.text
    assert "in the log only" in caplog.text
