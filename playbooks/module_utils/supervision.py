# SPDX-License-Identifier: BSD-2-Clause
"""Runs one command under supervision: with a time limit, its output kept, and all its processes ended afterwards."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, Any

from ansible.module_utils.processes import adopt_orphans, end_children, identify, kill_session, write_pid_file
from ansible.module_utils.sandbox import FILE_LIMIT

TEXT_LIMIT = 8 * 1024 * 1024
"""Max bytes of a program's output that are returned; from longer output the middle is left out."""
FAILURE_LIMIT = 100_000
"""Max characters of output in a failure: ansible-runner drops a failure of 700 000 characters with its escapes."""


# The command dies with the module that started it, and cannot fill the disk.
LEASH = ("prlimit", f"--fsize={FILE_LIMIT}", "setpriv", "--pdeathsig", "KILL", "--")


class ControllerGoneError(Exception):
    """The controller has disconnected, so nothing reads this module's result."""


def _wait(child: subprocess.Popen[bytes], timeout: float) -> bool:
    """Waits for the end of a command; False on time-out.

    The module's standard output is the SSH channel. It closes when the controller was cancelled or has died; then
    nothing else would stop the command.
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


def text_of(file: IO[bytes], limit: int = TEXT_LIMIT) -> str:
    """Returns what a program wrote into a file, limited to that many bytes and a note."""
    size, half = file.seek(0, os.SEEK_END), limit // 2
    file.seek(0)
    if size <= limit:
        content = file.read()
    else:
        begin, _ = file.read(half), file.seek(size - half)
        content = begin + f"\n[{size - 2 * half} bytes left out]\n".encode() + file.read(half)
    return content.decode("utf-8", errors="backslashreplace")


def last_words(output: str) -> str:
    """Returns the last lines of a program's output, for an error message."""
    return "\n".join(output.splitlines()[-20:])[-10_000:]


def run_once(argv: list[str], *, timeout: float, directory: str, pid_directory: str) -> dict[str, Any]:
    """Runs one command until its end, its time limit, or until the controller disconnects.

    Returns a sample: `rc` (negative is the number of the signal that ended it), `stdout`, `stderr`, `started` (seconds
    since 1970), `seconds`, `timed_out`. While the command runs its pid file is in `pid_directory`. On return no process
    of the command runs, and no descendant that this process had before. Raises ControllerGoneError when the controller
    no longer waits for the result.
    """
    adopt_orphans()
    with contextlib.ExitStack() as files:
        stdout = files.enter_context(tempfile.TemporaryFile())
        stderr = files.enter_context(tempfile.TemporaryFile())
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
            seconds = time.monotonic() - clock
            end_children()
            pid_file.unlink(missing_ok=True)
        return {
            "rc": rc,
            "stdout": text_of(stdout),
            "stderr": text_of(stderr),
            "started": started,
            "seconds": seconds,
            "timed_out": not finished,
        }
