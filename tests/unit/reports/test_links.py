# SPDX-License-Identifier: BSD-2-Clause
"""Every link of every page leads to a page: a crawl from the home page, over runs in all states and of all kinds."""

from __future__ import annotations

import re
from collections import Counter, deque
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urljoin, urlsplit

import pytest
from django.core.management import call_command
from django.http import HttpResponseBase
from django.test import Client

from perfweb.runs.models import BootState, Run, RunState
from perfweb.runs.summaries import summarise
from perfweb.submissions import states
from perfweb.submissions.models import SubmissionState
from perfweb.tracking.models import Alert, AlertState, TrackedBranch, TrackedCommit
from tests.factories import (
    DEMO_TESTS,
    START,
    create_build,
    create_calibrated,
    create_history,
    create_knob_run,
    create_queued_run,
    create_run,
    create_submission,
    create_testbed,
    create_watched_run,
)

MOST_OF_A_SHAPE = 6
"""Addresses that differ in numbers, variants and values only and are all requested; a page of a run has hundreds."""

_LINK = re.compile(r"""(?:href|src|action)="([^"]*)\"""")


@pytest.fixture
def everything(db: None, tmp_path: Path) -> None:
    """Runs in every state, with failed, void, partial and no results, of several machines, imported ones, patches, and
    a tracked branch.
    """
    history = create_history(5, DEMO_TESTS[:2])
    runs = [
        *history,
        create_run(failed_test=DEMO_TESTS[1]),
        create_run(tests=DEMO_TESTS[:1], boots=1, samples=1),
        create_knob_run(),
        create_watched_run(),
        create_calibrated(),
    ]
    other = create_run(tests=DEMO_TESTS[:1], kernel="6.9")
    Run.objects.filter(pk=other.pk).update(testbed=create_testbed("other"))
    broken = create_run(tests=DEMO_TESTS[:1])
    for boot in broken.boots.all():
        boot.measurements.all().delete()
    broken.boots.update(state=BootState.CRASHED, error="it crashed")
    single = create_run(tests=DEMO_TESTS[:1])
    single.variants.filter(name="direct").delete()
    for state in RunState:
        create_queued_run(state=state)
        partial = create_run(tests=DEMO_TESTS[:2], build=create_build("partial", "v0.2 +dirty/x?"))
        Run.objects.filter(pk=partial.pk).update(state=state)
    summarise([run.pk for run in [*runs, other, broken, single]])
    _import(tmp_path)
    for submitted in SubmissionState:
        submission = create_submission(submitted)
        states.received(submission, "author")
        submission.runs.add(runs[0])
    _track(history)


def _import(folder: Path) -> None:
    for number, test in enumerate(
        ("tcp.rr/host-host/ipv4", "disk.read/a_b", "odd/host-router-host/ipv6", "iperf3.udp.1/x/ipv4")
    ):
        table = folder / f"table{number}.csv"
        table.write_text("variant,value\na,5\na,6\na,7\nb,5\nb,6\nb,7\n", encoding="utf-8")
        call_command("import", "csv", table, test=test, unit="transactions/s", origin="elsewhere", verbosity=0)


def _track(history: list[Run]) -> None:
    branch = TrackedBranch.objects.create(name="head", plan="", testbed=history[0].testbed, since="0" * 40)
    commits = []
    for place, run in enumerate(history, start=1):
        commit = TrackedCommit.objects.create(
            branch=branch, position=place, sha=f"{place:040x}", subject="net: a <b> & c", author="Ann", committed=START
        )
        commit.runs.add(run)
        commits.append(commit)
    for state in AlertState:
        alert = Alert.objects.create(branch=branch, since=commits[0], until=commits[2], state=state)
        alert.movements.create(variant="direct", test=DEMO_TESTS[0], better=False, suspected=-5.0)


def links(page: str, html: str) -> set[str]:
    """The addresses on this site that a page names, without fragments."""
    found = set()
    for link in _LINK.findall(html):
        target = urlsplit(urljoin(f"http://testserver{page}", unescape(link)))
        if target.scheme == "http" and target.netloc == "testserver" and not target.path.startswith("/static/"):
            found.add(target._replace(scheme="", netloc="", fragment="").geturl())
    return found


def shape(address: str) -> str:
    """An address without what distinguishes its like: numbers, the names of two variants, and the order of its query
    and its values.
    """
    parts = urlsplit(address)
    path = re.sub(r"/compare/[^/]+", "/compare/PAIR", re.sub(r"\d+", "N", parts.path))
    return f"{path}?{'&'.join(sorted(key for key, _ in parse_qsl(parts.query, keep_blank_values=True)))}"


KEPT = ("Cache-Control", "Content-Location", "ETag", "Expires", "Vary")


def unlike(answer: HttpResponseBase, again: HttpResponseBase) -> dict[str, tuple[str | None, str | None]]:
    """Headers of a response that its 304 has not, or otherwise (RFC 9110, section 15.4.5)."""
    pairs = {name: (answer.headers.get(name), again.headers.get(name)) for name in KEPT}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def test_no_link_of_a_page_leads_nowhere(client: Client, everything: None) -> None:
    left, known, of_shape = deque(["/"]), {"/": "the beginning"}, Counter[str]()
    dead, others = list[str](), list[str]()
    while left:
        address = left.popleft()
        answer = client.get(address)
        if answer.status_code not in {200, 302, 401, 403}:
            dead.append(f"{known[address]} leads to {address}: {answer.status_code}")
        if "ETag" in answer and of_shape[shape(address)] <= 1:
            again = client.get(address, headers={"If-None-Match": answer["ETag"]})
            if again.status_code == 304 and unlike(answer, again):
                others.append(f"{address}: {unlike(answer, again)}")
        if answer.status_code != 200 or not answer["Content-Type"].startswith("text/html"):
            continue
        for link in sorted(links(address, answer.content.decode())):
            of_shape[shape(link)] += link not in known
            if link not in known and of_shape[shape(link)] <= MOST_OF_A_SHAPE and not link.startswith("/docs/"):
                known[link] = address
                left.append(link)
    assert dead == []
    assert others == []
    assert len(known) > 300


def test_a_comparison_links_no_samples_of_a_variant_on_which_the_test_failed(client: Client, db: None) -> None:
    run = create_run(tests=DEMO_TESTS[:2], failed_test=DEMO_TESTS[1])
    address = f"/runs/{run.pk}/compare/deferred..direct/"
    files = {link for link in links(address, client.get(address).content.decode()) if "/ministat/" in link}
    assert len(files) == 3
    assert {client.get(link).status_code for link in files} == {200}
