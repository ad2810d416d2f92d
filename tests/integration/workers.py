# SPDX-License-Identifier: BSD-2-Clause
"""Celery workers for tests that stop and kill them.

A worker is forked from a server that has imported everything (tests/forks.py), because a worker's imports take longer
than a small run. A worker with a different environment is started as `celery` itself.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from django.db import connection

from runners.ansible import plays
from tests.forks import forked
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
PR_SET_PDEATHSIG = 1
LEASE_SECONDS = 4.0
DATABASE_PATIENCE = 6.0
RECEIVED = re.compile(rb"Task [\w.]+\[[-\w]+\] received")
BUILD_SECONDS = plays.BUILD_SECONDS
"""Max seconds of the builds of a test: the product's own limit, however busy the machine is."""
ENDED = re.compile(rb"Task [\w.]+\[[-\w]+\] (?:succeeded|raised|retry)")


def _settings() -> dict[str, str]:
    """Return the environment of a worker of these tests."""
    return {
        "DJANGO_SETTINGS_MODULE": "perfweb.settings.test",
        "PERFWEB_PGDATABASE": str(connection.settings_dict["NAME"]),
        "PERFWEB_LEASE_SECONDS": str(LEASE_SECONDS),
        "PERFWEB_DATABASE_PATIENCE": str(DATABASE_PATIENCE),
    }


def work(log: str, argv: Sequence[str]) -> None:
    """Become a worker: a session leader, whose output goes to a file, and that ends with these tests."""
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    with open(log, "wb") as output:
        for number in (1, 2):
            os.dup2(output.fileno(), number)
    sys.argv = ["celery", *argv]
    from celery.bin.celery import main

    main()


class Worker:
    """A Celery worker with short leases, as a separate process."""

    def __init__(self, folder: Path, queue: str = "celery", **environment: str) -> None:
        self.folder, self.queue, self.environment = folder, queue, environment
        self.process: subprocess.Popen[bytes] | ForkServerProcess | None = None
        self.log = folder / "worker.log"

    def start(self) -> None:
        """Start it anew; one that still runs, because a test failed, is killed."""
        self.kill()
        self.log.write_bytes(b"")
        argv = ["-A", "perfweb", "worker", "--without-mingle", "--without-gossip", "--concurrency", "1", "-l", "INFO"]
        argv += ["--queues", self.queue, "-n", f"{self.queue}@test{time.monotonic_ns()}"]
        environment = os.environ | self.environment | _settings()
        self.process = forked("tests.integration.preloaded", environment, work, str(self.log), argv)
        if self.process is None:
            with self.log.open("wb") as output:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "celery", *argv],
                    cwd=ROOT, env=environment, stdout=output, stderr=output, start_new_session=True,
                )  # fmt: skip
        wait_for(lambda: b" ready." in self.log.read_bytes(), f"the worker; see {self.log}")

    def runs(self) -> bool:
        if isinstance(self.process, subprocess.Popen):
            return self.process.poll() is None
        return self.process is not None and self.process.is_alive()

    def idle(self) -> bool:
        """Whether all tasks that it received have ended."""
        log = self.log.read_bytes()
        return len(RECEIVED.findall(log)) == len(ENDED.findall(log))

    def signal(self, number: int) -> None:
        assert self.process is not None
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    def signal_all(self, number: int) -> None:
        """Suspend all its processes, as when its machine is suspended."""
        assert self.process is not None
        assert self.process.pid is not None
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """Kill all its processes, as the kernel does when memory runs out."""
        if self.process is not None and self.runs():
            self.signal_all(signal.SIGKILL)
            if isinstance(self.process, subprocess.Popen):
                self.process.wait()
            else:
                self.process.join()
