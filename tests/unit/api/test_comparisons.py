# SPDX-License-Identifier: BSD-2-Clause
"""Verdicts equal those of the pages."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from perfweb.runs.judging import counted_samples
from perfweb.runs.models import Run
from perfweb.verdicts.comparisons import compare_variants
from tests.factories import DEMO_TESTS, create_build, create_knob_run, create_queued_run, create_run
from tests.unit.api.contract import Api

pytestmark = pytest.mark.django_db


def sides(base: str, *others: str) -> dict[str, Any]:
    return {"base": base, "with": list(others)}


def test_verdicts_are_those_of_the_pages(api: Api, run: Run) -> None:
    (comparison,) = api.read(f"runs/{run.pk}/comparisons", confidence=99, margin=1)["items"]
    a, b = run.variants.all()
    compared = compare_variants(a, b, counted_samples([run])[run.pk], 99.0, 1.0)
    assert (comparison["base"], comparison["other"]) == (f"{run.pk}/deferred", f"{run.pk}/direct")
    assert (comparison["confidence"], comparison["margin"]) == (99, 1)
    for test, ours in zip(comparison["tests"], compared, strict=True):
        assert (test["test"], test["verdict"], test["words"]) == (ours.test, ours.result.verdict, ours.words)
        if ours.result.effect is None:
            assert test["effect"] is None
        else:
            change = ours.result.effect.interval
            assert [test["effect"][name] for name in ("percent", "low", "high")] == [
                change.percent, change.low, change.high,
            ]  # fmt: skip
    assert comparison["verdicts"]["failed"] >= 1
    assert sum(comparison["verdicts"].values()) == len(compared)
    assert comparison["words"] in comparison["text"]
    page = api.client.get(comparison["page"])
    assert page.status_code == 200
    assert "99 %" in page.content.decode().replace("\N{NARROW NO-BREAK SPACE}", " ")


def test_a_test_that_failed_on_one_side_is_reported(api: Api, run: Run) -> None:
    (comparison,) = api.read(f"runs/{run.pk}/comparisons")["items"]
    (failed,) = [test for test in comparison["tests"] if test["test"] == "udp.rr/host-host/ipv4"]
    assert (failed["verdict"], failed["lack"], failed["b"]) == ("failed", "a boot on which the test worked", None)


def test_runs_and_commits_may_be_compared(api: Api) -> None:
    first = create_run(tests=DEMO_TESTS[:1], build=create_build("1", "v1"))
    second = create_run(tests=DEMO_TESTS[:1], build=create_build("2", "v2"), gain=1.2, seed=2)
    answer = api.read("comparisons", **sides(f"{first.pk}/deferred", f"{second.pk}/direct", "v2/direct"))
    assert [found["verdicts"]["faster"] for found in answer["items"]] == [1, 1]
    assert answer["items"][0]["tests"][0]["effect"] == answer["items"][1]["tests"][0]["effect"]
    assert api.client.get(answer["items"][1]["page"]).status_code == 200


def test_a_run_of_four_variants_has_three_comparisons_and_one_that_waits_none(api: Api) -> None:
    assert len(api.read(f"runs/{create_knob_run().pk}/comparisons")["items"]) == 3
    assert api.read(f"runs/{create_queued_run().pk}/comparisons") == {"items": []}


def test_a_side_that_does_not_exist_is_answered_with_those_that_do(api: Api, run: Run) -> None:
    answer = api.read("comparisons", status=404, **sides(f"{run.pk}/deferred", f"{run.pk}/eager"))
    assert "its variants are: deferred, direct" in answer["detail"]


@pytest.mark.parametrize(
    ("query", "parameter", "reason"),
    [
        ({"base": "1/a"}, "with", "required"),
        (sides("1", "1/b"), "base", "match pattern"),
        (sides("1/a", *[f"1/b{number}" for number in range(7)]), "with", "at most 6"),
        (sides("1/a", "1/b") | {"confidence": 42}, "confidence", "choose one of 80, 90, 95"),
        (sides("1/a", "1/b") | {"margin": 0}, "margin", "greater than 0"),
        (sides("1/a", "1/b") | {"margin": "nan"}, "margin", "0"),
    ],
)
def test_what_cannot_be_compared(api: Api, query: dict[str, Any], parameter: str, reason: str) -> None:
    (error,) = api.read("comparisons", status=422, **query)["errors"]
    assert error["parameter"] == parameter
    assert reason in error["reason"]


@pytest.mark.parametrize("amount", [1, 4])
def test_queries_do_not_depend_on_how_much_was_measured(
    api: Api, django_assert_num_queries: DjangoAssertNumQueries, amount: int
) -> None:
    run = create_run(boots=2 * amount, tests=DEMO_TESTS[:amount])
    with django_assert_num_queries(6):
        api.read(f"runs/{run.pk}/comparisons")
    with django_assert_num_queries(5):
        api.read("comparisons", **sides(f"{run.pk}/deferred", f"{run.pk}/direct"))
