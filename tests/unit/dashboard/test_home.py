# SPDX-License-Identifier: BSD-2-Clause
"""The first page: branches, newest results by testbed and topic, current runs, the queue, the latest verdicts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from perfweb.dashboard.grid import POINTS, Cell, current_grid, read_grid
from perfweb.dashboard.heads import read_heads
from perfweb.runs import progress
from perfweb.runs.models import Run, RunState
from perfweb.runs.summaries import summarise
from perfweb.runs.testbeds import shown_testbeds
from perfweb.stats.comparison import Verdict
from perfweb.tracking.models import AlertState
from tests.factories import create_history, create_queued_run, create_run, create_testbed
from tests.laboratory import Laboratory, tracked
from tests.unit.pages import page, text_of

pytestmark = pytest.mark.django_db


def test_home_shows_what_runs_waits_and_came_out(client: Client, run: Run) -> None:
    running = create_queued_run(state=RunState.RUNNING)
    progress.begin(running.pk)
    progress.publish(running.pk, "eta", seconds=30, fraction=0.5)
    progress.publish(running.pk, "measuring", test="tcp.rr/host-host/ipv4", variant="direct")
    queued = create_queued_run()
    html = page(client, "/")
    text = text_of(html)
    assert f"Run {running.pk}: Direct against deferred dispatch" in text
    assert "tcp.rr/host-host/ipv4 on direct" in text
    assert 'value="0.5"' in html
    assert "direct against deferred : 1 failed, 5 faster" in text
    assert re.search(rf"Queue 1 waiting .* {queued.pk} .* the server normal \S+ \S+ at once ", text)
    assert re.search(rf"Queue 1 waiting .* {queued.pk} .* the server normal", text_of(page(client, "/testbeds/demo/")))


def test_an_import_of_many_runs_leaves_room_for_what_was_measured(client: Client, run: Run, tmp_path: Path) -> None:
    revisions = "".join(f"{number},{value}\n" for number in range(12) for value in (5.0, 6.0, 7.0))
    table = tmp_path / "history.csv"
    table.write_text(f"revision,value\n{revisions}", encoding="utf-8")
    call_command("import", "csv", table, test="tcp.rr/host-host/ipv4", unit="packets/s", origin="elsewhere")
    numbers = sorted(Run.objects.exclude(imported=None).values_list("pk", flat=True))
    assert len(numbers) == 12
    html = page(client, "/")
    assert [number for number in numbers if f'href="/runs/{number}/"' in html] == numbers[-1:]
    assert f'href="/runs/{run.pk}/"' in html


def test_home_without_activity_states_it(client: Client, run: Run) -> None:
    text = text_of(page(client, "/"))
    assert "No run is executing." in text
    assert "The queue is empty." in text


def test_an_empty_site_shows_the_first_command(client: Client) -> None:
    text = text_of(page(client, "/"))
    assert "There are no runs yet." in text
    assert "Newest results" not in text


def cell(topic: str) -> Cell:
    """Return a cell of the only row of the grid."""
    (row,) = read_grid(shown_testbeds()).rows
    found = dict(row.cells)[topic]
    assert found
    return found


def test_a_cell_has_the_most_notable_verdict_of_its_topic(client: Client) -> None:
    tests = ("tcp.rr/host-host/ipv4", "tcp.stream/host-host/ipv4", "udp.rr/host-host/ipv4")
    summarise([create_run(tests=tests, failed_test="tcp.stream/host-host/ipv4", boots=4, gain=0.8).pk])
    tcp, udp = cell("tcp"), cell("udp")
    assert udp.verdict
    assert (udp.verdict.verdict, udp.test, udp.variant, udp.baseline) == (
        Verdict.SLOWER,
        tests[2],
        "direct",
        "deferred",
    )
    # The failed test has no result on its variant: the history is its baseline's.
    assert tcp.verdict
    assert (tcp.verdict.verdict, tcp.test, tcp.variant) == (Verdict.FAILED, tests[1], "direct")
    assert (tcp.shown, tcp.series.rsplit("/", 1)[-1]) == ("deferred", "deferred")
    text = text_of(page(client, "/"))
    assert "on deferred ✗ failed tcp.stream, direct against deferred" in text
    assert re.search(r"▼ slower .(19|2\d)\.\d\d % udp.rr, direct against deferred", text)


def test_a_cell_has_the_history_of_its_line_oldest_first(client: Client) -> None:
    runs = create_history(3)
    means = [
        run.summaries.get(test="tcp.rr/host-host/ipv4", variant__name=cell("tcp").variant).mean
        for run in sorted(runs, key=lambda run: run.pk)
    ]
    assert cell("tcp").values == means
    assert 'class="sparkline"' in page(client, "/")


def test_a_history_has_a_limit() -> None:
    create_history(POINTS + 3)
    assert len(cell("tcp").values) == POINTS


def test_a_topic_stays_although_newer_runs_measured_another() -> None:
    for tests in (("udp.rr/host-host/ipv4",), ("tcp.rr/host-host/ipv4",)):
        summarise([create_run(tests=tests).pk])
    assert read_grid(shown_testbeds()).topics == ["tcp", "udp"]
    assert cell("udp").run < cell("tcp").run


def test_a_testbed_without_runs_has_no_row() -> None:
    create_testbed("idle")
    summarise([create_run().pk])
    assert [row.testbed.name for row in read_grid(shown_testbeds()).rows] == ["demo"]


def test_a_link_leads_to_the_timeline_of_the_line(client: Client) -> None:
    create_history(2)
    address = re.search(r'class="spark" href="([^"]+)"', page(client, "/"))
    assert address
    assert "timeline" in page(client, address[1].replace("&amp;", "&"))


@pytest.mark.parametrize("commits", [2, 6])
def test_queries_do_not_depend_on_how_much_there_is(
    client: Client, commits: int, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    create_history(commits)
    with django_assert_max_num_queries(20):
        page(client, "/")


def test_a_branch_shows_its_newest_commit_and_open_alerts(client: Client, laboratory: Laboratory) -> None:
    shas = [laboratory.commit(number, 1.0 if number < 8 else 0.93) for number in range(13)]
    branch = tracked(shas[0])
    laboratory.rest()
    (head,) = read_heads(shown_testbeds())
    assert head.commit
    assert (head.commit.sha, head.slower, head.faster) == (shas[-1], 1, 0)
    assert head.run in head.commit.runs.all()
    text = text_of(page(client, "/"))
    assert f"{shas[-1][:10]} " in text
    assert "▼ 1 slower" in text
    branch.alerts.update(state=AlertState.FIXED)
    assert read_heads(shown_testbeds())[0].slower == 0
    branch.active = False
    branch.save()
    assert read_heads(shown_testbeds()) == []


@pytest.mark.django_db(transaction=True)
def test_a_selection_of_testbeds_never_gets_the_grid_of_another_one() -> None:
    testbeds = [create_run(tests=["tcp.rr/host-host/ipv4"]).testbed]
    summarise(list(Run.objects.values_list("pk", flat=True)))
    assert [row.testbed for row in current_grid(testbeds).rows] == testbeds
    assert current_grid([]).rows == []
