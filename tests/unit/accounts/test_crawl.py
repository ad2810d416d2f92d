# SPDX-License-Identifier: BSD-2-Clause
"""Every address, asked as anybody: who may do what is what the table says, and public pages are the same for all."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from perfweb.accounts.models import Entry, Role, User
from perfweb.accounts.permissions import LEAST, Action, may
from tests.factories import create_queued_run
from tests.unit.accounts.conftest import PASSWORD
from tests.unit.accounts.crawl import Crawl, digests, report
from tests.unit.accounts.site import ANYBODY, ROLES, Site
from tests.unit.crawl.addresses import ADDRESSES

pytestmark = pytest.mark.django_db
PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "security-crawl.md"
MEASURED = "\n## Malformed requests\n"
"""The heading of a section that is not made from this crawl."""
GUARDED = [address for address in ADDRESSES if address.action]
PUBLIC = [address for address in ADDRESSES if not address.action]


@pytest.fixture
def crawl(site: Site) -> Crawl:
    return Crawl(site)


def test_every_action_has_a_least_role_and_each_role_may_what_those_before_it_may() -> None:
    assert set(LEAST) == set(Action)
    allowed = [{action for action in Action if may(User(role=role), action)} for role in Role]
    assert all(less < more for less, more in itertools.pairwise(allowed))
    assert allowed[-1] == set(Action)
    assert not any(may(User(role=Role.ADMIN, is_active=False), action) for action in Action if LEAST[action])


def test_everybody_gets_what_the_report_says(crawl: Crawl, request: pytest.FixtureRequest) -> None:
    for person in (ANYBODY, *ROLES):
        crawl.look(person)
        crawl.act(person)
    assert not crawl.wrong, "\n".join(crawl.wrong)
    for address in GUARDED:
        assert address.action
        for person, word in crawl.words[address, "POST" if (address, "POST") in crawl.words else "GET"].items():
            known = crawl.site.users.get(person)
            if known and not may(known, address.action):
                assert word == "refused", address.name
            elif not known and LEAST[address.action]:
                assert word == ("token" if address.operations else "sign in"), address.name
    made = report(crawl.words)
    known_report, heading, measured = PAGE.read_text(encoding="utf-8").partition(MEASURED)
    if request.config.getoption("--write"):
        PAGE.write_text(made + heading + measured, encoding="utf-8")
        known_report = made
    assert made == known_report, "--write writes it anew: read what has changed"


def test_what_has_no_action_takes_no_post(crawl: Crawl) -> None:
    for address in PUBLIC:
        answer = crawl.ask("admin", "POST", address)
        known = address.name == "/api/" and answer.headers["Location"] == "/api/v1/"
        assert answer.status_code == 405 or known, address.name


def test_no_other_method_changes_anything(crawl: Crawl) -> None:
    before = digests()
    for address, method in itertools.product(ADDRESSES, ("PUT", "PATCH", "DELETE")):
        assert crawl.ask("admin", method, address).status_code < 500, f"{method} {address.name}"
    assert digests() == before


def test_no_page_takes_what_another_site_has_sent(crawl: Crawl) -> None:
    """Neither a form without its token, nor, in the API, what comes with a session and no token."""
    for address in GUARDED:
        browser = crawl.browser("admin", enforce_csrf_checks=True)
        answer, changed = crawl.changed_by(ANYBODY, "POST", address, browser)
        assert answer.status_code in ({401} if address.operations else {403, 405}), address.name
        assert changed == set(), address.name


@pytest.mark.parametrize("path", ["/account/", "/account/log/", "/account/password/", "/account/sign-in/"])
def test_what_is_made_for_one_person_is_kept_by_nobody(path: str, signed_in: Callable[[Role], Client]) -> None:
    for browser in (Client(), signed_in(Role.MAINTAINER)):
        answer = browser.get(path, headers={"Accept-Encoding": "gzip"})
        assert "Content-Encoding" not in answer.headers
        assert "no-store" in answer.headers["Cache-Control"]
        assert "private" in answer.headers["Cache-Control"]
        assert "Cookie" in answer.headers["Vary"]
        assert "ETag" not in answer.headers


def test_cookies_are_for_this_site_and_for_no_script(client: Client, person: Callable[[Role], User]) -> None:
    person(Role.READER)
    client.post("/account/sign-in/", {"username": "reader", "password": PASSWORD})
    client.get("/account/")
    for name in ("sessionid", "csrftoken"):
        assert client.cookies[name]["httponly"]
        assert client.cookies[name]["samesite"] == "Lax"


def test_a_refusal_is_in_the_log_only_where_somebody_is_known(client: Client) -> None:
    number = create_queued_run().pk
    client.post(f"/runs/{number}/cancel/")
    client.post(f"/api/v1/runs/{number}/cancel")
    assert not Entry.objects.exists()
