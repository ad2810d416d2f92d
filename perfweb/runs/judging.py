# SPDX-License-Identifier: BSD-2-Clause
"""The counted samples of runs, and their statistical comparison."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from pathlib import Path

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Avg, DurationField, F, Q

from perfweb import stats
from perfweb.runs.models import Direction, Measurement, Run, Sample, Variant
from perfweb.stats.boots import boots_differ
from perfweb.stats.comparison import DEFAULT_MARGIN, Comparison, compare_boots
from perfweb.stats.seeds import compare_seeds
from perfweb.stats.student import DEFAULT_CONFIDENCE

Boots = tuple[tuple[float, ...], ...]
"""Samples boot by boot."""

BySeed = tuple[tuple[int, tuple[float, ...]], ...]
"""Samples by the seed of the simulated machine."""

REMEMBERED = 10_000
"""Max number of cached verdicts: those of the runs in some lists, some ten megabytes."""


@dataclass(frozen=True)
class SampleSet:
    """The counted samples of one test on one variant, in the order in which they were taken, and the boot of each.

    `boot_time` is the mean time of a boot with all its measurements, None if unknown. `seeds` are those of boots of the
    simulated machine, by boot.
    """

    values: list[float]
    boots: list[int]
    unit: str
    direction: str
    boot_time: timedelta | None = None
    seeds: Mapping[int, int] = field(default_factory=dict)

    @property
    def by_boot(self) -> Boots:
        groups: dict[int, list[float]] = {}
        for boot, value in zip(self.boots, self.values, strict=True):
            groups.setdefault(boot, []).append(value)
        return tuple(map(tuple, groups.values()))

    @property
    def by_seed(self) -> BySeed:
        """Samples by seed, in the order of seeds; empty unless each boot has one."""
        groups: dict[int, list[float]] = {}
        for boot, value in zip(self.boots, self.values, strict=True):
            if boot not in self.seeds:
                return ()
            groups.setdefault(self.seeds[boot], []).append(value)
        return tuple((seed, tuple(values)) for seed, values in sorted(groups.items()))


NO_SAMPLES = SampleSet([], [], "", Direction.HIGHER)


def joined(sets: Sequence[SampleSet]) -> SampleSet:
    """Merge samples of one test from variants that count as the same."""
    if not sets:
        return NO_SAMPLES
    values = [value for one in sets for value in one.values]
    seeds = {boot: seed for one in sets for boot, seed in one.seeds.items()}
    return replace(sets[0], values=values, boots=[boot for one in sets for boot in one.boots], seeds=seeds)


@dataclass
class CountedSamples:
    """The counted samples of one run: its measured tests, and the samples by variant's key and test."""

    tests: set[str] = field(default_factory=set)
    sets: dict[tuple[int, str], SampleSet] = field(default_factory=dict)


def counted_samples(runs: Iterable[Run]) -> dict[int, CountedSamples]:
    """Read the counted samples of runs, by run number: two queries for any number of runs and samples."""
    found = {number: CountedSamples(tests) for number, tests in measured_tests(run.pk for run in runs).items()}
    for run, variant, test, samples in sample_sets(Q(measurement__boot__run__in=found)):
        found[run].sets[variant, test] = samples
    return found


def measured_tests(numbers: Iterable[int]) -> dict[int, set[str]]:
    """Read the measured tests of runs, with failed ones, by run number: one query."""
    found: dict[int, set[str]] = {number: set() for number in numbers}
    measured = Measurement.objects.filter(boot__run__in=found).order_by().values_list("boot__run_id", "test")
    for run, test in measured.distinct():
        found[run].add(test)
    return found


def samples_of(variants: Iterable[Variant]) -> dict[tuple[int, str], SampleSet]:
    """Read the counted samples of variants of any runs, by variant's key and test: one query."""
    rows = sample_sets(Q(measurement__boot__variant__in=[variant.pk for variant in variants]))
    return {(variant, test): samples for _, variant, test, samples in rows}


def sample_sets(which: Q) -> Iterator[tuple[int, int, str, SampleSet]]:
    """Read the counted samples that a condition on samples selects, as run, variant, test and set: one query."""
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
            seeds=ArrayAgg(f"{boot}__seed", order_by=in_order),
            boot_time=Avg(F(f"{boot}__ended") - F(f"{boot}__started"), output_field=DurationField()),
        )
    )
    for run, variant, test, *known in rows:
        unit, direction, values, boots, seeds, boot_time = known
        of_boots = {boot: seed for boot, seed in zip(boots, seeds, strict=True) if seed is not None}
        yield run, variant, test, SampleSet(values, boots, unit, direction, boot_time, of_boots)


def pairs(variants: Iterable[Variant]) -> list[tuple[Variant, Variant]]:
    """Pair the baseline (the first variant if the plan marks none) with each of the others."""
    ordered = sorted(variants, key=lambda variant: (not variant.baseline, variant.position))
    return [(ordered[0], other) for other in ordered[1:]]


def judged(
    a: SampleSet, b: SampleSet, confidence: float = DEFAULT_CONFIDENCE, margin: float = DEFAULT_MARGIN
) -> Comparison:
    """Compare the samples of `b` with those of `a`, as the only test; seed by seed if simulated."""
    direction, seeds = (a if a.values else b).direction, (a.by_seed, b.by_seed)
    if all(seeds):
        return _judged_by_seed(*seeds, direction, confidence, margin)
    return _judged(a.by_boot, b.by_boot, direction, confidence, margin)


@lru_cache(maxsize=REMEMBERED)
def _judged(a: Boots, b: Boots, direction: str, confidence: float, margin: float) -> Comparison:
    """The result depends on the samples only, so it can be cached."""
    return compare_boots(a, b, direction, confidence, margin)


@lru_cache(maxsize=REMEMBERED)
def _judged_by_seed(a: BySeed, b: BySeed, direction: str, confidence: float, margin: float) -> Comparison:
    return compare_seeds(dict(a), dict(b), direction, confidence, margin)


def differ(samples: SampleSet) -> bool:
    """Return whether boots of a variant differ by more than their samples scatter."""
    return _differ(samples.by_boot)


_differ = lru_cache(maxsize=REMEMBERED)(boots_differ)


def _digest() -> str:
    files = sorted(Path(str(stats.__file__)).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


RULES = _digest()
"""Version of the statistics: verdicts of other versions are computed anew."""
