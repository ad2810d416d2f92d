# SPDX-License-Identifier: BSD-2-Clause
"""What a reader chooses for all pages: colours, keys, paper."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Browser, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from perfweb.runs.models import Run
from tests.browser.test_pages import DARK_BACKGROUND, LIGHT_BACKGROUND, POINTS
from tests.factories import create_queued_run

SERIES = {"light": "rgb(42, 120, 184)", "dark": "rgb(99, 176, 238)"}


@pytest.mark.parametrize(("own", "chosen"), [("light", "dark"), ("dark", "light")])
def test_a_chosen_scheme_holds_for_graphs_and_further_pages(
    browser: Browser, live_server: LiveServer, finished_run: Run, own: str, chosen: str
) -> None:
    background = {"light": LIGHT_BACKGROUND, "dark": DARK_BACKGROUND}
    with browser.new_context(color_scheme="dark" if own == "dark" else "light") as context:
        page = context.new_page()
        page.goto(f"{live_server.url}/runs/{finished_run.pk}/")
        expect(page.locator(POINTS).first).to_have_css("fill", SERIES[own])
        page.get_by_role("button", name=f"{chosen} colours").click()
        expect(page.locator("body")).to_have_css("background-color", background[chosen])
        expect(page.locator(POINTS).first).to_have_css("fill", SERIES[chosen])
        page.goto(f"{live_server.url}/tests/")
        expect(page.locator("body")).to_have_css("background-color", background[chosen])
        page.get_by_role("button", name=f"{own} colours").click()
        expect(page.locator("body")).to_have_css("background-color", background[own])


def test_keys_move_through_rows_and_to_the_search(
    watched_page: Page, live_server: LiveServer, finished_run: Run
) -> None:
    newest = create_queued_run()
    page = watched_page
    page.goto(f"{live_server.url}/runs/")
    first, second = (page.get_by_role("link", name=str(run.pk), exact=True) for run in (newest, finished_run))
    page.keyboard.press("j")
    expect(first).to_be_focused()
    page.keyboard.press("j")
    expect(second).to_be_focused()
    page.keyboard.press("j")
    expect(second).to_be_focused()
    page.keyboard.press("k")
    expect(first).to_be_focused()
    page.keyboard.press("/")
    search = page.get_by_role("combobox", name="Search")
    expect(search).to_be_focused()
    page.keyboard.type("j/k?")
    expect(search).to_have_value("j/k?")


def test_a_name_that_is_chosen_while_typing_opens_its_page(
    watched_page: Page, live_server: LiveServer, finished_run: Run
) -> None:
    page = watched_page
    page.goto(f"{live_server.url}/runs/")
    search = page.get_by_role("combobox", name="Search")
    search.press_sequentially("UDP.rr/host-host/ipv6")
    expect(page.locator("datalist option")).to_have_count(1)
    # Headless browsers do not show the choices. This is the event of one that is chosen.
    search.evaluate(
        "(field) => { field.value = field.list.options[0].value; field.dispatchEvent(new Event('input')); }"
    )
    expect(page).to_have_url(f"{live_server.url}/tests/udp.rr/host-host/ipv6/")


def test_keys_are_listed_and_can_be_turned_off(watched_page: Page, live_server: LiveServer, finished_run: Run) -> None:
    page = watched_page
    page.goto(f"{live_server.url}/runs/")
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("the next row of a table")
    keys.get_by_label("Keys are on").uncheck()
    keys.get_by_role("button", name="Close").click()
    expect(keys).to_have_count(0)
    page.keyboard.press("j")
    expect(page.locator("body")).to_be_focused()
    page.keyboard.press("?")
    expect(keys.get_by_label("Keys are on")).not_to_be_checked()


def test_paper_is_light_and_has_nothing_to_choose(live_server: LiveServer, own_page: Page, finished_run: Run) -> None:
    page = own_page
    page.emulate_media(media="print", color_scheme="dark")
    page.goto(f"{live_server.url}/runs/{finished_run.pk}/")
    expect(page.locator("body")).to_have_css("background-color", LIGHT_BACKGROUND)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for part in ("nav.main", "form.search", "button.scheme"):
        expect(page.locator(part)).to_be_hidden()


COPIED = """button => {
    window.copied = new Promise((resolve) => {
        const observer = new MutationObserver(() => { if (button.textContent === "Copied") resolve() })
        observer.observe(button, {childList: true})
    })
}"""
"""A promise, because "Copied" is shown for a moment only."""


def copied(page: Page, button: Locator) -> str:
    """Click a button, wait until it shows that it has copied, and return what it has."""
    button.evaluate(COPIED)
    button.click()
    page.evaluate("copied")
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_a_command_can_be_copied(browser: Browser, live_server: LiveServer, finished_run: Run) -> None:
    with browser.new_context(permissions=["clipboard-read", "clipboard-write"]) as context:
        page = context.new_page()
        page.goto(f"{live_server.url}/runs/{finished_run.pk}/")
        page.get_by_text("Command", exact=True).first.click()
        copy = page.get_by_role("button", name="Copy", exact=True).first
        command = page.locator("pre.command").first.inner_text()
        assert copied(page, copy) == command
        assert copied(page, page.get_by_role("button", name="Copy link")) == page.url


def test_times_have_their_age_beside_them(watched_page: Page, live_server: LiveServer, finished_run: Run) -> None:
    Run.objects.filter(pk=finished_run.pk).update(created=timezone.now() - timedelta(hours=3, minutes=5))
    watched_page.goto(f"{live_server.url}/runs/")
    time = watched_page.locator("table time").first
    expect(time).to_have_attribute("title", "3h ago")
    expect(watched_page.locator("table time + small").first).to_have_text(" 3h ago")
