# SPDX-License-Identifier: BSD-2-Clause
"""Live progress of a run: one Redis stream per run (https://redis.io/docs/latest/develop/data-types/streams/).

An event is a name and some values; its stream id is its identity, so that a reader who was away goes on where it
stopped.  Progress is a convenience: what it tells is in the database, too, and a Redis that is away fails nothing.

Events: `state` (state, reason); `eta` (seconds, fraction) and `boot` (position, boots, variant, topology, server) when
a boot begins; `measuring` (test, variant) before and `measurement` (test, variant, state, mean, unit, reason) after;
`decided` (topology, server, boots, planned, seconds, verdicts) when the boots left of a group are not needed any more.
"""

import json
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import cast

import redis
import redis.asyncio
from django.conf import settings
from redis.typing import StreamIdT

from perfweb import redisclient

log = logging.getLogger(__name__)

LONGEST_STREAM = 5000
STREAM_SECONDS = 7 * 24 * 3600
FIRST = "0-0"
NEWEST = 100
Entries = list[tuple[str, dict[str, str]]]


@dataclass(frozen=True)
class Event:
    """`id` orders the events of a run; `values` are JSON values."""

    id: str
    name: str
    values: dict[str, object]


def _key(number: int) -> str:
    return f"run:{number}"


def publish(number: int, name: str, **values: object) -> None:
    """Appends an event to the stream of run `number`.  Never raises: without Redis the event is lost and logged."""
    try:
        pipe = redisclient.client().pipeline(transaction=False)
        pipe.xadd(_key(number), {"name": name, "values": json.dumps(values)}, maxlen=LONGEST_STREAM, approximate=True)
        pipe.expire(_key(number), STREAM_SECONDS)
        pipe.execute()
    except (redis.RedisError, OSError) as error:
        log.warning("no progress for run %d: Redis does not answer (%s)", number, error)


def begin(number: int) -> None:
    """Forgets what an earlier run `number` left in Redis, as when the database was made anew."""
    try:
        redisclient.client().delete(_key(number))
    except (redis.RedisError, OSError) as error:
        log.warning("no progress for run %d: Redis does not answer (%s)", number, error)


def progress_since(number: int, last_id: str = FIRST) -> list[Event]:
    """The events of run `number` after `last_id`, oldest first; none without Redis."""
    try:
        entries = cast("Entries", redisclient.client().xrange(_key(number), min=f"({last_id}"))
    except (redis.RedisError, OSError) as error:
        log.warning("no progress of run %d: Redis does not answer (%s)", number, error)
        return []
    return [_event(entry_id, fields) for entry_id, fields in entries]


def latest(number: int) -> dict[str, dict[str, object]]:
    """The values of the last event of each name among the newest events of run `number`; empty without Redis."""
    try:
        entries = cast("Entries", redisclient.client().xrevrange(_key(number), count=NEWEST))
    except (redis.RedisError, OSError) as error:
        log.warning("no progress of run %d: Redis does not answer (%s)", number, error)
        return {}
    events = (_event(entry_id, fields) for entry_id, fields in reversed(entries))
    return {event.name: event.values for event in events}


async def follow(number: int, last_id: str, wait_seconds: float) -> AsyncIterator[Event | None]:
    """The events after `last_id` as they come, and None after every `wait_seconds` without one.  Raises RedisError."""
    position: StreamIdT = last_id
    client = redis.asyncio.Redis.from_url(
        settings.REDIS_URL, decode_responses=True, socket_connect_timeout=redisclient.TIMEOUT
    )
    try:
        while True:
            raw = await client.xread({_key(number): position}, count=100, block=int(wait_seconds * 1000))
            answer = cast("list[tuple[str, Entries]] | None", raw)
            if not answer:
                yield None
            for _, entries in answer or []:
                for entry_id, fields in entries:
                    position = entry_id
                    yield _event(entry_id, fields)
    finally:
        await client.aclose()


def _event(entry_id: str, fields: dict[str, str]) -> Event:
    return Event(entry_id, fields["name"], json.loads(fields["values"]))
