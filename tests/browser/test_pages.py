# SPDX-License-Identifier: BSD-2-Clause
"""The pages in a real browser: graphs drawn, nothing fetched from elsewhere, usable without JavaScript and on a
telephone.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from perfweb.runs.models import Run, Sample
from tests.factories import create_queued_run

POINTS = ".scatterlayer .point"
TESTS_WITH_BOTH = 5  # of the six tests of the finished run, one failed on one variant
LIGHT_BACKGROUND, DARK_BACKGROUND = "rgb(255, 255, 255)", "rgb(20, 23, 26)"


def address(server: LiveServer, run: Run, page: str) -> str:
    paths = {"list": "/runs/", "run": f"/runs/{run.pk}/", "comparison": f"/runs/{run.pk}/compare/deferred..direct/"}
    return server.url + paths[page]


def draw_all(page: Page) -> None:
    """Bring every graph into view once, so that it is drawn."""
    for graph in page.locator("[data-graph]").all():
        graph.scroll_into_view_if_needed()
        expect(graph.locator(".main-svg").first).to_be_attached()


def test_from_the_list_to_the_run_to_the_comparison(
    watched_page: Page, live_server: LiveServer, finished_run: Run
) -> None:
    page = watched_page
    page.goto(live_server.url)
    page.get_by_role("link", name=finished_run.plan.title).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"Run {finished_run.pk}")
    draw_all(page)
    of_tests = page.locator('[data-graph^="test-"]').locator(POINTS)
    expect(of_tests).to_have_count(Sample.objects.primary().count())

    page.get_by_role("link", name="direct against deferred").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("direct against deferred")
    expect(page.locator('[data-graph="intervals"]').locator(POINTS)).to_have_count(TESTS_WITH_BOTH)
    expect(page.locator(".errorbars path.xerror")).to_have_count(TESTS_WITH_BOTH)
    expect(page.get_by_text("Difference at 95.0% confidence").first).to_be_visible()

    page.get_by_role("link", name="99 %", exact=True).click()
    expect(page.get_by_text("Difference at 99.0% confidence").first).to_be_visible()


def test_graphs_have_their_styles_and_offer_no_upload(
    watched_page: Page, live_server: LiveServer, finished_run: Run
) -> None:
    page = watched_page
    page.goto(address(live_server, finished_run, "run"))
    expect(page.locator(".main-svg").first).to_have_css("position", "absolute")
    buttons = page.locator(".modebar-btn").evaluate_all(
        "buttons => buttons.map(b => b.dataset.title || b.dataset.attr)"
    )
    assert buttons
    assert not [name for name in buttons if "cloud" in str(name).lower() or "share" in str(name).lower()]


def test_the_keyboard_reaches_content_and_links(watched_page: Page, live_server: LiveServer, finished_run: Run) -> None:
    page = watched_page
    page.goto(address(live_server, finished_run, "list"))
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    for field in ("Testbed", "Plan", "State"):
        expect(page.get_by_label(field)).to_be_focused()
        page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Show")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("group", name="Runs")).to_be_focused()  # so that the arrow keys scroll a wide table
    for term in page.locator("thead a").all():  # links to the glossary
        page.keyboard.press("Tab")
        expect(term).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name=str(finished_run.pk), exact=True)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"Run {finished_run.pk}")


@pytest.mark.parametrize("name", ["list", "run", "comparison"])
def test_everything_is_there_without_javascript(
    browser: Browser, live_server: LiveServer, finished_run: Run, name: str
) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(address(live_server, finished_run, name))
        expect(page.get_by_text("failed").locator("visible=true").first).to_be_visible()
        if name != "list":
            expect(page.get_by_text("tcp.stream/host-router-host/ipv4").first).to_be_visible()
            expect(page.get_by_role("cell", name="14.025").first).to_be_visible()
            expect(page.locator(".plot > svg .series-1, .plot > svg .faster").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_and_graphs_follow_the_colour_scheme(
    browser: Browser, live_server: LiveServer, finished_run: Run, scheme: str
) -> None:
    with browser.new_context(color_scheme="dark" if scheme == "dark" else "light") as context:
        page = context.new_page()
        page.goto(address(live_server, finished_run, "run"))
        background = DARK_BACKGROUND if scheme == "dark" else LIGHT_BACKGROUND
        expect(page.locator("body")).to_have_css("background-color", background)
        colour = "rgb(99, 176, 238)" if scheme == "dark" else "rgb(42, 120, 184)"
        expect(page.locator(POINTS).first).to_have_css("fill", colour)


@pytest.mark.parametrize("name", ["list", "run", "comparison"])
def test_no_table_scrolls_on_a_desktop(own_page: Page, live_server: LiveServer, finished_run: Run, name: str) -> None:
    own_page.set_viewport_size({"width": 1280, "height": 900})
    own_page.goto(address(live_server, finished_run, name))
    own_page.evaluate("for (const closed of document.querySelectorAll('details')) closed.open = true")
    boxes = own_page.locator(".scroll").evaluate_all(
        "boxes => boxes.map(box => [box.ariaLabel, box.scrollWidth - box.clientWidth])"
    )
    assert boxes
    assert [(label, excess) for label, excess in boxes if excess > 0] == []


def test_an_artefact_runs_no_script(watched_page: Page, live_server: LiveServer, finished_run: Run) -> None:
    watched_page.goto(address(live_server, finished_run, "run"))
    watched_page.get_by_role("link", name="tool output").first.click()
    expect(watched_page.locator("body")).to_contain_text("are you sure there is a netserver listening?")
    assert watched_page.evaluate("document.contentType") == "text/plain"


def test_the_page_of_a_run_that_has_not_ended_states_it(browser: Browser, live_server: LiveServer) -> None:
    queued = create_queued_run()
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{live_server.url}/runs/{queued.pk}/")
        expect(page.get_by_role("status")).to_be_visible()
        expect(page.get_by_role("link", name="Reload")).to_be_visible()


def test_a_telephone_shows_verdicts_without_scrolling(
    browser: Browser, live_server: LiveServer, finished_run: Run
) -> None:
    with browser.new_context(viewport={"width": 360, "height": 740}) as context:
        page = context.new_page()
        page.goto(address(live_server, finished_run, "comparison"))
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        for verdict in page.locator("td.verdict").all():
            box = verdict.bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= 360


@pytest.mark.parametrize("name", ["run", "comparison"])
def test_graphs_fit_a_telephone_without_scripts(
    browser: Browser, live_server: LiveServer, finished_run: Run, name: str
) -> None:
    with browser.new_context(viewport={"width": 360, "height": 740}, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(address(live_server, finished_run, name))
        graphs = [box for box in (graph.bounding_box() for graph in page.locator(".plot > svg").all()) if box]
        assert graphs
        assert max(box["x"] + box["width"] for box in graphs) <= 360
