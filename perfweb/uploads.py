# SPDX-License-Identifier: BSD-2-Clause
"""A limit on what a request may bring. Django alone would first write all of it to a temporary file."""

from __future__ import annotations

from collections.abc import Iterable

from asgiref.typing import ASGI3Application, ASGIReceiveCallable, ASGIReceiveEvent, ASGISendCallable, Scope


class _TooLargeError(Exception):
    pass


class UploadLimit:
    """Passes requests on to an application, and refuses those of more than `most` bytes (413)."""

    def __init__(self, application: ASGI3Application, most: int) -> None:
        self.application, self.most = application, most

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        taken = 0

        async def counted() -> ASGIReceiveEvent:
            nonlocal taken
            event = await receive()
            if event["type"] == "http.request":
                taken += len(event["body"])
            if taken > self.most:
                raise _TooLargeError
            return event

        try:
            if scope["type"] == "http" and _announced(scope["headers"]) > self.most:
                raise _TooLargeError
            await self.application(scope, counted, send)
        except _TooLargeError:
            await self._refuse(send)

    async def _refuse(self, send: ASGISendCallable) -> None:
        text = f"A request may bring {self.most} bytes at most.\n".encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 413, "headers": headers, "trailers": False})
        await send({"type": "http.response.body", "body": text, "more_body": False})


def _announced(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """How long a request says that it is; 0 if it does not."""
    length = dict(headers).get(b"content-length", b"")
    return int(length) if length.isdigit() else 0
