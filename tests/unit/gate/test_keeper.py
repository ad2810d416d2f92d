# SPDX-License-Identifier: BSD-2-Clause
"""Whatever way a job ends, nothing that it started stays, and all CPU time is counted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from playbooks.module_utils import processes
from tests.gate import scheduler as scheduling
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


SIGNALLED = """\
import os, signal, subprocess, sys, time
from tests.gate import keeper
moment, ready = sys.argv[1:]
first = []
def signalled(call):
    def report(*words):
        found = call(*words)
        if moment == "reported" and found and first[:1] == [found[0]]:
            first[0] = 0
            os.kill(os.getpid(), signal.SIGINT)
        return found
    return report
class Popen(subprocess.Popen):
    def __init__(self, *words, **options):
        super().__init__(*words, **options)
        first.append(self.pid)
        if moment == "started" and len(first) == 1:
            while not os.path.exists(ready) or os.path.getsize(ready) == 0:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)
subprocess.Popen, os.waitpid, os.waitid = Popen, signalled(os.waitpid), signalled(os.waitid)
keeper.END_SECONDS = 1.0
sys.exit(keeper.main())
"""
CLEANED = ("sh", "-c", 'echo "$0" up', "cleaned")


def signal_when(monkeypatch: pytest.MonkeyPatch, moment: str, ready: Path, *prefix: str) -> None:
    """Let the keeper get SIGINT when its first command was "started" and wrote `ready`, when its end was "reported",
    or "never".
    """
    monkeypatch.setattr(scheduling, "KEEPER", (*prefix, sys.executable, "-c", SIGNALLED, moment, str(ready)))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def test_a_signal_when_the_last_process_has_just_ended(
    scheduler: Scheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signal_when(monkeypatch, "reported", tmp_path)
    [outcome] = run_jobs(scheduler, [Job("job", (("true",), ("echo", "next")), cleanup=(CLEANED,))])
    assert outcome.status == 130
    assert outcome.log.read_text().splitlines()[-1] == "cleaned up"
    assert "next" not in outcome.log.read_text()


def test_a_signal_when_a_command_has_just_ended_and_left_a_daemon(
    scheduler: Scheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemon = tmp_path / "daemon"
    signal_when(monkeypatch, "reported", daemon)
    [outcome] = run_jobs(scheduler, [Job("job", (leave(daemon),), cleanup=(CLEANED,))])
    assert outcome.status == 130
    assert outcome.log.read_text().splitlines()[-1] == "cleaned up"
    assert not alive(daemon)


def test_a_command_is_interrupted_by_a_signal_during_its_start(
    scheduler: Scheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "ready"
    signal_when(monkeypatch, "started", ready)
    trapped = ("sh", "-c", 'trap "echo interrupted; exit" INT; echo >"$0"; sleep 600 & wait', str(ready))
    [outcome] = run_jobs(scheduler, [Job("job", (trapped,), cleanup=(CLEANED,))])
    assert outcome.status == 130
    assert outcome.log.read_text().splitlines()[-3] == "interrupted"
    assert outcome.log.read_text().splitlines()[-1] == "cleaned up"


@pytest.mark.parametrize("moment", ["never", "started"])
def test_commands_do_not_inherit_blocked_signals(
    scheduler: Scheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    ready = tmp_path / "ready"
    signal_when(monkeypatch, moment, ready)
    step = ("sh", "-c", 'echo >"$0"; [ "$1" = never ] || sleep 600', str(ready), moment)
    words = "for name in INT TERM HUP ALRM; do sh -c 'kill -'$name' $$; echo blocked'; echo \"$name $?\"; done"
    each = ("bash", "-c", words)
    [outcome] = run_jobs(scheduler, [Job("job", (step, each), cleanup=(each,))])
    lines = outcome.log.read_text().splitlines()
    assert "blocked" not in lines
    for name, number in (("INT", 130), ("TERM", 143), ("HUP", 129), ("ALRM", 142)):
        assert lines.count(f"{name} {number}") == (2 if moment == "never" else 1)


FOREIGN = 'exec 3>"$0"; exec setpriv --reuid=65534 sh -c "echo \\$\\$ >&3; exec sleep 600"'
"""A shell command becomes a process of another user, with its number in the file."""
WITHOUT_KILL = ("setpriv", "--bounding-set=-kill")
"""Without this capability the superuser may not signal processes of other users."""


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Path]:
    """The number of a process that a keeper may not signal: it is ended after the test."""
    assert os.geteuid() == 0, "start the tests as root: this one needs a process of another user"
    path = tmp_path / "foreign"
    yield path
    process = processes.identify(int(path.read_text()))
    assert process is not None
    processes.signal_process(process, signal.SIGKILL)


def test_a_process_that_may_not_be_signalled_is_reported_and_the_others_end(
    scheduler: Scheduler, tmp_path: Path, foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    daemons = [tmp_path / "before", tmp_path / "after"]
    signal_when(monkeypatch, "never", foreign, *WITHOUT_KILL)
    left = ("sh", "-c", f'sh -c \'{FOREIGN}\' "$0" & until [ -s "$0" ]; do sleep 0.01; done', str(foreign))
    [outcome] = run_jobs(scheduler, [Job("job", (leave(daemons[0]), left, leave(daemons[1])))])
    assert not any(map(alive, daemons))
    assert outcome.status == 1
    last = outcome.log.read_text().splitlines()[-1]
    assert "may not" in last
    assert foreign.read_text().strip() in last


def test_an_interrupted_command_that_may_not_be_signalled(
    scheduler: Scheduler, tmp_path: Path, foreign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signal_when(monkeypatch, "started", foreign, *WITHOUT_KILL)
    [outcome] = run_jobs(scheduler, [Job("job", (("sh", "-c", FOREIGN, str(foreign)),), cleanup=(CLEANED,))])
    assert outcome.status == 130
    number, lines = foreign.read_text().strip(), outcome.log.read_text().splitlines()
    assert "cleaned up" in lines
    assert len([line for line in lines if "may not" in line and number in line]) == 3


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
