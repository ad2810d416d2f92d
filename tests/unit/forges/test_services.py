# SPDX-License-Identifier: BSD-2-Clause
"""Requests in comments become submissions with their author's permissions, or get a response with the error."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from perfweb.accounts.models import Entry, Means, Role
from perfweb.forges import following, secrets
from perfweb.forges.models import CommentRequest, Delivery
from perfweb.forges.services import MOST_ATTEMPTS, act_on_all
from perfweb.outbox.services import deliver
from perfweb.runs.models import Run
from perfweb.submissions.models import Submission, SubmissionState
from tests.unit.forges.conftest import (
    AUTHOR,
    EVENT_HEADER,
    TEXTS,
    Bot,
    Making,
    commented,
    example,
    headers,
    opened_on_gitlab,
    text_of_pull,
)

WAITING, APPROVED = SubmissionState.WAITING, SubmissionState.APPROVED


def submissions_of(request: CommentRequest | None) -> list[Submission]:
    assert request is not None
    assert not request.answer
    return list(request.submissions.order_by("number"))


def test_what_an_untrusted_user_requests_waits_for_approval(bot: Bot) -> None:
    request = bot.comment("Is it faster?\r\n/perf run tcp net.isr.dispatch=direct,deferred", "eve", 66)
    made = submissions_of(request)
    assert [(one.state, one.author, one.mirror) for one in made] == [
        (WAITING, bot.project.account, bot.project.mirror)
    ] * 2
    assert ["direct" in one.plan for one in made] == [True, False]
    assert request is not None
    assert made[0].base == bot.checkout.git("rev-parse", "HEAD").decode().strip() != request.head
    assert not Run.objects.exists()
    assert set(Entry.objects.values_list("means", "who")) == {(Means.COMMENT, "strangers")}


def test_a_maintainer_measures_their_own_pull_request_at_once(bot: Bot) -> None:
    user = bot.know(Role.MAINTAINER)
    [made] = submissions_of(bot.comment("/perf tcp"))
    assert (made.state, made.author, made.runs.count()) == (APPROVED, user, 1)


def test_the_pull_request_of_another_waits_whatever_user_requests_it(github: Bot) -> None:
    user = github.know(Role.MAINTAINER, "maria")
    [made] = submissions_of(github.comment("/perf tcp", "Maria", 5))
    assert (made.state, made.author) == (WAITING, user)


def test_a_name_that_was_given_to_another_user_is_untrusted(github: Bot) -> None:
    github.know(Role.MAINTAINER)
    github.comment("/perf help")
    [made] = submissions_of(github.comment("/perf tcp", AUTHOR["github"][0], 999))
    assert (made.state, made.author) == (WAITING, github.project.account)


def test_a_changed_head_is_another_submission_and_waits_again(github: Bot) -> None:
    first = github.comment("/perf tcp", "eve", 66)
    Submission.objects.update(state=APPROVED)
    head = github.push("other")
    second = github.comment("/perf tcp", "eve", 66)
    assert first is not None
    assert second is not None
    assert [one.state for one in submissions_of(second)] == [WAITING]
    assert (second.head, CommentRequest.objects.get(pk=first.pk).outdated, second.outdated) == (head, True, False)


def test_the_same_again_is_what_there_is(github: Bot) -> None:
    first, second = (submissions_of(github.comment("/perf tcp", "eve", 66)) for _ in range(2))
    assert first == second


def test_a_push_marks_earlier_comments_as_outdated(bot: Bot) -> None:
    request = bot.comment("/perf tcp", "eve", 66)
    pushed = {
        "github": "github-pull_request.synchronize",
        "gitlab": "gitlab-merge_request",
        "gitea": "gitea-pull_request",
    }
    payload = example(pushed[bot.kind])
    if bot.kind == "github":
        payload["pull_request"]["number"] = payload["number"] = 1
    assert bot.deliver(payload, event="push") == 202
    act_on_all()
    assert request is not None
    request.refresh_from_db()
    assert request.outdated


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("/perf run tpc", "did you mean “tcp”?"),
        ("/perf help", "/perf run tcp net.isr.dispatch=direct,deferred"),
        ("/perf status", "No request was made here yet."),
        ("/perf cancel", "No request was made here yet."),
        ("/perf tcp\n/perf udp", "2 lines that begin with /perf"),
        ("/perf tcp testbed=none", "there is no testbed 'none'"),
        ("/perf tcp base=none", "the repository has no commit “none”"),
        ("/perf tcp base=@everyone|`x`<b>", "`` “@everyone¦`x`<b>” names no commit: give a branch, a tag or a hash ``"),
    ],
)
def test_mistakes_are_answered(github: Bot, text: str, reason: str) -> None:
    request = github.comment(text)
    assert request is not None
    assert reason in request.answer
    assert not Submission.objects.exists()


def test_who_is_not_answered(github: Bot) -> None:
    for text, login in (("Nice. See /perf help", "eve"), ("> /perf tcp", "eve"), ("/perf tcp", github.project.login)):
        assert github.comment(text, login, 7) is None
    bot = commented("github", "/perf tcp", number=5)
    bot["comment"]["user"]["type"] = "Bot"
    github.deliver(bot)
    act_on_all()
    assert not CommentRequest.objects.exists()


def test_status_and_cancel(github: Bot) -> None:
    [made] = submissions_of(github.comment("/perf tcp", "eve", 66))
    status = github.comment("/perf status", "bob", 67)
    assert status is not None
    assert f"[submission {made.number}](http://" in status.answer
    assert status.answer.endswith("/): waiting for approval.")
    refused = github.comment("/perf cancel", "bob", 67)
    assert refused is not None
    assert refused.answer.startswith("Only the user who requested it")
    for expected in ("Cancelled.", "The run has ended, so it cannot be cancelled."):
        answer = github.comment("/perf cancel", "eve", 66)
        assert answer is not None
        assert answer.answer == expected
    made.refresh_from_db()
    assert made.state == SubmissionState.CANCELLED


def test_who_is_known_cancels_only_what_they_may(github: Bot) -> None:
    github.know(Role.SUBMITTER, "sam")
    github.know(Role.MAINTAINER)
    github.comment("/perf tcp", "eve", 66)
    refused = github.comment("/perf cancel", "sam", 68)
    assert refused is not None
    assert "“cancel any” needs the role maintainer" in refused.answer
    done = github.comment("/perf cancel")
    assert done is not None
    assert done.answer == "Cancelled."


def test_more_than_the_quota_is_reported_beside_what_was_taken(github: Bot, settings: Settings) -> None:
    settings.OPEN_SUBMISSIONS = 1
    request = github.comment("/perf tcp net.isr.dispatch=direct,deferred", "eve", 66)
    assert request is not None
    assert request.submissions.count() == 1
    assert "You have 1 submissions that are not over" in request.answer


def test_a_fetch_that_fails_is_repeated_and_then_reported(github: Bot) -> None:
    where = github.checkout.tree
    away = where.rename(where.with_name("away"))
    request = github.comment("/perf tcp", "eve", 66)
    assert request is not None
    assert (request.submissions.count(), Delivery.objects.get().attempts) == (0, 1)
    assert request.answer.startswith("Not possible now: `cannot be fetched: ")
    following.follow()
    deliver()
    (comment,) = github.peer.comments.values()
    assert "Not possible now" in comment
    github.project.mirror.url = f"{where}/other"  # another problem, such as one with the time until the next attempt
    github.project.mirror.save()
    act_on_all(timezone.now() + timedelta(minutes=2))
    assert Delivery.objects.get().attempts == 2
    following.follow()
    deliver()
    assert list(github.peer.comments.values()) == [comment], "it is not edited each minute"
    github.project.mirror.url = str(where)
    github.project.mirror.save()
    away.rename(where)
    act_on_all()
    assert not request.submissions.exists(), "not before its time"
    act_on_all(timezone.now() + timedelta(minutes=4))
    assert (request.submissions.count(), Delivery.objects.get().due) == (1, None)
    following.follow()
    deliver()
    assert ["Waits for a maintainer's approval" in text for text in github.peer.comments.values()] == [True]
    assert "Not possible now" not in str(github.peer.comments)

    where.rename(away)
    request = github.comment("/perf udp", "eve", 66)
    for minute in range(1, MOST_ATTEMPTS):
        act_on_all(timezone.now() + timedelta(minutes=2 * minute))
    assert request is not None
    request.refresh_from_db()
    assert request.answer.startswith(f"{MOST_ATTEMPTS} attempts failed: `cannot be fetched: ")
    assert not Delivery.objects.filter(due__isnull=False).exists()


def test_closed_pull_request_is_not_measured(bot: Bot) -> None:
    payload = commented(bot.kind, "/perf run tcp quick", number=77)
    place = payload["merge_request"] if bot.kind == "gitlab" else payload["issue"]
    place["state"] = "closed"
    assert bot.deliver(payload) == 202
    act_on_all()
    request = CommentRequest.objects.get()
    assert (request.submissions.count(), "is closed" in request.answer) == (0, True)
    place["state"] = "opened" if bot.kind == "gitlab" else "open"
    payload["object_attributes" if bot.kind == "gitlab" else "comment"]["id"] = 78
    assert bot.deliver(payload) == 202
    act_on_all()
    assert CommentRequest.objects.get(comment=78).submissions.count() == 1


@pytest.mark.parametrize(("kind", "event", "given"), TEXTS)
def test_request_in_a_review_or_a_description_is_answered(
    bot_on: Making, kind: str, event: str, given: dict[str, Any]
) -> None:
    bot = bot_on(kind)
    payload = text_of_pull(given, bot.project.path)
    for expected in (202, 200):  # a repeated delivery counts once
        body = json.dumps(payload).encode()
        signed = headers(kind, body, secrets.webhook_secret(bot.project))
        signed[EVENT_HEADER[kind]] = event
        assert bot.post(body, signed).status_code == expected
    act_on_all()
    request = CommentRequest.objects.get()
    assert (request.pull, request.login, "/perf tcp quick" in request.answer) == (1, "ada", True)


def test_request_in_the_description_of_a_merge_request_is_answered(bot_on: Making) -> None:
    bot = bot_on("gitlab")
    payload = opened_on_gitlab()
    payload["project"]["path_with_namespace"] = bot.project.path
    assert bot.deliver(payload) == 202
    act_on_all()
    assert "/perf tcp quick" in CommentRequest.objects.get().answer
