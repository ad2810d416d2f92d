# SPDX-License-Identifier: BSD-2-Clause
"""The results of one run, read with a constant number of queries and arranged for its page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

from django.db.models import Prefetch

from perfweb.runs.models import (
    Artefact,
    Boot,
    BootState,
    Direction,
    Measurement,
    MeasurementState,
    Run,
    Sample,
    Variant,
)
from perfweb.stats.summary import Summary, summarize
from perfweb.verdicts import names
from perfweb.verdicts.numbers import Scale, scale_for

NOISY_PERCENT = 2.5
"""Relative deviation from which a set of samples is marked as noisy."""


class Point(NamedTuple):
    """One sample of a graph; hollow ones (warm-up, void, or of a measurement that failed) enter no statistics.

    `void` is the reason why it is void.
    """

    boot: int
    number: int
    value: float
    hollow: bool
    void: str


@dataclass
class Series:
    """All samples of one metric of one test on one variant, or on the sentinel, in the order of measurement."""

    variant: Variant
    metric: str
    unit: str
    direction: str
    points: list[Point] = field(default_factory=list)
    sentinel: bool = False

    @property
    def name(self) -> str:
        return f"{self.variant.name} (sentinel)" if self.sentinel else self.variant.name

    @cached_property
    def samples(self) -> list[float]:
        return [point.value for point in self.points if not point.hollow]

    @cached_property
    def summary(self) -> Summary | None:
        return summarize(self.samples) if self.samples else None

    @cached_property
    def mean(self) -> float | None:
        """The mean of the summary, computed alone."""
        return fmean(self.samples) if self.samples else None

    @property
    def noisy(self) -> bool:
        relative = self.summary.relative_deviation if self.summary else None
        return relative is not None and relative >= NOISY_PERCENT


@dataclass
class TestResults:
    """One test of a run: its series by metric and variant, those of the sentinel by metric, and its measurements."""

    name: str
    metric: str
    measurements: list[Measurement] = field(default_factory=list)
    series: dict[tuple[str, int], Series] = field(default_factory=dict)
    watched: dict[str, Series] = field(default_factory=dict)

    @cached_property
    def scale(self) -> Scale:
        """The scale of the primary metric; without samples there is no unit either."""
        return self.metrics[0].scale if self.metrics else scale_for("", 0)

    @property
    def commands(self) -> dict[str, str]:
        """The exact command lines, each once with the variants that it measured; they may be unknown for imported
        results.
        """
        variants: dict[str, dict[str, None]] = {}
        for measurement in self.measurements:
            if measurement.command:
                variants.setdefault(measurement.command, {})[measurement.boot.variant.name] = None
        return {command: ", ".join(names) for command, names in variants.items()}

    @property
    def pinnings(self) -> list[str]:
        """The CPUs of each end, each combination once."""
        written = (
            ", ".join(f"{end} on CPU {cpus}" for end, cpus in measurement.pinning.items())
            for measurement in self.measurements
        )
        return list(dict.fromkeys(text for text in written if text))

    @property
    def counted(self) -> list[Measurement]:
        """The measurements of the variants, without those of the sentinel."""
        return [measurement for measurement in self.measurements if not measurement.boot.sentinel]

    @property
    def failures(self) -> list[Measurement]:
        return [measurement for measurement in self.measurements if measurement.state != MeasurementState.OK]

    @property
    def voids(self) -> list[tuple[Series, Point]]:
        """The void samples of the compared metric, in the order of the run."""
        every = [*self.primary, *filter(None, [self.watched.get(self.metric)])]
        found = ((series, point) for series in every for point in series.points if point.void)
        return sorted(found, key=lambda pair: (pair[1].boot, pair[1].number))

    @cached_property
    def primary(self) -> list[Series]:
        """The series of the compared metric, in the order of the plan's variants."""
        return self._ordered(self.metric)

    @cached_property
    def metrics(self) -> list[MetricResults]:
        """The series of each metric, the primary metric first."""
        others = sorted({metric for metric, _ in self.series} - {self.metric})
        grouped = ((metric, self._ordered(metric)) for metric in (self.metric, *others))
        return [MetricResults(metric, series) for metric, series in grouped if series]

    def _ordered(self, metric: str) -> list[Series]:
        found = (series for (name, _), series in self.series.items() if name == metric)
        return sorted(found, key=lambda series: series.variant.position)


@dataclass
class MetricResults:
    """The series of one metric of a test with their common scale."""

    metric: str
    series: list[Series]

    @property
    def lower_is_better(self) -> bool:
        return self.series[0].direction == Direction.LOWER

    @cached_property
    def scale(self) -> Scale:
        means = [abs(series.mean) for series in self.series if series.mean is not None]
        return scale_for(self.series[0].unit, max(means, default=0.0))


@dataclass
class RunResults:
    """All results of a run."""

    variants: list[Variant]
    boots: list[Boot]
    tests: list[TestResults]

    @property
    def failures(self) -> list[Measurement]:
        return [measurement for test in self.tests for measurement in test.failures]

    @property
    def voids(self) -> int:
        return sum(measurement.voids for test in self.tests for measurement in test.measurements)

    @property
    def failed_boots(self) -> list[Boot]:
        return [boot for boot in self.boots if boot.state in {BootState.FAILED, BootState.CRASHED}]


def run_frame(run: Run) -> RunResults:
    """Read a run's variants and boots with the names of their artefacts, and none of its tests: three queries."""
    variants = list(run.variants.select_related("build"))
    texts = Artefact.objects.defer("content").filter(measurement=None)
    boots = list(run.boots.prefetch_related(Prefetch("artefacts", texts)))
    by_key = {variant.pk: variant for variant in variants}
    for boot in boots:
        boot.variant = by_key[boot.variant_id]
    return RunResults(variants, boots, [])


def run_results(run: Run, tests: Sequence[str] | None = None, *, samples_only: bool = False) -> RunResults:
    """Read a run's variants, boots, measurements, samples and the names of its artefacts: six queries.

    Where `tests` are given, only these. With `samples_only` measurements have no other fields, which saves a query.
    """
    found = run_frame(run)
    places = {boot.pk: place for place, boot in enumerate(found.boots)}
    measured = Measurement.objects.filter(boot__run=run)
    if tests is not None:
        measured = measured.filter(test__in=tests)
    if samples_only:
        rows = measured.order_by("pk").only("boot", "test", "metric", "state")
    else:
        texts = Prefetch("artefacts", Artefact.objects.defer("content"))
        rows = measured.order_by("pk").defer("gauges").prefetch_related(texts)
    by_name: dict[str, TestResults] = {}
    for measurement in sorted(rows, key=lambda row: places[row.boot_id]):
        measurement.boot = found.boots[places[measurement.boot_id]]
        results = by_name.setdefault(measurement.test, TestResults(measurement.test, measurement.metric))
        results.measurements.append(measurement)
    _add_samples(run, by_name)
    found.tests = [by_name[name] for name in names.in_order(by_name)]
    return found


def _add_samples(run: Run, tests: dict[str, TestResults]) -> None:
    measurements = {measurement.pk: measurement for test in tests.values() for measurement in test.measurements}
    rows = (
        Sample.objects.filter(measurement__boot__run=run, measurement__test__in=tests)
        .order_by("measurement__boot__position", "measurement__boot__attempt", "index")
        .values_list("measurement_id", "metric", "unit", "direction", "index", "value", "discarded", "void")
    )
    for measurement_id, metric, unit, direction, index, value, discarded, void in rows.iterator():
        measurement = measurements[measurement_id]
        test, boot = tests[measurement.test], measurement.boot
        fresh = Series(boot.variant, metric, unit, direction, sentinel=boot.sentinel)
        if boot.sentinel:
            series = test.watched.setdefault(metric, fresh)
        else:
            series = test.series.setdefault((metric, boot.variant_id), fresh)
        hollow = discarded or bool(void) or measurement.state != MeasurementState.OK
        series.points.append(Point(measurement.boot.position, index, value, hollow, void))
