# SPDX-License-Identifier: BSD-2-Clause
"""Waiting for a database: long enough, but not for ever, and not for errors of the service's own."""

import pytest
from django.db import IntegrityError, OperationalError, connections
from pytest_django import Settings

from runners.db_retry import DatabaseGoneError, retry_db


@pytest.fixture(autouse=True)
def _no_connection() -> None:
    """Close the connections that database tests left open, because checking them is not allowed here."""
    connections.close_all()


def failing(times: int, error: Exception) -> list[Exception]:
    return [error] * times


def test_comes_back(settings: Settings) -> None:
    settings.DATABASE_PATIENCE = 5
    errors = failing(2, OperationalError("the server is starting up"))

    def action() -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert retry_db(action) == "done"


def test_gives_up_in_time(settings: Settings) -> None:
    settings.DATABASE_PATIENCE = 0.5
    calls = []

    def action() -> None:
        calls.append(1)
        raise OperationalError("no such socket")

    with pytest.raises(DatabaseGoneError, match="no such socket"):
        retry_db(action)
    assert len(calls) >= 2


def test_mistakes_are_not_repeated() -> None:
    calls = []

    def action() -> None:
        calls.append(1)
        raise IntegrityError("twice")

    with pytest.raises(IntegrityError):
        retry_db(action)
    assert len(calls) == 1
