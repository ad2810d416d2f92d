# SPDX-License-Identifier: BSD-2-Clause
"""A control group (cgroups(7)) that limits the memory of all untrusted programs of a host together.

It replaces a limit of address space (RLIMIT_AS), under which no program with a sanitizer runs: the address sanitizer
reserves 16 TB that it never touches. RLIMIT_DATA counts these, too. A group counts only touched pages, including those
of in-memory file systems. At its limit the kernel kills processes of the group only.
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
    """Returns the file by which a process joins the group `name`, whose limit is `size` bytes.

    Makes the group if it does not exist; it is never removed, because a host has only one. Empty if the host does not
    allow a group, as in most containers.
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
            _write(group / swap, "-1")  # memory.max may never exceed this
        (group / memory).write_text(str(size), encoding="ascii")
        _write(group / swap, str(size) if version == 1 else "0")
        limited = int((group / memory).read_text(encoding="ascii")) <= size
    except (OSError, ValueError):
        return ""
    return str(group / "cgroup.procs") if limited and (group / "cgroup.procs").exists() else ""


def _write(limit: Path, value: str) -> None:
    """Sets a limit of swap, if the kernel counts it."""
    with contextlib.suppress(OSError):
        limit.write_text(value, encoding="ascii")
