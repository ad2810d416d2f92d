# SPDX-License-Identifier: BSD-2-Clause
"""The pages of tracked branches and alerts, and users' actions on them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from perfweb.accounts.actors import on_server
from perfweb.accounts.models import Role, User
from perfweb.builds.models import Mirror
from perfweb.forges.models import Project
from perfweb.tracking.models import Alert, AlertState, TrackedBranch
from perfweb.tracking.services import PROBLEMS, BranchRequest, TrackingError, track
from tests.factories import create_testbed
from tests.laboratory import KERNEL, PLAN, Laboratory

pytestmark = pytest.mark.django_db
CountQueries = Callable[[int], AbstractContextManager[object]]


@pytest.fixture
def project(db: None) -> Project:
    """A project on a forge."""
    mirror = Mirror.objects.create(name="net-stack", url="https://git.example.net/net/stack")
    return Project.objects.create(
        mirror=mirror, forge="gitea", api="https://git.example.net/api/v1", path="net/stack", login="bot",
        testbed=create_testbed(), account=User.objects.create_user("bot"),
    )  # fmt: skip


@pytest.fixture
def author(client: Client, db: None) -> Client:
    client.force_login(User.objects.create_user("ada", role=Role.SUBMITTER))
    return client


def words(client: Client, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return re.sub(r"\s+", " ", answer.content.decode())


def test_the_list_has_the_track_record_of_alerts(client: Client, alert: Alert) -> None:
    page = words(client, "/tracking/")
    assert "13 of 13" in page
    assert re.search(r"tcp\.rr/host-host/ipv4 on direct: .7\.\d", page)
    assert "Confirmed alerts: 1. Caused by the software: 0. Other causes: 0." in page
    alert.state = AlertState.NOT_A_BUG
    alert.save()
    assert "Right: 100 % of the judged ones." in words(client, "/tracking/")


def test_a_branch_shows_its_series_commits_and_machine_time(
    client: Client, slowed_branch: TrackedBranch, django_assert_max_num_queries: CountQueries
) -> None:
    with django_assert_max_num_queries(20):
        page = words(client, "/tracking/head/")
    assert "<svg" in page
    assert "net: number 12" in page
    assert "every commit" in page
    assert "52 min 0 s for commits" in page
    assert "being confirmed" not in page


def test_pages_cost_the_same_with_more_commits(
    client: Client, slowed: Laboratory, django_assert_max_num_queries: CountQueries
) -> None:
    for number in range(100, 110):
        slowed.commit(number, 0.93)
    slowed.rest()
    with django_assert_max_num_queries(20):
        words(client, "/tracking/head/")


def test_an_alert_has_commit_size_and_probability(client: Client, alert: Alert) -> None:
    page = words(client, f"/alerts/{alert.number}/")
    assert "net: number 8" in page
    assert "probability 1.00" in page
    assert re.search(r"[^+]7\.\d+.% \(", page)
    assert "tcp.rr/host-host/ipv4 on direct" in page
    assert f"/runs/{alert.checks.earliest('pk').run_id}/compare/before-direct..direct/" in page


def test_an_alert_draws_the_commits_near_its_change(client: Client, slowed: Laboratory, alert: Alert) -> None:
    for number in range(100, 120):
        slowed.commit(number, 0.93)
    slowed.rest()
    figures = json.loads(client.get(f"/alerts/{alert.number}/?graphs=json").content)
    assert set(figures) == {movement.test.replace(".", "-").replace("/", "-") for movement in alert.movements.all()}
    figure = figures["tcp-rr-host-host-ipv4"]
    place = (alert.culprit or alert.until).position
    assert place is not None
    points, levels = figure["data"]
    assert points["x"] == [position for position in range(1, 34) if abs(position - place) <= 20]
    assert re.fullmatch(r"[0-9a-f]{10} net: number 8, .*: 3\d\u202f\d{3} transactions/s", points["text"][place - 1])
    run = alert.branch.commits.get(position=place).runs.latest("pk")
    assert (points["ids"][place - 1], points["customdata"][place - 1]) == (f"{run.pk}/direct", f"/runs/{run.pk}/")
    assert levels["x"] == [1, place - 0.5, place - 0.5, points["x"][-1]]
    assert [(note["x"], note["text"]) for note in figure["layout"]["annotations"]] == [
        (place - 0.5, f"alert {alert.number}")
    ]
    branch = json.loads(client.get("/tracking/head/?graphs=json").content)["tcp-rr-host-host-ipv4"]
    assert (len(branch["data"][0]["x"]), branch["data"][1]["mode"]) == (33, "lines")


def test_an_alert_of_a_rewritten_branch_has_no_graph(client: Client, alert: Alert) -> None:
    alert.branch.commits.update(position=None)
    assert "<figure" not in words(client, f"/alerts/{alert.number}/")


def test_the_commit_of_an_alert_is_linked_to_its_forge(client: Client, alert: Alert, project: Project) -> None:
    assert alert.culprit is not None
    sha = alert.culprit.sha
    assert "/commit/" not in words(client, f"/alerts/{alert.number}/")
    alert.branch.mirror = project.mirror
    alert.branch.save()
    assert f'href="https://git.example.net/net/stack/commit/{sha}"' in words(client, f"/alerts/{alert.number}/")


def test_an_open_alert_has_the_range_of_the_change(client: Client, alert: Alert) -> None:
    Alert.objects.update(conclusion="", culprit=None, probability=None)
    alert.checks.all().delete()
    assert "The change is in a commit after" in words(client, f"/alerts/{alert.number}/")


def test_the_old_address_of_the_form_redirects(client: Client) -> None:
    answer = client.get("/alerts/7/say/")
    assert (answer.status_code, answer.headers["Location"]) == (301, "/alerts/7/update/")


def test_users_set_the_outcome(author: Client, alert: Alert) -> None:
    place = f"/alerts/{alert.number}/update/"
    assert "not a bug" in words(author, place)
    form = {"state": "acknowledged", "owner": "ada", "due": "2026-12-01", "text": "I am looking at it."}
    assert author.post(place, form).status_code == 302
    page = words(author, f"/alerts/{alert.number}/")
    for shown in ("acknowledged", "ada, due 2026-12-01", "I am looking at it.", "Looked after by ada, due 2026-12-01."):
        assert shown in page


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({"owner": ""}, "Nothing to save"),
        ({"owner": "nobody-here"}, "no account “nobody-here”"),
        ({"due": "soon"}, "“soon” is no date"),
        ({"state": "gone"}, "no state of an alert"),
        ({"state": "refuted"}, "only a run can set"),
    ],
)
def test_an_invalid_update_changes_nothing(author: Client, alert: Alert, form: dict[str, str], problem: str) -> None:
    steps = alert.steps.count()
    answer = author.post(f"/alerts/{alert.number}/update/", form)
    assert answer.status_code == 409
    assert problem in answer.content.decode()
    assert alert.steps.count() == steps
    alert.refresh_from_db()
    assert alert.state == AlertState.CONFIRMED


def test_a_branch_is_paused_and_goes_on(client: Client, slowed: Laboratory) -> None:
    client.force_login(User.objects.create_user("grace", role=Role.MAINTAINER))
    client.post("/tracking/head/pause/")
    slowed.commit(99)
    assert slowed.round() == []
    client.post("/tracking/head/pause/")
    assert len(slowed.round()) == 1


def test_what_is_not_there_is_reported(client: Client, db: None) -> None:
    assert "No branch “nothing” is tracked" in words(client, "/tracking/nothing/", 404)
    assert "There is no alert 7" in words(client, "/alerts/7/", 404)
    assert "No tracked branches yet" in words(client, "/tracking/")
    assert "No alerts yet" in words(client, "/alerts/")


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (PLAN.replace("    source: commit\n", ""), "every variant needs `source: commit`"),
        (
            PLAN.replace("baseline", f"{KERNEL}{KERNEL.replace('kernel', 'other')}baseline"),
            "variant other is not built",
        ),
        (PLAN.replace("baseline: direct", f"{KERNEL}baseline: kernel"), "the baseline kernel is the reference"),
        (PLAN.replace("direct", "d" * 60), "needs a shorter name"),
        (PLAN.replace("boots: 2\n", "budget: 10 min\n").replace("samples: 8\n", ""), "instead of a budget"),
        ("name: [", "is not YAML"),
    ],
)
def test_a_plan_without_commits_is_refused(laboratory: Laboratory, plan: str, problem: str) -> None:
    with pytest.raises(PROBLEMS, match=re.escape(problem)):
        track(on_server(), BranchRequest(name="head", plan=plan, testbed="demo"))
    assert TrackedBranch.objects.count() == 0


def test_another_plan_needs_another_name(slowed: Laboratory) -> None:
    with pytest.raises(TrackingError, match="take another name"):
        track(on_server(), BranchRequest(name="head", plan=PLAN.replace("boots: 2", "boots: 4"), testbed="demo"))


def test_the_command_tracks_pauses_and_refuses(laboratory: Laboratory, capsys: pytest.CaptureFixture[str]) -> None:
    plan = laboratory.checkout.tree.parent / "plan.yml"
    plan.write_text(PLAN)
    call_command("track", "head", plan=plan, branch="main", rhythm="nightly")
    assert "the last commit of each day" in capsys.readouterr().out
    call_command("track", "head", pause=True)
    assert "head: paused" in capsys.readouterr().out
    for options, problem in (
        ({}, "--plan FILE is missing"),
        ({"plan": plan.parent / "none.yml"}, "cannot be read"),
        ({"plan": plan, "repository": "nowhere"}, "There is no repository"),
        ({"plan": plan, "testbed": "nowhere"}, "there is no testbed"),
        ({"plan": plan, "since": "v99"}, "has no commit “v99”"),
        ({"plan": plan, "mail": ["not an address"]}, "is no address of mail"),
        ({"plan": plan, "threshold": 99.0}, "threshold"),
        ({"plan": plan, "hook": "ftp://example.org"}, "is no address that begins with https://"),
    ):
        with pytest.raises(CommandError, match=problem):
            call_command("track", "other", **options)
