# SPDX-License-Identifier: BSD-2-Clause
"""Sends files that are made during the download: whole, only if they changed, or from an offset on (RFC 9110).

Section 13 has the conditions, section 14 the ranges. One range is honoured; for several the whole file is sent, as
section 14.2 allows. `If-Range` with a date never gets a range, because dates have a resolution of seconds, which is too
coarse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response
from django.utils.http import http_date

from perfweb.rawdata.streaming import stream

PLAIN_TEXT = "text/plain; charset=utf-8"
# A file is isolated: nothing in it runs or loads, whatever type a browser assumes.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_RANGE = re.compile(r"bytes[ \t]*=[ \t]*(\d{0,18})-(\d{0,18})[ \t]*", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Body:
    """A file to be sent.

    `pieces` writes it from an offset on, and `length` counts its bytes. If that takes as long as writing it, the length
    is not `announced`, and only requests for a part pay for it. `etag` identifies exactly these bytes. It is empty
    while they may still change, and then there are neither conditions nor ranges.
    """

    filename: str
    content_type: str
    pieces: Callable[[int], Iterator[bytes]]
    length: Callable[[], int]
    etag: str = ""
    modified: datetime | None = None
    inline: bool = False
    announced: bool = True
    cache: str = "no-cache"
    """The Cache-Control; "no-cache" requires revalidation each time."""


class _UnsatisfiableError(ValueError):
    """The range begins after the end."""


def text_body(filename: str, content: bytes, etag: str, modified: datetime | None) -> Body:
    """A text in memory, which a browser shows."""
    return Body(
        filename, PLAIN_TEXT, lambda start: iter([content[start:]]), lambda: len(content), etag, modified, inline=True
    )


def send(request: HttpRequest, body: Body) -> HttpResponseBase:
    """Answer a request for a file."""
    headers = _headers(body)
    if body.etag:
        modified = int(body.modified.timestamp()) if body.modified else None
        usual = HttpResponse(headers=headers)
        early: HttpResponseBase | None = get_conditional_response(request, headers["ETag"], modified, usual)
        if early is not None and early is not usual:
            return early
    try:
        part = _range(request, body)
    except _UnsatisfiableError as error:
        text = f"{error}\n"
        return HttpResponse(text, PLAIN_TEXT, status=416, headers={"Content-Range": f"bytes */{body.length()}"})
    return _answer(request, body, part, headers)


def _headers(body: Body) -> dict[str, str]:
    shown = "inline" if body.inline else "attachment"
    filename = re.sub(r"[^A-Za-z0-9._+-]", "_", body.filename)
    headers = {
        "Content-Disposition": f'{shown}; filename="{filename}"',
        "Content-Security-Policy": _POLICY,
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": body.cache if body.etag else "no-store",
        "Accept-Ranges": "bytes" if body.etag else "none",
    }
    if body.etag:
        headers["ETag"] = f'"{body.etag}"'
    if body.etag and body.modified:
        headers["Last-Modified"] = http_date(body.modified.timestamp())
    return headers


def _answer(
    request: HttpRequest, body: Body, part: tuple[int, int] | None, headers: dict[str, str]
) -> HttpResponseBase:
    response: HttpResponseBase
    if request.method == "HEAD":
        response = stream(request, iter(()), body.content_type)  # otherwise Django would send a length of 0
    elif part:
        first, last = part
        response = stream(request, _limited(body.pieces(first), last + 1 - first), body.content_type)
        response.status_code = 206
        headers |= {"Content-Range": f"bytes {first}-{last}/{body.length()}", "Content-Length": str(last + 1 - first)}
    else:
        response = stream(request, body.pieces(0), body.content_type)
    if not part and body.announced:
        headers["Content-Length"] = str(body.length())
    for name, value in headers.items():
        response.headers[name] = value
    return response


def _range(request: HttpRequest, body: Body) -> tuple[int, int] | None:
    """Return the first and the last requested byte; None for the whole file. Raises _UnsatisfiableError."""
    found = _RANGE.fullmatch(request.headers.get("Range", ""))
    validator = request.headers.get("If-Range", "").strip()
    if request.method != "GET" or not found or not body.etag or (validator and validator != f'"{body.etag}"'):
        return None
    first, last = found.groups()
    if (not first and not last) or (first and last and int(last) < int(first)):
        return None  # not a range by its syntax (section 14.1.2), so it is ignored
    length = body.length()
    begin = int(first) if first else max(0, length - int(last))
    end = min(int(last), length - 1) if first and last else length - 1
    if begin > end:
        raise _UnsatisfiableError(f"The file has {length} bytes, and this range begins behind them.")
    return begin, end


def _limited(pieces: Iterator[bytes], count: int) -> Iterator[bytes]:
    """Yield only the first `count` bytes."""
    for piece in pieces:
        yield piece[:count]
        count -= len(piece)
        if count <= 0:
            return
