# SPDX-License-Identifier: BSD-2-Clause
"""The boots that would decide the open verdicts of a run of a submission."""

from dataclasses import dataclass

from perfweb.runs.judging import counted_samples
from perfweb.runs.models import Run, RunState
from perfweb.runs.planfile import MOST_BOOTS, PlanError, SizeError, read_plan
from perfweb.stats.comparison import Verdict
from perfweb.submissions.models import Submission
from perfweb.submissions.plans import machine_seconds, with_boots
from perfweb.verdicts.doubts import run_pairs


@dataclass(frozen=True)
class More:
    """`needed` boots of each variant would decide the `undecided` tests with a power of 80 %, as far as known; a run
    has at most as many `boots`, which take `seconds`.
    """

    undecided: int
    needed: int
    boots: int
    seconds: int


def more(submission: Submission, run: Run | None) -> More | None:
    """Return None if nothing is open, or no number of boots is known to decide it."""
    if run is None or run.state != RunState.DONE:
        return None
    pairs = run_pairs(run, counted_samples([run])[run.pk])
    open_tests = [test for pair in pairs for test in pair.compared if test.verdict is Verdict.NOT_ENOUGH_DATA]
    results = [test.result for test in open_tests]
    needed = [min(one.boots) + one.more_boots for one in results if one.more_boots is not None]
    if not needed:
        return None
    boots = min(max(needed), MOST_BOOTS)
    try:
        seconds = machine_seconds(read_plan(with_boots(submission.plan, boots)))
    except (PlanError, SizeError):  # a user's own plan, whose size cannot be changed
        return None
    return More(len(results), max(needed), boots, seconds)
