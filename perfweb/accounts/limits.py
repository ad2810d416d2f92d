# SPDX-License-Identifier: BSD-2-Clause
"""How often something may be tried: counters in Redis that begin anew when their time is over.

When Redis does not answer nothing can be counted, and then nobody signs in or writes: a limit that goes away with the
service that counts would be none.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
from dataclasses import dataclass
from http import HTTPStatus

import redis

from perfweb.redisclient import client

log = logging.getLogger(__name__)


class NotNowError(Exception):
    """Something is not possible now; the message says when it will be, and `seconds` how long that is."""

    def __init__(self, status: HTTPStatus, seconds: int, message: str) -> None:
        super().__init__(message)
        self.status, self.seconds = status, seconds


@dataclass(frozen=True)
class Limit:
    """At most so many times in so many seconds."""

    name: str
    most: int
    seconds: int

    def spend(self, key: str) -> None:
        """Count one more time. Raises NotNowError for one too many."""
        name = f"limit:{self.name}:{hashlib.sha256(key.encode()).hexdigest()[:32]}"
        try:
            pipe = client().pipeline()
            pipe.incr(name)
            pipe.expire(name, self.seconds, nx=True)
            pipe.ttl(name)
            count, _, left = pipe.execute()
        except (redis.RedisError, OSError) as error:
            log.warning("cannot count %s: %s", self.name, error)
            message = "This cannot be done while Redis does not answer. Try again in a minute."
            raise NotNowError(HTTPStatus.SERVICE_UNAVAILABLE, 60, message) from None
        if count > self.most:
            message = f"That was too often. Try again in {max(left, 1)} seconds."
            raise NotNowError(HTTPStatus.TOO_MANY_REQUESTS, max(left, 1), message)


SIGN_IN_HERE = Limit("sign in to an account from a network", 10, 15 * 60)
SIGN_IN_NETWORK = Limit("sign in from a network", 50, 15 * 60)
SIGN_IN_ACCOUNT = Limit("sign in to an account", 100, 15 * 60)
"""High, because it also keeps its owner out while strangers try."""

SIGN_IN_ELSEWHERE = Limit("ask where somebody signs in elsewhere, or who came back, from a network", 100, 15 * 60)

WRITE = Limit("write", 60, 60)


def sign_in(name: str, address: str | None) -> None:
    """Count an attempt to sign in. Raises NotNowError."""
    name, network = name.lower(), network_of(address)
    SIGN_IN_HERE.spend(f"{network} {name}")
    SIGN_IN_NETWORK.spend(network)
    SIGN_IN_ACCOUNT.spend(name)


def sign_in_elsewhere(address: str | None) -> None:
    """Count one of the two steps of signing in elsewhere. Raises NotNowError."""
    SIGN_IN_ELSEWHERE.spend(network_of(address))


def write(name: str, address: str | None) -> None:
    """Count a change. Raises NotNowError."""
    WRITE.spend(name or network_of(address))


def network_of(address: str | None) -> str:
    """Return whom an address counts for: of IPv6 one customer has a network of 64 bits or more."""
    if not address:
        return ""
    known = ipaddress.ip_address(address)
    return str(known if known.version == 4 else ipaddress.ip_network(f"{address}/64", strict=False))
