# SPDX-License-Identifier: BSD-2-Clause
"""Graphs with and without JavaScript: series can be hidden, points lead to their runs, and images can be saved."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from perfweb.runs.models import Run
from tests.factories import DEMO_TESTS, create_history

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
def test_a_point_of_the_timeline_opens_its_run_and_a_frame_zooms(watched_page: Page, live_server: LiveServer) -> None:
    runs = create_history(6, DEMO_TESTS[:1])
    page = watched_page
    page.goto(f"{live_server.url}/tests/{DEMO_TESTS[0]}/")
    points = page.locator(".scatterlayer .point")
    expect(points).to_have_count(12)
    with page.expect_response(lambda answer: "from=" in answer.url):
        part = {"xaxis.range[0]": "2026-11-17", "xaxis.range[1]": "2026-11-22"}
        page.evaluate("part => Plotly.relayout(document.querySelector('.plot'), part)", part)
    expect(points).to_have_count(8)
    points.first.click(force=True)
    expect(page.get_by_role("heading", level=1)).to_contain_text(f"Run {runs[2].pk}")
