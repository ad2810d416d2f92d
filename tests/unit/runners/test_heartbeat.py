# SPDX-License-Identifier: BSD-2-Clause
"""The threads and callbacks of a run: an exception in them neither ends them nor is lost."""

import threading
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.utils import timezone

from perfweb.lab import services as lab
from perfweb.lab.models import Lease
from perfweb.runs import states
from perfweb.runs.models import Run
from runners.ansible.driver import Listener, PlayResult, _Play
from runners.heartbeat import CANCELLED, Heartbeat
from tests.factories import create_queued_run
from tests.waiting import wait_for

WAIT = 120.0


@pytest.fixture
def run(transactional_db: None) -> Run:
    return states.lease(create_queued_run().number)


@pytest.mark.parametrize("error", [RecursionError("planted"), KeyError("planted"), OSError("planted")])
def test_heartbeat_goes_on_after_any_exception(run: Run, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the lease expires and recovery restores the testbed during the run."""
    true, raised, renewed = lab.renew, threading.Event(), threading.Event()

    def renew(lease_id: int) -> Lease | None:
        if not raised.is_set():
            raised.set()
            raise error
        lease = true(lease_id)
        renewed.set()
        return lease

    monkeypatch.setattr(lab, "renew", renew)
    Lease.objects.update(expires=timezone.now() - timedelta(hours=1))
    with Heartbeat(run) as beat:
        assert renewed.wait(WAIT)
        assert not beat.stop_reason
    assert Lease.objects.get().expires > timezone.now()


def test_heartbeat_goes_on_when_its_connection_is_cut(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLSTATE 57P01, as at a restart of PostgreSQL; a request to cancel arrives nevertheless."""
    true, cut = lab.renew, threading.Event()

    def renew(lease_id: int) -> Lease | None:
        if not cut.is_set():
            cut.set()
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return true(lease_id)

    monkeypatch.setattr(lab, "renew", renew)
    with Heartbeat(run) as beat:
        assert cut.wait(WAIT)
        Run.objects.filter(pk=run.pk).update(cancel_requested=True)
        wait_for(beat.must_stop, "the request to cancel")
        assert beat.stop_reason == CANCELLED


@pytest.mark.parametrize("line", [b"no JSON\n", b"[" * 5000 + b"\n", b"\xff\xfe\n", b"1" * 5000 + b"\n"])
def test_line_of_a_play_that_cannot_be_read_is_kept_for_its_end(tmp_path: Path, line: bytes) -> None:
    """ansible-runner calls `must_be_killed`; an exception in it would abandon the play on the hosts."""
    journal = tmp_path / "journal"
    reported: list[object] = []
    listener = Listener(report=reported.append, journal=journal)
    play = _Play(PlayResult("measure"), tmp_path, patience=WAIT, listener=listener, cancelled=None)
    with journal.open("ab") as file:
        file.write(b'{"test": "a"}\n' + line)
    assert play.must_be_killed() is False
    assert isinstance(play.raised, ValueError | RecursionError)
    assert reported == [{"test": "a"}]
