# SPDX-License-Identifier: BSD-2-Clause
"""A user's session in a browser, without the form for signing in."""

from __future__ import annotations

from django.test import Client
from playwright.sync_api import Page
from pytest_django.live_server_helper import LiveServer

from perfweb.accounts.models import User


def signed_in(page: Page, server: LiveServer, user: User) -> None:
    """Give the browser a session of the user."""
    client = Client()
    client.force_login(user)
    cookie = {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": server.url}
    page.context.add_cookies([cookie])  # type: ignore[list-item]
