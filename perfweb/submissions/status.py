# SPDX-License-Identifier: BSD-2-Clause
"""The state of a submission in words, and as that of a commit or a check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perfweb.runs.judging import counted_samples
from perfweb.runs.models import Run, RunState
from perfweb.stats.comparison import Verdict
from perfweb.submissions.models import Submission, SubmissionState
from perfweb.verdicts.comparisons import TestComparison, in_words
from perfweb.verdicts.doubts import run_pairs
from perfweb.verdicts.failures import VariantFailure, blames_patch
from perfweb.verdicts.failures import in_words as in_failing_words
from perfweb.verdicts.functions import largest_in_words
from perfweb.verdicts.outcome import NOTHING, Outcome, outcome
from perfweb.verdicts.run_verdicts import Pair


@dataclass(frozen=True)
class SubmissionStatus:
    """The state of a submission in words, and as that of a commit: pending, success, failure or error.

    `final` is whether it will not change. `pairs` are the comparisons of a run that has any.
    """

    words: str
    state: str
    final: bool
    run: Run | None = None
    pairs: Sequence[Pair] = ()
    outcome: Outcome = NOTHING

    @property
    def failures(self) -> Sequence[VariantFailure]:
        """The variants that fail because of the patch."""
        return self.outcome.failures if blames_patch(self.outcome.failures) else ()

    @property
    def compared(self) -> list[TestComparison]:
        return [one for pair in self.pairs for one in pair.compared]


def status_of(submission: Submission) -> SubmissionStatus:
    """Return the current state of a submission."""
    waiting = {
        SubmissionState.RECEIVED: SubmissionStatus("Received", "pending", final=False),
        SubmissionState.WAITING: SubmissionStatus("Waits for a maintainer's approval", "pending", final=False),
        SubmissionState.CONFLICT: SubmissionStatus("Does not apply", "error", final=True),
        SubmissionState.REFUSED: SubmissionStatus("Refused", "error", final=True),
        SubmissionState.CANCELLED: SubmissionStatus("Cancelled", "error", final=True),
    }
    run = submission.newest_run
    if submission.state != SubmissionState.APPROVED:
        return waiting[SubmissionState(submission.state)]
    if run is None or not run.is_over:
        return SubmissionStatus(_waiting(run), "pending", final=False, run=run)
    if run.state == RunState.CANCELLED:
        return SubmissionStatus("Cancelled", "error", final=True, run=run, outcome=outcome(run))
    pairs = run_pairs(run, counted_samples([run])[run.pk]) if run.state == RunState.DONE else []
    found = outcome(run, pairs)
    if blames_patch(found.failures):
        words = _capital(in_failing_words(found.failures))
        return SubmissionStatus(words, "failure", final=True, run=run, pairs=pairs, outcome=found)
    if run.state != RunState.DONE:
        words = f"Could not be measured: run {run.number} {run.state}"
        return SubmissionStatus(words, "error", final=True, run=run, outcome=found)
    compared = [one for pair in pairs for one in pair.compared]
    bad = any(one.verdict in {Verdict.SLOWER, Verdict.FAILED} for one in compared)
    words = "; ".join(filter(None, [in_words(compared), largest_in_words(found.loads)]))
    state = "failure" if bad else "success"
    return SubmissionStatus(words, state, final=True, run=run, pairs=pairs, outcome=found)


def _waiting(run: Run | None) -> str:
    if run is not None and run.started is not None:
        return "Being measured"
    return "Queued, sources are being packed" if run is not None and run.is_being_packed else "Queued"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
