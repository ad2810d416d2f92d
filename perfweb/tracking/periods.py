# SPDX-License-Identifier: BSD-2-Clause
"""Changes of a branch between two of its commits: two releases, or the commits of a week."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Q, QuerySet

from perfweb.tracking import states
from perfweb.tracking.models import Alert, AlertState, Shift, TrackedBranch, TrackedCommit

SHORTEST_HASH = 6


class PeriodError(ValueError):
    """There is no such period; the message has the valid format."""


@dataclass(frozen=True)
class Standing:
    """The change of a test on a variant in percent, by that many change points."""

    variant: str
    test: str
    percent: float
    better: bool
    changes: int


@dataclass(frozen=True)
class Period:
    """The summary of a period, after the commit `first` up to `last`: numbers of commits and of measured ones, the
    tests whose level moved, the worst first, and the alerts.
    """

    branch: TrackedBranch
    first: TrackedCommit
    last: TrackedCommit
    commits: int
    measured: int
    standings: list[Standing]
    alerts: list[Alert]


def between(branch: TrackedBranch, first: TrackedCommit, last: TrackedCommit) -> Period:
    """Summarise the commits after one and up to another: five queries. Raises PeriodError.

    Levels are those of the latest analysis; consecutive changes of a test are multiplied.
    """
    low, high = first.position or 0, last.position or 0
    if first == last:
        raise PeriodError(f"Both ends are {first.short}: nothing of {branch} lies between.")
    if low >= high:
        raise PeriodError(f"{first.short} does not come before {last.short} on {branch}: write the older one first.")
    inside = branch.commits.filter(position__gt=low, position__lte=high)
    told = alerts_of(branch).filter(
        Q(culprit__position__gt=low, culprit__position__lte=high)
        | Q(culprit=None, until__position__gt=low, until__position__lte=high)
    )
    return Period(
        branch,
        first,
        last,
        inside.count(),
        inside.filter(runs__isnull=False).distinct().count(),
        _standings(branch, low, high),
        list(told),
    )


def alerts_of(branch: TrackedBranch) -> QuerySet[Alert]:
    """Return the sent alerts of a branch, with the data of their rows."""
    told = Alert.objects.filter(branch=branch).exclude(state__in=[AlertState.NEW, AlertState.REFUTED])
    return told.to_show()


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


def _standings(branch: TrackedBranch, low: int, high: int) -> list[Standing]:
    latest = branch.analyses.order_by("-version").values("pk")[:1]
    shifts = Shift.objects.filter(analysis__in=latest, place__position__gt=low, place__position__lte=high)
    moved: dict[tuple[str, str], list[Shift]] = {}
    for shift in shifts:
        moved.setdefault((shift.variant, shift.test), []).append(shift)
    found = [_standing(variant, test, rows) for (variant, test), rows in moved.items()]
    return sorted(found, key=lambda row: (row.better, -abs(row.percent), row.test, row.variant))


def _standing(variant: str, test: str, shifts: list[Shift]) -> Standing:
    factor = 1.0
    for shift in shifts:
        factor *= 1 + shift.percent / 100
    rise_is_better = (shifts[0].percent > 0) == shifts[0].better
    percent = 100 * (factor - 1)
    return Standing(variant, test, percent, (percent > 0) == rise_is_better, len(shifts))
