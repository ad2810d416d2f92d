# SPDX-License-Identifier: BSD-2-Clause
"""Signing in with the keyboard, and the pages of an account."""

from __future__ import annotations

import html
import re

import pytest
import urllib3
from playwright.sync_api import Page, Route, expect
from pytest_django.live_server_helper import LiveServer

from perfweb.accounts.models import Role, User
from perfweb.accounts.tokens import PREFIX
from tests.browser.test_every_page import accessible_and_fits
from tests.factories import create_queued_run
from tests.unit.accounts.provider import Identities
from tests.unit.accounts.test_oauth import there

__all__ = ["there"]
PASSWORD = "correct horse battery staple"


def sign_in(page: Page, site: str, wanted: str) -> None:
    """Request a page, and get to it after signing in without a mouse."""
    page.goto(site + wanted)
    expect(page.get_by_label("Username")).to_be_focused()
    page.keyboard.type("ann")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page).to_have_url(site + wanted)


@pytest.mark.django_db(transaction=True)
def test_from_signing_in_to_a_token_and_out(watched_page: Page, live_server: LiveServer) -> None:
    User.objects.create_user("ann", password=PASSWORD, role=Role.MAINTAINER)
    page = watched_page
    page.goto(live_server.url)
    sign_in(page, live_server.url, "/account/")
    expect(page.get_by_role("heading", level=1)).to_have_text("ann maintainer")
    page.get_by_label("Name").fill("laptop")
    page.get_by_label("Scope:", exact=True).select_option("submit")
    page.get_by_role("button", name="Create token").click()
    expect(page.get_by_role("status")).to_contain_text(re.compile(rf"{PREFIX}[\w-]{{43}}"))
    page.get_by_role("button", name="Revoke laptop").click()
    expect(page.get_by_role("row", name="laptop")).to_contain_text("revoked")
    page.get_by_role("link", name="Audit log").click()
    expect(page.get_by_role("row", name="make token")).to_contain_text("submit, until")
    page.get_by_role("link", name="ann: your account").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(f"{live_server.url}/")


@pytest.mark.django_db(transaction=True)
def test_every_page_names_who_is_signed_in(watched_page: Page, live_server: LiveServer) -> None:
    """Also a page that is the same for all readers; and signing in leads back to it."""
    User.objects.create_user("ann", password=PASSWORD, role=Role.MAINTAINER)
    page, wanted = watched_page, f"{live_server.url}/runs/?state=done"
    page.goto(wanted)
    page.get_by_role("link", name="sign in").click()
    page.get_by_label("Username").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page).to_have_url(wanted)
    page.get_by_role("link", name="ann: your account").click()
    page.context.clear_cookies(name="sessionid")  # as at the end of the session, of which the browser learns later
    page.goto(wanted)
    page.get_by_role("link", name="ann: your account").click()
    expect(page.get_by_role("link", name="sign in")).to_be_visible()
    page.goto(wanted)
    expect(page.get_by_role("link", name="sign in")).to_be_visible()


@pytest.mark.django_db(transaction=True)
def test_signing_in_elsewhere_and_back(page: Page, live_server: LiveServer, there: Identities) -> None:
    """A browser enforces policies of cookies and forms that Django's client does not know. The provider is another
    site, because its address is a number and that of the site a name.
    """

    def ask(route: Route) -> None:
        back = urllib3.request("GET", route.request.url, redirect=False).headers["Location"]
        route.fulfill(content_type="text/html", body=f'<a href="{html.escape(back)}">Go back</a>')

    site = live_server.url
    page.route(f"{there.url}/**", ask)
    page.goto(f"{site}/account/sign-in/?next=/runs/")
    page.get_by_role("button", name="Example University").click()
    page.get_by_role("link", name="Go back").click()
    expect(page).to_have_url(f"{site}/runs/")
    page.goto(f"{site}/account/")
    expect(page.get_by_role("heading", level=1)).to_have_text("ann@oidc reader")
    there.denies = True
    page.get_by_role("button", name=re.compile("GitHub")).click()
    page.get_by_role("link", name="Go back").click()
    expect(page.get_by_role("main")).to_contain_text("refused the sign-in")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "path",
    [
        "/account/",
        "/account/log/",
        "/account/mine/",
        "/account/mine/address/",
        "/account/mine/webhook/",
        "/account/password/",
        "/alerts/watch/?test=tcp.rr/host-host/ipv4",
        "/runs/{run}/cancel/",
    ],
)
def test_pages_of_an_account_are_accessible_and_fit_a_telephone(
    own_page: Page, live_server: LiveServer, path: str
) -> None:
    User.objects.create_user("ann", password=PASSWORD, role=Role.MAINTAINER)
    wanted = path.format(run=create_queued_run().pk)
    sign_in(own_page, live_server.url, wanted)
    accessible_and_fits(own_page, live_server.url + wanted)
