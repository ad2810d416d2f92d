# SPDX-License-Identifier: BSD-2-Clause
"""Live progress of a run: one Redis stream per run (https://redis.io/docs/latest/develop/data-types/streams/).

An event is a name and some values; its stream id is its identity, so that a reader continues where it stopped. Progress
is a convenience: the database has the same data, so a failure of Redis fails no run.

Events: `state` (state, reason); `eta` (seconds, fraction) and `boot` (position, boots, variant, topology, server) when
a boot begins; `measuring` (test, variant) before and `measurement` (test, variant, state, mean, unit, reason) after;
`decided` (topology, server, boots, planned, seconds, verdicts) when the remaining boots of a group are not needed.
"""

import json
import logging
from dataclasses import dataclass
from typing import cast

import redis

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


def key_of(number: int) -> str:
    """Return the key of the stream of run `number`."""
    return f"run:{number}"


def publish(number: int, name: str, **values: object) -> None:
    """Appends an event to the stream of run `number`.  Never raises: without Redis the event is lost and logged."""
    try:
        pipe = redisclient.client().pipeline(transaction=False)
        pipe.xadd(key_of(number), {"name": name, "values": json.dumps(values)}, maxlen=LONGEST_STREAM, approximate=True)
        pipe.expire(key_of(number), STREAM_SECONDS)
        pipe.execute()
    except (redis.RedisError, OSError) as error:
        log.warning("no progress for run %d: Redis does not answer (%s)", number, error)


def begin(number: int) -> None:
    """Deletes the stream of an earlier run `number`, for example of a previous database."""
    try:
        redisclient.client().delete(key_of(number))
    except (redis.RedisError, OSError) as error:
        log.warning("no progress for run %d: Redis does not answer (%s)", number, error)


def progress_since(number: int, last_id: str = FIRST) -> list[Event]:
    """The events of run `number` after `last_id`, oldest first; none without Redis."""
    try:
        entries = cast("Entries", redisclient.client().xrange(key_of(number), min=f"({last_id}"))
    except (redis.RedisError, OSError) as error:
        log.warning("no progress of run %d: Redis does not answer (%s)", number, error)
        return []
    return [read_entry(entry_id, fields) for entry_id, fields in entries]


def latest(number: int) -> dict[str, dict[str, object]]:
    """The values of the last event of each name among the newest events of run `number`; empty without Redis."""
    try:
        entries = cast("Entries", redisclient.client().xrevrange(key_of(number), count=NEWEST))
    except (redis.RedisError, OSError) as error:
        log.warning("no progress of run %d: Redis does not answer (%s)", number, error)
        return {}
    events = (read_entry(entry_id, fields) for entry_id, fields in reversed(entries))
    return {event.name: event.values for event in events}


def read_entry(entry_id: str, fields: dict[str, str]) -> Event:
    """Return the event of an entry of a stream."""
    return Event(entry_id, fields["name"], json.loads(fields["values"]))
