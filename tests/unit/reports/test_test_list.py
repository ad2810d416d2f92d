# SPDX-License-Identifier: BSD-2-Clause
"""The list of tests: measured ones first with their newest values, the others folded; words and orders select."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from django.db.models import F
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from perfweb.reports.pages.tests import POINTS, Row
from perfweb.runs.models import Import, Run, Summary
from tests.factories import DEMO_TESTS, create_history
from tests.unit.pages import page, text_of

RR, UDP = "tcp.rr/host-host/ipv4", "udp.rr/host-host/ipv4"


def measured(html: str) -> list[str]:
    """The tests of the first table, in their order."""
    return re.findall(r'<th scope="row"><a href="/tests/([^"]+)/">', html.partition("<details")[0])


@pytest.mark.django_db
def test_measured_tests_come_first_and_the_others_are_folded(client: Client) -> None:
    runs = create_history(3, [RR])
    html = page(client, "/tests/")
    assert measured(html) == [RR]
    text = text_of(html)
    assert re.search(rf"{RR} .* transactions/s .\d+\.\d\d % {runs[-1].pk}\b", text), text
    assert html.count('class="sparkline"') == 1
    assert re.search(r"\d+ tests never measured", text)
    assert "<details>" in html
    assert RR not in html.partition("<details")[2]


@pytest.mark.django_db
def test_words_select_by_name_and_meaning(client: Client) -> None:
    create_history(2, [RR, UDP])
    html = page(client, "/tests/?q=UDP+ipv4")
    assert measured(html) == [UDP]
    assert html.count('value="UDP ipv4"') == 1, "the site's search has other words"
    html = page(client, "/tests/?q=ipv6")
    assert measured(html) == []
    assert "No measured test has these words" in html
    assert "<details open>" in html
    html = page(client, "/tests/?q=%3Cscript%3E")
    assert "<script>" not in html.partition("<main")[2]
    assert client.get("/tests/", {"q": "x" * 5000}).status_code == 400


@pytest.mark.django_db
def test_orders(client: Client) -> None:
    older, newer = create_history(1, [RR]), create_history(1, [UDP], seed=9)
    assert older[0].pk < newer[0].pk
    assert measured(page(client, "/tests/?sort=run")) == [UDP, RR]
    assert measured(page(client, "/tests/")) == [RR, UDP]
    assert client.get("/tests/?sort=name").status_code == 400


@pytest.mark.django_db
def test_the_largest_change_is_first(client: Client) -> None:
    runs = create_history(2, [RR, UDP])
    Summary.objects.filter(run=runs[1], test=UDP).update(mean=F("mean") * 3)
    Summary.objects.filter(run=runs[1], test=RR).update(mean=F("mean") * 0.9)
    assert measured(page(client, "/tests/?sort=change")) == [UDP, RR]


@pytest.mark.django_db
def test_the_newest_of_several_imports_counts(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    test = "tcp.rr/imported"
    older, newer = create_history(2, [RR])
    for run, series, unit, mean in ((older, "z/z/z", "packets/s", 7000.0), (newer, "a/a/a", "bits/s", 5e9)):
        Summary.objects.filter(run=run).update(test=test, unit=unit, mean=mean)
        Summary.objects.filter(run=run).exclude(pk=Summary.objects.filter(run=run).values("pk")[:1]).delete()
        Summary.objects.filter(run=run).update(series=series)
        run.imported = Import.objects.create(format="csv", origin="elsewhere", sha256=f"{run.pk:064}")
        run.save()
    text = text_of(page(client, "/tests/"))
    assert re.search(rf"{test} .* 5\.0+ Gbit/s . {newer.pk}\b", text), text
    assert "imported tests are listed" not in text
    monkeypatch.setattr("perfweb.reports.pages.tests.MOST_IMPORTED", 1)
    assert "At most 1 imported tests are listed; the search finds all." in text_of(page(client, "/tests/?q=imported"))


@pytest.mark.django_db
def test_a_site_without_results_leads_to_the_documentation(client: Client) -> None:
    html = page(client, "/tests/")
    assert "Nothing was measured yet" in html
    assert RR in html.partition("<details")[2]


@pytest.mark.django_db
@pytest.mark.parametrize("tests", [DEMO_TESTS[:1], DEMO_TESTS])
def test_queries_do_not_depend_on_the_number_of_tests(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries, tests: Sequence[str]
) -> None:
    create_history(2, tests)
    with django_assert_num_queries(5):
        client.get("/tests/")


@given(st.lists(st.floats(-1e300, 1e300, allow_nan=False), min_size=1, max_size=POINTS))
def test_any_values_have_a_change_or_none(values: list[float]) -> None:
    row = Row(RR, 1, False, "demo/plan/a", "transactions/s", values)
    assert row.change is None or isinstance(row.change, float)
    assert row.value


def test_the_change_is_against_the_median_before() -> None:
    assert Row(RR, 1, False, "s", "Gbit/s", [10.0, 50.0, 10.0, 11.0]).change == pytest.approx(10.0)
    assert Row(RR, 1, False, "s", "s", [-10.0, -5.0]).change == pytest.approx(50.0)
    assert Row(RR, 1, False, "s", "Gbit/s", [10.0]).change is None
    assert Row(RR, 1, False, "s", "Gbit/s", [0.0, 10.0]).change is None


@pytest.mark.django_db
def test_a_deleted_run_leaves_no_row(client: Client) -> None:
    create_history(1, [RR])
    Run.objects.all().delete()
    assert measured(page(client, "/tests/")) == []
