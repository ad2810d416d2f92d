# SPDX-License-Identifier: BSD-2-Clause
"""The web server's connections to PostgreSQL: a pool that recovers at once, and statements with a time limit.

psycopg_pool keeps connections that the server has closed, checks them one by one with growing pauses, and retries a
failed connection for five minutes. So a pool that grew before an outage would respond with errors for minutes after it.
Here the first lost connection empties the pool. A connection that cannot be made is given up after RECONNECT_SECONDS,
and the next request makes a new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool

STATEMENT_SECONDS = 10.0
"""Time limit of a statement; the server cancels it a second earlier, if it still runs."""
CONNECT_SECONDS = 3
RECONNECT_SECONDS = 2.0
POOL_SECONDS = 3.0
"""Time that a request waits for a connection."""

_DISK_FULL = "53100"
"""SQLSTATE disk_full."""
_DISK_FULL_TEXTS = ("No space left on device", "could not write init file")
"""Why PostgreSQL refuses a connection when its disk is full; psycopg gives no SQLSTATE then. Each database has an init
file, which the first connection after some changes writes anew (relcache.c); its message has no reason.
"""

_seconds: ContextVar[float] = ContextVar("statement seconds", default=STATEMENT_SECONDS)
_Result = TypeVar("_Result")


@contextmanager
def answers_within(seconds: float) -> Iterator[None]:
    """A context in which a statement, or the check of a connection, fails after `seconds`."""
    token = _seconds.set(seconds)
    try:
        yield
    finally:
        _seconds.reset(token)


def sqlstate(error: BaseException) -> str:
    """Return the SQLSTATE of an error of psycopg or of Django, "" without one."""
    return str(getattr(error, "sqlstate", None) or getattr(error.__cause__, "sqlstate", None) or "")


def disk_is_full(error: BaseException) -> bool:
    """Whether an error of psycopg or of Django shows that the disk of PostgreSQL is full."""
    return sqlstate(error) == _DISK_FULL or any(text in str(error) for text in _DISK_FULL_TEXTS)


class WebConnection(psycopg.Connection[Any]):
    """A connection with time-outs, because a stopped (SIGSTOP) or unreachable server sends no error."""

    def wait(self, gen: PQGen[_Result], interval: float = 0.1, timeout: float | None = None) -> _Result:
        """Wait for an operation of the connection.  Raises psycopg.OperationalError after the time limit."""
        try:
            return super().wait(gen, interval, _seconds.get() if timeout is None else timeout)
        except psycopg.OperationalError:
            if self.info.transaction_status == TransactionStatus.ACTIVE:  # the server still has to respond to it
                self.close()
            if self.closed and isinstance(self._pool, ConnectionPool):
                self._pool.drain()
            raise


def pooled(options: dict[str, Any]) -> dict[str, Any]:
    """Return Django's OPTIONS of a database with a pool of such connections."""
    pool = {
        "min_size": 1,
        "max_size": 50,
        "timeout": POOL_SECONDS,
        "reconnect_timeout": RECONNECT_SECONDS,
        "connection_class": WebConnection,
    }
    limit = f"-c statement_timeout={(STATEMENT_SECONDS - 1) * 1000:.0f}"
    return {**options, "connect_timeout": CONNECT_SECONDS, "options": limit, "pool": pool}
