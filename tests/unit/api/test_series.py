# SPDX-License-Identifier: BSD-2-Clause
"""A test over commits and runs."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from perfweb.runs.models import Summary
from tests.factories import DEMO_TESTS, create_history
from tests.unit.api.contract import Api

pytestmark = pytest.mark.django_db
TEST = DEMO_TESTS[0]


def test_a_series_has_a_point_for_each_commit(api: Api) -> None:
    runs = create_history(4)
    answer = api.read("series", test=TEST)
    assert [series["name"] for series in answer["series"]] == [
        "demo/direct-or-deferred/deferred",
        "demo/direct-or-deferred/direct",
    ]
    points = answer["series"][1]["points"]
    assert [point["run"] for point in points] == [run.pk for run in runs]
    known = {summary.run_id: summary for summary in Summary.objects.filter(variant__name="direct")}
    assert [point["mean"] for point in points] == [known[run.pk].mean for run in runs]
    assert points[0]["revision"] == "v0.1-0-g0000000"
    assert points[0]["at"] < points[1]["at"]
    (change,) = answer["changes"]
    assert (change["run"], change["testbed"]) == (runs[2].pk, "demo")
    assert {(fact["before"], fact["after"]) for fact in change["facts"]} == {("6.1.0-28-amd64", "6.1.0-29-amd64")}
    assert api.client.get(answer["page"]).status_code == 200


def test_changes_of_level_are_those_of_the_page(api: Api) -> None:
    runs = create_history(12)
    (level,) = api.read("series", test=TEST)["levels"]
    assert (level["series"], level["verdict"]) == ("demo/direct-or-deferred/direct", "slower")
    assert level["since"]["run"] < runs[6].pk <= level["until"]["run"]
    assert level["low"] < level["percent"] < level["high"] < 0
    page = api.client.get(f"/tests/{TEST}/").content.decode()
    assert level["until"]["revision"] in page[page.index("Change points") :]


def test_a_part_of_a_series(api: Api) -> None:
    runs = create_history(4)
    name = "demo/direct-or-deferred/direct"
    answer = api.read("series", test=TEST, by="run", newest=2, to=runs[2].pk, series=name)
    ((series),) = answer["series"]
    assert (series["name"], [point["run"] for point in series["points"]]) == (name, [runs[1].pk, runs[2].pk])
    assert {point["at"] for point in series["points"]} == {None}


def test_a_test_that_was_never_measured_has_no_series(api: Api) -> None:
    answer = api.read("series", test="nothing")
    assert (answer["series"], answer["unit"], answer["direction"]) == ([], "", None)
    assert api.read("summaries", test="nothing")["items"] == []


def test_summaries_have_everything_in_parts(api: Api) -> None:
    runs = create_history(3)
    rows = api.walk("summaries", test=TEST, limit=2)
    assert [row["run"] for row in rows] == [run.pk for run in reversed(runs) for _ in range(2)]
    known = Summary.objects.get(run=runs[0], variant__name="direct", test=TEST)
    (row,) = [row for row in rows if (row["run"], row["variant"]) == (runs[0].pk, "direct")]
    assert [row[name] for name in ("n", "mean", "deviation")] == [known.n, known.mean, known.deviation]
    one = api.walk("summaries", test=TEST, series=known.series)
    assert {row["variant"] for row in one} == {"direct"}


@pytest.mark.parametrize(
    ("query", "parameter"),
    [({"from": "yesterday"}, "from, to"), ({"by": "run", "to": "x"}, "from, to"), ({"newest": 2001}, "newest")],
)
def test_what_is_no_part_of_a_series(api: Api, query: dict[str, Any], parameter: str) -> None:
    (error,) = api.read("series", status=422, **{"test": TEST, **query})["errors"]
    assert error["parameter"] == parameter


@pytest.mark.parametrize("amount", [2, 6])
def test_queries_do_not_depend_on_how_many_commits_there_are(
    api: Api, django_assert_num_queries: DjangoAssertNumQueries, amount: int
) -> None:
    create_history(amount)
    with django_assert_num_queries(5):
        api.read("series", test=TEST)
    with django_assert_num_queries(2):
        api.read("summaries", test=TEST)
