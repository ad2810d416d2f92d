# SPDX-License-Identifier: BSD-2-Clause
"""Every check of a secret limits wrong ones; right ones do not count, and no user locks another one out."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.test import Client

from perfweb.accounts import limits
from perfweb.accounts.limits import Attempt, Limit, NotNowError
from perfweb.accounts.models import Role, User
from perfweb.redisclient import client
from tests.unit.accounts.conftest import PASSWORD, bearer

pytestmark = pytest.mark.django_db
Person = Callable[[Role], User]
NEW = {"new_password1": "a much better one", "new_password2": "a much better one"}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SLOW_SECONDS", 0.0)


def sign_in(name: str, password: str, address: str = "127.0.0.1") -> int:
    fields = {"username": name, "password": password}
    return Client().post("/account/sign-in/", fields, REMOTE_ADDR=address).status_code


def test_right_passwords_do_not_count(person: Person) -> None:
    person(Role.READER)
    for _ in range(limits.SIGN_IN_NETWORK.most + 1):
        assert sign_in("reader", PASSWORD) == 302
    for _ in range(limits.SIGN_IN_HERE.most):
        assert sign_in("reader", "wrong") == 200
    assert sign_in("reader", PASSWORD) == 429


def test_an_empty_form_is_no_guess(person: Person) -> None:
    person(Role.READER)
    for _ in range(limits.SIGN_IN_HERE.most + 1):
        assert sign_in("reader", "") == 200
    assert sign_in("reader", PASSWORD) == 302


def test_guesses_of_others_do_not_lock_an_account(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    person(Role.READER)
    slowed: list[None] = []
    monkeypatch.setattr(limits, "_slow_down", lambda: slowed.append(None))
    assert sign_in("reader", PASSWORD, "192.0.2.1") == 302
    for number in range(limits.SIGN_IN_ACCOUNT.most + 5):
        assert sign_in("reader", "wrong", f"198.51.100.{number}") == 200
    assert len(slowed) == 5
    assert sign_in("reader", PASSWORD, "203.0.113.9") == 302
    assert len(slowed) == 6
    assert sign_in("reader", PASSWORD, "192.0.2.1") == 302
    assert len(slowed) == 6


def test_an_account_under_attack_holds_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SLOW_SECONDS", 5.0)
    for _ in range(limits.SLOW_AT_ONCE):
        assert limits._slow.acquire(blocking=False)
    try:
        with pytest.raises(NotNowError) as caught:
            limits._slow_down()
    finally:
        for _ in range(limits.SLOW_AT_ONCE):
            limits._slow.release()
    assert caught.value.seconds == 5


def test_guesses_at_the_same_time_do_not_pass_together() -> None:
    def guess(_: int) -> bool:
        try:
            Attempt("reader", "192.0.2.1").begin()
        except NotNowError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(guess, range(40))) == limits.SIGN_IN_HERE.most


def test_addresses_of_one_ipv6_network_count_together(person: Person) -> None:
    person(Role.READER)
    for number in range(limits.SIGN_IN_HERE.most):
        assert sign_in("reader", "wrong", f"2001:db8::{number:x}") == 200
    assert sign_in("reader", PASSWORD, "2001:db8::ffff") == 429
    assert sign_in("reader", PASSWORD, "2001:db8:0:1::1") == 302


def test_the_old_password_cannot_be_guessed_when_it_is_changed(signed_in: Callable[[Role], Client]) -> None:
    client = signed_in(Role.READER)

    def change(old: str) -> int:
        return client.post("/account/password/", {"old_password": old, **NEW}).status_code

    for _ in range(limits.SIGN_IN_HERE.most):
        assert change("wrong") == 200
    assert change(PASSWORD) == 429
    assert sign_in("reader", PASSWORD) == 429
    assert User.objects.get().check_password(PASSWORD)


@pytest.fixture
def few_wrong_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WRONG_SECRETS", Limit("few wrong secrets", 2, 60))


@pytest.mark.usefixtures("few_wrong_secrets")
def test_wrong_tokens_are_limited_and_right_ones_pass(client: Client, person: Person) -> None:
    right = bearer(person(Role.SUBMITTER))
    wrong = {"Authorization": "Bearer perfweb_wrong"}
    answers = [client.post("/api/v1/runs/4711/cancel", headers=wrong) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [401, 401, 429]
    assert answers[-1].headers["Content-Type"] == "application/problem+json"
    assert int(answers[-1].headers["Retry-After"]) > 0
    assert client.post("/api/v1/runs/4711/cancel", headers=right).status_code not in {401, 429}


@pytest.mark.usefixtures("few_wrong_secrets")
def test_wrong_links_for_a_password_are_limited(client: Client) -> None:
    answers = [client.get("/account/password/MQ/x-y/").status_code for _ in range(3)]
    assert answers == [200, 200, 429]


def test_clock_of_redis_that_is_put_back_makes_no_limit_longer() -> None:
    """Redis stores the expiry of a counter as time of day: a limit of a minute would last an hour."""
    limit = Limit("of a minute", 1, 60)
    limit.spend("ada")
    name = limit._name("ada")
    client().expire(name, 3600)
    with pytest.raises(NotNowError) as refused:
        limit.spend("ada")
    assert refused.value.seconds <= 60
    assert client().ttl(name) <= 60
