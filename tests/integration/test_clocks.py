# SPDX-License-Identifier: BSD-2-Clause
"""Clocks that are set by an hour, forward and back, while a run is measured.

The time of day of one process at a time is set, and the monotonic clock is unchanged (clock_settime(2)). libfaketime
does not suffice: it makes short sleeps of Python 3.11 fail with EINVAL, and needs semaphores that PostgreSQL's user
cannot open.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from perfweb.lab.models import Testbed
from perfweb.runs import services
from perfweb.runs.models import Measurement, Run, RunState, Sample
from runners import recovery
from runners.services.supervisor import Layout, start_postgresql, stop
from tests.installation import Reply, installed
from tests.integration.conftest import ROOT, LabHosts, wait_for_state
from tests.integration.workers import Worker
from tests.waiting import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

PLAN = """\
name: clocks
baseline: a
variants: [{name: a, target: linux}]
tests: [tcp.rr/host-host/ipv4]
samples: 2
discard: 0
boots: 1
seconds: 1
gates: off
"""


class Clock:
    """The time of day of the processes that are started with its `environment` (clock.c)."""

    def __init__(self, folder: Path) -> None:
        library, self.file = folder / "clock.so", folder / "offset"
        source = Path(__file__).with_name("clock.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
        self.file.write_bytes(bytes(8))
        for path in (library, self.file):
            path.chmod(0o755)
        self.environment = {"LD_PRELOAD": str(library), "PERFWEB_CLOCK": str(self.file)}

    def set(self, hours: int) -> None:
        """Set it at once, by that many hours from the true time."""
        with self.file.open("r+b") as file:
            file.write((hours * 3600).to_bytes(8, sys.byteorder, signed=True))


@pytest.fixture
def clock() -> Iterator[Clock]:
    with tempfile.TemporaryDirectory(prefix="perfweb-clock-") as folder:
        Path(folder).chmod(0o755)  # for the user of a database
        yield Clock(Path(folder))


def under_way(testbed: Testbed, hosts: LabHosts) -> Run:
    run = services.submit(PLAN, testbed.name)
    hosts.hold_sample(run)
    wait_for_state(run, RunState.RUNNING)
    return run


def assert_measured(run: Run) -> None:
    wait_for_state(run, RunState.DONE)
    assert run.losses.count() == 0
    assert Sample.objects.filter(measurement__boot__run=run).counted().count() == 2
    assert 2 < Measurement.objects.get(boot__run=run).seconds < 600


def test_clock_of_the_worker_is_set(testbed: Testbed, hosts: LabHosts, clock: Clock, tmp_path: Path) -> None:
    worker = Worker(tmp_path, **clock.environment)
    worker.start()
    try:
        run = under_way(testbed, hosts)
        clock.set(1)
        recovery.recover()
        hosts.release("left", "netperf")
        wait_for(lambda: hosts.hold("left", "netperf") or run.transitions.filter(to_state="done").exists(), "the next")
        clock.set(-1)
        recovery.recover()
        hosts.release("left", "netperf")
        assert_measured(run)
    finally:
        worker.kill()
    hosts.assert_clean(run)


@pytest.fixture
def database_clock(testbed: Testbed, layout: Layout, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    connection.close()
    stop(layout, ["postgresql"])
    with monkeypatch.context() as faked:
        for name, value in clock.environment.items():
            faked.setenv(name, value)
        start_postgresql(layout)
    yield clock
    connection.close()
    stop(layout, ["postgresql"])
    start_postgresql(layout)


def test_clock_of_the_database_is_set(testbed: Testbed, hosts: LabHosts, database_clock: Clock, tmp_path: Path) -> None:
    """A step expires no lease of a live run, and keeps none of a dead one."""
    worker = Worker(tmp_path)
    worker.start()
    try:
        recovery.recover()
        run = under_way(testbed, hosts)
        database_clock.set(1)
        recovery.recover()
        hosts.release("left", "netperf")
        assert_measured(run)
        lost = under_way(testbed, hosts)
        worker.kill()
        recovery.recover()
        database_clock.set(-1)

        def is_noticed() -> bool:
            recovery.recover()
            return lost.losses.exists()

        wait_for(is_noticed, "the loss to be noticed")
        wait_for(lambda: not lost.testbed.leases.filter(released=None).exists(), "the testbed to be free")
    finally:
        worker.kill()
    hosts.assert_clean(lost)


def test_clock_of_beat_is_set(testbed: Testbed, clock: Clock, tmp_path: Path) -> None:
    log = tmp_path / "beat.log"
    argv = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "perfweb",
        "beat",
        "--schedule",
        str(tmp_path / "schedule"),
        "--pidfile=",
        "-l",
        "INFO",
    ]
    environment = os.environ | clock.environment | {"DJANGO_SETTINGS_MODULE": settings.SETTINGS_MODULE}

    def calls() -> int:
        return log.read_bytes().count(b"(runners.tasks.recover)")

    with (
        log.open("wb") as output,
        subprocess.Popen(argv, cwd=ROOT, env=environment, stdout=output, stderr=output) as beat,
    ):
        try:
            wait_for(lambda: calls() >= 1, "beat to call")
            for hours in (-1, 1):
                clock.set(hours)
                before = calls()
                wait_for(lambda before=before: calls() > before, "beat to call again")  # type: ignore[misc]
        finally:
            beat.terminate()


def test_clock_of_the_site_is_set(clock: Clock, tmp_path: Path) -> None:
    """Web server, database and Redis at once, as when the clock of their machine is set."""
    days = 24
    user = "from perfweb.accounts.models import User; User.objects.create_user('ada', password='correct horse battery')"
    with installed(tmp_path / "var", **clock.environment) as site:
        site.manage("shell", "-c", user)
        for hours in (0, 1, -1, 20 * days, 0):
            clock.set(hours)
            wait_for(lambda: site.get("/runs/").status == 200, "a page")
            cookie = session(site.sign_in("ada", "correct horse battery"))
            assert site.get("/account/", {"Cookie": cookie}).status == 200
        clock.set(1)
        assert site.get("/account/", {"Cookie": cookie}).status == 200
        clock.set(20 * days)
        assert site.get("/account/", {"Cookie": cookie}).status == 302  # a session ends after 14 days
        assert "Traceback" not in site.log("web")


def session(reply: Reply) -> str:
    """The session cookie after a sign-in."""
    assert reply.status == 302, reply
    found = re.search(r"sessionid=\w+", reply.headers["Set-Cookie"])
    assert found
    return found[0]
