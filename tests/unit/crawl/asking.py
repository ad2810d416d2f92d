# SPDX-License-Identifier: BSD-2-Clause
"""Requests as bytes, and the application's responses to them without a socket in between."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any
from urllib.parse import unquote

from asgiref.sync import async_to_sync
from django.conf import settings
from django.core.signals import got_request_exception

from perfweb.serving.malformed import Handler
from perfweb.serving.uploads import UploadLimit

Headers = list[tuple[bytes, bytes]]


class Received(Enum):
    """The way in which the body of a request arrives."""

    WHOLE = "in one event"
    PIECES = "in several events, some of them empty"
    CUT_OFF = "to its middle, where the client closes the connection"


@dataclass(frozen=True)
class Request:
    """A request as a client writes it: `target` is path and query, percent-encoded or not."""

    method: str
    target: bytes
    headers: Headers = field(default_factory=list)
    body: bytes = b""
    received: Received = Received.WHOLE

    def events(self) -> list[dict[str, Any]]:
        """The events in which an application gets the body."""
        middle = len(self.body) // 2
        if self.received is Received.WHOLE:
            return [{"type": "http.request", "body": self.body, "more_body": False}]
        first = [{"type": "http.request", "body": part, "more_body": True} for part in (b"", self.body[:middle])]
        if self.received is Received.CUT_OFF:
            return [*first, {"type": "http.disconnect"}]
        rest = [{"type": "http.request", "body": self.body[middle:], "more_body": True}]
        return [*first, *rest, {"type": "http.request", "body": b"", "more_body": False}]

    def __str__(self) -> str:
        shown = b", ".join(name + b": " + value[:60] for name, value in self.headers if name != b"cookie")
        return f"{self.method[:20]} {self.target[:200]!r} {shown[:300]!r} {self.body[:200]!r}"

    def with_header(self, name: bytes, value: bytes) -> Request:
        """The same with one header set."""
        kept = [pair for pair in self.headers if pair[0] != name]
        return replace(self, headers=[*kept, (name, value)])


@dataclass
class Answer:
    """The response; status 0 without one. `failure` is the message of an exception of the application."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    failure: str = ""


class Application:
    """The application as the web server calls it (https://asgi.readthedocs.io/en/latest/specs/www.html)."""

    def __init__(self) -> None:
        self._application: Any = UploadLimit(Handler(), settings.LARGEST_UPLOAD)  # type: ignore[arg-type]
        self._failures: list[str] = []

    def ask(self, request: Request) -> Answer:
        """Return the response to a request."""
        self._failures.clear()
        with self._noted():
            answer = async_to_sync(self._answer)(request)
        answer.failure = "; ".join(self._failures)
        return answer

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Store the messages of exceptions that lead to a 500."""
        got_request_exception.connect(self._note)
        try:
            yield
        finally:
            got_request_exception.disconnect(self._note)

    def _note(self, **_: object) -> None:
        error = sys.exc_info()[1]
        trace = error.__traceback__ if error else None
        place = ""
        while trace:
            name = trace.tb_frame.f_code.co_filename
            if "site-packages" not in name:
                place = f"{name.rpartition('/perfweb/')[2]}:{trace.tb_lineno}"
            trace = trace.tb_next
        self._failures.append(f"{type(error).__name__}: {str(error)[:200]} ({place})")

    async def _answer(self, request: Request) -> Answer:
        answer, over = Answer(), asyncio.Event()
        events = request.events()

        async def receive() -> dict[str, Any]:
            if events:
                return events.pop(0)
            await over.wait()
            return {"type": "http.disconnect"}

        async def send(event: dict[str, Any]) -> None:
            if event["type"] == "http.response.start":
                answer.status = event["status"]
                answer.headers = {
                    name.decode("latin-1").lower(): value.decode("latin-1") for name, value in event["headers"]
                }
            else:
                answer.body += event.get("body", b"")
                if not event.get("more_body"):
                    over.set()

        try:
            await self._application(self._scope(request), receive, send)
        except Exception as error:  # the web server would respond with 500 to any exception
            answer.status = 500
            self._failures.append(f"outside Django: {type(error).__name__}: {error}")
        return answer

    def _scope(self, request: Request) -> dict[str, Any]:
        """Convert a request as uvicorn does."""
        path, _, query = request.target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": request.method,
            "path": unquote(path.decode("latin-1")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": request.headers,
            "server": ("testserver", 80),
            "client": ("127.0.0.1", 50000),
        }
