# SPDX-License-Identifier: BSD-2-Clause
"""Webhooks of users, with a real server: confirmed, signed, and for public addresses only."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from django.db.models import Min
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from perfweb.accounts.actors import on_server
from perfweb.accounts.models import Role, User
from perfweb.outbox.models import Letter
from perfweb.outbox.services import deliver
from perfweb.tracking import services
from perfweb.tracking.alerts.notifications import notify
from perfweb.tracking.models import Alert, AlertAddress, AlertState, Watch
from tests.unit.outbox.programs import Program, running

pytestmark = pytest.mark.django_db
WEBHOOK, MINE = "/account/mine/webhook/", "/account/mine/"


@pytest.fixture(autouse=True)
def reaches_loopback(settings: Settings) -> None:
    settings.HOOK_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.SITE_URL = "http://testserver"
    settings.MAIL_ADDRESS = ""


@pytest.fixture
def ada(client: Client) -> User:
    user = User.objects.create_user("ada", role=Role.READER)
    client.force_login(user)
    return user


@pytest.fixture
def program() -> Iterator[Program]:
    with running() as server:
        yield server


def got(program: Program) -> list[Any]:
    """Deliver what is queued; return and forget it."""
    deliver()
    found = [data for _, data in program.got]
    program.got.clear()
    return found


def confirmed(client: Client, program: Program) -> None:
    """Set a program as webhook of a user who watches the branch, and confirm it."""
    client.post("/alerts/watch/?branch=head")
    assert client.post(WEBHOOK, {"address": program.url}).status_code == 302
    (data,) = got(program)
    assert data["occasion"] == "confirm"
    assert Client().post(data["address"].removeprefix("http://testserver")).status_code == 200


def notified(alert: Alert, program: Program) -> list[Any]:
    """Announce an alert again, as if never before."""
    Letter.objects.all().delete()
    notify(alert)
    return got(program)


def test_a_webhook_gets_nothing_before_it_is_confirmed(
    client: Client, ada: User, alert: Alert, program: Program
) -> None:
    assert "Set a webhook" in client.get(MINE).content.decode()
    client.post("/alerts/watch/?branch=head")
    client.post(WEBHOOK, {"address": program.url})
    (data,) = got(program)
    assert notified(alert, program) == []
    assert "is not confirmed" in client.get(MINE).content.decode()
    page = data["address"].removeprefix("http://testserver")
    assert "requests messages" in Client().get(page).content.decode()
    assert notified(alert, program) == []
    assert "is confirmed" in Client().post(page).content.decode()
    (data,) = notified(alert, program)
    assert (data["occasion"], data["alert"], data["branch"]) == ("ended", alert.number, "head")
    assert data["movements"]
    page = client.get(MINE).content.decode()
    assert "POSTs go to" in page
    assert "was accepted" in page


def test_posts_are_signed_with_a_secret_of_the_user(client: Client, ada: User, alert: Alert, program: Program) -> None:
    """As Standard Webhooks has it: HMAC-SHA256 of identifier, time and body by the decoded secret."""
    confirmed(client, program)
    found = re.search(r"<code>whsec_([^<]+)</code>", client.get(WEBHOOK).content.decode())
    assert found
    notified(alert, program)
    headers, body = program.requests[-1]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.digest(base64.b64decode(found[1]), signed, hashlib.sha256)).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert abs(int(headers["webhook-timestamp"]) - timezone.now().timestamp()) < 60
    assert found[1] not in str(Letter.objects.values_list()) + str(AlertAddress.objects.values_list())
    client.post(WEBHOOK, {"address": program.url})
    assert found[1] not in client.get(WEBHOOK).content.decode(), "set again, it has another secret"


def test_a_webhook_that_is_changed_or_ended_gets_nothing_more(
    client: Client, ada: User, alert: Alert, program: Program
) -> None:
    confirmed(client, program)
    Letter.objects.all().delete()
    notify(alert)
    client.post(WEBHOOK, {"address": ""})
    assert got(program) == []
    assert not AlertAddress.objects.exists()
    Watch.objects.all().delete()
    confirmed(client, program)
    Letter.objects.all().delete()
    notify(alert)
    AlertAddress.objects.update(address="http://127.0.0.1:1/")
    assert got(program) == []
    assert "no longer the webhook" in Letter.objects.get().problem


def test_a_user_who_cannot_sign_in_any_more_gets_nothing(
    client: Client, ada: User, alert: Alert, program: Program
) -> None:
    confirmed(client, program)
    Letter.objects.all().delete()
    notify(alert)
    User.objects.update(is_active=False)
    assert got(program) == []
    assert notified(alert, program) == []


@pytest.mark.parametrize("where", ["http://127.0.0.1", "http://localhost", "http://[::1]", "http://169.254.169.254"])
def test_addresses_that_are_not_public_get_nothing(
    client: Client, ada: User, program: Program, settings: Settings, where: str
) -> None:
    settings.HOOK_NETWORKS = []
    assert client.post(WEBHOOK, {"address": f"{where}:{program.server_port}/"}).status_code == 302
    assert got(program) == []
    page = client.get(MINE).content.decode()
    assert "has no public address" in page
    assert "It is tried again." in page


@pytest.mark.parametrize("url", ["nothing", "ftp://x.example/", "http://x.example:25/", "http://a@x.example/"])
def test_what_is_no_webhook(client: Client, ada: User, url: str) -> None:
    answer = client.post(WEBHOOK, {"address": url})
    assert answer.status_code == 422
    assert 'role="alert"' in answer.content.decode()
    assert not Letter.objects.exists()


def test_no_host_is_flooded(client: Client, ada: User, program: Program) -> None:
    """Neither by one account, nor by several with different paths of one host."""
    for number in range(24):
        if number % 5 == 0:
            client.force_login(User.objects.create_user(f"user{number}", role=Role.READER))
        status = client.post(WEBHOOK, {"address": f"{program.url}/{number}"}).status_code
        assert status == (302 if number < 20 else 429), number
    client.force_login(ada)
    statuses = [client.post(WEBHOOK, {"address": f"http://h{number}.example/"}).status_code for number in range(6)]
    assert statuses == [302] * 5 + [429]


def test_a_webhook_that_fails_delays_no_other_and_is_tried_with_longer_pauses(
    client: Client, ada: User, alert: Alert, program: Program
) -> None:
    confirmed(client, program)
    with running() as other:
        client.force_login(User.objects.create_user("bea", role=Role.READER))
        confirmed(client, other)
        Letter.objects.all().delete()
        alert.conclusion, conclusion = "", alert.conclusion
        notify(alert)
        alert.conclusion = conclusion
        notify(alert)
        program.status = 500
        assert [data["occasion"] for data in got(program)] == ["confirmed"], "only one of two letters is tried"
        assert [data["occasion"] for _, data in other.got] == ["confirmed", "ended"]
    now, pauses = timezone.now(), list[float]()
    for _ in range(4):
        due = Letter.objects.aggregate(due=Min("due"))["due"]
        pauses.append((due - now).total_seconds())
        now = due + timedelta(seconds=1)
        deliver(now)
    assert pauses == sorted(pauses)
    assert pauses[-1] > 2 * pauses[0]
    client.force_login(ada)
    assert "The last one failed: POST" in client.get(MINE).content.decode()


def test_an_update_goes_to_users_that_watch_the_alert(
    client: Client, ada: User, alert: Alert, program: Program
) -> None:
    confirmed(client, program)
    client.post(f"/alerts/watch/?alert={alert.number}")
    services.update_alert(
        on_server(), alert.number, services.AlertUpdate(state=AlertState.ACKNOWLEDGED, text="It is the cache.")
    )
    (data,) = got(program)
    assert (data["occasion"], data["text"], data["state"]) == ("updated", "It is the cache.", "acknowledged")


def test_a_url_that_the_branch_posts_to_gets_one(client: Client, ada: User, alert: Alert, program: Program) -> None:
    confirmed(client, program)
    alert.branch.hook = program.url
    assert len(notified(alert, program)) == 1


def test_the_secret_is_only_for_its_user(client: Client, ada: User, program: Program) -> None:
    confirmed(client, program)
    assert Client().get(WEBHOOK).headers["Location"].startswith("/account/sign-in/")
    client.force_login(User.objects.create_user("bea", role=Role.READER))
    assert "whsec_" not in client.get(WEBHOOK).content.decode()
