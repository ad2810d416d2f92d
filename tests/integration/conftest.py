# SPDX-License-Identifier: BSD-2-Clause
"""The whole path without mocks: PostgreSQL, Redis, a Celery worker, Ansible over SSH and a lab of namespaces.

The services are those of `./dev test`, which these tests stop and restart; nothing else uses them meanwhile.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis
from django.conf import settings

from perfweb.lab import services as lab_services
from perfweb.lab.inventory import InventoryHost, read_inventory
from perfweb.lab.models import Testbed
from perfweb.runs import services
from perfweb.runs.invariants import violations
from perfweb.runs.models import FINAL_STATES, Run, RunState
from playbooks.module_utils import processes
from playbooks.module_utils.tunnels import INTERFACE
from runners.labs import netlab
from runners.services.supervisor import Layout
from tests.integration.workers import Worker
from tests.labs import raise_lab
from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]

PLAN = """\
name: tiny
baseline: a
variants: [{name: a, target: linux}]
tests: [tcp.rr/host-host/ipv4]
samples: 4
discard: 1
boots: 2
seconds: 1
gates: off
"""

ENDED = FINAL_STATES - {RunState.INTERRUPTED}
"""An interrupted run may be resumed."""


def state_of(run: Run) -> str:
    run.refresh_from_db()
    return run.state


def wait_for_state(run: Run, *wanted: RunState, seconds: float = 600) -> None:
    """Fail as soon as the run has ended in another state."""

    def reached() -> bool:
        state = state_of(run)
        assert state in wanted or state not in ENDED, f"{run} is {state}: {run.reason}"
        return state in wanted

    wait_for(reached, f"{run} to be {' or '.join(wanted)}", seconds)


def history(run: Run) -> list[str]:
    return list(run.transitions.values_list("to_state", flat=True))


def _programs() -> Iterator[tuple[int, str]]:
    """Return all processes of the machine: process id and name of the program."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{entry}/comm", encoding="utf-8") as file:
                yield int(entry), file.read().strip()


class LabHosts:
    """The hosts of the lab, for inspection of their processes."""

    def __init__(self, lab: netlab.Lab) -> None:
        self.lab = lab

    def processes(self, host: str, program: str = "") -> dict[int, str]:
        """Return the programs on a host by process id, or one of them, without its SSH server."""
        wanted = {pid: name for pid, name in _programs() if name == program or not program}
        if program and not wanted:  # fast, because tests look for a program again and again
            return {}
        there = set(map(int, self._ip("netns", "pids", self.lab.namespace(host)).split()))
        # The stack has a network namespace of its own.
        there |= {process.pid for process in processes.descendants(there)}
        return {pid: wanted[pid] for pid in sorted(there & wanted.keys()) if not wanted[pid].startswith("sshd")}

    def runs(self, host: str, program: str) -> bool:
        return bool(self.processes(host, program))

    def kill(self, host: str, program: str) -> None:
        for pid in self.processes(host, program):
            self._signal(pid, signal.SIGKILL)

    def hold(self, host: str, program: str) -> bool:
        """Suspend a program (SIGSTOP); return False if none runs there (any more)."""
        return any(self._signal(pid, signal.SIGSTOP) for pid in self.processes(host, program))

    def hold_sample(self, run: Run, program: str = "netperf", seconds: float = 600) -> None:
        """Suspend the client of the next sample of `run`; fail as soon as the run has ended without one."""

        def held() -> bool:
            now = Run.objects.get(pk=run.pk)  # `run` itself keeps its testbed, which tests need without the database
            there = self.hold("left", program)
            assert there or now.state not in ENDED, f"{now} is {now.state}, without a further sample: {now.reason}"
            return there

        wait_for(held, f"a sample by {program}", seconds)

    def release(self, host: str, program: str) -> None:
        """Continue the suspended programs."""
        for pid in self.processes(host, program):
            self._signal(pid, signal.SIGCONT)

    def use_reno(self, host: str) -> None:
        """Give a host another congestion control than the lab's, which every kernel allows."""
        path = "/proc/sys/net/ipv4/tcp_congestion_control"
        self._ip("netns", "exec", self.lab.namespace(host), "sh", "-c", f"echo reno >{path}")

    @staticmethod
    def _signal(pid: int, number: int) -> bool:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    def left_behind(self, run: Run) -> list[str]:
        """Return the remains of `run` on the hosts: processes, an address or a device on the data links,
        directories.
        """
        left = [f"{name} on {host}" for host in ("left", "dut", "right") for name in self.processes(host).values()]
        dut = self.lab.namespace("dut")
        if "inet " in self._ip("-n", dut, "address", "show", "data0"):
            left.append("an address on data0")
        if "tap" in self._ip("-n", dut, "-brief", "link"):
            left.append("a TAP device")
        links = "".join(self._ip("-n", self.lab.namespace(host), "-brief", "link") for host in ("left", "dut"))
        if INTERFACE in links:
            left.append("a tunnel")
        directories = self.lab.root.glob(f"{run.testbed.name[:16]}-{run.number}-*")
        return [*left, *map(str, directories)]

    def assert_clean(self, run: Run) -> None:
        assert self.left_behind(run) == []

    @staticmethod
    def _ip(*words: str) -> str:
        return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="session")
def layout() -> Layout:
    """The services of the tests, to stop and to start."""
    layout = Layout.of(Path(settings.PERFWEB_VAR))
    if str(layout.postgresql_sockets) != settings.DATABASES["default"]["HOST"]:
        pytest.fail("these tests stop PostgreSQL, so it must be their own: run them with ./dev test tests/integration")
    return layout


@pytest.fixture(scope="session")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabHosts]:
    """A private lab, whose name and network no other test run has."""
    lab = raise_lab("i", tmp_path_factory.mktemp("lab"))
    yield LabHosts(lab)
    netlab.down(lab)


@pytest.fixture(autouse=True)
def invariants(transactional_db: None) -> Iterator[None]:
    """Check after every test, whatever it broke: the database has no contradictions, and no worker is busy."""
    yield
    assert violations() == []


@pytest.fixture(scope="session")
def described(hosts: LabHosts) -> dict[str, InventoryHost]:
    """What Ansible reads in the lab's inventory, which no test changes: each reading starts Ansible."""
    return read_inventory(hosts.lab.inventory)


@pytest.fixture
def testbed(transactional_db: None, layout: Layout, hosts: LabHosts, described: dict[str, InventoryHost]) -> Testbed:
    redis.Redis.from_url(settings.REDIS_URL).flushdb()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lab_services, "read_inventory", lambda _: described)
        return lab_services.register(hosts.lab.name, hosts.lab.inventory)


@pytest.fixture
def worker(testbed: Testbed, tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(tmp_path)
    worker.start()
    yield worker
    worker.kill()
    print(worker.log.read_text(encoding="utf-8", errors="replace"))  # pytest shows it if a test fails


@pytest.fixture(scope="module")
def started_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    worker = Worker(tmp_path_factory.mktemp("worker"))
    yield worker
    worker.kill()


@pytest.fixture
def lasting_worker(testbed: Testbed, started_worker: Worker) -> Iterator[None]:
    """A worker shared by all tests of a module that do not break it, because starting one takes as long as a small
    run.
    """
    if not started_worker.runs():
        started_worker.start()
    begin = started_worker.log.stat().st_size
    yield
    wait_for(started_worker.idle, "the worker to end its tasks")
    print(started_worker.log.read_bytes()[begin:].decode("utf-8", "replace"))


@pytest.fixture
def run(testbed: Testbed, worker: Worker) -> Run:
    """A tiny run whose message a worker has just received."""
    return services.submit(PLAN, testbed.name)
