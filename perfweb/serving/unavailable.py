# SPDX-License-Identifier: BSD-2-Clause
"""Without the database, Redis or disk space, every address responds with 503 and Retry-After (RFC 9110 section 10.2.3).

Pages get a page, the API a problem (RFC 9457). A failure in a view, a middleware or a template reaches `server_error`
(Django's handler500). A failure outside of them, such as a body that cannot be written to a temporary file, reaches
`Unavailable`.
"""

from __future__ import annotations

import errno
import logging
import re
import sys
from http import HTTPStatus
from typing import Any

import psycopg
import redis
from asgiref.typing import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope
from django.db import InterfaceError, InternalError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views import defaults
from kombu.exceptions import OperationalError as BrokerError

from perfweb.postgresql import sqlstate

log = logging.getLogger("perfweb.serving.unavailable")

RETRY_SECONDS = 5
DATABASE, REDIS, DISK = "database", "Redis", "disk"
_SENTENCES = {
    DATABASE: "The database does not answer now. Try again in a few seconds.",
    REDIS: "Redis does not answer now. Try again in a few seconds.",
    DISK: "The server cannot use its disk now. Try again later.",
}
_PROGRAM_LIMIT = "54"  # SQLSTATE class: the statement is too large or too complex, so another try fails, too
_ENDS_BY_ITSELF = {
    "25006",  # read_only_sql_transaction: a standby, or a server in recovery, accepts no changes
    "25P03",  # idle_in_transaction_session_timeout: the server has ended the session
    "58030",  # io_error
}
_REDIS_AWAY = (
    redis.ConnectionError,
    redis.TimeoutError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.OutOfMemoryError,
    BrokerError,
)
_REDIS_REFUSES = re.compile(
    r"(?:Command # \d+ \(.*\) of pipeline caused error: )?"
    r"(?:MISCONF|NOREPLICAS|CLUSTERDOWN|MASTERDOWN|TRYAGAIN|LOADING|READONLY|BUSY|UNKILLABLE)\b",
    re.DOTALL,
)
"""Messages of temporary errors of commands, also in redis-py's wording for a pipeline."""
_DISK_AWAY = {
    number
    for name in ("ENOSPC", "EDQUOT", "EROFS", "EIO", "EACCES", "EPERM", "EMFILE", "ENFILE", "ESTALE")
    if (number := getattr(errno, name, None)) is not None
}


def part_away(error: BaseException | None) -> str:
    """Return which part of the service is unavailable according to an exception: DATABASE, REDIS, DISK, or "" for
    none.
    """
    if isinstance(error, OperationalError | InterfaceError | InternalError | psycopg.Error):
        return DATABASE if _database_is_away(error) else ""
    if isinstance(error, _REDIS_AWAY):
        return REDIS
    if isinstance(error, redis.ResponseError):
        return REDIS if _REDIS_REFUSES.match(str(error)) else ""
    if isinstance(error, OSError):
        return DISK if error.errno in _DISK_AWAY else ""
    return ""


def _database_is_away(error: BaseException) -> bool:
    state = sqlstate(error)
    if isinstance(error, OperationalError | InterfaceError | psycopg.OperationalError | psycopg.InterfaceError):
        return state[:2] != _PROGRAM_LIMIT
    return state in _ENDS_BY_ITSELF


def answer(request: HttpRequest, part: str) -> HttpResponse:
    """Return the page that names the unavailable part; the API's middleware makes a problem of it."""
    context = {"reason": _SENTENCES[part]}
    response = render(request, "503.html", context, status=HTTPStatus.SERVICE_UNAVAILABLE)
    response.headers["Retry-After"] = str(RETRY_SECONDS)
    response.headers["Cache-Control"] = "no-store"
    return response


def server_error(request: HttpRequest) -> HttpResponse:
    """Respond to an unhandled exception: 503 if a part is unavailable, else 500."""
    error = sys.exc_info()[1]
    part = part_away(error)
    if not part:
        return defaults.server_error(request)
    log.warning("%s: the %s is down: %s", request.path, part, error)
    return answer(request, part)


async def send_text(send: ASGISendCallable, status: int, text: str, headers: tuple[tuple[bytes, bytes], ...]) -> None:
    """Send a whole response in plain text and close the connection."""
    known: list[tuple[bytes, bytes]] = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    start: Any = {"type": "http.response.start", "status": status, "headers": [*known, *headers], "trailers": False}
    await send(start)
    await send({"type": "http.response.body", "body": f"{text}\n".encode(), "more_body": False})


async def send_unavailable(send: ASGISendCallable, text: str, seconds: int = RETRY_SECONDS) -> None:
    """Send 503 with Retry-After."""
    await send_text(send, HTTPStatus.SERVICE_UNAVAILABLE, text, ((b"retry-after", str(seconds).encode()),))


class Sender:
    """Forwards the events of a response, and records whether it has started, because then no other can be sent."""

    def __init__(self, send: ASGISendCallable) -> None:
        self._send = send
        self.started = False

    async def __call__(self, event: ASGISendEvent) -> None:
        self.started = True
        await self._send(event)


class Unavailable:
    """Responds with 503 to failures outside of Django's request handling because a part is unavailable."""

    def __init__(self, application: ASGI3Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        sender = Sender(send)
        try:
            await self.application(scope, receive, sender)
        except Exception as error:
            part = part_away(error)
            if sender.started or not part:
                raise
            log.warning("the %s is down: %s", part, error)
            await send_unavailable(send, _SENTENCES[part])
