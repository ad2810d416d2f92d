# SPDX-License-Identifier: BSD-2-Clause
"""The life of a submission: one function per transition, and nothing else changes its state.

    received → conflict | waiting → approved | refused | cancelled

What a maintainer submits goes from received to approved at once.  What happens after approval is the life of its runs.
"""

from django.db import transaction

from perfweb.plaintext import plain
from perfweb.submissions.models import Submission, SubmissionState, SubmissionTransition

S = SubmissionState
ALLOWED: dict[SubmissionState, frozenset[SubmissionState]] = {
    S.RECEIVED: frozenset({S.CONFLICT, S.WAITING, S.APPROVED}),
    S.CONFLICT: frozenset(),
    S.WAITING: frozenset({S.APPROVED, S.REFUSED, S.CANCELLED}),
    S.APPROVED: frozenset({S.CANCELLED}),
    S.REFUSED: frozenset(),
    S.CANCELLED: frozenset(),
}


class IllegalTransitionError(ValueError):
    """The submission is in a state from which there is no such transition."""


def received(submission: Submission, who: str) -> None:
    """The first row of the history of a submission that was just made."""
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


@transaction.atomic
def _change(number: int, to: SubmissionState, who: str, reason: str) -> Submission:
    """Locks the submission, checks the transition and writes the history."""
    submission = Submission.objects.select_for_update(of=("self",)).get(number=number)
    before = SubmissionState(submission.state)
    if to not in ALLOWED[before]:
        raise IllegalTransitionError(f"submission {number} is {before.label} and cannot become {to.label}")
    submission.state = to
    submission.reason = plain(reason)
    submission.save(update_fields=["state", "reason"])
    SubmissionTransition.objects.create(
        submission=submission, from_state=before, to_state=to, who=who, reason=submission.reason
    )
    return submission
