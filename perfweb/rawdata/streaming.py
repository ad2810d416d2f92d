# SPDX-License-Identifier: BSD-2-Clause
"""Responses that are produced piece by piece, on the event loop and without one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse


def stream(request: HttpRequest, pieces: Iterator[str] | Iterator[bytes], content_type: str) -> StreamingHttpResponse:
    """Send `pieces` as they are produced. Under ASGI Django would first collect an ordinary iterator in memory."""
    source = _in_thread(pieces) if isinstance(request, ASGIRequest) else pieces
    return StreamingHttpResponse(source, content_type=content_type)


async def _in_thread(pieces: Iterator[str] | Iterator[bytes]) -> AsyncIterator[str | bytes]:
    while (piece := await sync_to_async(_next)(pieces)) is not None:
        yield piece


def _next(pieces: Iterator[str] | Iterator[bytes]) -> str | bytes | None:
    return next(pieces, None)
