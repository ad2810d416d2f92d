# SPDX-License-Identifier: BSD-2-Clause
"""What a worker does with a message of a run that it need not do, or cannot."""

import pytest

from perfweb.runs import services, states
from perfweb.runs.models import Run
from runners import tasks
from tests.factories import create_queued_run, create_testbed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The runs that workers are told of."""
    told: list[Run] = []
    monkeypatch.setattr(services, "enqueue", told.append)
    return told


def test_a_message_that_comes_late_makes_no_other(told: list[Run]) -> None:
    run = create_queued_run()
    states.cancel(run.number, "not wanted")
    create_queued_run(create_testbed("free"))
    tasks.execute(run.number)
    assert told == []


def test_a_message_of_a_run_whose_testbed_is_busy_makes_no_other(told: list[Run]) -> None:
    states.lease(create_queued_run().number)
    waiting = create_queued_run()
    create_queued_run(create_testbed("free"))
    tasks.execute(waiting.number)
    assert told == []
