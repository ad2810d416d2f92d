# SPDX-License-Identifier: BSD-2-Clause
"""The life of a submission: every legal transition is in the history, and no illegal one is."""

from collections.abc import Callable

import pytest

from perfweb.submissions import states
from perfweb.submissions.models import Submission, SubmissionState, SubmissionTransition
from perfweb.transitions import IllegalTransitionError
from tests.factories import create_submission

pytestmark = pytest.mark.django_db
S = SubmissionState
TRANSITIONS: dict[SubmissionState, tuple[Callable[[int], Submission], set[SubmissionState]]] = {
    # to: (function, possible states before), written independently of the table in states.py
    S.CONFLICT: (lambda number: states.conflict(number, "x", "why"), {S.RECEIVED}),
    S.WAITING: (lambda number: states.wait(number, "x", "why"), {S.RECEIVED}),
    S.APPROVED: (lambda number: states.approve(number, "x"), {S.RECEIVED, S.WAITING}),
    S.REFUSED: (lambda number: states.refuse(number, "x", "why"), {S.WAITING}),
    S.CANCELLED: (lambda number: states.cancel(number, "x"), {S.WAITING, S.APPROVED}),
}


@pytest.mark.parametrize("before", S)
@pytest.mark.parametrize("after", TRANSITIONS)
def test_every_pair_of_states(before: SubmissionState, after: SubmissionState) -> None:
    number = create_submission(before).number
    go, allowed = TRANSITIONS[after]
    if before in allowed:
        assert go(number).state == after
        step = SubmissionTransition.objects.get()
        assert (step.from_state, step.to_state, step.who) == (before, after, "x")
    else:
        with pytest.raises(IllegalTransitionError, match=f"is {before.label} and cannot become {after.label}"):
            go(number)
        assert not SubmissionTransition.objects.exists()
    assert Submission.objects.get().state == (after if before in allowed else before)


def test_reason_is_storable_whatever_a_patch_holds() -> None:
    number = create_submission(S.RECEIVED).number
    assert states.conflict(number, "x", "a\0b\udc80").reason == "a?b?"
