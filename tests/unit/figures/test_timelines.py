# SPDX-License-Identifier: BSD-2-Clause
"""A test over commits and over runs."""

from __future__ import annotations

import json
import re
from datetime import datetime

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from perfweb.figures.timelines import RangeError, Window, read_timeline, read_window, short_names
from perfweb.runs.models import Run
from perfweb.runs.summaries import summarise
from perfweb.tracking.models import Alert, AlertState, Check, TrackedBranch, TrackedCommit
from tests.factories import DEMO_TESTS, START, create_alert, create_build, create_history, create_plan, create_run
from tests.unit.pages import page, text_of

TEST = DEMO_TESTS[0]
ADDRESS = f"/tests/{TEST}/"


@pytest.mark.django_db
def test_a_point_is_the_mean_of_the_runs_of_a_commit() -> None:
    runs = create_history(3, [TEST])
    again = create_run(tests=[TEST], build=runs[1].variants.all()[0].build, seed=99)
    summarise([again.pk])
    timeline = read_timeline(TEST, Window("commit"))
    assert timeline is not None
    line = timeline.series["demo/direct-or-deferred/direct"]
    assert line.run.tolist() == [runs[0].pk, again.pk, runs[2].pk]
    means = [run.summaries.get(variant__name="direct").mean for run in (runs[1], again)]
    assert line.mean[1] == pytest.approx(sum(means) / 2)


@pytest.mark.django_db
def test_lettered_lines_mark_where_the_hosts_changed(client: Client) -> None:
    runs = create_history(4, [TEST])
    text = text_of(page(client, ADDRESS))
    assert f"A demo, run {runs[2].pk} : kernel of dut, left, right 6.1.0-28-amd64 → 6.1.0-29-amd64" in text
    figure = json.loads(page(client, ADDRESS + "?graphs=json"))["timeline"]
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["A"]
    assert figure["data"][0]["customdata"][0] == f"/runs/{runs[0].pk}/"


@pytest.mark.django_db
@pytest.mark.parametrize(("by", "kind"), [("commit", {}), ("time", {"type": "date"}), ("run", {"tickformat": "d"})])
def test_the_axis_has_dates_or_numbers_of_runs(client: Client, by: str, kind: dict[str, str]) -> None:
    create_history(3, [TEST])
    axis = json.loads(page(client, f"{ADDRESS}?by={by}&graphs=json"))["timeline"]["layout"]["xaxis"]
    assert {name: axis.get(name) for name in ("type", "tickformat")} == {"type": None, "tickformat": None, **kind}


@pytest.mark.django_db
def test_commits_are_equally_far_apart_unless_their_times_are_wanted(client: Client) -> None:
    create_history(3, [TEST])
    commits, times = (
        json.loads(page(client, f"{ADDRESS}?by={by}&graphs=json"))["timeline"] for by in ("commit", "time")
    )
    assert commits["data"][0]["x"] == [0, 1, 2]
    assert commits["layout"]["xaxis"]["ticktext"] == ["2026-11-18", "2026-11-19", "2026-11-20"]
    assert times["data"][0]["x"] == commits["layout"]["meta"]["places"]


@pytest.mark.django_db
def test_an_axis_can_be_logarithmic(client: Client) -> None:
    create_history(3, [TEST])
    figure = json.loads(page(client, f"{ADDRESS}?axis=log&graphs=json"))["timeline"]
    assert figure["layout"]["yaxis"]["type"] == "log"
    text = page(client, f"{ADDRESS}?axis=log")
    assert '<input type="hidden" name="axis" value="log">' in text


@pytest.mark.django_db
def test_points_have_their_commit_and_places_their_alerts(client: Client) -> None:
    runs = create_history(4, [TEST])
    culprit = create_alert(runs, TEST, 1)
    unknown = create_alert(runs, TEST, 2)
    Alert.objects.filter(pk=unknown.pk).update(culprit=None, until=unknown.culprit)
    Alert.objects.filter(pk=create_alert(runs, TEST, 3).pk).update(state=AlertState.REFUTED)
    figure = json.loads(page(client, ADDRESS + "?graphs=json"))["timeline"]
    text = figure["data"][0]["text"][1]
    assert re.fullmatch(r"v0.1-1-g0000001 net: change 1, Ada: \d\d\u202f\d\d\d transactions/s", text)
    notes = {note["x"]: note["text"] for note in figure["layout"]["annotations"]}
    assert notes == {1: f"alert {culprit.number}", 2: f"A, alert {unknown.number}"}
    assert "net: change 3, Ada" in text_of(page(client, ADDRESS))


@pytest.mark.django_db
def test_two_points_can_be_compared_without_javascript(client: Client) -> None:
    runs = create_history(3, [TEST])
    text = page(client, ADDRESS)
    options = re.findall(r'<option value="([^"]*)"\s*(selected)?>', text)
    sides = [f"{run.pk}/{variant}" for variant in ("deferred", "direct") for run in reversed(runs)]
    assert [side for side, _ in options] == 2 * sides
    assert [side for side, chosen in options if chosen] == [sides[1]]
    figure = json.loads(page(client, ADDRESS + "?graphs=json"))["timeline"]
    assert figure["data"][0]["ids"] == sides[2::-1]


@pytest.mark.django_db
def test_changes_of_level_are_marked_and_listed(client: Client) -> None:
    runs = create_history(12, [TEST])
    text = text_of(page(client, ADDRESS))
    found = f"1 direct v0.1-5-g0000005, run {runs[5].pk} v0.1-6-g0000006, run {runs[6].pk}"
    assert re.search(
        rf"{found} 45 \d\d\d 4[23] \d\d\d ▼ slower ⚠ the kernel changed .[4-7]\.\d\d % \(.\d",
        text.replace("\u202f", " "),
    )
    figure = json.loads(page(client, ADDRESS + "?graphs=json"))["timeline"]
    assert [note["text"] for note in figure["layout"]["annotations"]] == ["A, 1"]
    *_, levels = figure["data"]
    assert (levels["mode"], len(levels["x"]), levels["meta"]["toggle"]) == ("lines", 4, 1)
    assert levels["x"][1] == figure["data"][1]["x"][6]
    assert "No change point is proven" in text_of(page(client, ADDRESS + "?newest=5"))


@pytest.mark.django_db
def test_a_part_can_be_chosen(client: Client) -> None:
    runs = create_history(6, [TEST])

    def drawn(query: str) -> int:
        return len(json.loads(page(client, f"{ADDRESS}?graphs=json&{query}"))["timeline"]["data"][0]["x"])

    assert drawn("") == 6
    assert drawn("newest=2") == 2
    assert "by commit" in re.findall(r"<strong[^>]*>([^<]*)", page(client, f"{ADDRESS}?newest=2"))
    assert drawn("from=2026-11-19") == 2
    assert drawn("from=2026-11-16 10:00&to=2026-11-18 10:00") == 2
    assert drawn(f"by=run&from={runs[1].pk}&to={runs[3].pk}") == 3
    assert "This range has no results" in text_of(page(client, f"{ADDRESS}?from=2030-01-01"))


@pytest.mark.django_db
def test_revisions_stay_apart_where_no_commit_has_a_time(client: Client) -> None:
    runs = [create_run(tests=[TEST], build=create_build(f"s{number}", f"v{number}")) for number in range(3)]
    again = create_run(tests=[TEST], build=create_build("s0", "v0"))
    Run.objects.update(created=START)  # imported results of one day
    summarise([run.pk for run in [*runs, again]])
    line = json.loads(page(client, ADDRESS + "?by=commit&graphs=json"))["timeline"]["data"][0]
    assert sorted(text.partition(":")[0] for text in line["text"]) == ["v0", "v1", "v2"]
    assert len(set(line["x"])) == 3
    table = text_of(page(client, ADDRESS + "?by=commit"))
    assert all(f" v{number} " in table for number in range(3))


@pytest.mark.django_db
def test_runs_that_measure_a_pair_of_commits_are_no_series(client: Client) -> None:
    runs = create_history(3, [TEST])
    sha = [f"{number:040x}" for number in range(2)]
    branch = TrackedBranch.objects.create(name="head", plan="", testbed=runs[0].testbed, since=sha[0])
    commits = [
        TrackedCommit.objects.create(branch=branch, position=place, sha=name, subject="", author="", committed=START)
        for place, name in enumerate(sha, start=1)
    ]
    alert = Alert.objects.create(branch=branch, since=commits[0], until=commits[1])
    pair = create_run(tests=[TEST])
    Run.objects.filter(pk=pair.pk).update(plan=create_plan("name: pair-0-1\n", "pair-0-1"))
    summarise([pair.pk])
    Check.objects.create(alert=alert, commit=commits[1], run=pair)
    for query in ("?by=commit", "?by=run"):
        assert len(json.loads(page(client, f"{ADDRESS}{query}&graphs=json"))["timeline"]["data"]) == 2
        assert "pair-0-1" not in page(client, f"{ADDRESS}{query}")
    assert f"run {pair.pk}" not in text_of(page(client, "/topics/tcp/"))
    assert f"/runs/{pair.pk}/" not in page(client, "/tests/")


@pytest.mark.django_db
def test_a_timeline_over_a_new_kernel_with_few_points_is_not_judged(client: Client) -> None:
    create_history(4, [TEST])
    text = text_of(page(client, ADDRESS))
    assert "Not judged: the kernel changed at A" in text
    assert "No change point is proven" not in text


@pytest.mark.django_db
def test_runs_of_one_commit_are_followed_by_run(client: Client) -> None:
    runs = create_history(1, [TEST])
    build = runs[0].variants.all()[0].build
    summarise([create_run(tests=[TEST], build=build, seed=seed).pk for seed in (5, 6)])
    assert len(json.loads(page(client, ADDRESS + "?graphs=json"))["timeline"]["data"][0]["x"]) == 3


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query", ["by=moon", "from=yesterday", "by=run&to=x", "newest=0", "newest=many", "from=2026-13-01"]
)
def test_what_is_no_part_is_answered_with_help(client: Client, query: str) -> None:
    answer = client.get(f"{ADDRESS}?{query}")
    assert answer.status_code == 400
    assert "“" in text_of(answer.content.decode())


@pytest.mark.django_db
@pytest.mark.parametrize("by", ["commit", "run"])
def test_of_too_many_summaries_the_newest_are_drawn(monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    monkeypatch.setattr("perfweb.figures.timelines.MOST_ROWS", 4)
    runs = create_history(4, [TEST])
    timeline = read_timeline(TEST, Window(by))
    assert timeline is not None
    assert [line.run.tolist() for line in timeline.series.values()] == 2 * [[run.pk for run in runs[2:]]]


@pytest.mark.django_db
def test_an_unknown_test_and_one_without_results(client: Client) -> None:
    assert client.get("/tests/no.such/test/").status_code == 404
    assert "No results yet" in text_of(page(client, ADDRESS))


@pytest.mark.django_db
@pytest.mark.parametrize("commits", [2, 5])
def test_queries_do_not_depend_on_the_number_of_commits(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries, commits: int
) -> None:
    create_history(commits, [TEST])
    with django_assert_num_queries(7):
        client.get(ADDRESS)


@given(st.sampled_from(["commit", "run"]), st.text(max_size=30), st.text(max_size=30), st.text(max_size=12))
def test_any_words_of_an_address_are_a_window_or_a_clear_error(by: str, first: str, last: str, newest: str) -> None:
    try:
        window = read_window(by, first, last, newest)
    except RangeError as error:
        window, problem = Window(by), str(error)
    else:
        problem = "“"
    assert "“" in problem
    for bound in (window.first, window.last):
        assert bound is None or isinstance(bound, int if by == "run" else datetime)


def test_names_of_series_leave_out_what_they_share() -> None:
    assert short_names(["lab/demo/a", "lab/demo/b"]) == {"lab/demo/a": "a", "lab/demo/b": "b"}
    assert short_names(["x/demo/a", "y/demo/a"]) == {"x/demo/a": "x", "y/demo/a": "y"}
    assert short_names(["lab/demo/a"]) == {"lab/demo/a": "a"}
