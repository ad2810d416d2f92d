# SPDX-License-Identifier: BSD-2-Clause
"""Other differences between the two sides of a change: exact costs, counters and locks, to explain it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from perfweb.runs.catalogue import is_exact
from perfweb.runs.models import Run, RunState
from perfweb.tracking.measuring import before_name
from perfweb.tracking.models import Alert, Check, Movement
from perfweb.verdicts.counters import AT_END, AT_START, CounterRow, counter_rows, reports_of
from perfweb.verdicts.lockprofiles import TITLES, LockTable, lock_tables
from perfweb.verdicts.numbers import Scale, scale_for
from perfweb.verdicts.sides import Side, sides


@dataclass(frozen=True)
class CostRow:
    """The exact cost of a unit of a workload on both sides, in instructions."""

    test: str
    before: float
    after: float
    scale: Scale

    @property
    def more(self) -> float:
        return self.after - self.before

    @property
    def percent(self) -> float | None:
        return 100 * self.more / self.before if self.before else None


@dataclass(frozen=True)
class Explanation:
    """Other differences than the changed tests, in the run that alternated both sides."""

    run: Run
    sides: list[Side]
    costs: list[CostRow]
    counters: list[CounterRow]
    locks: list[LockTable]


def explain(alert: Alert, checks: Sequence[Check], movements: Sequence[Movement]) -> Explanation | None:
    """Compare both sides of an alert's clearest movement: the culprit, or else the last commit of the range, and the
    one before the change. None until a run has measured both: five queries.
    """
    blamed = alert.culprit_id or alert.until_id
    runs = [check.run for check in checks if check.commit_id == blamed and check.run.state == RunState.DONE]
    if not runs or not movements:
        return None
    confirmed = [movement for movement in movements if movement.confirmed]
    lead = max(confirmed or movements, key=attrgetter("clearness"))
    names = (before_name(lead.variant), lead.variant)
    found = {variant.name: variant for variant in runs[-1].variants.select_related("run__testbed")}
    if not all(name in found for name in names):
        return None
    both = sides([(f"{runs[-1].pk}/{name}", name, [found[name]]) for name in names])
    reports = reports_of(both, (AT_START, AT_END, *TITLES))
    return Explanation(runs[-1], both, _costs(*both), counter_rows(reports), lock_tables(reports))


def _costs(before: Side, after: Side) -> list[CostRow]:
    """Return the exact costs that differ; a cost whose samples differ within a side is not exact, and is left out."""
    found = []
    for test in sorted(set(before.sets) & set(after.sets)):
        values = [sorted(set(side.sets[test].values)) for side in (before, after)]
        if is_exact(test) and all(len(one) == 1 for one in values) and values[0] != values[1]:
            (was,), (now,) = values
            found.append(CostRow(test, was, now, scale_for(before.sets[test].unit, now)))
    return found
