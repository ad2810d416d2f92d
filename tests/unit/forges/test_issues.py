# SPDX-License-Identifier: BSD-2-Clause
"""A confirmed change of a tracked branch is one issue on the forge, which is updated until the alert is closed."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from perfweb.accounts.actors import on_server
from perfweb.builds.models import Mirror
from perfweb.forges.table import FORGES
from perfweb.outbox.models import Letter
from perfweb.outbox.services import deliver
from perfweb.tracking import services, states
from perfweb.tracking.alerts import notifications
from perfweb.tracking.models import Alert, AlertState, TrackedBranch
from perfweb.tracking.services import AlertUpdate
from tests.unit.forges.conftest import Bot, Making
from tests.unit.forges.peer import Trouble

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
TEST = "tcp.stream/host-host/ipv4"


def alert_on(bot: Bot, subject: str = "net: name five", *, issues: bool = True) -> Alert:
    """A confirmed change on a branch of the bot's project, made by an untrusted commit."""
    branch = TrackedBranch.objects.create(
        name="head", mirror=bot.project.mirror, testbed=bot.project.testbed, since="a" * 40, issues=issues
    )
    first, second = (
        branch.commits.create(
            position=position,
            sha=letter * 40,
            subject=subject,
            author="ada",
            committed=datetime(2026, 1, 1, tzinfo=UTC),
        )
        for position, letter in enumerate("ab", start=1)
    )
    made = Alert.objects.create(branch=branch, state=AlertState.CONFIRMED, since=first, until=second)
    made.movements.create(
        variant="direct", test=TEST, better=False, suspected=-7.0, percent=-6.9, low=-9.1, high=-4.7, confirmed=True
    )
    return made


def conclude(alert: Alert) -> None:
    alert.culprit, alert.probability, alert.conclusion = alert.until, 0.98, "It was this one."
    alert.save()
    notifications.notify(alert)


def update(alert: Alert, state: AlertState) -> None:
    services.update_alert(on_server(), alert.number, AlertUpdate(state=state))
    deliver()


def words(bot: Bot) -> str:
    (one,) = bot.peer.issues.values()
    return str(one["description" if bot.kind == "gitlab" else "body"])


def test_an_issue_follows_an_alert(bot: Bot) -> None:
    alert = alert_on(bot)
    notifications.notify(alert)
    deliver()
    (number,) = bot.peer.issues
    assert "It is being bisected." in words(bot)
    assert bot.peer.issues[number]["title"].startswith("[head] -6.9 % after aaaaaaaaaa")
    conclude(alert)
    deliver()
    assert f"Since {'b' * 40} (probability 0.98): `net: name five`" in words(bot)
    assert "| `tcp.stream/host-host/ipv4` | `direct` |" in words(bot)
    assert "slower |" in words(bot)
    assert f"/alerts/{alert.number}/" in words(bot)
    assert bot.peer.issues[number]["state"] == "open"
    assert list(bot.peer.issues) == [number]


def test_an_issue_is_closed_and_opened_with_its_alert(bot: Bot) -> None:
    alert = alert_on(bot)
    conclude(alert)
    deliver()
    (issue,) = bot.peer.issues.values()
    issue["state"] = "closed"  # by a user of the forge
    update(alert, AlertState.ACKNOWLEDGED)
    assert "State: acknowledged" in words(bot)
    assert issue["state"] == "closed"
    issue["state"] = "open"
    update(alert, AlertState.FIXED)
    assert issue["state"] == "closed"
    update(alert, AlertState.ACKNOWLEDGED)
    assert issue["state"] == "open"


def test_an_alert_that_was_done_with_while_the_forge_was_away_is_a_closed_issue(github: Bot) -> None:
    alert = alert_on(github)
    github.peer.stop()
    conclude(alert)
    deliver()
    update(alert, AlertState.NOT_A_BUG)
    github.peer.start()
    deliver(timezone.now() + timedelta(hours=1))
    assert [issue["state"] for issue in github.peer.issues.values()] == ["closed"]


def test_an_answer_that_is_lost_makes_no_second_issue(bot: Bot) -> None:
    notifications.notify(alert_on(bot))
    bot.peer.issues[1] = {"title": "another", "description": None, "body": None, "state": "open"}
    bot.peer.trouble = Trouble(lost=True)
    deliver()
    assert len(bot.peer.issues) == 2
    bot.peer.trouble = None
    deliver(timezone.now() + timedelta(hours=1))
    assert len(bot.peer.issues) == 2
    assert not Letter.objects.filter(due__isnull=False).exists()


def test_what_others_wrote_is_no_markup(github: Bot) -> None:
    alert = alert_on(github, "net: @everybody `<b>` <!-- x")
    conclude(alert)
    deliver()
    assert ": `` net: @everybody `<b>` <!-- x ``" in words(github)


def test_no_report_without_a_subscriber_or_confirmation(github: Bot) -> None:
    alert = alert_on(github, issues=False)
    conclude(alert)
    TrackedBranch.objects.update(issues=True)
    suspicion = alert_of(alert, AlertState.NEW)
    notifications.issue(suspicion)
    notifications.issue(alert_of(alert, AlertState.REFUTED))
    states.note(suspicion, "tracking", "seen")
    deliver()
    assert github.peer.issues == {}


def alert_of(other: Alert, state: AlertState) -> Alert:
    branch = TrackedBranch.objects.get()
    return Alert.objects.create(branch=branch, state=state, since=other.since, until=other.until)


@pytest.mark.parametrize(
    ("kind", "address"),
    [
        ("github", "/Codertocat/Hello-World/issues/7"),
        ("gitlab", "/net/stack/-/issues/7"),
        ("gitea", "/net/stack/issues/7"),
    ],
)
def test_the_page_of_an_alert_leads_to_its_issue(bot_on: Making, client: Client, kind: str, address: str) -> None:
    bot = bot_on(kind)
    alert = alert_on(bot)
    notifications.notify(alert)
    assert "issue 7" not in client.get(f"/alerts/{alert.number}/").content.decode()
    deliver()
    text = client.get(f"/alerts/{alert.number}/").content.decode()
    assert f'<a href="{bot.peer.url}{address}">issue 7 of {bot.project.path}</a>' in text


@pytest.mark.parametrize(
    ("api", "site"),
    [
        ("https://api.github.com", "https://github.com"),
        ("https://git.example.org/api/v3", "https://git.example.org"),
        ("https://git.example.org/gitea/api/v1/", "https://git.example.org/gitea"),
    ],
)
def test_people_read_beside_or_above_the_api(api: str, site: str) -> None:
    page = FORGES["github"].issue_page(api, "net/stack", "12")
    assert page == f"{site}/net/stack/issues/12"


def test_issues_need_a_forge(bot_on: Making) -> None:
    bot = bot_on("github")
    Mirror.objects.create(name="elsewhere", url=str(bot.checkout.tree))
    for repository in ("", "elsewhere"):
        wanted = services.BranchRequest("head", PLAN, "demo", mirror=repository, branch="main", issues=True)
        with pytest.raises(services.TrackingError, match="issues need a forge"):
            services.track(on_server(), wanted)
    with pytest.raises(CommandError, match="--plan"):
        call_command("track", "head", "--issues")


PLAN = f"""\
name: head
variants:
  - {{name: direct, target: stack, source: commit, tunables: {{net.isr.dispatch: direct}}}}
baseline: direct
tests: [{TEST}]
"""
