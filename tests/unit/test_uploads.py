# SPDX-License-Identifier: BSD-2-Clause
"""Requests that are too large are refused before they are stored anywhere."""

from __future__ import annotations

from typing import Any

import pytest

from perfweb.inputlimits import FORM_BYTES, REQUEST_HEAD_BYTES, REQUEST_PARAMETERS_BYTES
from perfweb.serving.uploads import UploadLimit

MOST = 10
URLENCODED = b"application/x-www-form-urlencoded"


async def ask(
    pieces: list[bytes], headers: list[tuple[bytes, bytes]], most: int = MOST, **address: bytes
) -> tuple[int, bytes]:
    """The status of the response, and the bytes that reached the application."""
    reached, sent = bytearray(), []
    waiting = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    waiting[-1]["more_body"] = False

    async def receive() -> Any:
        return waiting.pop(0)

    async def send(event: Any) -> None:
        sent.append(event)

    async def application(scope: Any, receive: Any, send: Any) -> None:
        more = True
        while more:
            event = await receive()
            reached.extend(event["body"])
            more = event["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})

    scope: Any = {"type": "http", "headers": headers, **address}
    await UploadLimit(application, most)(scope, receive, send)
    return sent[0]["status"], bytes(reached)


@pytest.mark.parametrize("pieces", [[b"x" * MOST], [b"x" * 5, b"x" * 5, b""]])
async def test_what_is_small_enough_goes_through(pieces: list[bytes]) -> None:
    assert await ask(pieces, [(b"content-length", b"10")]) == (200, b"x" * MOST)


async def test_an_upload_with_too_large_a_length_is_not_read() -> None:
    assert await ask([b"x"], [(b"content-length", b"11")]) == (413, b"")


async def test_an_upload_longer_than_its_length_ends_there() -> None:
    status, reached = await ask([b"x" * 6, b"x" * 6, b"x" * 6], [])
    assert (status, len(reached)) == (413, 6)


@pytest.mark.parametrize(
    ("path", "query", "headers"),
    [
        ("x" * REQUEST_HEAD_BYTES, "", []),
        ("", "x" * REQUEST_HEAD_BYTES, []),
        ("", "", [(b"cookie", b"x" * REQUEST_HEAD_BYTES)]),
        ("", "", [(b"a", b"b")] * REQUEST_HEAD_BYTES),
        ("", "", [(b"content-type", b'a/a;a="' + b";" * REQUEST_PARAMETERS_BYTES)]),
        ("", "", [(b"accept", b"a/a,")] * (REQUEST_PARAMETERS_BYTES // 4 + 1)),
    ],
)
async def test_long_addresses_and_headers_are_refused(
    path: str, query: str, headers: list[tuple[bytes, bytes]]
) -> None:
    assert await ask([b""], headers, raw_path=path.encode() + b"/", query_string=query.encode()) == (431, b"")


@pytest.mark.parametrize("kind", [URLENCODED, b" " + URLENCODED.upper() + b"; charset=utf-8"])
async def test_urlencoded_forms_have_a_limit_of_their_own(kind: bytes) -> None:
    """A form of 4 MiB of percent signs held the interpreter for half a second."""
    headers = [(b"content-type", kind)]
    assert (await ask([b"%" * FORM_BYTES], headers, 2 * FORM_BYTES))[0] == 200
    assert await ask([b"%" * FORM_BYTES, b"%"], headers, 2 * FORM_BYTES) == (413, b"%" * FORM_BYTES)
    headers.append((b"content-length", str(FORM_BYTES + 1).encode()))
    assert await ask([b"%"], headers, 2 * FORM_BYTES) == (413, b"")
    assert (await ask([b"%" * (FORM_BYTES + 1)], [(b"content-type", b"multipart/form-data")], 2 * FORM_BYTES))[0] == 200


async def test_a_length_of_very_many_digits_is_refused() -> None:
    assert await ask([b"x"], [(b"content-length", b"9" * 5000)]) == (413, b"")
