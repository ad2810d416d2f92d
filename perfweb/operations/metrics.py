# SPDX-License-Identifier: BSD-2-Clause
"""What there is and what goes on, as numbers for Prometheus (text format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import redis
from django.db import connection
from django.db.models import Count, Min, QuerySet
from django.utils import timezone

from perfweb.faults import services as faults
from perfweb.lab.models import Lease, Outage, Testbed
from perfweb.measuring import space
from perfweb.operations import contradictions, health
from perfweb.outbox.models import Letter
from perfweb.runs.models import Artefact, Boot, Run, RunState, Sample
from perfweb.tracking.models import Alert, AlertState

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Gauge:
    """A number now, or one for each value of a label."""

    name: str
    help: str
    values: Mapping[str, float]
    label: str = ""


def exposition() -> str:
    """All gauges as Prometheus reads them: eleven queries and one of Redis, whatever there is."""
    return "".join(line for gauge in _gauges() for line in _lines(gauge))


def _gauges() -> Iterator[Gauge]:
    yield Gauge("runs", "Runs by state", _by_state(Run.objects.all(), RunState.values), "state")
    yield Gauge("queue_oldest_seconds", "Age of the oldest run that waits", _one(_oldest()))
    yield Gauge(
        "testbeds", "Testbeds that runs can be measured on", _one(Testbed.objects.exclude(inventory="").count())
    )
    yield Gauge("testbeds_leased", "Testbeds that a run holds", _one(_open(Lease.objects.filter(released=None))))
    yield Gauge("testbeds_out", "Testbeds out of service", _one(_open(Outage.objects.filter(ended=None))))
    waiting, failed = _letters()
    yield Gauge("messages_waiting", "Messages to others that are still to be sent", _one(waiting))
    yield Gauge("messages_given_up", "Messages that could not be sent", _one(failed))
    yield Gauge(
        "alerts", "Alerts of tracked branches by state", _by_state(Alert.objects.all(), AlertState.values), "state"
    )
    yield Gauge(
        "faults", "Items of unattended loops that fail, contradictions included", _one(faults.current().count())
    )
    yield Gauge("contradictions", "Invariants of the database that do not hold", _one(contradictions.count()))
    yield Gauge("disks_short", "Disks of the web server with too little space for runs", _one(len(space.shortages())))
    yield Gauge("last_beat_age_seconds", "Age of the last call of celery beat that was taken", _beat())
    yield Gauge(
        "rows", "Rows of the largest tables, as PostgreSQL estimates them", _rows(Sample, Boot, Artefact), "table"
    )


def _lines(gauge: Gauge) -> Iterator[str]:
    name = f"perfweb_{gauge.name}"
    yield f"# HELP {name} {gauge.help}\n# TYPE {name} gauge\n"
    for value, number in gauge.values.items():
        label = f'{{{gauge.label}="{value}"}}' if gauge.label else ""
        yield f"{name}{label} {number:g}\n"


def _one(number: float) -> dict[str, float]:
    return {"": number}


def _by_state(rows: QuerySet[Run] | QuerySet[Alert], states: Iterable[str]) -> dict[str, float]:
    counted = dict(rows.order_by().values_list("state").annotate(count=Count("pk")))
    return {state: counted.get(state, 0) for state in states}


def _oldest() -> float:
    oldest = Run.objects.filter(state=RunState.QUEUED).aggregate(oldest=Min("created"))["oldest"]
    return (timezone.now() - oldest).total_seconds() if oldest else 0.0


def _open(rows: QuerySet[Lease] | QuerySet[Outage]) -> int:
    return rows.values("testbed").distinct().count()


def _beat() -> dict[str, float]:
    """Nothing while Redis is away or before the first call: there is no number then, and 0 would be a good one."""
    try:
        age = health.beat_age()
    except redis.RedisError:
        return {}
    return {} if age is None else _one(age)


def _letters() -> tuple[int, int]:
    waiting = Letter.objects.filter(due__isnull=False).count()
    return waiting, Letter.objects.filter(due__isnull=True).exclude(problem="").count()


def _rows(*models: type[Sample | Boot | Artefact]) -> dict[str, float]:
    """Estimates from the last ANALYZE: counting tens of millions of samples takes seconds."""
    tables = [model._meta.db_table for model in models]
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname, greatest(reltuples, 0) FROM pg_class WHERE relname = ANY(%s)", [tables])
        return {str(name): float(count) for name, count in cursor.fetchall()}
