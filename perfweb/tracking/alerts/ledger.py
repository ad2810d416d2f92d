# SPDX-License-Identifier: BSD-2-Clause
"""The track record of past alerts."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, QuerySet

from perfweb.tracking import states
from perfweb.tracking.models import Alert, AlertState


@dataclass(frozen=True)
class Ledger:
    """Counts of alerts: suspicions that no run confirmed, and sent alerts that were judged real, not real, or not
    judged.
    """

    refuted: int
    right: int
    wrong: int
    open: int

    @property
    def sent(self) -> int:
        return self.right + self.wrong + self.open

    @property
    def percent_right(self) -> float | None:
        """The share of right alerts among the judged ones; None without any."""
        judged = self.right + self.wrong
        return 100 * self.right / judged if judged else None


def counts(alerts: QuerySet[Alert]) -> Ledger:
    """Count alerts: one query."""
    found = dict(alerts.order_by().values_list("state").annotate(count=Count("pk")))
    right, wrong = (sum(found.get(state, 0) for state in judged) for judged in (states.RIGHT, states.WRONG))
    return Ledger(found.get(AlertState.REFUTED, 0), right, wrong, found.get(AlertState.CONFIRMED, 0))
