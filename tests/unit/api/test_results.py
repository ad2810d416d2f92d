# SPDX-License-Identifier: BSD-2-Clause
"""Boots, measurements, samples and texts of a run."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from perfweb.runs.models import Measurement, Run, Sample
from tests.factories import DEMO_TESTS, create_run, make_void
from tests.unit.api.contract import Api

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("limit", [7, 1000])
def test_samples_are_those_of_the_table_that_is_downloaded(api: Api, run: Run, limit: int) -> None:
    create_run()
    run.boots.filter(position=0).update(layout=3)
    table: Any = api.client.get(f"/runs/{run.pk}/samples.csv")
    rows = list(csv.DictReader(io.StringIO(table.getvalue().decode())))
    samples = api.walk(f"runs/{run.pk}/samples", limit=limit)

    def plain(sample: dict[str, Any]) -> dict[str, str]:
        cells = {name: "" if value is None else value for name, value in sample.items()}
        return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in cells.items()}

    assert [plain(sample) for sample in samples] == rows
    assert {row["layout"] for row in rows if row["boot"] == "0"} == {"3"}


def test_filters_of_samples(api: Api, run: Run) -> None:
    query = {"test": DEMO_TESTS[0], "variant": "direct", "metric": "transactions", "counted": True}
    samples = api.walk(f"runs/{run.pk}/samples", **query)
    assert len(samples) == 10
    assert {(sample["test"], sample["variant"], sample["metric"]) for sample in samples} == {
        (DEMO_TESTS[0], "direct", "transactions")
    }
    assert not any(sample["discarded"] for sample in samples)
    assert api.walk(f"runs/{run.pk}/samples", test="nothing") == []


def test_void_samples_have_their_reason_and_are_not_counted(api: Api, run: Run) -> None:
    measurement = Measurement.objects.filter(boot__run=run, test=DEMO_TESTS[0])[0]
    measurement.gauges = [{"seconds": 1.0, "steal": 0.1, "clocksource": "tsc"}]
    make_void(measurement, 2, "steal: 10 %")
    query = {"test": DEMO_TESTS[0], "metric": measurement.metric}
    samples = api.walk(f"runs/{run.pk}/samples", **query)
    assert [sample["void"] for sample in samples if sample["void"]] == ["steal: 10 %"]
    assert len(api.walk(f"runs/{run.pk}/samples", **query, counted=True)) == 19
    row = api.walk(f"runs/{run.pk}/measurements", test=DEMO_TESTS[0])[0]
    assert (row["voids"], row["gauges"]) == (1, [{"seconds": 1.0, "steal": 0.1, "clocksource": "tsc"}])


def test_boots_and_measurements_and_texts(api: Api, run: Run) -> None:
    boots = api.walk(f"runs/{run.pk}/boots", limit=3)
    assert [boot["position"] for boot in boots] == list(range(run.boots.count()))
    assert {boot["variant"] for boot in api.walk(f"runs/{run.pk}/boots", variant="direct")} == {"direct"}
    measurements = api.walk(f"runs/{run.pk}/measurements", limit=5)
    assert len(measurements) == 24
    failed = api.walk(f"runs/{run.pk}/measurements", state="failed")
    assert [(row["test"], row["variant"]) for row in failed] == [("udp.rr/host-host/ipv4", "direct")] * 2
    assert failed[0]["reason"]
    texts = api.walk(f"runs/{run.pk}/artefacts", limit=10)
    assert len(texts) == run.artefacts.count()
    (log,) = [text for text in texts if text["name"] == "boots/000-deferred/boot.log"]
    text: Any = api.client.get(log["url"])
    assert text.getvalue() == b"stack: 1 CPU\nstack: up\n"
    assert len(api.walk(f"runs/{run.pk}/artefacts", kind="boot-log")) == len(boots)


@pytest.mark.parametrize(("address", "queries"), [("boots", 5), ("measurements", 5), ("samples", 6), ("artefacts", 5)])
@pytest.mark.parametrize("boots", [1, 4])
def test_queries_do_not_depend_on_how_much_was_measured(
    api: Api, django_assert_num_queries: DjangoAssertNumQueries, address: str, queries: int, boots: int
) -> None:
    run = create_run(boots=boots)
    assert Sample.objects.exists()
    with django_assert_num_queries(queries):
        api.read(f"runs/{run.pk}/{address}")
