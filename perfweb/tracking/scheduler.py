# SPDX-License-Identifier: BSD-2-Clause
"""One round over all tracked branches: list commits, report, analyse results, follow up changes, measure the next
commit.

Each step does what is possible now and stores it in the database, so that a round may be interrupted anywhere. A branch
has one run at a time, because its result improves the choice of the next one.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from perfweb.builds.patches import PatchError
from perfweb.builds.repositories import RepositoryError
from perfweb.builds.sources import SourceError
from perfweb.faults import services as faults
from perfweb.plaintext import plain
from perfweb.runs.models import FINAL_STATES, Run
from perfweb.runs.planfile import PlanError
from perfweb.runs.services import RunError
from perfweb.tracking import history, measuring, weekly
from perfweb.tracking.alerts import followup
from perfweb.tracking.analysing import analyse
from perfweb.tracking.choosing import Candidate, next_position
from perfweb.tracking.models import TrackedBranch, TrackedCommit
from perfweb.tracking.series import Results, differing, read

BETWEEN_LOOKS = timedelta(seconds=60)
"""Pause between two fetches of a repository."""
ATTEND = faults.Task("track a branch", "it is tried again; read the messenger's log and the page of the branch")
PROBLEMS = (RepositoryError, PatchError, SourceError, PlanError, RunError)
"""Errors that may be gone at the next round."""


def attend(now: datetime | None = None) -> None:
    """Do the due steps on every branch; a problem of one does not affect the others."""
    branches = TrackedBranch.objects.filter(active=True).select_related("mirror", "testbed")
    faults.for_each(ATTEND, branches, lambda branch: _attend(branch, now or timezone.now()))


def _attend(branch: TrackedBranch, now: datetime) -> None:
    try:
        attend_to(branch, now)
    except PROBLEMS as error:
        _report(branch, str(error))
    except Exception as error:
        _report(branch, f"an error of the service: {error!r}")
        raise


def attend_to(branch: TrackedBranch, now: datetime) -> None:
    """Do the due steps on a branch. Raises one of PROBLEMS."""
    if branch.looked is None or abs(now - branch.looked) >= BETWEEN_LOOKS:
        # Stored first, so that an unreachable repository waits as long as a reachable one.
        TrackedBranch.objects.filter(pk=branch.pk).update(looked=now)
        history.refresh(branch, now)
        _report(branch, "")
    faults.attempt(weekly.REPORT, str(branch), lambda: weekly.report(branch, now))
    if is_working(branch):
        return
    results = read(branch)
    analyse(branch, results)
    if not followup.pursue(branch):
        _measure_next(branch, results)


def is_working(branch: TrackedBranch) -> bool:
    """Return whether a branch has an unfinished run."""
    open_runs = Run.objects.exclude(state__in=FINAL_STATES)
    own = open_runs.filter(tracked_commits__branch=branch)
    return own.exists() or open_runs.filter(check_of__alert__branch=branch).exists()


def _measure_next(branch: TrackedBranch, results: Results) -> None:
    commits = list(branch.commits.filter(position__isnull=False).prefetch_related("runs"))
    candidates = [Candidate(commit.position or 0, commit.wanted, measuring.is_tried(commit)) for commit in commits]
    position = next_position(candidates, differing(results.series, branch.threshold))
    for commit in commits:
        if commit.position == position:
            _measure(branch, commit)


def _measure(branch: TrackedBranch, commit: TrackedCommit) -> None:
    """Queue a run of a commit; a commit without a stack is not tried again."""
    try:
        measuring.measure(branch, commit)
    except (PatchError, SourceError) as error:
        commit.problem = plain(str(error))
        commit.save(update_fields=["problem"])


def _report(branch: TrackedBranch, problem: str) -> None:
    """Store what prevents a branch from being tracked, for its page."""
    if branch.problem != problem:
        branch.problem = plain(problem)
        TrackedBranch.objects.filter(pk=branch.pk).update(problem=branch.problem)
