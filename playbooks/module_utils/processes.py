# SPDX-License-Identifier: BSD-2-Clause
"""Processes that outlive their parent: how they are identified and stopped.

A process id alone does not identify a process, because the kernel reuses it. Here a process is its id together with its
start time (field 22 of /proc/PID/stat, proc(5)). A pid file holds both, so that a stale file never leads to another
process. It also holds the leader of its session in the same way. The members of that session and their descendants are
everything that the process has started, except what it explicitly released.

The controller (runners/) and the modules that run on the hosts share this file.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Process:
    """A process that was seen running.

    Times are in clock ticks since boot. `leader_started` is 0 if the leader of the session had ended already.
    """

    pid: int
    started: int
    session: int
    leader_started: int

    def alive(self) -> bool:
        """Returns whether this very process still runs (a zombie does not)."""
        found = identify(self.pid)
        return found is not None and found.started == self.started


def _stat(pid: int) -> list[str] | None:
    """Returns the fields of /proc/PID/stat from the third on; the second may contain anything."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2 :].split()


def identify(pid: int) -> Process | None:
    """Returns the process with that id; None if there is none or only its zombie."""
    fields = _stat(pid)
    if fields is None or fields[0] in "ZX":
        return None
    session = int(fields[3])
    leader = fields if session == pid else _stat(session)
    return Process(pid, int(fields[19]), session, int(leader[19]) if leader else 0)


def read_pid_file(path: Path) -> Process | None:
    """Returns the process of a pid file, running or not; None without a valid file."""
    try:
        pid, started, session, leader_started = (int(word) for word in path.read_text(encoding="ascii").split())
    except (FileNotFoundError, ValueError):
        return None
    return Process(pid, started, session, leader_started)


def write_pid_file(path: Path, process: Process) -> None:
    """Writes the file atomically, so that no reader sees half of it."""
    new = path.with_name(path.name + ".new")
    words = (process.pid, process.started, process.session, process.leader_started)
    new.write_text(" ".join(map(str, words)) + "\n", encoding="ascii")
    new.replace(path)


def running(path: Path) -> Process | None:
    """Returns the process of a pid file if it still runs."""
    process = read_pid_file(path)
    return process if process is not None and process.alive() else None


def spawn(
    argv: Sequence[str],
    *,
    pid_file: Path,
    log: Path,
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Process:
    """Starts a program in a new session, with its output appended to `log`.

    Raises OSError if the program cannot be executed, and RuntimeError if it ended before it could be identified.
    """
    with log.open("ab") as output:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=cwd,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )
    process = identify(child.pid)
    if process is None:
        raise RuntimeError(f"{argv[0]} ended at once with status {child.wait()}; its output is in {log}")
    try:
        write_pid_file(pid_file, process)
    except OSError:  # on a full disk; without its pid file nothing could stop it later
        kill_session(process)
        raise
    return process


def session_members(session: int) -> list[Process]:
    """Returns all processes of a session."""
    numbers = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    return [found for found in map(identify, numbers) if found is not None and found.session == session]


def descendants(parents: set[int]) -> list[Process]:
    """Returns the descendants of these processes, without these; children before their parents."""
    numbers = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    parent_of = {number: int(fields[1]) for number in numbers if (fields := _stat(number))}
    found, generation = [], set(parents)
    while generation:
        generation = {number for number, parent in parent_of.items() if parent in generation} - parents
        found += sorted(filter(None, map(identify, generation)), key=lambda process: process.started)
    return found


def wait_until_gone(process: Process, seconds: float) -> bool:
    """Waits for the end of a process, which need not be a child; False on time-out."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    try:
        if not process.alive():
            return True
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(max(0.0, seconds) * 1000))
    finally:
        os.close(descriptor)


def signal_process(process: Process, number: int) -> None:
    """Sends a signal to exactly this process, or to none if it has ended."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(process.pid)
        try:
            # The descriptor pins the process, so the signal reaches the process that is_alive() tested.
            if process.alive():
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def kill_session(process: Process) -> None:
    """Kills what is left of the session of a process, also when its leader has ended, and all descendants.

    The kernel does not reuse a session's number while the session has members. So if members are found and no other
    process leads it, they belong to the recorded process. The caller's own session was never made for a process.

    A sandbox has a session of its own. Its first process dies with its parent only from shortly after its start
    (bwrap(1), --die-with-parent).
    """
    leader = _stat(process.session)
    reused = leader is not None and int(leader[19]) != process.leader_started
    if reused or process.leader_started == 0 or process.session == os.getsid(0):
        return
    deadline = time.monotonic() + 5
    while (members := session_members(process.session)) and time.monotonic() < deadline:
        _kill_with_descendants(members)


def _kill_with_descendants(parents: list[Process]) -> None:
    """Stops processes before they are killed: a child started after the list was read would have no listed parent.

    Raises PermissionError if this user may not signal some of them, after all others were killed.
    """
    for parent in parents:
        _may_signal(parent, signal.SIGSTOP)
    doomed = [*parents, *descendants({parent.pid for parent in parents})]
    refused = [process for process in doomed if not _may_signal(process, signal.SIGKILL)]
    for process in doomed:
        wait_until_gone(process, 1)
    if left := [str(process.pid) for process in refused if process.alive()]:
        raise PermissionError(f"this user may not end the processes {', '.join(left)}: end them as the superuser")


def _may_signal(process: Process, number: int) -> bool:
    """Sends a signal; returns False if this user may not send it."""
    try:
        signal_process(process, number)
    except PermissionError:
        return False
    return True


def adopt_orphans() -> None:
    """Makes this process the parent of its orphaned descendants (prctl(2), PR_SET_CHILD_SUBREAPER)."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_children(seconds: float = 5.0) -> None:
    """Kills and reaps all descendants and adopted processes.

    bubblewrap ends before the PID namespace that it has made. The first process of a namespace ends after all others in
    it (pid_namespaces(7)), so once it is reaped nothing of the sandbox runs.

    Raises TimeoutError if some do not end in time, and PermissionError if this user may not signal them.
    """
    deadline = time.monotonic() + seconds
    refused: PermissionError | None = None
    while True:
        try:
            reaped, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        left = [] if reaped else descendants({os.getpid()})
        if left and time.monotonic() > deadline:
            numbers = ", ".join(str(one.pid) for one in left)
            raise refused or TimeoutError(f"processes do not end after SIGKILL: {numbers}")
        try:
            _kill_with_descendants(left)
        except PermissionError as error:  # they may still end by themselves
            refused = error


def stop(pid_file: Path, *, grace: float = 5.0, number: int = signal.SIGTERM) -> bool:
    """Stops the process of a pid file and all that it started; returns whether it ran.

    The process gets the signal `number` first and has `grace` seconds to end by itself. A file that names an ended
    process is removed, and no process gets a signal.
    """
    process = read_pid_file(pid_file)
    if process is None:
        pid_file.unlink(missing_ok=True)
        return False
    ran = process.alive()
    if ran:
        signal_process(process, number)
        wait_until_gone(process, grace)
    kill_session(process)
    pid_file.unlink(missing_ok=True)
    return ran
