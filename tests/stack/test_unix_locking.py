# SPDX-License-Identifier: BSD-2-Clause
"""Every locking strategy of UNIX sockets and of descriptors carries the load of unixbench; impossible ones say why."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.stack.topology import Installed, run

STRATEGIES = {
    "giant": "rw",
    "single": "mutex",
    "global": "mutex",
    "rwlock": "rw",
    "pair": "lockless",
    "socket": "mutex",
}


def unixbench(installed: Installed, directory: Path, tunables: Mapping[str, str], *words: str) -> str:
    """What the load says on a stack of its own."""
    conf = directory / "loader.conf"
    conf.write_text("".join(f'{name}="{value}"\n' for name, value in tunables.items()), encoding="ascii")
    return run(f"{installed.prefix}/bin/bootstack", "-c", str(conf), "--", f"{installed.prefix}/bin/unixbench", *words)


@pytest.mark.parametrize(
    ("strategy", "fd_lock", "workload"),
    [*((*locks, "mysql") for locks in STRATEGIES.items()), ("single", "lockless", "simple")],
)
def test_a_load_with_each_strategy(
    installed: Installed, tmp_path: Path, strategy: str, fd_lock: str, workload: str
) -> None:
    tunables = {"unix.sockets": "stack", "unix.locking": strategy, "fd.lock": fd_lock}
    said = unixbench(installed, tmp_path, tunables, "-w", workload, "-n", "4", "-t", "0.2")
    rate = re.fullmatch(r"([0-9]+) transactions/s\n[0-9.]+ CPU seconds\n", said)
    assert rate is not None, said
    assert int(rate[1]) > 0


@pytest.mark.parametrize(
    ("tunables", "reason"),
    [
        (
            {"debug.mpsafenet": "0", "unix.locking": "pair"},
            'unix.locking="pair" with debug.mpsafenet="0": every socket call holds Giant',
        ),
        ({"unix.locking": "none"}, "unix.locking: 'none' is none of giant single global rwlock pair socket"),
        ({"fd.lock": "none"}, "fd.lock: 'none' is none of mutex rw lockless"),
    ],
)
def test_what_cannot_be_is_explained(
    installed: Installed, tmp_path: Path, tunables: dict[str, str], reason: str
) -> None:
    with pytest.raises(AssertionError, match=reason):
        unixbench(installed, tmp_path, {"unix.sockets": "stack", **tunables}, "-t", "0.1")


def test_a_wrong_load_says_how_it_is_called(installed: Installed) -> None:
    with pytest.raises(AssertionError, match="usage: unixbench"):
        run(f"{installed.prefix}/bin/unixbench", "-w", "oracle")
