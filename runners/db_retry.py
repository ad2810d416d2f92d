# SPDX-License-Identifier: BSD-2-Clause
"""Repeats an operation on the database while the database does not answer.

A restart of PostgreSQL takes seconds and a run takes hours: fresh results wait in the spool meanwhile. The pauses grow,
and after DATABASE_PATIENCE seconds the run gives up.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections
from tenacity import RetryCallState, RetryError, Retrying, retry_if_exception_type, wait_exponential

from perfweb.postgresql import disk_is_full

log = logging.getLogger(__name__)
T = TypeVar("T")
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0
DISK_FULL_SECONDS = 3600.0
"""Time limit for a database with a full disk: it answers, and an operator has to make space."""


class DatabaseGoneError(Exception):
    """The database did not come back in time."""


def retry_db(action: Callable[[], T]) -> T:
    """Return the result of `action`, which is called again while the database does not answer.

    `action` must be safe to repeat: a transaction, or something idempotent.  Raises DatabaseGoneError.
    """
    retrying = Retrying(
        retry=retry_if_exception_type((OperationalError, InterfaceError)),
        wait=wait_exponential(FIRST_PAUSE, max=LONGEST_PAUSE),
        stop=_is_over,
        after=lambda _: close_old_connections(),
        before_sleep=_warn,
    )
    try:
        return retrying(action)
    except RetryError as failed:
        error = failed.last_attempt.exception()
        raise DatabaseGoneError(f"no database for {_limit(error):g} s: {error}") from error


def _limit(error: BaseException | None) -> float:
    return DISK_FULL_SECONDS if error and disk_is_full(error) else settings.DATABASE_PATIENCE


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _is_over(state: RetryCallState) -> bool:
    return (state.seconds_since_start or 0.0) + state.upcoming_sleep > _limit(_error(state))


def _warn(state: RetryCallState) -> None:
    text = str(_error(state)).strip()
    log.warning("the database does not answer (%s); trying again in %g s", text, state.upcoming_sleep)
