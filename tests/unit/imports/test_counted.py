# SPDX-License-Identifier: BSD-2-Clause
"""Counted kernels become runs of their own origin, and their comparison names the functions that differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from perfweb.counted.comparison import compare
from perfweb.counted.costs import BootCosts, Cost, Window, of_windows
from perfweb.lab.models import Testbed
from perfweb.lab.origins import Origin
from perfweb.runs.models import Boot, Run, Sample
from perfweb.runs.summaries import summarise
from perfweb.stats.comparison import Verdict
from perfweb.verdicts.functions import loads_of
from perfweb.verdicts.sides import SideError, compare_sides, read_sides
from runners.counted import table
from runners.counted.command import Result
from tests.factories import create_run, create_testbed
from tests.unit.imports.reading import file, problems
from tests.unit.pages import page, text_of

pytestmark = pytest.mark.django_db
ROUND_TRIP, DATAGRAM = "counted.tcp.rr/local/ipv4", "counted.udp.rr/local/ipv4"
UNITS = 64
NO_WINDOW = "has no list of 3 counts for a window: whole or half numbers from 0"
NO_BOOTS = "has no boots of two kernels: write it with ./dev kernel --json"
NO_SEED = "has no seed from 0 to 2147483647 with loads"


def costs(**functions: Cost) -> BootCosts:
    """Eight windows, the last with a tick of the timer."""
    window = {name: Cost(*(UNITS * value for value in cost)) for name, cost in functions.items()}
    return of_windows(
        UNITS, [*(Window(functions=window) for _ in range(7)), Window(functions=window | {"tick": Cost(900)})]
    )


def boots(received: Cost) -> list[dict[str, BootCosts]]:
    """Three boots, between which a hash differs."""
    return [
        {
            ROUND_TRIP: costs(tcp_v4_rcv=received, hashed=Cost(9000 + 5 * seed, 10, 20)),
            DATAGRAM: costs(udp_rcv=Cost(7000, 0, 0)),
        }
        for seed in range(3)
    ]


def document(*patched: float) -> dict[str, Any]:
    """What ./dev kernel writes; `patched` is the cost of tcp_v4_rcv, (400, 2, 90) in the base."""
    sides = {"base": boots(Cost(400, 2, 90)), "patched": boots(Cost(*(patched or (420, 4, 91))))}
    loads = [
        compare(name, [boot[name] for boot in sides["base"]], [boot[name] for boot in sides["patched"]])
        for name in (ROUND_TRIP, DATAGRAM)
    ]
    written: dict[str, Any] = json.loads(json.dumps(table.document(Result(loads, (), sides))))
    return written


def imported(tmp_path: Path, value: object = None, **options: str) -> Run:
    path = file(tmp_path, json.dumps(document() if value is None else value), "atomic.json")
    call_command("import", "counted", str(path), **options)
    return Run.objects.latest("pk")


def test_a_comparison_of_kernels_is_a_run(tmp_path: Path) -> None:
    run = imported(tmp_path)
    assert (run.testbed.name, run.testbed.origin, run.plan.name) == ("counted", Origin.COUNTED, "atomic")
    assert [(one.name, one.baseline) for one in run.variants.all()] == [("base", True), ("patched", False)]
    assert list(Boot.objects.filter(run=run, variant__name="base").values_list("seed", flat=True)) == [1, 2, 3]
    of_round_trip = Sample.objects.filter(measurement__test=ROUND_TRIP, measurement__boot__seed=1)
    assert sorted(of_round_trip.values_list("measurement__boot__variant__name", "metric", "value", "unit")) == [
        ("base", "accesses", 110, "memory accesses"),
        ("base", "instructions", 9400, "instructions"),
        ("base", "locked", 12, "locked instructions"),
        ("patched", "accesses", 111, "memory accesses"),
        ("patched", "instructions", 9420, "instructions"),
        ("patched", "locked", 14, "locked instructions"),
    ]
    assert not Sample.objects.filter(measurement__test=DATAGRAM, metric="locked").exclude(value=0).exists()


def test_the_verdict_is_by_function(tmp_path: Path) -> None:
    imported(tmp_path)
    base, other = read_sides([f"{Run.objects.get().pk}/{name}" for name in ("base", "patched")])
    found = {one.test: one.verdict for one in compare_sides(base, other, 95, 2)}
    assert found == {ROUND_TRIP: Verdict.SLOWER, DATAGRAM: Verdict.IDENTICAL}


def test_the_comparison_names_the_functions(client: Client, tmp_path: Path) -> None:
    run = imported(tmp_path)
    html = page(client, f"/runs/{run.pk}/compare/base..patched/")
    seen = " ".join(text_of(html).split())
    assert "tcp_v4_rcv +20.0000 +2.0000 +1.0000" in seen
    assert "1 more, 0 fewer, 1 equal loads, counted" in seen
    assert "hashed" not in seen
    assert "tcp_v4_rcv -20.0000 -2.0000 -1.0000" in " ".join(
        text_of(page(client, f"/runs/{run.pk}/compare/patched..base/")).split()
    )


def test_the_api_names_the_functions(client: Client, tmp_path: Path) -> None:
    run = imported(tmp_path)
    (found,) = client.get(f"/api/v1/runs/{run.pk}/comparisons").json()["items"]
    sides = f"base={run.pk}/base&with={run.pk}/patched"
    assert client.get(f"/api/v1/comparisons?{sides}").json()["items"][0]["loads"] == found["loads"]
    round_trip, datagram = found["loads"]
    assert (round_trip["load"], round_trip["verdict"], round_trip["unit"]) == (ROUND_TRIP, "more", "round trip")
    assert round_trip["functions"] == [{"name": "tcp_v4_rcv", "instructions": 20, "locked": 2, "accesses": 1}]
    assert (datagram["verdict"], datagram["functions"]) == ("equal", [])


def test_runs_are_compared_with_each_other(tmp_path: Path) -> None:
    first = imported(tmp_path)
    second = imported(tmp_path, document(430, 4, 91))
    base, other = read_sides([f"{first.pk}/patched", f"{second.pk}/patched"])
    found = {load.name: load.functions for load in loads_of(compare_sides(base, other, 95, 2))}
    assert [(one.name, one.cost) for one in found[ROUND_TRIP]] == [("tcp_v4_rcv", Cost(10, 0, 0))]
    assert found[DATAGRAM] == ()


def test_counts_join_counts_only(tmp_path: Path) -> None:
    create_testbed("bench")
    with pytest.raises(CommandError, match="the testbed bench measures: give another one with --testbed"):
        imported(tmp_path, testbed="bench")
    run, measured = imported(tmp_path), create_run(tests=["tcp.rr/host-host/ipv4"])
    with pytest.raises(SideError, match=r"was counted.*compare like with like"):
        read_sides([f"{measured.pk}/direct", f"{run.pk}/patched"])
    assert Testbed.objects.get(name="counted").label == "counted (counted)"


def test_every_page_of_a_counted_run(client: Client, tmp_path: Path) -> None:
    run = imported(tmp_path)
    summarise([run.pk])
    for address in (
        f"/runs/{run.pk}/",
        "/tests/",
        f"/tests/{ROUND_TRIP}/",
        "/testbeds/counted/",
    ):
        assert "counted" in page(client, address), address


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda it: it.pop("sides"), NO_BOOTS),
        (lambda it: it["sides"].update(base=1), NO_BOOTS),
        (lambda it: it["sides"]["base"][0].update(seed="1"), f"boot 1 of 'base' {NO_SEED}"),
        (lambda it: it["sides"]["base"][1].update(seed=1), "boot 2 of 'base' has the seed 1 of another boot"),
        (lambda it: it["sides"]["base"].append([]), f"boot 4 of 'base' {NO_SEED}"),
        (
            lambda it: it["sides"]["base"][0].update(
                loads={"tcp.rr/local/ipv4": it["sides"]["base"][0]["loads"][DATAGRAM]}
            ),
            "'tcp.rr/local/ipv4' is a name of measured results: give what was counted another name",
        ),
    ],
)  # fmt: skip
def test_a_document_that_is_none(tmp_path: Path, change: Any, problem: str) -> None:
    value = document()
    change(value)
    assert problems("counted", file(tmp_path, json.dumps(value), "x.json")) == [f"x.json:0: {problem}"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda it: it.update(units=0), "has no number of units above 0"),
        (lambda it: it.update(units=True), "has no number of units above 0"),
        (lambda it: it.update(windows=[]), "has no list of 1 to 1000 windows"),
        (lambda it: it.update(windows=[[1, 2]]), NO_WINDOW),
        (lambda it: it.update(windows=[[1, 2, -1]]), NO_WINDOW),
        (lambda it: it.update(windows=[[1, 2, 10**400]]), NO_WINDOW),
        (lambda it: it.update(functions=[]), "has no object of up to 20000 functions"),
        (
            lambda it: it["functions"].update(f=[1, 2, 3]),
            "has no list of 6 counts for the function 'f': whole or half numbers from 0",
        ),
        (
            lambda it: it["functions"].update({"a\nb": [0] * 6}),
            "has a function 'a\\nb': a name has 1 to 256 characters that can be printed",
        ),
    ],
)  # fmt: skip
def test_costs_that_are_none(tmp_path: Path, change: Any, problem: str) -> None:
    value = document()
    change(value["sides"]["patched"][2]["loads"][DATAGRAM])
    assert problems("counted", file(tmp_path, json.dumps(value), "x.json")) == [
        f"x.json:0: boot 3 of 'patched': the load '{DATAGRAM}' {problem}"
    ]


@pytest.mark.parametrize("content", ["", "[", "[]", "null", "{}", '{"sides": {}}'])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    assert len(problems("counted", file(tmp_path, content, "x.json"))) == 1


def test_one_comparison_at_a_time(tmp_path: Path) -> None:
    path = file(tmp_path, json.dumps(document()), "x.json")
    assert problems("counted", path, path) == ["x.json:0: is a second comparison of kernels: import one at a time"]
