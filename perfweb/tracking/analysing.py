# SPDX-License-Identifier: BSD-2-Clause
"""Analyses of a branch, stored as versions, and the alerts from their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.db import transaction

from perfweb.runs.judging import RULES
from perfweb.tracking import states
from perfweb.tracking.models import Alert, AlertState, Analysis, Movement, Shift, TrackedBranch, TrackedCommit
from perfweb.tracking.series import Group, Moved, Results, grouped, moved

Commits = Mapping[int, TrackedCommit]
"""The commits of a branch by their position."""

_Seen = tuple[str, str, str, int, int]
"""The identity of a change: variant, test, environment, and the keys of the commits around it."""


@transaction.atomic
def analyse(branch: TrackedBranch, results: Results) -> list[Alert]:
    """Analyse the results of a branch if they have changed: store a version of the analysis if the change points have
    moved, and make alerts for new ones. Return the new alerts.
    """
    if branch.analysed == results.digest:
        return []
    branch.analysed = results.digest
    branch.save(update_fields=["analysed"])
    moves = moved(results.series)
    commits = {row.position: row for row in branch.commits.all() if row.position is not None}
    _keep_version(branch, [_shift(move, commits) for move in moves])
    return _suspect(branch, moves, commits)


def _keep_version(branch: TrackedBranch, shifts: Sequence[Shift]) -> None:
    """Store another version of the analysis, unless it equals the last one."""
    last = branch.analyses.first()
    before = {_seen(shift) for shift in last.shifts.all()} if last else set()
    now = {_seen(shift) for shift in shifts}
    other_rules = last is not None and last.rules != RULES
    if before == now and not other_rules:
        return
    version = last.version + 1 if last else 1
    reason = _reason(before, now, other_rules=other_rules)
    made = Analysis.objects.create(branch=branch, version=version, rules=RULES, reason=reason)
    for shift in shifts:
        shift.analysis = made
    Shift.objects.bulk_create(shifts)


def _shift(move: Moved, commits: Commits) -> Shift:
    return Shift(
        variant=move.key.variant, test=move.key.test, environment=move.key.environment,
        since=commits[move.since], place=commits[move.place], until=commits[move.until],
        before=move.before, after=move.after, percent=move.percent, low=move.low, high=move.high, better=move.better,
    )  # fmt: skip


def _seen(shift: Shift) -> _Seen:
    return shift.variant, shift.test, shift.environment, shift.since_id, shift.until_id


def _reason(before: set[_Seen], now: set[_Seen], *, other_rules: bool) -> str:
    """Return why this version differs from the one before."""
    came, went = len(now - before), len(before - now)
    counts = ", ".join(
        f"{count} {'change' if count == 1 else 'changes'} {what}"
        for count, what in ((came, "came or became more certain"), (went, "went or were replaced"))
        if count
    )
    why = "the statistics are others than before" if other_rules else "there are more results"
    return f"{why}: {counts or 'all changes are where they were'}"


def _suspect(branch: TrackedBranch, moves: Sequence[Moved], commits: Commits) -> list[Alert]:
    """Make alerts for each group of changes without one; no notification is sent before they are confirmed."""
    known = list(branch.alerts.select_related("since", "until", "culprit").prefetch_related("movements"))
    made = []
    for group in grouped([move for move in moves if abs(move.percent) >= branch.threshold]):
        if left := _not_known(group, known):
            made += [_alert(branch, part, commits) for part in grouped(left)]
    return made


def _not_known(group: Group, alerts: Iterable[Alert]) -> list[Moved]:
    """Return the changes of a group that have no alert. A waiting or confirmed alert gets changes at the same place; a
    refuted one covers its own tests only.

    A place is the range of a single change, because the common range of a group may exclude the culprit of the alert.
    """
    left = list(group.moves)
    for alert in alerts:
        near = [move for move in left if _overlaps(alert, move)]
        members = {(movement.variant, movement.test) for movement in alert.movements.all()}
        if near and alert.state != AlertState.REFUTED:
            _add(alert, [move for move in left if (move.key.variant, move.key.test) not in members])
            return []
        left = [move for move in left if move not in near or (move.key.variant, move.key.test) not in members]
    return left


def _overlaps(alert: Alert, move: Moved) -> bool:
    """Return whether an alert covers some commit that a change may belong to, too."""
    since, until = alert.since.position, alert.until.position
    if alert.culprit and alert.culprit.position:
        since, until = alert.culprit.position - 1, alert.culprit.position
    return since is not None and until is not None and max(since, move.since) < min(until, move.until)


def _alert(branch: TrackedBranch, group: Group, commits: Commits) -> Alert:
    alert = Alert.objects.create(branch=branch, since=commits[group.since], until=commits[group.until])
    _add(alert, group.moves)
    states.suspected(alert)
    return alert


def _add(alert: Alert, moves: Iterable[Moved]) -> None:
    """Return a row for each test on a variant, with its largest movement."""
    rows: dict[tuple[str, str], Movement] = {}
    for move in sorted(moves, key=lambda move: abs(move.percent)):
        rows[move.key.variant, move.key.test] = Movement(
            alert=alert, variant=move.key.variant, test=move.key.test, better=move.better, suspected=move.percent
        )
    Movement.objects.bulk_create(rows.values())
