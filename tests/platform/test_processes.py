# SPDX-License-Identifier: BSD-2-Clause
"""Pid files identify a process permanently: a reused number does not match."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from playbooks.module_utils import processes
from playbooks.module_utils.sandbox import HOST_NETWORK, Sandbox, confined


def _sleeper(directory: Path, *argv: str) -> processes.Process:
    return processes.spawn(argv or ("sleep", "60"), pid_file=directory / "x.pid", log=directory / "x.log")


def test_a_started_process_is_found_by_its_pid_file_and_stopped(tmp_path: Path) -> None:
    process = _sleeper(tmp_path)
    assert processes.running(tmp_path / "x.pid") == process
    assert process.session == process.pid != os.getsid(0)
    assert processes.stop(tmp_path / "x.pid")
    assert not process.alive()
    assert not (tmp_path / "x.pid").exists()


def test_stopping_twice_is_no_error(tmp_path: Path) -> None:
    _sleeper(tmp_path)
    assert processes.stop(tmp_path / "x.pid")
    assert not processes.stop(tmp_path / "x.pid")


def test_a_stale_pid_file_never_names_another_process(tmp_path: Path) -> None:
    unrelated = _sleeper(tmp_path)
    stale = dataclasses.replace(unrelated, started=unrelated.started - 1, leader_started=unrelated.leader_started - 1)
    processes.write_pid_file(tmp_path / "stale.pid", stale)
    assert not processes.stop(tmp_path / "stale.pid", grace=0.1)
    assert unrelated.alive()
    assert processes.stop(tmp_path / "x.pid")


def test_the_session_of_another_process_survives_a_stale_pid_file(tmp_path: Path) -> None:
    """The pid was reused for a process in another session, which is older than the record."""
    shell = _sleeper(tmp_path, "sh", "-c", "sleep 60 & echo ready; wait")
    while b"ready" not in (tmp_path / "x.log").read_bytes():
        pass
    child = next(found for found in processes.session_members(shell.session) if found != shell)
    for forged in (
        dataclasses.replace(child, started=child.started - 1, session=child.pid, leader_started=child.started - 1),
        dataclasses.replace(child, started=child.started - 1, leader_started=shell.started - 1),
    ):
        processes.write_pid_file(tmp_path / "stale.pid", forged)
        assert not processes.stop(tmp_path / "stale.pid", grace=0.1)
    assert child.alive()
    assert shell.alive()
    processes.stop(tmp_path / "x.pid")


def test_the_own_session_is_never_killed(tmp_path: Path) -> None:
    child = subprocess.Popen(["sleep", "60"])
    process = processes.identify(child.pid)
    assert process is not None
    processes.write_pid_file(tmp_path / "own.pid", dataclasses.replace(process, started=process.started - 1))
    assert not processes.stop(tmp_path / "own.pid")
    assert process.alive()
    child.kill()
    child.wait()


@pytest.mark.parametrize("content", ["", "12", "a b c", "1 2 3 4 5"])
def test_a_broken_pid_file_is_removed_and_nobody_is_signalled(tmp_path: Path, content: str) -> None:
    path = tmp_path / "broken.pid"
    path.write_text(content)
    assert not processes.stop(path)
    assert not path.exists()


def test_a_process_that_ignores_the_signal_is_killed_with_its_children(tmp_path: Path) -> None:
    process = _sleeper(tmp_path, "sh", "-c", "trap '' TERM; sleep 60 & echo ready; while :; do wait; sleep 1; done")
    while b"ready" not in (tmp_path / "x.log").read_bytes():
        pass
    assert len(processes.session_members(process.session)) == 2
    assert processes.stop(tmp_path / "x.pid", grace=0.2)
    assert processes.session_members(process.session) == []


def test_children_are_killed_also_when_their_leader_has_died(tmp_path: Path) -> None:
    process = _sleeper(tmp_path, "sh", "-c", "sleep 60 & echo ready; wait")
    while b"ready" not in (tmp_path / "x.log").read_bytes():
        pass
    processes.signal_process(process, signal.SIGKILL)
    assert processes.wait_until_gone(process, 5)
    assert not processes.stop(tmp_path / "x.pid")
    assert processes.session_members(process.session) == []


def test_a_child_with_a_session_of_its_own_is_killed_as_well(tmp_path: Path) -> None:
    process = _sleeper(tmp_path, "sh", "-c", "setsid sh -c 'echo ready; exec sleep 60' & wait")
    while b"ready" not in (tmp_path / "x.log").read_bytes():
        pass
    (child,) = processes.descendants({process.pid})
    assert child.session != process.session
    processes.kill_session(process)
    assert not child.alive()


def test_a_sandbox_that_has_just_begun_is_killed_whole(tmp_path: Path) -> None:
    """At any moment: its children die with their parent only from shortly after their start."""
    mark = f"61{os.getpid()}"
    argv = confined(["sleep", mark], Sandbox(61000, network=HOST_NETWORK))
    for attempt in range(40):
        process = _sleeper(tmp_path, *argv)
        time.sleep(attempt * 0.0001)
        processes.kill_session(process)
    # A sandbox needs this long to start.
    time.sleep(1)
    assert subprocess.run(["pgrep", "-a", "-f", f"sleep {mark}"], capture_output=True, check=False).stdout == b""


def test_a_program_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        _sleeper(tmp_path, "/no/such/program")
