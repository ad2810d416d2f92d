# SPDX-License-Identifier: BSD-2-Clause
"""One call of a REST API of another service: no redirects, short time-outs, and its rate limits are obeyed."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import urllib3

from perfweb.boundedread import BoundedPoolManager, TooMuchError, read_bounded
from perfweb.inputlimits import FORGE_ANSWER_BYTES
from perfweb.jsontext import JsonError, read_json
from perfweb.outbox.services import LaterError, NeverError

SECONDS = urllib3.Timeout(connect=5, read=15, total=20)
LONGEST_ANSWER = 20.0
DENIED = timedelta(minutes=1)
"""Pause of a channel whose token is refused; it goes on soon after a user has replaced it."""
LONGEST_PAUSE = timedelta(hours=6)
_LIMITS = (("X-RateLimit-Remaining", "X-RateLimit-Reset"), ("RateLimit-Remaining", "RateLimit-Reset"))

_pool = BoundedPoolManager(retries=False, timeout=SECONDS, maxsize=1)


class DeniedError(LaterError):
    """The service does not accept the token, or its permissions."""


def call(method: str, url: str, headers: Mapping[str, str], content: object = None, *, edit: bool = False) -> Any:
    """Return the response of the API. Raises LaterError, or NeverError, for example if the comment to edit was
    deleted.
    """
    answer = _answer(method, url, headers, content, FORGE_ANSWER_BYTES, edit=edit)
    try:
        return read_json(answer.data)
    except JsonError as error:
        raise LaterError(f"{method} {url}: the answer {error}", everything=True) from None


@dataclass(frozen=True)
class Answer:
    """A response with a status from 200 to 299."""

    data: bytes
    headers: Mapping[str, str]


def get(url: str, headers: Mapping[str, str], most: int = FORGE_ANSWER_BYTES) -> Answer:
    """Return a response of at most `most` bytes. Raises LaterError or NeverError."""
    return _answer("GET", url, headers, None, most)


def _answer(
    method: str, url: str, headers: Mapping[str, str], content: object, most: int, *, edit: bool = False
) -> Answer:
    sent = {"Accept": "application/json", "User-Agent": "perfweb", **headers}
    try:
        answer = _pool.request(method, url, headers=sent, json=content, redirect=False, preload_content=False)
        data = read_bounded(answer, most, LONGEST_ANSWER)
    except TooMuchError as error:
        raise LaterError(f"{method} {url}: {error}", everything=True) from None
    except urllib3.exceptions.HTTPError as error:
        raise LaterError(f"{method} {url}: no answer ({type(error).__name__})", everything=True) from None
    if 200 <= answer.status < 300:
        return Answer(data, answer.headers)
    outcome = f"{method} {url}: {answer.status} {data[:300].decode('utf-8', 'replace')}"
    if pause := _pause(answer.status, answer.headers):
        raise LaterError(outcome, min(pause, LONGEST_PAUSE), everything=True)
    if answer.status in {401, 403, 404} and not (edit and answer.status == 404):
        refused = answer.status == 401
        raise DeniedError(outcome, DENIED if refused else None, everything=refused)
    if answer.status >= 500 or answer.status < 400:
        raise LaterError(outcome, everything=True)
    raise NeverError(outcome)


def _pause(status: int, headers: Mapping[str, str]) -> timedelta | None:
    """Return the pause that the service requires, None without one."""
    if status not in {403, 429} and status < 500:
        return None
    after = headers.get("Retry-After", "")
    if after.isascii() and after.isdigit():
        return timedelta(seconds=int(after[:9]))
    if after:
        try:
            return max(parsedate_to_datetime(after) - datetime.now(UTC), timedelta(seconds=1))
        except (ValueError, TypeError):
            pass
    for remaining, reset in _LIMITS:
        when = headers.get(reset, "")
        if headers.get(remaining) == "0" and when.isascii() and when.isdigit():
            return timedelta(seconds=max(int(when[:12]) - time.time(), 1))
    return timedelta(minutes=1) if status == 429 else None
