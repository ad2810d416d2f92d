# SPDX-License-Identifier: BSD-2-Clause
"""The counted samples of runs, and their statistical comparison."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Avg, DurationField, F, Q

from perfweb import stats
from perfweb.counted import costs
from perfweb.counted.comparison import LoadComparison, compare
from perfweb.counted.comparison import Verdict as Attributed
from perfweb.counted.costs import BootCosts, CostError
from perfweb.counted.loads import LABEL, is_counted
from perfweb.jsontext import JsonError, read_json
from perfweb.runs.models import (
    Artefact,
    ArtefactKind,
    Boot,
    BootState,
    Direction,
    MeasurementState,
    Run,
    Sample,
    Variant,
)
from perfweb.stats.boots import Level, boots_differ
from perfweb.stats.comparison import (
    DEFAULT_MARGIN,
    MINIMUM_BOOTS,
    Comparison,
    Effect,
    Lack,
    Verdict,
    compare_boots,
)
from perfweb.stats.comparison import Direction as Better
from perfweb.stats.ratio import Change
from perfweb.stats.seeds import compare_seeds, spread
from perfweb.stats.student import DEFAULT_CONFIDENCE
from perfweb.stats.summary import summarize

Boots = tuple[tuple[float, ...], ...]
"""Samples boot by boot."""

BySeed = tuple[tuple[int, tuple[float, ...]], ...]
"""Samples by the seed of the simulated machine."""

Costs = dict[tuple[int, str], list[BootCosts]]
"""What each boot of a counted kernel costs, by variant's key and test."""

BY_FUNCTION = {
    Attributed.MORE: Verdict.SLOWER,
    Attributed.FEWER: Verdict.FASTER,
    Attributed.EQUAL: Verdict.EQUIVALENT,
}
"""The verdict on a counted test by that on its functions."""

REMEMBERED = 10_000
"""Max number of cached verdicts: those of the runs in some lists, some ten megabytes."""


class Missing(StrEnum):
    """Why a test that was measured on a variant has no sample that counts."""

    FAILED = "failed"
    VOID = "void"


JUDGED_MISSING: dict[Missing, tuple[Verdict, Lack]] = {
    Missing.FAILED: (Verdict.FAILED, Lack.RESULT),
    Missing.VOID: (Verdict.NOT_ENOUGH_DATA, Lack.VALIDITY),
}
"""The verdict of a comparison with a side that has no samples, and what is missing."""


@dataclass(frozen=True)
class SampleSet:
    """The counted samples of one test on one variant, in the order in which they were taken, and the boot of each.

    `boot_time` is the mean time that a boot took with everything that was measured on it, None when not known. `seeds`
    are those of boots of the simulated machine, by boot. `missing` is why there are no samples, where that is known.
    Samples that are `counted` have what each boot costs by function, if that is known.
    """

    values: list[float]
    boots: list[int]
    unit: str
    direction: str
    boot_time: timedelta | None = None
    seeds: Mapping[int, int] = field(default_factory=dict)
    missing: Missing | None = None
    counted: bool = False
    costs: tuple[BootCosts, ...] = ()

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
    boots = [boot for one in sets for boot in one.boots]
    return replace(
        sets[0], values=values, boots=boots, seeds=seeds, costs=tuple(cost for one in sets for cost in one.costs)
    )


TestOnVariant = tuple[int, str]
"""A variant's key and a test."""


@dataclass
class CountedSamples:
    """What enters the statistics of one run: the tests it measured, their samples by variant's key and test, and why
    there are none where a test gave none that count.
    """

    tests: set[str] = field(default_factory=set)
    sets: dict[TestOnVariant, SampleSet] = field(default_factory=dict)
    missing: Mapping[TestOnVariant, Missing] = field(default_factory=dict)

    def side(self, variant: int, test: str) -> SampleSet:
        """Return the samples of a test on a variant, an empty set with the reason where there are none."""
        return self.sets.get((variant, test)) or without_samples(self.missing.get((variant, test)))


def without_samples(missing: Missing | None) -> SampleSet:
    """Return an empty set of samples."""
    return replace(NO_SAMPLES, missing=missing)


def counted_samples(runs: Iterable[Run]) -> dict[int, CountedSamples]:
    """Read what enters the statistics of runs, by run number: two queries, however many runs and samples, and one more
    if some are counted.
    """
    found = {number: CountedSamples(one.tests, {}, one.missing) for number, one in measured(r.pk for r in runs).items()}
    for run, variant, test, samples in judged_sets(Q(measurement__boot__run__in=found)):
        found[run].sets[variant, test] = samples
    return found


@dataclass
class Measured:
    """Which tests a run has measured, well or not, and which of them have no result on a variant."""

    tests: set[str] = field(default_factory=set)
    missing: dict[TestOnVariant, Missing] = field(default_factory=dict)


def measured(numbers: Iterable[int]) -> dict[int, Measured]:
    """Read which tests runs have measured, by run number: one query."""
    found = {number: Measured() for number in numbers}
    of_boot = ("run_id", "variant_id", "sentinel", "topology", "state")
    boots = Boot.objects.filter(run__in=found).order_by("run_id")
    every = boots.values_list(*of_boot, "measurements__test", "measurements__state").distinct()
    for run, rows in groupby(every, itemgetter(0)):
        found[run] = _measured([row[1:] for row in rows])
    return found


def missing_of(variants: Iterable[Variant]) -> dict[TestOnVariant, Missing]:
    """Read which tests have no result on variants of whatever runs: one query."""
    found = measured({variant.run_id for variant in variants}).values()
    return {key: missing for one in found for key, missing in one.missing.items()}


_BootRow = tuple[int, bool, str, str, str | None, str | None]
"""Variant, whether it is the sentinel, topology, state, and of a measurement its test and state, if there is one."""


def _measured(rows: Sequence[_BootRow]) -> Measured:
    """A test has failed on a variant if it worked on no boot of it, unless all of its samples are void.

    So has one that was measured on other variants only, because boots of this one did not come up.
    """
    states: dict[TestOnVariant, set[str]] = {}
    boots: dict[tuple[int, str], set[str]] = {}
    tests = {test for *_, test, _ in rows if test is not None}
    for variant, sentinel, topology, state, test, outcome in rows:
        if sentinel:
            continue
        boots.setdefault((variant, topology), set()).add(state)
        if test is not None and outcome is not None:
            states.setdefault((variant, test), set()).add(outcome)
    for (variant, topology), of_boots in boots.items():
        if of_boots & _BROKEN:
            for test in tests:
                if topology in test.split("/"):
                    states.setdefault((variant, test), {MeasurementState.FAILED})
    missing = {
        key: Missing.VOID if found == {MeasurementState.VOID} else Missing.FAILED
        for key, found in states.items()
        if MeasurementState.OK not in found
    }
    return Measured(tests, missing)


_BROKEN = {BootState.FAILED, BootState.CRASHED}


def samples_of(variants: Iterable[Variant]) -> dict[tuple[int, str], SampleSet]:
    """Read the counted samples of variants of any runs, by variant's key and test: one query, and one more if some are
    counted.
    """
    rows = judged_sets(Q(measurement__boot__variant__in=[variant.pk for variant in variants]))
    return {(variant, test): samples for _, variant, test, samples in rows}


def judged_sets(which: Q) -> Iterator[tuple[int, int, str, SampleSet]]:
    """Read what `sample_sets` does, with the costs of counted kernels: one more query if there are some."""
    rows = list(sample_sets(which))
    known = costs_of(which) if any(samples.counted for *_, samples in rows) else {}
    for run, variant, test, samples in rows:
        yield run, variant, test, replace(samples, costs=tuple(known.get((variant, test), ())))


def costs_of(which: Q) -> Costs:
    """Read the costs of boots that a condition on measurements selects, in order: one query."""
    rows = (
        Artefact.objects.filter(
            which, kind=ArtefactKind.TOOL_OUTPUT, measurement__test__startswith=LABEL,
            measurement__state=MeasurementState.OK,
        )
        .order_by("run_id", "boot__position", "boot__attempt")
        .values_list("boot__variant_id", "measurement__test", "content")
    )  # fmt: skip
    found: Costs = {}
    for variant, test, content in rows:
        if (of_boot := _read(bytes(content))) is not None:
            found.setdefault((variant, test), []).append(of_boot)
    return found


def _read(content: bytes) -> BootCosts | None:
    """Return the costs that an output has, as an import or a sample has them; None for one that was cut because it was
    too large.
    """
    of_sample = content.partition(b"\n-- stdout\n")[2].partition(b"\n")[0]
    try:
        return costs.read(read_json(of_sample or content))
    except (CostError, JsonError):
        return None


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
        yield (
            run,
            variant,
            test,
            SampleSet(values, boots, unit, direction, boot_time, of_boots, counted=is_counted(test)),
        )


def pairs(variants: Iterable[Variant]) -> list[tuple[Variant, Variant]]:
    """Pair the baseline (the first variant if the plan marks none) with each of the others."""
    ordered = sorted(variants, key=lambda variant: (not variant.baseline, variant.position))
    return [(ordered[0], other) for other in ordered[1:]]


def load_of(test: str, a: SampleSet, b: SampleSet) -> LoadComparison | None:
    """Compare counted samples by function; None unless the costs of enough boots of both sides are known."""
    return compare(test, a.costs, b.costs) if min(len(a.costs), len(b.costs)) >= MINIMUM_BOOTS else None


def judged(
    a: SampleSet,
    b: SampleSet,
    confidence: float = DEFAULT_CONFIDENCE,
    margin: float = DEFAULT_MARGIN,
    load: LoadComparison | None = None,
) -> Comparison:
    """Judge the samples of `b` against those of `a`, as if they were the only ones; seed by seed if simulated, and
    function by function if counted. `load` is that comparison (`load_of`). If only counts of the whole path are known,
    the margin is what the seeds of one side differ by.

    A test that failed on all boots of a side has failed, whatever the other side gave.
    """
    direction, seeds = (a if a.values else b).direction, (a.by_seed, b.by_seed)
    if load is not None:
        return _judged_by_function(load, a.values, b.values, (len(a.costs), len(b.costs)), confidence)
    if all(seeds):
        if a.counted:
            margin = max(spread(dict(side)) for side in seeds)
        return _judged_by_seed(*seeds, direction, confidence, margin)
    result = _judged(a.by_boot, b.by_boot, direction, confidence, margin)
    if (missing := worst_missing(a.missing, b.missing)) is None:
        return result
    verdict, lack = JUDGED_MISSING[missing]
    return replace(result, verdict=verdict, lack=lack)


def _judged_by_function(
    load: LoadComparison, a: Sequence[float], b: Sequence[float], boots: tuple[int, int], confidence: float
) -> Comparison:
    """Return the verdict on a load with its samples on both sides. The margin is what chance explains of the path."""
    path = load.base.instructions or 1.0
    changed = 100 * load.attributed.instructions / path
    margin, seen = 100 * load.spread / path, Change(changed, changed, changed)
    verdict = BY_FUNCTION[load.verdict]
    if verdict is Verdict.EQUIVALENT and set(a) == set(b):
        verdict = Verdict.IDENTICAL
    effect = Effect(
        Level.FUNCTIONS, boots, seen, 1.0 if load.verdict is Attributed.EQUAL else 0.0, seen,
        detectable=margin, needed=None,
    )  # fmt: skip
    first, second = summarize(list(a)), summarize(list(b))
    return Comparison(verdict, Better.LOWER, confidence, margin, first, second, boots, (None, None), effect, None)


def worst_missing(*sides: Missing | None) -> Missing | None:
    """Return why a comparison has no result, if one of its sides has none: a failure before void samples."""
    return next((missing for missing in Missing if missing in sides), None)


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
