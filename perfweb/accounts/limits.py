# SPDX-License-Identifier: BSD-2-Clause
"""Rate limits: counters in Redis that start again after their period.

Without Redis nothing can be counted, and then no password is checked and nothing is changed. Otherwise an attacker
could switch the limits off by overloading Redis. Reading continues.

Password attempts are counted before the password is checked, so that parallel attempts cannot exceed the limit. A right
password takes its count back. No user can lock another one out: the limits that refuse belong to the client's network.
Many wrong passwords for an account from all networks only slow its sign-ins down, except from networks where its owner
has signed in before.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

import redis

from perfweb.redisclient import client

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")


class NotNowError(Exception):
    """The request must wait; the message has the time, and `seconds` how long that is."""

    def __init__(self, status: HTTPStatus, seconds: int, message: str) -> None:
        super().__init__(message)
        self.status, self.seconds = status, seconds


def _counted(what: str, call: Callable[[], _Result]) -> _Result:
    """Send a command to Redis. Raises NotNowError if it does not answer."""
    try:
        return call()
    except (redis.RedisError, OSError) as error:
        log.warning("cannot count %s: %s", what, error)
        message = "This cannot be done while Redis does not answer. Try again in a minute."
        raise NotNowError(HTTPStatus.SERVICE_UNAVAILABLE, 60, message) from None


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]


_trial = ContextVar("trial", default=False)


@contextmanager
def not_counted() -> Iterator[None]:
    """Count nothing in the block, for a trial on the server of which nothing is kept."""
    token = _trial.set(True)
    try:
        yield
    finally:
        _trial.reset(token)


@dataclass(frozen=True)
class Limit:
    """At most so many times in so many seconds."""

    name: str
    most: int
    seconds: int

    def count(self, key: str) -> tuple[int, int]:
        """Count an attempt. Return the number of attempts, and the seconds until the count starts again."""
        name = self._name(key)

        def call() -> list[Any]:
            pipe = client().pipeline()
            pipe.incr(name)
            pipe.expire(name, self.seconds, nx=True)
            pipe.ttl(name)
            return pipe.execute()

        count, _, left = _counted(self.name, call)
        if left > self.seconds:  # the clock was put back, and Redis stores the expiry of a key as time of day
            _counted(self.name, lambda: client().expire(name, self.seconds))
        return int(count), min(max(int(left), 1), self.seconds)

    def spend(self, key: str) -> None:
        """Count an attempt. Raises NotNowError above the limit."""
        if _trial.get():
            return
        count, left = self.count(key)
        if count > self.most:
            raise too_many(left)

    def give_back(self, key: str, times: int = 1) -> None:
        """Take counted attempts back; without Redis they stay counted."""
        with suppress(NotNowError):
            _counted(self.name, lambda: client().decrby(self._name(key), times))

    def _name(self, key: str) -> str:
        return f"limit:{self.name}:{_digest(key)}"


def too_many(seconds: int) -> NotNowError:
    """Return the error for an attempt above the limit, to be raised."""
    return NotNowError(HTTPStatus.TOO_MANY_REQUESTS, seconds, f"Too many requests. Try again in {seconds} seconds.")


SIGN_IN_HERE = Limit("sign in to an account from a network", 10, 15 * 60)
SIGN_IN_NETWORK = Limit("sign in from a network", 50, 15 * 60)
SIGN_IN_ACCOUNT = Limit("sign in to an account", 100, 15 * 60)
"""Number of attempts above which sign-ins are slowed down, not refused."""
SLOW_SECONDS = 5.0
SLOW_AT_ONCE = 20
"""Max slowed-down sign-ins of a web process at once; each holds a thread."""
KNOWN_SECONDS = 90 * 24 * 3600
"""Time for which the network of a sign-in is remembered."""

OAUTH_STEPS = Limit("steps of external sign-in from a network", 100, 15 * 60)
WRONG_SECRETS = Limit("wrong tokens, signatures and links from a network", 300, 15 * 60)

WRITE = Limit("write", 60, 60)

_slow = threading.BoundedSemaphore(SLOW_AT_ONCE)


class Attempt:
    """An attempt to guess a password: it counts unless `right` is called."""

    def __init__(self, name: str, address: str | None) -> None:
        network = network_of(address)
        self._here = f"{network} {name.lower()}"
        self._counters = [(SIGN_IN_HERE, self._here), (SIGN_IN_NETWORK, network), (SIGN_IN_ACCOUNT, name.lower())]
        self._known = f"limit:known:{_digest(self._here)}"

    def begin(self) -> None:
        """Count the attempt. Raises NotNowError; waits if an account is under attack."""
        for limit, key in self._counters[:2]:
            limit.spend(key)
        limit, key = self._counters[2]
        count, _ = limit.count(key)
        if count > limit.most and not _counted("known networks", lambda: client().exists(self._known)):
            _slow_down()

    def right(self) -> None:
        """Take the attempt back, because the password was right, and remember the network for this account."""
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
    """Count one of the two steps of an external sign-in. Raises NotNowError."""
    OAUTH_STEPS.spend(network_of(address))


def oauth_succeeded(address: str | None) -> None:
    """Take both steps back after a successful sign-in."""
    OAUTH_STEPS.give_back(network_of(address), times=2)


def wrong_secret(address: str | None) -> None:
    """Count a wrong token, signature or link. Raises NotNowError above the limit.

    Called after the check, so that a right one from the same network always passes. These secrets have 128 bits or
    more, so the limit only bounds the work for wrong ones. Without Redis none is refused.
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
    """Return the network for which an address counts: one customer has an IPv6 network of 64 bits or more."""
    if not address:
        return ""
    known = ipaddress.ip_address(address)
    return str(known if known.version == 4 else ipaddress.ip_network(f"{address}/64", strict=False))
