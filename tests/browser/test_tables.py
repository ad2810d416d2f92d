# SPDX-License-Identifier: BSD-2-Clause
"""Tables that are sorted and filtered in place."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from pytest_django.live_server_helper import LiveServer

from perfweb.runs.models import Run
from perfweb.verdicts.numbers import THIN_SPACE
from tests.factories import create_queued_run

pytestmark = pytest.mark.django_db(transaction=True)
QUEUED = 12
ORDERED = [
    "▼ slower {minus}6.84 %", "▲ {minus}0.5 %", "▲ faster +8.04 %", "16 min 0 s", "{times}1{thin}153", "2 h 40 min",
    "42{thin}024 0.42 %", "900 Mbit/s", "1.2 Gbit/s", "run 9", "run 12",
]  # fmt: skip
"""Cells in the order of their meaning, as pages write them."""


def column(page: Page, number: int) -> list[str]:
    """The cells of a column that are shown, by rows."""
    return page.locator(f"main tbody tr:visible > :nth-child({number})").all_inner_texts()


def head(page: Page, name: str) -> Locator:
    return page.get_by_role("columnheader", name=name)


def test_rows_are_sorted_and_filtered_in_place(watched_page: Page, live_server: LiveServer, finished_run: Run) -> None:
    newest = [create_queued_run().pk for _ in range(QUEUED)][::-1]
    page = watched_page
    page.goto(f"{live_server.url}/runs/")
    listed = [str(number) for number in (*newest, finished_run.pk)]
    assert [text.strip() for text in column(page, 1)] == listed
    page.get_by_role("button", name="Sort by Run").click()
    expect(head(page, "Run").first).to_have_attribute("aria-sort", "ascending")
    assert [text.strip() for text in column(page, 1)] == listed[::-1]
    page.get_by_role("button", name="Sort by Run").press("Enter")
    expect(head(page, "Run").first).to_have_attribute("aria-sort", "descending")
    assert [text.strip() for text in column(page, 1)] == listed
    page.get_by_role("searchbox", name="Filter rows: Runs").fill("DONE")
    expect(page.get_by_text(f"1 of {QUEUED + 1}")).to_be_visible()
    assert [text.strip() for text in column(page, 1)] == [str(finished_run.pk)]
    page.get_by_role("searchbox", name="Filter rows: Runs").fill("")
    expect(page.locator("main tbody tr:visible")).to_have_count(QUEUED + 1)


def test_cells_are_sorted_by_what_they_mean(watched_page: Page, live_server: LiveServer) -> None:
    """Numbers with their prefixes, changes, durations and names with numbers; cells without a value come last."""
    signs = {"minus": "\N{MINUS SIGN}", "times": "\N{MULTIPLICATION SIGN}", "thin": THIN_SPACE}
    ordered = [text.format(**signs) for text in ORDERED]
    nothing = "\N{EN DASH}"
    mixed = [*ordered[::2], nothing, *ordered[1::2]]
    for _ in mixed:
        create_queued_run()
    page = watched_page
    page.goto(f"{live_server.url}/runs/")
    page.evaluate(
        """mixed => {
        document.querySelectorAll("main tbody tr").forEach((row, at) => { row.cells[1].textContent = mixed[at]; });
    }""",
        mixed,
    )
    for wanted in ([*ordered, nothing], [*ordered[::-1], nothing]):
        page.get_by_role("button", name="Sort by Plan").click()
        assert column(page, 2) == wanted


def test_a_page_without_javascript_has_no_dead_buttons(
    browser: Browser, live_server: LiveServer, finished_run: Run
) -> None:
    for _ in range(QUEUED):
        create_queued_run()
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{live_server.url}/runs/")
        expect(page.locator("main tbody tr")).to_have_count(QUEUED + 1)
        expect(page.locator("button.sort, input.filter")).to_have_count(0)
