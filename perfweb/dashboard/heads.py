# SPDX-License-Identifier: BSD-2-Clause
"""The newest measured commit of each tracked branch, and its open alerts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Q, QuerySet

from perfweb.lab.models import Testbed
from perfweb.runs.models import Run, RunState
from perfweb.tracking import states
from perfweb.tracking.models import Alert, TrackedBranch, TrackedCommit

BRANCHES = 12
"""Branches that are shown, those with open alerts first; the page of all branches has the others."""


@dataclass(frozen=True)
class Head:
    """A tracked branch: its newest commit that was measured, None before the first, that commit's run, and the numbers
    of open alerts whose largest movement is worse, and better.
    """

    branch: TrackedBranch
    commit: TrackedCommit | None
    run: Run | None
    slower: int
    faster: int


def branches_of(testbeds: Sequence[Testbed]) -> QuerySet[TrackedBranch]:
    """Select the branches on these testbeds that are not paused, or are samples."""
    return TrackedBranch.objects.filter(Q(active=True) | ~Q(testbed__sample=""), testbed__in=testbeds)


def read_heads(testbeds: Sequence[Testbed]) -> list[Head]:
    """Read the branches on these testbeds: four queries."""
    waiting = Count("alerts", filter=Q(alerts__state__in=states.OPEN))
    shown = branches_of(testbeds).annotate(waiting=waiting).order_by("-waiting", "name")
    branches = list(shown.select_related("testbed")[:BRANCHES])
    measured = TrackedCommit.objects.filter(branch__in=branches, position__isnull=False, runs__state=RunState.DONE)
    newest = measured.order_by("branch_id", "-position", "-runs__pk").distinct("branch_id")
    commits = {commit.branch_id: commit for commit in newest}
    runs = Run.objects.filter(tracked_commits__in=commits.values(), state=RunState.DONE).order_by("pk")
    of_commit = {key: run for run in runs.prefetch_related("tracked_commits") for key in _keys(run)}
    directions = _directions(branches)
    heads = []
    for branch in branches:
        commit = commits.get(branch.pk)
        run = of_commit.get(commit.pk) if commit else None
        heads.append(Head(branch, commit, run, directions[branch.pk, False], directions[branch.pk, True]))
    return heads


def _keys(run: Run) -> list[int]:
    return [commit.pk for commit in run.tracked_commits.all()]


def _directions(branches: Sequence[TrackedBranch]) -> Counter[tuple[int, bool]]:
    """Count the open alerts of each branch by whether their largest movement is an improvement."""
    alerts = Alert.objects.filter(branch__in=branches, state__in=states.OPEN).prefetch_related("movements")
    counts: Counter[tuple[int, bool]] = Counter()
    for alert in alerts:
        largest = max(alert.movements.all(), key=lambda movement: abs(movement.size), default=None)
        if largest:
            counts[alert.branch_id, largest.better] += 1
    return counts
