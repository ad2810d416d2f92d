# SPDX-License-Identifier: BSD-2-Clause
"""Letters to a program: a POST of JSON to an address that an operator configured."""

from __future__ import annotations

import urllib3

from perfweb.boundedread import BoundedPoolManager
from perfweb.outbox.models import Letter
from perfweb.outbox.services import LaterError, NeverError

CHANNEL = "hook:http"
SECONDS = urllib3.Timeout(connect=5, read=10, total=15)
LATER = frozenset({408, 425, 429})
"""Statuses of temporary refusals (RFC 9110, 15.5.9; RFC 8470, 5.2; RFC 6585, 4)."""

_pool = BoundedPoolManager(retries=False, timeout=SECONDS, maxsize=1)


def send(letter: Letter) -> str:
    """Sends the `data` of a letter to its `url`; follows no redirect.  Raises LaterError and NeverError.

    The program may get the same letter twice, with the same `Perfweb-Delivery`, if its response was lost.
    """
    url = letter.content["url"]
    delivery = f"{letter.key}.{letter.version}"
    headers = {"User-Agent": "perfweb", "Perfweb-Delivery": delivery}
    try:
        # The body is not read: it may have no end.
        answer = _pool.request(
            "POST", url, headers=headers, json=letter.content["data"], redirect=False, preload_content=False
        )
        answer.close()
    except urllib3.exceptions.HTTPError as error:
        raise LaterError(f"POST {url}: no answer ({type(error).__name__})") from None
    if 200 <= answer.status < 300:
        return delivery
    outcome = f"POST {url}: {answer.status}"
    if answer.status >= 500 or answer.status in LATER:
        raise LaterError(outcome)
    raise NeverError(outcome)
