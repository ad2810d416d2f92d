# SPDX-License-Identifier: BSD-2-Clause
"""The web server: uvicorn with limits on connections.

    python -m perfweb.server --host 127.0.0.1 --port 8000

uvicorn waits for ever for the headers of a first request, and for a client that does not read its answer.  A connection
is closed here when it is idle, or its headers are not complete, for IDLE_SECONDS, and when nothing of an answer could
be written for WRITE_SECONDS.  At the limit of connections the one that is idle longest makes room.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import resource
import sys
from collections import OrderedDict
from collections.abc import Sequence
from typing import ClassVar

import uvicorn
from django.conf import settings
from uvicorn.protocols.http.h11_impl import H11Protocol

log = logging.getLogger("perfweb.server")

IDLE_SECONDS = 10.0
WRITE_SECONDS = 30.0
RESERVED_FILES = 300
"""Descriptors for other purposes than clients: databases, files, pipes."""
REQUESTED_FILES = 65536


class Protocol(H11Protocol):
    """HTTP/1.1 with time limits; its idle connections are kept in the order in which they became idle."""

    idle: ClassVar[OrderedDict[Protocol, asyncio.TimerHandle]] = OrderedDict()
    most: ClassVar[int] = 1000
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_request()
        if len(self.connections) > self.most:
            next(iter(self.idle)).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._answers():
            self._stop_waiting()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.transport.is_closing() and not self._answers():
            self._wait_for_request()

    def timeout_keep_alive_handler(self) -> None:
        self.transport.abort()  # close() would wait for a client that does not read

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(WRITE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self._resumed()
        super().connection_lost(exc)

    def _answers(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for_request(self) -> None:
        self._stop_waiting()
        self.idle[self] = self.loop.call_later(IDLE_SECONDS, self.transport.abort)

    def _stop_waiting(self) -> None:
        if timer := self.idle.pop(self, None):
            timer.cancel()

    def _resumed(self) -> None:
        if self._stalled:
            self._stalled.cancel()
            self._stalled = None


def raise_file_limit(connections: int) -> int:
    """Allow as many open files as connections need, as far as the hard limit goes; return how many connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = REQUESTED_FILES if hard == resource.RLIM_INFINITY else min(hard, REQUESTED_FILES)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    fit = min(connections, allowed - RESERVED_FILES)
    if fit < connections:
        log.warning("%d open files allow %d connections instead of %d: raise the hard limit", allowed, fit, connections)
    if fit < 1:
        raise SystemExit(f"perfweb.server: {allowed} open files are too few: allow {RESERVED_FILES + connections}")
    return fit


def configuration(arguments: argparse.Namespace, connections: int) -> uvicorn.Config:
    """Return uvicorn's configuration. Forwarded headers are read by perfweb.proxies, never by uvicorn."""
    return uvicorn.Config(
        "perfweb.asgi:application",
        host=arguments.host,
        port=arguments.port,
        fd=arguments.fd,
        http=Protocol,
        log_level=arguments.log_level,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=connections
        + 2,  # with fewer, connections would be refused for which the protocol still makes room
        timeout_keep_alive=5,
        timeout_graceful_shutdown=3,
    )


def check_proxies() -> None:
    """Exit with advice if every request would be redirected to the site's own HTTPS address in an endless loop."""
    if settings.SECURE_SSL_REDIRECT and not settings.TRUSTED_PROXIES:
        raise SystemExit(
            "perfweb.server: PERFWEB_TRUSTED_PROXIES is not set: list the address from which the reverse proxy that "
            "ends TLS connects, or set PERFWEB_TLS=0 for a site without TLS"
        )


def main(words: Sequence[str] | None = None) -> None:
    """Command line; see the top of this file."""
    parser = argparse.ArgumentParser(prog="perfweb.server", description="Serve the pages.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--fd", type=int, help="serve on this listening socket instead")
    parser.add_argument("--log-level", default="info")
    arguments = parser.parse_args(words)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
    check_proxies()
    Protocol.most = raise_file_limit(settings.CONNECTIONS)
    server = uvicorn.Server(configuration(arguments, Protocol.most))
    server.run()
    if not server.started:
        sys.exit(3)


if __name__ == "__main__":
    main()
