# SPDX-License-Identifier: BSD-2-Clause
"""A control group (cgroups(7)) that limits the memory of all untrusted programs of a host together.

It takes the place of a limit of addresses (RLIMIT_AS), under which no program with a sanitizer runs: the address
sanitizer reserves 16 TB that it never touches.  RLIMIT_DATA counts these as well.  A group counts what is touched, also
in file systems in memory, and the kernel kills in the group when its limit is reached.
"""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
NAME = "perfweb-programs"
_LIMITS = {
    1: ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
    2: ("memory.max", "memory.swap.max"),
}


@functools.cache
def joined_by(size: int, name: str = NAME) -> str:
    """The file by which a process joins the group `name`, whose limit is `size` bytes.

    The group is made where there is none, and stays: a host has one.  Empty where the host lets no group be made, as in
    most containers.
    """
    version = 1 if (ROOT / "memory" / "cgroup.procs").exists() else 2
    root = ROOT / "memory" if version == 1 else ROOT
    memory, swap = _LIMITS[version]
    try:
        if version == 2 and "memory" not in (root / "cgroup.subtree_control").read_text(encoding="ascii").split():
            (root / "cgroup.subtree_control").write_text("+memory", encoding="ascii")
        group = root / name
        group.mkdir(exist_ok=True)
        if version == 1:
            _write(group / swap, "-1")  # the limit of memory may never be above this one
        (group / memory).write_text(str(size), encoding="ascii")
        _write(group / swap, str(size) if version == 1 else "0")
        limited = int((group / memory).read_text(encoding="ascii")) <= size
    except (OSError, ValueError):
        return ""
    return str(group / "cgroup.procs") if limited and (group / "cgroup.procs").exists() else ""


def _write(limit: Path, value: str) -> None:
    """Sets a limit of swap, where the kernel counts it."""
    with contextlib.suppress(OSError):
        limit.write_text(value, encoding="ascii")
