# SPDX-License-Identifier: BSD-2-Clause
"""Debian's Chromium, driven by Playwright against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, Request, expect
from pytest_django.live_server_helper import LiveServer

from perfweb.runs.models import Run
from tests.browser.chromium import CHROMIUM, CHROMIUM_FLAGS
from tests.factories import create_run

# A wait ends as soon as the expected element is there; a busy machine may need long.
expect.set_options(timeout=30_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of this directory last: from the first browser on an event loop runs until the end of the session,
    and asynchronous tests could not start theirs.
    """
    here = Path(__file__).parent
    items.sort(key=lambda item: here in item.path.parents)


@pytest.fixture(scope="session", autouse=True)
def queries_beside_the_event_loop() -> Iterator[None]:
    """Allow database queries although the loop of Playwright's synchronous interface runs in the same thread: while a
    test is in a query, the loop does nothing.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, object]) -> dict[str, object]:
    return {**browser_type_launch_args, "executable_path": CHROMIUM, "args": CHROMIUM_FLAGS}


@pytest.fixture
def finished_run(live_server: LiveServer) -> Run:
    """A run of the demonstration plan with a failed measurement in it."""
    return create_run(failed_test="udp.rr/host-host/ipv4")


@pytest.fixture
def own_page(context: BrowserContext, live_server: LiveServer) -> Iterator[Page]:
    """A page that fails its test when it requests anything from another site."""
    elsewhere: list[str] = []
    here = urlsplit(live_server.url).netloc

    def watch_request(request: Request) -> None:
        if urlsplit(request.url).netloc not in {here, ""}:
            elsewhere.append(request.url)

    page = context.new_page()
    page.on("request", watch_request)
    yield page
    assert elsewhere == []


@pytest.fixture
def watched_page(own_page: Page) -> Iterator[Page]:
    """A page that fails its test when it writes an error to its console, too."""
    errors: list[str] = []
    own_page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    own_page.on("pageerror", lambda error: errors.append(str(error)))
    yield own_page
    assert errors == []
