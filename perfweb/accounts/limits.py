# SPDX-License-Identifier: BSD-2-Clause
"""How often something may be tried: counters in Redis that begin anew when their time is over.

While Redis does not answer nothing can be counted, and then no password is checked and nothing is changed: a limit that
goes away with its counters could be switched off by an attacker who overloads Redis.  Reading goes on.

Guesses.  An attempt is counted before the secret is checked, so that attempts at the same time cannot pass the limit
together, and taken back when the secret was right.  Nobody can lock another user out: the limits that refuse are those
of the client's network; many wrong guesses for an account from everywhere only slow its sign-ins down, and not from
networks where its owner has signed in before.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

import redis

from perfweb.redisclient import client

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")


class NotNowError(Exception):
    """Something is not possible now; the message has the time, and `seconds` how long that is."""

    def __init__(self, status: HTTPStatus, seconds: int, message: str) -> None:
        super().__init__(message)
        self.status, self.seconds = status, seconds


def _counted(what: str, call: Callable[[], _Result]) -> _Result:
    """Ask Redis.  Raises NotNowError where it does not answer."""
    try:
        return call()
    except (redis.RedisError, OSError) as error:
        log.warning("cannot count %s: %s", what, error)
        message = "This cannot be done while Redis does not answer. Try again in a minute."
        raise NotNowError(HTTPStatus.SERVICE_UNAVAILABLE, 60, message) from None


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Limit:
    """At most so many times in so many seconds."""

    name: str
    most: int
    seconds: int

    def count(self, key: str) -> tuple[int, int]:
        """Count one more time. Returns how many there were, and the seconds until the count begins anew."""
        name = self._name(key)

        def call() -> list[Any]:
            pipe = client().pipeline()
            pipe.incr(name)
            pipe.expire(name, self.seconds, nx=True)
            pipe.ttl(name)
            return pipe.execute()

        count, _, left = _counted(self.name, call)
        if left > self.seconds:  # the clock was put back, and Redis keeps the time of day at which a key expires
            _counted(self.name, lambda: client().expire(name, self.seconds))
        return int(count), min(max(int(left), 1), self.seconds)

    def spend(self, key: str) -> None:
        """Count one more time. Raises NotNowError for one too many."""
        count, left = self.count(key)
        if count > self.most:
            raise too_many(left)

    def give_back(self, key: str, times: int = 1) -> None:
        """Take times back that were counted; without Redis they stay counted."""
        with suppress(NotNowError):
            _counted(self.name, lambda: client().decrby(self._name(key), times))

    def _name(self, key: str) -> str:
        return f"limit:{self.name}:{_digest(key)}"


def too_many(seconds: int) -> NotNowError:
    """Return the refusal of one time too many, to be raised."""
    return NotNowError(HTTPStatus.TOO_MANY_REQUESTS, seconds, f"Too many requests. Try again in {seconds} seconds.")


SIGN_IN_HERE = Limit("sign in to an account from a network", 10, 15 * 60)
SIGN_IN_NETWORK = Limit("sign in from a network", 50, 15 * 60)
SIGN_IN_ACCOUNT = Limit("sign in to an account", 100, 15 * 60)
"""Beyond it sign-ins are slowed down, not refused."""
SLOW_SECONDS = 5.0
SLOW_AT_ONCE = 20
"""Sign-ins of a web process that are slowed down at once; each holds a thread."""
KNOWN_SECONDS = 90 * 24 * 3600
"""Time that the network of a sign-in is remembered."""

OAUTH_STEPS = Limit("steps of external sign-in from a network", 100, 15 * 60)
WRONG_SECRETS = Limit("wrong tokens, signatures and links from a network", 300, 15 * 60)

WRITE = Limit("write", 60, 60)

_slow = threading.BoundedSemaphore(SLOW_AT_ONCE)


class Attempt:
    """One guess of a password: it counts unless `right` was called."""

    def __init__(self, name: str, address: str | None) -> None:
        network = network_of(address)
        self._here = f"{network} {name.lower()}"
        self._counters = [(SIGN_IN_HERE, self._here), (SIGN_IN_NETWORK, network), (SIGN_IN_ACCOUNT, name.lower())]
        self._known = f"limit:known:{_digest(self._here)}"

    def begin(self) -> None:
        """Count the guess.  Raises NotNowError; waits where an account is under attack."""
        for limit, key in self._counters[:2]:
            limit.spend(key)
        limit, key = self._counters[2]
        count, _ = limit.count(key)
        if count > limit.most and not _counted("known networks", lambda: client().exists(self._known)):
            _slow_down()

    def right(self) -> None:
        """Take the guess back: it was none.  The network is known for this account from now on."""
        for limit, key in self._counters:
            limit.give_back(key)
        with suppress(NotNowError):
            _counted("known networks", lambda: client().set(self._known, 1, ex=KNOWN_SECONDS))


def _slow_down() -> None:
    if not _slow.acquire(blocking=False):
        raise too_many(int(SLOW_SECONDS))
    try:
        time.sleep(SLOW_SECONDS)
    finally:
        _slow.release()


def oauth_step(address: str | None) -> None:
    """Count one of the two steps of signing in elsewhere. Raises NotNowError."""
    OAUTH_STEPS.spend(network_of(address))


def oauth_succeeded(address: str | None) -> None:
    """Take both steps back: they led to an account."""
    OAUTH_STEPS.give_back(network_of(address), times=2)


def wrong_secret(address: str | None) -> None:
    """Count a wrong token, signature or link. Raises NotNowError for one too many.

    Called after the check, so that a right one from the same network always passes. These secrets have 128 bits or
    more: the work that wrong ones make is limited, not the chance of guessing one. So without Redis none is refused.
    """
    try:
        WRONG_SECRETS.spend(network_of(address))
    except NotNowError as error:
        if error.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise


def write(name: str, address: str | None) -> None:
    """Count a change. Raises NotNowError."""
    WRITE.spend(name or network_of(address))


def network_of(address: str | None) -> str:
    """Return whom an address counts for: of IPv6 one customer has a network of 64 bits or more."""
    if not address:
        return ""
    known = ipaddress.ip_address(address)
    return str(known if known.version == 4 else ipaddress.ip_network(f"{address}/64", strict=False))
