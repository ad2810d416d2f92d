# SPDX-License-Identifier: BSD-2-Clause
"""The boots of a sentinel on pages, and their absence from all other results."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from perfweb.reports.pages import runs
from perfweb.runs.invariants import violations
from perfweb.runs.judging import counted_samples, measured
from perfweb.runs.models import Boot, Measurement, Run
from perfweb.runs.summaries import summaries_of
from perfweb.verdicts.doubts import doubted
from perfweb.verdicts.names import anchor
from perfweb.verdicts.numbers import MINUS
from perfweb.verdicts.run_verdicts import verdicts_of_run
from perfweb.verdicts.sentinels import read_sentinel
from perfweb.verdicts.text import run_text
from tests.factories import DEMO_TESTS, create_watched_run, faster_later, make_void
from tests.unit.pages import comparison_address, page, text_of

pytestmark = pytest.mark.django_db
TESTS = DEMO_TESTS[:2]


def leans(run: Run) -> list[float | None]:
    pairs = verdicts_of_run(run, run.variants.all(), summaries_of([run])[run.pk], measured([run.pk])[run.pk])
    return [test.lean for pair in doubted(pairs, read_sentinel(run, TESTS)) for test in pair.tests]


def test_the_page_has_the_movement_of_the_sentinel_and_its_figure(client: Client) -> None:
    run = create_watched_run()
    html = page(client, f"/runs/{run.pk}/")
    text = text_of(html)
    found = read_sentinel(run, TESTS)
    assert found is not None
    for test in found.tests:
        assert test.drift.total == pytest.approx(-4, abs=0.3)
        assert f"in {test.test}" in text
    assert text.count(f"The sentinel moved by {MINUS}") == text.count("from the first to the last of 5 boots") == 1
    assert "<small>sentinel</small>" in html
    assert html.count('data-graph="sentinel-') == len(TESTS)
    figure = client.get(f"/runs/{run.pk}/?graphs=json").json()[f"sentinel-{anchor(TESTS[0])}"]
    assert {trace["name"]: len(trace["x"]) for trace in figure["data"]} == {
        "deferred": 4,
        "direct": 4,
        "sentinel (deferred)": 5,
    }
    for address in (comparison_address(run), f"/compare/?base={run.pk}/deferred&with={run.pk}/direct"):
        assert f"The sentinel moved by {MINUS}" in text_of(page(client, address))


def test_the_page_states_that_steady_boots_prove_no_movement(client: Client) -> None:
    assert "No movement of the sentinel is proven" in text_of(
        page(client, f"/runs/{create_watched_run(level=lambda _: 1.0).pk}/")
    )
    few = create_watched_run(order="abbaab")
    assert "booted 4 times, which proves no movement: that takes 5 boots" in text_of(page(client, f"/runs/{few.pk}/"))


def test_a_verdict_is_in_doubt_where_the_machine_changed_between_the_boots_of_its_sides(client: Client) -> None:
    run = create_watched_run(order="aaaabbbb", level=faster_later, gain=1.0)
    assert leans(run) == [pytest.approx(3.75, abs=0.2)] * 2
    for address in (f"/runs/{run.pk}/", comparison_address(run)):
        assert "faster ⚠ sentinel +3." in " ".join(text_of(page(client, address)).split())
    assert leans(create_watched_run(level=faster_later, gain=1.0)) == [None, None]
    assert leans(create_watched_run(order="aaaabbbb", level=faster_later, gain=1.2)) == [None, None]


def test_a_doubt_stands_beside_the_verdict_in_tables_texts_and_the_api(client: Client) -> None:
    run = create_watched_run(order="aaaabbbb", level=faster_later, gain=1.0)
    expected = leans(run)
    assert None not in expected
    sides = f"base={run.pk}/deferred&with={run.pk}/direct"
    for address in (f"/runs/{run.pk}/", comparison_address(run), "/compare/"):
        table: Any = client.get(f"{address}verdicts.json?{sides}")
        assert [row["lean"] for row in json.loads(table.getvalue())] == expected
    for address in (f"runs/{run.pk}/comparisons", f"comparisons?{sides}"):
        (comparison,) = client.get(f"/api/v1/{address}").json()["items"]
        assert [test["lean"] for test in comparison["tests"]] == expected
    text = run_text(run)
    assert len(re.findall(r" faster; sentinel \+3\.\d+ %$", text, re.MULTILINE)) == len(TESTS)
    assert text.count("Drift may explain") == 1
    certain = run_text(create_watched_run())
    assert "sentinel" not in certain


def test_samples_of_the_sentinel_count_nowhere_and_are_in_all_raw_data(client: Client) -> None:
    run = create_watched_run()
    for samples in counted_samples([run])[run.pk].sets.values():
        assert (len(samples.values), len(set(samples.boots))) == (20, 4)
    assert violations() == []
    table: Any = client.get(f"/runs/{run.pk}/samples.csv")
    rows = list(csv.DictReader(io.StringIO(table.getvalue().decode())))
    places = set(Boot.objects.filter(run=run, sentinel=True).values_list("position", flat=True))
    assert places == {0, 3, 6, 9, 12}
    assert {int(row["boot"]) for row in rows if row["sentinel"] == "true"} == places
    tree = json.loads(b"".join(client.get(f"/runs/{run.pk}/run.json")))
    assert {boot["position"] for boot in tree["boots"] if boot["sentinel"]} == places
    for kind in ("boots", "measurements", "samples"):
        items = client.get(f"/api/v1/runs/{run.pk}/{kind}").json()["items"]
        assert {item.get("boot", item.get("position")) for item in items if item["sentinel"]} == places
    counted = client.get(f"/api/v1/runs/{run.pk}/samples?counted=true").json()["items"]
    assert len(counted) == 2 * 2 * 20
    files = client.get(f"/runs/{run.pk}/ministat/deferred/{TESTS[0]}.txt")
    assert len(b"".join(files).splitlines()) == 20


def test_void_samples_of_the_sentinel_are_listed_as_its_own(client: Client) -> None:
    run = create_watched_run()
    make_void(Measurement.objects.filter(boot__run=run, boot__position=3, test=TESTS[0])[0], 1, "steal: 9 %")
    assert "boot 3, deferred (sentinel), sample 2:" in text_of(page(client, f"/runs/{run.pk}/"))


def test_very_many_tests_have_the_table_without_graphs(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MOST_CELLS", 2)
    html = page(client, f"/runs/{create_watched_run(order='aaaabbbb', level=faster_later, gain=1.0).pk}/")
    assert "movement of the sentinel is proven" in text_of(html)
    assert "⚠ sentinel +3." in text_of(html)
    assert "data-graph" not in html


@pytest.mark.parametrize("times", [1, 2])
def test_a_sentinel_costs_two_queries_however_often_it_boots(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries, times: int
) -> None:
    run = create_watched_run(order="abba" * times)
    with django_assert_num_queries(23):
        client.get(f"/runs/{run.pk}/")
    with django_assert_num_queries(11):
        client.get(comparison_address(run))
