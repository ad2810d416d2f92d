# SPDX-License-Identifier: BSD-2-Clause
"""The connection to Redis of what reads and writes there at once; nothing waits long for a server that is away."""

from functools import cache

import redis
from django.conf import settings

TIMEOUT = 2.0


@cache
def client() -> "redis.Redis":
    """Return the one client of this process."""
    return redis.Redis.from_url(
        settings.REDIS_URL, decode_responses=True, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT
    )
