# SPDX-License-Identifier: BSD-2-Clause
"""What is known about the runs of a graph from tracked branches: their commits, and the alerts that begin there."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models.functions import Coalesce

from perfweb.tracking.models import Alert, AlertState, TrackedCommit

LONGEST_SUBJECT = 72

_Measured = TrackedCommit.runs.through


def commit_words(runs: Collection[int]) -> dict[int, str]:
    """Return subject and author of the commit that a run measured, by the number of the run: one query."""
    rows = _Measured.objects.filter(run__in=runs).values_list("run", "trackedcommit__subject", "trackedcommit__author")
    return {run: f"{subject[:LONGEST_SUBJECT]}, {author}" for run, subject, author in rows}


def alerts_at(test: str, runs: Collection[int]) -> dict[int, list[int]]:
    """Return the numbers of the alerts about a test whose change is at the commit of a run, by the number of the run:
    two queries. An alert without a culprit is at the first commit certainly after the change.
    """
    found = Alert.objects.filter(movements__test=test).exclude(state=AlertState.REFUTED)
    of_commit: dict[int, set[int]] = {}
    for commit, number in found.annotate(commit=Coalesce("culprit", "until")).values_list("commit", "number"):
        of_commit.setdefault(commit, set()).add(number)
    rows = _Measured.objects.filter(trackedcommit__in=of_commit, run__in=runs).values_list("run", "trackedcommit")
    return {run: sorted(of_commit[commit]) for run, commit in rows}
