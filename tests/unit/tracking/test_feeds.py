# SPDX-License-Identifier: BSD-2-Clause
"""Atom feeds of alerts."""

from __future__ import annotations

import html
from xml.etree import ElementTree

import pytest
from django.test import Client
from django.utils.dateparse import parse_datetime

from perfweb.lab.origins import Origin
from perfweb.tracking import states
from perfweb.tracking.models import Alert, AlertState
from perfweb.verdicts.numbers import factor

ATOM = "{http://www.w3.org/2005/Atom}"


def feed(client: Client, address: str) -> ElementTree.Element:
    """Request a feed; it has what RFC 4287, sections 4.1.1 and 4.1.2, requires."""
    answer = client.get(address)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/atom+xml; charset=utf-8")
    root = ElementTree.fromstring(answer.content)  # noqa: S314 (the product's own text)
    for element in (root, *root.iter(f"{ATOM}entry")):
        assert element.findtext(f"{ATOM}title")
        assert (element.findtext(f"{ATOM}id") or "").startswith("http")
        assert parse_datetime(element.findtext(f"{ATOM}updated") or "")
    links = {link.get("rel"): link.get("href") or "" for link in root.findall(f"{ATOM}link")}
    assert links["self"].endswith(address)
    assert root.findtext(f"{ATOM}id") == links["self"]  # no other feed has it (section 4.2.6)
    return root


def titles(client: Client, address: str) -> list[str]:
    return [entry.findtext(f"{ATOM}title") or "" for entry in feed(client, address).iter(f"{ATOM}entry")]


def test_a_feed_has_the_confirmed_alerts_of_all_of_a_branch_or_of_a_test(client: Client, alert: Alert) -> None:
    moved = [movement.test for movement in alert.movements.filter(confirmed=True)]
    every = titles(client, "/alerts/feed/")
    assert len(every) == 1
    assert "net: number 8" in every[0]
    assert titles(client, "/alerts/feed/?branch=head") == every
    assert titles(client, f"/alerts/feed/?test={moved[0].replace('/', '%2F')}") == every
    assert titles(client, "/alerts/feed/?test=udp.rr%2Fhost-host%2Fipv4") == []


@pytest.mark.parametrize("state", [AlertState.NEW, AlertState.REFUTED])
def test_a_suspicion_is_in_no_feed(client: Client, alert: Alert, state: AlertState) -> None:
    Alert.objects.update(state=state)
    assert titles(client, "/alerts/feed/") == []


def test_samples_are_in_the_feed_of_their_branch_alone(client: Client, alert: Alert) -> None:
    testbed = alert.branch.testbed
    testbed.sample = "a published series"
    testbed.save()
    assert titles(client, "/alerts/feed/") == []
    assert len(titles(client, "/alerts/feed/?branch=head")) == 1


def test_an_entry_names_an_origin_that_is_not_measurement_and_a_large_change_as_a_factor(
    client: Client, alert: Alert
) -> None:
    testbed = alert.branch.testbed
    testbed.origin = Origin.SIMULATED
    testbed.save()
    alert.movements.update(percent=1900.0)
    (entry,) = feed(client, "/alerts/feed/").iter(f"{ATOM}entry")
    assert (entry.findtext(f"{ATOM}title") or "").startswith(f"[head] {factor(1900.0)} (simulated) with ")
    assert f"Testbed: {testbed.name} (simulated)" in (entry.findtext(f"{ATOM}summary") or "")


def test_an_entry_shows_what_was_measured_and_when_it_changed(client: Client, alert: Alert) -> None:
    (entry,) = feed(client, "/alerts/feed/").iter(f"{ATOM}entry")
    first = entry.findtext(f"{ATOM}updated") or ""
    assert "tcp.rr/host-host/ipv4 on direct" in (entry.findtext(f"{ATOM}summary") or "")
    states.judge(alert.number, AlertState.ACKNOWLEDGED, "ada")
    (entry,) = feed(client, "/alerts/feed/").iter(f"{ATOM}entry")
    assert (entry.findtext(f"{ATOM}updated") or "") > first
    assert entry.findtext(f"{ATOM}id") == alert.address


def test_the_feed_of_an_alert_has_its_history_as_text(client: Client, alert: Alert) -> None:
    states.note(alert, "ada", "<b>seen</b> & understood")
    (newest, *older) = feed(client, f"/alerts/{alert.number}/feed/").iter(f"{ATOM}entry")
    assert newest.findtext(f"{ATOM}title") == f"Alert {alert.number}: comment (ada)"
    assert newest.findtext(f"{ATOM}summary") == "<pre>&lt;b&gt;seen&lt;/b&gt; &amp; understood</pre>"
    names = [entry.findtext(f"{ATOM}title") or "" for entry in older]
    assert any("confirmed" in name for name in names)
    keys = [entry.findtext(f"{ATOM}id") for entry in (newest, *older)]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("page", "address"),
    [
        ("/alerts/", "/alerts/feed/"),
        ("/tracking/head/", "/alerts/feed/?branch=head"),
        ("/tests/tcp.rr/host-host/ipv4/", "/alerts/feed/?test=tcp.rr/host-host/ipv4"),
        ("/alerts/{number}/", "/alerts/{number}/feed/"),
    ],
)
def test_a_page_names_its_feed_for_readers_and_for_programs(
    client: Client, alert: Alert, page: str, address: str
) -> None:
    text = client.get(page.format(number=alert.number)).content.decode()
    expected = address.format(number=alert.number)
    assert text.count(f'href="{expected}"') == 2
    assert '<link rel="alternate" type="application/atom+xml"' in text


def test_a_feed_of_nothing_is_refused(client: Client, alert: Alert) -> None:
    answer = client.get("/alerts/feed/?branch=none")
    assert answer.status_code == 400
    assert "“none” is not possible. Possible: head" in html.unescape(answer.content.decode())
    assert client.get("/alerts/feed/?test=none").status_code == 400
    assert client.get("/alerts/999/feed/").status_code == 404
