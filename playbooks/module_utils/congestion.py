# SPDX-License-Identifier: BSD-2-Clause
"""Congestion controls that a network namespace may choose.

Only the first network namespace of a machine may choose any; the others take what the machine allows to everybody
(tcp_allowed_congestion_control, tcp(7)).  So one is allowed for the moment in which a namespace chooses it.
"""

from __future__ import annotations

import fcntl
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KEPT = Path("/run/perfweb/allowed_congestion_control")
"""What the machine allowed before, while it is made to allow more."""
_SYSCTL = "net.ipv4.tcp_allowed_congestion_control"


@contextmanager
def allowed(name: str, machine: str = "") -> Iterator[None]:
    """As long as it lasts every namespace of this machine may choose that congestion control.

    `machine` is a file that is the machine's first namespace, for who is in another one.  Raises OSError where it
    cannot be allowed, such as in a container.
    """
    with _alone(machine):
        before = _sysctl(machine, "-n", _SYSCTL).strip()
        if name in before.split():
            yield
            return
        KEPT.write_text(before, encoding="ascii")
        try:
            _allow(machine, f"{before} {name}")
            yield
        finally:
            _put_back(machine)


def put_back(machine: str = "") -> None:
    """Undoes what somebody has left who was killed while a congestion control was allowed."""
    if KEPT.exists():
        with _alone(machine):
            pass


@contextmanager
def _alone(machine: str) -> Iterator[None]:
    """One at a time, since there is one list for all namespaces."""
    KEPT.parent.mkdir(mode=0o755, exist_ok=True)
    with KEPT.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _put_back(machine)
        yield


def _put_back(machine: str) -> None:
    # Whoever was killed before the file was complete had changed nothing yet.
    if KEPT.exists():
        # It is written through sysctl(8) as root: nothing but names passes.
        before = KEPT.read_text(encoding="ascii", errors="replace").strip()
        if before and re.fullmatch(r"[a-z0-9_]{1,15}( [a-z0-9_]{1,15})*", before) is not None:
            _allow(machine, before)
        KEPT.unlink()


def _allow(machine: str, names: str) -> None:
    _sysctl(machine, "-qw", f"{_SYSCTL}={names}")


def _sysctl(machine: str, *words: str) -> str:
    """What sysctl(8) says in the machine's first namespace."""
    enter = ["nsenter", f"--net={machine}", "--"] if machine else []
    done = subprocess.run([*enter, "sysctl", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"`sysctl {' '.join(words)}` failed: {done.stderr.strip()}")
    return done.stdout
