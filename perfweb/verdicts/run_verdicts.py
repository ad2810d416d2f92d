# SPDX-License-Identifier: BSD-2-Clause
"""The verdicts of runs in one line each: the baseline against every other variant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfweb.runs.judging import measured_tests, pairs
from perfweb.runs.models import Run, Summary, Variant
from perfweb.runs.summaries import summaries_of
from perfweb.stats.comparison import Verdict
from perfweb.stats.ratio import Change
from perfweb.verdicts import names
from perfweb.verdicts.comparisons import TestComparison, tally

_FIELDS = ("run_id", "variant_id", "test", "verdict", "change", "change_low", "change_high", "boots_differ", "rules")
"""Fields of a summary that the verdicts of a run need."""


@dataclass(frozen=True)
class TestVerdict:
    """The verdict of a run for one test on one variant: the change from the baseline, None where there is no
    interval, and
    whether boots of either differ by more than their samples scatter. `lean` is how much higher the run's sentinel
    stood with the boots of the variant than with those of the baseline, in percent, where that puts the verdict in
    doubt.
    """

    test: str
    verdict: Verdict
    change: Change | None
    boots_differ: bool
    lean: float | None = None


@dataclass(frozen=True)
class PairVerdicts:
    """The verdicts of a run for variant `b` against its baseline `a`, test by test."""

    a: Variant
    b: Variant
    tests: list[TestVerdict]

    @property
    def tally(self) -> str:
        return tally(self.tests)


@dataclass(frozen=True)
class Pair:
    """Two variants of a run and their comparison, with all its data."""

    a: Variant
    b: Variant
    compared: list[TestComparison]


def verdicts(runs: Sequence[Run]) -> list[tuple[Run, list[PairVerdicts]]]:
    """Return the verdicts of runs: two queries for all finished ones. Needs `variants` prefetched."""
    kept = summaries_of(runs, *_FIELDS)
    tests = measured_tests(kept)
    return [(run, verdicts_of_run(run.variants.all(), kept[run.pk], tests[run.pk])) for run in runs]


def verdicts_of_run(variants: Iterable[Variant], kept: Iterable[Summary], tests: Iterable[str]) -> list[PairVerdicts]:
    """Return the verdicts in the summaries of one run."""
    of = {(summary.variant_id, summary.test): summary for summary in kept}
    ordered = names.in_order(tests)
    return [
        PairVerdicts(a, b, [_verdict_of(test, of.get((a.pk, test)), of.get((b.pk, test))) for test in ordered])
        for a, b in pairs(variants)
    ]


def _verdict_of(test: str, a: Summary | None, b: Summary | None) -> TestVerdict:
    verdict = Verdict(b.verdict) if b else Verdict.NOT_ENOUGH_DATA
    change = None
    if b and b.change is not None and b.change_low is not None and b.change_high is not None:
        change = Change(b.change, b.change_low, b.change_high)
    return TestVerdict(test, verdict, change, any(side.boots_differ for side in (a, b) if side))
