# SPDX-License-Identifier: BSD-2-Clause
"""One reader of a run's progress for all its viewers in an event loop; the web server has one loop.

The first viewer starts the reader, the last one stops it. It keeps the run's events, formatted once, and each viewer
sends those after its own position. So a viewer needs neither a connection to Redis nor a query. No lock is needed,
because viewers in another loop, for example of another thread, have another reader.
"""

from __future__ import annotations

import asyncio
import json
import logging
from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import ClassVar, cast
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
from django.conf import settings
from django.db import Error
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.typing import StreamIdT

from perfweb import redisclient
from perfweb.runs.models import FINAL_STATES
from perfweb.runs.progress import FIRST, LONGEST_STREAM, Entries, Event, key_of, read_entry

log = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 10.0
READ_AT_ONCE = 1000
PAUSE_SECONDS = 0.25
"""Seconds between two reads, so that events in quick succession are sent together."""
WOKEN_AT_ONCE = 25
"""Number of viewers served before other requests get a turn."""
Position = tuple[int, int]
StateOf = Callable[[int], Awaitable[str | None]]


def position_of(event_id: str) -> Position:
    """Return the position of an event in its stream: milliseconds, and a number within them."""
    milliseconds, _, number = event_id.partition("-")
    return int(milliseconds), int(number)


class Broadcast:
    """The events of run `number` as they come."""

    running: ClassVar[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, Broadcast]]] = WeakKeyDictionary()

    def __init__(self, number: int, state: str | None, state_of: StateOf) -> None:
        self.number, self.state, self.state_of = number, state, state_of
        self.over = False
        """The run is over, or deleted, by the database."""
        self.ended = False
        """No further events: the run is over, or Redis or the database is unreachable."""
        self.complete = False
        """All events that were in the stream at the start have been read."""
        self.viewers = 0
        self._positions: list[Position] = []
        self._texts: list[str] = []
        self.changes = 0
        self._waiting: list[asyncio.Future[None]] = []
        self._reader: asyncio.Task[None] | None = None

    @classmethod
    @asynccontextmanager
    async def joined(cls, number: int, state: str | None, state_of: StateOf) -> AsyncIterator[Broadcast]:
        """Join the broadcast of run `number`, which is in `state` now; `state_of` queries the database."""
        running = cls.running.setdefault(asyncio.get_running_loop(), {})
        broadcast = running.get(number)
        if broadcast is None or broadcast.ended:
            broadcast = running[number] = cls(number, state, state_of)
            broadcast._reader = asyncio.create_task(broadcast._read())
        broadcast.viewers += 1
        try:
            yield broadcast
        finally:
            broadcast.viewers -= 1
            if not broadcast.viewers:
                broadcast._stop(running)

    def after(self, position: Position) -> tuple[Position, str]:
        """Return the events after a position as one text, and the position of the last of them."""
        first = bisect_right(self._positions, position)
        texts = self._texts[first:]
        return (self._positions[-1], "".join(texts)) if texts else (position, "")

    async def change(self, seen: int) -> None:
        """Wait while `changes` is `seen`: for events, for the end, or at most KEEP_ALIVE_SECONDS."""
        if self.changes == seen:
            change = asyncio.get_running_loop().create_future()
            self._waiting.append(change)
            await change

    def _stop(self, running: dict[int, Broadcast]) -> None:
        if self._reader:
            self._reader.cancel()
        self.ended = True
        if running.get(self.number) is self:
            del running[self.number]

    async def _read(self) -> None:
        try:
            await self._read_all()
            self.over = True
        except (redis.RedisError, OSError, Error) as error:
            log.warning("no progress of run %d: %s", self.number, error)
        self.ended = True
        await self._notify()

    async def _read_all(self) -> None:
        client = redis.asyncio.Redis.from_url(
            settings.REDIS_URL,
            decode_responses=True,
            socket_connect_timeout=redisclient.TIMEOUT,
            socket_timeout=KEEP_ALIVE_SECONDS + redisclient.TIMEOUT,
            retry=Retry(NoBackoff(), 0),
        )
        async with client:
            while not await self._read_once(client):
                await self._notify()
                await asyncio.sleep(PAUSE_SECONDS)

    async def _read_once(self, client: redis.asyncio.Redis) -> bool:
        """Read the new events. Return whether the run is over.

        A run may have continued after an end in the stream (it was resumed), so only the state in the database counts.
        """
        wait = 0.1 if self.state in FINAL_STATES or not self.complete else KEEP_ALIVE_SECONDS
        last: StreamIdT = "{}-{}".format(*self._positions[-1]) if self._positions else FIRST
        raw = await client.xread({key_of(self.number): last}, count=READ_AT_ONCE, block=int(wait * 1000))
        answer = cast("list[tuple[str, Entries]] | None", raw)
        events = [read_entry(entry_id, fields) for _, entries in answer or [] for entry_id, fields in entries]
        self._keep(events)
        self.complete = self.complete or len(events) < READ_AT_ONCE
        ends = [str(event.values["state"]) for event in events if event.values.get("state") in FINAL_STATES]
        if events and not ends:
            return False
        self.state = await self.state_of(self.number)
        return self.state is None or (self.state in FINAL_STATES and (not events or ends[-1] == self.state))

    def _keep(self, events: list[Event]) -> None:
        self._positions += [position_of(event.id) for event in events]
        self._texts += [
            f"id: {event.id}\nevent: {event.name}\ndata: {json.dumps(event.values)}\n\n" for event in events
        ]
        if len(self._texts) > 2 * LONGEST_STREAM:
            del self._positions[:-LONGEST_STREAM], self._texts[:-LONGEST_STREAM]

    async def _notify(self) -> None:
        self.changes += 1
        waiting, self._waiting = self._waiting, []
        for first in range(0, len(waiting), WOKEN_AT_ONCE):
            for change in waiting[first : first + WOKEN_AT_ONCE]:
                if not change.done():
                    change.set_result(None)
            await asyncio.sleep(0)
