# SPDX-License-Identifier: BSD-2-Clause
"""The life of an alert: one function per transition, and nothing else changes its state.

    new → refuted | confirmed → acknowledged → fixed | not a bug | infrastructure

The service finds out whether a change is seen again; users set the outcome of a confirmed one, and can change it later.
"""

from __future__ import annotations

from perfweb.plaintext import plain
from perfweb.tracking.models import Alert, AlertState, AlertStep
from perfweb.transitions import IllegalTransitionError, change

S = AlertState
BY_PEOPLE = frozenset({S.ACKNOWLEDGED, S.FIXED, S.NOT_A_BUG, S.INFRASTRUCTURE})
"""Outcomes of a confirmed change that users can set."""
OPEN = frozenset({S.NEW, S.CONFIRMED, S.ACKNOWLEDGED})
RIGHT = frozenset({S.ACKNOWLEDGED, S.FIXED, S.NOT_A_BUG})
"""Outcomes of a change made by the software, intended or not."""
WRONG = frozenset({S.INFRASTRUCTURE})
"""The state of a wrong alert, which had another cause."""
ALLOWED: dict[AlertState, frozenset[AlertState]] = {
    S.NEW: frozenset({S.REFUTED, S.CONFIRMED}),
    S.REFUTED: frozenset(),
    S.CONFIRMED: BY_PEOPLE,
    **{state: BY_PEOPLE - {state} for state in BY_PEOPLE},
}


def suspected(alert: Alert) -> None:
    """Store the first row of the history of a new alert."""
    AlertStep.objects.create(alert=alert, to_state=alert.state, who="tracking")


def refute(number: int, text: str) -> Alert:
    """new → not seen again; `text` has the numbers."""
    return _change(number, S.REFUTED, "tracking", text)


def confirm(number: int, text: str) -> Alert:
    """new → confirmed; `text` has the numbers."""
    return _change(number, S.CONFIRMED, "tracking", text)


def judge(number: int, to: AlertState, who: str, text: str = "") -> Alert:
    """confirmed, or judged otherwise before → acknowledged, fixed, not a bug or infrastructure."""
    if to not in BY_PEOPLE:
        raise IllegalTransitionError(f"only a run can set an alert to {to.label}")
    return _change(number, to, who, text)


def note(alert: Alert, who: str, text: str) -> AlertStep:
    """Store a comment, or a result, in the history; the state stays."""
    return AlertStep.objects.create(alert=alert, who=who, text=plain(text))


def _change(number: int, to: AlertState, who: str, text: str) -> Alert:
    def after(alert: Alert, old: AlertState) -> None:
        AlertStep.objects.create(alert=alert, from_state=old, to_state=to, who=who, text=plain(text))

    return change(Alert.objects.all(), number, to, ALLOWED, lambda _: None, after, ["state"])
