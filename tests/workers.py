# SPDX-License-Identifier: BSD-2-Clause
"""Gives each worker of pytest-xdist its own directory and Redis database; pytest-django gives it a PostgreSQL database.

This is a plugin and not part of conftest.py because Django's settings read the environment before that is loaded.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def separate(worker: str) -> None:
    """Changes the environment of a worker such as `gw0`, and of the processes that its tests start."""
    os.environ["PERFWEB_REDIS_DB"] = str(1 + int(worker.removeprefix("gw")))
    os.environ["PERFWEB_VAR"] = str(Path(os.environ.get("PERFWEB_VAR", ROOT / "var")) / worker)


if "PYTEST_XDIST_WORKER" in os.environ:
    separate(os.environ["PYTEST_XDIST_WORKER"])
