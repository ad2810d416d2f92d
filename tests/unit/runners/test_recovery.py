# SPDX-License-Identifier: BSD-2-Clause
"""A testbed that cannot be restored takes no runs until it is, or until an operator frees it."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from perfweb.lab.models import Lease
from perfweb.runs import states
from perfweb.runs.models import Run, RunState
from runners import recovery
from runners.execute import execute
from tests.factories import create_queued_run, create_testbed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run on a testbed whose inventory was removed, so that no login works any more."""
    testbed = create_testbed()
    testbed.inventory = str(tmp_path / "removed.yml")
    testbed.save()
    return create_queued_run(testbed)


def expire() -> None:
    Lease.objects.update(expires=timezone.now() - timedelta(seconds=1))


def assert_out_of_service() -> None:
    lease = Lease.objects.get(released__isnull=True)
    assert lease.problem.startswith("the lab could not be restored: ")
    assert "removed.yml" in lease.problem
    with pytest.raises(states.TestbedBusyError):
        states.lease(create_queued_run().number)


def test_a_run_that_cannot_restore_its_lab_leaves_the_testbed_out_of_service(run: Run) -> None:
    execute(run.number)
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "the lab could not be restored" in run.reason
    assert_out_of_service()
    expire()
    recovery.recover()
    assert_out_of_service()


def test_so_does_a_worker_that_died(run: Run) -> None:
    states.lease(run.number)
    expire()
    recovery.recover()
    run.refresh_from_db()
    assert run.state == RunState.INTERRUPTED
    assert_out_of_service()
