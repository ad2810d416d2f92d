# SPDX-License-Identifier: BSD-2-Clause
"""Runs: filters, pages, one run, and how far it is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from perfweb.runs import progress
from perfweb.runs.models import Import, Run, RunState
from perfweb.runs.summaries import summarise
from perfweb.verdicts.run_verdicts import verdicts
from tests.factories import (
    DEMO_TESTS,
    START,
    create_build,
    create_history,
    create_plan,
    create_queued_run,
    create_run,
    create_testbed,
)
from tests.unit.api.contract import Api

pytestmark = pytest.mark.django_db


def numbers(items: list[dict[str, Any]]) -> list[int]:
    return [item["number"] for item in items]


def test_pages_by_key_do_not_shift_when_runs_are_added(api: Api) -> None:
    made = [create_queued_run().pk for _ in range(5)]
    first = api.read("runs", limit=2)
    create_queued_run()
    second = api.read(first["next"])
    third = api.read(second["next"])
    assert numbers(first["items"] + second["items"] + third["items"]) == sorted(made, reverse=True)
    assert third["next"] is None


def test_next_keeps_the_filters(api: Api) -> None:
    waiting = [create_queued_run().pk for _ in range(3)]
    create_queued_run(state=RunState.FAILED)
    assert numbers(api.walk("runs", state="queued", limit=1)) == sorted(waiting, reverse=True)


def test_an_empty_site_has_an_empty_list(api: Api) -> None:
    assert api.read("runs") == {"items": [], "next": None}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"state": "done"}, "old new"),
        ({"state": ["queued", "done"]}, "waiting old new"),
        ({"plan": "other"}, "waiting"),
        ({"plan": "nothing"}, ""),
        ({"testbed": "rack"}, "waiting"),
        ({"test": DEMO_TESTS[1]}, "new"),
        ({"variant": "direct"}, "old new"),
        ({"variant": "direct", "commit": "v2"}, "new"),
        ({"commit": "v3"}, ""),
        ({"since": "2026-03-01"}, "new waiting"),
        ({"until": "2026-03-01"}, "old"),
        ({"since": "2026-03-01", "until": "2026-05-01T00:00Z"}, "new"),
        ({"since": "2026-04-01 02:00:00+02:00"}, "new waiting"),
    ],
)
def test_filters(api: Api, query: dict[str, Any], found: str) -> None:
    runs = {
        "old": create_run(tests=DEMO_TESTS[:1], build=create_build("1", "v1")),
        "new": create_run(tests=DEMO_TESTS[1:2], build=create_build("2", "v2")),
        "waiting": create_queued_run(create_testbed("rack")),
    }
    runs["waiting"].plan = create_plan("name: other\n", "other", "Another")
    runs["waiting"].save()
    for month, name in ((2, "old"), (4, "new"), (6, "waiting")):
        Run.objects.filter(pk=runs[name].pk).update(created=START.replace(month=month, day=1, hour=0))
    assert sorted(numbers(api.read("runs", **query)["items"])) == sorted(runs[name].pk for name in found.split())


def test_a_run_has_the_facts_of_its_page(api: Api, run: Run) -> None:
    answer = api.read(f"runs/{run.pk}")
    ((_, (pair,)),) = verdicts([run])
    assert answer["verdicts"] == [{"base": "deferred", "variant": "direct", "words": pair.tally}]
    assert [variant["name"] for variant in answer["variants"] if variant["baseline"]] == ["deferred"]
    assert {variant["revision"] for variant in answer["variants"]} == {"v0.1-12-g0123abc"}
    assert answer["measurements"]["failed"] == 2
    assert answer["history"][-1]["to_state"] == "done"
    for address in (answer["page"], answer["plan"]["url"], *(file["url"] for file in answer["files"])):
        assert api.client.get(address).status_code == 200


def test_imported_results_have_their_origin(api: Api, run: Run) -> None:
    assert api.read("runs")["items"][0]["imported"] is None
    run.imported = Import.objects.create(format="csv", origin="netbenches", sha256=64 * "0", imported_by="anna")
    run.save()
    imported = api.read("runs")["items"][0]["imported"]
    assert (imported["format"], imported["origin"], imported["imported_by"]) == ("csv", "netbenches", "anna")


def test_the_list_has_verdicts_on_request(api: Api, run: Run) -> None:
    assert api.read("runs")["items"][0]["verdicts"] is None
    assert "faster" in api.read("runs", verdicts=True)["items"][0]["verdicts"][0]["words"]


@pytest.mark.parametrize(("address", "queries"), [("runs", 4), ("runs?verdicts=true", 6), ("runs/{number}", 12)])
@pytest.mark.parametrize("amount", [1, 4])
def test_queries_do_not_depend_on_how_much_there_is(
    api: Api, django_assert_num_queries: DjangoAssertNumQueries, address: str, queries: int, amount: int
) -> None:
    runs = create_history(amount)
    summarise([create_run(boots=2 * amount).pk])
    with django_assert_num_queries(queries):
        api.read("/api/v1/" + address.format(number=runs[-1].pk))


def test_progress_of_a_run_that_works(api: Api, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    run = create_queued_run(state=RunState.RUNNING)
    progress.begin(run.pk)
    assert api.read(f"runs/{run.pk}/progress")["fraction"] is None
    progress.publish(run.pk, "eta", seconds=30, fraction=0.5)
    where = {"position": 1, "boots": 4, "variant": "direct", "topology": "host-host", "server": "iperf3"}
    progress.publish(run.pk, "boot", **where)
    progress.publish(run.pk, "measuring", test=DEMO_TESTS[0], variant="direct")
    with django_assert_num_queries(2):
        answer = api.read(f"runs/{run.pk}/progress")
    assert (answer["fraction"], answer["seconds_left"], answer["over"]) == (0.5, 30, False)
    assert answer["boot"] == where
    assert answer["measuring"] == {"test": DEMO_TESTS[0], "variant": "direct"}
    assert answer["events"] == f"/runs/{run.pk}/events"


def test_progress_of_a_run_that_is_over(api: Api, run: Run) -> None:
    answer = api.read(f"runs/{run.pk}/progress")
    assert (answer["state"], answer["over"], answer["fraction"]) == ("done", True, None)


def test_a_run_that_does_not_exist_is_answered_with_the_newest(api: Api) -> None:
    assert "none has been submitted" in api.read("runs/17", status=404)["detail"]
    newest = create_queued_run().pk
    answer = api.read(f"runs/{newest + 1}/boots", status=404)
    assert answer["detail"] == f"there is no run {newest + 1}; the newest is {newest}"
    assert answer["title"] == "Not Found"


def test_a_finished_run_has_a_date_and_one_that_works_has_none(api: Api, run: Run) -> None:
    assert run.ended is not None
    address = f"runs/{run.pk}"
    dated = api.answer(address).headers["Last-Modified"]
    assert api.answer(address, {"If-Modified-Since": dated}).status_code == 304
    Run.objects.filter(pk=run.pk).update(ended=run.ended + timedelta(seconds=2))
    assert api.answer(address, {"If-Modified-Since": dated}).status_code == 200
    Run.objects.filter(pk=run.pk).update(state=RunState.RUNNING)
    assert "Last-Modified" not in api.answer(address).headers
