# SPDX-License-Identifier: BSD-2-Clause
"""The life of a submission: one function per transition, and nothing else changes its state.

    received → conflict | waiting → approved | refused | cancelled

A maintainer's submission goes from received to approved at once. After approval its runs have the progress.
"""

from perfweb.plaintext import plain
from perfweb.submissions.models import Submission, SubmissionState, SubmissionTransition
from perfweb.transitions import change

S = SubmissionState
ALLOWED: dict[SubmissionState, frozenset[SubmissionState]] = {
    S.RECEIVED: frozenset({S.CONFLICT, S.WAITING, S.APPROVED}),
    S.CONFLICT: frozenset(),
    S.WAITING: frozenset({S.APPROVED, S.REFUSED, S.CANCELLED}),
    S.APPROVED: frozenset({S.CANCELLED}),
    S.REFUSED: frozenset(),
    S.CANCELLED: frozenset(),
}


def received(submission: Submission, who: str) -> None:
    """Store the first row of the history of a new submission."""
    SubmissionTransition.objects.create(submission=submission, to_state=submission.state, who=who)


def conflict(number: int, who: str, reason: str) -> Submission:
    """received → conflict; `reason` has the hunk."""
    return _change(number, S.CONFLICT, who, reason)


def wait(number: int, who: str, reason: str) -> Submission:
    """received → waiting for approval."""
    return _change(number, S.WAITING, who, reason)


def approve(number: int, who: str, reason: str = "") -> Submission:
    """received or waiting → approved."""
    return _change(number, S.APPROVED, who, reason)


def refuse(number: int, who: str, reason: str) -> Submission:
    """waiting → refused."""
    return _change(number, S.REFUSED, who, reason)


def cancel(number: int, who: str, reason: str = "") -> Submission:
    """waiting or approved → cancelled."""
    return _change(number, S.CANCELLED, who, reason)


def _change(number: int, to: SubmissionState, who: str, reason: str) -> Submission:
    reason = plain(reason)

    def before(submission: Submission) -> None:
        submission.reason = reason

    def after(submission: Submission, old: SubmissionState) -> None:
        SubmissionTransition.objects.create(submission=submission, from_state=old, to_state=to, who=who, reason=reason)

    return change(Submission.objects.all(), number, to, ALLOWED, before, after, ["state", "reason"])
