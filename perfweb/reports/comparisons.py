# SPDX-License-Identifier: BSD-2-Clause
"""Verdicts on the variants of runs, derived from the samples each time and never stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Avg, DurationField, F, Q

from perfweb.reports import names
from perfweb.reports.numbers import Scale, scale_for
from perfweb.reports.wording import verdict_words
from perfweb.runs.models import Measurement, Run, Sample, Variant
from perfweb.stats.boots import boots_differ
from perfweb.stats.comparison import DEFAULT_MARGIN, Comparison, Direction, Lack, Verdict, among, compare_boots
from perfweb.stats.ministat import ministat

Boots = tuple[tuple[float, ...], ...]
"""Samples boot by boot."""

REMEMBERED = 10_000
"""Comparisons whose verdict is remembered: those of the runs in some lists, some ten megabytes."""


@dataclass(frozen=True)
class SampleSet:
    """The counted samples of one test on one variant, in the order in which they were taken, and the boot of each.

    `boot_time` is the mean time that a boot took with everything that was measured on it, None when not known.
    """

    values: list[float]
    boots: list[int]
    unit: str
    direction: str
    boot_time: timedelta | None = None

    @property
    def by_boot(self) -> Boots:
        groups: dict[int, list[float]] = {}
        for boot, value in zip(self.boots, self.values, strict=True):
            groups.setdefault(boot, []).append(value)
        return tuple(map(tuple, groups.values()))


@dataclass
class CountedSamples:
    """What enters the statistics of one run: the tests it measured, and their samples by variant's key and test."""

    tests: set[str] = field(default_factory=set)
    sets: dict[tuple[int, str], SampleSet] = field(default_factory=dict)


@dataclass(frozen=True)
class TestComparison:
    """One test of a comparison: both sets of samples and what they say."""

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
    """How long a boot of each of the two variants takes, one after the other; 0 when not known."""

    @property
    def words(self) -> str:
        """The verdict, and with one that decides nothing what it would take."""
        return verdict_words(self.result, self.boot_seconds)

    @property
    def scale(self) -> Scale:
        means = [abs(summary.mean) for summary in (self.result.a, self.result.b) if summary]
        return scale_for(self.unit, max(means, default=0.0))

    @property
    def files(self) -> tuple[str, str]:
        """The names of both sets' files, as the archive of the run has them under ministat/."""
        return names.ministat_file(self.a, self.test), names.ministat_file(self.b, self.test)

    @property
    def has_ministat(self) -> bool:
        """Whether both sides have as many samples as ministat wants."""
        return self.result.lack is not Lack.SAMPLES

    @property
    def ministat(self) -> str:
        """What `ministat` prints for the two files, or why it would not."""
        try:
            sets = dict(zip(self.files, (self.a_samples, self.b_samples), strict=True))
            return ministat(sets, confidence=self.result.confidence)
        except ValueError as error:
            return f"{error}\n"


def counted_samples(runs: Iterable[Run]) -> dict[int, CountedSamples]:
    """Read what enters the statistics of runs, by run number: two queries, however many runs and samples."""
    found = {run.pk: CountedSamples() for run in runs}
    measured = Measurement.objects.filter(boot__run__in=found).order_by().values_list("boot__run_id", "test")
    for run, test in measured.distinct():
        found[run].tests.add(test)
    for run, variant, test, samples in sample_sets(Q(measurement__boot__run__in=found)):
        found[run].sets[variant, test] = samples
    return found


def samples_of(variants: Iterable[Variant]) -> dict[tuple[int, str], SampleSet]:
    """Read the counted samples of variants, of whatever runs, by variant's key and test: one query."""
    rows = sample_sets(Q(measurement__boot__variant__in=[variant.pk for variant in variants]))
    return {(variant, test): samples for _, variant, test, samples in rows}


def sample_sets(which: Q) -> Iterator[tuple[int, int, str, SampleSet]]:
    """Read the counted samples that a condition on samples chooses, as run, variant, test and set: one query."""
    boot = "measurement__boot"
    in_order = (f"{boot}__position", f"{boot}__attempt", "index")
    rows = (
        Sample.objects.counted()
        .filter(which)
        .order_by()
        .values_list(f"{boot}__run_id", f"{boot}__variant_id", "measurement__test", "unit", "direction")
        .annotate(
            values=ArrayAgg("value", order_by=in_order),
            boots=ArrayAgg(f"{boot}_id", order_by=in_order),
            boot_time=Avg(F(f"{boot}__ended") - F(f"{boot}__started"), output_field=DurationField()),
        )
    )
    for run, variant, test, *known in rows:
        unit, direction, values, boots, boot_time = known
        yield run, variant, test, SampleSet(values, boots, unit, direction, boot_time)


def compare_variants(
    a: Variant, b: Variant, counted: CountedSamples, confidence: float, margin: float = DEFAULT_MARGIN
) -> list[TestComparison]:
    """Compare variant `b` with variant `a` of the same run in every test that the run measured."""
    return together(
        compare_sets(
            test, (a.name, counted.sets.get((a.pk, test))), (b.name, counted.sets.get((b.pk, test))), confidence, margin
        )
        for test in names.in_order(counted.tests)
    )


def together(tests: Iterable[TestComparison]) -> list[TestComparison]:
    """Judge tests that are read together: a change that is small may be chance when there are many of them."""
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
    """Compare the samples of `b` with those of `a` in one test, each with its name; None stands for no samples."""
    ours, theirs = (samples or SampleSet([], [], "", Direction.HIGHER) for _, samples in (a, b))
    known = ours if ours.values else theirs
    result, differ = _judged(ours.by_boot, theirs.by_boot, known.direction, confidence, margin)
    seconds = sum(side.boot_time.total_seconds() for side in (ours, theirs) if side.boot_time)
    return TestComparison(test, a[0], b[0], ours.values, theirs.values, known.unit, result, differ, seconds)


@lru_cache(maxsize=REMEMBERED)
def _judged(a: Boots, b: Boots, direction: str, confidence: float, margin: float) -> tuple[Comparison, bool]:
    """The verdict, and whether boots differ. It depends on nothing but the samples, so that it may be remembered."""
    return compare_boots(a, b, direction, confidence, margin), boots_differ(a) or boots_differ(b)


def pairs(variants: Iterable[Variant]) -> list[tuple[Variant, Variant]]:
    """Pair the baseline (the first variant where the plan marks none) with each of the others."""
    ordered = sorted(variants, key=lambda variant: (not variant.baseline, variant.position))
    return [(ordered[0], other) for other in ordered[1:]]


def tally(comparisons: Iterable[TestComparison]) -> str:
    """Return how many tests got which verdict, in words: "5 faster, 1 equivalent"."""
    counts = Counter(comparison.result.verdict for comparison in comparisons)
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]) or "nothing measured"
