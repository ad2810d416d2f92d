# SPDX-License-Identifier: BSD-2-Clause
"""Changes that an alert covers make no other alert, however their ranges move with more results."""

from __future__ import annotations

import pytest

from perfweb.tracking.analysing import _suspect
from perfweb.tracking.models import Alert, AlertState, TrackedBranch, TrackedCommit
from perfweb.tracking.series import Key, Moved
from tests.laboratory import ROUND_TRIPS, STREAM, Laboratory, tracked

pytestmark = pytest.mark.django_db
Commits = dict[int, TrackedCommit]


@pytest.fixture
def branch(laboratory: Laboratory) -> TrackedBranch:
    """Twelve commits of equal speed."""
    shas = [laboratory.commit(number) for number in range(12)]
    made = tracked(shas[0])
    laboratory.round()
    return made


@pytest.fixture
def commits(branch: TrackedBranch) -> Commits:
    return {commit.position: commit for commit in branch.commits.all() if commit.position}


def moved(test: str, since: int, until: int, percent: float = -8.0) -> Moved:
    return Moved(Key("direct", test), since, until, until, 1.0, 1 + percent / 100, percent, -9.0, -7.0, better=False)


def alert(branch: TrackedBranch, commits: Commits, test: str, since: int, until: int, culprit: int = 0) -> Alert:
    """A confirmed alert with a culprit, or a refuted one."""
    made = Alert.objects.create(
        branch=branch, state=AlertState.CONFIRMED if culprit else AlertState.REFUTED,
        since=commits[since], until=commits[until], culprit=commits.get(culprit),
    )  # fmt: skip
    made.movements.create(variant="direct", test=test, better=False, suspected=-8.0)
    return made


def test_a_commit_that_is_blamed_is_not_suspected_again_with_another_test(
    branch: TrackedBranch, commits: Commits
) -> None:
    """The change of another test, misplaced by noise, leaves the two a range without the culprit."""
    alert(branch, commits, ROUND_TRIPS, 3, 6)
    alert(branch, commits, STREAM, 5, 7, culprit=7)
    assert _suspect(branch, [moved(ROUND_TRIPS, 3, 6), moved(STREAM, 5, 7)], commits) == []


def test_what_moves_with_a_blamed_commit_joins_its_alert(branch: TrackedBranch, commits: Commits) -> None:
    known = alert(branch, commits, STREAM, 5, 7, culprit=7)
    assert _suspect(branch, [moved(ROUND_TRIPS, 5, 8), moved(STREAM, 6, 7)], commits) == []
    assert sorted(movement.test for movement in known.movements.all()) == sorted([STREAM, ROUND_TRIPS])


def test_what_moves_elsewhere_is_another_alert(branch: TrackedBranch, commits: Commits) -> None:
    alert(branch, commits, STREAM, 5, 7, culprit=7)
    (made,) = _suspect(branch, [moved(STREAM, 9, 10), moved(STREAM, 6, 7)], commits)
    assert (made.since.position, made.until.position) == (9, 10)
