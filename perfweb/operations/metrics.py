# SPDX-License-Identifier: BSD-2-Clause
"""The state of the service, as metrics for Prometheus (text format 0.0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import redis
from django.db import connection
from django.db.models import Count, Min, QuerySet
from django.utils import timezone
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from perfweb.faults import services as faults
from perfweb.lab.models import Lease, Outage, Testbed
from perfweb.measuring import space
from perfweb.operations import contradictions, health
from perfweb.outbox.models import Letter
from perfweb.runs.models import Artefact, Boot, Run, RunState, Sample
from perfweb.tracking.models import Alert, AlertState

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


def exposition() -> bytes:
    """Return all gauges in Prometheus' format: eleven queries and one of Redis, whatever the amount of data."""
    return generate_latest(_REGISTRY)


class _Database(Collector):
    """Reads the database and Redis for each request of the gauges."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        waiting, failed = _letters()
        yield _labelled(
            "runs", "Runs by state", "state", _by_state(Run.objects.filter(testbed__sample=""), RunState.values)
        )
        yield _gauge("queue_oldest_seconds", "Age of the oldest run that waits", _oldest())
        testbeds = Testbed.objects.exclude(inventory="").count()
        yield _gauge("testbeds", "Testbeds that runs can be measured on", testbeds)
        yield _gauge("testbeds_leased", "Testbeds that a run holds", _open(Lease.objects.filter(released=None)))
        yield _gauge("testbeds_out", "Testbeds out of service", _open(Outage.objects.filter(ended=None)))
        yield _gauge("messages_waiting", "Messages to others that are still to be sent", waiting)
        yield _gauge("messages_given_up", "Messages that could not be sent", failed)
        alerts = _by_state(Alert.objects.real(), AlertState.values)
        yield _labelled("alerts", "Alerts of tracked branches by state", "state", alerts)
        current = faults.current().count()
        yield _gauge("faults", "Items of unattended loops that fail, contradictions included", current)
        yield _gauge("contradictions", "Invariants of the database that do not hold", contradictions.count())
        short = len(space.shortages())
        yield _gauge("disks_short", "Disks of the web server with too little space for runs", short)
        yield _gauge("last_beat_age_seconds", "Age of the last call of celery beat that was taken", _beat())
        rows = _rows(Sample, Boot, Artefact)
        yield _labelled("rows", "Rows of the largest tables, as PostgreSQL estimates them", "table", rows)


_REGISTRY = CollectorRegistry()
_REGISTRY.register(_Database())


def _gauge(name: str, meaning: str, number: float | None) -> GaugeMetricFamily:
    """A gauge without a label; None leaves out its value."""
    return GaugeMetricFamily(f"perfweb_{name}", meaning, value=number)


def _labelled(name: str, meaning: str, label: str, numbers: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"perfweb_{name}", meaning, labels=[label])
    for value, number in numbers.items():
        family.add_metric([value], number)
    return family


def _by_state(rows: QuerySet[Run] | QuerySet[Alert], states: Iterable[str]) -> dict[str, float]:
    counted = dict(rows.order_by().values_list("state").annotate(count=Count("pk")))
    return {state: counted.get(state, 0) for state in states}


def _oldest() -> float:
    oldest = Run.objects.filter(state=RunState.QUEUED).aggregate(oldest=Min("created"))["oldest"]
    return (timezone.now() - oldest).total_seconds() if oldest else 0.0


def _open(rows: QuerySet[Lease] | QuerySet[Outage]) -> int:
    return rows.values("testbed").distinct().count()


def _beat() -> float | None:
    """Return None without Redis or before the first call, because 0 would be a good value."""
    try:
        return health.beat_age()
    except redis.RedisError:
        return None


def _letters() -> tuple[int, int]:
    waiting = Letter.objects.filter(due__isnull=False).count()
    return waiting, Letter.objects.filter(due__isnull=True).exclude(problem="").count()


def _rows(*models: type[Sample | Boot | Artefact]) -> dict[str, float]:
    """Return estimates of the last ANALYZE, because counting tens of millions of samples takes seconds."""
    tables = [model._meta.db_table for model in models]
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname, greatest(reltuples, 0) FROM pg_class WHERE relname = ANY(%s)", [tables])
        return {str(name): float(count) for name, count in cursor.fetchall()}
