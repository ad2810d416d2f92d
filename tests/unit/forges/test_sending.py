# SPDX-License-Identifier: BSD-2-Clause
"""One comment and a status follow a run, by the forge's description, and none is lost or sent twice."""

import io
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from perfweb.accounts.models import Role
from perfweb.forges.following import follow
from perfweb.forges.models import CommentRequest, Project
from perfweb.forges.secrets import token_file
from perfweb.forges.sending import AccessError, check
from perfweb.outbox.models import Letter
from perfweb.outbox.services import deliver
from perfweb.runs.models import Run, RunState
from perfweb.submissions import services
from perfweb.submissions.models import Submission
from tests.factories import create_run
from tests.unit.forges.conftest import Bot, Making
from tests.unit.forges.peer import Trouble
from tests.unit.submissions.conftest import person

HOUR = timedelta(hours=1)


def report_and_deliver(at: datetime | None = None) -> None:
    follow()
    deliver(at)


def finish(gain: float = 0.9) -> None:
    """Give the one submission a finished run with results."""
    submission = Submission.objects.get()
    Run.objects.update(state=RunState.CANCELLED)
    submission.runs.add(create_run(tests=["tcp.rr/host-host/ipv4"], boots=4, gain=gain))


def first_line(bot: Bot) -> str:
    [body] = bot.peer.comments.values()
    return body.splitlines()[0]


def test_one_comment_and_a_status_follow_a_run(bot: Bot) -> None:
    bot.know(Role.MAINTAINER)
    request = bot.comment("/perf tcp")
    report_and_deliver()
    assert first_line(bot) == "**Queued**"
    Run.objects.update(state=RunState.RUNNING, started=timezone.now())
    report_and_deliver()
    report_and_deliver()
    assert first_line(bot) == "**Being measured**"
    finish()
    report_and_deliver()
    assert first_line(bot) == "**Slower: 1 slower**"
    edit = {"gitlab": "PUT"}.get(bot.kind, "PATCH")
    assert bot.peer.calls == ["POST", "POST", edit, "POST", edit, "POST"]
    failed = "failed" if bot.kind == "gitlab" else "failure"
    assert [status["state"] for status in bot.peer.statuses] == ["pending", "pending", failed]
    assert request is not None
    assert {status["sha"] for status in bot.peer.statuses} == {request.head}
    assert bot.peer.statuses[-1]["target_url"].endswith(f"/submissions/{Submission.objects.get().number}/")
    assert CommentRequest.objects.get().settled
    report_and_deliver()
    assert len(bot.peer.calls) == 6


def test_what_is_measured_again_is_followed(github: Bot) -> None:
    github.know(Role.MAINTAINER)
    github.comment("/perf tcp")
    finish()
    report_and_deliver()
    assert first_line(github) == "**Slower: 1 slower**"
    services.rerun(person("maintainer", Role.MAINTAINER), Submission.objects.get().number)
    report_and_deliver()
    assert first_line(github) == "**Queued**"


def test_nothing_is_lost_while_the_forge_is_down_for_a_day(github: Bot) -> None:
    github.know(Role.MAINTAINER)
    github.comment("/perf tcp")
    github.peer.stop()
    clock = now = timezone.now()
    while clock < now + timedelta(days=1):
        report_and_deliver(clock)
        if clock == now:
            finish()
        clock += timedelta(hours=1)
    assert Letter.objects.filter(due__isnull=False).count() == 2
    github.peer.start()
    deliver(clock + HOUR)
    assert (first_line(github), github.peer.calls) == ("**Slower: 1 slower**", ["GET", "POST", "POST"])


def test_an_answer_that_is_lost_makes_no_second_comment(bot: Bot) -> None:
    bot.comment("/perf help")
    bot.peer.trouble = Trouble(lost=True)
    report_and_deliver()
    assert len(bot.peer.comments) == 1
    bot.peer.trouble = None
    deliver(timezone.now() + HOUR)
    assert len(bot.peer.comments) == 1
    assert not Letter.objects.filter(due__isnull=False).exists()


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (429, {"Retry-After": "7200"}),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "{in two hours}"}),
        (429, {"RateLimit-Remaining": "0", "RateLimit-Reset": "{in two hours}"}),
        (503, {"Retry-After": "{then}"}),
    ],
)
def test_no_delivery_before_the_time_that_the_server_names(github: Bot, status: int, headers: dict[str, str]) -> None:
    then = timezone.now() + 2 * HOUR
    times = {"{in two hours}": f"{then.timestamp():.0f}", "{then}": f"{then:%a, %d %b %Y %H:%M:%S GMT}"}
    github.peer.trouble = Trouble(status, {name: times.get(value, value) for name, value in headers.items()})
    for text in ("/perf help", "/perf status"):
        github.comment(text)
    report_and_deliver()
    assert github.peer.calls == ["POST"], "the other letter waits with it"
    deliver(then - HOUR)
    assert github.peer.calls == ["POST"]
    github.peer.trouble = None
    deliver(then + HOUR)
    assert len(github.peer.comments) == 2


def test_a_token_that_is_missing_or_wrong_can_be_mended(github: Bot) -> None:
    token = token_file(github.project).read_text()
    github.comment("/perf help")
    for at, wrong in enumerate(("", "another token, but a wrong one")):
        token_file(github.project).write_text(wrong)
        report_and_deliver(timezone.now() + at * HOUR)
        assert not github.peer.comments
    assert "401" in Letter.objects.get().problem
    token_file(github.project).write_text(token)
    deliver(timezone.now() + 3 * HOUR)
    assert len(github.peer.comments) == 1


def refused(bot: Bot) -> None:
    """The forge refuses a permission for a day."""
    bot.comment("/perf help")
    clock = now = timezone.now()
    follow()
    bot.peer.trouble = Trouble(403)
    while clock < now + 24 * HOUR:
        deliver(clock)
        due = Letter.objects.get().due
        assert due is not None
        clock = due


def test_a_permission_that_is_refused_is_requested_less_and_less(bot: Bot) -> None:
    refused(bot)
    assert 24 <= len(bot.peer.calls) <= 34
    bot.peer.trouble = None
    assert deliver() == 0


def test_a_retry_after_a_permission_was_granted_sends_what_waits(bot: Bot) -> None:
    refused(bot)
    with pytest.raises(CommandError, match=r" 403 .*Write|Developer"):
        call_command("retry_bot", str(bot.project))
    bot.peer.trouble = None
    output = io.StringIO()
    call_command("retry_bot", str(bot.project), stdout=output)
    assert "sent within seconds: 1 waiting messages" in output.getvalue()
    assert deliver() == 1
    assert len(bot.peer.comments) == 1
    with pytest.raises(CommandError, match=f"there is no bot 'x'; there are: {bot.project}"):
        call_command("retry_bot", "x")


@pytest.mark.parametrize(
    ("kinds", "permissions", "scopes", "reason"),
    [
        (["github", "gitea"], {"push": False, "pull": True}, [], "perf-bot may not write to .*Write"),
        (["github", "gitea"], {}, [], "perf-bot may not write to "),
        (
            ["gitlab"],
            {"project_access": None, "group_access": None},
            ["api"],
            "is no Developer of net/stack.*Developer",
        ),
        (["gitlab"], {"project_access": {"access_level": 20}}, ["api"], "is no Developer of"),
        (
            ["gitlab"],
            {"group_access": {"access_level": 40}},
            ["read_api"],
            "without the scope api for .* the scope api",
        ),
    ],
)
def test_a_bot_without_a_permission_learns_what_to_grant(
    bot_on: Making, kinds: list[str], permissions: dict[str, Any], scopes: list[str], reason: str
) -> None:
    for kind in kinds:
        bot = bot_on(kind)
        check(bot.project)
        bot.peer.permissions, bot.peer.scopes = permissions, scopes
        with pytest.raises(AccessError, match=reason):
            check(bot.project)


@pytest.mark.parametrize("token", ["", "short", "a token that the forge refuses"])
def test_a_bot_without_a_good_token_learns_what_to_make(bot: Bot, token: str) -> None:
    token_file(bot.project).write_text(token)
    with pytest.raises(AccessError, match=r"(at least 20 characters|401).*\. (Make|Give) "):
        check(bot.project)


@pytest.mark.parametrize("status", [302, 422, 500])
def test_a_forge_that_is_away_reports_nothing_about_permissions(bot: Bot, status: int) -> None:
    bot.peer.trouble = Trouble(status)
    with pytest.raises(AccessError, match=f"{status} .*Repeat this when the forge answers"):
        check(bot.project)


def test_a_comment_that_a_user_deleted_is_not_written_anew(github: Bot) -> None:
    github.comment("/perf tcp", "eve", 66)
    report_and_deliver()
    github.peer.trouble = Trouble(404)
    finish()
    Submission.objects.update(state="approved")
    report_and_deliver()
    letter = Letter.objects.get(key__startswith="comment")
    assert (letter.due, letter.problem.endswith(' 404 {"message": "trouble"}')) == (None, True)


def test_a_redirect_is_not_followed(github: Bot) -> None:
    github.peer.trouble = Trouble(307, {"Location": f"{github.peer.url}/elsewhere"})
    github.comment("/perf help")
    report_and_deliver()
    assert (github.peer.calls, Letter.objects.get().due is None) == (["POST"], False)


def test_a_project_that_is_gone_gets_nothing(github: Bot) -> None:
    github.comment("/perf help")
    follow()
    Project.objects.all().delete()
    deliver()
    assert Letter.objects.get().problem == "there is no project on-github"
