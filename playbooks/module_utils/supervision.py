# SPDX-License-Identifier: BSD-2-Clause
"""One command under supervision: pinned in time, its output kept, nothing of it left behind."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.processes import identify, kill_session, write_pid_file

OUTPUT_LIMIT = 64 * 1024 * 1024
"""Bytes in any file that a command writes; one that writes more gets SIGXFSZ."""


# The command dies with the module that started it, and fills no disk.
LEASH = ("prlimit", f"--fsize={OUTPUT_LIMIT}", "setpriv", "--pdeathsig", "KILL", "--")


class ControllerGoneError(Exception):
    """Nobody reads this module's answer any more."""


def _wait(child: subprocess.Popen[bytes], timeout: float) -> bool:
    """Waits for the end of a command; False when the time is up.

    The module's standard output is the SSH channel.  It hangs up when the
    controller was cancelled or has died: then nobody would stop the command.
    """
    poll = select.poll()
    descriptor = os.pidfd_open(child.pid)
    try:
        poll.register(descriptor, select.POLLIN)
        poll.register(1, 0)
        events = dict(poll.poll(timeout * 1000))
    finally:
        os.close(descriptor)
    if descriptor in events:
        return True
    if events:
        raise ControllerGoneError
    return False


def _text(file: Any) -> str:
    file.seek(0)
    return bytes(file.read()).decode("utf-8", errors="backslashreplace")


def run_once(argv: list[str], *, timeout: float, directory: str, pid_directory: str) -> dict[str, Any]:
    """Runs one command to its end, its limit, or the end of the controller's interest.

    Returns a sample: `rc` (negative is the number of the signal that ended it),
    `stdout`, `stderr`, `started` (seconds since 1970), `seconds`, `timed_out`.
    While the command runs its pid file lies in `pid_directory`.  Raises
    ControllerGoneError when nobody waits for the answer any more.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        started, clock = time.time(), time.monotonic()
        child = subprocess.Popen(
            [*LEASH, *argv],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            cwd=directory,
            start_new_session=True,
        )
        process = identify(child.pid)
        pid_file = Path(pid_directory) / f"command-{child.pid}.pid"
        if process is not None:
            write_pid_file(pid_file, process)
        try:
            finished = _wait(child, timeout)
        finally:
            if process is not None:
                kill_session(process)
            rc = child.wait()
            pid_file.unlink(missing_ok=True)
        return {
            "rc": rc,
            "stdout": _text(stdout),
            "stderr": _text(stderr),
            "started": started,
            "seconds": time.monotonic() - clock,
            "timed_out": not finished,
        }
