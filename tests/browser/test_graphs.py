# SPDX-License-Identifier: BSD-2-Clause
"""Graphs with and without JavaScript: series can be hidden, points lead to their runs, and images can be saved."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from perfweb.runs.models import Run
from tests.factories import DEMO_TESTS, create_history, create_run

INTERVALS = '[data-graph="intervals"]'
LABELS_AND_LINES = """([graph, label, line, bar]) => {
  const box = (element) => element.getBoundingClientRect();
  const all = (selector) => [...document.querySelectorAll(`${graph} ${selector}`)];
  const lines = all(line);
  const bars = all(bar).map(box);
  const sides = bars.map((bar) => [bar.left, bar.right]).flat();
  const paint = (text) => [getComputedStyle(text).paintOrder.split(" ")[0], getComputedStyle(text).stroke];
  return {
    background: getComputedStyle(document.body).backgroundColor,
    share: (Math.max(...sides) - Math.min(...sides)) / box(document.querySelector(`${graph} .plot`)).width,
    lines: lines.length,
    labels: all(label).map((text) => ({
      crossed: lines.some((line) => box(line).left < box(text).right && box(line).right > box(text).left),
      behind: lines.every((line) => line.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING),
      paint: paint(text),
    })),
  };
}"""
"""Where the labels of the intervals are, and how they are painted; `share` is the part of the width that the intervals
take.
"""
GRAPH = '[data-graph="test-tcp-rr-host-host-ipv4"]'


def test_series_can_be_hidden_without_javascript(browser: Browser, live_server: LiveServer, finished_run: Run) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{live_server.url}/runs/{finished_run.pk}/")
        graph = page.locator(GRAPH)
        expect(graph.locator(".trace-1").first).to_be_visible()
        graph.get_by_label("direct").uncheck()
        expect(graph.locator(".trace-1").first).to_be_hidden()
        expect(graph.locator(".trace-0").first).to_be_visible()


def test_series_can_be_hidden_in_the_interactive_graph(
    watched_page: Page, live_server: LiveServer, finished_run: Run
) -> None:
    watched_page.goto(f"{live_server.url}/runs/{finished_run.pk}/")
    graph = watched_page.locator(GRAPH)
    graph.scroll_into_view_if_needed()
    traces = graph.locator(".scatterlayer .trace")
    expect(traces).to_have_count(4)
    graph.get_by_label("direct").uncheck()
    expect(traces).to_have_count(2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("scripts", [True, False])
def test_labels_of_wide_intervals_cover_the_lines_on_a_telephone(
    browser: Browser, live_server: LiveServer, scheme: Any, scripts: bool
) -> None:
    run = create_run(boots=3, samples=6, noise=0.25, seed=4)
    size = {"width": 390, "height": 844}
    with browser.new_context(color_scheme=scheme, java_script_enabled=scripts, viewport=size) as context:  # type: ignore[arg-type]
        page = context.new_page()
        page.goto(f"{live_server.url}/runs/{run.pk}/compare/deferred..direct/")
        page.locator(INTERVALS).scroll_into_view_if_needed()
        if scripts:
            expect(page.locator(f"{INTERVALS} .errorbars path.xerror")).to_have_count(len(DEMO_TESTS))
        else:
            expect(page.locator(f"{INTERVALS} .plot > svg")).to_be_visible()
        parts = (
            (".annotation-text", ".zl, .shapelayer path", ".xerror")
            if scripts
            else (".over", ".zero, .across", ".not-enough-data path")
        )
        found = page.evaluate(LABELS_AND_LINES, [INTERVALS, *parts])
    assert (found["lines"], len(found["labels"])) == (3, len(DEMO_TESTS))
    assert found["share"] > 0.75
    assert any(label["crossed"] for label in found["labels"])
    for label in found["labels"]:
        assert label["behind"]
        assert label["paint"] == ["stroke", found["background"]]


def test_a_picture_can_be_kept(browser: Browser, live_server: LiveServer, finished_run: Run) -> None:
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{live_server.url}/runs/{finished_run.pk}/")
        page.locator(GRAPH).get_by_role("link", name="SVG").click()
        expect(page.locator("svg g > path").first).to_be_visible()
        expect(page.locator("svg > title")).to_contain_text("Every sample of tcp.rr/host-host/ipv4")


def test_a_picture_can_be_kept_as_png(watched_page: Page, live_server: LiveServer, finished_run: Run) -> None:
    watched_page.goto(f"{live_server.url}/runs/{finished_run.pk}/")
    with watched_page.expect_download() as download:
        watched_page.locator(GRAPH).get_by_role("button", name="PNG").click()
    assert download.value.suggested_filename == "test-tcp-rr-host-host-ipv4.png"
    content = download.value.path().read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20]) == 2 * 580


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("by", "first", "last"), [("commit", 1.5, 5), ("time", "2026-11-17", "2026-11-22"), ("run", 2.5, 7)]
)
def test_a_frame_zooms_and_is_kept_in_the_address(
    watched_page: Page, live_server: LiveServer, by: str, first: float | str, last: float | str
) -> None:
    runs = create_history(6, DEMO_TESTS[:1])
    if by == "run":
        first, last = runs[2].pk, runs[-1].pk + 0.5
    page = watched_page
    page.goto(f"{live_server.url}/tests/{DEMO_TESTS[0]}/?by={by}&newest=50")
    points = page.locator(".scatterlayer .point")
    expect(points).to_have_count(12)
    with page.expect_response(lambda answer: "from=" in answer.url):
        part = {"xaxis.range[0]": first, "xaxis.range[1]": last}
        page.evaluate("part => Plotly.relayout(document.querySelector('.plot'), part)", part)
    expect(points).to_have_count(8)
    assert "newest" not in page.url
    page.reload()
    expect(points).to_have_count(8)
    with page.expect_response(lambda answer: "graphs=json" in answer.url):
        page.evaluate("Plotly.relayout(document.querySelector('.plot'), {'xaxis.autorange': true})")
    expect(points).to_have_count(12)
    assert "from" not in page.url


@pytest.mark.django_db(transaction=True)
def test_two_clicked_points_can_be_compared(watched_page: Page, live_server: LiveServer) -> None:
    runs = create_history(6, DEMO_TESTS[:1])
    page = watched_page
    # Plotly takes two clicks within 0.3 s for a double click, wherever they are.
    page.add_init_script(
        """Object.defineProperty(window, "Plotly", { configurable: true, set(library) {
            Object.defineProperty(window, "Plotly", { value: library });
            library.setPlotConfig({ doubleClickDelay: 0 });
        } })"""
    )
    page.goto(f"{live_server.url}/tests/{DEMO_TESTS[0]}/")
    points = page.locator(".scatterlayer .point")
    expect(points).to_have_count(12)

    def click(number: int) -> None:
        """A click means the point whose label is shown, which follows the pointer a moment later."""
        points.nth(number).hover(force=True)
        expect(page.locator(".hovertext")).to_contain_text(f"g000000{number}")
        points.nth(number).click(force=True)

    click(1)
    picked = page.get_by_role("status")
    expect(picked).to_contain_text("Click a second point to compare")
    expect(picked.get_by_role("link", name=f"run {runs[1].pk}, deferred")).to_have_attribute(
        "href", f"/runs/{runs[1].pk}/"
    )
    click(1)  # the same one again is no pair
    expect(picked.get_by_role("link", name="Compare these")).to_have_count(0)
    click(4)
    expect(page.locator(".annotation-text").filter(has_text="B")).to_have_count(1)
    picked.get_by_role("link", name="Compare these").click()
    expect(page).to_have_url(f"{live_server.url}/compare/?base={runs[1].pk}%2Fdeferred&with={runs[4].pk}%2Fdeferred")
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"{runs[4].pk}/deferred")


def test_the_tab_key_reaches_a_graph_once(watched_page: Page, live_server: LiveServer, finished_run: Run) -> None:
    page = watched_page
    page.goto(f"{live_server.url}/runs/{finished_run.pk}/")
    graph = page.locator(GRAPH)
    graph.scroll_into_view_if_needed()
    expect(graph.locator(".modebar-btn").first).to_be_attached()
    plot = graph.locator(".plot")
    plot.focus()
    page.keyboard.press("ArrowRight")
    expect(graph.get_by_role("button", name="Download plot")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(graph.get_by_role("button", name="Zoom", exact=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(plot).to_be_focused()
    page.keyboard.press("Tab")
    expect(graph.get_by_role("link", name="SVG")).to_be_focused()
