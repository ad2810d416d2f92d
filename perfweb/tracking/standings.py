# SPDX-License-Identifier: BSD-2-Clause
"""How much each test changed between two commits of a branch: confirmed alerts and change points together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from perfweb.runs.summaries import facts_of
from perfweb.stats.comparison import Verdict
from perfweb.stats.ratio import Change
from perfweb.tracking import states
from perfweb.tracking.models import Alert, AlertState, Shift, TrackedBranch
from perfweb.tracking.series import Points, read
from perfweb.verdicts.environment import change_in_words

_NOT_COUNTED = states.WRONG | {AlertState.NEW, AlertState.REFUTED}
"""States of alerts whose changes are not confirmed, or not the software's."""


@dataclass(frozen=True)
class Standing:
    """How much faster or slower a test on a variant is than it was, by so many changes that are known.

    `others` is what else changed on the hosts in between, so that levels before and after are not compared: of a
    test without a known change the verdict is "not judged" then, with that reason.
    """

    variant: str
    test: str
    change: Change | None
    rise_is_better: bool
    changes: int
    others: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        if self.change is None:
            return Verdict.NOT_JUDGED
        if not self.change.leaves_out_zero:
            return Verdict.NOT_ENOUGH_DATA
        return Verdict.FASTER if self.better else Verdict.SLOWER

    @property
    def better(self) -> bool:
        return self.change is not None and (self.change.percent > 0) == self.rise_is_better

    @property
    def words(self) -> str:
        """The verdict, and the reason of "not judged". "Not enough data" means that changes cancel each other out."""
        if self.change is None:
            return f"{self.verdict}: {', '.join(self.others)}"
        return str(self.verdict)

    @property
    def cautions(self) -> list[str]:
        """Warnings that belong beside the verdict."""
        return list(self.others) if self.change else []


@dataclass
class _Found:
    """A change of a test after one position of the branch, and up to another."""

    since: int
    until: int
    change: Change
    better: bool

    def meets(self, since: int, until: int) -> bool:
        return max(self.since, since) < min(self.until, until)


@dataclass
class _Test:
    """What is known of a test on a variant in a period; `refuted` are ranges where a run did not see a change again."""

    changes: list[_Found] = field(default_factory=list)
    refuted: list[tuple[int, int]] = field(default_factory=list)


def standings(branch: TrackedBranch, low: int, high: int) -> list[Standing]:
    """Sum up the tests that changed after one position of a branch and up to another, the worst first: seven queries.

    A change that a run has confirmed counts with the interval of that run. A change point of any analysis counts where
    no alert is about the same place of the same test; the newest analysis that has it counts. Changes that follow one
    another are multiplied, and their errors, which are independent, are added as squares on the scale of logarithms.
    """
    found: dict[tuple[str, str], _Test] = {}
    _add_alerts(found, branch, low, high)
    _add_shifts(found, branch, low, high)
    others = _host_changes(branch, low, high)
    rows = [
        _standing(*key, found[key].changes if key in found else [], others.get(key, ()))
        for key in {**found, **others}
        if key in others or found[key].changes
    ]
    return sorted(rows, key=_order)


def _order(row: Standing) -> tuple[bool, bool, float, str, str]:
    size = abs(row.change.percent) if row.change else 0.0
    return row.change is None, row.better, -size, row.test, row.variant


def _add_alerts(found: dict[tuple[str, str], _Test], branch: TrackedBranch, low: int, high: int) -> None:
    alerts = branch.alerts.exclude(state=AlertState.NEW).select_related("since", "until", "culprit")
    for alert in alerts.prefetch_related("movements"):
        if (place := _place(alert)) is None or not low < place[1] <= high:
            continue
        for movement in alert.movements.all():
            test = found.setdefault((movement.variant, movement.test), _Test())
            if movement.confirmed and movement.change and alert.state not in _NOT_COUNTED:
                test.changes.append(_Found(*place, movement.change, movement.better))
            elif movement.confirmed is not None or alert.state in _NOT_COUNTED:
                test.refuted.append(place)


def _place(alert: Alert) -> tuple[int, int] | None:
    """The range of an alert as positions; that of a culprit is one commit."""
    if alert.culprit:
        position = alert.culprit.position
        return None if position is None else (position - 1, position)
    since, until = alert.since.position, alert.until.position
    return None if since is None or until is None else (since, until)


def _add_shifts(found: dict[tuple[str, str], _Test], branch: TrackedBranch, low: int, high: int) -> None:
    """Add the change points of all analyses, the newest first, each once."""
    shifts = Shift.objects.filter(analysis__branch=branch, place__position__gt=low, place__position__lte=high)
    for shift in shifts.select_related("since", "until").order_by("-analysis__version", "place__position"):
        since, until = shift.since.position, shift.until.position
        if since is None or until is None:
            continue  # the branch was rewritten
        test = found.setdefault((shift.variant, shift.test), _Test())
        known = any(one.meets(since, until) for one in test.changes)
        refuted = any(max(start, since) < min(end, until) for start, end in test.refuted)
        if not known and not refuted:
            change = Change(shift.percent, shift.low, shift.high)
            test.changes.append(_Found(since, until, change, shift.better))


def _standing(variant: str, test: str, changes: Sequence[_Found], others: tuple[str, ...]) -> Standing:
    if not changes:
        return Standing(variant, test, None, rise_is_better=True, changes=0, others=others)
    rise_is_better = (changes[0].change.percent > 0) == changes[0].better
    return Standing(variant, test, _product([one.change for one in changes]), rise_is_better, len(changes), others)


def _product(changes: Sequence[Change]) -> Change:
    """Changes one after the other as one change."""
    if len(changes) == 1:
        return changes[0]
    middle = sum(_log(change.percent) for change in changes)
    below = math.hypot(*(_log(change.percent) - _log(change.low) for change in changes))
    above = math.hypot(*(_log(change.high) - _log(change.percent) for change in changes))
    return Change(*(100 * math.expm1(bound) for bound in (middle, middle - below, middle + above)))


def _log(percent: float) -> float:
    return math.log(max(1 + percent / 100, 1e-6))


def _host_changes(branch: TrackedBranch, low: int, high: int) -> dict[tuple[str, str], tuple[str, ...]]:
    """What changed on the hosts within the period, for each test on a variant that was measured before and after."""
    lines: dict[tuple[str, str], list[tuple[int, str, int]]] = {}
    for key, points in read(branch).series.items():
        rows = lines.setdefault((key.variant, key.test), [])
        rows += _points(key.environment, points)
    switches = {test: _switches(sorted(rows), low, high) for test, rows in lines.items()}
    facts = facts_of({run for found in switches.values() for pair in found for run in pair})
    words = {
        test: tuple(dict.fromkeys(change_in_words(facts[before], facts[after]) for before, after in found))
        for test, found in switches.items()
    }
    return {test: found for test, found in words.items() if found}


def _points(environment: str, points: Points) -> Iterable[tuple[int, str, int]]:
    return [(position, environment, run) for position, run in zip(points.positions, points.runs, strict=True)]


def _switches(rows: Sequence[tuple[int, str, int]], low: int, high: int) -> list[tuple[int, int]]:
    """The runs before and after each change of the environment after one position and up to another."""
    return [
        (run, later_run)
        for (position, environment, run), (later, other, later_run) in pairwise(rows)
        if environment != other and environment and other and low < later <= high and position < later
    ]
