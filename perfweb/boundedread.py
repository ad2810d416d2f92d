# SPDX-License-Identifier: BSD-2-Clause
"""Answers of other servers, read up to a limit of bytes and of time, whatever their headers promise.

A time-out of urllib3 limits one read from the socket, so a server that sends a byte now and then could hold a worker
for ever; and a compressed answer is larger than what was sent. Both are counted here.
"""

from __future__ import annotations

import time
from typing import Any

import urllib3
from requests import PreparedRequest, RequestException, Response
from requests.adapters import HTTPAdapter

_CHUNK = 65536


class TooMuchError(urllib3.exceptions.HTTPError):
    """An answer above a limit; the message names the limit."""


def read_bounded(answer: urllib3.BaseHTTPResponse, most: int, seconds: float) -> bytes:
    """Return the decompressed body of an answer whose content was not preloaded, and close it.

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


class BoundedAdapter(HTTPAdapter):
    """A transport of `requests` that reads answers up to a limit; above it, it raises RequestException."""

    def __init__(self, most: int, seconds: float) -> None:
        super().__init__()
        self._most, self._seconds = most, seconds

    def send(self, request: PreparedRequest, *arguments: Any, **named: Any) -> Response:
        """Send a request and read the whole answer."""
        response = super().send(request, *arguments, **(named | {"stream": True}))
        try:
            content = read_bounded(response.raw, self._most, self._seconds)
        except urllib3.exceptions.HTTPError as error:
            raise RequestException(str(error), request=request) from None
        # The two attributes that `Response.content` itself sets: there is no public way to give a response its body.
        response._content, response._content_consumed = content, True
        return response
