# SPDX-License-Identifier: BSD-2-Clause
"""The audit log: it has all changes, maintainers can read it, and it cannot be changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, IntegrityError, transaction
from django.test import Client, RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from perfweb.accounts import audit
from perfweb.accounts.actors import Actor, address_of, on_server
from perfweb.accounts.limits import network_of
from perfweb.accounts.models import Entry, Means, Role, User
from perfweb.accounts.permissions import Action, NotAllowedError
from perfweb.accounts.views import LINES
from tests.factories import create_queued_run, create_testbed
from tests.unit.accounts.conftest import forget_limits

pytestmark = pytest.mark.django_db
SignedIn = Callable[[Role], Client]
LOG = "/account/log/"


def test_the_database_lets_nobody_change_what_was_written() -> None:
    entry = audit.record(on_server(), Action.IMPORT)
    for change in (lambda: Entry.objects.update(who="another"), entry.save, entry.delete):
        with pytest.raises(DatabaseError, match="only written to"), transaction.atomic():
            change()
    assert Entry.objects.get().who == on_server().name


def test_what_fails_is_not_done_and_not_in_the_log() -> None:
    with pytest.raises(IntegrityError), audit.action(on_server(), Action.MANAGE_ACCOUNTS, "ann"):
        User.objects.bulk_create([User(username="ann"), User(username="Ann")])
    assert not User.objects.exists()
    assert not Entry.objects.exists()


def test_what_is_not_allowed_is_in_the_log() -> None:
    with pytest.raises(NotAllowedError), audit.action(Actor("ann", Role.SUBMITTER, Means.PAGE), Action.APPROVE, "it"):
        raise AssertionError
    assert Entry.objects.values_list("who", "action", "outcome").get() == ("ann", "approve", "refused")


def test_commands_that_change_something_are_in_the_log(tmp_path: Path) -> None:
    create_testbed("bench")
    call_command("submit", "demo", testbed="bench")
    number = int(Entry.objects.get().subject.removeprefix("run "))
    call_command("cancel", number)
    with pytest.raises(CommandError):
        call_command("cancel", number)
    table = tmp_path / "table.csv"
    table.write_text("value\n1\n2\n3\n", encoding="ascii")
    call_command("import", "csv", str(table), "--test", "tcp.rr/host-host/ipv4")
    actions = list(Entry.objects.order_by("pk").values_list("action", flat=True))
    assert actions == ["submit", "cancel any", "import"]
    assert {*Entry.objects.values_list("means", "who")} == {("command", on_server().name)}
    assert str(table) in Entry.objects.get(action="import").detail


def test_maintainers_search_it(signed_in: SignedIn) -> None:
    for number in range(LINES + 5):
        audit.record(Actor("ann", Role.READER, Means.API), Action.SUBMIT, f"run {number}")
    audit.record(on_server(), Action.IMPORT, "run 900", "from elsewhere")
    browser = signed_in(Role.MAINTAINER)

    def lines(query: str) -> int:
        return browser.get(LOG + query).content.decode().count("<tr>") - 1

    assert lines("") == LINES
    assert lines("?action=import") == lines("?q=elsewhere") == lines("?q=run+900") == lines("?means=command") == 1
    assert lines("?who=ann&q=run+1&since=2026-01-01") == 11
    assert lines("?outcome=refused") == lines("?since=2999-01-01") == lines("?action=nonsense") == -1
    assert lines("?q=%00") == -1
    first = browser.get(LOG).content.decode()
    assert f"?before={Entry.objects.order_by('-pk')[LINES - 1].pk}" in first
    assert lines(f"?before={Entry.objects.order_by('-pk')[LINES - 1].pk}") == 6


def test_a_run_is_cancelled_on_its_page(signed_in: SignedIn) -> None:
    run = create_queued_run()
    page = f"/runs/{run.pk}/cancel/"
    assert page in Client().get(f"/runs/{run.pk}/").content.decode()
    browser = signed_in(Role.MAINTAINER)
    assert "Cancel run" in browser.get(page).content.decode()
    assert browser.post(page).headers["Location"] == f"/runs/{run.pk}/"
    assert browser.post(page).status_code == 409
    assert Entry.objects.values_list("who", "action", "subject").get() == ("maintainer", "cancel any", f"run {run.pk}")
    forget_limits()
    assert browser.get("/runs/4711/cancel/").status_code == 404


@pytest.mark.parametrize(
    ("address", "network"),
    [("192.0.2.7", "192.0.2.7"), ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"), ("::1", "::/64"), ("", ""), (None, "")],
)
def test_an_address_counts_for_its_network(address: str | None, network: str) -> None:
    assert network_of(address) == network


@pytest.mark.parametrize(
    ("remote", "address"),
    [("192.0.2.7", "192.0.2.7"), ("::ffff:192.0.2.7", "192.0.2.7"), ("fe80::1%eth0", "fe80::1"), ("unix:", None)],
)
def test_an_address_is_one_that_the_database_takes(rf: RequestFactory, remote: str, address: str | None) -> None:
    actor = Actor("ann", Role.READER, Means.PAGE, address=address_of(rf.get("/", REMOTE_ADDR=remote)))
    assert audit.record(actor, Action.SIGN_IN).address == address


@given(st.one_of(st.text(), st.ip_addresses().map(str)))
def test_any_address_counts_for_some_network(remote: str) -> None:
    network_of(address_of(RequestFactory().get("/", REMOTE_ADDR=remote)))
