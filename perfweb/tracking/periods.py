# SPDX-License-Identifier: BSD-2-Clause
"""Changes of a branch between two of its commits: two releases, or the commits of a week."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from perfweb.tracking import states
from perfweb.tracking.models import Alert, AlertState, TrackedBranch, TrackedCommit
from perfweb.tracking.standings import Standing, standings

SHORTEST_HASH = 6


class PeriodError(ValueError):
    """There is no such period; the message has the valid format."""


@dataclass(frozen=True)
class Period:
    """What came after the commit `first`, up to `last`: how many commits, how many of them measured, the tests that
    changed or are not judged, the worst first, and the alerts.
    """

    branch: TrackedBranch
    first: TrackedCommit
    last: TrackedCommit
    commits: int
    measured: int
    standings: list[Standing]
    alerts: list[Alert]


def between(branch: TrackedBranch, first: TrackedCommit, last: TrackedCommit) -> Period:
    """Sum up what is known of the commits after one and up to another: eleven queries.  Raises PeriodError."""
    low, high = first.position or 0, last.position or 0
    if first == last:
        raise PeriodError(f"Both ends are {first.short}: nothing of {branch} lies between.")
    if low >= high:
        raise PeriodError(f"{first.short} does not come before {last.short} on {branch}: write the older one first.")
    inside = branch.commits.filter(position__gt=low, position__lte=high)
    alerts = alerts_of(branch).filter(
        Q(culprit__position__gt=low, culprit__position__lte=high)
        | Q(culprit=None, until__position__gt=low, until__position__lte=high)
    )
    return Period(
        branch,
        first,
        last,
        inside.count(),
        inside.filter(runs__isnull=False).distinct().count(),
        standings(branch, low, high),
        list(alerts),
    )


def alerts_of(branch: TrackedBranch) -> QuerySet[Alert]:
    """Return the sent alerts of a branch, with the data of their rows."""
    alerts = Alert.objects.filter(branch=branch).exclude(state__in=[AlertState.NEW, AlertState.REFUTED])
    return alerts.to_show()


def open_alerts(branch: TrackedBranch) -> QuerySet[Alert]:
    """Return those without an outcome."""
    return alerts_of(branch).filter(state__in=states.OPEN)


def find(branch: TrackedBranch, word: str, otherwise: str) -> TrackedCommit:
    """Return a commit by its number on the branch or the beginning of its hash; the first in an order for an empty
    text. Raises PeriodError.
    """
    commits = branch.commits.filter(position__isnull=False)
    if not word:
        found = list(commits.order_by(otherwise)[:1])
    elif word.isascii() and word.isdigit() and len(word) < SHORTEST_HASH:
        found = list(commits.filter(position=int(word)))
    elif len(word) >= SHORTEST_HASH:
        found = list(commits.filter(sha__startswith=word.lower())[:2])
    else:
        found = []
    if len(found) == 1:
        return found[0]
    if not word:
        raise PeriodError(f"No commit of {branch} has been listed yet.")
    problem = "more than one commit" if found else "no commit"
    raise PeriodError(
        f"{branch} has {problem} “{word[:50]}”: write its number on the branch, or {SHORTEST_HASH} letters of its hash "
        "or more."
    )
