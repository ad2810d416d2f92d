# SPDX-License-Identifier: BSD-2-Clause
"""Definitions of terms, by keyboard and without JavaScript; the documentation from the search."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from perfweb.manual.glossary import terms
from perfweb.runs.models import Run


@pytest.mark.django_db(transaction=True)
def test_a_definition_is_shown_by_keyboard_without_javascript(
    browser: Browser, live_server: LiveServer, finished_run: Run
) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(f"{live_server.url}/runs/")
    link = page.locator(".term > a").first
    definition = page.locator(f"#{link.get_attribute('aria-describedby')}")
    expect(definition).to_be_hidden()
    link.focus()
    expect(definition).to_be_visible()
    expect(definition).to_have_text(terms()[link.inner_text().lower()].definition)
    page.keyboard.press("Enter")
    expect(page.locator("li:target strong")).to_be_in_viewport()
    page.close()


@pytest.mark.django_db(transaction=True)
def test_the_search_leads_to_a_section_of_a_document(own_page: Page, live_server: LiveServer) -> None:
    own_page.goto(f"{live_server.url}/docs/")
    own_page.get_by_role("combobox", name="Search").fill("void samples hypervisor")
    own_page.keyboard.press("Enter")
    own_page.locator("section[aria-label=Documentation] a").first.click()
    expect(own_page.locator("article.document :target")).to_be_in_viewport()
