# SPDX-License-Identifier: BSD-2-Clause
"""Rules for every page: axe-core finds no violation, nothing comes from another site, no horizontal scrolling."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from pytest_django.live_server_helper import LiveServer

from perfweb.accounts.models import Role, User
from perfweb.lab.models import OutageKind
from perfweb.lab.outages import begin, checked
from perfweb.reports.pages.runs import MOST_CELLS
from perfweb.runs.catalogue import TESTS
from perfweb.runs.models import RunState
from perfweb.runs.summaries import summarise
from perfweb.submissions import states
from perfweb.submissions.models import SubmissionState
from tests.browser.sessions import signed_in
from tests.factories import (
    DEMO_TESTS,
    create_alert,
    create_history,
    create_knob_run,
    create_queued_run,
    create_run,
    create_submission,
    create_watched_run,
)

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
TEST = DEMO_TESTS[0]
PAGES = {
    "home": "/",
    "runs": "/runs/",
    "run": "/runs/{run}/",
    "watched": "/runs/{watched}/",
    "running": "/runs/{running}/",
    "boots": "/runs/{run}/boots/",
    "alerts": "/alerts/",
    "alert": "/alerts/{alert}/",
    "tracking": "/tracking/",
    "branch": "/tracking/head/",
    "knobs": "/runs/{knobs}/matrix/",
    "choice": "/compare/?base=999/none&with=1/x",
    "pair": "/runs/{run}/compare/deferred..direct/",
    "several": "/compare/?base={run}/deferred&with={run}/direct&with={other}/direct",
    "tests": "/tests/",
    "topic": "/topics/tcp/",
    "reproductions": "/reproductions/",
    "timeline": f"/tests/{TEST}/",
    "testbeds": "/testbeds/",
    "testbed": "/testbeds/demo/",
    "search": "/search/?q=deferred",
    "patches": "/submissions/",
    "patch": "/submissions/{submission}/",
    "api": "/api/v1/",
    "missing": "/runs/999999/",
    "sign-in": "/account/sign-in/",
    "docs": "/docs/",
    "document": "/docs/explanation/statistics/",
    "document-with-images": "/docs/howto/patches/",
    "glossary": "/docs/glossary/",
}


@pytest.fixture
def keys(live_server: LiveServer) -> dict[str, int]:
    """Runs of all kinds, by their names in the addresses of the pages."""
    history = create_history(4, [TEST])
    run, knobs = create_run(failed_test="udp.rr/host-host/ipv4"), create_knob_run()
    summarise([run.pk, knobs.pk])
    testbed = create_queued_run().testbed
    begin(testbed, OutageKind.MAINTENANCE, "new cables, and a card that has been waiting for them for weeks", "ann")
    facts = {"free_mb": {"/var/tmp/perfweb": 12345, "/var/tmp/perfweb/builds": 12345}, "load": 0.1}  # noqa: S108
    checked(testbed, "run 3", {"demo-dut": facts, "demo-left": facts}, [])
    running = create_queued_run(state=RunState.RUNNING)
    submission = create_submission(reason="It is not built before a maintainer approves it.")
    states.received(submission, "author")
    submission.runs.add(run)
    return {
        "alert": create_alert(history).number,
        "submission": submission.pk,
        "run": run.pk,
        "other": history[-1].pk,
        "knobs": knobs.pk,
        "watched": create_watched_run(level=lambda share: 1.05 if share > 0.5 else 1.0, gain=1.0, order="aaaabbbb").pk,
        "running": running.pk,
    }


def violations(page: Page) -> list[str]:
    """Return what axe-core (https://github.com/dequelabs/axe-core) finds wrong with the current page."""
    result: dict[str, Any] = page.evaluate("axe.run({resultTypes: ['violations']})")
    return [f"{rule['id']}: {node['html'][:200]}" for rule in result["violations"] for node in rule["nodes"]]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", PAGES)
def test_page_is_accessible_and_fits_a_telephone(
    own_page: Page, live_server: LiveServer, keys: dict[str, int], name: str
) -> None:
    accessible_and_fits(own_page, live_server.url + PAGES[name].format(**keys))


@pytest.mark.django_db(transaction=True)
def test_pages_of_patches_for_a_maintainer(own_page: Page, live_server: LiveServer) -> None:
    signed_in(own_page, live_server, User.objects.create_user("ann", role=Role.MAINTAINER))
    accessible_and_fits(own_page, f"{live_server.url}/submissions/new/")
    for state in (SubmissionState.WAITING, SubmissionState.APPROVED):
        accessible_and_fits(own_page, f"{live_server.url}/submissions/{create_submission(state).pk}/actions/")
    accessible_and_fits(own_page, f"{live_server.url}/runs/{create_run(tests=[TEST]).pk}/again/")


@pytest.mark.django_db(transaction=True)
def test_page_of_very_many_tests_is_accessible_and_fits_a_telephone(own_page: Page, live_server: LiveServer) -> None:
    tests = list(TESTS)[: 1 + MOST_CELLS // 2]
    run = create_run(tests=tests, samples=4, discard=0)
    summarise([run.pk])
    accessible_and_fits(own_page, f"{live_server.url}/runs/{run.pk}/")
    picture = own_page.locator("img").first
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("complete", value=True)
    assert picture.evaluate("element => element.naturalWidth") > 0


def accessible_and_fits(page: Page, address: str) -> None:
    page.goto(address)
    if page.locator("[data-graph]").count():
        page.locator("[data-graph]").first.scroll_into_view_if_needed()
        expect(page.locator(".main-svg").first).to_be_attached()
    page.evaluate(AXE)
    assert violations(page) == []
    page.emulate_media(color_scheme="dark")
    assert violations(page) == []
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert violations(page) == []
