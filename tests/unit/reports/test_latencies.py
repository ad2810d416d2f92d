# SPDX-License-Identifier: BSD-2-Clause
"""Latencies of transactions on the page of a comparison."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client

from perfweb.reports.axes import Axis, log_ticks
from perfweb.runs.catalogue import LOADS
from perfweb.runs.models import Sample
from tests.factories import create_run
from tests.unit.reports.test_pages import comparison_address, page, text_of

TEST = "tcp.rr/host-host/ipv4"
LOADED = "udp.loaded/host-host/ipv4"


@pytest.mark.django_db
def test_percentiles_stand_in_a_table_and_every_sample_is_drawn(client: Client) -> None:
    run = create_run(tests=[TEST, "tcp.stream/host-host/ipv4"])
    slowest = list(Sample.objects.filter(metric="latency.p99"))
    for sample in slowest:
        sample.pk, sample.metric, sample.value = None, "latency.p50", sample.value / 2
    Sample.objects.bulk_create(slowest)
    text = text_of(page(client, comparison_address(run)))
    assert re.search(
        r"in µs, median over the samples Side 50 % 99 % deferred 2\d\.\d 4\d\.\d direct 2\d.\d 4\d\.\d",
        text,
    )
    figures = json.loads(page(client, comparison_address(run) + "?graphs=json"))
    (name,) = (name for name in figures if name.startswith("latency"))
    points = [trace for trace in figures[name]["data"] if trace["mode"] == "markers"]
    counted = Sample.objects.filter(metric__startswith="latency", discarded=False)
    assert sum(len(trace["y"]) for trace in points) == counted.count() > 0
    assert "<marker" in page(client, comparison_address(run) + f"?graph={name}")


@pytest.mark.django_db
def test_latencies_under_load_have_a_row_for_each_load_and_lines_over_it(client: Client) -> None:
    run = create_run(tests=[LOADED])
    for sample in list(Sample.objects.filter(metric="latency.p90.75")):
        for place, load in enumerate(LOADS):
            told = {"offered": 1000.0 * int(load), "delivered": 99.5, "latency.p50": sample.value / 2 + place}
            told |= {"latency.p90": sample.value + place} if load != "75" else {}
            for metric, value in told.items():
                sample.pk, sample.metric, sample.value = None, f"{metric}.{load}", value
                sample.save()
            sample.value = told["latency.p50"]
    text = text_of(page(client, comparison_address(run)))
    rows = re.findall(r"(deferred|direct) (\d\d) (\d\d)[\s,](\d00)[\s,]?\S* ?99\.5", text)
    each = [(side, load) for side in ("deferred", "direct") for load in LOADS]
    assert [(side, load) for side, load, *_ in rows] == each
    assert "Side load, % packets/s came back, % 50 % 90 %" in text
    figures = json.loads(page(client, comparison_address(run) + "?graphs=json"))
    (name,) = (name for name in figures if name.startswith("latency"))
    lines = [trace for trace in figures[name]["data"] if trace["mode"] == "lines"]
    assert [(trace["name"], trace["x"]) for trace in lines] == [
        (side, [25_000.0, 50_000.0, 75_000.0, 90_000.0]) for side in ("deferred", "direct") for _ in ("90 %", "50 %")
    ]
    assert "<marker" in page(client, comparison_address(run) + f"?graph={name}")


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.0, 4.0, ["1", "10", "100", "1 000", "10 000"]),
        (1.1, 2.2, ["20", "50", "100"]),
        (-2.0, 0.0, ["0.01", "0.1", "1"]),
        (1.62, 1.71, ["42", "44", "46", "48", "50"]),
    ],
)
def test_ticks_of_a_logarithmic_axis(low: float, high: float, texts: list[str]) -> None:
    assert [text.replace("\N{NARROW NO-BREAK SPACE}", " ") for _, text in log_ticks(low, high)] == texts


def test_decades_are_equally_wide() -> None:
    axis = Axis.of({"type": "log"}, [1.0, 10_000.0], 0, 100)
    places = axis.places([1.0, 10.0, 100.0])
    assert places[1] - places[0] == pytest.approx(places[2] - places[1])
