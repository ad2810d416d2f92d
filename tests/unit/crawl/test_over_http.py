# SPDX-License-Identifier: BSD-2-Clause
"""Malformed requests over a socket: the combined behaviour of the web server, Django and the views."""

from __future__ import annotations

import re
import socket
from urllib.parse import urlsplit

import pytest

from tests.factories import create_run
from tests.unit.crawl import values

TIME_LIMIT = 60.0
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")

REQUEST_LINES = [
    b"",
    b"\r\n",
    b"GET",
    b"GET /",
    b"GET / HTTP/9.9",
    b"GET / HTTP/1.0",
    b"GET  / HTTP/1.1",
    b"GET\t/\tHTTP/1.1",
    b"GET / HTTP/1.1 x",
    b"get / HTTP/1.1",
    b"G\0T / HTTP/1.1",
    b"\xff / HTTP/1.1",
    b"TRACE / HTTP/1.1",
    b"CONNECT x:1 HTTP/1.1",
    b"OPTIONS * HTTP/1.1",
    b"GET http://x/ HTTP/1.1",
    b"GET http://[ HTTP/1.1",
    b"GET http:// HTTP/1.1",
    b"GET x HTTP/1.1",
    b"GET //x HTTP/1.1",
    b"GET * HTTP/1.1",
    b"GET /? HTTP/1.1",
    b"GET /# HTTP/1.1",
    b"GET /\xff HTTP/1.1",
    b"GET /?\xff HTTP/1.1",
    b"GET /search/?q=\xc3\xa9 HTTP/1.1",
    b"GET /%00 HTTP/1.1",
    b"GET /%ff HTTP/1.1",
    b"GET /%zz HTTP/1.1",
    b"GET /search/?q=%00 HTTP/1.1",
    b"GET /search/?q=%ff HTTP/1.1",
    b"GET /\0 HTTP/1.1",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1",
    b"GET /?" + b"a=b&" * 20_000 + b" HTTP/1.1",
    b"GET /" + b"../" * 1000 + b" HTTP/1.1",
    b"GET /static/..%2f..%2fmanage.py HTTP/1.1",
    b"GET /static/%00 HTTP/1.1",
    b"GET /static/%ff HTTP/1.1",
    b"GET /static/" + b"a" * 5000 + b" HTTP/1.1",
    b"GET /api/v1/runs?cursor=%00 HTTP/1.1",
    b"GET /api/v1/runs/%D9%A3 HTTP/1.1",
    b"PRI * HTTP/2.0",
    b"\x16\x03\x01\x02\x00\x01\x00",
]
BODIES = [
    b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"Content-Length: 0\r\n\r\nGET / HTTP/1.1\r\n",
    b"Content-Length: 99999999999\r\n\r\n",
    b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
    b"Content-Length: -1\r\n\r\n",
    b"Content-Length: x\r\n\r\n",
    b"Transfer-Encoding: gzip\r\n\r\n",
    b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\nx\r\nabc\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0\r\nx: y\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 3\r\n\r\n--x",
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\n%00",
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\n\xff=\xff",
]
UNFINISHED = [
    b"Content-Length: 10\r\n\r\nabc",
    b"Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
    b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n",
]


class Server:
    """A web server for raw bytes."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._place = (parts.hostname or "", parts.port or 0)

    def ask(self, raw: bytes, *, ended: bool) -> tuple[int, bytes]:
        """Return the status and the body of the response to some bytes; 0 for no response. `ended` closes the sending
        side, after which the server gives an unfinished request up.
        """
        with socket.create_connection(self._place, timeout=TIME_LIMIT) as connection:
            try:
                connection.sendall(raw)
                if ended:
                    connection.shutdown(socket.SHUT_WR)
                answer = b"".join(iter(lambda: connection.recv(65536), b""))
            except (BrokenPipeError, ConnectionResetError):  # it was refused before all was sent
                return 0, b""
        found = _STATUS.match(answer)
        return int(found[1]) if found else 0, answer.partition(b"\r\n\r\n")[2]


@pytest.fixture
def server(asgi_server: str) -> Server:
    create_run()
    return Server(asgi_server)


def wrong(server: Server, raw: bytes, *, ended: bool = False) -> list[str]:
    """Return the error of the response to some bytes."""
    status, body = server.ask(raw, ended=ended)
    if status >= 500 or (status >= 400 and not body) or (status == 0 and not ended):
        return [f"{status} {body[:40]!r}: {raw[:300]!r}"]
    return []


def test_no_malformed_request_line_fails(server: Server) -> None:
    rest = b"\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert not [problem for line in REQUEST_LINES for problem in wrong(server, line + rest)]


def test_no_malformed_body_fails(server: Server) -> None:
    for path in (b"/account/sign-in/", b"/api/v1/submissions", b"/forges/x/webhook", b"/nowhere"):
        head = b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        assert not [problem for body in BODIES for problem in wrong(server, head + body)]
        assert not [problem for body in UNFINISHED for problem in wrong(server, head + body, ended=True)]


def test_no_malformed_header_fails(server: Server) -> None:
    assert not [
        problem
        for path in (b"/runs/1/samples.csv", b"/account/", b"/api/v1/runs", b"/runs/1/events")
        for name, some in values.HEADERS.items()
        for value in some
        if name not in {b"content-length", b"transfer-encoding"}  # the server would wait for a body
        for problem in wrong(server, with_header(path, name, value))
    ]


def with_header(path: bytes, name: bytes, value: bytes) -> bytes:
    """A request with one header in addition to the required ones."""
    host = b"" if name == b"host" else b"Host: localhost\r\n"
    return b"GET " + path + b" HTTP/1.1\r\n" + host + name + b": " + value + b"\r\nConnection: close\r\n\r\n"
