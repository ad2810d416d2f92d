# SPDX-License-Identifier: BSD-2-Clause
"""A branch with commits of known speed, and a laboratory that measures them at once."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone

from perfweb.accounts.actors import on_server
from perfweb.builds.models import Build, BuildState
from perfweb.runs.models import Run, RunState
from perfweb.runs.planfile import read_plan
from perfweb.tracking.models import TrackedBranch
from perfweb.tracking.scheduler import attend
from perfweb.tracking.services import BranchRequest, track
from tests.checkouts import Checkout
from tests.factories import create_measurements

STREAM, ROUND_TRIPS = "tcp.stream/host-host/ipv4", "tcp.rr/host-host/ipv4"
PLAN = f"""\
name: head
variants:
  - name: direct
    target: stack
    source: commit
    tunables: {{net.isr.dispatch: direct, debug.mpsafenet: 1}}
baseline: direct
tests: [{STREAM}, {ROUND_TRIPS}]
samples: 8
boots: 2
"""
KERNEL = "  - name: kernel\n    target: linux\n"
"""A variant that no commit changes."""


@dataclass
class Laboratory:
    """Measures queued runs: the speed of a commit by its hash and the test, 1.0 unless given."""

    checkout: Checkout
    noise: float = 0.002
    speed: dict[str, float] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    now: datetime = field(default_factory=timezone.now)
    seed: int = 0

    def commit(self, number: int, speed: float = 1.0) -> str:
        """Add another commit of the stack with that speed."""
        self.checkout.put("stack/net/number.c", f"int number = {number};\n")
        sha = self.checkout.commit(f"net: number {number}")
        self.speed[sha] = speed
        return sha

    def round(self) -> list[Run]:
        """Measure the runs that tracking queues now."""
        self.now += timedelta(minutes=2)
        attend(self.now)
        queued = list(Run.objects.filter(state=RunState.QUEUED))
        for run in queued:
            self.measure(run)
        return queued

    def rest(self, most: int = 200) -> list[Run]:
        """Make rounds until nothing is left to do; return all runs."""
        made: list[Run] = []
        for _ in range(most):
            runs = self.round()
            if not runs:
                return made
            made += runs
        raise AssertionError(f"still at work after {most} rounds: {made[-3:]}")

    def measure(self, run: Run) -> None:
        built = {variant.name: variant.build for variant in run.variants.select_related("build") if variant.build}
        commits = {name: self._sha(build) for name, build in built.items()}
        if broken := [build.pk for name, build in built.items() if commits[name] in self.broken]:
            Build.objects.filter(pk__in=broken).update(state=BuildState.FAILED)
            Run.objects.filter(pk=run.pk).update(state=RunState.FAILED, reason="it does not build")
            return
        self.seed += 1
        create_measurements(
            run, [STREAM, ROUND_TRIPS], self.noise, self.seed,
            lambda variant, test: self.level(commits.get(variant, ""), test), read_plan(run.plan.text).boots,
        )  # fmt: skip

    def level(self, sha: str, test: str) -> float:  # noqa: ARG002
        """Return the speed of a commit in a boot, or of the reference, whose hash is empty; called once for each boot
        and test.
        """
        return self.speed.get(sha, 1.0)

    def _sha(self, build: Build) -> str:
        return next(sha for sha in self.speed if sha.startswith(build.revision))


def tracked(since: str = "", **options: object) -> TrackedBranch:
    """The branch main, tracked."""
    usual = {"name": "head", "plan": PLAN, "testbed": "demo", "branch": "main", "since": since}
    wanted = BranchRequest(**{**usual, **options})  # type: ignore[arg-type]
    return track(on_server(), wanted)
