# SPDX-License-Identifier: BSD-2-Clause
"""Whatever way a job ends, nothing that it started stays, and all CPU time is counted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from playbooks.module_utils import processes
from tests.gate.scheduler import Argv, Job, Scheduler, run_jobs

ROOT = Path(__file__).resolve().parents[3]

DAEMON = """\
import os, signal, sys, time
if os.fork():
    os._exit(0)
os.setsid()
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
if os.fork():
    os._exit(0)
while sum(os.times()[:2]) < float(sys.argv[2]):
    pass
with open(sys.argv[1] + ".new", "w") as file:
    print(os.getpid(), file=file)
os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(600)
"""


def leave(path: Path, then: str = ":", cpu_seconds: float = 0.0) -> Argv:
    """A command that leaves a daemon, with its number in `path`, and continues with a shell command."""
    script = '"$0" -c "$1" "$2" "$3"; until [ -e "$2" ]; do sleep 0.01; done; ' + then
    return ("sh", "-c", script, sys.executable, DAEMON, str(path), str(cpu_seconds))


def alive(path: Path) -> bool:
    return processes.identify(int(path.read_text())) is not None


@pytest.fixture
def scheduler(tmp_path: Path) -> Scheduler:
    return Scheduler(2, 1, tmp_path / "log", list[str]().append, grace=1)


@pytest.mark.parametrize(
    ("then", "status"),
    [
        ("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 137),
        ("kill -INT $PPID; sleep 600", 130), ("kill -ALRM $PPID; sleep 600", 124),
    ],
)  # fmt: skip
def test_a_daemon_ends_with_its_job(scheduler: Scheduler, tmp_path: Path, then: str, status: int) -> None:
    daemon = tmp_path / "daemon"
    scheduler.limit = 3600
    [outcome] = run_jobs(scheduler, [Job("job", (leave(daemon, then),))])
    assert outcome.status == status
    assert not alive(daemon)


def test_a_daemon_lives_from_one_step_to_the_clean_up(scheduler: Scheduler, tmp_path: Path) -> None:
    daemon = tmp_path / "daemon"
    lives = ("sh", "-c", 'kill -0 "$(cat "$0")" && echo lives', str(daemon))
    [outcome] = run_jobs(scheduler, [Job("job", (leave(daemon), lives), cleanup=(lives,))])
    assert outcome.passed
    assert outcome.log.read_text().count("\nlives\n") == 2
    assert not alive(daemon)


def test_the_cpu_seconds_of_a_daemon_are_those_of_its_job(scheduler: Scheduler, tmp_path: Path) -> None:
    [outcome] = run_jobs(scheduler, [Job("job", (leave(tmp_path / "daemon", cpu_seconds=0.4),))])
    assert outcome.cpu_seconds >= 0.4


def test_orphans_that_end_are_no_zombies(scheduler: Scheduler, tmp_path: Path) -> None:
    orphan = '( (echo $BASHPID >"$0") & ); until ! [ -e /proc/$(cat "$0") ]; do sleep 0.01; done'
    [outcome] = run_jobs(scheduler, [Job("job", (("bash", "-c", orphan, str(tmp_path / "orphan")),))])
    assert outcome.passed


SCHEDULED = """\
import sys
from pathlib import Path
from tests.gate.scheduler import Job, Scheduler, run_jobs
words = tuple(sys.argv[2:])
run_jobs(Scheduler(2, 1, Path(sys.argv[1]) / "log", grace=1), [Job("job", (words,))])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_daemon_ends_with_the_scheduler(tmp_path: Path, number: signal.Signals) -> None:
    daemon = tmp_path / "daemon"
    argv = ["env", "--default-signal=INT", sys.executable, "-c", SCHEDULED, str(tmp_path), *leave(daemon, "sleep 600")]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as scheduler:
        while not daemon.exists():
            assert scheduler.poll() is None
            time.sleep(0.01)
        process = processes.identify(int(daemon.read_text()))
        assert process is not None
        os.kill(scheduler.pid, number)
    assert processes.wait_until_gone(process, 60)
