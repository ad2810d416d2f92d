# SPDX-License-Identifier: BSD-2-Clause
"""A real server that accepts POSTs of JSON."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MEGABYTE = 1 << 20


class Program(ThreadingHTTPServer):
    """Accepts POSTs and responds with a status; `got` has their deliveries and data, `requests` headers and bodies."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__((address, port), _Handler)
        self.status, self.got = 204, list[tuple[str, Any]]()
        self.requests = list[tuple[Message, bytes]]()
        self.endless, self.sent = False, 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Handler(BaseHTTPRequestHandler):
    server: Program

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((self.headers, body))
        self.server.got.append((self.headers["Perfweb-Delivery"], json.loads(body)))
        self.send_response(self.server.status)
        self.send_header("Location", self.server.url)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            while self.server.endless and self.server.sent < 256 * MEGABYTE:
                self.server.sent += self.wfile.write(bytes(MEGABYTE))

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def running(address: str = "127.0.0.1", port: int = 0) -> Iterator[Program]:
    """Run a program while the context lasts."""
    with Program(address, port) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
