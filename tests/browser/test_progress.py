# SPDX-License-Identifier: BSD-2-Clause
"""The page of a running run, served as in production: an ASGI server and real Redis Streams."""

from __future__ import annotations

import socket

import pytest
import redis
from django.conf import settings
from django.db import connection
from django.utils import timezone
from playwright.sync_api import Page, Response, expect

from perfweb.runs import progress
from perfweb.runs.models import Run, RunState
from tests.factories import create_queued_run
from tests.servers import address_of, served, served_at

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def running_run() -> Run:
    run = create_queued_run(state=RunState.RUNNING)
    redis.Redis.from_url(settings.REDIS_URL).delete(f"run:{run.pk}")  # of a run of an earlier database
    return run


def test_the_bar_moves_and_the_end_loads_the_results(page: Page, asgi_server: str, running_run: Run) -> None:
    number = running_run.pk
    progress.publish(number, "boot", position=2, boots=12, variant="direct", topology="host-host", server="netserver")
    page.goto(f"{asgi_server}/runs/{number}/")
    expect(page.get_by_role("status")).to_contain_text("boot 3 of 12: direct, host-host, netserver")

    progress.publish(number, "eta", seconds=150, fraction=0.25)
    expect(page.get_by_role("progressbar")).to_have_js_property("value", 0.25)
    expect(page.get_by_role("status")).to_contain_text("about 3 min left")

    progress.publish(
        number, "measurement", test="tcp.rr/host-host/ipv4", variant="direct", state="ok", mean=41884.2,
        unit="transactions/s", reason="",
    )  # fmt: skip
    expect(
        page.get_by_text("tcp.rr/host-host/ipv4 on direct: 41\N{NARROW NO-BREAK SPACE}884 transactions/s")
    ).to_be_visible()
    progress.publish(
        number, "measurement", test="udp.rr/host-host/ipv4", variant="direct", state="failed", mean=None,
        unit="", reason="sample 0: netperf ended with status 1",
    )  # fmt: skip
    expect(page.get_by_text("udp.rr/host-host/ipv4 on direct: failed: sample 0")).to_be_visible()

    Run.objects.filter(pk=number).update(state=RunState.DONE, ended=timezone.now())
    progress.publish(number, "state", state="done", reason="")
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect(page.locator(".state")).to_have_text("done")


def test_a_run_that_waits_has_no_bar(page: Page, asgi_server: str, running_run: Run) -> None:
    number = running_run.pk
    page.goto(f"{asgi_server}/runs/{number}/")
    bar = page.locator("progress")
    expect(bar).to_be_visible()
    progress.publish(number, "eta", seconds=150, fraction=0.25)
    expect(page.get_by_role("status")).to_contain_text("about 3 min left")
    Run.objects.filter(pk=number).update(state=RunState.PAUSED, reason="the disk is full")
    progress.publish(number, "state", state="paused", reason="the disk is full")
    expect(bar).to_be_hidden()
    expect(page.get_by_role("status")).to_have_text("paused: the disk is full")
    page.reload()
    expect(page.get_by_role("status")).to_contain_text("paused")
    expect(bar).to_be_hidden()
    page.goto(asgi_server)
    expect(bar).to_be_hidden()
    progress.publish(number, "state", state="running", reason="")
    expect(bar).to_be_visible()


def end(number: int) -> None:
    Run.objects.filter(pk=number).update(state=RunState.DONE, ended=timezone.now())
    progress.publish(number, "state", state="done", reason="")


def test_a_page_polls_when_its_stream_is_refused(page: Page, running_run: Run) -> None:
    number, statuses = running_run.pk, dict[str, int]()

    def note(response: Response) -> None:
        statuses.setdefault(response.url.rpartition("/")[2], response.status)

    page.on("response", note)
    progress.publish(number, "boot", position=2, boots=12, variant="direct", topology="host-host", server="netserver")
    with served(connection.settings_dict["NAME"], PERFWEB_STREAMS="0") as address:
        page.goto(f"{address}/runs/{number}/")
        expect(page.get_by_role("status")).to_contain_text("boot 3 of 12", timeout=120_000)
        progress.publish(number, "eta", seconds=150, fraction=0.25)
        expect(page.get_by_role("progressbar")).to_have_js_property("value", 0.25, timeout=120_000)
        assert (statuses["events"], statuses["events?once"]) == (503, 200)
        end(number)
        expect(page.locator(".state")).to_have_text("done", timeout=120_000)


def test_a_page_goes_on_when_its_stream_breaks_off(page: Page, running_run: Run) -> None:
    """The web server is restarted; connections wait in the queue of its socket meanwhile."""
    number, database = running_run.pk, connection.settings_dict["NAME"]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        with served_at(listener, database):
            page.goto(f"{address_of(listener)}/runs/{number}/")
            progress.publish(number, "eta", seconds=150, fraction=0.25)
            expect(page.get_by_role("progressbar")).to_have_js_property("value", 0.25)
        progress.publish(number, "eta", seconds=50, fraction=0.75)
        with served_at(listener, database):
            expect(page.get_by_role("progressbar")).to_have_js_property("value", 0.75, timeout=120_000)
            end(number)
            expect(page.locator(".state")).to_have_text("done", timeout=120_000)
