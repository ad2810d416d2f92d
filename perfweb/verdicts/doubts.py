# SPDX-License-Identifier: BSD-2-Clause
"""Comparisons of the sides of pages, tables, letters and the API, with the doubts that the sentinel of a run causes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from perfweb.runs.judging import CountedSamples, pairs
from perfweb.runs.models import Run, RunState
from perfweb.stats.comparison import DEFAULT_MARGIN, Lack, Verdict
from perfweb.stats.student import DEFAULT_CONFIDENCE
from perfweb.verdicts.comparisons import TestComparison, compare_variants
from perfweb.verdicts.environment import other_properties
from perfweb.verdicts.run_verdicts import Pair, PairVerdicts, verdicts
from perfweb.verdicts.sentinels import Sentinel, read_sentinel
from perfweb.verdicts.sides import Side, compare_sides


@dataclass(frozen=True)
class SideComparisons:
    """The first of several sides against each of the others in their order, and the sentinel of their run if it had
    one.
    """

    results: list[list[TestComparison]]
    sentinel: Sentinel | None

    @property
    def everything(self) -> list[TestComparison]:
        return [found for result in self.results for found in result]


def run_pairs(
    run: Run, counted: CountedSamples, confidence: float = DEFAULT_CONFIDENCE, margin: float = DEFAULT_MARGIN
) -> list[Pair]:
    """Compare the baseline of a run with each other variant, with confidence and margin in percent: two queries if its
    plan has a sentinel. Needs `plan` and `variants`.
    """
    sentinel = read_sentinel(run, list(counted.tests))
    done = run.state == RunState.DONE
    return [
        Pair(a, b, _in_run(compare_variants(a, b, counted, confidence, margin), sentinel, done=done))
        for a, b in pairs(run.variants.all())
    ]


def side_comparisons(sides: Sequence[Side], confidence: float, margin: float) -> SideComparisons:
    """Compare the first side with each of the others; a sentinel is used if all are of one run: another run had
    another time, and maybe another machine, kernel or build, which each verdict names.
    """
    base, results = sides[0], []
    others = other_properties([side.variants for side in sides], [side.by_commit for side in sides])
    for other, found in zip(sides[1:], others, strict=True):
        compared = [replace(one, others=found) for one in compare_sides(base, other, confidence, margin)]
        results.append(compared if base.is_done and other.is_done else not_judged(compared))
    runs = {variant.run_id for side in sides for variant in side.variants}
    tests = list(dict.fromkeys(found.test for result in results for found in result))
    sentinel = read_sentinel(base.variants[0].run, tests) if len(runs) == 1 else None
    return SideComparisons([_doubted_tests(result, sentinel) for result in results], sentinel)


def _in_run(compared: list[TestComparison], sentinel: Sentinel | None, *, done: bool) -> list[TestComparison]:
    return _doubted_tests(compared, sentinel) if done else not_judged(compared)


def not_judged(compared: Iterable[TestComparison]) -> list[TestComparison]:
    """Return the same samples and intervals without a verdict: a run is judged once, when it is done."""
    return [replace(one, result=replace(one.result, verdict=Verdict.NOT_JUDGED, lack=Lack.END)) for one in compared]


def doubted_runs(runs: Sequence[Run]) -> list[tuple[Run, list[PairVerdicts]]]:
    """Return the verdicts of runs with the doubts of their sentinels: two more queries for each run that has one."""
    return [
        (run, doubted(found, read_sentinel(run, list(dict.fromkeys(one.test for pair in found for one in pair.tests)))))
        for run, found in verdicts(runs)
    ]


def doubted(found: Sequence[PairVerdicts], sentinel: Sentinel | None) -> list[PairVerdicts]:
    """Mark the verdicts of a run that its sentinel puts in doubt."""
    of = {test.test: test for test in sentinel.tests} if sentinel else {}

    def doubt(pair: PairVerdicts) -> PairVerdicts:
        sides = pair.a.name, pair.b.name
        tests = [
            replace(one, lean=of[one.test].doubt(sides, one.verdict, one.change, DEFAULT_MARGIN))
            if one.test in of
            else one
            for one in pair.tests
        ]
        return replace(pair, tests=tests)

    return [doubt(pair) for pair in found]


def _doubted_tests(compared: Iterable[TestComparison], sentinel: Sentinel | None) -> list[TestComparison]:
    """Mark the tests of a comparison, whose sides are variants of one run."""
    of = {test.test: test for test in sentinel.tests} if sentinel else {}

    def doubt(one: TestComparison) -> TestComparison:
        if one.test not in of:
            return one
        result = one.result
        seen = result.effect.interval if result.effect else None
        return replace(one, lean=of[one.test].doubt((one.a, one.b), result.verdict, seen, result.margin))

    return [doubt(one) for one in compared]
