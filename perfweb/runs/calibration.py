# SPDX-License-Identifier: BSD-2-Clause
"""The noise of a testbed from A/A runs, and the plan of such a run.

Any run qualifies that has enough boots of two variants which differ only in their names.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from statistics import fmean

from django.db import transaction
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Coalesce

from perfweb.lab.models import Testbed
from perfweb.runs import costs
from perfweb.runs.judging import SampleSet, samples_of
from perfweb.runs.models import Boot, Calibration, Run, Variant
from perfweb.runs.planfile import MOST_BOOTS, read_plan
from perfweb.stats.design.allocation import Noise
from perfweb.stats.design.components import variance_components
from perfweb.stats.design.falsealarms import BLOCKS, false_alarms
from perfweb.stats.student import DEFAULT_CONFIDENCE

TESTS = ("tcp.rr/host-host/ipv4", "udp.rr/host-host/ipv4", "tcp.stream/host-host/ipv4")
PLAN = """\
# An A/A run: the noise of this testbed, and the rate of false positives.
name: calibrate-{target}
title: Calibration of a testbed with {title}
baseline: one
variants:
  - name: one
    target: {target}
  - name: same
    target: {target}
tests: [{tests}]
boots: {boots}
layouts: {layouts}
samples: {samples}  # for each variant and test: {each} on each boot
discard: 1
seconds: 1
timeout: 11
order: abba
"""
TITLES = {"stack": "the reference stack", "linux": "the Linux kernel"}
SAMPLES = 2
"""Min samples of a test on each boot to separate the variances of samples and boots."""


def plan_text(target: str, tests: Sequence[str], minutes: float, *, layouts: bool = False) -> str:
    """Return the plan of an A/A run, with enough blocks, for about that many minutes without building.

    With `layouts` each block has a different layout, which separates their variance from that of boots. Raises
    PlanError for an unknown test, and for layouts of a target other than a stack.
    """

    def sized(boots: int) -> str:
        return PLAN.format(
            target=target, title=TITLES[target], tests=", ".join(tests), boots=boots, samples=SAMPLES * boots,
            each=SAMPLES, layouts=boots if layouts else 0,
        )  # fmt: skip

    block = costs.of_block(read_plan(sized(1)), SAMPLES)
    return sized(max(BLOCKS, min(int(60 * minutes / block), MOST_BOOTS)))


def calibrate(number: int) -> None:
    """Stores the calibration of a run, replacing an existing one."""
    alike = same(Variant.objects.filter(run=number).order_by("position"))
    calibrations = _of_tests(number, alike) if alike else []
    with transaction.atomic():
        Run.objects.select_for_update().get(number=number)  # another process may do the same at this moment
        Calibration.objects.filter(run=number).delete()
        Calibration.objects.bulk_create(calibrations)


def same(variants: Iterable[Variant]) -> list[Variant]:
    """Return the first two variants with equal builds and boots; none if all differ."""
    of, seen = attrgetter("target", "build_id", "build_options", "tunables"), list[Variant]()
    for variant in variants:
        if twin := next((other for other in seen if of(other) == of(variant)), None):
            return [twin, variant]
        seen.append(variant)
    return []


def noises(testbed: Testbed, tests: Iterable[str], *, layouts: bool = False) -> dict[str, tuple[Noise, float]]:
    """The noise of tests on a testbed by the newest calibration, if any: of samples, boots and `layouts`, and the
    seconds of a boot besides its samples.
    """
    newest = newest_of(testbed).filter(test__in=list(tests))
    return {row.test: (noise_of(row, layouts=layouts), row.boot_seconds) for row in newest}


def noise_of(row: Calibration, *, layouts: bool = False) -> Noise:
    """The standard deviations of a calibration, of boots, layouts and samples, in percent."""
    layout = row.layout_deviation if layouts and row.layout_deviation else 0.0
    return Noise(math.hypot(row.boot_deviation, layout), row.sample_deviation)


def newest_of(testbed: Testbed) -> QuerySet[Calibration]:
    """The newest calibration of each test on a testbed."""
    return Calibration.objects.filter(run__testbed=testbed).order_by("test", "-run_id").distinct("test")


def _of_tests(number: int, alike: Sequence[Variant]) -> list[Calibration]:
    sets = samples_of(alike)
    one, other = (variant.pk for variant in alike)
    tests = sorted(test for variant, test in sets if variant == one and (other, test) in sets)
    seconds = _boot_seconds(number)
    layouts = {boot.pk: boot.layout or 0 for boot in Boot.objects.filter(run=number).only("layout")}
    found = (_of_test(sets[one, test], sets[other, test], layouts) for test in tests)
    kept = []
    for test, row in zip(tests, found, strict=True):
        if row is not None:
            row.run, row.test, row.boot_seconds = Run(number=number), test, seconds
            kept.append(row)
    return kept


def _of_test(one: SampleSet, other: SampleSet, layouts: Mapping[int, int]) -> Calibration | None:
    """Compute the calibration from boots of two equal variants; None for too few, or values that are not positive."""
    values, of_values = one.values + other.values, one.boots + other.boots
    if min(values) <= 0:
        return None
    found = false_alarms(list(zip(one.by_boot, other.by_boot, strict=False)), DEFAULT_CONFIDENCE)
    if found is None or len(values) == len(set(of_values)):
        return None
    deviation = _deviations(values, of_values, layouts)
    return Calibration(
        boots=len(set(of_values)),
        samples=len(values),
        boot_deviation=deviation["boots"],
        layout_deviation=deviation.get("layouts"),
        sample_deviation=deviation["samples"],
        confidence=DEFAULT_CONFIDENCE,
        comparisons=found.comparisons,
        disjoint=found.disjoint,
        blocks=found.blocks,
        alarms={name: asdict(alarms) for name, alarms in found.alarms.items()},
    )


def _deviations(values: Sequence[float], boots: Sequence[int], layouts: Mapping[int, int]) -> dict[str, float]:
    """Return the scatter of samples, boots and, if there were several, layouts, each without that of the inner
    levels; in percent.
    """
    mean = fmean(values)
    relative = [100 * value / mean for value in values]
    of_values = [layouts.get(boot, 0) for boot in boots]
    factors = {"layouts": of_values, "boots": boots} if 1 < len(set(of_values)) < len(set(boots)) else {"boots": boots}
    found = variance_components(relative, [0] * len(values), factors)
    return {component.name: component.variance**0.5 for component in found}


def _boot_seconds(number: int) -> float:
    """Return the mean time of a boot without its measurements, in seconds."""
    ended = Boot.objects.filter(run=number, ended__isnull=False)
    runs = ended.annotate(measured=Coalesce(Sum("measurements__seconds"), 0.0))
    spent = [
        (ended - started).total_seconds() - measured
        for started, ended, measured in runs.values_list(F("started"), F("ended"), "measured").order_by()
    ]
    return max(fmean(spent), 0.0) if spent else costs.BOOT_SECONDS
