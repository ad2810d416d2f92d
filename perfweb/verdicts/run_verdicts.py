# SPDX-License-Identifier: BSD-2-Clause
"""The verdicts of runs in one line each: the baseline against every other variant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfweb.runs.judging import JUDGED_MISSING, Measured, Missing, measured, pairs, worst_missing
from perfweb.runs.models import Run, RunState, Summary, Variant
from perfweb.runs.summaries import summaries_of
from perfweb.stats.comparison import Lack, Verdict
from perfweb.stats.ratio import Change
from perfweb.verdicts import names
from perfweb.verdicts.comparisons import TestComparison, tally
from perfweb.verdicts.wording import MARKS, brief_words, caution_words

_FIELDS = (
    "run_id", "variant_id", "test", "verdict", "lack", "change", "change_low", "change_high", "boots_differ", "rules",
)  # fmt: skip
"""Fields of a summary that the verdicts of a run need."""


@dataclass(frozen=True)
class TestVerdict:
    """The verdict of a run for one test on one variant, and why there is no better one: the change from the baseline,
    None where there is no interval, and whether boots of either differ by more than their samples scatter. `lean` is
    how much higher the run's sentinel stood with the boots of the variant than with those of the baseline, in percent,
    where that puts the verdict in doubt.
    """

    test: str
    verdict: Verdict
    lack: Lack | None
    change: Change | None
    boots_differ: bool
    lean: float | None = None
    others: tuple[str, ...] = ()
    """Nothing else differs between variants of one run."""

    @property
    def words(self) -> str:
        """The verdict in few words."""
        return brief_words(self)

    @property
    def cautions(self) -> list[str]:
        """Warnings that belong beside the verdict."""
        return caution_words(self)


@dataclass(frozen=True)
class PairVerdicts:
    """The verdicts of a run for variant `b` against its baseline `a`, test by test."""

    a: Variant
    b: Variant
    tests: list[TestVerdict]

    @property
    def tally(self) -> str:
        return tally(self.tests)

    @property
    def counts(self) -> list[tuple[Verdict, int]]:
        """The number of tests with each verdict, the worst verdict first."""
        found = Counter(test.verdict for test in self.tests)
        return [(verdict, found[verdict]) for verdict in MARKS if verdict in found]


@dataclass(frozen=True)
class Pair:
    """Two variants of a run and their comparison, with all its data."""

    a: Variant
    b: Variant
    compared: list[TestComparison]


def verdicts(runs: Sequence[Run]) -> list[tuple[Run, list[PairVerdicts]]]:
    """Return the verdicts of runs, none for one that is not done: two queries. Wants `variants` prefetched."""
    done = [run for run in runs if run.state == RunState.DONE]
    kept = summaries_of(done, *_FIELDS)
    found = measured(kept)
    return [
        (run, verdicts_of_run(run, run.variants.all(), kept[run.pk], found[run.pk]) if run.pk in kept else [])
        for run in runs
    ]


def verdicts_of_run(
    run: Run, variants: Iterable[Variant], kept: Iterable[Summary], found: Measured
) -> list[PairVerdicts]:
    """Return the verdicts in the summaries of one run, none if it is not done."""
    if run.state != RunState.DONE:
        return []
    of = {(summary.variant_id, summary.test): summary for summary in kept}
    ordered = names.in_order(found.tests)

    def verdict_on(a: Variant, b: Variant, test: str) -> TestVerdict:
        first, second = (a.pk, test), (b.pk, test)
        missing = worst_missing(found.missing.get(first), found.missing.get(second))
        return _verdict_of(test, of.get(first), of.get(second), missing)

    return [PairVerdicts(a, b, [verdict_on(a, b, test) for test in ordered]) for a, b in pairs(variants)]


def _verdict_of(test: str, a: Summary | None, b: Summary | None, missing: Missing | None) -> TestVerdict:
    verdict: Verdict = Verdict.NOT_ENOUGH_DATA
    lack: Lack | None = Lack.SAMPLES
    if missing:
        verdict, lack = JUDGED_MISSING[missing]
    elif b:
        verdict, lack = Verdict(b.verdict), Lack(b.lack) if b.lack else None
    change = None
    if b and b.change is not None and b.change_low is not None and b.change_high is not None:
        change = Change(b.change, b.change_low, b.change_high)
    return TestVerdict(test, verdict, lack, change, any(side.boots_differ for side in (a, b) if side))
