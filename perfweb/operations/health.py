# SPDX-License-Identifier: BSD-2-Clause
"""Health of the service's parts: the database, Redis, both kinds of workers, and beat.

The response is public and names the part that is down; the log has the error, with names of hosts and users.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from tempfile import TemporaryFile
from threading import Lock

import psycopg
import redis
from celery import current_app
from django.conf import settings
from django.core.cache import cache
from django.db import Error, connection, transaction
from kombu.exceptions import OperationalError as BrokerError
from psycopg_pool import PoolTimeout

from perfweb.faults import services as faults
from perfweb.lab.models import queue_of
from perfweb.lab.services import labs
from perfweb.measuring import space
from perfweb.postgresql import answers_within, disk_is_full
from perfweb.redisclient import client

log = logging.getLogger("perfweb.health")
OK = "ok"
AWAY = "does not answer"
FULL = "its disk is full: results wait and nothing is stored until there is room; remove files on PostgreSQL's disk"
PING_SECONDS = 1.0
"""Time-out of workers; also the duration of a check."""
KEPT_SECONDS = 5.0
"""Seconds that a result is cached, so that frequent requests do not query the workers more often."""
BEAT = "perfweb:beat"
"""The Redis key with the time of beat's last call, written by the worker for messages."""
BEAT_SECONDS = 60
SORTED_ROWS = 5000
"""Rows that PostgreSQL sorts in 64 kB of memory, so that it writes a temporary file: a full disk does not fail
reads.
"""
BLOCK = 4096
"""Bytes written to check that the disk accepts them."""
RUNS, MESSAGES = "workers for runs", "worker for messages"
FAULTS, DISK = "faults", "disk"
NOTES = frozenset({FAULTS})
"""Parts that do not make the service unhealthy, because it continues without the items that have faults."""
SHOWN_FAULTS = 10
_KEPT = "perfweb:health"
_looking = Lock()


def beaten() -> None:
    """Store the time of beat's call, which it makes every ten seconds."""
    client().set(BEAT, f"{time.time():.0f}")


def beat_age() -> float | None:
    """Return seconds since beat's last call, or None if there was none. Raises redis.RedisError."""
    last = client().get(BEAT)
    return max(time.time() - float(str(last)), 0.0) if last else None


def answer() -> dict[str, str]:
    """Return the parts as of now, or of at most KEPT_SECONDS ago; concurrent requests share one check.

    Kept in the process and not in Redis, which may be down.
    """
    with _looking:
        found: dict[str, str] | None = cache.get(_KEPT)
        if found is None:
            found = parts()
            cache.set(_KEPT, found, KEPT_SECONDS)
        return found


def parts() -> dict[str, str]:
    """Return each part with OK, or with the problem and where to look. Takes PING_SECONDS, and seconds more if
    PostgreSQL gives no connection.
    """
    found = {"database": _database(), DISK: _disk()}
    known = _labs() if found["database"] == OK else []
    if found["database"] == OK:
        found[FAULTS] = _faults()
    try:
        client().ping()
        names = _workers()
        age = beat_age()
    except (redis.RedisError, BrokerError, OSError) as error:
        log.warning("redis: %s", error)
        return found | {"redis": AWAY}
    messages = {name for name in names if name.startswith("messages@")}
    own = {name for name in names - messages if not name.startswith("lab.")}
    return found | {
        "redis": OK,
        RUNS: OK if own else "no worker responds, so no run is measured; read the worker's log",
        **{f"workers of lab {lab}": _lab(lab, names) for lab in known},
        MESSAGES: OK if messages else f"{AWAY}: no message is sent, and no branch is tracked",
        "beat": beat_state(age, messenger=bool(messages)),
    }


def beat_state(age: float | None, *, messenger: bool) -> str:
    """Return the state of beat by the age of its last call, which the worker for messages handles."""
    if age is not None and age < BEAT_SECONDS:
        return OK
    if not messenger:
        return f"unknown while the {MESSAGES} does not answer"
    return f"no call for {BEAT_SECONDS} s: start celery beat, or read its log"


def _database() -> str:
    try:
        with answers_within(PING_SECONDS), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL work_mem = '64kB'")
            cursor.execute("SELECT count(DISTINCT number) FROM generate_series(1, %s) AS number", [SORTED_ROWS])
    except Error as error:
        reason = _reason(error)
        log.warning("database: %s", reason)
        return FULL if disk_is_full(reason) else AWAY
    return OK


def _reason(error: BaseException) -> BaseException:
    """Return the server's reason if the pool has no connection, whose own error does not have it."""
    if isinstance(error.__cause__, PoolTimeout):
        try:
            psycopg.connect(**connection.get_connection_params()).close()
        except psycopg.Error as refused:
            return refused
    return error


def _disk() -> str:
    """Check the disks of this machine for the space that runs need."""
    found = "; ".join(map(str, space.shortages()))
    return f"{found}: runs pause until there is room; remove files there" if found else _writable()


def _writable() -> str:
    """Check that a file can be written in PERFWEB_VAR."""
    try:
        with TemporaryFile(dir=settings.PERFWEB_VAR) as file:
            file.write(bytes(BLOCK))
            file.flush()
    except OSError as error:
        log.warning("disk: %s", error)
        return f"cannot be written: {error.strerror}"
    return OK


def _faults() -> str:
    """The faults of background loops, with what to do."""
    try:
        found = [f"{fault} ({fault.advice})" for fault in faults.current()]
    except Error as error:
        log.warning("database: %s", error)
        return AWAY
    more = len(found) - SHOWN_FAULTS
    return "; ".join(found[:SHOWN_FAULTS] + ([f"and {more} more: manage.py faults"] if more > 0 else [])) or OK


def _labs() -> list[str]:
    try:
        return labs()
    except Error as error:
        log.warning("database: %s", error)
        return []


def _lab(lab: str, names: Iterable[str]) -> str:
    """Check a lab's worker by the names of the workers that answer: they are named after their queue."""
    if any(name.startswith(f"{queue_of(lab)}@") for name in names):
        return OK
    return f"none called {queue_of(lab)}@HOST answers: nothing is measured there"


def _workers() -> set[str]:
    """Return the names of the workers that answer."""
    answers = current_app.control.ping(timeout=PING_SECONDS) or []
    return {name for reply in answers for name in reply}
