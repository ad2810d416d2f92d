# SPDX-License-Identifier: BSD-2-Clause
"""The connection to Redis of what reads and writes there at once; nothing waits long for a server that is away."""

from functools import cache

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

TIMEOUT = 2.0
ONCE_MORE = Retry(NoBackoff(), 1, supported_errors=(redis.ConnectionError,))
"""A connection that was kept may be one that a restarted server has closed; a time-out is not worth another try."""


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
