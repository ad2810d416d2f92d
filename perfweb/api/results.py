# SPDX-License-Identifier: BSD-2-Clause
"""Results of a run: its boots, measurements, samples and texts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Query, Router
from pydantic import BaseModel, Field

from perfweb.api.operations import Name, Number, Page, Text, Window, chosen, cut, dated, read
from perfweb.api.runs import find_run
from perfweb.runs.models import ArtefactKind, BootState, Direction, Measurement, MeasurementState, Run, Sample
from perfweb.verdicts.tags import tag_of_run

router = Router(tags=["results"])

MOST_SAMPLES = 1000


def _same(*names: str) -> dict[str, str]:
    """Columns named like the fields of their models."""
    return dict(zip(names, names, strict=True))


class Boot(BaseModel):
    """One booted variant."""

    run: int
    variant: str
    position: int = Field(description="place in the order of the run, from 0")
    attempt: int = Field(description="above 1 if the boot was repeated")
    layout: int | None = Field(description="seed of the order in which the stack was linked; null without layouts")
    seed: int | None = Field(description="seed of the simulated machine; null where it was measured")
    sentinel: bool = Field(description="booted to see whether the machine drifts: in no verdict")
    topology: str
    server: str = Field(description="program that answers")
    state: BootState
    error: str
    command: str = Field(description="the exact command line that booted it")
    effective_tunables: dict[str, Any] = Field(description="as the booted system reported them")
    started: datetime
    ended: datetime | None


class MeasurementRow(BaseModel):
    """One test on one boot."""

    run: int
    variant: str
    boot: int = Field(description="position of the boot in the order of the run, from 0")
    attempt: int = Field(description="of the boot")
    sentinel: bool = Field(description="on a boot to see whether the machine drifts: in no verdict")
    test: str
    tool: str
    metric: str = Field(description="the metric of its samples that comparisons are about")
    state: MeasurementState = Field(description="only ok enters statistics")
    reason: str = Field(description="why it failed or is void")
    command: str = Field(description="the exact command line, as a shell would take it")
    pinning: dict[str, Any] = Field(description="CPUs of both ends")
    environment: dict[str, Any] = Field(description="gauges of possible disturbances")
    started: datetime
    seconds: float = Field(description="wall-clock time of all samples together")
    voids: int = Field(description="number of its void samples")
    gauges: list[dict[str, float | str]] = Field(
        description="for each sample, the host's gauges: docs/reference/data.md lists the names"
    )
    interim: list[list[list[float]]] = Field(
        description="for each sample, by index, throughput within the sample: ends of intervals in "
        "seconds since its start, with bits/s; empty if the tool reports none"
    )


class SampleRow(BaseModel):
    """One number of a tool's output: the columns of samples.csv."""

    run: int
    variant: str
    boot: int = Field(description="position of the boot in the order of the run, from 0")
    attempt: int = Field(description="of the boot")
    layout: int | None = Field(description="seed of the order in which the stack was linked; null without layouts")
    seed: int | None = Field(description="seed of the simulated machine; null where it was measured")
    sentinel: bool = Field(description="booted to see whether the machine drifts: in no verdict")
    test: str
    sample: int = Field(description="place within the measurement, from 0, warm-up included")
    metric: str
    value: float
    unit: str
    direction: Direction = Field(description="the better direction")
    discarded: bool = Field(description="warm-up, which enters no statistics")
    measurement_state: MeasurementState = Field(description="only ok enters statistics")
    seconds: float = Field(description="wall-clock time the tool ran")
    primary: bool = Field(description="whether comparisons are about this metric of the test")
    revision: str | None = Field(description="`git describe` of the source that was built; null if unknown")
    void: str = Field(description="which validity gate fired, and why; empty for samples that count")


class ArtefactRow(BaseModel):
    """A text that a run stored: the output of a tool, a log, counters."""

    run: int
    name: str = Field(description="unique within the run; its path in raw.tar below artefacts/")
    kind: ArtefactKind
    boot: int | None = Field(description="position of the boot it belongs to")
    test: str | None = Field(description="of the measurement it belongs to")
    size: int = Field(description="in bytes")
    sha256: str
    url: str = Field(description="where the text is, byte for byte")


class BootPage(Page[Boot]):
    """Boots in the order of the run."""


class MeasurementPage(Page[MeasurementRow]):
    """Measurements in the order of the run."""


class SamplePage(Page[SampleRow]):
    """Samples in the order of the measurements."""


class ArtefactPage(Page[ArtefactRow]):
    """Texts by name."""


class BootFilters(BaseModel):
    """Filters of boots."""

    variant: Name | None = Field(None, description="of this variant")
    state: list[BootState] = Field([], description="in any of these states")
    cursor: Number | None = Field(None, description="where the page begins; take it from `next`")


class MeasurementFilters(BaseModel):
    """Filters of measurements."""

    test: Text | None = Field(None, description="of this test")
    variant: Name | None = Field(None, description="on this variant")
    state: list[MeasurementState] = Field([], description="in any of these states")
    cursor: Number | None = Field(None, description="where the page begins; take it from `next`")


Place = Annotated[str, Field(pattern=r"^[0-9]{1,18}:[0-9]{1,9}:[^\u0000:]{1,32}$")]
"""Key of a measurement, and index and metric of a sample within it."""


class SampleFilters(BaseModel):
    """Filters of samples, and the max number of them."""

    test: Text | None = Field(None, description="of this test")
    variant: Name | None = Field(None, description="of this variant")
    metric: Text | None = Field(None, description="of this metric; a tool delivers several, such as latencies")
    counted: bool = Field(False, description="only those that enter statistics")
    limit: int = Field(MOST_SAMPLES, ge=1, le=MOST_SAMPLES, description=f"items of a page, {MOST_SAMPLES} at most")
    cursor: Place | None = Field(None, description="where the page begins; take it from `next`")


class ArtefactFilters(BaseModel):
    """Filters of texts."""

    kind: list[ArtefactKind] = Field([], description="of any of these kinds")
    cursor: Text | None = Field(None, description="where the page begins; take it from `next`")


BOOT = {
    "run": "run_id",
    "variant": "variant__name",
    **_same("position", "attempt", "layout", "seed", "sentinel", "topology", "server", "state", "error", "command"),
    **_same("effective_tunables", "started", "ended"),
}
MEASUREMENT = {
    "run": "boot__run_id",
    "variant": "boot__variant__name",
    "boot": "boot__position",
    "attempt": "boot__attempt",
    "sentinel": "boot__sentinel",
    **_same("test", "tool", "metric", "state", "reason", "command", "pinning", "environment", "started", "seconds"),
    **_same("voids", "gauges", "interim"),
}
MEASURED = {
    "run": "boot__run_id",
    "variant": "boot__variant__name",
    "boot": "boot__position",
    "attempt": "boot__attempt",
    "layout": "boot__layout",
    "seed": "boot__seed",
    "sentinel": "boot__sentinel",
    **_same("test", "metric"),
    "measurement_state": "state",
    "revision": "boot__variant__build__revision",
}
"""The columns that samples get from their measurement, and the metric in question."""

SAMPLE = {
    "measurement": "measurement_id",
    "sample": "index",
    **_same("metric", "value", "unit", "direction", "discarded", "seconds", "void"),
}
ARTEFACT = {
    "run": "run_id",
    "boot": "boot__position",
    "test": "measurement__test",
    **_same("name", "kind", "size", "sha256"),
}


@read(router, "runs/{number}/boots", BootPage, may_lack=True, tag=tag_of_run)
def list_boots(
    request: HttpRequest, response: HttpResponse, number: Number, wanted: Query[BootFilters], window: Query[Window]
) -> BootPage:
    """List the boots of a run."""
    run = find_run(number)
    dated(response, run)
    conditions = chosen(variant__name=wanted.variant, state__in=wanted.state, pk__gt=wanted.cursor)
    rows = _rows(run.boots.filter(**conditions).order_by("pk"), BOOT, window.limit)
    rows, following = cut(request, rows, window.limit, _key)
    return BootPage(items=[Boot(**row) for row in rows], next=following)


@read(router, "runs/{number}/measurements", MeasurementPage, may_lack=True, tag=tag_of_run)
def list_measurements(
    request: HttpRequest,
    response: HttpResponse,
    number: Number,
    wanted: Query[MeasurementFilters],
    window: Query[Window],
) -> MeasurementPage:
    """List the measurements of a run."""
    run = find_run(number)
    dated(response, run)
    conditions = chosen(state__in=wanted.state, pk__gt=wanted.cursor)
    found = _measurements(run, wanted.test, wanted.variant).filter(**conditions)
    rows, following = cut(request, _rows(found, MEASUREMENT, window.limit), window.limit, _key)
    return MeasurementPage(items=[MeasurementRow(**row) for row in rows], next=following)


@read(router, "runs/{number}/samples", SamplePage, may_lack=True, tag=tag_of_run)
def list_samples(
    request: HttpRequest, response: HttpResponse, number: Number, wanted: Query[SampleFilters]
) -> SamplePage:
    """List the samples of a run, discarded and void ones included."""
    run = find_run(number)
    dated(response, run)
    # The measurements are read first, and not joined. With their keys PostgreSQL uses the index of the samples in this
    # order, and reads nothing of other runs.
    of = {row["key"]: row for row in _rows(_measurements(run, wanted.test, wanted.variant), MEASURED)}
    which = _counted(of) if wanted.counted else Q(measurement__in=of)
    found = Sample.objects.filter(which, _after(wanted.cursor), **chosen(metric=wanted.metric))
    rows = _rows(found.order_by("measurement_id", "index", "metric"), SAMPLE, wanted.limit)
    rows, following = cut(
        request, rows, wanted.limit, lambda row: f"{row['measurement']}:{row['sample']}:{row['metric']}"
    )
    items = [
        SampleRow(**{**of[row["measurement"]], **row, "primary": row["metric"] == of[row["measurement"]]["metric"]})
        for row in rows
    ]
    return SamplePage(items=items, next=following)


@read(router, "runs/{number}/artefacts", ArtefactPage, may_lack=True, tag=tag_of_run)
def list_artefacts(
    request: HttpRequest, response: HttpResponse, number: Number, wanted: Query[ArtefactFilters], window: Query[Window]
) -> ArtefactPage:
    """List the texts that a run stored."""
    run = find_run(number)
    dated(response, run)
    conditions = chosen(kind__in=wanted.kind, name__gt=wanted.cursor)
    rows = _rows(run.artefacts.filter(**conditions).order_by("name"), ARTEFACT, window.limit)
    rows, following = cut(request, rows, window.limit, lambda row: row["name"])
    items = [ArtefactRow(**row, url=reverse("reports:artefact", args=[row["key"]])) for row in rows]
    return ArtefactPage(items=items, next=following)


def _measurements(run: Run, test: str | None, variant: str | None) -> QuerySet[Measurement]:
    conditions = chosen(test=test, boot__variant__name=variant)
    return Measurement.objects.filter(boot__run=run, **conditions).order_by("pk")


def _counted(measurements: dict[int, dict[str, Any]]) -> Q:
    """The samples of some measurements that enter statistics, as `Sample.objects.counted()` selects them with a
    join.
    """
    good = {
        key: row["metric"]
        for key, row in measurements.items()
        if row["measurement_state"] == MeasurementState.OK and not row["sentinel"]
    }
    by_metric: dict[str, list[int]] = {}
    for key, metric in good.items():
        by_metric.setdefault(metric, []).append(key)
    primary = Q()
    for metric, keys in by_metric.items():
        primary |= Q(metric=metric, measurement__in=keys)
    # The first condition follows from the second, but only the first can use the index.
    return Q(measurement__in=good, discarded=False, void="") & primary


def _after(cursor: str | None) -> Q:
    """The samples after a cursor, in the order of their unique key."""
    if cursor is None:
        return Q()
    measurement, index, metric = cursor.split(":")
    later_index = Q(index__gt=int(index)) | Q(index=int(index), metric__gt=metric)
    return Q(measurement__gt=int(measurement)) | Q(measurement=int(measurement)) & later_index


def _rows(found: QuerySet[Any], columns: dict[str, str], limit: int | None = None) -> list[dict[str, Any]]:
    """Read the rows of a page and one more, or all rows, as dictionaries with their primary key as `key`."""
    names, last = [*columns, "key"], None if limit is None else limit + 1
    return [dict(zip(names, row, strict=True)) for row in found.values_list(*columns.values(), "pk")[:last]]


def _key(row: dict[str, Any]) -> object:
    return row["key"]
