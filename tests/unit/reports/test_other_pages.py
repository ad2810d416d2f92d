# SPDX-License-Identifier: BSD-2-Clause
"""Knobs, testbeds, search, and graphs as files."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from perfweb.lab.models import Lease, OutageKind
from perfweb.lab.origins import Origin
from perfweb.lab.outages import begin, checked, end
from perfweb.lab.services import imported_testbed, release
from perfweb.reports.search import MOST_HITS, RARE
from perfweb.runs.models import Run, RunState
from perfweb.runs.summaries import summarise
from tests.factories import (
    create_calibrated,
    create_history,
    create_knob_run,
    create_queued_run,
    create_run,
    create_testbed,
)
from tests.unit.pages import page, text_of

pytestmark = pytest.mark.django_db


def test_effects_of_knobs_and_their_interaction(client: Client) -> None:
    run = create_knob_run()
    html = page(client, f"/runs/{run.pk}/matrix/")
    text = text_of(html)
    assert re.search(r"machine\.cpus 1 → 2 ▲ \+3[23]\.\d\d", text)
    assert re.search(r"net\.isr\.dispatch deferred → direct ▲ \+1[01]\.\d\d", text)
    assert re.search(r"machine\.cpus 1 → 2 . net\.isr\.dispatch deferred → direct ▲ \+[456]\.\d\d", text)
    assert "good-4" in html


def test_effects_at_each_number_of_cpus(client: Client) -> None:
    run = create_knob_run()
    text = text_of(page(client, f"/runs/{run.pk}/matrix/"))
    assert re.search(r"net\.isr\.dispatch deferred → direct, 1 CPU ▲ \+[78]\.\d\d", text)
    assert re.search(r"net\.isr\.dispatch deferred → direct, 2 CPUs ▲ \+1[234]\.\d\d", text)
    figures = json.loads(page(client, f"/runs/{run.pk}/matrix/?graphs=json"))
    assert set(figures) == {"scaling-tcp-rr-host-host-ipv4", "scaling-udp-rr-host-host-ipv4"}
    traces = figures["scaling-tcp-rr-host-host-ipv4"]["data"]
    points = [trace["text"] for trace in traces if trace["mode"] == "markers"]
    assert points == [["1", "1", "2", "2"]] * 2


def test_knobs_that_do_not_differ_or_were_not_measured(client: Client) -> None:
    queued = create_queued_run()
    assert "do not differ in any knob" in text_of(page(client, f"/runs/{queued.pk}/matrix/"))
    run = create_knob_run([])
    assert "This run has no results." in text_of(page(client, f"/runs/{run.pk}/matrix/"))


def test_a_testbed_of_imported_results_is_elsewhere(client: Client) -> None:
    imported_testbed("rack9", Origin.MEASURED)
    for address in ("/testbeds/", "/testbeds/rack9/"):
        text = text_of(page(client, address))
        assert "imported results only" in text
        assert "free" not in text


def test_a_testbed_shows_its_holder_its_failures_and_its_noise(client: Client, run: Run) -> None:
    summarise([run.pk])
    assert "free" in text_of(page(client, "/testbeds/"))
    testbed = create_testbed()
    Lease.objects.create(testbed=testbed, holder="run 12", expires=timezone.now() - timedelta(minutes=1))
    Run.objects.filter(pk=create_run(tests=[]).pk).update(state=RunState.FAILED, reason="no dut")
    for address in ("/testbeds/", "/testbeds/demo/"):
        assert "⚠ held by run 12, which does not respond; 1 of the last 2 runs failed" in text_of(page(client, address))
    text = text_of(page(client, "/testbeds/demo/"))
    assert re.search(r"tcp\.rr/host-host/ipv4 \d\.\d\d", text)
    assert "6.1.0-28-amd64" in text


def test_a_testbed_that_could_not_be_restored_shows_the_reason_and_how_to_release_it(client: Client) -> None:
    problem = "the lab could not be restored: demo-dut: unreachable"
    expires = timezone.now() + timedelta(minutes=1)
    lease = Lease.objects.create(testbed=create_testbed(), holder="run 12", expires=expires, problem=problem)
    assert "⚠ out of service, run 12 left it unclean" in text_of(page(client, "/testbeds/"))
    text = text_of(page(client, "/testbeds/demo/"))
    assert problem in text
    assert "then run manage.py free demo" in text
    release(lease)
    assert "free" in text_of(page(client, "/testbeds/demo/"))
    assert problem not in text_of(page(client, "/testbeds/demo/"))


def test_a_testbed_out_of_service_shows_user_and_reason(client: Client) -> None:
    testbed = create_testbed()
    begin(testbed, OutageKind.MAINTENANCE, "new cables", "ann")
    checked(testbed, "run 3", {"demo-dut": {"free_mb": {"/var": 900}, "load": 0.1}}, [])
    assert "⚠ free; in maintenance" in text_of(page(client, "/testbeds/"))
    create_queued_run()
    assert "when demo is back" in text_of(page(client, "/"))
    text = text_of(page(client, "/testbeds/demo/"))
    assert re.search(r"⚠ In maintenance since \S+ \S+.*, by ann: new cables", text)
    assert "for run 3: fit; demo-dut with 900 MB free in /var." in text
    end(testbed, "ann")
    checked(testbed, "run 4", {}, ["demo-dut: there is no data link data0"])
    text = text_of(page(client, "/testbeds/demo/"))
    assert "⚠ free; unfit at the last check" in text
    assert "for run 4: demo-dut: there is no data link data0." in text


def test_a_testbed_shows_how_noise_and_baseline_went(client: Client) -> None:
    runs = create_history(4, ["tcp.rr/host-host/ipv4"])
    html = page(client, "/testbeds/demo/")
    figures = json.loads(page(client, "/testbeds/demo/?graphs=json"))
    assert set(figures) == {"noise", "drift"}
    (noise,), (drift,) = figures["noise"]["data"], figures["drift"]["data"]
    assert len(noise["y"]) == len(drift["y"]) == len(runs)
    assert all(95 < level < 105 for level in drift["y"])
    assert [note["text"] for note in figures["noise"]["layout"]["annotations"]] == ["A"]
    assert re.search(rf"A demo, run {runs[2].pk} : kernel of dut", text_of(html))
    assert "Not calibrated yet. manage.py calibrate demo" in text_of(html)


def test_the_page_of_a_testbed_has_its_calibration(client: Client) -> None:
    run = create_calibrated()
    text = text_of(page(client, "/testbeds/demo/"))
    assert re.search(r"tcp\.rr/host-host/ipv4 ±\d\.\d+ % \S ±0\.\d+ % \d+ % of 64 ", text)
    assert f"run {run.pk} , 16 boots" in text
    assert "64 comparisons" in text
    assert re.search(r"all samples, Welch \d\d % 0\.\d\d", text)
    figures = json.loads(page(client, "/testbeds/demo/?graphs=json"))
    assert len(figures["scatter"]["data"]) == 1


def test_a_run_shows_the_false_positive_rate_of_its_verdicts(client: Client) -> None:
    run = create_run(tests=["tcp.rr/host-host/ipv4"])
    address = f"/runs/{run.pk}/"
    answer = client.get(address)
    assert "These tests are not calibrated" in text_of(answer.content.decode())
    calibrated = create_calibrated()
    anew = client.get(address, headers={"If-None-Match": answer.headers["ETag"]})
    assert anew.status_code == 200
    assert re.search(rf"A/A runs: \d+ % of 64 comparisons .* in run {calibrated.pk}", text_of(anew.content.decode()))


def test_there_may_be_no_testbed(client: Client) -> None:
    assert "No testbeds yet." in text_of(page(client, "/testbeds/"))
    answer = client.get("/testbeds/none/")
    assert answer.status_code == 404
    assert "Registered: none yet." in answer.content.decode()


@pytest.mark.parametrize("runs", [1, 4])
def test_queries_of_testbeds_do_not_depend_on_the_number_of_runs(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries, runs: int
) -> None:
    create_history(runs)
    with django_assert_num_queries(20 if runs > 1 else 19):  # one more if hosts have changed
        client.get("/testbeds/demo/")


@pytest.mark.parametrize("testbeds", [1, 4])
def test_queries_of_the_list_do_not_depend_on_the_number_of_testbeds(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries, testbeds: int
) -> None:
    for number in range(testbeds):
        create_queued_run(create_testbed(f"lab{number}"), RunState.DONE)
    with django_assert_num_queries(6):
        client.get("/testbeds/")


@pytest.mark.parametrize("boots", [2, 4])
def test_queries_of_knobs_and_search_do_not_depend_on_how_much_there_is(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries, boots: int
) -> None:
    runs = [create_knob_run(boots=boots) for _ in range(boots)]
    with django_assert_num_queries(4):
        client.get(f"/runs/{runs[0].pk}/matrix/")
    with django_assert_num_queries(9):
        client.get("/search/?q=direct")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("{run}", "Direct against deferred dispatch"),
        ("run {run}", "Direct against deferred dispatch"),
        ("TCP bulk", "tcp.stream/host-host/ipv4"),
        ("demo", "Testbeds demo"),
        ("against deferred", "Plans run"),
        ("g0123abc", "Commits v0.1-12-g0123abc"),
        ("isr.dispatch direct", "Variants direct, run"),
        ("demo-dut", "Hosts demo-dut, run"),
        ("netperf ended", "Failures run {run} udp.rr/host-host/ipv4: sample 0: netperf ended with status 1"),
    ],
)
def test_search_finds(client: Client, run: Run, query: str, found: str) -> None:
    text = text_of(page(client, "/search/?q=" + query.format(run=run.pk)))
    assert found.format(run=run.pk) in text


def test_search_finds_the_newest_of_many(client: Client) -> None:
    first = create_queued_run()
    failed = {"plan": first.plan, "testbed": first.testbed, "state": RunState.FAILED, "reason": "the cable is loose"}
    runs = Run.objects.bulk_create([Run(**failed) for _ in range(RARE + 50)])
    text = text_of(page(client, "/search/?q=cable"))
    assert re.findall(r"run (\d+) the cable", text) == [str(run.pk) for run in runs[: -MOST_HITS - 1 : -1]]


@pytest.mark.parametrize("query", ["", "zzzzzz", "a b", "%_%", "'; DROP TABLE zzzz", "\1", "x" * 200, "9" * 100])
def test_search_for_what_is_not_there(client: Client, run: Run, query: str) -> None:
    assert "Search for a run's number" in text_of(client.get("/search/", {"q": query}).content.decode())


def test_graphs_come_as_json_and_as_files(client: Client, run: Run) -> None:
    figures = json.loads(page(client, f"/runs/{run.pk}/?graphs=json"))
    assert {"topic-tcp", "topic-forward", "test-tcp-rr-host-host-ipv4"} <= figures.keys()
    answer = client.get(f"/runs/{run.pk}/?graph=topic-tcp")
    assert answer.headers["Content-Type"] == "image/svg+xml"
    assert "script-src" not in answer.headers["Content-Security-Policy"]
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    missing = client.get(f"/runs/{run.pk}/?graph=none")
    assert missing.status_code == 400
    assert "Possible: topic-tcp" in missing.content.decode()


def test_what_changed_on_the_hosts_since_the_run_before(client: Client) -> None:
    first, second = create_history(2)
    assert "changes since run" not in text_of(page(client, f"/runs/{first.pk}/"))
    text = text_of(page(client, f"/runs/{second.pk}/"))
    assert f"Host changes since run {first.pk} : kernel of dut, left, right 6.1.0-28-amd64" in text
