# SPDX-License-Identifier: BSD-2-Clause
"""The same patch by several people at the same time is one submission, whose address each of them gets."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.core import mail as sent
from django.db import connection, transaction
from django.test import Client
from pytest_django import Settings

from perfweb.accounts.models import Role, User
from perfweb.forges.models import CommentRequest
from perfweb.forges.services import act_on_all
from perfweb.mail.intake import receive
from perfweb.mail.series import UNKNOWN_SENDERS
from perfweb.submissions import services
from perfweb.submissions.models import Submission
from tests.checkouts import Checkout
from tests.factories import create_testbed
from tests.locks import waiting
from tests.unit.accounts.conftest import bearer
from tests.unit.forges.conftest import Making, bot_on, commented
from tests.unit.mail.conftest import work
from tests.unit.submissions.conftest import WANTED, five, person
from tests.waiting import wait_for

__all__ = ["bot_on"]


def in_a_thread(act: Callable[[], Any]) -> Any:
    try:
        return act()
    finally:
        connection.close()


@pytest.mark.django_db(transaction=True)
def test_one_patch_in_all_ways_at_once(repository: Checkout, bot_on: Making, settings: Settings) -> None:
    settings.MAIL_ADDRESS = "perf@service.example"
    bot = bot_on("github")
    repository.edit("stack/net/if.c", lambda text: text.replace("line5;", "five;"))
    patch = repository.diff()
    people = {name: User.objects.create(username=name, role=Role.SUBMITTER) for name in ("ann", "bob", "cat")}
    for name in ("dan", "eve"):
        head = f"From: {name}@example.org\nMessage-ID: <{name}@example.org>\nSubject: [PATCH] net: {name}\n"
        receive(f"{head}\nperf: tcp\n---\n".encode() + patch)
    User.objects.get_or_create(username=UNKNOWN_SENDERS, defaults={"role": Role.SUBMITTER, "password": "!"})
    assert bot.deliver(commented("github", "/perf tcp", "fay", 77, 1001)) == 202
    ann = Client()
    ann.force_login(people["ann"])
    form = {"text": patch.decode().replace("\n", "\r\n"), "matrix": "tcp-quick", "testbed": "demo", "submit": "1"}
    body = json.dumps({"patch": patch.decode(), "testbed": "demo"})
    tokens = [bearer(people[name]) for name in ("bob", "cat")]

    def by_api(token: dict[str, str]) -> Callable[[], Any]:
        return lambda: Client().post("/api/v1/submissions", body, content_type="application/json", headers=token)

    ways: list[Callable[[], Any]] = [
        lambda: ann.post("/submissions/new/", form), *map(by_api, tokens), work, act_on_all,
    ]  # fmt: skip
    with ThreadPoolExecutor(len(ways)) as threads:
        with transaction.atomic():  # until all have applied the patch, and have found none that is the same
            list(User.objects.select_for_update())
            running = [threads.submit(in_a_thread, way) for way in ways]
            wait_for(lambda: waiting() == len(ways), "a lock for each request")
        page, *answers = (one.result() for one in running[:3])
        for one in running[3:]:
            one.result()
    submission = Submission.objects.get()
    address = f"/submissions/{submission.number}/"
    assert page.status_code == 302 or address in page.content.decode()
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert all(f"/api/v1/submissions/{submission.number}" in answer.content.decode() for answer in answers)
    assert {letter.to[0] for letter in sent.outbox} == {"dan@example.org", "eve@example.org"}
    assert all(address in str(letter.body) for letter in sent.outbox)
    assert CommentRequest.objects.get().submissions.get() == submission
    created = sum(one.status_code in {201, 302} for one in (page, *answers))
    assert created == (submission.author.username in people)


@pytest.mark.django_db
def test_another_testbed_is_another_submission(repository: Checkout) -> None:
    create_testbed("other")
    diff = five(repository)
    numbers = {services.submit(person("ann"), diff, replace(WANTED, testbed=name)).number for name in ("demo", "other")}
    assert len(numbers) == 2
    with pytest.raises(
        services.DuplicateError, match=r"^Submission \d+ by ann has the same patch, base, plan and testbed\.$"
    ):
        services.submit(person("bob"), diff, WANTED)
