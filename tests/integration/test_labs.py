# SPDX-License-Identifier: BSD-2-Clause
"""Only the worker of another lab drives that lab's testbeds."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import current_app

from perfweb.lab import services as lab_services
from perfweb.lab.models import Testbed
from perfweb.operations import health
from perfweb.runs import services
from perfweb.runs.models import RunState
from runners import tasks
from tests.integration.conftest import PLAN, LabHosts, state_of, wait_for_state
from tests.integration.workers import Worker
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def rack(testbed: Testbed) -> Testbed:
    return lab_services.register(testbed.name, Path(testbed.inventory), "rack")


@pytest.fixture
def rack_worker(rack: Testbed, tmp_path: Path) -> Iterator[Worker]:
    folder = tmp_path / "rack"
    folder.mkdir()
    worker = Worker(folder, rack.queue)
    yield worker
    worker.kill()


def health_of_rack() -> str:
    return health.parts().get("workers of lab rack", "")


def test_a_lab_measures_and_recovers_what_is_its_own(
    rack: Testbed, worker: Worker, rack_worker: Worker, hosts: LabHosts
) -> None:
    run = services.submit(PLAN.replace("samples: 4", "samples: 2").replace("boots: 2", "boots: 1"), rack.name)
    current_app.send_task("runners.tasks.recover")
    time.sleep(2)  # the service's own worker has had its chance
    assert state_of(run) == RunState.QUEUED
    # Not at once, because connections that an earlier test has broken are made anew with the second attempt.
    wait_for(lambda: health_of_rack().startswith("none called lab.rack@HOST answers"), "its worker to be missed")
    rack_worker.start()
    wait_for_state(run, RunState.RUNNING)
    wait_for(lambda: health_of_rack() == "ok", "its worker to answer")
    rack_worker.kill()
    time.sleep(5)  # longer than its lease
    current_app.send_task("runners.tasks.recover")
    time.sleep(2)
    assert not run.losses.exists()

    def is_noticed() -> bool:
        tasks.recover_labs()
        time.sleep(1)
        return run.losses.exists()

    rack_worker.start()
    wait_for(is_noticed, "the loss to be noticed by its lab")
    wait_for_state(run, RunState.DONE)
    hosts.assert_clean(run)
