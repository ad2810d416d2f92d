# SPDX-License-Identifier: BSD-2-Clause
"""Storage of a bench's numbers, beside the page made from them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.stack.builds import ROOT

BENCH = Path(os.environ.get("PERFWEB_VAR", ROOT / "var")) / "bench"
BOOT = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()  # another key for another machine


def keep(name: str, document: Mapping[str, object]) -> Path:
    """Writes `BENCH/name.json`."""
    BENCH.mkdir(parents=True, exist_ok=True)
    path = _path(name)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


def kept(name: str) -> dict[str, Any]:
    """Load such a file; FileNotFoundError if there is none."""
    path = _path(name)
    if not path.exists():
        raise FileNotFoundError(f"nothing has been measured yet: there is no {path}")
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def _path(name: str) -> Path:
    return BENCH / f"{name}.json"
