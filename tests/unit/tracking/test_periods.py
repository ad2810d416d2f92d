# SPDX-License-Identifier: BSD-2-Clause
"""Changes between two commits, on its page and in the weekly mail."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client
from pytest_django import Settings

from perfweb.outbox.models import Letter
from perfweb.tracking import periods, weekly
from perfweb.tracking.models import Alert, AlertState, Analysis, Shift, TrackedBranch
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
    assert [(row.test, round(row.percent, 2), row.better, row.changes) for row in found.standings] == [
        (STREAM, -14.5, False, 2),
        (ROUND_TRIPS, 4.0, True, 1),
    ]
    assert (found.commits, found.measured, len(found.alerts)) == (8, 1, 1)


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
    assert words(client, f"/tracking/head/period/?until={sha[:8]}").count("<td>worse</td>") == 1


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ("from=99", "no commit “99”"),
        ("from=abc", "6 letters of its hash"),
        ("from=ffffffffff", "no commit “ffffffffff”"),
        ("from=5&until=5", "nothing of head lies between"),
        ("from=7&until=2", "write the older one first"),
        ("from=%01", "no commit"),
    ],
)
def test_what_is_no_period_is_explained(client: Client, branch: TrackedBranch, asked: str, problem: str) -> None:
    assert problem in words(client, f"/tracking/head/period/?{asked}", 400)


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
    assert f"    -5.00 %  worse   {STREAM} on direct\n    +4.00 %  better  {ROUND_TRIPS} on direct" in text
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
