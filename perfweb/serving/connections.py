# SPDX-License-Identifier: BSD-2-Clause
"""Limits on requests of one web process, in all and for each client network.

Three stages of a request use a resource, and each has a limited number of places: an incomplete body uses a connection,
a running view a thread, and an event stream a connection for hours. Without a free place the response is 503 with
Retry-After. perfweb.server limits connections and headers.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from asgiref.typing import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGIReceiveEvent,
    ASGISendCallable,
    HTTPScope,
    Scope,
)

from perfweb.accounts.limits import network_of
from perfweb.proxies import parse
from perfweb.serving.unavailable import Sender, send_text, send_unavailable

EVENTS = re.compile(r"/runs/\d+/events", re.ASCII)
"""Paths of event streams (perfweb/runs/urls.py)."""
POLL = b"once"
"""The query of a stream that ends at once, for a page that polls: it holds a place no longer than a page."""
_BUSY = "The server has too many requests now. Try again in a few seconds."
_SLOW = "The request's body did not arrive in time."


class _NoPlaceError(Exception):
    pass


class _SlowBodyError(Exception):
    pass


@dataclass
class Places:
    """At most `most` places, and `each` for one network; an unknown network ("") has no separate limit."""

    most: int
    each: int
    taken: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def one(self, network: str) -> Iterator[None]:
        """Hold a place.  Raises _NoPlaceError."""
        if self.taken.total() >= self.most or (network and self.taken[network] >= self.each):
            raise _NoPlaceError
        self.taken[network] += 1
        try:
            yield
        finally:
            self.taken[network] -= 1
            if not self.taken[network]:
                del self.taken[network]


class ConnectionLimits:
    """Passes requests on to an application while there are places, and limits the time of a body."""

    def __init__(
        self, application: ASGI3Application, *, bodies: Places, requests: Places, streams: Places, body_seconds: float
    ) -> None:
        self.application = application
        self.bodies, self.requests, self.streams = bodies, requests, streams
        self.body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        sender = Sender(send)
        try:
            with ExitStack() as place:
                await self.application(scope, self._received(scope, receive, place), sender)
        except _NoPlaceError:
            if not sender.started:
                await send_unavailable(send, _BUSY)
        except _SlowBodyError:
            if not sender.started:
                await send_text(send, HTTPStatus.REQUEST_TIMEOUT, _SLOW, ())

    def _received(self, scope: HTTPScope, receive: ASGIReceiveCallable, place: ExitStack) -> ASGIReceiveCallable:
        """Receive the body in a place for bodies, then hold one for the response until the request is over."""
        network = _network(scope)
        deadline = asyncio.get_running_loop().time() + self.body_seconds
        waiting = complete = False

        async def received() -> ASGIReceiveEvent:
            nonlocal waiting, complete
            if complete:
                return await receive()
            if not waiting:
                waiting = True
                if _has_body(scope):
                    place.enter_context(self.bodies.one(network))
            try:
                async with asyncio.timeout_at(deadline):
                    event = await receive()
            except TimeoutError:
                raise _SlowBodyError from None
            if event["type"] == "http.request" and not event["more_body"]:
                complete = True
                place.close()
                place.enter_context(self._kind(scope).one(network))
            return event

        return received

    def _kind(self, scope: HTTPScope) -> Places:
        stream = EVENTS.fullmatch(scope["path"]) and scope["query_string"] != POLL
        return self.streams if stream else self.requests


def _has_body(scope: HTTPScope) -> bool:
    return any(name in {b"content-length", b"transfer-encoding"} for name, _ in scope["headers"])


def _network(scope: HTTPScope) -> str:
    """Return the client's network; "" on this machine, for a local user or a proxy that is not configured."""
    client = scope["client"]
    address = parse(client[0]) if client else None
    return "" if address is None or address.is_loopback else network_of(str(address))
