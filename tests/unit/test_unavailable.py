# SPDX-License-Identifier: BSD-2-Clause
"""Which errors of the database, of Redis and of the disk show that the part is unavailable, and which are faults of
the service.
"""

from __future__ import annotations

import errno

import django.db
import psycopg.errors
import pytest
import redis
from redis import exceptions

from perfweb.serving.unavailable import DATABASE, DISK, REDIS, part_away

AWAY = (
    "57P01 57P02 57P03 57P04 57P05 53000 53100 53200 53300 53400 08000 08001 08003 08004 08006 08P01 "
    "25006 25P03 40001 40P01 55P03 57014 58000 58030"
)
MISTAKES = "22001 22021 23505 25P01 25P02 42601 42703 42P01 54000 54001 XX000 XX001"


def raised(state: str) -> django.db.Error:
    """The error of Django for an SQLSTATE."""
    cause = psycopg.errors.lookup(state)("planted")
    kinds = (base.__name__ for base in type(cause).__mro__ if base.__module__ == "psycopg")
    error: django.db.Error = getattr(django.db, next(kinds))("planted")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("state", AWAY.split())
def test_state_that_the_database_leaves_by_itself(state: str) -> None:
    assert part_away(raised(state)) == DATABASE


@pytest.mark.parametrize("state", MISTAKES.split())
def test_an_error_of_the_service_is_not_hidden(state: str) -> None:
    assert part_away(raised(state)) == ""


@pytest.mark.parametrize(
    "words",
    [
        "MISCONF Errors writing to the AOF file: No space left on device",
        "Command # 1 (INCR limit:a (b) of c) of pipeline caused error: MISCONF Errors writing to the AOF file",
        "READONLY You can't write against a read only replica.",
        "Command # 2 (EXPIRE a 1) of pipeline caused error: READONLY You can't write against a read only replica.",
        "LOADING Redis is loading the dataset in memory",
        "BUSY Redis is busy running a script.",
        "NOREPLICAS Not enough good replicas to write.",
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
        "TRYAGAIN Multiple keys request during rehashing of slot",
    ],
)
def test_answer_of_redis_that_it_gives_for_a_while(words: str) -> None:
    assert part_away(redis.ResponseError(words)) == REDIS


@pytest.mark.parametrize(
    "error",
    [
        exceptions.BusyLoadingError("LOADING"), exceptions.ReadOnlyError("READONLY"), exceptions.TimeoutError("late"),
        exceptions.OutOfMemoryError("OOM"), exceptions.MaxConnectionsError("too many"),
        exceptions.ConnectionError("refused"), exceptions.AuthenticationError("NOAUTH"),
    ],
)  # fmt: skip
def test_error_of_redis_that_it_gives_for_a_while(error: Exception) -> None:
    assert part_away(error) == REDIS


@pytest.mark.parametrize("words", ["WRONGTYPE Operation against a key", "ERR unknown command", "MISCONFIGURED"])
def test_an_error_of_the_service_with_redis_is_not_hidden(words: str) -> None:
    assert part_away(redis.ResponseError(words)) == ""


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE])
def test_error_of_the_disk(number: int) -> None:
    assert part_away(OSError(number, "planted")) == DISK


@pytest.mark.parametrize("error", [FileNotFoundError(errno.ENOENT, "x"), OSError("x"), ValueError("x"), None])
def test_other_errors_are_mistakes(error: BaseException | None) -> None:
    assert part_away(error) == ""
