# SPDX-License-Identifier: BSD-2-Clause
"""Limits of bytes and time for responses of other servers, whatever their headers declare.

A time-out of urllib3 limits one read from the socket. So a server that sends a byte now and then could hold a worker
for ever, by its headers or by its body. And a compressed response is larger than what was sent. All three are limited
here: use BoundedPoolManager with read_bounded, or a session of `requests` with BoundedAdapter.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar

import urllib3
from requests import PreparedRequest, RequestException, Response
from requests.adapters import HTTPAdapter

_CHUNK = 65536
HEADER_SECONDS = 30.0
"""Max seconds from the request to the end of the response's headers."""


class TooMuchError(urllib3.exceptions.HTTPError):
    """A response above a limit; the message names the limit."""


def read_bounded(answer: urllib3.BaseHTTPResponse, most: int, seconds: float) -> bytes:
    """Return the decompressed body of a response whose content was not preloaded, and close it.

    Raises TooMuchError after `most` bytes or `seconds`, and other HTTPErrors of urllib3.
    """
    deadline = time.monotonic() + seconds
    parts, size = list[bytes](), 0
    try:
        while part := answer.read1(_CHUNK, decode_content=True):
            parts.append(part)
            size += len(part)
            if size > most:
                raise TooMuchError(f"the answer is larger than {most} bytes")
            if time.monotonic() > deadline:
                raise TooMuchError(f"the answer takes longer than {seconds:g} s")
    finally:
        answer.close()
    return b"".join(parts)


@contextmanager
def _hanging_up(connection: urllib3.connection.HTTPConnection) -> Iterator[None]:
    """Shut the connection's socket down after HEADER_SECONDS, which ends a read.  Raises TooMuchError then."""
    late = threading.Event()

    def hang_up() -> None:
        late.set()
        if connection.sock is not None:
            with suppress(OSError):  # it is closed already
                socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)  # SSLSocket's own waits for the reader

    timer = threading.Timer(HEADER_SECONDS, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if late.is_set():
            raise TooMuchError(f"the headers of the answer take longer than {HEADER_SECONDS:g} s")


class BoundedConnection(urllib3.connection.HTTPConnection):
    """HTTP whose headers end within HEADER_SECONDS."""

    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        """Read the headers of a response."""
        with _hanging_up(self):
            return super().getresponse()


class BoundedTlsConnection(urllib3.connection.HTTPSConnection):
    """HTTPS whose headers end within HEADER_SECONDS."""

    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        """Read the headers of a response."""
        with _hanging_up(self):
            return super().getresponse()


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = BoundedConnection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = BoundedTlsConnection


class BoundedPoolManager(urllib3.PoolManager):
    """Connections whose responses have HEADER_SECONDS for their headers."""

    pool_classes: ClassVar[dict[str, type[urllib3.HTTPConnectionPool]]] = {"http": _Pool, "https": _TlsPool}

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.pool_classes_by_scheme = dict(self.pool_classes)


class BoundedAdapter(HTTPAdapter):
    """A transport of `requests` that reads responses up to a limit; above it, it raises RequestException."""

    def __init__(self, most: int, seconds: float) -> None:
        super().__init__()
        self._most, self._seconds = most, seconds

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **named: Any) -> None:
        """Make the connections; called by HTTPAdapter."""
        self.poolmanager = BoundedPoolManager(num_pools=connections, maxsize=maxsize, block=block, **named)

    def send(self, request: PreparedRequest, *arguments: Any, **named: Any) -> Response:
        """Send a request and read the whole response."""
        try:
            response = super().send(request, *arguments, **(named | {"stream": True}))
            content = read_bounded(response.raw, self._most, self._seconds)
        except urllib3.exceptions.HTTPError as error:
            raise RequestException(str(error), request=request) from None
        # The two attributes that `Response.content` itself sets: there is no public way to give a response its body.
        response._content, response._content_consumed = content, True
        return response
