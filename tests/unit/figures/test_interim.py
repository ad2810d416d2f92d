# SPDX-License-Identifier: BSD-2-Clause
"""Throughput within samples: drawn on the page of a run, and downloaded as a table, in run.json and by the API."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.test import Client

from perfweb.figures import interim
from perfweb.runs.models import Measurement, Run
from perfweb.verdicts.names import anchor
from tests.factories import create_run, make_void
from tests.unit.pages import page

pytestmark = pytest.mark.django_db
TEST = "tcp.stream/host-host/ipv4"
INTERIM = [[1.0, 4e9], [2.0, 1e9], [3.0, 5e9]]


@pytest.fixture
def run() -> Run:
    """Of five samples on each of two boots the first is warm-up and the last has no interim reports; one more is
    void.
    """
    made = create_run(tests=[TEST], boots=1, samples=4, discard=1)
    Measurement.objects.update(interim=[INTERIM] * 4 + [[]])
    make_void(Measurement.objects.order_by("pk")[0], 2, "steal: 9 %")
    return made


def test_the_page_draws_a_line_for_each_sample_that_counts(client: Client, run: Run, monkeypatch: Any) -> None:
    name = f"interim-{anchor(TEST)}"
    assert f'data-graph="{name}"' in page(client, f"/runs/{run.pk}/")
    figures = client.get(f"/runs/{run.pk}/?graphs=json").json()
    traces = figures[name]["data"]
    assert sorted(trace["name"] for trace in traces) == ["deferred"] * 2 + ["direct"] * 3
    assert [(trace["x"], trace["y"]) for trace in traces] == [([1, 2, 3], [4, 1, 5])] * 5
    assert traces[0]["text"][1].endswith("sample 2: 1.0000 Gbit/s")
    monkeypatch.setattr(interim, "MOST_POINTS", 6)
    thinned = client.get(f"/runs/{run.pk}/?graphs=json").json()[name]["data"]
    assert sum(len(trace["x"]) for trace in thinned) <= 6


def test_runs_without_interim_results_have_no_such_graph(client: Client) -> None:
    made = create_run(tests=[TEST])
    assert "interim-" not in page(client, f"/runs/{made.pk}/")
    assert csv_rows(client, made) == []


def csv_rows(client: Client, run: Run) -> list[dict[str, str]]:
    table: Any = client.get(f"/runs/{run.pk}/interim.csv")
    return list(csv.DictReader(io.StringIO(table.getvalue().decode())))


def test_all_intervals_can_be_taken_away(client: Client, run: Run) -> None:
    rows = csv_rows(client, run)
    assert len(rows) == 2 * 4 * 3
    assert {(row["variant"], row["sample"]) for row in rows} == {
        (variant, str(sample)) for variant in ("deferred", "direct") for sample in range(4)
    }
    assert [(float(row["at"]), float(row["throughput"])) for row in rows[:3]] == [tuple(point) for point in INTERIM]
    tree = json.loads(b"".join(client.get(f"/runs/{run.pk}/run.json")))
    (measurement, *_) = client.get(f"/api/v1/runs/{run.pk}/measurements").json()["items"]
    assert tree["boots"][0]["measurements"][0]["interim"] == measurement["interim"] == [INTERIM] * 4 + [[]]
