# SPDX-License-Identifier: BSD-2-Clause
"""Runs the commands of one job, and ends every process that they leave.

    python -m tests.gate.keeper <JOB.json

It is the parent of all orphans of the job (prctl(2), PR_SET_CHILD_SUBREAPER). So a daemon, an emulated machine or a
server in a session of its own ends with the job, however the job ends, and its CPU time is part of the job's.

Every command leads its own process group. SIGINT, SIGTERM, SIGHUP, the end of the parent, and the end of the job's time
interrupt that group; the clean-up commands run in any case.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

from playbooks.module_utils.processes import adopt_orphans, end_children

PR_SET_PDEATHSIG = 1
TIMED_OUT = 124
NOT_FOUND = 127
INTERRUPTED = 130
PAUSE_SECONDS = 0.02
END_SECONDS = 30.0
"""Max seconds in which killed processes have to end: a busy machine frees the memory of guests slowly."""
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)


class _StoppedError(Exception):
    """A signal ends the job; its number is the argument."""


def _stop(number: int, _frame: FrameType | None) -> None:
    _ignore()
    raise _StoppedError(number)


def _ignore() -> None:
    """Later signals change nothing. A function is not inherited by commands, as SIG_IGN is."""
    for number in STOPPING:
        signal.signal(number, lambda *_: None)


def _await(pid: int, seconds: float | None = None) -> int | None:
    """Reap ended children until one has ended: its exit status as a shell reports it; None after `seconds`."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while True:
        reaped, status = os.waitpid(-1, 0 if deadline is None else os.WNOHANG)
        if reaped == pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if deadline is not None and time.monotonic() > deadline:
            return None
        if reaped == 0:
            time.sleep(PAUSE_SECONDS)


def _signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return


def _execute(argv: Sequence[str], grace: float) -> int:
    """Run a command to its end; an interrupted one can clean up for `grace` seconds."""
    print(f"$ {' '.join(argv)}", flush=True)
    try:
        leader = subprocess.Popen(argv, stdin=subprocess.DEVNULL, process_group=0)
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", flush=True)
        return NOT_FOUND
    leader.returncode = 0  # it is reaped here
    try:
        status = _await(leader.pid)
    except _StoppedError:
        _signal_group(leader.pid, signal.SIGINT)
        ended = _await(leader.pid, grace)
        _signal_group(leader.pid, signal.SIGKILL)
        if ended is None:
            _await(leader.pid)
        raise
    assert status is not None
    return status


def _run(steps: Sequence[Sequence[str]], grace: float, limit: float | None) -> int:
    """Run commands until one fails; the exit status of the job."""
    try:
        try:
            for number in STOPPING:
                signal.signal(number, _stop)
            signal.setitimer(signal.ITIMER_REAL, limit or 0)
            return next((status for step in steps if (status := _execute(step, grace)) != 0), 0)
        finally:
            _ignore()
    except _StoppedError as stopped:
        if stopped.args[0] != signal.SIGALRM:
            return INTERRUPTED
        print(f"\nnot ended after {limit:g} s: interrupted", flush=True)
        return TIMED_OUT


def main() -> int:
    """Run the job on standard input; its exit status."""
    job = json.load(sys.stdin)
    adopt_orphans()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != job["parent"]:
        return INTERRUPTED
    status = _run(job["steps"], job["grace"], job["limit"])
    for step in job["cleanup"]:
        _execute(step, job["grace"])
    end_children(END_SECONDS)
    return status


if __name__ == "__main__":
    sys.exit(main())
