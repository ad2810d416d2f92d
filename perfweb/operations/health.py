# SPDX-License-Identifier: BSD-2-Clause
"""Whether the parts of the service work: the database, Redis, both kinds of workers, and beat."""

from __future__ import annotations

import time

import redis
from celery import current_app
from django.db import DatabaseError, connection
from kombu.exceptions import OperationalError as BrokerError

from perfweb.redisclient import client

OK = "ok"
PING_SECONDS = 1.0
"""How long workers have to answer; also how long a look takes."""
BEAT = "perfweb:beat"
"""The key of Redis that what beat calls renews, through the worker for messages."""
BEAT_SECONDS = 60
RUNS, MESSAGES = "workers for runs", "worker for messages"


def beaten() -> None:
    """Note that beat has called: its tasks come every ten seconds."""
    client().set(BEAT, f"{time.time():.0f}", ex=BEAT_SECONDS)


def parts() -> dict[str, str]:
    """Each part with OK, or with what is wrong and where to look.  Takes PING_SECONDS."""
    found = {"database": _database(), "redis": _redis()}
    if found["redis"] != OK:
        return found
    names = _workers()
    messages = {name for name in names if name.startswith("messages@")}
    found[RUNS] = OK if names - messages else "none answers: no run is measured; look at the worker's log"
    found[MESSAGES] = OK if messages else "does not answer: nobody is told anything, and no branch is tracked"
    beat = client().exists(BEAT)
    found["beat"] = OK if beat else f"has called nothing for {BEAT_SECONDS} s: start celery beat, or look at its log"
    return found


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return f"does not answer: {' '.join(str(error).split())[:200]}"
    return OK


def _redis() -> str:
    try:
        client().ping()
    except redis.RedisError as error:
        return f"does not answer: {error}"
    return OK


def _workers() -> set[str]:
    """The names of the workers that answer."""
    try:
        answers = current_app.control.ping(timeout=PING_SECONDS) or []
    except (BrokerError, OSError):
        return set()
    return {name for answer in answers for name in answer}
