# SPDX-License-Identifier: BSD-2-Clause
"""Signing in and out, and passwords."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from perfweb import redisclient
from perfweb.accounts.limits import SIGN_IN_HERE
from perfweb.accounts.models import Entry, Role, User
from tests.unit.accounts.conftest import PASSWORD

pytestmark = pytest.mark.django_db
Person = Callable[[Role], User]
SIGN_IN = "/account/sign-in/"


def sign_in(client: Client, name: str, password: str = PASSWORD, **more: str) -> Any:
    return client.post(SIGN_IN, {"username": name, "password": password, **more})


def log() -> list[tuple[str, str, str]]:
    return list(Entry.objects.order_by("pk").values_list("who", "action", "outcome"))


def test_who_signs_in_comes_to_the_account_and_out_again(client: Client, person: Person) -> None:
    person(Role.READER)
    assert client.get("/account/").headers["Location"] == f"{SIGN_IN}?next=/account/"
    assert sign_in(client, "reader").headers["Location"] == "/account/"
    assert "reader" in client.get("/account/").content.decode()
    assert client.post("/account/sign-out/").headers["Location"] == "/"
    assert client.get("/account/").status_code == 302
    assert log() == [("reader", "sign in", "done"), ("reader", "sign out", "done")]


@pytest.mark.parametrize(
    ("wanted", "reached"),
    [
        ("/account/log/", "/account/log/"),
        ("https://elsewhere.example/", "/account/"),
        ("//elsewhere.example/", "/account/"),
        ("/\\elsewhere.example/", "/account/"),
        ("javascript:alert(1)", "/account/"),
    ],
)
def test_after_it_nobody_is_sent_to_another_site(client: Client, person: Person, wanted: str, reached: str) -> None:
    person(Role.READER)
    assert sign_in(client, "reader", next=wanted).headers["Location"] == reached


def test_a_wrong_password_is_in_the_log_and_names_that_do_not_exist_are_not(client: Client, person: Person) -> None:
    person(Role.READER)
    wrong = sign_in(client, "reader", "wrong")
    unknown = sign_in(client, "my secret passphrase", "wrong")
    assert wrong.status_code == unknown.status_code == 200
    assert "correct username and password" in wrong.content.decode()
    assert log() == [("reader", "sign in", "refused"), ("unknown name", "sign in", "refused")]
    assert Entry.objects.get(who="reader").address == "127.0.0.1"


def test_a_deactivated_account_opens_nothing(client: Client, person: Person) -> None:
    person(Role.READER)
    sign_in(client, "reader")
    User.objects.update(is_active=False)
    assert client.get("/account/").status_code == 302
    assert sign_in(Client(), "reader").status_code == 200


def test_passwords_can_be_tried_only_so_often(client: Client, person: Person) -> None:
    person(Role.READER)
    for _ in range(SIGN_IN_HERE.most):
        assert sign_in(client, "reader", "wrong").status_code == 200
    answer = sign_in(client, "Reader")
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= SIGN_IN_HERE.seconds
    assert "Too many requests." in answer.content.decode()
    assert sign_in(client, "somebody else", "wrong").status_code == 200
    assert len(log()) == SIGN_IN_HERE.most + 1


def test_nobody_signs_in_while_attempts_cannot_be_counted(client: Client, person: Person, settings: Settings) -> None:
    person(Role.READER)
    settings.REDIS_URL = "unix:///nowhere/redis.sock"
    redisclient.client.cache_clear()
    try:
        assert sign_in(client, "reader").status_code == 503
        assert client.get("/account/").status_code == 302
        assert client.get("/runs/").status_code == 200
    finally:
        redisclient.client.cache_clear()


def test_a_form_from_another_site_is_refused(person: Person) -> None:
    person(Role.READER)
    answer = sign_in(Client(enforce_csrf_checks=True), "reader")
    assert answer.status_code == 403
    assert "reload the page" in answer.content.decode()


def test_a_new_password_ends_other_sessions(client: Client, person: Person) -> None:
    person(Role.READER)
    other = Client()
    for browser in (client, other):
        sign_in(browser, "reader")
    new = {"new_password1": "a much better one", "new_password2": "a much better one"}
    assert client.post("/account/password/", {"old_password": "wrong", **new}).status_code == 200
    assert client.post("/account/password/", {"old_password": PASSWORD, **new}).status_code == 302
    assert client.get("/account/").status_code == 200
    assert other.get("/account/").status_code == 302
    assert log()[-1] == ("reader", "change password", "done")


def manage(*arguments: str) -> str:
    out = io.StringIO()
    call_command("account", *arguments, stdout=out)
    return out.getvalue()


def test_the_first_administrator_sets_a_password_by_a_link_that_works_once(client: Client) -> None:
    output = manage("add", "ann", "--role", "admin")
    (link,) = re.findall(r"http\S+", output)
    form = client.get(urlsplit(link).path).headers["Location"]
    weak = client.post(form, {"new_password1": "short", "new_password2": "short"})
    assert "at least 12 characters" in weak.content.decode()
    assert client.post(form, {"new_password1": PASSWORD, "new_password2": PASSWORD}).status_code == 302
    assert "was used or has expired" in Client().get(urlsplit(link).path).content.decode()
    assert sign_in(client, "ann").status_code == 302
    assert User.objects.get().role == Role.ADMIN
    made, by_link, _ = Entry.objects.order_by("pk")
    assert (made.action, made.subject, made.detail, made.means) == ("manage accounts", "ann", "made, admin", "command")
    assert (by_link.action, by_link.who, by_link.means) == ("set password by link", "ann", "page")


def test_accounts_are_changed_by_commands() -> None:
    manage("add", "ann")
    manage("role", "Ann", "maintainer")
    manage("deactivate", "ann")
    assert manage("list") == "ann: maintainer, not active\n"
    manage("activate", "ann")
    assert manage("list") == "ann: maintainer\n"
    assert "http" in manage("link", "ann")


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["add", "ANN"], "already exists|is violated"),
        (["add", "no spaces"], "valid username"),
        (["role", "bob", "admin"], "there are: ann"),
    ],
)
def test_an_invalid_command_reports_the_reason(arguments: list[str], advice: str) -> None:
    manage("add", "ann")
    with pytest.raises(CommandError, match=advice):
        manage(*arguments)
