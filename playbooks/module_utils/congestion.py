# SPDX-License-Identifier: BSD-2-Clause
"""Temporary permission for a network namespace to choose its congestion control.

Only the first network namespace of a machine may choose any; the others may choose those that the machine allows to all
namespaces (tcp_allowed_congestion_control, tcp(7)). So the module allows one for the moment in which a namespace
chooses it.
"""

from __future__ import annotations

import fcntl
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KEPT = Path("/run/perfweb/allowed_congestion_control")
"""The file with the machine's list as it was before the change."""
_SYSCTL = "net.ipv4.tcp_allowed_congestion_control"


@contextmanager
def allowed(name: str, machine: str = "") -> Iterator[None]:
    """A context in which every namespace of this machine may choose that congestion control.

    `machine` is the file of the machine's first namespace, for a caller in another one. Raises OSError where the list
    cannot be changed, for example in a container.
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
    """Restores the list after a process was killed in the context."""
    if KEPT.exists():
        with _alone(machine):
            pass


@contextmanager
def _alone(machine: str) -> Iterator[None]:
    """Lets one process at a time change the list, because all namespaces share it."""
    KEPT.parent.mkdir(mode=0o755, exist_ok=True)
    with KEPT.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _put_back(machine)
        yield


def _put_back(machine: str) -> None:
    # An incomplete file means that its writer was killed before it changed anything.
    if KEPT.exists():
        # Root writes it through sysctl(8), so only names are accepted.
        before = KEPT.read_text(encoding="ascii", errors="replace").strip()
        if before and re.fullmatch(r"[a-z0-9_]{1,15}( [a-z0-9_]{1,15})*", before) is not None:
            _allow(machine, before)
        KEPT.unlink()


def _allow(machine: str, names: str) -> None:
    _sysctl(machine, "-qw", f"{_SYSCTL}={names}")


def _sysctl(machine: str, *words: str) -> str:
    """Runs sysctl(8) in the machine's first namespace and returns its output."""
    enter = ["nsenter", f"--net={machine}", "--"] if machine else []
    done = subprocess.run([*enter, "sysctl", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"`sysctl {' '.join(words)}` failed: {done.stderr.strip()}")
    return done.stdout
