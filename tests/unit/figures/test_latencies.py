# SPDX-License-Identifier: BSD-2-Clause
"""Latencies of transactions on the page of a comparison."""

from __future__ import annotations

import json
import re
from copy import copy

import pytest
from django.test import Client

from perfweb.figures.axes import Axis, log_ticks
from perfweb.runs.models import Sample
from tests.factories import create_run
from tests.unit.pages import comparison_address, page, text_of

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
        r"in µs, median over the samples Side p50 p99 deferred 2\d\.\d 4\d\.\d direct 2\d.\d 4\d\.\d",
        text,
    )
    figures = json.loads(page(client, comparison_address(run) + "?graphs=json"))
    (name,) = (name for name in figures if name.startswith("latency"))
    points = [trace for trace in figures[name]["data"] if trace["mode"] == "markers"]
    counted = Sample.objects.filter(metric__startswith="latency", discarded=False)
    assert sum(len(trace["y"]) for trace in points) == counted.count() > 0
    assert "<marker" in page(client, comparison_address(run) + f"?graph={name}")


@pytest.mark.django_db
def test_latencies_under_load_have_a_table_and_a_graph_for_each_percentile(client: Client) -> None:
    run = create_run(tests=[LOADED])
    compared = list(Sample.objects.filter(metric="latency.p90.75"))
    for metric, times in (("latency.p90.25", 0.5), ("latency.p90.90", 2), ("latency.p50.75", 0.25)):
        for sample in compared:
            made = copy(sample)
            made.pk, made.metric, made.value = None, metric, sample.value * times
            made.save()
    text = text_of(page(client, comparison_address(run)))
    assert re.search(r"which half of the probes did not exceed, in µs, median over the samples Side at 75 % d", text)
    number = r"[\d.]+"
    rows = rf"deferred {number} {number} {number} direct {number} {number} {number}"
    assert re.search(rf"which 90 % of the probes did not exceed, .* Side at 25 % at 75 % at 90 % {rows}", text)
    assert "99 % of the probes" not in text
    figures = json.loads(page(client, comparison_address(run) + "?graphs=json"))
    drawn = {name: figure for name, figure in figures.items() if name.startswith("latency")}
    assert [name.split("-")[1] for name in drawn] == ["p50", "p90"]
    points = [trace for trace in drawn[max(drawn)]["data"] if trace["mode"] == "markers"]
    counted = Sample.objects.filter(metric__startswith="latency.p90", discarded=False)
    assert sum(len(trace["y"]) for trace in points) == counted.count() > 0


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
