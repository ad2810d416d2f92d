# SPDX-License-Identifier: BSD-2-Clause
"""A worker's handling of a message about a run that it need not execute, or cannot."""

import pytest

from perfweb.celery import app
from perfweb.runs import services, states
from perfweb.runs.models import Run
from runners import tasks
from tests.factories import create_queued_run, create_testbed

pytestmark = pytest.mark.django_db(transaction=True)
NAMED = {
    *(f"runners.tasks.{name}" for name in ("execute", "recover", "recover_labs")),
    *(f"perfweb.forges.tasks.{name}" for name in ("act", "follow", "forget")),
    *(f"perfweb.outbox.tasks.{name}" for name in ("deliver", "forget")),
    *(f"perfweb.mail.tasks.{name}" for name in ("attend", "forget")),
    "perfweb.tracking.tasks.attend",
    *(f"perfweb.operations.tasks.{name}" for name in ("beat", "forget", "give_up_raw_outputs", "check_invariants")),
}


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The runs of which workers were notified."""
    enqueued: list[Run] = []
    monkeypatch.setattr(services, "enqueue", enqueued.append)
    return enqueued


def test_a_message_that_comes_late_makes_no_other(enqueued: list[Run]) -> None:
    run = create_queued_run()
    states.cancel(run.number, "not wanted")
    create_queued_run(create_testbed("free"))
    tasks.execute(run.number)
    assert enqueued == []


def test_a_message_of_a_run_whose_testbed_is_busy_makes_no_other(enqueued: list[Run]) -> None:
    states.lease(create_queued_run().number)
    waiting = create_queued_run()
    create_queued_run(create_testbed("free"))
    tasks.execute(waiting.number)
    assert enqueued == []


def test_a_worker_knows_every_task_that_a_message_may_name() -> None:
    """Messages that were queued before an upgrade name these tasks, too: a renamed module must not rename one."""
    app.loader.import_default_modules()
    scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
    assert scheduled | NAMED <= set(app.tasks)
