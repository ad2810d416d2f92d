# SPDX-License-Identifier: BSD-2-Clause
"""A disk without space pauses runs; a database or a Redis without space loses nothing."""

import errno
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.cache import cache
from django.db import OperationalError
from django.test import Client
from psycopg.errors import DiskFull
from pytest_django import Settings

from perfweb.lab.models import Lease
from perfweb.measuring import space
from perfweb.redisclient import client as redis_client
from perfweb.runs import progress, services, states
from perfweb.runs.invariants import violations
from perfweb.runs.models import Boot, Run, RunState
from runners import db_retry, recovery
from runners.ansible.plays import Plays
from runners.db_retry import retry_db
from runners.execute import execute
from tests.factories import create_queued_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def disk(tmp_path: Path, settings: Settings) -> Iterator[Path]:
    """A disk of 20 MB that holds PERFWEB_VAR."""
    directory = tmp_path / "var"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", directory], check=True)
    settings.PERFWEB_VAR = directory
    yield directory
    subprocess.run(["umount", "--lazy", directory], check=True)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setattr(Plays, "restore", lambda _: None)
    return create_queued_run()


def fill(disk: Path, megabytes: int = 8) -> Path:
    filler = disk / "filler"
    filler.write_bytes(b"\1" * (megabytes << 20))
    return filler


def test_run_pauses_with_the_reason_and_goes_on_by_itself(disk: Path, run: Run) -> None:
    filler = fill(disk)
    execute(run.number)
    run.refresh_from_db()
    assert (run.state, run.is_over) == (RunState.PAUSED, False)
    assert run.reason == (
        f"disk full: {disk} has 12 MB free and 16 MB are needed; the run continues by itself when there is space"
    )
    assert not Lease.objects.filter(released=None).exists()
    recovery.resume_paused()
    assert Run.objects.get().state == RunState.PAUSED
    filler.unlink()
    recovery.resume_paused()
    assert Run.objects.get().state == RunState.QUEUED
    assert violations() == []


def test_run_whose_testbed_cannot_be_restored_for_lack_of_space_waits_for_that_first(
    disk: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Plays) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    filler = fill(disk)
    with monkeypatch.context() as broken:
        broken.setattr(Plays, "restore", full)
        execute(run.number)
    filler.unlink()
    recovery.resume_paused()
    run.refresh_from_db()
    assert run.state == RunState.PAUSED
    Lease.objects.update(expires="2000-01-01T00:00Z")
    recovery.recover()
    recovery.resume_paused()
    assert Run.objects.get().state == RunState.QUEUED
    assert violations() == []


def test_paused_run_can_be_cancelled_and_resumed(disk: Path, run: Run) -> None:
    fill(disk)
    execute(run.number)
    assert services.resume(run.number).state == RunState.QUEUED
    execute(run.number)
    assert services.cancel(run.number).state == RunState.CANCELLED
    assert not Boot.objects.exists()


def test_health_names_the_disk_and_what_it_needs(disk: Path, client: Client) -> None:
    cache.clear()
    assert client.get("/health/").json()["disk"] == "ok"
    fill(disk)
    cache.clear()
    answer = client.get("/health/")
    assert answer.status_code == 503
    assert answer.json()["disk"].startswith(f"{disk} has 12 MB free and 16 MB are needed: runs pause")
    assert "\nperfweb_disks_short 1.0\n" in client.get("/metrics").content.decode()
    cache.clear()


def test_pages_show_why_a_run_is_paused(disk: Path, run: Run, client: Client) -> None:
    fill(disk)
    execute(run.number)
    for page in ("/", f"/runs/{run.number}/"):
        words = client.get(page).content.decode()
        assert f"{disk} has 12 MB free and 16 MB are needed; the run continues by itself" in words
        assert '<span class="state paused">paused</span>' in words


def test_error_of_a_full_disk_is_known_wherever_it_comes_from() -> None:
    def wrapped() -> None:
        try:
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        except OSError as error:
            raise RuntimeError("cannot continue") from error

    with pytest.raises(RuntimeError) as caught:
        wrapped()
    assert space.is_full(caught.value)
    assert not space.is_full(FileNotFoundError(errno.ENOENT, "there is none"))


def test_full_disk_of_the_database_is_waited_for_longer_than_a_database_that_is_away(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DATABASE_PATIENCE = 0.0
    monkeypatch.setattr(db_retry, "close_old_connections", lambda: None)
    errors = [OperationalError("could not extend file")]
    errors[0].__cause__ = DiskFull("could not extend file")

    def write() -> str:
        if errors:
            raise errors.pop()
        return "written"

    assert retry_db(write) == "written"


def test_redis_that_refuses_writes_fails_nothing(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    redis = redis_client()
    before = redis.config_get("maxmemory")["maxmemory"] or "0"
    redis.config_set("maxmemory", "1")
    try:
        progress.publish(run.number, "eta", seconds=1)
        services.enqueue(run)
        states.lease(run.number)
    finally:
        redis.config_set("maxmemory", before)
    assert caplog.text.count("Redis does not answer") >= 2
