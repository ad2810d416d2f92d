# SPDX-License-Identifier: BSD-2-Clause
"""Changes between two commits, on its page and in the weekly mail."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from pytest_django import Settings

from perfweb.outbox.models import Letter
from perfweb.runs.models import HostFacts
from perfweb.runs.summaries import summarise
from perfweb.tracking import periods, weekly
from perfweb.tracking.models import Alert, AlertState, Analysis, Shift, TrackedBranch
from perfweb.verdicts.numbers import MINUS
from tests.laboratory import ROUND_TRIPS, STREAM, Laboratory, tracked

pytestmark = pytest.mark.django_db
MONDAY = datetime(2026, 11, 23, 6, tzinfo=UTC)


@pytest.fixture
def branch(laboratory: Laboratory) -> TrackedBranch:
    """Nine commits, listed and not measured, in which one test fell twice and another rose."""
    shas = [laboratory.commit(number) for number in range(9)]
    made = tracked(shas[0], mail_to="ada@example.org")
    laboratory.round()
    analysis = Analysis.objects.create(branch=made, version=2, rules="x", reason="more results")
    for test, place, percent, better in (
        (STREAM, 3, -10.0, False),
        (STREAM, 6, -5.0, False),
        (ROUND_TRIPS, 6, 4.0, True),
    ):
        commits = {
            name: made.commits.get(position=at)
            for name, at in (("since", place - 1), ("place", place), ("until", place))
        }
        Shift.objects.create(
            analysis=analysis, variant="direct", test=test, before=1.0, after=1 + percent / 100, percent=percent,
            low=percent - 1, high=percent + 1, better=better, **commits,
        )  # fmt: skip
    alert = Alert.objects.create(
        branch=made, since=made.commits.get(position=2), until=made.commits.get(position=3),
        culprit=made.commits.get(position=3), state=AlertState.CONFIRMED,
    )  # fmt: skip
    alert.movements.create(variant="direct", test=STREAM, better=False, suspected=-10.0)
    Alert.objects.update(created=MONDAY - timedelta(days=1))
    return made


def words(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return re.sub(r"\s+", " ", answer.content.decode())


def test_changes_of_a_test_are_multiplied_and_the_worst_comes_first(branch: TrackedBranch) -> None:
    first, last = branch.commits.get(position=1), branch.commits.get(position=9)
    found = periods.between(branch, first, last)
    assert [
        (row.test, round(row.change.percent, 2), row.better, row.changes) for row in found.standings if row.change
    ] == [
        (STREAM, -14.5, False, 2),
        (ROUND_TRIPS, 4.0, True, 1),
    ]
    assert (found.commits, found.measured, len(found.alerts)) == (8, 1, 1)


def test_a_confirmed_alert_counts_with_its_interval_where_the_analysis_has_next_to_nothing(
    client: Client, branch: TrackedBranch
) -> None:
    """Its change point is in no analysis any more; a later one found a change of another series at another place."""
    Alert.objects.get().movements.update(percent=-16.24, low=-17.0, high=-15.5, confirmed=True)
    Shift.objects.filter(test=STREAM).delete()
    page = words(client, "/tracking/head/period/").replace("\u202f", " ")
    row = re.search(rf"<tr> <td[^>]*>{STREAM}</td>.*?</tr>", page)
    assert row
    assert f"{MINUS}16.24 % ({MINUS}17.00 to {MINUS}15.50)" in row[0]
    assert "▼ slower" in row[0]
    moved = client.get("/api/v1/tracked-branches/head/period").json()["moved"][0]
    assert [moved[name] for name in ("test", "verdict", "percent", "low", "high", "changes")] == [
        STREAM, "slower", -16.24, -17.0, -15.5, 1,
    ]  # fmt: skip


def test_change_points_of_older_analyses_count_once_and_refuted_ones_do_not(branch: TrackedBranch) -> None:
    first, last = branch.commits.get(position=1), branch.commits.get(position=9)
    newer = Analysis.objects.create(branch=branch, version=3, rules="x", reason="more results")
    shift = Shift.objects.get(test=STREAM, place__position=6)
    shift.pk, shift.analysis, shift.percent, shift.low, shift.high = None, newer, -6.0, -6.5, -5.5
    shift.save()
    (row, other) = periods.between(branch, first, last).standings
    assert (row.test, row.changes, other.changes) == (STREAM, 2, 1)
    assert row.change is not None
    assert row.change.percent == pytest.approx(100 * (0.9 * 0.94 - 1))
    assert row.change.low < row.change.percent < row.change.high < 0
    Alert.objects.get().movements.update(percent=0.1, low=-1.0, high=1.2, confirmed=False)
    (row, _) = periods.between(branch, first, last).standings
    assert row.change is not None
    assert (row.changes, row.change.percent) == (1, -6.0)


@pytest.mark.parametrize("state", [AlertState.INFRASTRUCTURE, AlertState.REFUTED])
def test_what_was_no_change_of_the_software_does_not_count(branch: TrackedBranch, state: AlertState) -> None:
    first, last = branch.commits.get(position=1), branch.commits.get(position=4)
    Alert.objects.update(state=state)
    Alert.objects.get().movements.update(percent=-16.0, low=-17.0, high=-15.0, confirmed=True)
    assert periods.between(branch, first, last).standings == []


def test_a_test_is_not_judged_where_the_kernel_changed(client: Client, laboratory: Laboratory) -> None:
    shas = [laboratory.commit(number) for number in range(4)]
    tracked(shas[0])
    for run in laboratory.rest():
        place = run.tracked_commits.get().position or 0
        HostFacts.objects.create(run=run, role="dut", name="dut", facts={"kernel": "6.9" if place > 2 else "6.1"})
        summarise([run.pk])
    page = words(client, "/tracking/head/period/?from=1&until=4")
    assert page.count("… not judged: the kernel changed") == 2
    assert "No test changed" not in page
    assert "not judged" not in words(client, "/tracking/head/period/?from=1&until=2")
    moved = client.get("/api/v1/tracked-branches/head/period?first=1&last=4").json()["moved"]
    assert {row["words"] for row in moved} == {"not judged: the kernel changed"}


def test_what_came_before_is_left_out(client: Client, branch: TrackedBranch) -> None:
    page = words(client, "/tracking/head/period/?from=3&until=9")
    assert "6 commits of the stack" in page
    assert re.search(r"tcp\.stream/host-host/ipv4</td> <td[^>]*>direct</td> <td[^>]*>.5\.0+ %", page)
    assert "Alerts</h2>" not in page
    assert "No test changed." in words(client, "/tracking/head/period/?from=7")


def test_the_page_begins_with_all_that_is_tracked(client: Client, branch: TrackedBranch) -> None:
    sha = branch.commits.get(position=3).sha
    page = words(client, "/tracking/head/period/")
    assert "8 commits" in page
    assert sha[:10] in page
    assert "Changes between two commits" in words(client, "/tracking/head/")
    assert words(client, f"/tracking/head/period/?until={sha[:8]}").count("▼ slower") == 1


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("from=99", "no commit “99”"),
        ("from=abc", "6 letters of its hash"),
        ("from=ffffffffff", "no commit “ffffffffff”"),
        ("from=5&until=5", "nothing of head lies between"),
        ("from=7&until=2", "write the older one first"),
        ("from=%01", "no commit"),
    ],
)
def test_what_is_no_period_is_explained(client: Client, branch: TrackedBranch, query: str, problem: str) -> None:
    assert problem in words(client, f"/tracking/head/period/?{query}", 400)


def test_a_branch_with_one_commit_has_nothing_to_sum_up(client: Client, laboratory: Laboratory) -> None:
    tracked(laboratory.commit(1))
    assert "No commit of head has been listed yet" in words(client, "/tracking/head/period/")
    laboratory.round()
    assert "nothing of head lies between" in words(client, "/tracking/head/period/")


def test_a_branch_that_is_not_tracked_has_no_period(client: Client, db: None) -> None:
    assert "No branch “nobody” is tracked" in words(client, "/tracking/nobody/period/", 404)


def test_the_weekly_mail_reads_well_and_comes_once(branch: TrackedBranch, settings: Settings) -> None:
    settings.MAIL_ADDRESS = "perf@example.org"
    branch.created = MONDAY - timedelta(days=30)
    branch.commits.update(committed=MONDAY - timedelta(days=3))
    branch.commits.filter(position__lte=4).update(committed=MONDAY - timedelta(days=9))
    for hours in (1, 2, 100):
        weekly.report(branch, MONDAY + timedelta(hours=hours))
    letter = Letter.objects.get(channel="mail:smtp")
    assert letter.content["to"] == ["ada@example.org"]
    assert letter.content["subject"] == "[head] week to 2026-11-23"
    text = letter.content["text"]
    assert "5 commits after" in text
    assert f"  {STREAM} on direct\n    {MINUS}5.00 % ({MINUS}6.00 to {MINUS}4.00)  slower\n" in text
    assert f"  {ROUND_TRIPS} on direct\n    +4.00 % (+3.00 to +5.00)  faster\n" in text
    assert f"Alerts without an outcome:\n  {Alert.objects.get().number}: confirmed; with " in text
    assert text.endswith("/tracking/head/\n")
    assert all(len(line) <= 100 for line in text.splitlines())
    weekly.report(branch, MONDAY + timedelta(days=7))
    assert Letter.objects.filter(channel="mail:smtp").count() == 2


def test_a_week_without_news_is_no_mail(branch: TrackedBranch, settings: Settings) -> None:
    settings.MAIL_ADDRESS = "perf@example.org"
    branch.created = MONDAY - timedelta(days=30)
    branch.commits.update(committed=MONDAY - timedelta(days=9))
    Alert.objects.update(state=AlertState.FIXED)
    weekly.report(branch, MONDAY)
    assert not Letter.objects.filter(channel="mail:smtp").exists()


def test_a_quiet_week_has_no_mail_for_what_came_after_it(branch: TrackedBranch, settings: Settings) -> None:
    settings.MAIL_ADDRESS = "perf@example.org"
    branch.created = MONDAY - timedelta(days=30)
    branch.commits.update(committed=MONDAY - timedelta(days=9))
    Alert.objects.update(created=MONDAY + timedelta(hours=3))
    weekly.report(branch, MONDAY + timedelta(hours=4))
    branch.commits.filter(position__gt=4).update(committed=MONDAY - timedelta(days=3))
    weekly.report(branch, MONDAY + timedelta(days=2))
    assert not Letter.objects.filter(channel="mail:smtp").exists()


def test_a_week_ends_on_monday_morning() -> None:
    assert weekly.last_monday(MONDAY) == MONDAY
    assert weekly.last_monday(MONDAY - timedelta(seconds=1)) == MONDAY - timedelta(days=7)
    assert weekly.last_monday(MONDAY + timedelta(days=6)) == MONDAY
