# SPDX-License-Identifier: BSD-2-Clause
"""The client of Redis for immediate reads and writes, with short time-outs."""

from functools import cache

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

TIMEOUT = 2.0
ONCE_MORE = Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
"""Retry once after a connection error, because a restarted server has closed kept connections; not after a time-out."""


@cache
def client() -> "redis.Redis":
    """Return the one client of this process."""
    return redis.Redis.from_url(
        settings.REDIS_URL,
        decode_responses=True,
        socket_timeout=TIMEOUT,
        socket_connect_timeout=TIMEOUT,
        retry=ONCE_MORE,
    )
