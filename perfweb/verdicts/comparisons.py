# SPDX-License-Identifier: BSD-2-Clause
"""Comparisons of variants test by test, derived from the samples each time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from perfweb.counted.comparison import LoadComparison
from perfweb.lab.origins import origin_of
from perfweb.runs.judging import NO_SAMPLES, CountedSamples, SampleSet, differ, judged, load_of
from perfweb.runs.models import Variant
from perfweb.stats.comparison import DEFAULT_MARGIN, Comparison, Lack, Verdict, among
from perfweb.stats.ministat import ministat
from perfweb.stats.ratio import Change
from perfweb.stats.student import MINIMUM_SAMPLES
from perfweb.verdicts import names
from perfweb.verdicts.numbers import Scale, scale_for
from perfweb.verdicts.wording import caution_words, lack_in_brief, verdict_words


@dataclass(frozen=True)
class TestComparison:
    """One test of a comparison: both sets of samples and their statistics."""

    test: str
    a: str
    b: str
    a_samples: list[float]
    b_samples: list[float]
    unit: str
    result: Comparison
    boots_differ: bool
    """Whether boots of a variant differ by more than their samples scatter."""
    boot_seconds: float
    """Seconds of a boot of each of the two variants, one after the other; 0 if unknown."""
    lean: float | None = None
    """How much higher the run's sentinel stood with the boots of `b` than with those of `a`, in percent, where that
    puts the verdict in doubt."""
    others: tuple[str, ...] = ()
    """What else differs between the sides, if they were measured in different runs: "other kernel"."""
    load: LoadComparison | None = None
    """The functions that differ, if both sides are counted kernels."""

    @property
    def verdict(self) -> Verdict:
        return self.result.verdict

    @property
    def lack(self) -> Lack | None:
        return self.result.lack

    @property
    def change(self) -> Change | None:
        return self.result.effect.interval if self.result.effect else None

    @property
    def words(self) -> str:
        """The verdict, and with one that decides nothing what it would take."""
        return verdict_words(self.result, self.boot_seconds, (self.a, self.b))

    @property
    def cautions(self) -> list[str]:
        """Warnings that belong beside the verdict."""
        return caution_words(self)

    @property
    def scale(self) -> Scale:
        means = [abs(summary.mean) for summary in (self.result.a, self.result.b) if summary]
        return scale_for(self.unit, max(means, default=0.0))

    @property
    def files(self) -> tuple[str, str]:
        """The names of both sets' files, as in the archive of the run under ministat/."""
        return names.ministat_file(self.a, self.test), names.ministat_file(self.b, self.test)

    @property
    def has_ministat(self) -> bool:
        """Whether both sides have as many samples as ministat wants, and are not counted by function."""
        return self.load is None and min(len(self.a_samples), len(self.b_samples)) >= MINIMUM_SAMPLES

    @property
    def ministat(self) -> str:
        """The output of `ministat` for the two files, or the reason why it refuses them."""
        try:
            sets = dict(zip(self.files, (self.a_samples, self.b_samples), strict=True))
            return ministat(sets, confidence=self.result.confidence)
        except ValueError as error:
            return f"{error}\n"


def compare_variants(
    a: Variant, b: Variant, counted: CountedSamples, confidence: float, margin: float = DEFAULT_MARGIN
) -> list[TestComparison]:
    """Compare variant `b` with variant `a` of the same run in every measured test."""
    return together(
        compare_sets(test, (a.name, counted.side(a.pk, test)), (b.name, counted.side(b.pk, test)), confidence, margin)
        for test in names.in_order(counted.tests)
    )


def together(tests: Iterable[TestComparison]) -> list[TestComparison]:
    """Judge tests that are read together: among many tests a small change may be chance."""
    compared = list(tests)
    results = among([comparison.result for comparison in compared])
    return [replace(comparison, result=result) for comparison, result in zip(compared, results, strict=True)]


def compare_sets(
    test: str,
    a: tuple[str, SampleSet | None],
    b: tuple[str, SampleSet | None],
    confidence: float,
    margin: float = DEFAULT_MARGIN,
) -> TestComparison:
    """Compare the samples of `b` with those of `a` in one test, each with its name; None means no samples."""
    ours, theirs = (samples or NO_SAMPLES for _, samples in (a, b))
    known = ours if ours.values else theirs
    load, unlike = load_of(test, ours, theirs), differ(ours) or differ(theirs)
    result = judged(ours, theirs, confidence, margin, load)
    seconds = sum(side.boot_time.total_seconds() for side in (ours, theirs) if side.boot_time)
    return TestComparison(test, a[0], b[0], ours.values, theirs.values, known.unit, result, unlike, seconds, load=load)


class Judged(Protocol):
    """One test with its verdict."""

    @property
    def test(self) -> str: ...

    @property
    def verdict(self) -> Verdict: ...

    @property
    def lack(self) -> Lack | None: ...


def tally(tests: Iterable[Judged]) -> str:
    """Return the number of tests with each verdict, the worst first, in words: "1 slower, 5 faster".

    Verdicts that were taken back because there are many tests are counted beside the others without enough data.
    """
    found = list(tests)
    counts = Counter(test.verdict for test in found)
    chance = sum(test.lack is Lack.CERTAINTY for test in found)
    of_these = "" if chance == counts[Verdict.NOT_ENOUGH_DATA] else f"{chance} of them: "
    reason = f" ({of_these}{lack_in_brief(Lack.CERTAINTY)})" if chance else ""
    words = [
        f"{counts[verdict]} {verdict}{reason if verdict is Verdict.NOT_ENOUGH_DATA else ''}"
        for verdict in Verdict
        if counts[verdict]
    ]
    return ", ".join(words) or "nothing measured"


_UNCHANGED = {
    frozenset[Verdict](): "No result",
    frozenset({Verdict.NOT_JUDGED}): "Not judged",
    frozenset({Verdict.IDENTICAL}): "Identical",
    frozenset({Verdict.EQUIVALENT}): "Equivalent",
    frozenset({Verdict.EQUIVALENT, Verdict.IDENTICAL}): "Equivalent",
}
"""A verdict of all tests where none has failed, is faster or slower, by the verdicts that there are."""

_NOTABLE = (Verdict.FAILED, Verdict.SLOWER, Verdict.FASTER)


def in_words(tests: Sequence[Judged]) -> str:
    """Return a verdict of all tests and the number of each: "Slower: 1 slower, 2 equivalent".

    Tests that were not measured are marked.
    """
    kinds = {test.verdict for test in tests}
    notable = [str(verdict) for verdict in _NOTABLE if verdict in kinds]
    first = " and ".join(notable).capitalize() or _UNCHANGED.get(frozenset(kinds), "No change was proven")
    mark = max((origin_of(test.test).after_comma for test in tests), default="")
    return f"{first}{mark}: {tally(tests)}"
