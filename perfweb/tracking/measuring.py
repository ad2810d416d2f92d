# SPDX-License-Identifier: BSD-2-Clause
"""The runs that tracking makes: of a commit by itself, and of a commit against another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from perfweb.builds import mirrors
from perfweb.builds.models import BuildState
from perfweb.builds.services import source_store
from perfweb.builds.sources import Sources
from perfweb.runs import services as runs
from perfweb.runs.models import FINAL_STATES, Priority, Run, RunState
from perfweb.runs.planfile import BEFORE, COMMIT, LINUX, MOST_SAMPLES, NAME, PlanSpec, read_plan
from perfweb.tracking.models import Alert, Check, TrackedBranch, TrackedCommit

BY = "tracking"
MOST_VARIANTS = 8
"""Max samples of a tracked plan: a run against another commit has twice as many."""
MOST_TRIES = 2
"""Runs of a commit that fail for other reasons than its build, before it is given up."""


class TrackedPlanError(ValueError):
    """The plan does not measure commits; the message has an example."""


def check_plan(text: str) -> PlanSpec:
    """The plan of a tracked branch.  Raises PlanError, or TrackedPlanError."""
    spec = read_plan(text)
    others = [variant for variant in spec.variants if variant.source != COMMIT]
    if wrong := [variant.name for variant in others if variant.target != LINUX] or [each.name for each in others[1:]]:
        raise TrackedPlanError(
            f"variant {wrong[0]} is not built from the tracked commit: every variant needs `source: {COMMIT}`, but for "
            f"one reference with `target: {LINUX}`"
        )
    if spec.baseline in reference_names(spec):
        raise TrackedPlanError(f"the baseline {spec.baseline} is the reference: name a variant with `source: {COMMIT}`")
    if len(spec.variants) > MOST_VARIANTS:
        raise TrackedPlanError(
            f"{len(spec.variants)} variants are too many: {MOST_VARIANTS} at most, since a run that confirms a change "
            "has each of them twice"
        )
    if long := [variant.name for variant in spec.variants if NAME.fullmatch(before_name(variant.name)) is None]:
        raise TrackedPlanError(f"variant {long[0]} needs a shorter name: a run that confirms has before-{long[0]}, too")
    if spec.budget is not None:
        raise TrackedPlanError(
            "a tracked plan needs `boots` and `samples` instead of a budget: all runs are alike then"
        )
    return spec


def reference_names(spec: PlanSpec) -> list[str]:
    """Return the names of the variants of a tracked plan that no commit changes."""
    return [variant.name for variant in spec.variants if variant.source != COMMIT]


def measure(branch: TrackedBranch, commit: TrackedCommit) -> Run:
    """Queues a run of a commit by itself.  Raises RepositoryError, PatchError, SourceError or RunError."""
    sources = {COMMIT: _packed(branch, commit)}
    run = runs.submit(branch.plan, branch.testbed.name, BY, sources=sources, priority=Priority.LOW)
    commit.runs.add(run)
    return run


def check(alert: Alert, commit: TrackedCommit, boots: int) -> Check:
    """Queue a run that measures a commit against the last one before an alert's change, in that many boots in turn.

    Raises the exceptions of `measure`.
    """
    branch = alert.branch
    sources = {BEFORE: _packed(branch, alert.since), COMMIT: _packed(branch, commit)}
    text = pair_plan(branch.plan, alert.since.short, commit.short, boots)
    run = runs.submit(text, branch.testbed.name, BY, sources=sources)
    return Check.objects.create(alert=alert, commit=commit, run=run)


def pair_plan(text: str, before: str, commit: str, boots: int) -> str:
    """Return the plan that measures every variant of a tracked plan on two commits, in that many boots each.

    Each variant keeps its name, and is `before-NAME` on the other commit. The plan has a separate name, so that no
    timeline joins its results with those of commits measured by themselves. It has no reference, because both commits
    are measured in turn.
    """
    spec = read_plan(text)  # first: it has the limits
    plan: dict[str, Any] = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 (all scalars stay as they are written)
    plan |= {
        "name": f"pair-{before}-{commit}",
        "title": f"{spec.title[:150]}: {commit} against {before}",
        "baseline": before_name(spec.baseline),
        "variants": [
            variant
            for given in plan["variants"]
            if given.get("source") == COMMIT
            for variant in ({**given, "name": before_name(given["name"]), "source": BEFORE}, given)
        ],
        "boots": boots,
        "samples": min(-(-boots * spec.samples // spec.boots), MOST_SAMPLES),
        "order": "abba",
    }
    return yaml.safe_dump(plan, sort_keys=False, allow_unicode=True, width=200)


def before_name(variant: str) -> str:
    """Return the name of a variant when it is built from the commit that is compared with."""
    return f"before-{variant}"


def is_unbuildable(run: Run) -> bool:
    """Whether a run failed because a commit does not build."""
    return run.state == RunState.FAILED and run.variants.filter(build__state=BuildState.FAILED).exists()


def is_tried(commit: TrackedCommit) -> bool:
    """Return whether a commit needs no further attempt: it was measured, does not build, or failed too often."""
    over = [run for run in commit.runs.all() if run.state in FINAL_STATES]
    return bool(commit.problem) or gave_up(over) or any(run.state == RunState.DONE for run in over)


def gave_up(over: Sequence[Run]) -> bool:
    """Return whether finished runs show that another one has no use."""
    return len(over) >= MOST_TRIES or any(map(is_unbuildable, over))


def _packed(branch: TrackedBranch, commit: TrackedCommit) -> Sources:
    repository = mirrors.opened(branch.mirror)
    known = repository.commit(commit.sha)
    if branch.mirror:
        mirrors.keep(branch.mirror, known.sha)
    with repository.bench() as bench:
        return bench.pack(known.sha, source_store(), known.revision, known.committed)
