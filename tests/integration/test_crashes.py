# SPDX-License-Identifier: BSD-2-Clause
"""Any process dies in the middle of a run: the run ends with a reason or continues, the lab is clean, no result is
lost.
"""

import time

import pytest
from celery import current_app
from django.db import connection

from perfweb.measuring import spool
from perfweb.runs.models import Boot, Measurement, Run, RunState, Sample
from runners.services.supervisor import Layout, start_postgresql, start_redis, stop
from tests.integration.conftest import LabHosts, history, wait_for_state
from tests.integration.workers import Worker
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def measured(run: Run) -> set[int]:
    return set(Measurement.objects.filter(boot__run=run, state="ok").values_list("pk", flat=True))


def hold_second_boot(run: Run, hosts: LabHosts) -> set[int]:
    """Wait until one boot is measured, and suspend a sample of the next one; return the database's content.

    With the sample suspended, the second boot cannot be finished before a process dies, however slow the test is.
    """
    second = Boot.objects.filter(run=run, position=1)
    wait_for(second.exists, "the second boot")
    hosts.hold_sample(run)
    wait_for(second.filter(state="up").exists, "it to be known as up")
    return measured(run)


def recover(run: Run) -> None:
    """Do what beat does every few seconds: a lease may have been renewed a moment ago."""

    def is_noticed() -> bool:
        current_app.send_task("runners.tasks.recover")
        time.sleep(1)
        return run.losses.exists()

    wait_for(is_noticed, "the loss to be noticed")


def goes_on_to_its_end(run: Run) -> None:
    """Automatically, once its testbed is clean."""
    wait_for_state(run, RunState.DONE)
    assert history(run).count("interrupted") == run.losses.count() == 1
    assert Sample.objects.filter(measurement__boot__run=run).counted().count() == 4


def test_worker_is_killed(run: Run, worker: Worker, hosts: LabHosts) -> None:
    before = hold_second_boot(run, hosts)
    assert len(before) == 1
    worker.kill()
    worker.start()
    recover(run)
    goes_on_to_its_end(run)
    assert run.losses.get().step == "boot 1"
    assert [boot.state for boot in Boot.objects.filter(run=run)] == ["stopped", "interrupted", "stopped"]
    assert before < measured(run)
    assert [(boot.position, boot.attempt) for boot in Boot.objects.filter(run=run)] == [(0, 1), (1, 1), (1, 2)]
    hosts.assert_clean(run)


def test_worker_is_killed_between_the_samples_of_a_measurement(run: Run, worker: Worker, hosts: LabHosts) -> None:
    wait_for(lambda: any('"sample"' in path.read_text() for path in spool.unfinished(run)), "a sample")
    worker.kill()
    worker.start()
    recover(run)
    goes_on_to_its_end(run)
    cut = Measurement.objects.get(boot__run=run, state="failed")
    assert cut.reason.startswith("the worker died with ")
    assert cut.samples.exists()
    assert spool.unfinished(run) == []
    hosts.assert_clean(run)


def test_redis_goes_away(run: Run, layout: Layout, worker: Worker, hosts: LabHosts) -> None:
    wait_for(lambda: hosts.runs("left", "netperf"), "the first sample")
    stop(layout, ["redis"])
    try:
        wait_for_state(run, RunState.DONE)
    finally:
        start_redis(layout)
    current_app.send_task("runners.tasks.recover")
    wait_for(lambda: b"Task runners.tasks.recover" in worker.log.read_bytes(), "the worker to hear from Redis again")
    assert Sample.objects.filter(measurement__boot__run=run).counted().count() == 4
    hosts.assert_clean(run)


def test_database_is_restarted(run: Run, layout: Layout, hosts: LabHosts) -> None:
    hold_second_boot(run, hosts)
    connection.close()
    stop(layout, ["postgresql"])
    hosts.release("left", "netperf")
    start_postgresql(layout)
    wait_for_state(run, RunState.DONE)
    assert "interrupted" not in history(run)
    assert Sample.objects.filter(measurement__boot__run=run).counted().count() == 4
    hosts.assert_clean(run)


def test_database_stays_away(run: Run, layout: Layout, worker: Worker, hosts: LabHosts) -> None:
    """The measurement that could not be stored waits in the spool and is stored after the resumption."""
    before = hold_second_boot(run, hosts)
    connection.close()
    stop(layout, ["postgresql"])
    hosts.release("left", "netperf")
    try:
        wait_for(lambda: bool(spool.waiting(run)), "the measurement in the spool")
        wait_for(lambda: not hosts.left_behind(run), "the lab to be restored")
    finally:
        start_postgresql(layout)
    recover(run)
    goes_on_to_its_end(run)
    assert len(measured(run)) == len(before) + 1
    assert spool.waiting(run) == []
    assert Boot.objects.filter(run=run).count() == 2


def test_server_dies_under_a_measurement(run: Run, hosts: LabHosts) -> None:
    hosts.hold_sample(run)
    hosts.kill("dut", "netserver")
    hosts.release("left", "netperf")
    wait_for_state(run, RunState.DONE)
    assert run.reason.startswith("1 of 2 measurements failed; the first: ")
    first, second = Boot.objects.filter(run=run)
    assert (first.state, second.state) == ("crashed", "stopped")
    assert "ended by itself" in first.error
    failed = Measurement.objects.get(boot=first)
    assert failed.state == "failed"
    assert "samples failed" in failed.reason
    assert b"== sample 2" in bytes(failed.artefacts.get().content)
    assert Sample.objects.filter(measurement__boot__run=run).counted().count() == 2
    hosts.assert_clean(run)
