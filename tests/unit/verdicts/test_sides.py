# SPDX-License-Identifier: BSD-2-Clause
"""Comparisons of any sides, and the counters beside them."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from perfweb.runs.models import Run
from perfweb.verdicts.counters import AT_END, AT_START, counter_rows, read_counters, reports_of
from perfweb.verdicts.sides import SideError, read_sides
from tests.factories import DEMO_TESTS, create_history, create_queued_run, create_run
from tests.unit.pages import page, text_of

pytestmark = pytest.mark.django_db


def test_sides_of_several_runs_are_compared_with_the_base(client: Client, run: Run) -> None:
    slow = create_run(gain=0.9)
    html = page(client, f"/compare/?base={run.pk}/deferred&with={run.pk}/direct&with={slow.pk}/direct")
    text = text_of(html)
    assert f"At 95 % confidence, against {run.pk}/deferred :" in text
    assert f"{run.pk}/direct : 1 failed, 5 faster." in text
    assert f"{slow.pk}/direct : 6 slower." in text
    assert re.search(r"Largest loss: \S+ .1\d\.\d\d", text)
    assert "net.isr.queued" in text


def test_a_commit_is_the_runs_of_its_builds() -> None:
    runs = create_history(2, DEMO_TESTS[:1])
    build = runs[0].variants.all()[0].build
    assert build is not None
    again = create_run(tests=DEMO_TESTS[:1], build=build)
    base, other = read_sides([f"{build.revision}/deferred", f"{runs[1].pk}/direct"])
    assert base.runs == [runs[0].pk, again.pk]
    assert len(base.sets[DEMO_TESTS[0]].values) == 20
    assert len(other.sets[DEMO_TESTS[0]].values) == 10


def test_of_a_commit_with_many_runs_the_newest_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfweb.verdicts.sides.MOST_RUNS", 2)
    runs = [create_run(tests=DEMO_TESTS[:1], seed=seed) for seed in range(3)]
    base, other = read_sides(["v0.1-12-g0123abc/deferred", "v0.1-12-g0123abc/direct"])
    assert base.runs == other.runs == [run.pk for run in runs[1:]]
    assert base.variants[0].run_id == runs[2].pk


@pytest.mark.parametrize(
    ("addresses", "help_text"),
    [
        (["1/a"], "from 2 to 7 sides, and these are 1"),
        (["1/a"] * 2, "the same side is named twice"),
        ([f"1/{letter}" for letter in "abcdefgh"], "these are 8"),
        (["1", "2/x"], "“1” is no side: write RUN/VARIANT"),
        (["/x", "2/x"], "“/x” is no side"),
        (["{run}/none", "{run}/direct"], "has no variant “none”; its variants are: deferred, direct"),
        (["999999/a", "{run}/direct"], "there is no run 999999"),
        (["v9/a", "{run}/direct"], "there is no commit v9"),
        (["9" * 40 + "/a", "{run}/direct"], "there is no commit 999"),
    ],
)
def test_what_cannot_be_compared_is_answered_with_help(
    client: Client, run: Run, addresses: list[str], help_text: str
) -> None:
    addresses = [address.format(run=run.pk) for address in addresses]
    with pytest.raises(SideError, match=re.escape(help_text)):
        read_sides(addresses)
    answer = client.get("/compare/", {"base": addresses[0], "with": addresses[1:]})
    assert answer.status_code == 400
    assert help_text in text_of(answer.content.decode())


def test_a_side_has_one_colour_and_marker_in_all_graphs(client: Client) -> None:
    first, second = create_run(tests=DEMO_TESTS[:2], failed_test=DEMO_TESTS[0]), create_run(tests=DEMO_TESTS[:2])
    address = f"/compare/?base={first.pk}/deferred&with={first.pk}/direct&with={second.pk}/direct"
    figures = json.loads(page(client, f"{address}&graphs=json"))
    looks = {
        (trace["name"], trace["meta"]["role"], trace["marker"]["symbol"])
        for name, figure in figures.items()
        if name != "intervals"
        for trace in figure["data"]
    }
    assert looks == {
        (f"{first.pk}/deferred", "series-0", "circle"),
        (f"{first.pk}/direct", "series-1", "diamond"),
        (f"{second.pk}/direct", "series-2", "square"),
    }
    picture = client.get(f"/compare/graph.svg{address[9:]}&test={DEMO_TESTS[0]}").getvalue().decode()
    assert re.findall(r'class="(series-\d)', picture) == ["series-0", "series-2"]


def test_without_sides_the_latest_runs_are_offered(client: Client, run: Run) -> None:
    assert f'value="{run.pk}/direct"' in page(client, "/compare/")
    create_queued_run()
    assert "Choose a base" in text_of(page(client, "/compare/"))


@pytest.mark.parametrize("boots", [2, 5])
def test_queries_do_not_depend_on_how_much_was_measured(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries, boots: int
) -> None:
    run = create_run(boots=boots)
    with django_assert_num_queries(9):
        client.get(f"/compare/?base={run.pk}/deferred&with={run.pk}/direct")


def test_counters_that_differ_most_come_first(run: Run) -> None:
    sides = read_sides([f"{run.pk}/deferred", f"{run.pk}/direct"])
    rows = counter_rows(reports_of(sides, [AT_START, AT_END]))
    assert rows[0].name == "net.isr.queued"
    assert rows[0].means[1] == 12
    assert "net.isr.dispatch" not in {row.name for row in rows}  # a word is no counter


def test_what_stayed_as_it_was_when_the_boot_came_up_is_a_setting_and_no_counter() -> None:
    counters = {
        AT_START: [["machine.cpus: 1\nnet.isr.queued: 0\n"] * 2, ["machine.cpus: 2\nnet.isr.queued: 0\n"]],
        AT_END: [["machine.cpus: 1\nnet.isr.queued: 7\n"] * 2, ["machine.cpus: 2\nnet.isr.queued: 9\n"]],
    }
    assert [(row.name, row.means) for row in counter_rows(counters)] == [("net.isr.queued", [7, 9])]
    counters[AT_START] = [[], []]  # without known facts
    assert [row.name for row in counter_rows(counters)] == ["machine.cpus", "net.isr.queued"]


@given(st.text())
def test_any_text_can_be_read_for_counters(text: str) -> None:
    for name, value in read_counters(text).items():
        assert f"{name}: " in text
        assert isinstance(value, int)


@given(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_.]{0,20}", fullmatch=True), st.integers(-(10**17), 10**17)))
def test_counters_are_read_as_they_were_written(counters: dict[str, int]) -> None:
    assert read_counters("".join(f"{name}: {value}\n" for name, value in counters.items())) == counters
