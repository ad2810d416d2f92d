# SPDX-License-Identifier: BSD-2-Clause
"""Watches of alerts: what is watched, confirmed mail addresses, and the end of mails by one click."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from django.core import mail as sent
from django.core.mail import EmailMessage
from django.test import Client
from pytest_django import Settings

from perfweb.accounts.actors import on_server
from perfweb.accounts.models import Role, User
from perfweb.outbox.models import Letter
from perfweb.outbox.services import deliver
from perfweb.tracking import services
from perfweb.tracking.alerts import addresses, watching
from perfweb.tracking.alerts.notifications import notify
from perfweb.tracking.models import Alert, AlertAddress, AlertState, Watch

pytestmark = pytest.mark.django_db
ADDRESS, MINE = "/account/mine/address/", "/account/mine/"
ADA = "ada@example.org"


@pytest.fixture(autouse=True)
def sends_mail(settings: Settings) -> None:
    settings.MAIL_ADDRESS = "perf@service.example"
    settings.SITE_URL = "http://testserver"


@pytest.fixture
def ada(client: Client) -> User:
    user = User.objects.create_user("ada", role=Role.READER)
    client.force_login(user)
    return user


def mails() -> Sequence[EmailMessage]:
    """Deliver what is queued; return and forget it."""
    deliver()
    found = list(sent.outbox)
    sent.outbox.clear()
    return found


def link_in(mail: EmailMessage, name: str) -> str:
    found = re.search(rf"http://testserver(/alerts/{name}/\S+)", str(mail.body))
    assert found
    return found[1]


def ask(client: Client, address: str = ADA) -> str:
    """Set an address; return the link of the mail that it gets."""
    assert client.post(ADDRESS, {"address": address}).status_code == 302
    (mail,) = mails()
    assert mail.to == [address.lower()]
    return link_in(mail, "confirm")


def notified(alert: Alert) -> Sequence[EmailMessage]:
    """Announce an alert again, as if never before."""
    Letter.objects.all().delete()
    notify(alert)
    return mails()


def test_an_address_gets_nothing_before_it_is_confirmed(client: Client, ada: User, alert: Alert) -> None:
    assert "set an address" in client.get(MINE).content.decode()
    link = ask(client, "Ada@Example.org")
    assert client.post("/alerts/watch/?branch=head").headers["Location"] == MINE
    assert notified(alert) == []
    other = Client()
    assert "requests messages" in other.get(link).content.decode()
    assert notified(alert) == [], "programs open links of mails, too"
    assert "is not confirmed" in client.get(MINE).content.decode()
    assert "is confirmed" in other.post(link).content.decode()
    (mail,) = notified(alert)
    assert (mail.to, mail.subject[:6]) == ([ADA], "[head]")
    assert "net: number 8" in str(mail.body)
    assert "Mails go to" in client.get(MINE).content.decode()


def confirmed(client: Client) -> None:
    assert client.post(ask(client)).status_code == 200


def test_one_click_ends_all_mails(client: Client, ada: User, alert: Alert) -> None:
    """As RFC 8058, section 3.2, has it: without cookies, and without a redirection."""
    confirmed(client)
    client.post("/alerts/watch/?branch=head")
    (mail,) = notified(alert)
    link = link_in(mail, "unsubscribe")
    assert mail.extra_headers["List-Unsubscribe"] == f"<http://testserver{link}>"
    assert mail.extra_headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    Letter.objects.all().delete()
    notify(alert)  # waits for a server while the user unsubscribes
    program = Client(enforce_csrf_checks=True)
    assert ADA in program.get(link).content.decode()
    for _ in range(2):
        answer = program.post(link, "List-Unsubscribe=One-Click", content_type="application/x-www-form-urlencoded")
        assert answer.status_code == 200
    assert mails() == notified(alert) == []
    assert not AlertAddress.objects.exists()
    assert program.get(link).status_code == 404


def test_links_that_confirm_nothing(client: Client, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
    old = ask(client)
    new = ask(client, "ada@example.net")
    for link in (old, f"{new[:-2]}/", new.replace("confirm", "unsubscribe"), "/alerts/confirm/x/"):
        assert client.get(link).status_code == 404
        assert client.post(link).status_code == (403 if "unsubscribe" in link else 404)
    assert AlertAddress.objects.get().confirmed is None
    monkeypatch.setattr(addresses, "CONFIRM_HOURS", 0)
    assert "was valid for" in client.get(new).content.decode()
    monkeypatch.undo()
    User.objects.update(is_active=False)
    assert Client().post(new).status_code == 404


def test_another_address_has_to_be_confirmed_again(client: Client, ada: User, alert: Alert) -> None:
    confirmed(client)
    client.post("/alerts/watch/?branch=head")
    ask(client, "ada@example.net")
    assert notified(alert) == []
    client.post(ADDRESS, {"address": ""})
    assert not AlertAddress.objects.exists()


@pytest.mark.parametrize("address", ["ada", "ada@", "a@b.example, c@d.example", "àda@example.org", "a\n@b.example"])
def test_what_is_no_address(client: Client, ada: User, address: str) -> None:
    answer = client.post(ADDRESS, {"address": address})
    assert answer.status_code == 422
    assert not Letter.objects.exists()


def test_nobody_is_flooded_with_links(client: Client, ada: User) -> None:
    """Neither one address by several accounts, nor several addresses by one."""
    statuses = [client.post(ADDRESS, {"address": ADA}).status_code for _ in range(4)]
    assert statuses == [302, 302, 302, 429]
    statuses = [client.post(ADDRESS, {"address": f"ada@{n}.example"}).status_code for n in range(3)]
    assert statuses[-1] == 429
    client.force_login(User.objects.create_user("bea", role=Role.READER))
    assert client.post(ADDRESS, {"address": ADA}).status_code == 429
    assert client.post(ADDRESS, {"address": "bea@example.org"}).status_code == 302


def test_a_service_without_mail_sends_none(client: Client, ada: User, settings: Settings) -> None:
    settings.MAIL_ADDRESS = ""
    assert "sends no mail" in client.post(ADDRESS, {"address": ADA}).content.decode()


def test_what_can_be_watched(client: Client, ada: User, alert: Alert) -> None:
    confirmed(client)
    test = alert.movements.filter(confirmed=True)[0].test
    for query in ("branch=head", f"test={test}", f"alert={alert.number}"):
        page = client.get(f"/alerts/watch/?{query}").content.decode()
        assert ">Watch</button>" in page
        client.post(f"/alerts/watch/?{query}")
        assert len(notified(alert)) == 1, query
        assert Watch.objects.get().query in {query, query.replace("/", "%2F")}
        assert client.get(Watch.objects.get().page).status_code == 200
        assert "Stop watching" in client.get(f"/alerts/watch/?{query}").content.decode()
        assert f"?{Watch.objects.get().query}" in client.get(MINE).content.decode()
        client.post(f"/alerts/watch/?{query}")
        assert notified(alert) == []
    client.post("/alerts/watch/?test=udp.rr/host-host/ipv4")
    assert notified(alert) == [], "nothing has changed in this test"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 404),
        ("branch=head&alert=1", 404),
        ("branch=nosuch", 400),
        ("test=x", 400),
        ("alert=99", 404),
        ("alert=x", 400),
    ],
)
def test_what_cannot_be_watched(client: Client, ada: User, alert: Alert, query: str, status: int) -> None:
    assert client.post(f"/alerts/watch/?{query}").status_code == status
    assert not Watch.objects.exists()


def test_watches_need_an_account_and_have_a_limit(
    client: Client, ada: User, alert: Alert, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Client().get("/alerts/watch/?branch=head").headers["Location"].startswith("/account/sign-in/")
    monkeypatch.setattr(watching, "MOST_WATCHES", 1)
    client.post("/alerts/watch/?branch=head")
    answer = client.post(f"/alerts/watch/?alert={alert.number}")
    assert (answer.status_code, Watch.objects.count()) == (409, 1)


def test_an_address_that_the_branch_writes_to_gets_one_mail(client: Client, ada: User, alert: Alert) -> None:
    confirmed(client)
    client.post("/alerts/watch/?branch=head")
    alert.branch.mail_to = ADA
    assert len(notified(alert)) == 1


def test_an_update_goes_to_users_that_watch_the_alert(client: Client, ada: User, alert: Alert) -> None:
    confirmed(client)
    client.post("/alerts/watch/?branch=head")
    update = services.AlertUpdate(state=AlertState.ACKNOWLEDGED, text="known")
    services.update_alert(on_server(), alert.number, update)
    assert mails() == []
    client.post(f"/alerts/watch/?alert={alert.number}")
    services.update_alert(on_server(), alert.number, services.AlertUpdate(text="It is the cache."))
    (mail,) = mails()
    assert "It is the cache." in str(mail.body)
    ada.role = Role.SUBMITTER
    ada.save()
    client.post(f"/alerts/{alert.number}/update/", {"text": "my own words"})
    assert mails() == []
