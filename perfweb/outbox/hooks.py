# SPDX-License-Identifier: BSD-2-Clause
"""Letters to a program: a POST of JSON to an address that an operator configured."""

from __future__ import annotations

import json
from collections.abc import Mapping

import urllib3

from perfweb.boundedread import BoundedPoolManager
from perfweb.outbox.models import Letter
from perfweb.outbox.public import NotPublicError
from perfweb.outbox.services import LaterError, NeverError

CHANNEL = "hook:http"
SECONDS = urllib3.Timeout(connect=5, read=10, total=15)
LATER = frozenset({408, 425, 429})
"""Statuses of temporary refusals (RFC 9110, 15.5.9; RFC 8470, 5.2; RFC 6585, 4)."""

_pool = BoundedPoolManager(retries=False, timeout=SECONDS, maxsize=1)


def send(letter: Letter) -> str:
    """Send the `data` of a letter to its `url`. Raises LaterError and NeverError.

    The program may get the same letter twice, with the same `Perfweb-Delivery`, if its response was lost.
    """
    delivery = delivery_of(letter)
    post_json(_pool, letter.content["url"], body_of(letter), {"Perfweb-Delivery": delivery})
    return delivery


def delivery_of(letter: Letter) -> str:
    """Return what names a letter with its present content."""
    return f"{letter.key}.{letter.version}"


def body_of(letter: Letter) -> bytes:
    """Return the `data` of a letter as JSON."""
    return json.dumps(letter.content["data"], separators=(",", ":")).encode()


def post_json(pool: urllib3.PoolManager, url: str, body: bytes, headers: Mapping[str, str]) -> None:
    """Request a POST of JSON, and follow no redirect. Raises LaterError and NeverError."""
    sent = {"User-Agent": "perfweb", "Content-Type": "application/json", **headers}
    try:
        # The body of the response is not read: it may have no end.
        answer = pool.request("POST", url, headers=sent, body=body, redirect=False, preload_content=False)
        answer.close()
    except NotPublicError as error:
        raise LaterError(f"POST {url}: {error}") from None
    except urllib3.exceptions.HTTPError as error:
        raise LaterError(f"POST {url}: no answer ({type(error).__name__})") from None
    if 200 <= answer.status < 300:
        return
    outcome = f"POST {url}: {answer.status}"
    if answer.status >= 500 or answer.status in LATER:
        raise LaterError(outcome)
    raise NeverError(outcome)
