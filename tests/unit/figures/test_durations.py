# SPDX-License-Identifier: BSD-2-Clause
"""Histograms of the durations of connections: parsed from tcpconnect's output, and drawn on the page of a
comparison.
"""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from perfweb.figures.durations import Durations, durations_figure, quantile, read_bins
from perfweb.runs.models import Artefact, ArtefactKind
from tests.factories import create_run
from tests.unit.pages import comparison_address, page, text_of

TEST = "tcpconnect/host-host/ipv4"
OUTPUT = """\
== sample 0: 2026-11-21T09:00:00.000+00:00, 1.001 s, status 0
-- stdout
connections: 100 seconds: 1.000 rate: 100.0 connections/s
took 64.000 to 66.834 us: 100
== sample 1: 2026-11-21T09:00:01.001+00:00, 1.001 s, status 0
-- stdout
connections: 40 seconds: 1.000 rate: 40.0 connections/s
took 64.000 to 66.834 us: 30
took 1024.000 to 1069.338 us: 10
== sample 2: 2026-11-21T09:00:02.001+00:00, 1.001 s, status 0
-- stdout
connections: 20 seconds: 1.000 rate: 20.0 connections/s
took 64.000 to 66.834 us: 20
-- stderr
took 5 to 4 us: 3
took long
"""
COUNTS = st.dictionaries(st.integers(0, 500), st.integers(1, 10**12), min_size=1)


def bounds(place: int) -> tuple[float, float]:
    return round(2 ** (place / 16), 3), round(2 ** ((place + 1) / 16), 3)


def test_histograms_of_counted_samples_are_added_up() -> None:
    assert read_bins(OUTPUT, 1) == {(64.0, 66.834): 50, (1024.0, 1069.338): 10}
    assert read_bins(OUTPUT, 3) == {}
    void = OUTPUT.replace("01.001+00:00, 1.001 s, status 0", "01.001+00:00, 1.001 s, status 0, void: steal: 12 %")
    assert read_bins(void, 1) == {(64.0, 66.834): 20}


@given(COUNTS)
def test_a_histogram_is_read_as_it_was_written(counts: dict[int, int]) -> None:
    lines = [f"took {low:.3f} to {high:.3f} us: {counts[place]}\n" for place in counts for low, high in [bounds(place)]]
    assert read_bins("== sample 0: now\n" + "".join(lines), 0) == {bounds(place): counts[place] for place in counts}


@given(st.text())
def test_other_output_is_no_histogram(text: str) -> None:
    assert read_bins(text, 0) == Counter()


@given(COUNTS, st.floats(0, 1))
def test_a_quantile_has_its_share_of_the_connections_below_it(counts: dict[int, int], share: float) -> None:
    bins = {bounds(place): counts[place] for place in sorted(counts)}
    found, total = quantile(bins, share), sum(counts.values())
    assert sum(count for (_, high), count in bins.items() if high < found) <= share * total * (1 + 1e-9)
    assert sum(count for (low, _), count in bins.items() if low <= found) >= share * total * (1 - 1e-9)


def test_ends_and_middle_of_a_histogram() -> None:
    bins = {(10.0, 20.0): 50, (40.0, 50.0): 50}
    assert [quantile(bins, share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)] == [10.0, 15.0, 20.0, 45.0, 50.0]


def test_a_histogram_is_zero_where_no_connection_was() -> None:
    figure = durations_figure(Durations({"b": {(10.0, 20.0): 1, (20.0, 40.0): 2, (80.0, 160.0): 1}}), ["a", "b"])
    (trace,) = figure["data"]
    assert trace["meta"]["role"] == "series-1"
    corners = list(zip(trace["x"], trace["y"], strict=True))
    assert corners == [
        (10, 0), (10, 25), (20, 25), (20, 50), (40, 50), (40, 0), (80, 0), (80, 25), (160, 25), (160, 0),
    ]  # fmt: skip


@pytest.mark.django_db
def test_the_page_of_a_comparison_has_their_figure_and_quantiles(client: Client) -> None:
    address = comparison_address(create_run(tests=[TEST, "tcp.stream/host-host/ipv4"]))
    text = text_of(page(client, address))
    side = r"(?: \d{2,3}(?:\.\d)?){6}"
    assert re.search(rf"by quantile Side min p50 p90 p99 p99\.9 max deferred{side} direct{side}", text)
    figures = json.loads(page(client, f"{address}?graphs=json"))
    (name,) = (name for name in figures if name.startswith("durations"))
    assert [trace["name"] for trace in figures[name]["data"]] == ["deferred", "direct"]
    assert "<path" in page(client, f"{address}?graph={name}")


@pytest.mark.django_db
def test_runs_whose_tool_counted_no_times_have_no_histogram(client: Client) -> None:
    run = create_run(tests=[TEST])
    Artefact.objects.filter(kind=ArtefactKind.TOOL_OUTPUT).update(content=b"connections: 3\n")
    assert "Connection time in" not in text_of(page(client, comparison_address(run)))
