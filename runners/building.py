# SPDX-License-Identifier: BSD-2-Clause
"""Builds stacks, and kernels that count, on the hosts of a testbed.

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


class Stacks:
    """Builds the stacks of a run; `patched` are the keys of those with a patch."""

    def __init__(self, plays: Plays, patched: set[str]) -> None:
        self.plays = plays
        self.patched = patched
        self.bases: dict[tuple[str, ...], str] = {}

    def in_order(self, builds: Sequence[Build]) -> list[Build]:
        """Returns the builds, those without a patch first."""
        return sorted(builds, key=lambda build: build.key in self.patched)

    def build(self, build: Build, sources: Path) -> Mapping[str, Any]:
        """Builds packed sources; a build with a patch uses what the first one without, and with its options, has
        compiled.
        """
        options, with_patch = tuple(build.options), build.key in self.patched
        outcome = self._play(build, sources, self.bases.get(options, "") if with_patch else "")
        if not with_patch:
            self.bases.setdefault(options, str(outcome["prefix"]))
        return outcome

    def _play(self, build: Build, sources: Path, base: str) -> Mapping[str, Any]:
        return self.plays.build(build.key, sources, build.options, base)


class Kernels(Stacks):
    """Builds the kernels of a run."""

    def _play(self, build: Build, sources: Path, base: str) -> Mapping[str, Any]:
        with tempfile.NamedTemporaryFile(dir=sources.parent, suffix=".both") as both:
            with sources.open("rb") as file:
                shutil.copyfileobj(file, both)
            both.write(lane.archive())
            both.flush()
            return self.plays.build_kernel(lane.build_key(build.key), Path(both.name), base, build.options)
