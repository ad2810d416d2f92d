# SPDX-License-Identifier: BSD-2-Clause
"""The history of a submission: the verdicts of its runs, and all its steps in order of time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from perfweb.runs.models import Run, RunTransition
from perfweb.submissions.models import Submission
from perfweb.verdicts.comparisons import in_words
from perfweb.verdicts.outcome import NOTHING, Outcome
from perfweb.verdicts.run_verdicts import PairVerdicts, TestVerdict


@dataclass(frozen=True)
class Result:
    """The verdicts of a run: its base against the patch, or against every stage of a series. `progress` has the last
    event of each kind of a running one, `outcome` what a finished one found beside its verdicts.
    """

    run: Run
    pairs: Sequence[PairVerdicts]
    progress: Mapping[str, object]
    outcome: Outcome = NOTHING

    @property
    def words(self) -> str:
        """The common verdict of all."""
        return in_words([test for pair in self.pairs for test in pair.tests])

    @property
    def rows(self) -> list[tuple[str, tuple[tuple[str, TestVerdict], ...]]]:
        """Each test with its verdict on each stage, by name; a single stage has none."""
        several = len(self.pairs) > 1
        stages = [[(pair.b.name if several else "", test) for test in pair.tests] for pair in self.pairs]
        return [(row[0][1].test, row) for row in zip(*stages, strict=True)]


@dataclass(frozen=True)
class Step:
    """One line of the history; `run` is None for a step of the submission itself."""

    at: datetime
    what: str
    who: str
    reason: str
    run: int | None = None


def story(submission: Submission, runs: Iterable[Run]) -> list[Step]:
    """All steps, the first one first."""
    own = [
        Step(step.at, step.get_to_state_display(), step.who, "" if step.to_state == "conflict" else step.reason)
        for step in submission.transitions.all()
    ]
    of_runs = [
        Step(step.at, step.get_to_state_display(), "", step.reason, step.run_id)
        for step in RunTransition.objects.filter(run__in=list(runs))
    ]
    return sorted([*own, *of_runs], key=lambda step: step.at)
