# SPDX-License-Identifier: BSD-2-Clause
"""Webhooks of forges are parsed, accepted only with their signature, and handled once."""

import contextlib
import copy
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from perfweb.accounts.limits import Limit
from perfweb.forges import secrets, webhooks
from perfweb.forges.models import Delivery
from perfweb.forges.services import act_on_all, forget
from perfweb.forges.table import FORGES, Event, ShapeError
from tests.unit.forges.conftest import (
    AUTHOR,
    EVENT_HEADER,
    PATH,
    TEXTS,
    Bot,
    commented,
    example,
    headers,
    opened_on_gitlab,
    signed_for_gitlab,
    text_of_pull,
)

EVENTS = {
    "github": {"X-GitHub-Event": "issue_comment", "X-Gitea-Event": "issue_comment"},
    "gitea": {"X-GitHub-Event": "issue_comment", "X-Gitea-Event": "issue_comment"},
    "gitlab": {},
}
PUSH_HEADERS = {"X-GitHub-Event": "pull_request", "X-Gitea-Event": "pull_request_sync"}
PUSHED = {"github": "github-pull_request.synchronize", "gitlab": "gitlab-merge_request", "gitea": "gitea-pull_request"}


@pytest.mark.parametrize("kind", FORGES)
def test_a_comment_is_understood(kind: str) -> None:
    payload = commented(kind, "/perf help")
    login, person = AUTHOR[kind]
    event = FORGES[kind].read(EVENTS[kind], payload)
    assert event == Event(
        "comment",
        PATH[kind],
        1,
        login,
        person,
        own=True,
        comment=1244,
        title=event.title if event else "",
        body="/perf help",
    )
    other = FORGES[kind].read(EVENTS[kind], commented(kind, "x", "eve", 7))
    assert other == replace(event, login="eve", person=7, own=False, body="x")


@pytest.mark.parametrize("kind", FORGES)
def test_a_push_is_understood(kind: str) -> None:
    event = FORGES[kind].read(PUSH_HEADERS, example(PUSHED[kind]))
    assert event is not None
    assert (event.kind, event.path, len(event.head)) == ("push", PATH[kind], 40)


def test_what_we_do_not_listen_to() -> None:
    github, gitlab = FORGES["github"], FORGES["gitlab"]
    assert github.read(EVENTS["github"], example("github-issue_comment.created")) is None, "an issue"
    assert github.read(EVENTS["github"], {**commented("github", "x"), "action": "edited"}) is None
    assert github.read({"X-GitHub-Event": "ping"}, {"zen": "Speak like a human."}) is None
    note = commented("gitlab", "x")
    note["object_attributes"]["action"] = "update"
    assert gitlab.read({}, note) is None
    note["object_attributes"].update(action="create", noteable_type="Issue")
    assert gitlab.read({}, note) is None
    bot = commented("github", "x")
    bot["comment"]["user"]["type"] = "Bot"
    event = github.read(EVENTS["github"], bot)
    assert event is not None
    assert event.bot


values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=3), st.lists, max_leaves=3)


SHAPES = (
    [(kind, EVENTS[kind], commented(kind, "/perf help")) for kind in sorted(FORGES)]
    + [(kind, PUSH_HEADERS, example(PUSHED[kind])) for kind in sorted(FORGES)]
    + [(kind, {EVENT_HEADER[kind]: event}, text_of_pull(given, "a/b")) for kind, event, given in TEXTS]
    + [("gitlab", {}, opened_on_gitlab())]
)
"""A forge, headers and payload for each event that we listen to."""


@given(st.sampled_from(SHAPES), st.data())
def test_any_shape_is_an_event_or_none_or_a_sentence(
    shape: tuple[str, dict[str, str], dict[str, Any]], data: st.DataObject
) -> None:
    kind, fields, payload = shape[0], shape[1], copy.deepcopy(shape[2])
    place: Any = payload
    while True:  # replace or remove something, somewhere
        name = data.draw(st.sampled_from(sorted(place)))
        if not isinstance(place[name], dict) or not place[name] or data.draw(st.booleans()):
            break
        place = place[name]
    if data.draw(st.booleans()):
        del place[name]
    else:
        place[name] = data.draw(values)
    with contextlib.suppress(ShapeError):
        event = FORGES[kind].read(fields, payload)
        assert event is None or event.kind in ("comment", "push")


@given(st.sampled_from(sorted(FORGES)), st.binary(max_size=20), st.text(max_size=80))
def test_only_the_secret_makes_a_signature(kind: str, body: bytes, junk: str) -> None:
    genuine, good = FORGES[kind].genuine, headers(kind, body, "s" * 20)
    assert genuine(good, body, "s" * 20)
    assert not genuine(good, body, "t" * 20)
    assert not genuine({}, body, "s" * 20)
    assert not genuine(dict.fromkeys(good, junk), body, "s" * 20)
    if kind != "gitlab":
        assert not genuine(good, body + b"x", "s" * 20)


@given(st.binary(max_size=20), st.text(max_size=20))
def test_gitlab_signs_with_its_newer_token(body: bytes, junk: str) -> None:
    secret, genuine = "whsec_dGVzdHRlc3R0ZXN0dGVzdHRlc3R0ZXN0dGVzdHRlc3Q=", FORGES["gitlab"].genuine
    good = signed_for_gitlab(body, secret)
    assert genuine(good, body, secret)
    assert not genuine(good, body + b"x", secret)
    assert not genuine({**good, "Webhook-Id": "id2"}, body, secret)
    assert not genuine({**good, "Webhook-Timestamp": junk}, body, secret)
    assert not genuine(signed_for_gitlab(body, secret, at=1e9), body, secret), "long ago"
    assert not genuine({"X-Gitlab-Token": secret}, body, secret)
    assert not genuine(good, body, "whsec_!")


def test_a_delivery_counts_once(bot: Bot) -> None:
    payload = commented(bot.kind, "/perf help")
    assert bot.deliver(payload, delivery="one") == 202
    assert bot.deliver(payload, delivery="one") == 200
    assert bot.deliver(payload, delivery="two") == 200, "the identifier is not signed: the same content is the same"
    assert bot.deliver(commented(bot.kind, "other"), delivery="one") == 200
    assert Delivery.objects.count() == 1


def test_an_old_delivery_is_forgotten_but_not_accepted_again(github: Bot, settings: Settings) -> None:
    settings.MESSAGES_KEPT_DAYS = 30
    payload = commented("github", "/perf help")
    assert github.deliver(payload) == 202
    later = timezone.now() + timedelta(days=30)
    assert forget(later) == 0, "it waits"
    act_on_all()
    assert [forget(later - timedelta(hours=1)), forget(later), forget(later)] == [0, 1, 0]
    assert Delivery.objects.get().event == {}
    assert github.deliver(payload, delivery="another") == 200
    assert Delivery.objects.count() == 1


def test_what_is_refused(github: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    body = json.dumps(commented("github", "/perf help")).encode()
    good = headers("github", body, secrets.webhook_secret(github.project))
    assert github.post(body + b" ", good).status_code == 403
    assert github.post(body, {}).status_code == 403
    assert github.client.get("/forges/on-github/webhook").status_code == 405
    assert github.client.post("/forges/other/webhook", b"{}", content_type="application/json").status_code == 404
    for junk in (
        b"",
        b"[" * 100_000,
        b"\xff",
        b'{"action": "created", "issue": {"pull_request": {}, "number": 1e400}}',
        b"{}",
    ):
        signed = headers("github", junk, secrets.webhook_secret(github.project))
        assert github.post(junk, signed).status_code in {200, 400}
    elsewhere = commented("github", "/perf help")
    elsewhere["repository"]["full_name"] = "somebody/else"
    assert github.deliver(elsewhere) == 200
    monkeypatch.setattr(webhooks, "WEBHOOK_BYTES", 10)
    assert github.post(body, good).status_code == 413
    secrets.secret_file(github.project).write_text("short")
    monkeypatch.undo()
    assert github.post(body, good).status_code == 503
    assert not Delivery.objects.exists()


def test_what_no_database_can_keep_is_kept_without(github: Bot) -> None:
    assert github.deliver(commented("github", "/perf \0 \ud800 \\u0000")) == 202
    assert Delivery.objects.get().event["body"] == "/perf ? ? \\u0000"


def test_wrong_signatures_are_limited_and_right_ones_pass(github: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perfweb.accounts.limits.WRONG_SECRETS", Limit("few wrong signatures", 2, 60))
    payload = commented("github", "/perf help")
    answers = [github.post(json.dumps(payload).encode(), {}).status_code for _ in range(3)]
    assert answers == [403, 403, 429]
    assert github.deliver(payload) == 202
