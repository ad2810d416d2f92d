# SPDX-License-Identifier: BSD-2-Clause
"""Follow-up of an alert: confirmation of the change, and bisection of its commits.

First the commits on both sides of the range are measured alternately in one run. A confirmed change is reported and
bisected: each step measures the most informative commit alternately with the last one before the change, so that a
drift of the machine has no effect, and every result updates the probabilities of all commits (perfweb.stats.bisection).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import timedelta
from operator import attrgetter

from django.db import transaction

from perfweb.faults import services as faults
from perfweb.plaintext import plain
from perfweb.runs.models import RunState
from perfweb.stats.bisection import Bisection, Observation, Z, bisect, share
from perfweb.tracking import measuring, states
from perfweb.tracking.alerts import notifications
from perfweb.tracking.alerts.confirming import change_of, compared, confirm
from perfweb.tracking.models import Alert, AlertState, Check, Movement, TrackedBranch, TrackedCommit
from perfweb.tracking.sizing import boots_of_check
from perfweb.verdicts.wording import change_words

FOLLOW_UP = faults.Task("follow up an alert", "it is tried again; read the messenger's log")
ENOUGH = 0.95
"""Probability above which a commit is named as the culprit."""


def pursue(branch: TrackedBranch) -> bool:
    """Do the next step of the oldest alerts that are not concluded, until a run is queued; return whether one was.

    An alert whose step fails does not stop the follow-up of others, nor that of the branch.
    """
    waiting = branch.alerts.filter(conclusion="").exclude(state=AlertState.REFUTED).order_by("number")
    queued: list[Alert] = []

    def step(alert: Alert) -> None:
        if not queued and _step(alert):
            queued.append(alert)

    alerts = waiting.select_related("branch__testbed", "branch__mirror", "since", "until")
    faults.for_each(FOLLOW_UP, alerts, step)
    return bool(queued)


def _step(alert: Alert) -> bool:
    if alert.since.position is None or alert.until.position is None:
        return _conclude(
            alert, "The branch was rewritten without these commits: where the change came from is not known."
        )
    return _confirm(alert) if alert.state == AlertState.NEW else _bisect(alert)


def _confirm(alert: Alert) -> bool:
    """Queue the confirming run of a suspected change, or record its result."""
    runs = [check.run for check in _checks(alert, alert.until)]
    done = [run for run in runs if run.state == RunState.DONE]
    gave_up = measuring.gave_up([run for run in runs if run not in done])
    if gave_up and not done:
        return _conclude(alert, f"It could not be measured again: {runs[-1].reason or runs[-1].get_state_display()}")
    with transaction.atomic():  # an undecided result is stored once, with the run that will decide
        if done:
            alert = confirm(alert, done, last=gave_up)
        if alert.state == AlertState.NEW:
            _check(alert, alert.until, 2 ** len(done))
            return True
    if alert.state == AlertState.REFUTED:
        return _conclude(alert, "A run that alternated both commits did not confirm it. No alert was sent.")
    notifications.notify(alert)
    return _bisect(alert)


def _bisect(alert: Alert) -> bool:
    """Queue a run of the most informative commit, or conclude the bisection."""
    commits = list(
        alert.branch.commits.filter(position__gt=alert.since.position, position__lte=alert.until.position).order_by(
            "position"
        )
    )
    lead = max((movement for movement in alert.movements.all() if movement.confirmed), key=attrgetter("clearness"))
    observations = [seen for place, commit in enumerate(commits) for seen in _observed(alert, place, commit, lead)]
    measured = {seen.place for seen in observations}
    skipped = [
        place for place, commit in enumerate(commits)
        if place not in measured and measuring.gave_up([check.run for check in _checks(alert, commit)])
    ]  # fmt: skip
    found, spent = bisect(len(commits), observations, skipped), _spent(alert)
    if found.next is not None and found.probability < ENOUGH and spent < timedelta(minutes=alert.branch.budget):
        _check(alert, commits[found.next])
        return True
    return _conclude(alert, _conclusion(found, commits, lead, observations, skipped, spent), commits, found)


def _check(alert: Alert, commit: TrackedCommit, times: int = 1) -> None:
    measuring.check(alert, commit, boots_of_check(alert, _spent(alert), times))


def _checks(alert: Alert, commit: TrackedCommit) -> Iterable[Check]:
    return alert.checks.filter(commit=commit).select_related("run").order_by("pk")


def _observed(alert: Alert, place: int, commit: TrackedCommit, lead: Movement) -> list[Observation]:
    """Return the result of each run for a commit against the last one before the change, as logarithms: an interval of
    95 % is 1.96 standard errors to both sides.
    """
    runs = [check.run for check in _checks(alert, commit) if check.run.state == RunState.DONE]
    found = []
    for change in filter(None, (change_of(compared([run], [lead])[0]) for run in runs)):
        low, middle, high = (math.log(max(1 + end / 100, 1e-6)) for end in (change.low, change.percent, change.high))
        found.append(Observation(place, middle, (high - low) / (2 * Z)))
    return found


def _spent(alert: Alert) -> timedelta:
    """Return the testbed time of an alert's runs."""
    runs = (check.run for check in alert.checks.select_related("run"))
    return sum((run.ended - run.started for run in runs if run.ended and run.started), timedelta())


def _conclusion(
    found: Bisection,
    commits: Sequence[TrackedCommit],
    lead: Movement,
    observations: Sequence[Observation],
    skipped: Sequence[int],
    spent: timedelta,
) -> str:
    """Return the result of bisection in words: one commit, or the remaining ones with the reason."""
    size = f"{change_words(lead.change)} in {lead.test} on {lead.variant}"
    took = f"{round(spent.total_seconds() / 60)} min of machine time"
    if found.probability >= ENOUGH:
        own = share(found.place, observations)
        size += f", of which {change_words(own)} came with this commit" if own else ""
        return f"{commits[found.place]}: {size}, probability {found.probability:.2f}, after {took}."
    left = commits[found.first : found.last + 1]
    without = sum(found.first <= place <= found.last for place in skipped)
    why = f"; {without} of them cannot be measured" if without else ""
    return (
        f"One of {len(left)} commits, from {left[0].short} to {left[-1].short}: {size}{why}. The most likely one is "
        f"{commits[found.place].short}, with probability {found.probability:.2f}, after {took}."
    )


def _conclude(alert: Alert, text: str, commits: Sequence[TrackedCommit] = (), found: Bisection | None = None) -> bool:
    """Store the conclusion of an alert; notify the recipients of the change."""
    alert.conclusion = plain(text)
    if found is not None:
        alert.probability = found.probability
        alert.culprit = commits[found.place] if found.probability >= ENOUGH else None
    alert.save(update_fields=["conclusion", "probability", "culprit"])
    states.note(alert, measuring.BY, text)
    if alert.state not in {AlertState.NEW, AlertState.REFUTED}:
        notifications.notify(alert)
    return False
