# SPDX-License-Identifier: BSD-2-Clause
"""`./dev` from outside: what it starts answers, and nothing of it is left when it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from playbooks.module_utils import processes
from runners.labs import netlab
from runners.labs.netlab import Lab
from runners.services import supervisor
from tests.bench.__main__ import BENCHES
from tests.labs import free_network

ROOT = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 600
"""Max seconds of any wait, generous because a busy machine must not fail a test."""


class Dev:
    """Runs `./dev` with a private directory and lab."""

    def __init__(self, var: Path, network: int) -> None:
        self.var = var
        self.lab = Lab(f"d{os.getpid()}"[:9], network, var / "lab")
        self.output = var.parent / "output"
        settings = {"PERFWEB_VAR": str(var), "PERFWEB_LAB_NAME": self.lab.name, "PERFWEB_LAB_NET": str(self.lab.net)}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PERFWEB_", "DJANGO_"))}
        self.environment = inherited | settings

    def start(self, *arguments: str, background: bool = False, **settings: str) -> subprocess.Popen[bytes]:
        """Start it as a terminal does: as the leader of a process group, with SIGINT not ignored.

        With `background` it is started like `nohup ./dev … &` in a script, which ignores SIGINT and SIGHUP, and so do
        all its children.
        """
        signals = "--ignore-signal=INT,HUP,QUIT" if background else "--default-signal=INT"
        with self.output.open("wb") as output:
            return subprocess.Popen(
                ["env", signals, ROOT / "dev", *arguments],
                env=self.environment | settings,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([ROOT / "dev", *arguments], env=self.environment, capture_output=True, text=True)

    def wait_until_served(self, running: subprocess.Popen[bytes]) -> str:
        """Return the served address, once it is printed."""
        self.wait_until_printed(running, "serving http")
        return (self.var / "run" / "url").read_text().strip()

    def wait_until_printed(self, running: subprocess.Popen[bytes], text: str) -> None:
        """Wait until the command has printed something; it must not end before."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while text not in self.output.read_text():
            assert running.poll() is None, self.output.read_text()
            assert time.monotonic() < deadline, self.output.read_text()
            time.sleep(0.1)

    def imported(self) -> str:
        """The address that `manage.py import` prints for a new run, in an environment with PERFWEB_VAR only."""
        numbers = self.var.parent / "numbers.txt"
        numbers.write_text("1\n2\n3\n")
        about = ["--test", "tcp.rr/host-host/ipv4", "--unit", "transactions/s"]
        command = [sys.executable, "manage.py", "import", "ministat", str(numbers), *about]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()[-1]

    def left_over(self) -> list[str]:
        """Return its remaining processes and files."""
        running = [path.name for path in (self.var / "run").glob("*.pid") if processes.running(path)]
        links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
        return running + [line for line in links.splitlines() if line.startswith(f"{self.lab.name}-")]


@contextmanager
def dev_in(folder: Path) -> Iterator[Dev]:
    with free_network() as network:
        made = Dev(folder / "var", network)
        yield made
        supervisor.stop(supervisor.Layout.of(made.var), list(supervisor.STARTERS))
        netlab.down(made.lab)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("dev")


@pytest.fixture
def dev(folder: Path) -> Iterator[Dev]:
    """In a directory of all tests, so that only the first makes and migrates a database."""
    with dev_in(folder) as made:
        yield made


@pytest.fixture
def new_dev(tmp_path: Path) -> Iterator[Dev]:
    """In an empty directory."""
    with dev_in(tmp_path) as made:
        yield made


def test_without_a_command_it_shows_where_to_start(dev: Dev) -> None:
    done = dev.run()
    assert done.returncode == 0
    assert re.findall(r"^\./dev (\S+)", done.stdout, re.MULTILINE) == ["demo", "serve", "test", "stop", "setup", "help"]


def test_the_help_lists_every_command(dev: Dev) -> None:
    (commands,) = re.findall(r'^\t(.*)\) "cmd_', (ROOT / "dev").read_text(encoding="utf-8"), re.MULTILINE)
    done = dev.run("help")
    assert done.returncode == 0
    assert set(re.findall(r"^\./dev (\S+)", done.stdout, re.MULTILINE)) == set(commands.split(" | "))
    for bench in BENCHES:
        assert f"./dev bench {bench}" in done.stdout


def test_an_unknown_command_or_option_is_refused(dev: Dev) -> None:
    assert "unknown command 'nonsense'" in dev.run("nonsense").stderr
    assert "unknown option '--quick': ./dev demo [--ipv6] [--exit]" in dev.run("demo", "--quick").stderr
    assert "--kernel goes with --exit only" in dev.run("demo", "--kernel", "--ipv6").stderr


def wait_until_healthy(address: str) -> int:
    """The last status of /health/: beat calls after ten seconds for the first time."""
    status = 0
    for _ in range(60):
        try:
            with urllib.request.urlopen(f"{address}health/", timeout=20) as answer:  # noqa: S310  # our own server
                return int(answer.status)
        except urllib.error.HTTPError as error:
            status = error.code
            time.sleep(2)
    return status


def test_what_is_served_answers_and_ctrl_c_leaves_nothing(dev: Dev) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        running = dev.start("serve", PERFWEB_PORT=str(port))
        address = dev.wait_until_served(running)
        assert f"port {port} is taken, the web server listens on" in dev.output.read_text()
    with urllib.request.urlopen(address, timeout=10) as answer:  # noqa: S310  # our own server
        assert answer.status == 200
    assert all(netlab.status(dev.lab).values())
    assert wait_until_healthy(address) == 200
    assert "another ./dev works in" in dev.run("serve").stderr
    page = dev.imported()
    assert page.startswith(address)
    with urllib.request.urlopen(page, timeout=10) as answer:  # noqa: S310  # our own server
        assert answer.status == 200

    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(LIMIT_SECONDS) == 130
    assert "Traceback" not in dev.output.read_text()
    assert dev.left_over() == []


def test_a_supervisor_that_ends_only_the_command_itself_leaves_nothing(dev: Dev) -> None:
    running = dev.start("serve", background=True)
    dev.wait_until_served(running)
    running.send_signal(signal.SIGTERM)
    assert running.wait(LIMIT_SECONDS) == 143
    assert dev.left_over() == []


def words_of(process: processes.Process) -> str:
    """Return the command line of a process; empty for an ended one."""
    try:
        return Path(f"/proc/{process.pid}/cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def programs(running: subprocess.Popen[bytes], words: str) -> list[processes.Process]:
    """Return the processes with these words in their command lines."""
    return [found for found in processes.descendants({running.pid}) if f" {words} " in f"{words_of(found)} "]


def wait_for_program(dev: Dev, running: subprocess.Popen[bytes], words: str) -> processes.Process:
    deadline = time.monotonic() + LIMIT_SECONDS
    while not (found := programs(running, words)):
        assert running.poll() is None, dev.output.read_text()
        assert time.monotonic() < deadline, dev.output.read_text()
        time.sleep(0.05)
    return found[0]


def test_a_bench_ends_with_the_command(dev: Dev) -> None:
    running = dev.start("bench", "tracking")
    bench = wait_for_program(dev, running, "tests.bench --var")
    running.send_signal(signal.SIGTERM)
    assert running.wait(LIMIT_SECONDS) == 143
    assert not bench.alive()
    assert "Traceback" not in dev.output.read_text()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("demo", "runners.labs.netlab up"),
        ("lint", "tests.gate --var"),
        ("test --changed", "tests.gate --var"),
        ("test tests/unit/gate", "pytest"),
        ("test-long", "tests.stack.exhaust"),
        ("bench tracking", "tests.bench --var"),
        ("sbom", "runners.dependencies.sbom"),
        ("audit", "runners.dependencies.advisories"),
        *(
            pytest.param(f"bench {name}", "tests.bench --var", marks=pytest.mark.thorough)
            for name in BENCHES
            if name != "tracking"
        ),
    ],
)
def test_ctrl_c_ends_each_command_quietly_and_leaves_nothing(dev: Dev, command: str, words: str) -> None:
    """Interrupt it as soon as its program has begun: Python raises KeyboardInterrupt from its first import on."""
    running = dev.start(*command.split())
    program = wait_for_program(dev, running, words)
    assert_ctrl_c_leaves_nothing(dev, running)
    assert not program.alive()


@pytest.mark.parametrize(("command", "begun"), [("demo", "running the plan"), ("lint", "started")])
def test_ctrl_c_later_ends_a_command_quietly_and_leaves_nothing(dev: Dev, command: str, begun: str) -> None:
    running = dev.start(command)
    dev.wait_until_printed(running, begun)
    assert_ctrl_c_leaves_nothing(dev, running)


def test_ctrl_c_while_a_database_is_made_leaves_nothing(new_dev: Dev) -> None:
    running = new_dev.start("demo")
    new_dev.wait_until_printed(running, "starting PostgreSQL")
    assert_ctrl_c_leaves_nothing(new_dev, running)


def assert_ctrl_c_leaves_nothing(dev: Dev, running: subprocess.Popen[bytes]) -> None:
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(LIMIT_SECONDS) == 130
    assert "Traceback" not in dev.output.read_text()
    assert dev.left_over() == []


def test_stop_removes_what_a_killed_one_has_left(dev: Dev) -> None:
    running = dev.start("serve")
    dev.wait_until_served(running)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait(10)
    assert {"postgresql.pid", "redis.pid", "web.pid", "worker.pid", "beat.pid"} <= set(dev.left_over())
    done = dev.run("stop")
    assert done.returncode == 0, done.stderr
    assert dev.left_over() == []


def test_a_service_that_dies_is_reported_with_its_last_words(dev: Dev) -> None:
    running = dev.start("serve")
    dev.wait_until_served(running)
    web = processes.running(dev.var / "run" / "web.pid")
    assert web is not None
    processes.signal_process(web, signal.SIGKILL)
    assert running.wait(LIMIT_SECONDS) == 1
    assert "web has ended; the end of" in dev.output.read_text()
    assert dev.left_over() == []
