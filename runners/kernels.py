# SPDX-License-Identifier: BSD-2-Clause
"""Builds of kernels that count, on the host of a testbed.

A build executes its sources, so a patch can leave anything in the cache of its build. What was compiled without a patch
is used again for patches, and never the reverse, whichever order a plan has.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfweb.builds.models import Build
from perfweb.runs.planfile import PATCH, PlanSpec
from runners.ansible.plays import Plays
from runners.counted import lane


def patched(plan: PlanSpec, builds: Mapping[str, str]) -> set[str]:
    """Returns the keys of builds that only variants with a patch have; `builds` has the key of each variant's."""
    with_patch = {variant.name for variant in plan.variants if variant.source.partition(" ")[0] == PATCH}
    without = {key for name, key in builds.items() if name not in with_patch}
    return set(builds.values()) - without


class Kernels:
    """Builds the kernels of a run; `patched` are the keys of those with a patch."""

    def __init__(self, plays: Plays, patched: set[str]) -> None:
        self.plays = plays
        self.patched = patched
        self.base = ""

    def in_order(self, builds: Sequence[Build]) -> list[Build]:
        """Returns the builds, those without a patch first."""
        return sorted(builds, key=lambda build: build.key in self.patched)

    def build(self, build: Build, sources: Path) -> Mapping[str, Any]:
        """Builds a kernel of packed sources; one with a patch uses what the first one without has compiled."""
        base = self.base if build.key in self.patched else ""
        with tempfile.NamedTemporaryFile(dir=sources.parent, suffix=".both") as both:
            with sources.open("rb") as file:
                shutil.copyfileobj(file, both)
            both.write(lane.archive())
            both.flush()
            outcome = self.plays.build_kernel(lane.build_key(build.key), Path(both.name), base)
        if build.key not in self.patched:
            self.base = self.base or str(outcome["prefix"])
        return outcome
