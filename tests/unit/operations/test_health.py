# SPDX-License-Identifier: BSD-2-Clause
"""What machines are told about the service."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from django.test import Client
from pytest_django import Settings

from perfweb.operations.health import BEAT, OK, beaten, parts
from perfweb.outbox.services import post
from perfweb.redisclient import client as redis_client
from perfweb.runs.models import RunState
from tests.factories import create_queued_run, create_run

pytestmark = pytest.mark.django_db
CountQueries = Callable[[int], AbstractContextManager[object]]
COUNTED = (
    'perfweb_runs{state="queued"} 3',
    'perfweb_runs{state="done"} 1',
    'perfweb_runs{state="failed"} 1',
    "perfweb_testbeds 1",
    "perfweb_messages_waiting 1",
    'perfweb_alerts{state="confirmed"} 0',
)


def test_a_part_that_is_away_is_named_with_what_to_do(client: Client) -> None:
    redis_client().delete(BEAT)
    answer = client.get("/health/")
    assert answer.status_code == 503
    told = answer.json()
    assert told["database"] == told["redis"] == OK
    assert "start celery beat" in told["beat"]
    assert told["workers for runs"] == OK or "no run is measured" in told["workers for runs"]
    beaten()
    assert parts()["beat"] == OK


def test_without_redis_it_still_answers(client: Client, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    redis_client.cache_clear()
    try:
        answer = client.get("/health/")
    finally:
        redis_client.cache_clear()
    assert answer.status_code == 503
    assert "does not answer" in answer.json()["redis"]


def test_metrics_count_what_there_is(
    client: Client, django_assert_num_queries: Callable[[int], AbstractContextManager[object]]
) -> None:
    create_run()
    for _ in range(3):
        create_queued_run()
    create_queued_run(state=RunState.FAILED)
    post("mail:smtp", "1", {})
    with django_assert_num_queries(9):
        answer = client.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    text = answer.content.decode()
    for line in COUNTED:
        assert f"{line}\n" in text
    oldest = re.search(r"(?m)^perfweb_queue_oldest_seconds (\S+)", text)
    assert oldest
    assert float(oldest.group(1)) > 0
    for line in text.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) perfweb_\w+ .+|perfweb_\w+(\{\w+="[\w-]+"\})? [0-9.e+-]+', line), line
