# SPDX-License-Identifier: BSD-2-Clause
"""A response is read up to a limit of bytes and of time."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests
import urllib3

from perfweb import boundedread
from perfweb.boundedread import BoundedAdapter, BoundedPoolManager, TooMuchError, read_bounded

MEGABYTE = 1 << 20
_pool = BoundedPoolManager(retries=False, timeout=urllib3.Timeout(60))


class Server(ThreadingHTTPServer):
    """Responses by path; `sent` are the bytes of bodies that it has written."""

    def __init__(self) -> None:
        self.sent = 0
        self.over = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.path == "/headers":
            self.headers_without_end()
            return
        self.send_response(200)
        if self.path == "/small":
            self.send_header("Content-Length", "5")
        elif self.path == "/bomb":
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        with contextlib.suppress(OSError):  # the client closes the connection
            getattr(self, self.path[1:])()

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def write(self, content: bytes) -> None:
        self.server.sent += self.connection.send(content)

    def small(self) -> None:
        self.write(b"small")

    def endless(self) -> None:
        while self.server.sent < 64 * MEGABYTE:
            self.write(b"x" * 65536)

    def bomb(self) -> None:
        self.write(gzip.compress(b"\0" * 64 * MEGABYTE))

    def headers_without_end(self) -> None:
        with contextlib.suppress(OSError):
            self.write(b"HTTP/1.1 200 OK\r\nX: ")
            self.drip()

    def drip(self) -> None:
        while not self.server.over.wait(0.01):
            self.write(b"x")


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.over.set()
    made.shutdown()
    made.server_close()


def ask(server: Server, path: str, seconds: float = 60) -> bytes:
    answer = _pool.request("GET", server.url(path), preload_content=False)
    return read_bounded(answer, MEGABYTE, seconds)


def test_a_short_answer_is_read(server: Server) -> None:
    assert ask(server, "small") == b"small"


@pytest.mark.parametrize("path", ["endless", "bomb"])
def test_a_long_answer_is_not_read_to_its_end(server: Server, path: str) -> None:
    with pytest.raises(TooMuchError, match="larger than 1048576 bytes"):
        ask(server, path)
    assert server.sent < 32 * MEGABYTE


def test_an_answer_without_an_end_is_given_up(server: Server) -> None:
    with pytest.raises(TooMuchError, match=r"longer than 0\.1 s"):
        ask(server, "drip", seconds=0.1)


def test_headers_without_an_end_are_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundedread, "HEADER_SECONDS", 0.2)
    with pytest.raises(urllib3.exceptions.HTTPError):
        ask(server, "headers")
    with requests.Session() as session:
        session.mount("http://", BoundedAdapter(MEGABYTE, 60))
        with pytest.raises(requests.RequestException):
            session.get(server.url("headers"), timeout=60)


@pytest.mark.parametrize("address", ["perfweb/outbox/hooks.py", "perfweb/outbox/rest.py", "runners/labs/power.py"])
def test_what_reads_answers_uses_connections_with_limits(address: str) -> None:
    text = (Path(__file__).parents[2] / address).read_text(encoding="utf-8")
    assert "BoundedPoolManager(" in text
    assert "urllib3.PoolManager(" not in text


@pytest.mark.parametrize(("path", "seconds"), [("endless", 60), ("bomb", 60), ("drip", 0.1)])
def test_a_session_of_requests_has_the_limits(server: Server, path: str, seconds: float) -> None:
    with requests.Session() as session:
        session.mount("http://", BoundedAdapter(MEGABYTE, seconds))
        assert session.get(server.url("small"), timeout=60).text == "small"
        with pytest.raises(requests.RequestException, match="the answer"):
            session.get(server.url(path), timeout=60)
