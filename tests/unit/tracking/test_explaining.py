# SPDX-License-Identifier: BSD-2-Clause
"""Beside the changes, the page of an alert shows other differences: exact costs, counters and locks."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from perfweb.runs.models import ArtefactKind, Boot, Direction, Measurement, MeasurementState, Run, Sample
from perfweb.tracking.alerts.explaining import explain
from perfweb.tracking.measuring import before_name
from perfweb.tracking.models import Alert, AlertState
from tests.factories import create_artefact

pytestmark = pytest.mark.django_db

COST = "simulated.tcp.1.instructions/host-host/ipv4"


def blamed_run(alert: Alert) -> Run:
    return alert.checks.filter(commit=alert.culprit).select_related("run").get().run


def costs(run: Run, before: list[float], after: list[float]) -> None:
    """The counters of each boot of both sides."""
    for name, values in ((before_name("direct"), before), ("direct", after)):
        boot = Boot.objects.filter(run=run, variant__name=name).first()
        assert boot is not None
        measured = Measurement.objects.create(
            boot=boot,
            test=COST,
            tool="simstack",
            metric="instructions",
            command="simstack",
            state=MeasurementState.OK,
            started=boot.started,
            seconds=1.0,
        )
        Sample.objects.bulk_create(
            Sample(
                measurement=measured, index=index, metric="instructions", unit="instructions/kB",
                direction=Direction.LOWER, value=value, seconds=1.0,
            )
            for index, value in enumerate(values)
        )  # fmt: skip


def section(client: Client, alert: Alert) -> str:
    page = re.sub(r"\s+", " ", client.get(f"/alerts/{alert.number}/").content.decode())
    return page.partition('<h2 id="else">')[2].partition("</section>")[0]


def test_exact_costs_stand_side_by_side(client: Client, alert: Alert) -> None:
    run = blamed_run(alert)
    costs(run, [4000.0, 4000.0], [4124.0, 4124.0])
    shown = section(client, alert)
    assert "Exact costs" in shown
    assert ">124.0<" in shown
    assert "+3.10 %" in shown
    assert f'<a href="/runs/{run.pk}/compare/before-direct..direct/">run {run.pk}</a>' in shown


def test_costs_that_scatter_are_not_called_exact(client: Client, alert: Alert) -> None:
    costs(blamed_run(alert), [4000.0, 4001.0], [4124.0, 4124.0])
    assert "Exact costs" not in section(client, alert)


def test_counters_and_locks_of_both_sides_are_shown(
    client: Client, alert: Alert, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    run = blamed_run(alert)
    for boot in Boot.objects.filter(run=run).select_related("variant"):
        waits = 900 if boot.variant.name == "direct" else 3
        text = f"count cnt_lock wait_total name\n1000 {waits} 70 netinet/tcp_input.c:12 (inpcb)\n"
        create_artefact(run, f"boots/{boot.position:03d}/counters-lockprof.txt", text, ArtefactKind.COUNTERS, boot=boot)
    with django_assert_max_num_queries(25):
        shown = section(client, alert)
    assert "net.isr.dispatched" in shown
    assert "netinet/tcp_input.c:12 (inpcb)" in shown
    assert "+897" in shown


def test_nothing_is_explained_before_both_sides_are_measured(client: Client, alert: Alert) -> None:
    early = Alert.objects.create(branch=alert.branch, state=AlertState.NEW, since=alert.since, until=alert.until)
    early.movements.create(variant="direct", test=COST, better=False, suspected=-3.0)
    assert explain(early, [], list(early.movements.all())) is None
    assert section(client, early) == ""
