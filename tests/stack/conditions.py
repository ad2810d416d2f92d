# SPDX-License-Identifier: BSD-2-Clause
"""The conditions that the samples of several calls of a bench must share to form one table."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from tests.stack.builds import ROOT
from tests.stack.measures import CLIENT_CPU, SERVER_CPU
from tests.stack.results import BOOT


def conditions(seconds: float, *modules: str) -> dict[str, object]:
    """The machine, the length of a sample, and the sources: the stack's, and these `modules` of the bench."""
    return {
        "boot": BOOT, "kernel": platform.release(), "cpus": os.cpu_count(), "client_cpu": CLIENT_CPU,
        "server_cpu": SERVER_CPU, "seconds": seconds, "sources": _sources(*modules),
    }  # fmt: skip


def require_same(then: Mapping[str, Any], now: Mapping[str, object]) -> None:
    """Raise ValueError if stored samples have other conditions."""
    if other := [name for name, value in now.items() if then.get(name) != value]:
        raise ValueError(f"what is kept was measured with another {', '.join(other)}: leave out --resume")


def _sources(*modules: str) -> str:
    digest = sha256()
    of_stack = (path for path in (ROOT / "stack").rglob("*") if path.suffix in (".c", ".h", ".build"))
    for path in (*sorted(of_stack), *(ROOT / "tests" / "stack" / f"{name}.py" for name in modules)):
        digest.update(path.read_bytes())
    return digest.hexdigest()
