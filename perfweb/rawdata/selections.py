# SPDX-License-Identifier: BSD-2-Clause
"""Selections of a download: the measurements of a run, of the sides of a comparison, or of a test over time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from django.db.models import BooleanField, ExpressionWrapper, F, Max, Q, QuerySet

from perfweb.figures.timelines import Window, summaries_in
from perfweb.rawdata.tables import ROWS_AT_ONCE, Column, Kind, Row, Table
from perfweb.runs.models import FINAL_STATES, Artefact, Measurement, Run, Sample, Summary
from perfweb.verdicts.sides import Side
from perfweb.version import code_version


@dataclass(frozen=True)
class Selection:
    """Runs, their selected measurements, and the texts of these.

    `name` is the folder of its archive and the beginning of the names of its files.
    """

    name: str
    runs: QuerySet[Run]
    measurements: QuerySet[Measurement]
    artefacts: QuerySet[Artefact]

    @cached_property
    def is_over(self) -> bool:
        """Whether all runs are over, so that the files do not change any more."""
        return not self.runs.exclude(state__in=FINAL_STATES).exists()

    @cached_property
    def modified(self) -> datetime | None:
        """The time of the last change."""
        times = [
            *self.runs.aggregate(ended=Max("ended"), created=Max("created"), step=Max("transitions__at")).values(),
            self.artefacts.aggregate(created=Max("created"))["created"],
        ]
        return max((time for time in times if time), default=None)

    @cached_property
    def version(self) -> str:
        """A digest that changes with any downloadable content.

        Samples are written together with their measurement and never changed, and every text has its hash in the
        database, so neither has to be read.
        """
        digest = hashlib.sha256(code_version().encode())
        for rows in (
            self.runs.order_by("pk").values_list("pk", "state", "reason", "started", "ended", "plan__sha256"),
            self.measurements.order_by("pk").values_list(
                "pk", "state", "reason", "boot__state", "boot__error", "boot__position", "boot__attempt", "boot__ended"
            ),
            self.artefacts.order_by("pk").values_list("name", "sha256"),
        ):
            for row in rows.iterator():
                digest.update(repr(row).encode())
        return digest.hexdigest()


def of_run(run: Run) -> Selection:
    """Select everything of a run."""
    return Selection(
        f"run-{run.pk}",
        Run.objects.filter(pk=run.pk),
        Measurement.objects.filter(boot__run=run),
        Artefact.objects.filter(run=run),
    )


def of_sides(sides: Sequence[Side], run: Run | None) -> Selection:
    """Select the measurements of a comparison, which is of one `run` or of several (None)."""
    variants = [variant.pk for side in sides for variant in side.variants]
    name = f"run-{run.pk}-{'..'.join(side.label for side in sides)}" if run else "comparison"
    return Selection(
        name,
        Run.objects.filter(variants__in=variants).distinct(),
        Measurement.objects.filter(boot__variant__in=variants),
        Artefact.objects.filter(boot__variant__in=variants),
    )


def of_series(test: str, window: Window, wanted: Sequence[str]) -> Selection:
    """Select the measurements of a test in a window of its timeline, of some series or of all."""
    variants = series_rows(test, window, wanted).order_by().values("variant")
    measurements = Measurement.objects.filter(test=test, boot__variant__in=variants)
    return Selection(
        test.replace("/", "-"),
        Run.objects.filter(variants__in=variants).distinct(),
        measurements,
        Artefact.objects.filter(measurement__in=measurements.order_by().values("pk")),
    )


def series_rows(test: str, window: Window, wanted: Sequence[str]) -> QuerySet[Summary]:
    """Return the summaries that a timeline with the same window and series would draw."""
    return summaries_in(test, window, wanted).order_by("run_id", "variant__position")


_BOOT = "measurement__boot"
_SAMPLE_FIELDS = (
    (Column("run", Kind.INTEGER, "number of the run"), f"{_BOOT}__run_id"),
    (Column("variant", Kind.TEXT, "name of the variant in its plan"), f"{_BOOT}__variant__name"),
    (Column("boot", Kind.INTEGER, "place of the boot in the order of the run, from 0"), f"{_BOOT}__position"),
    (Column("attempt", Kind.INTEGER, "above 1 if the boot was repeated"), f"{_BOOT}__attempt"),
    (Column("layout", Kind.INTEGER, "seed of the order in which the stack was linked"), f"{_BOOT}__layout"),
    (Column("seed", Kind.INTEGER, "seed of the simulated machine, empty where it was measured"), f"{_BOOT}__seed"),
    (Column("sentinel", Kind.FLAG, "booted to see whether the machine drifts: in no verdict"), f"{_BOOT}__sentinel"),
    (Column("test", Kind.TEXT, "name of the test"), "measurement__test"),
    (Column("sample", Kind.INTEGER, "place within the measurement, from 0, warm-up included"), "index"),
    (Column("metric", Kind.TEXT, "the metric: transactions, throughput, latency.p99"), "metric"),
    (Column("value", Kind.NUMBER, "the number, in the unit of the next column"), "value"),
    (Column("unit", Kind.TEXT, "unit of the value: transactions/s, bits/s, us"), "unit"),
    (Column("direction", Kind.TEXT, "the better direction: higher or lower"), "direction"),
    (Column("discarded", Kind.FLAG, "warm-up, which enters no statistics"), "discarded"),
    (Column("measurement_state", Kind.TEXT, "only ok enters statistics; failed, void"), "measurement__state"),
    (Column("seconds", Kind.NUMBER, "wall-clock time the tool ran, in seconds"), "seconds"),
    (Column("primary", Kind.FLAG, "whether comparisons are about this metric of the test"), "primary"),
    (Column("revision", Kind.TEXT, "built revision, by git describe"), f"{_BOOT}__variant__build__revision"),
    (Column("void", Kind.TEXT, "which validity gate fired, and why; only samples where none did count"), "void"),
)  # fmt: skip
SAMPLE_COLUMNS = tuple(column for column, _ in _SAMPLE_FIELDS)
"""Columns of samples.*. Scripts read them by name: append new ones, never rename one."""


def samples_table(selection: Selection) -> Table:
    """All samples, discarded and void ones included, run by run in the order in which they were taken."""

    def rows() -> Iterator[Row]:
        primary = ExpressionWrapper(Q(metric=F("measurement__metric")), BooleanField())
        wanted = Sample.objects.filter(measurement__in=selection.measurements.order_by().values("pk"))
        place = (f"{_BOOT}__run_id", f"{_BOOT}__position", f"{_BOOT}__attempt", "measurement_id", "index", "metric")
        fields = (field for _, field in _SAMPLE_FIELDS)
        # iterator() reads through a cursor on the server, so that only these rows are in memory at once.
        yield from wanted.annotate(primary=primary).order_by(*place).values_list(*fields).iterator(ROWS_AT_ONCE)

    return Table(SAMPLE_COLUMNS, rows)


_INTERIM_FIELDS = (
    (Column("run", Kind.INTEGER, "number of the run"), "boot__run_id"),
    (Column("variant", Kind.TEXT, "name of the variant in its plan"), "boot__variant__name"),
    (Column("boot", Kind.INTEGER, "place of the boot in the order of the run, from 0"), "boot__position"),
    (Column("attempt", Kind.INTEGER, "above 1 if the boot was repeated"), "boot__attempt"),
    (Column("sentinel", Kind.FLAG, "booted to see whether the machine drifts: in no verdict"), "boot__sentinel"),
    (Column("test", Kind.TEXT, "name of the test"), "test"),
)
INTERIM_COLUMNS = (
    *(column for column, _ in _INTERIM_FIELDS),
    Column("sample", Kind.INTEGER, "place within the measurement, from 0, warm-up included"),
    Column("at", Kind.NUMBER, "end of the interval, in seconds since the sample began"),
    Column("throughput", Kind.NUMBER, "in the interval, in bits/s"),
)
"""Columns of interim.*. Scripts read them by name: append new ones, never rename one."""


def interim_table(selection: Selection) -> Table:
    """A row for each throughput interval of a sample, in order."""

    def rows() -> Iterator[Row]:
        place = ("boot__run_id", "boot__position", "boot__attempt", "pk")
        fields = (field for _, field in _INTERIM_FIELDS)
        measurements = selection.measurements.exclude(interim=[]).order_by(*place).values_list(*fields, "interim")
        for *where, samples in measurements.iterator(ROWS_AT_ONCE):
            for index, intervals in enumerate(samples):
                yield from ((*where, index, *interval) for interval in intervals)

    return Table(INTERIM_COLUMNS, rows)


_SERIES_FIELDS = (
    (Column("test", Kind.TEXT, "name of the test"), "test"),
    (Column("series", Kind.TEXT, "series: testbed/plan/variant"), "series"),
    (Column("run", Kind.INTEGER, "number of the run"), "run_id"),
    (Column("variant", Kind.TEXT, "name of the variant in its plan"), "variant__name"),
    (Column("revision", Kind.TEXT, "built revision, by git describe"), "revision"),
    (Column("at", Kind.TIME, "time of the commit that was built, or of the run where there is none, UTC"), "at"),
    (Column("environment", Kind.TEXT, "digest of the facts about the hosts"), "environment"),
    (Column("unit", Kind.TEXT, "unit of the numbers that follow"), "unit"),
    (Column("direction", Kind.TEXT, "the better direction: higher or lower"), "direction"),
    (Column("n", Kind.INTEGER, "number of samples that count"), "n"),
    (Column("mean", Kind.NUMBER, "their mean"), "mean"),
    (Column("deviation", Kind.NUMBER, "their sample standard deviation; empty for a single sample"), "deviation"),
    (Column("minimum", Kind.NUMBER, "their min"), "minimum"),
    (Column("maximum", Kind.NUMBER, "their max"), "maximum"),
)  # fmt: skip
SERIES_COLUMNS = tuple(column for column, _ in _SERIES_FIELDS)


def series_table(test: str, window: Window, wanted: Sequence[str]) -> Table:
    """A row for each variant of each run on which the test was measured."""

    def rows() -> Iterator[Row]:
        fields = (field for _, field in _SERIES_FIELDS)
        yield from series_rows(test, window, wanted).values_list(*fields).iterator(ROWS_AT_ONCE)

    return Table(SERIES_COLUMNS, rows)
