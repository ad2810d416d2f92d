# SPDX-License-Identifier: BSD-2-Clause
"""Data that a run of the gate stores for later ones of all clones on this machine: caches, and durations of jobs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from tests.gate.scheduler import Outcome


def cache(name: str = "") -> Path:
    """A directory that all clones of this user share (XDG Base Directory Specification 0.8)."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = home / "perfweb" / name
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def recorded() -> dict[str, float]:
    """Durations of the jobs that have passed on this machine, by name, each as of its last run."""
    try:
        found = json.loads((cache() / "durations.json").read_text(encoding="utf-8"))
        return {str(name): float(seconds) for name, seconds in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def record(outcomes: Sequence[Outcome]) -> None:
    """Store the durations of the jobs that have passed: a failed one may have ended early."""
    seconds = recorded() | {outcome.job.name: round(_duration(outcome), 1) for outcome in outcomes if outcome.passed}
    new = cache() / f"durations.json.{os.getpid()}"
    new.write_text(json.dumps(seconds, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    new.replace(cache() / "durations.json")


def _duration(outcome: Outcome) -> float:
    """Seconds of a job that mostly waits; CPU seconds of another one, which other load hardly changes."""
    return outcome.seconds if outcome.job.cpus == 0 else outcome.cpu_seconds
