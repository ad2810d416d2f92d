# SPDX-License-Identifier: BSD-2-Clause
"""Runs the commands of one job, and ends every process that they leave.

    python -m tests.gate.keeper <JOB.json

It is the parent of all orphans of the job (prctl(2), PR_SET_CHILD_SUBREAPER). So a daemon, an emulated machine or a
server in a session of its own ends with the job, and its CPU time is part of the job's. Only SIGKILL to the keeper
itself leaves them, and a process that the user may not signal is reported.

Every command leads its own process group. SIGINT, SIGTERM, SIGHUP, the end of the parent, and the end of the job's time
interrupt that group; the clean-up commands run in any case.

A signal raises an exception at any instruction, also between a system call and the use of its result. So signals are
blocked while a command starts. An ended command is reaped only after its status was used: until then its status can be
read again, and its number is not reused.
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
LEFT = 1
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
    """Reap ended children until one has ended, which is not reaped.

    Returns its exit status as a shell reports it; None after `seconds`.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    while True:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | (0 if deadline is None else os.WNOHANG))
        if ended is not None and ended.si_pid == pid:
            return ended.si_status if ended.si_code == os.CLD_EXITED else 128 + ended.si_status
        if ended is not None:
            os.waitpid(ended.si_pid, 0)
        if deadline is not None and time.monotonic() > deadline:
            return None
        if ended is None:
            time.sleep(PAUSE_SECONDS)


def _signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return
    except PermissionError:
        print(f"this user may not send {signal.Signals(number).name} to process group {leader}", flush=True)


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)


def _interrupt(leader: int, grace: float) -> None:
    """End a command and its group. It is not waited for without limit: the user may have no right to signal it."""
    _signal_group(leader, signal.SIGINT)
    _await(leader, grace)
    _signal_group(leader, signal.SIGKILL)
    _await(leader, END_SECONDS)


def _execute(argv: Sequence[str], grace: float) -> int:
    """Run a command to its end; an interrupted one can clean up for `grace` seconds."""
    print(f"$ {' '.join(argv)}", flush=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    try:
        leader = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, process_group=0,
            preexec_fn=_unblock,  # noqa: PLW1509 - the keeper has one thread
        )  # fmt: skip
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", flush=True)
        _unblock()
        return NOT_FOUND
    leader.returncode = 0  # it is reaped here
    try:
        _unblock()
        status = _await(leader.pid)
    except _StoppedError:
        _interrupt(leader.pid, grace)
        raise
    finally:
        os.waitpid(leader.pid, os.WNOHANG)
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


def _clean_up(steps: Sequence[Sequence[str]], grace: float) -> bool:
    """Run the clean-up commands and end all that is left; False if something stays."""
    try:
        for step in steps:
            _execute(step, grace)
    finally:
        try:
            end_children(END_SECONDS)
            ended = True
        except OSError as error:
            print(error, flush=True)
            ended = False
    return ended


def main() -> int:
    """Run the job on standard input; its exit status."""
    job = json.load(sys.stdin)
    adopt_orphans()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != job["parent"]:
        return INTERRUPTED
    try:
        status = _run(job["steps"], job["grace"], job["limit"])
    finally:
        ended = _clean_up(job["cleanup"], job["grace"])
    return status if ended else status or LEFT


if __name__ == "__main__":
    sys.exit(main())
