# SPDX-License-Identifier: BSD-2-Clause
"""Celery's tasks. They only call services, and all their state is in the database.

A task is acknowledged when it ends. If its worker dies, Redis delivers it again; then the run is not queued any more
and is left alone, and beat's `recover` handles it.
"""

from typing import Any

from celery import Task, shared_task
from celery.signals import worker_shutting_down

from perfweb.lab import services as lab
from perfweb.lab.models import queue_of
from perfweb.runs import services
from runners import execute as execution
from runners import recovery

BETWEEN_LOOKS = 10.0
"""Seconds between two calls of beat."""


@shared_task(bind=True, acks_late=True)
def execute(self: "Task[[int], None]", number: int) -> None:
    """Executes a run, then notifies the workers of the runs that waited for its testbed.

    A run is announced more than once, by beat as well. A late message notifies no worker, because each would cause
    another while runs wait, and beat's would add up.
    """
    if execution.execute(number, worker=self.request.hostname or ""):
        services.dispatch()


@shared_task
def recover(lab: str = "") -> None:
    """Ends the runs of a lab whose worker died, then notifies its workers of all runs that can start."""
    try:
        recovery.recover(lab)
        recovery.resume_paused(lab)
    finally:
        services.dispatch(lab)


@shared_task
def recover_labs() -> None:
    """Sends that task to the workers of each lab; a message expires if all of them are busy."""
    for name in lab.labs():
        recover.apply_async((name,), queue=queue_of(name), expires=BETWEEN_LOOKS)


@worker_shutting_down.connect
def _recall(sender: str = "", **_: Any) -> None:
    """A worker that gets SIGTERM restores the lab before the end of its run, and the run can continue later."""
    lab.recall(sender)
