# SPDX-License-Identifier: BSD-2-Clause
"""A database, a Redis or a disk is unavailable: 503 with Retry-After, never 500, and recovery within seconds."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
import redis

from playbooks.module_utils import processes
from tests.installation import Installation, Reply, installed
from tests.waiting import wait_for

VISITORS = 40
RECOVERY_SECONDS = 5.0
STATIC = "/static/base.css"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installed(tmp_path_factory.mktemp("available") / "var") as installation:
        yield installation


@pytest.fixture(autouse=True)
def site_works(site: Installation) -> Iterator[None]:
    """Each test begins and ends with a site that works and has shown no failure of its own."""
    wait_for(lambda: site.get("/runs/").status == 200, "the first page")
    yield
    site.start("postgresql", "redis")
    assert "Internal Server Error" not in site.log("web")
    assert "Traceback" not in site.log("web")


def visit(site: Installation, path: str = "/runs/") -> list[Reply]:
    """Send VISITORS requests at once, which makes the pool of connections grow."""
    with ThreadPoolExecutor(VISITORS) as pool:
        return list(pool.map(lambda _: site.get(path), range(VISITORS)))


def statuses(replies: list[Reply]) -> set[int]:
    return set(Counter(reply.status for reply in replies))


def assert_retry_after(site: Installation, *paths: str) -> None:
    for path in paths or ("/", "/runs/", "/testbeds/", "/metrics", "/api/v1/runs"):
        reply = site.get(path)
        assert reply.status == 503, (path, reply)
        assert int(reply.headers["Retry-After"]) > 0
        assert "Traceback" not in reply.text
        assert "psycopg" not in reply.text
        if path.startswith("/api/"):
            assert reply.headers["Content-Type"] == "application/problem+json"
            assert json.loads(reply.text)["status"] == 503
        else:
            assert "database does not answer" in reply.text


def health(site: Installation) -> dict[str, str]:
    found: dict[str, str] = json.loads(site.get("/health/").text)
    return found


def recovers(site: Installation) -> None:
    """Assert that from RECOVERY_SECONDS after now on every request succeeds."""
    back = time.monotonic()
    wait_for(lambda: time.monotonic() - back >= RECOVERY_SECONDS, "the time that recovery may take")
    assert statuses(visit(site)) == {200}
    assert site.get("/api/v1/runs").status == 200
    assert site.get("/metrics").status == 200


def test_postgresql_is_killed_while_many_read(site: Installation) -> None:
    assert statuses(visit(site)) == {200}
    site.kill("postgresql")
    assert statuses(visit(site)) == {503}
    assert_retry_after(site)
    assert site.get(STATIC).status == 200
    assert health(site)["database"] == "does not answer"
    assert health(site)["redis"] == "ok"
    assert site.get("/runs/4711/events").status == 503
    site.start("postgresql")
    recovers(site)


def test_postgresql_is_killed_and_comes_back_before_the_next_request(site: Installation) -> None:
    """All connections of the pool are dead, and no request has noticed it yet."""
    assert statuses(visit(site)) == {200}
    site.kill("postgresql")
    site.start("postgresql")
    recovers(site)


def test_postgresql_hangs(site: Installation) -> None:
    assert statuses(visit(site)) == {200}
    site.signal("postgresql", signal.SIGSTOP)
    assert_retry_after(site)
    assert site.get(STATIC).status == 200
    assert health(site)["database"] == "does not answer"
    site.signal("postgresql", signal.SIGCONT)
    recovers(site)


def administer(site: Installation, *statements: str) -> None:
    """Run statements as the superuser of the cluster, and cut the connections that the service has."""
    address = f"host={site.layout.postgresql_sockets} user=postgres dbname=postgres"
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'perfweb'"
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in (*statements, cut):
            connection.execute(statement.encode())


def test_postgresql_has_no_connection_left(site: Installation) -> None:
    administer(site, "ALTER ROLE perfweb CONNECTION LIMIT 0")
    assert_retry_after(site)
    administer(site, "ALTER ROLE perfweb CONNECTION LIMIT -1")
    recovers(site)


def test_postgresql_takes_no_changes(site: Installation) -> None:
    """As on a standby, or a server in recovery: pages can be read, and writes return when to retry."""
    administer(site, "ALTER DATABASE perfweb SET default_transaction_read_only = on")
    assert statuses(visit(site)) == {200}
    form = site.get("/account/sign-in/")
    assert form.status == 200
    assert site.sign_in("nobody here", "wrong").status == 503  # the log cannot be written
    administer(site, "ALTER DATABASE perfweb RESET default_transaction_read_only")
    recovers(site)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_redis_is_away(site: Installation, end: signal.Signals) -> None:
    site.kill("redis") if end == signal.SIGKILL else site.signal("redis", end)
    assert statuses(visit(site)) == {200}
    wait_for(lambda: health(site).get("redis") == "does not answer", "its part of /health/")
    if end == signal.SIGKILL:
        site.start("redis")
    else:
        site.signal("redis", signal.SIGCONT)
    wait_for(lambda: health(site)["redis"] == "ok", "Redis")


def test_messenger_and_beat_go_on_when_redis_and_postgresql_are_back(site: Installation) -> None:
    def beats() -> bool:
        return health(site).get("beat") == "ok"

    site.start("messenger", "beat")
    wait_for(beats, "beat's first call")
    for name in ("redis", "postgresql"):
        site.kill(name)
    wait_for(lambda: site.get("/runs/").status == 503, "both to be away")
    site.start("redis", "postgresql")
    address = f"unix://{site.layout.redis_socket}"
    with redis.Redis.from_url(address) as client:
        client.delete("perfweb:beat")
    wait_for(lambda: site.get("/runs/").status == 200, "a page")
    wait_for(beats, "beat's next call")


def test_beat_ends_in_the_middle_of_a_call(site: Installation) -> None:
    """Redis does not answer, so beat waits for a response when SIGTERM comes."""

    def calls() -> int:
        return site.log("beat").count("Sending due task")

    site.start("beat")
    beat = processes.running(site.layout.pid_file("beat"))
    assert beat
    before = calls()
    wait_for(lambda: calls() > before, "a call")
    site.signal("redis", signal.SIGSTOP)
    try:
        before = calls()
        wait_for(lambda: calls() > before, "a call without a response")
        processes.signal_process(beat, signal.SIGTERM)
        wait_for(lambda: not beat.alive(), "the end of beat")
    finally:
        site.signal("redis", signal.SIGCONT)


def test_the_disk_cannot_be_written(site: Installation, tmp_path: Path) -> None:
    """Put a directory in the place of a file, because root could write to any other one."""
    var = site.layout.var
    away = tmp_path / "away"
    os.rename(var, away)
    try:
        wait_for(lambda: "cannot be written" in health(site)["disk"], "its part of /health/")
        assert site.get("/runs/").status in {200, 503}
    finally:
        os.rename(away, var)
    wait_for(lambda: "cannot be written" not in health(site)["disk"], "the disk")
