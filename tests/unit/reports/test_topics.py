# SPDX-License-Identifier: BSD-2-Clause
"""The tests of a topic over runs."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from perfweb.runs.models import Sample
from perfweb.runs.summaries import summarise
from tests.factories import create_history, create_run
from tests.unit.pages import page, text_of

pytestmark = pytest.mark.django_db
TESTS = ["tcp.rr/host-host/ipv4", "tcp.stream/host-host/ipv4"]


def test_every_counted_sample_is_drawn_and_every_run_has_its_column(client: Client) -> None:
    runs = create_history(4, TESTS)
    text = text_of(page(client, "/topics/tcp/"))
    places = [text.index(f"run {run.pk} ") for run in runs]
    assert places == sorted(places, reverse=True)
    assert re.search(r"deferred 4\d.\d{3}", text)
    figures = json.loads(page(client, "/topics/tcp/?graphs=json"))
    assert len(figures) == len(TESTS)
    drawn = sum(len(trace["y"]) for figure in figures.values() for trace in figure["data"])
    assert drawn == Sample.objects.counted().count()


def test_a_change_of_the_hosts_has_a_letter(client: Client) -> None:
    runs = create_history(4, TESTS[:1])
    text = text_of(page(client, "/topics/tcp/"))
    assert f"run {runs[2].pk} A " in text
    assert f"A demo, run {runs[2].pk} : kernel of dut, left, right 6.1.0-28-amd64 → 6.1.0-29-amd64" in text
    (figure,) = json.loads(page(client, "/topics/tcp/?graphs=json")).values()
    assert [(note["text"], note["x"]) for note in figure["layout"]["annotations"]] == [("A", 2.0)]


def test_older_runs_have_pages_of_their_own(client: Client) -> None:
    runs = create_history(8, TESTS[:1])
    first = page(client, "/topics/tcp/")
    (older,) = re.findall(r'rel="next" href="([^"]+)"', first)
    second = text_of(page(client, "/topics/tcp/" + older))
    assert f"run {runs[0].pk} " in second
    assert f"run {runs[1].pk} " not in second
    assert "No older results" in text_of(page(client, "/topics/tcp/?before=1"))


def test_a_topic_without_results_and_one_that_is_none(client: Client) -> None:
    assert "No results yet." in text_of(page(client, "/topics/forward/"))
    answer = client.get("/topics/none/")
    assert answer.status_code == 404
    assert "There are: tcp, tcp6, udp, udp6, connect, connect6" in answer.content.decode()


@pytest.mark.parametrize("runs", [2, 6])
def test_queries_do_not_depend_on_the_number_of_runs(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries, runs: int
) -> None:
    create_history(runs, TESTS)
    with django_assert_num_queries(7):
        client.get("/topics/tcp/")


def test_the_newest_run_of_a_test_is_the_last_one(client: Client) -> None:
    runs = [create_run(tests=TESTS[:1], seed=seed) for seed in (1, 2, 3)]
    summarise([run.pk for run in runs])
    assert f'<a href="/runs/{runs[-1].pk}/">' in page(client, "/tests/")
    assert f'href="/runs/{runs[-1].pk}/">v0.1-12-g0123abc' in page(client, "/search/?q=g0123abc")
