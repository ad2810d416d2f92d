# SPDX-License-Identifier: BSD-2-Clause
"""Tokens of the API: made once, stored as a hash, and limited by their scope and their owner's role."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from perfweb.accounts.limits import WRITE
from perfweb.accounts.models import Entry, Role, Scope, Token, User
from perfweb.accounts.tokens import MOST, PREFIX, issue
from perfweb.api.problems import CONTENT_TYPE
from perfweb.runs.models import RunState
from tests.factories import create_queued_run
from tests.unit.accounts.conftest import bearer

pytestmark = pytest.mark.django_db
Person = Callable[[Role], User]
SignedIn = Callable[[Role], Client]
ACCOUNT = "/api/v1/account"
FORM = {"name": "laptop", "scope": str(Scope.READ), "days": "30"}


def refusal(response: Any, status: int) -> str:
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == CONTENT_TYPE
    return str(response.json()["detail"])


def test_a_secret_is_shown_once_and_kept_as_a_hash(signed_in: SignedIn, client: Client) -> None:
    browser = signed_in(Role.READER)
    answer = browser.post("/account/tokens/", FORM)
    (secret,) = re.findall(rf"{PREFIX}[\w-]{{43}}", answer.content.decode())
    assert "no-store" in answer.headers["Cache-Control"]
    assert secret not in browser.get("/account/").content.decode()
    assert secret not in str(list(Token.objects.values()))
    account = client.get(ACCOUNT, headers={"Authorization": f"Bearer {secret}"})
    assert (account.json()["name"], account.json()["token"], account.json()["scope"]) == ("reader", "laptop", "read")
    assert "no-store" in account.headers["Cache-Control"]


def test_a_token_may_not_more_than_its_owner(signed_in: SignedIn) -> None:
    answer = signed_in(Role.READER).post("/account/tokens/", {**FORM, "scope": str(Scope.SUBMIT)})
    assert answer.status_code == 422
    assert not Token.objects.exists()


def test_an_account_has_only_so_many_tokens(person: Person, signed_in: SignedIn) -> None:
    browser = signed_in(Role.READER)
    for _ in range(MOST):
        issue(User.objects.get(), "one", Scope.READ, 1)
    answer = browser.post("/account/tokens/", FORM)
    assert answer.status_code == 422
    assert "revoke one" in answer.content.decode()


@pytest.mark.parametrize(
    "header", ["", "Basic YW5uOmFubg==", "Bearer", "Bearer nonsense", "Bearer \xff", "bearer  x y"]
)
def test_without_a_good_token_one_is_requested(client: Client, db: None, header: str) -> None:
    answer = client.get(ACCOUNT, headers={"Authorization": header} if header else {})
    assert "token" in refusal(answer, 401)
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_the_error_for_an_expired_token_states_that_it_has_expired(client: Client, person: Person) -> None:
    headers = bearer(person(Role.READER))
    Token.objects.update(expires=timezone.now())
    assert "expired on" in refusal(client.get(ACCOUNT, headers=headers), 401)
    Token.objects.update(revoked=timezone.now())
    assert "revoked on" in refusal(client.get(ACCOUNT, headers=headers), 401)
    User.objects.update(is_active=False)
    assert "not known" in refusal(client.get(ACCOUNT, headers=headers), 401)


def test_one_revokes_ones_own_tokens_only(person: Person, signed_in: SignedIn, client: Client) -> None:
    owner = person(Role.SUBMITTER)
    headers = bearer(owner)
    address = f"/account/tokens/{Token.objects.get().pk}/revoke/"
    assert signed_in(Role.ADMIN).post(address).status_code == 404
    assert client.get(ACCOUNT, headers=headers).status_code == 200
    browser = Client()
    browser.force_login(owner)
    assert browser.post(address).status_code == 302
    assert "revoked" in refusal(client.get(ACCOUNT, headers=headers), 401)
    assert Entry.objects.latest("pk").action == "revoke token"


def test_the_last_use_is_noted_at_most_once_a_minute(client: Client, person: Person) -> None:
    headers = bearer(person(Role.READER))
    client.get(ACCOUNT, headers=headers)
    first = Token.objects.get().used
    client.get(ACCOUNT, headers=headers)
    assert first is not None
    assert Token.objects.get().used == first
    earlier = first - timedelta(seconds=61)
    Token.objects.update(used=earlier)
    client.get(ACCOUNT, headers=headers)
    assert Token.objects.get().used != earlier


def test_scope_and_role_both_limit_what_can_be_done(client: Client, person: Person) -> None:
    run = create_queued_run()
    address = f"/api/v1/runs/{run.pk}/cancel"
    maintainer = person(Role.MAINTAINER)
    assert "“cancel any” needs the role maintainer" in refusal(
        client.post(address, headers=bearer(maintainer, Scope.SUBMIT)), 403
    )
    assert "maintainer" in refusal(client.post(address, headers=bearer(person(Role.SUBMITTER))), 403)
    run.refresh_from_db()
    assert run.state == RunState.QUEUED
    answer = client.post(address, headers=bearer(maintainer))
    assert answer.json() == {"number": run.pk, "state": "cancelled", "cancel_requested": False}
    assert "cancelled already" in refusal(client.post(address, headers=bearer(maintainer)), 409)
    entry = Entry.objects.get(outcome="done")
    recorded = (entry.who, entry.action, entry.subject, entry.means, entry.token, entry.address)
    assert recorded == ("maintainer", "cancel any", f"run {run.pk}", "API", "test", "127.0.0.1")


def test_one_cancels_ones_own_run(client: Client, person: Person) -> None:
    run = create_queued_run()
    run.requested_by = "submitter"
    run.save()
    headers = bearer(person(Role.SUBMITTER))
    assert client.post(f"/api/v1/runs/{run.pk}/cancel", headers=headers).status_code == 200
    refusal(client.post("/api/v1/runs/4711/cancel", headers=headers), 404)


def test_a_session_of_a_browser_is_no_token(signed_in: SignedIn) -> None:
    run = create_queued_run()
    refusal(signed_in(Role.ADMIN).post(f"/api/v1/runs/{run.pk}/cancel"), 401)


def test_changes_are_possible_only_so_often(client: Client, person: Person) -> None:
    headers = bearer(person(Role.READER))
    address = f"/api/v1/runs/{create_queued_run().pk}/cancel"
    for _ in range(WRITE.most):
        refusal(client.post(address, headers=headers), 403)
    answer = client.post(address, headers=headers)
    assert "Too many requests" in refusal(answer, 429)
    assert 0 < int(answer.headers["Retry-After"]) <= WRITE.seconds
