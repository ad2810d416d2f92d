# SPDX-License-Identifier: BSD-2-Clause
"""Waiting for a database that has gone away.

A restart of PostgreSQL takes seconds and a run takes hours: what was just measured waits in the spool while we try
again with growing pauses, up to DATABASE_PATIENCE seconds.
"""

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections
from psycopg.errors import DiskFull

log = logging.getLogger(__name__)
T = TypeVar("T")
LONGEST_PAUSE = 5.0
FULL_PATIENCE = 3600.0
"""Seconds for a database whose disk is full: it answers, so that nothing is gained by giving up, and a person has to
make room.
"""


class DatabaseGoneError(Exception):
    """The database did not come back in time."""


def patiently(action: Callable[[], T]) -> T:
    """The result of `action`, called again while the database does not answer.  Raises DatabaseGoneError.

    `action` must be safe to repeat: a transaction, or something idempotent.
    """
    began, pause = time.monotonic(), 0.25
    while True:
        try:
            return action()
        except (OperationalError, InterfaceError) as error:
            close_old_connections()
            limit = FULL_PATIENCE if isinstance(error.__cause__, DiskFull) else settings.DATABASE_PATIENCE
            if time.monotonic() + pause > began + limit:
                raise DatabaseGoneError(f"no database for {limit:g} s: {error}") from error
            log.warning("the database does not answer (%s); trying again in %g s", str(error).strip(), pause)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
