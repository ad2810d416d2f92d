# SPDX-License-Identifier: BSD-2-Clause
"""Plans, tests and testbeds."""

from __future__ import annotations

import pytest
from pytest_django import DjangoAssertNumQueries

from perfweb.lab import services as lab
from perfweb.runs.catalogue import TESTS
from perfweb.runs.summaries import summarise
from tests.factories import PLAN_TEXT, create_plan, create_run, create_testbed
from tests.unit.api.contract import Api

pytestmark = pytest.mark.django_db


def test_plans_are_known_by_the_digest_of_their_text(api: Api) -> None:
    first, second = create_plan(), create_plan("name: other\n", "other", "Another")
    rows = api.walk("plans", limit=1)
    assert [row["sha256"] for row in rows] == [second.sha256, first.sha256]
    assert api.read(rows[1]["url"])["text"] == PLAN_TEXT
    assert [row["name"] for row in api.read("plans", name="other")["items"]] == ["other"]
    assert "no plan" in api.read(f"plans/{64 * '0'}", status=404)["detail"]
    assert "pattern" in api.read("plans/abc", status=422)["detail"]


def test_all_tests_are_listed(api: Api) -> None:
    tests = api.read("tests")["items"]
    assert [test["name"] for test in tests] == list(TESTS)
    assert api.client.get(tests[0]["page"]).status_code == 200


def test_testbeds(api: Api) -> None:
    run = create_run()
    summarise([run.pk])
    rack = create_testbed("rack")
    lab.acquire(rack, "run 12")
    demo, other = api.walk("testbeds", limit=1)
    assert (demo["name"], demo["good"], demo["holder"], demo["newest_runs"]) == ("demo", True, None, [run.pk])
    assert (other["name"], other["holder"], other["words"]) == ("rack", "run 12", "held by run 12")
    assert [host["role"] for host in demo["hosts"]] == ["dut", "left", "right"]
    noise = api.read(demo["url"])["noise"]
    assert {row["test"] for row in noise} == set(run.summaries.values_list("test", flat=True))
    assert "registered: demo, rack" in api.read("testbeds/nowhere", status=404)["detail"]


@pytest.mark.parametrize("amount", [1, 3])
def test_queries_do_not_depend_on_how_many_there_are(
    api: Api, django_assert_num_queries: DjangoAssertNumQueries, amount: int
) -> None:
    for number in range(amount):
        create_testbed(f"rack{number}")
        create_plan(f"name: p{number}\n", f"p{number}")
    for address, queries in {"plans": 2, "testbeds": 6, "testbeds/rack0": 7, "tests": 0}.items():
        with django_assert_num_queries(queries):
            api.read(address)
