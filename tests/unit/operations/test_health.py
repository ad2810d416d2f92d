# SPDX-License-Identifier: BSD-2-Clause
"""Health and metrics of the service for machines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from pytest_django import Settings

from perfweb.operations.health import _KEPT, BEAT, FAULTS, MESSAGES, OK, beat_state, beaten, parts
from perfweb.outbox.services import post
from perfweb.redisclient import client as redis_client
from perfweb.runs.models import RunState
from tests.factories import create_queued_run, create_run

pytestmark = pytest.mark.django_db
CountQueries = Callable[[int], AbstractContextManager[object]]
COUNTED = (
    'perfweb_runs{state="queued"} 3.0',
    'perfweb_runs{state="done"} 1.0',
    'perfweb_runs{state="failed"} 1.0',
    "perfweb_testbeds 1.0",
    "perfweb_messages_waiting 1.0",
    'perfweb_alerts{state="confirmed"} 0.0',
)


@pytest.fixture(autouse=True)
def nothing_is_kept(settings: Settings, tmp_path: Path) -> None:
    settings.PERFWEB_VAR = tmp_path
    cache.clear()


@pytest.fixture
def no_redis(settings: Settings) -> Iterator[None]:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    redis_client.cache_clear()
    yield
    redis_client.cache_clear()


def test_a_part_that_is_away_is_named_with_what_to_do(client: Client) -> None:
    redis_client().delete(BEAT)
    answer = client.get("/health/")
    assert answer.status_code == 503
    states = answer.json()
    assert states["database"] == states["redis"] == OK
    assert states["beat"] != OK
    assert states["workers for runs"] == OK or "no run is measured" in states["workers for runs"]
    beaten()
    assert parts()["beat"] == OK


BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.usefixtures("no_redis")
@pytest.mark.parametrize(
    ("accept", "kind"),
    [(BROWSER, "text/html; charset=utf-8"), ("*/*", "application/json"), ("", "application/json"),
     ("application/json", "application/json"), ("image/png", "application/json")],
)  # fmt: skip
def test_browsers_get_a_page_and_programs_json(client: Client, accept: str, kind: str) -> None:
    answer = client.get("/health/", headers={"Accept": accept} if accept else {})
    assert (answer.status_code, answer.headers["Content-Type"]) == (503, kind)
    assert "Accept" in answer.headers["Vary"]


@pytest.mark.usefixtures("no_redis")
def test_the_page_marks_the_parts_that_do_not_work(client: Client) -> None:
    html = client.get("/health/", headers={"Accept": BROWSER}).content.decode()
    assert "Some parts do not work." in html
    rows = dict(re.findall(r'<th scope="row">(.*?)</th><td class="wrap">(.*?)</td>', html))
    assert (rows["database"], rows["redis"]) == (OK, "<strong>⚠ does not answer</strong>")


@pytest.mark.parametrize(
    ("faults", "words"), [(OK, "All parts work."), ("a: b (c)", "All parts work, but some items fail.")]
)
def test_the_page_states_that_items_fail_while_all_parts_work(client: Client, faults: str, words: str) -> None:
    cache.set(_KEPT, {"database": OK, FAULTS: faults}, 60)
    answer = client.get("/health/", headers={"Accept": BROWSER})
    assert answer.status_code == 200
    assert words in answer.content.decode()


def test_beat_is_not_accused_of_what_the_messenger_has_missed() -> None:
    assert "start celery beat" in beat_state(90.0, messenger=True)
    assert "start celery beat" in beat_state(None, messenger=True)
    assert beat_state(90.0, messenger=False) == f"unknown while the {MESSAGES} does not answer"
    assert beat_state(9.0, messenger=False) == OK


def test_an_answer_is_given_again_for_a_while(client: Client) -> None:
    redis_client().delete(BEAT)
    first = client.get("/health/").json()
    beaten()
    assert client.get("/health/").json() == first
    cache.clear()
    assert client.get("/health/").json()["beat"] == OK


@pytest.mark.usefixtures("no_redis")
def test_without_redis_it_still_answers_and_names_no_host(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    answer = client.get("/health/")
    assert answer.status_code == 503
    assert answer.json() == {"database": OK, "disk": OK, "faults": OK, "redis": "does not answer"}
    assert "127.0.0.1:1" in caplog.text
    assert "perfweb_last_beat_age_seconds " not in re.sub("(?m)^#.*", "", client.get("/metrics").content.decode())


def test_a_closed_connection_is_no_error_of_the_service(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """psycopg raises an InterfaceError or an OperationalError for it, depending on when it notices."""
    with connection.cursor():
        assert connection.connection is not None
    connection.connection.close()
    try:
        answer = client.get("/health/")
    finally:
        connection.close()
    assert answer.status_code == 503
    assert answer.json()["database"] == "does not answer"
    assert "database: " in caplog.text


def test_metrics_count_what_there_is(
    client: Client, django_assert_num_queries: Callable[[int], AbstractContextManager[object]]
) -> None:
    create_run()
    for _ in range(3):
        create_queued_run()
    create_queued_run(state=RunState.FAILED)
    post("mail:smtp", "1", {})
    beaten()
    with django_assert_num_queries(11):
        answer = client.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    text = answer.content.decode()
    for line in COUNTED:
        assert f"{line}\n" in text
    oldest = re.search(r"(?m)^perfweb_queue_oldest_seconds (\S+)", text)
    assert oldest
    assert float(oldest.group(1)) > 0
    beat = re.search(r"(?m)^perfweb_last_beat_age_seconds (\S+)", text)
    assert beat
    assert float(beat.group(1)) < 3600
    for line in text.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) perfweb_\w+ .+|perfweb_\w+(\{\w+="[\w-]+"\})? [0-9.e+-]+', line), line
