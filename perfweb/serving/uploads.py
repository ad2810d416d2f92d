# SPDX-License-Identifier: BSD-2-Clause
"""Limits the size of requests, because Django alone would first write all of one to a temporary file."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from asgiref.typing import ASGI3Application, ASGIReceiveCallable, ASGIReceiveEvent, ASGISendCallable, HTTPScope, Scope

from perfweb.inputlimits import FORM_BYTES, REQUEST_HEAD_BYTES, REQUEST_PARAMETERS_BYTES
from perfweb.serving.malformed import early_refusal

_URLENCODED = b"application/x-www-form-urlencoded"
_PARAMETERS = (b"content-type", b"accept")
MOST_DIGITS = 18
"""Max digits of a length: int() refuses thousands of digits."""


class _TooLargeError(Exception):
    pass


class UploadLimit:
    """Passes requests on to an application, and refuses those of more than `most` bytes, or FORM_BYTES of an urlencoded
    form (413), and those whose address and headers are too long (431, RFC 6585 section 5).
    """

    def __init__(self, application: ASGI3Application, most: int) -> None:
        self.application, self.most = application, most

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        taken, most = 0, min(self.most, FORM_BYTES) if _is_urlencoded(scope) else self.most

        async def counted() -> ASGIReceiveEvent:
            nonlocal taken
            event = await receive()
            if event["type"] == "http.request":
                taken += len(event["body"])
            if taken > most:
                raise _TooLargeError
            return event

        if scope["type"] == "http" and (text := head_problem(scope)):
            await _refuse(scope, send, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text)
            return
        try:
            if scope["type"] == "http" and _announced(scope["headers"]) > most:
                raise _TooLargeError
            await self.application(scope, counted, send)
        except _TooLargeError:
            text = f"A request of this type may have {most} bytes at most."
            await _refuse(scope, send, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)


async def _refuse(scope: Scope, send: ASGISendCallable, status: HTTPStatus, text: str) -> None:
    answer = early_refusal(str(scope.get("path", "")), status, text)
    answer.headers["Connection"] = "close"
    headers = [(name.lower().encode("ascii"), value.encode("latin-1")) for name, value in answer.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers, "trailers": False})
    await send({"type": "http.response.body", "body": answer.content, "more_body": False})


def _is_urlencoded(scope: Scope) -> bool:
    return scope["type"] == "http" and any(
        name.lower() == b"content-type" and value.strip().lower().startswith(_URLENCODED)
        for name, value in scope["headers"]
    )


def head_problem(scope: HTTPScope) -> str:
    """Why the address and the headers are too long; empty if they are not."""
    headers = list(scope["headers"])
    address = len(scope.get("raw_path") or b"") + len(scope.get("query_string", b""))
    if address + sum(len(name) + len(value) for name, value in headers) > REQUEST_HEAD_BYTES:
        return f"The address and the headers may have {REQUEST_HEAD_BYTES} bytes at most."
    for name in _PARAMETERS:
        if sum(len(value) for other, value in headers if other.lower() == name) > REQUEST_PARAMETERS_BYTES:
            return f"The header {name.decode().title()} may have {REQUEST_PARAMETERS_BYTES} bytes at most."
    return ""


def _announced(headers: Iterable[tuple[bytes, bytes]]) -> int:
    """The declared length of a request; 0 without a number."""
    length = dict(headers).get(b"content-length", b"")
    if not length.isdigit():
        return 0
    return int(length) if len(length) <= MOST_DIGITS else 10**MOST_DIGITS
