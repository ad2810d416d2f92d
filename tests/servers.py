# SPDX-License-Identifier: BSD-2-Clause
"""Web servers of this service for tests, with a test's database."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from multiprocessing.context import ForkServerProcess

import urllib3

from tests.forks import forked

Server = ForkServerProcess | subprocess.Popen[bytes]


def wait_until_ready(address: str) -> None:
    """Wait until a web server has a connection to its database: on a busy machine the first pages may be 503."""
    deadline = time.monotonic() + 120
    while (status := urllib3.request("GET", f"{address}/runs/", timeout=120, retries=False).status) != HTTPStatus.OK:
        assert status == HTTPStatus.SERVICE_UNAVAILABLE
        assert time.monotonic() < deadline, "no page in 120 s"
        time.sleep(0.1)


@contextmanager
def served(database: str, **environment: str) -> Iterator[str]:
    """The address of uvicorn with a database, on a free port, once it answers; `environment` has variables for it."""
    with socket.create_server(("127.0.0.1", 0)) as listener, served_at(listener, database, **environment):
        wait_until_ready(address_of(listener))
        yield address_of(listener)


def address_of(listener: socket.socket) -> str:
    """The address of a web server that listens there."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def served_at(listener: socket.socket, database: str, **environment: str) -> Iterator[None]:
    """A process of uvicorn that accepts connections from a socket, which may outlive it."""
    from django.conf import settings as site

    known = {"DJANGO_SETTINGS_MODULE": "perfweb.settings.test", "PERFWEB_PGDATABASE": database}
    given = {**os.environ, **known, **environment}
    server: Server | None = forked("perfweb.asgi", given, _serve, listener)
    if server is None:
        command = [sys.executable, "-m", "perfweb.server", *_words(listener)]
        server = subprocess.Popen(command, cwd=site.BASE_DIR, env=given, pass_fds=[listener.fileno()])
    try:
        yield
    finally:
        server.terminate()
        if not _ends(server, 5):  # a client still held a stream of events
            server.kill()
            _ends(server)


def _serve(listener: socket.socket) -> None:
    from perfweb.server import main

    main(_words(listener))


def _words(listener: socket.socket) -> list[str]:
    return ["--log-level", "warning", "--fd", str(listener.fileno())]


def _ends(server: Server, seconds: float | None = None) -> bool:
    """Wait for the end of a server, at most so long; whether it has ended."""
    if isinstance(server, ForkServerProcess):
        server.join(seconds)
        return not server.is_alive()
    try:
        server.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
